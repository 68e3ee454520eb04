/*
 * EPContext data in files. The type is decided on the opened handle (O_NONBLOCK, fstat), so that a FIFO, a device or a folder
 * neither blocks nor is swapped in between check and use. Written under a temporary name, fsynced, renamed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ep_context/internal.h"

/* Linux moves at most 0x7ffff000 bytes in one call. */
enum { CHUNK = 1 << 30 };

static OrtStatus *flawed(const OrtApi *api, const char *flaw)
{
    return oc_ep_status(api, ORT_INVALID_ARGUMENT, "the name of the EPContext data cannot be a file name: it %s", flaw);
}

static OrtStatus *not_regular(const OrtApi *api, const char *name)
{
    return oc_ep_status(api, ORT_INVALID_ARGUMENT, "the EPContext file \"%.200s\" is no regular file", name);
}

static OrtStatus *refused(const OrtApi *api, const char *name, const char *doing, int why)
{
    switch (why) {
    case EXDEV:
        return oc_ep_status(api, ORT_INVALID_ARGUMENT,
                            "the EPContext file \"%.200s\" would be outside the model's folder", name);
    case ENOENT:
        return oc_ep_status(api, ORT_NO_SUCHFILE, "the EPContext file \"%.200s\" does not exist", name);
    case EISDIR: /* by its name, or what a link says */
    case ENXIO:  /* a socket */
        return not_regular(api, name);
    case EAGAIN:
        return oc_ep_status(api, ORT_FAIL, "the EPContext file \"%.200s\" was changed again and again meanwhile", name);
    default:
        return oc_ep_status(api, ORT_FAIL, "%s the EPContext file \"%.200s\": %s", doing, name, strerror(why));
    }
}

/* 0, or errno; EPIPE stands for "shorter than it was". */
static int read_exactly(int fd, char *buffer, size_t len)
{
    size_t done = 0;
    while (done < len) {
        const size_t want = len - done < CHUNK ? len - done : CHUNK;
        const ssize_t got = pread(fd, buffer + done, want, (off_t)done);
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        if (got == 0) {
            return EPIPE;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* The open file -> a buffer of the allocator. */
static OrtStatus *read_open_file(const OrtApi *api, int fd, const char *name, OrtAllocator *allocator, size_t max_len,
                                 ortcrypt_ep_context_data *out)
{
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return refused(api, name, "reading", errno);
    }
    if (!S_ISREG(about.st_mode)) {
        return not_regular(api, name);
    }
    const size_t limit = max_len != 0 ? max_len : SIZE_MAX / 2;
    if (about.st_size < 0 || (uint64_t)about.st_size > limit) {
        return oc_ep_status(api, ORT_FAIL, "the EPContext file \"%.200s\" has %lld bytes, and at most %zu are accepted",
                            name, (long long)about.st_size, limit);
    }
    const size_t size = (size_t)about.st_size;
    void *buffer = NULL;
    OrtStatus *status = NULL;
    if (size != 0) {
        status = api->AllocatorAlloc(allocator, size, &buffer);
    }
    if (status == NULL && size != 0 && buffer == NULL) {
        status =
            oc_ep_status(api, ORT_FAIL, "no memory for the %zu bytes of the EPContext file \"%.200s\"", size, name);
    }
    if (status != NULL) {
        return status;
    }
    const int why = read_exactly(fd, buffer, size);
    if (why != 0) {
        allocator->Free(allocator, buffer);
        return why == EPIPE
                   ? oc_ep_status(api, ORT_FAIL, "the EPContext file \"%.200s\" was cut while it was read", name)
                   : refused(api, name, "reading", why);
    }
    out->data = buffer;
    out->size = size;
    out->allocator = allocator;
    out->memory = buffer;
    return NULL;
}

OrtStatus *oc_ep_file_read(const OrtApi *api, oc_ep_where where, const char *name, OrtAllocator *allocator,
                           size_t max_len, ortcrypt_ep_context_data *out)
{
    const char *const flaw = oc_ep_name_flaw(name, where.folder != NULL);
    if (flaw != NULL) {
        return flawed(api, flaw);
    }
    int fd = -1;
    const int why = oc_ep_open_read(where, name, &fd);
    if (why != 0) {
        return refused(api, name, "opening", why);
    }
    OrtStatus *const status = read_open_file(api, fd, name, allocator, max_len, out);
    (void)close(fd);
    return status;
}

static int write_exactly(int fd, const char *data, size_t len)
{
    size_t done = 0;
    while (done < len) {
        const size_t want = len - done < CHUNK ? len - done : CHUNK;
        const ssize_t put = write(fd, data + done, want);
        if (put < 0 && errno != EINTR) {
            return errno;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return fsync(fd) != 0 ? errno : 0;
}

/* `at` is O_PATH. A folder that may be written to and not read, or a file system without this, is not synced. */
static int sync_folder(int at)
{
    const int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno == EACCES ? 0 : errno;
    }
    const int why = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    (void)close(fd);
    return why;
}

/* 0, or errno. Nothing is left under the temporary name. */
static int replace_file(int at, const char *last, const void *data, size_t len)
{
    uint64_t random[2];
    char temporary[64];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return EIO;
    }
    (void)snprintf(temporary, sizeof(temporary), ".epcontext-%016llx%016llx.tmp", (unsigned long long)random[0],
                   (unsigned long long)random[1]);
    const int fd = openat(at, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        return errno;
    }
    int why = write_exactly(fd, data, len);
    if (close(fd) != 0 && why == 0) {
        why = errno;
    }
    if (why == 0 && renameat(at, temporary, at, last) != 0) {
        why = errno;
    }
    if (why != 0) {
        (void)unlinkat(at, temporary, 0);
        return why;
    }
    return sync_folder(at);
}

/*
 * What must not be replaced: NULL when there is nothing. Advice, not protection: whatever is swapped in after this is replaced
 * by the rename, never followed or written to.
 */
static OrtStatus *check_target(const OrtApi *api, const oc_ep_place *place, const char *name)
{
    struct stat about;
    if (fstatat(place->at, place->last, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT && place->past_link
                   ? oc_ep_status(api, ORT_INVALID_ARGUMENT, "the EPContext file \"%.200s\" is a dangling link", name)
                   : NULL; /* any other trouble shows when writing */
    }
    if (S_ISLNK(about.st_mode)) {
        return oc_ep_status(api, ORT_INVALID_ARGUMENT,
                            "the EPContext file \"%.200s\" is a link, and links are not written through here", name);
    }
    return S_ISREG(about.st_mode) ? NULL : not_regular(api, name);
}

OrtStatus *oc_ep_file_write(const OrtApi *api, oc_ep_where where, const char *name, const void *data, size_t len)
{
    const char *const flaw = oc_ep_name_flaw(name, where.folder != NULL);
    if (flaw != NULL) {
        return flawed(api, flaw);
    }
    oc_ep_place place = {-1, NULL, false};
    int why = oc_ep_find_place(where, name, &place);
    if (why != 0) {
        return refused(api, name, "opening the folder of", why);
    }
    OrtStatus *status = check_target(api, &place, name);
    if (status == NULL) {
        why = replace_file(place.at, place.last, data, len);
        status = why != 0 ? refused(api, name, "writing", why) : NULL;
    }
    oc_ep_place_release(&place);
    return status;
}
