/* Plaintext input files: looked at once, opened again by whoever reads them, compared at the end. */
#include "bundle/inputs_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LFS_POINTER_START "version https://git-lfs.github.com/spec/"
#define LFS_POINTER_MAX 1024u /* Git LFS: a pointer file is shorter than this */

static ortcrypt_status open_regular(int *out_fd, struct stat *st, const char *path, const char *role, ortcrypt_error *err)
{
    int fd = -1;

    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s %s cannot be opened", role, path);
    }
    if (fstat(fd, st) != 0) {
        const int sys = errno;
        close(fd);
        return oc_fail_errno(err, ORTCRYPT_E_IO, sys, "%s %s cannot be examined", role, path);
    }
    if (!S_ISREG(st->st_mode)) {
        close(fd);
        return oc_fail(err, ORTCRYPT_E_INPUT, "%s %s is %s, not a regular file", role, path,
                       S_ISDIR(st->st_mode) ? "a directory" : "a pipe, socket or device");
    }
    *out_fd = fd;
    return ORTCRYPT_OK;
}

static bool is_lfs_pointer(int fd, uint64_t size)
{
    char start[sizeof LFS_POINTER_START - 1];

    return size < LFS_POINTER_MAX && pread(fd, start, sizeof start, 0) == (ssize_t)sizeof start &&
           memcmp(start, LFS_POINTER_START, sizeof start) == 0;
}

ortcrypt_status oc_input_look(oc_input *input, const char *role, ortcrypt_error *err)
{
    struct stat st;
    int fd = -1;

    const ortcrypt_status status = open_regular(&fd, &st, input->path, role, err);
    if (status != ORTCRYPT_OK) {
        return status;
    }
    if (is_lfs_pointer(fd, (uint64_t)st.st_size)) {
        close(fd);
        (void)oc_fail(err, ORTCRYPT_E_INPUT, "%s %s is a Git LFS pointer, not the data", role, input->path);
        oc_hint(err, "fetch the data first: git lfs pull");
        return ORTCRYPT_E_INPUT;
    }
    input->fd = fd;
    input->size = (uint64_t)st.st_size;
    input->dev = st.st_dev;
    input->ino = st.st_ino;
    input->mtime = st.st_mtim;
    return ORTCRYPT_OK;
}

static bool same_file(const oc_input *input, const struct stat *st)
{
    return (uint64_t)st->st_size == input->size && st->st_dev == input->dev && st->st_ino == input->ino &&
           st->st_mtim.tv_sec == input->mtime.tv_sec && st->st_mtim.tv_nsec == input->mtime.tv_nsec;
}

static ortcrypt_status fail_changed(const oc_input *input, ortcrypt_error *err)
{
    return oc_fail(err, ORTCRYPT_E_INPUT, "%s changed while it was being encrypted", input->path);
}

ortcrypt_status oc_input_open(oc_input *input, ortcrypt_error *err)
{
    struct stat st;
    int fd = -1;

    if (input->fd >= 0) {
        return ORTCRYPT_OK;
    }
    const ortcrypt_status status = open_regular(&fd, &st, input->path, "input file", err);
    if (status != ORTCRYPT_OK) {
        return status;
    }
    if (!same_file(input, &st)) {
        close(fd);
        return fail_changed(input, err);
    }
    input->fd = fd;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_input_same(const oc_input *input, ortcrypt_error *err)
{
    struct stat st;

    if (fstat(input->fd, &st) != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be examined", input->path);
    }
    return same_file(input, &st) ? ORTCRYPT_OK : fail_changed(input, err);
}

void oc_input_close(oc_input *input)
{
    if (input->fd >= 0) {
        close(input->fd);
        input->fd = -1;
    }
}

static ortcrypt_status input_read(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    const oc_input *const input = state;
    uint8_t *at = buffer;

    while (len != 0) {
        const ssize_t got = pread(input->fd, at, len, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be read", input->path);
        }
        if (got == 0) {
            return fail_changed(input, err);
        }
        at += got;
        len -= (size_t)got;
        offset += (uint64_t)got;
    }
    return ORTCRYPT_OK;
}

oc_source oc_input_source(oc_input *input)
{
    return (oc_source){.read = input_read, .state = input, .size = input->size};
}

ortcrypt_status oc_location_normalise(char **name, const char *location, ortcrypt_error *err)
{
    const size_t len = strlen(location);
    size_t used = 0;

    *name = NULL;
    if (len == 0 || location[0] == '/') {
        return ORTCRYPT_OK;
    }
    char *const out = malloc(len + 1);
    if (out == NULL) {
        return oc_fail_memory(err, len + 1, "the location of external data");
    }
    for (const char *at = location; *at != '\0';) {
        const size_t part = strcspn(at, "/");
        if (part == 2 && at[0] == '.' && at[1] == '.') {
            if (used == 0) {
                break; /* above the folder */
            }
            while (used != 0 && out[--used] != '/') {
            }
        } else if (part != 0 && !(part == 1 && at[0] == '.')) {
            if (used != 0) {
                out[used++] = '/';
            }
            memcpy(out + used, at, part);
            used += part;
        }
        at += part;
        at += *at == '/';
        if (*at == '\0' && used != 0) {
            out[used] = '\0';
            *name = out;
            return ORTCRYPT_OK;
        }
    }
    free(out);
    return ORTCRYPT_OK;
}

const char *oc_path_last(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

char *oc_path_beside(const char *path, const char *name)
{
    const size_t folder_len = (size_t)(oc_path_last(path) - path); /* with its slash */
    const size_t name_len = strlen(name) + 1;
    char *const out = malloc(folder_len + name_len);

    if (out != NULL) {
        memcpy(out, path, folder_len);
        memcpy(out + folder_len, name, name_len);
    }
    return out;
}
