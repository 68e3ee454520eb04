/* store/read.c: reading files of a bundle. The type of a file is decided on the handle, never by its name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

#define READ_STEP 65536u
/* O_NONBLOCK: a FIFO in the place of a file opens at once and is then refused, instead of hanging. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

void oc_object_path(char path[OC_OBJECT_PATH_SIZE], const uint8_t object[32])
{
    char hex[65];
    oc_hex_encode(hex, object, 32);
    snprintf(path, OC_OBJECT_PATH_SIZE, "objects/%.2s/%s", hex, hex);
}

static ortcrypt_status open_regular(const oc_store *store, const char *name, int *out, uint64_t *size, ortcrypt_error *err)
{
    struct stat info;
    const int fd = openat(store->dir, name, READ_FLAGS);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        const int cause = errno;
        oc_fail_errno(err, ORTCRYPT_E_NOT_FOUND, cause, "%s/%s is missing", store->path, name);
        return ORTCRYPT_E_NOT_FOUND;
    }
    if (fd < 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s/%s cannot be opened", store->path, name);
    }
    ortcrypt_status st = ORTCRYPT_OK;
    if (fstat(fd, &info) != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s/%s cannot be read", store->path, name);
    } else if (!S_ISREG(info.st_mode)) {
        st = oc_fail(err, ORTCRYPT_E_IO, "%s/%s is %s, not a file", store->path, name, oc_type_text(info.st_mode));
    }
    if (st != ORTCRYPT_OK) {
        close(fd);
        return st;
    }
    *out = fd;
    *size = (uint64_t)info.st_size;
    return ORTCRYPT_OK;
}

/*
 * Reads to the end of the file into `out`, whose maximum is one byte more than `max`. Whether the file grew or shrank
 * meanwhile is for the caller's authentication to tell.
 */
static ortcrypt_status read_to_end(int fd, size_t max, oc_buf *out, const char *what, ortcrypt_error *err)
{
    while (out->len <= max) {
        uint8_t *room = NULL;
        const size_t left = max + 1 - out->len;
        const size_t want = left < READ_STEP ? left : READ_STEP;
        ortcrypt_status st = oc_buf_reserve(out, want, &room, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
        const ssize_t got = read(fd, room, want);
        if (got == 0) {
            return ORTCRYPT_OK;
        }
        if (got < 0 && errno != EINTR) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be read", what);
        }
        out->len += got > 0 ? (size_t)got : 0;
    }
    return oc_fail(err, ORTCRYPT_E_LIMIT, "%s is larger than %zu bytes", what, max);
}

ortcrypt_status oc_store_read_small(const oc_store *store, const char *name, size_t max, oc_buf *out, ortcrypt_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    char what[1024];
    oc_buf content = OC_BUF(max + 1);
    snprintf(what, sizeof what, "%s/%s", store->path, name);
    ortcrypt_status st = open_regular(store, name, &fd, &size, err);
    if (st == ORTCRYPT_OK && size > max) {
        st = oc_fail(err, ORTCRYPT_E_LIMIT, "%s is %llu bytes long, more than %zu", what, (unsigned long long)size, max);
    }
    if (st == ORTCRYPT_OK && size != 0) {
        uint8_t *room = NULL; /* one growth instead of many; one byte more than expected sees the end at once */
        st = oc_buf_reserve(&content, (size_t)size + 1, &room, err);
    }
    if (st == ORTCRYPT_OK) {
        st = read_to_end(fd, max, &content, what, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append(out, content.data, content.len, err);
    }
    if (fd >= 0) {
        close(fd);
    }
    oc_buf_free(&content);
    return st;
}

bool oc_store_exists(const oc_store *store, const char *name)
{
    struct stat info;
    return fstatat(store->dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

ortcrypt_status oc_store_open_object(const oc_store *store, const uint8_t object[32], int *fd, uint64_t *size,
                                     ortcrypt_error *err)
{
    char name[OC_OBJECT_PATH_SIZE];
    oc_object_path(name, object);
    ortcrypt_status st = open_regular(store, name, fd, size, err);
    if (st == ORTCRYPT_E_NOT_FOUND) {
        /* the manifest names it, so this is the disk's fault, not the caller's question */
        st = oc_fail_errno(err, ORTCRYPT_E_IO, ENOENT, "%s/%s is missing", store->path, name);
    }
    return st;
}

ortcrypt_status oc_pread_full(int fd, uint64_t offset, void *buffer, size_t len, const char *what, ortcrypt_error *err)
{
    uint8_t *const to = buffer;
    size_t done = 0;
    while (done < len) {
        const ssize_t got = pread(fd, to + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            const ortcrypt_status st =
                got < 0 ? oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be read", what)
                        : oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was cut while it was read", what);
            oc_at(err, offset + done, NULL);
            return st;
        }
        done += (size_t)got;
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_store_list(const oc_store *store, const char *name, oc_name_fn fn, void *state, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    const int fd = openat(store->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return ORTCRYPT_OK;
    }
    DIR *const folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s/%s cannot be listed", store->path, name);
        if (fd >= 0) {
            close(fd);
        }
        return st;
    }
    while (st == ORTCRYPT_OK) {
        errno = 0;
        const struct dirent *const entry = readdir(folder);
        if (entry == NULL) {
            if (errno != 0) {
                st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s/%s cannot be listed", store->path, name);
            }
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            st = fn(state, entry->d_name, err);
        }
    }
    closedir(folder);
    return st;
}
