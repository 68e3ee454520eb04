/* What the kernel and the machine offer, for describe: read-only probes, nothing is kept. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/landlock.h"
#include "os/seccomp.h"
#include "runtime/kernel.h"

#define UFFD_ASK_USER_MODE_ONLY 1    /* UFFD_USER_MODE_ONLY, linux 5.11; missing in older headers */

static bool has_userfaultfd(void)
{
    const long fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_ASK_USER_MODE_ONLY);

    if (fd >= 0) {
        (void)close((int)fd);
    }
    return fd >= 0;
}

/* A question only: no filter is made. Source: seccomp(2), SECCOMP_GET_ACTION_AVAIL. */
static bool has_user_notification(void)
{
    const uint32_t action = SECCOMP_RET_USER_NOTIF;

    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* The first `size - 1` bytes of a /proc file; "" when it cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t len = fd >= 0 ? read(fd, text, size - 1) : -1;

    text[len > 0 ? (size_t)len : 0] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

void oc_kernel_probe(oc_kernel *out)
{
    char swaps[4096];
    const char *line = NULL;

    memset(out, 0, sizeof(*out));
    out->userfaultfd = has_userfaultfd();
    out->landlock_abi = oc_landlock_abi();
    out->seccomp = oc_seccomp_available();
    out->user_notification = has_user_notification();
    out->proc_self_fd = access("/proc/self/fd", R_OK | X_OK) == 0;
    read_text("/proc/swaps", swaps, sizeof(swaps));
    out->swap_known = swaps[0] != '\0';
    line = strchr(swaps, '\n'); /* the first line is a heading */
    out->swap = line != NULL && line[1] != '\0';
    read_text("/proc/sys/kernel/core_pattern", out->core_pattern, sizeof(out->core_pattern));
    out->core_pattern[strcspn(out->core_pattern, "\n")] = '\0';
}
