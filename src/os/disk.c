/* os/disk.c: the system calls that make, rename and remove, each as a leaf for the store thread. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/outside.h"

struct disk_call {
    int folder;
    const char *name;
    int flags;
    mode_t mode;
    int to_folder;
    const char *to;
    unsigned rename_flags;
};

static long do_openat(void *state)
{
    const struct disk_call *const call = state;
    return openat(call->folder, call->name, call->flags, call->mode);
}

static long do_mkdirat(void *state)
{
    const struct disk_call *const call = state;
    return mkdirat(call->folder, call->name, call->mode);
}

static long do_renameat2(void *state)
{
    const struct disk_call *const call = state;
    return call->rename_flags == 0 ? renameat(call->folder, call->name, call->to_folder, call->to)
                                   : renameat2(call->folder, call->name, call->to_folder, call->to, call->rename_flags);
}

static long do_linkat(void *state)
{
    const struct disk_call *const call = state;
    return linkat(call->folder, call->name, call->to_folder, call->to, 0);
}

static long do_unlinkat(void *state)
{
    const struct disk_call *const call = state;
    return unlinkat(call->folder, call->name, call->flags);
}

static long do_touch(void *state)
{
    const struct disk_call *const call = state;
    return futimens(call->folder, NULL);
}

int oc_disk_openat(int folder, const char *name, int flags, mode_t mode)
{
    struct disk_call call = {.folder = folder, .name = name, .flags = flags, .mode = mode};
    return (int)oc_outside(do_openat, &call);
}

int oc_disk_mkdirat(int folder, const char *name, mode_t mode)
{
    struct disk_call call = {.folder = folder, .name = name, .mode = mode};
    return (int)oc_outside(do_mkdirat, &call);
}

int oc_disk_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    struct disk_call call = {.folder = from_folder, .name = from, .to_folder = to_folder, .to = to, .rename_flags = flags};
    return (int)oc_outside(do_renameat2, &call);
}

int oc_disk_linkat(int from_folder, const char *from, int to_folder, const char *to)
{
    struct disk_call call = {.folder = from_folder, .name = from, .to_folder = to_folder, .to = to};
    return (int)oc_outside(do_linkat, &call);
}

int oc_disk_unlinkat(int folder, const char *name, int flags)
{
    struct disk_call call = {.folder = folder, .name = name, .flags = flags};
    return (int)oc_outside(do_unlinkat, &call);
}

int oc_disk_touch(int fd)
{
    struct disk_call call = {.folder = fd};
    return (int)oc_outside(do_touch, &call);
}
