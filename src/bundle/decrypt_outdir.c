/* The fresh folder that decrypt fills: made under a temporary name, published by one rename, removed on failure. */
#include "bundle/decrypt_outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bundle/inputs_files.h"
#include "crypto/random.h"
#include "os/outside.h"

#define TMP_TRIES 16
#define TMP_RANDOM_LEN 8

struct oc_outdir {
    char *path;     /* what it will be called; no slash at the end */
    char *tmp_path; /* what it is called until then */
    int fd;
    bool published;
};

/*
 * open_beneath where the kernel has no openat2 (before Linux 5.6, some containers, user-mode emulators): one component
 * after the other, none of them a link. Only for plain names: without ".." there is no other way out of `dir`.
 */
static int open_walking(int dir, const char *name, int flags, mode_t mode)
{
    char component[OC_OUTDIR_COMPONENT_MAX + 1];
    int at = dir;

    if (!oc_outdir_name_plain(name)) {
        errno = EXDEV;
        return -1;
    }
    for (size_t len = strcspn(name, "/"); at >= 0 && name[len] == '/'; name += len + 1, len = strcspn(name, "/")) {
        memcpy(component, name, len);
        component[len] = '\0';
        const int next = openat(at, component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const int sys = errno;
        if (at != dir) {
            close(at);
        }
        errno = sys;
        at = next;
    }
    if (at < 0) {
        return -1;
    }
    const int fd = openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    const int sys = errno;
    if (at != dir) {
        close(at);
    }
    errno = sys;
    return fd;
}

struct beneath {
    int dir;
    const char *name;
    uint64_t flags;
    mode_t mode;
};

static long do_open_beneath(void *state)
{
    const struct beneath *const call = state;
    struct open_how how = {
        .flags = call->flags | O_CLOEXEC,
        .mode = call->mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;

    do {
        fd = syscall(SYS_openat2, call->dir, call->name, &how, sizeof how);
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return fd < 0 && errno == ENOSYS ? open_walking(call->dir, call->name, (int)call->flags, call->mode) : fd;
}

static int open_beneath(int dir, const char *name, uint64_t flags, mode_t mode)
{
    struct beneath call = {.dir = dir, .name = name, .flags = flags, .mode = mode};

    return (int)oc_outside(do_open_beneath, &call);
}

/* Removes what is below `dir` (consumed), itself not. Best effort: there is nobody left to tell. Never follows a link. */
static void remove_below(int dir)
{
    DIR *const stream = fdopendir(dir);

    if (stream == NULL) {
        close(dir);
        return;
    }
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            oc_disk_unlinkat(dir, entry->d_name, 0) == 0) {
            continue;
        }
        const int below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0) {
            remove_below(below); /* no deeper than OC_OUTDIR_DEPTH_MAX: we made it */
            (void)oc_disk_unlinkat(dir, entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(stream);
}

static ortcrypt_status make_tmp(oc_outdir *folder, ortcrypt_error *err)
{
    const size_t len = strlen(folder->path) + sizeof ".tmp-" + 2 * TMP_RANDOM_LEN;
    uint8_t random[TMP_RANDOM_LEN];
    char hex[2 * TMP_RANDOM_LEN + 1];

    char *const tmp_path = malloc(len);
    if (tmp_path == NULL) {
        return oc_fail_memory(err, len, "a path");
    }
    for (int i = 0; i < TMP_TRIES; i++) {
        const ortcrypt_status status = oc_random(random, sizeof random, err);
        if (status != ORTCRYPT_OK) {
            free(tmp_path);
            return status;
        }
        oc_hex_encode(hex, random, sizeof random);
        (void)snprintf(tmp_path, len, "%s.tmp-%s", folder->path, hex);
        if (oc_disk_mkdirat(AT_FDCWD, tmp_path, 0700) == 0) {
            folder->tmp_path = tmp_path;
            return ORTCRYPT_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    const int sys = errno;
    free(tmp_path);
    return oc_fail_errno(err, ORTCRYPT_E_IO, sys, "folder %s cannot be made", folder->path);
}

ortcrypt_status oc_outdir_create(oc_outdir **out, const char *path, ortcrypt_error *err)
{
    struct stat st;
    size_t len = strlen(path);

    *out = NULL;
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    if (len == 0 || (len == 1 && path[0] == '/')) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "'%s' cannot be the folder for the decrypted files", path);
    }
    oc_outdir *const folder = calloc(1, sizeof *folder);
    if (folder == NULL) {
        return oc_fail_memory(err, sizeof *folder, "a folder");
    }
    folder->fd = -1;
    folder->path = strndup(path, len);
    ortcrypt_status status = folder->path == NULL ? oc_fail_memory(err, len, "a path") : ORTCRYPT_OK;
    if (status == ORTCRYPT_OK && lstat(folder->path, &st) == 0) {
        status = oc_fail(err, ORTCRYPT_E_EXISTS, "%s exists already and is never overwritten", folder->path);
    }
    if (status == ORTCRYPT_OK) {
        status = make_tmp(folder, err);
    }
    if (status == ORTCRYPT_OK) {
        folder->fd = open(folder->tmp_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder->fd < 0) {
            status = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "folder %s cannot be opened", folder->tmp_path);
        }
    }
    if (status != ORTCRYPT_OK) {
        oc_outdir_end(folder);
        return status;
    }
    *out = folder;
    return ORTCRYPT_OK;
}

bool oc_outdir_name_plain(const char *name)
{
    size_t components = 0;

    for (const char *at = name;; at++) {
        const size_t len = strcspn(at, "/");
        if (len == 0 || len > OC_OUTDIR_COMPONENT_MAX || ++components > OC_OUTDIR_DEPTH_MAX ||
            (len <= 2 && strncmp(at, "..", len) == 0)) {
            return false;
        }
        for (size_t i = 0; i < len; i++) { /* a listing of the folder must not drive a terminal */
            if ((unsigned char)at[i] < 0x20 || at[i] == 0x7f) {
                return false;
            }
        }
        at += len;
        if (*at == '\0') {
            return true;
        }
    }
}

/* Errors that another name would not meet. */
static ortcrypt_status fail_name(const oc_outdir *folder, const char *name, int sys, ortcrypt_error *err)
{
    const bool about_name = sys == EEXIST || sys == ENOTDIR || sys == EISDIR || sys == ENAMETOOLONG || sys == EINVAL ||
                            sys == EILSEQ || sys == ELOOP || sys == EXDEV;

    return oc_fail_errno(err, about_name ? ORTCRYPT_E_EXISTS : ORTCRYPT_E_IO, sys, "%s/%s cannot be made", folder->path, name);
}

static ortcrypt_status make_parents(oc_outdir *folder, const char *name, ortcrypt_error *err)
{
    char *const prefix = strdup(name);
    ortcrypt_status status = prefix == NULL ? oc_fail_memory(err, strlen(name), "a path") : ORTCRYPT_OK;
    int parent = -1;

    for (char *slash = prefix == NULL ? NULL : strchr(prefix, '/'); status == ORTCRYPT_OK && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (oc_disk_mkdirat(parent >= 0 ? parent : folder->fd, oc_path_last(prefix), 0700) != 0 && errno != EEXIST) {
            status = fail_name(folder, name, errno, err);
        } else {
            const int next = open_beneath(folder->fd, prefix, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
            if (next < 0) {
                status = fail_name(folder, name, errno, err);
            }
            if (parent >= 0) {
                close(parent);
            }
            parent = next;
        }
        *slash = '/';
    }
    if (parent >= 0) {
        close(parent);
    }
    free(prefix);
    return status;
}

ortcrypt_status oc_outdir_file(oc_outdir *folder, const char *name, int *fd, ortcrypt_error *err)
{
    const ortcrypt_status status = make_parents(folder, name, err);
    if (status != ORTCRYPT_OK) {
        return status;
    }
    const int made = open_beneath(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (made < 0) {
        return fail_name(folder, name, errno, err);
    }
    *fd = made;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_outdir_write(int fd, const void *data, size_t len, const char *name, ortcrypt_error *err)
{
    const uint8_t *at = data;

    while (len != 0) {
        const ssize_t put = write(fd, at, len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be written", name);
        }
        at += put;
        len -= (size_t)put;
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_outdir_file_close(int fd, const char *name, ortcrypt_error *err)
{
    int sys = fsync(fd) != 0 ? errno : 0;

    if (close(fd) != 0 && sys == 0) {
        sys = errno;
    }
    return sys == 0 ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_IO, sys, "%s cannot be written", name);
}

/* Parts may name one asset any number of times: the sum is known before the first byte is written. */
ortcrypt_status oc_outdir_room(const oc_outdir *folder, uint64_t len, ortcrypt_error *err)
{
    struct statvfs info;
    uint64_t room = 0;

    if (fstatvfs(folder->fd, &info) != 0 || !oc_mul_u64(info.f_bavail, info.f_frsize, &room) || len <= room) {
        return ORTCRYPT_OK; /* not known, or enough: a write that fails says so */
    }
    return oc_fail_errno(err, ORTCRYPT_E_IO, ENOSPC, "%s takes %llu bytes, and its file system has room for %llu", folder->path,
                   (unsigned long long)len, (unsigned long long)room);
}

/* Best effort: the files are complete, and a parent that may not be read is no reason to take them away again. */
static void sync_parent(const oc_outdir *folder)
{
    const size_t len = (size_t)(oc_path_last(folder->path) - folder->path);
    char *const parent = len == 0 ? strdup(".") : strndup(folder->path, len);
    const int fd = parent == NULL ? -1 : open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(parent);
}

ortcrypt_status oc_outdir_publish(oc_outdir *folder, ortcrypt_error *err)
{
    if (fsync(folder->fd) != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "folder %s cannot be written", folder->tmp_path);
    }
    if (oc_disk_renameat2(AT_FDCWD, folder->tmp_path, AT_FDCWD, folder->path, RENAME_NOREPLACE) != 0) {
        const int sys = errno;
        return oc_fail_errno(err, sys == EEXIST ? ORTCRYPT_E_EXISTS : ORTCRYPT_E_IO, sys, "%s cannot be renamed to %s",
                             folder->tmp_path, folder->path);
    }
    folder->published = true;
    sync_parent(folder);
    return ORTCRYPT_OK;
}

void oc_outdir_end(oc_outdir *folder)
{
    if (folder == NULL) {
        return;
    }
    if (folder->fd >= 0 && !folder->published) {
        remove_below(folder->fd);
        folder->fd = -1;
    }
    if (folder->fd >= 0) {
        close(folder->fd);
    }
    if (folder->tmp_path != NULL && !folder->published) {
        (void)oc_disk_unlinkat(AT_FDCWD, folder->tmp_path, AT_REMOVEDIR);
    }
    free(folder->tmp_path);
    free(folder->path);
    free(folder);
}
