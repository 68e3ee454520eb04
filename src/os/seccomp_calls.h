/* os/seccomp_calls.h: the system calls and ioctl commands that the filter refuses whatever their arguments. For seccomp.c alone. */
#ifndef OC_OS_SECCOMP_CALLS_H
#define OC_OS_SECCOMP_CALLS_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Numbers that older headers lack; from 424 on all machines have the same. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#define SYS_fspick 433
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_removexattrat 466
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

static const struct refused_call {
    long number;
    int cause;
} refused_calls[] = {
    /* a listener without a port takes a free one, which Landlock does not see */
    {SYS_listen, EPERM},
    /* extended attributes: up to 64 KiB beside a file */
    {SYS_setxattr, EPERM}, {SYS_lsetxattr, EPERM}, {SYS_fsetxattr, EPERM}, {SYS_setxattrat, EPERM},
    {SYS_removexattr, EPERM}, {SYS_lremovexattr, EPERM}, {SYS_fremovexattr, EPERM}, {SYS_removexattrat, EPERM},
    {SYS_file_setattr, EPERM},
    /* Landlock refuses cutting a file from ABI 3 on */
    {SYS_truncate, EACCES},
    /* modes, owners and times: a few bytes each, in any file of this user */
    {SYS_fchmod, EPERM}, {SYS_fchmodat, EPERM}, {SYS_fchmodat2, EPERM}, {SYS_fchown, EPERM}, {SYS_fchownat, EPERM},
    {SYS_utimensat, EPERM},
#ifdef SYS_chmod
    {SYS_chmod, EPERM}, {SYS_chown, EPERM}, {SYS_lchown, EPERM}, {SYS_utime, EPERM}, {SYS_utimes, EPERM}, {SYS_futimesat, EPERM},
#endif
    /* other ways to ask for what is refused here; programs know that it may be missing */
    {SYS_io_uring_setup, ENOSYS}, {SYS_io_uring_enter, ENOSYS}, {SYS_io_uring_register, ENOSYS},
    /* what is put there is there after the process has ended */
    {SYS_mq_open, EPERM}, {SYS_mq_unlink, EPERM}, {SYS_msgget, EPERM}, {SYS_semget, EPERM}, {SYS_shmget, EPERM},
    {SYS_add_key, EPERM}, {SYS_request_key, EPERM}, {SYS_keyctl, EPERM},
    /* files by another way than a path that Landlock looks at, other roots, other namespaces */
    {SYS_open_by_handle_at, EPERM}, {SYS_mount, EPERM}, {SYS_umount2, EPERM}, {SYS_pivot_root, EPERM}, {SYS_chroot, EPERM},
    {SYS_open_tree, EPERM}, {SYS_open_tree_attr, EPERM}, {SYS_move_mount, EPERM}, {SYS_fsopen, EPERM}, {SYS_fsconfig, EPERM},
    {SYS_fsmount, EPERM}, {SYS_fspick, EPERM}, {SYS_mount_setattr, EPERM}, {SYS_setns, EPERM}, {SYS_unshare, EPERM},
    /* memory and descriptors of processes outside; Landlock refuses these too */
    {SYS_process_vm_writev, EPERM}, {SYS_pidfd_getfd, EPERM},
    /* a superuser's ways to leave something in the kernel or its files */
    {SYS_bpf, EPERM}, {SYS_acct, EPERM}, {SYS_swapon, EPERM}, {SYS_swapoff, EPERM}, {SYS_quotactl, EPERM}, {SYS_quotactl_fd, EPERM},
    {SYS_init_module, EPERM}, {SYS_finit_module, EPERM}, {SYS_delete_module, EPERM}, {SYS_kexec_load, EPERM},
    {SYS_sethostname, EPERM}, {SYS_setdomainname, EPERM},
};

static const uint32_t refused_commands[] = {
    0x40086602u, /* FS_IOC_SETFLAGS */
    0x401c5820u, /* FS_IOC_FSSETXATTR */
    0x40087602u, /* FS_IOC_SETVERSION */
    0x40086604u, /* EXT4_IOC_SETVERSION */
    0x41009432u, /* FS_IOC_SETFSLABEL */
    0x5412u,     /* TIOCSTI: types on the terminal, as if its user had */
    0x541cu,     /* TIOCLINUX: the same by way of copy and paste */
};

#endif
