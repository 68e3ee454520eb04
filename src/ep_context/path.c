/*
 * A name -> an open file, or its place. The kernel resolves what it can (openat2, RESOLVE_BENEATH); absolute links, ways out
 * and back in, and kernels without openat2 are walk.c's. Where both can answer, they answer the same.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ep_context/internal.h"

/* Source: linux/openat2.h, which older systems lack. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define BENEATH 0x08u
#define NO_MAGICLINKS 0x02u
struct how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

/* A name that changes under our hands is tried again this often. */
enum { TRIES = 1000 };

/* EXDEV, ENOSYS and EPERM (a filter of system calls that knows no openat2): the walk decides. */
static bool is_for_walk(int why)
{
    return why == EXDEV || why == ENOSYS || why == EPERM;
}

static int open_by_kernel(int root, const char *name, int flags, int *fd)
{
    const struct how how = {(uint64_t)(flags | O_CLOEXEC), 0, BENEATH | NO_MAGICLINKS};
    /* EAGAIN: something was renamed while ".." was resolved; the kernel asks for another try */
    for (int tries = 0; tries < TRIES; tries++) {
        const long got = syscall(SYS_openat2, root, name, &how, sizeof(how));
        if (got >= 0) {
            *fd = (int)got;
            return 0;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return errno;
        }
    }
    return EAGAIN;
}

static int open_folder(const char *folder, int *root)
{
    *root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *root < 0 ? errno : 0;
}

/* The part before the last slash, with it; "." without one. Heap. */
static char *folder_of_name(const char *name, const char **last)
{
    const char *const slash = strrchr(name, '/');
    *last = slash != NULL ? slash + 1 : name;
    return slash != NULL ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
}

/* Without links at the end only. */
static int place_by_kernel(int root, const char *name, oc_ep_place *place)
{
    const char *last = NULL;
    char *text = NULL;
    char *const folder = folder_of_name(name, &last);
    oc_ep_place found = {-1, strdup(last), false};
    int why = folder != NULL && found.last != NULL ? 0 : ENOMEM;
    if (why == 0 && root == AT_FDCWD) {
        why = open_folder(folder, &found.at);
    } else if (why == 0) {
        why = open_by_kernel(root, folder, O_PATH | O_DIRECTORY, &found.at);
    }
    if (why == 0 && root != AT_FDCWD && oc_ep_link_text(found.at, last, &text) == 0) {
        free(text);
        why = EXDEV; /* a link: the walk follows it, and knows where it came from */
    }
    free(folder);
    if (why != 0) {
        oc_ep_place_release(&found);
        return why;
    }
    *place = found;
    return 0;
}

void oc_ep_place_release(oc_ep_place *place)
{
    if (place->at >= 0) {
        (void)close(place->at);
    }
    free(place->last);
    place->at = -1;
    place->last = NULL;
}

static int place_by_walk(int root, oc_ep_where where, const char *name, oc_ep_place *place)
{
    int why = EAGAIN;
    for (int tries = 0; tries < TRIES && why == EAGAIN; tries++) {
        why = oc_ep_walk(root, where.folder, name, place);
    }
    return why;
}

int oc_ep_find_place(oc_ep_where where, const char *name, oc_ep_place *place)
{
    if (where.folder == NULL) {
        return place_by_kernel(AT_FDCWD, name, place);
    }
    int root = -1;
    int why = open_folder(where.folder, &root);
    if (why != 0) {
        return why;
    }
    why = where.walk ? ENOSYS : place_by_kernel(root, name, place);
    if (is_for_walk(why)) {
        why = place_by_walk(root, where, name, place);
    }
    (void)close(root);
    return why;
}

/* The walk's answer, opened. What became a link since is walked again. */
static int open_by_walk(int root, oc_ep_where where, const char *name, int flags, int *fd)
{
    int why = ELOOP;
    for (int tries = 0; tries < TRIES && why == ELOOP; tries++) {
        oc_ep_place place = {-1, NULL, false};
        why = place_by_walk(root, where, name, &place);
        if (why != 0) {
            return why;
        }
        *fd = openat(place.at, place.last, flags | O_NOFOLLOW);
        why = *fd < 0 ? errno : 0;
        oc_ep_place_release(&place);
    }
    return why == ELOOP ? EAGAIN : why;
}

int oc_ep_open_read(oc_ep_where where, const char *name, int *fd)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    if (where.folder == NULL) {
        *fd = open(name, flags);
        return *fd < 0 ? errno : 0;
    }
    int root = -1;
    int why = open_folder(where.folder, &root);
    if (why != 0) {
        return why;
    }
    why = where.walk ? ENOSYS : open_by_kernel(root, name, flags, fd);
    if (is_for_walk(why)) {
        why = open_by_walk(root, where, name, flags, fd);
    }
    (void)close(root);
    return why;
}
