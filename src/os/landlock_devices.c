/* os/landlock_devices.c: which character devices a program that computes needs. Others are closed for writing, block devices always. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/landlock.h"

/* Names that begin with `prefix` in `folder`; `whole`: just that name. */
static const struct place {
    const char *folder;
    const char *prefix;
    bool whole;
} places[] = {
    {"/dev", "null", true},
    {"/dev", "zero", true},
    {"/dev", "full", true},
    {"/dev", "random", true},
    {"/dev", "urandom", true},
    {"/dev", "tty", true},
    {"/dev", "nvidia", false}, /* NVIDIA */
    {"/dev/nvidia-caps", "", false},
    {"/dev", "nvhost", false}, /* NVIDIA Tegra */
    {"/dev", "nvmap", true},
    {"/dev", "kfd", true}, /* AMD */
    {"/dev", "dxg", true}, /* GPUs under WSL */
    {"/dev", "fastrpc", false}, /* Qualcomm DSPs */
    {"/dev", "adsprpc", false},
    {"/dev", "kgsl", false}, /* Qualcomm Adreno */
    {"/dev", "mali", false}, /* Arm Mali */
    {"/dev/dri", "", false},
    {"/dev/accel", "", false},
    {"/dev/dma_heap", "", false},
};

/* A descriptor without rights to read or write. -1 with errno; ENOTTY when it is no character device. */
static int open_device(int folder, const char *name, int flags)
{
    struct stat info;
    const int fd = openat(folder, name, O_PATH | O_CLOEXEC | flags);

    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISCHR(info.st_mode))) {
        close(fd);
        errno = ENOTTY;
        return -1;
    }
    return fd;
}

int oc_device_one(const char *path, oc_device_fn fn, void *state)
{
    const int fd = open_device(AT_FDCWD, path, 0);

    if (fd < 0) {
        return errno;
    }
    const int cause = fn(state, fd);
    close(fd);
    return cause;
}

/* What is not there, or is no device, is no error: most machines have few of these. */
static int each_in(const struct place *place, oc_device_fn fn, void *state)
{
    DIR *const listing = opendir(place->folder);
    const struct dirent *entry;
    int cause = 0;

    while (listing != NULL && cause == 0 && (entry = readdir(listing)) != NULL) {
        const size_t len = strlen(place->prefix) + (place->whole ? 1 : 0);
        const int fd = strncmp(entry->d_name, place->prefix, len) == 0 ? open_device(dirfd(listing), entry->d_name, O_NOFOLLOW) : -1;
        if (fd >= 0) {
            cause = fn(state, fd);
            close(fd);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return cause;
}

int oc_devices_each(oc_device_fn fn, void *state)
{
    int cause = 0;

    for (size_t i = 0; cause == 0 && i < sizeof places / sizeof *places; i++) {
        cause = each_in(&places[i], fn, state);
    }
    return cause;
}
