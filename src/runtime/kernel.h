/* runtime/kernel.h: kernel features that decide about routes and about what can leave the process. */
#ifndef OC_RUNTIME_KERNEL_H
#define OC_RUNTIME_KERNEL_H

#include <stdbool.h>

typedef struct oc_kernel {
    bool userfaultfd; /* with UFFD_USER_MODE_ONLY */
    int landlock_abi; /* 0: none */
    bool seccomp;     /* system calls can be filtered */
    bool user_notification; /* of seccomp: what a program tries can be told */
    bool proc_self_fd;
    bool swap_known; /* /proc/swaps could be read */
    bool swap;
    char core_pattern[256]; /* "" when not readable */
} oc_kernel;

void oc_kernel_probe(oc_kernel *out);

#endif
