/*
 * The program's half: the seccomp filter. System calls that name a file to be made, changed or removed are told to the parent; an open is
 * one of them when its flags write. What goes round paths (io_uring, file handles) is answered as if the kernel had none.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/landlock.h"
#include "os/watch_private.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

#define WRITING_FLAGS (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define RULES_MAX 256

#ifdef NATIVE_ARCH
typedef struct rules {
    struct sock_filter code[RULES_MAX];
    unsigned short count;
} rules;

static void add(rules *r, struct sock_filter one)
{
    if (r->count < RULES_MAX) {
        r->code[r->count++] = one;
    }
}

static void load(rules *r, size_t offset) { add(r, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset)); }

static void answer(rules *r, uint32_t action) { add(r, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action)); }

static void on_call(rules *r, long number, uint32_t action)
{
    add(r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1));
    answer(r, action);
}

/* An open whose flags are argument `index`. The low half of the argument: both machines are little-endian, and flags are an int. */
static void on_open(rules *r, long number, size_t index)
{
    add(r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4));
    load(r, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
    add(r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITING_FLAGS, 0, 1));
    answer(r, SECCOMP_RET_USER_NOTIF);
    answer(r, SECCOMP_RET_ALLOW);
}

static void build(rules *r)
{
    static const long told[] = {
#ifdef SYS_creat /* the calls without a folder's descriptor, which newer machines never had */
        SYS_creat, SYS_rename, SYS_link, SYS_symlink, SYS_mkdir, SYS_rmdir, SYS_mknod, SYS_unlink,
#endif
#ifdef SYS_renameat
        SYS_renameat,
#endif
        SYS_openat2, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_mkdirat, SYS_mknodat, SYS_unlinkat, SYS_truncate,
    };
    const uint32_t absent = SECCOMP_RET_ERRNO | ENOSYS;

    load(r, offsetof(struct seccomp_data, arch));
    add(r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    answer(r, absent); /* calls of a 32-bit program: their numbers mean something else */
    load(r, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1)); /* the x32 numbers */
    answer(r, absent);
    on_open(r, SYS_open, 1);
#endif
    on_open(r, SYS_openat, 2);
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        on_call(r, told[i], SECCOMP_RET_USER_NOTIF);
    }
    on_call(r, SYS_open_by_handle_at, absent);
    on_call(r, SYS_io_uring_setup, absent);
    answer(r, SECCOMP_RET_ALLOW);
}

int oc_watch_filter(void)
{
    rules r = {.count = 0};
    build(&r);
    const struct sock_fprog program = {r.count, r.code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}
#else
int oc_watch_filter(void)
{
    errno = ENOSYS;
    return -1;
}
#endif

/* `listener` -1: the byte alone. */
static bool tell(oc_watch_level level, int listener)
{
    char byte = (char)level;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (listener >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.header), &listener, sizeof(int));
    }
    return sendmsg(OC_WATCH_SOCKET, &message, MSG_NOSIGNAL) == 1;
}

bool oc_watch_enter(void)
{
    const struct rlimit no_core = {1, 1}; /* a core would be a file */
    oc_watch_level level = OC_WATCH_NOTHING;
    oc_landlock_held held = {0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    /* first, as it makes system calls of its own; it also holds what the filter cannot see */
    if (oc_landlock_restrict(NULL, 0, &held, NULL) == ORTCRYPT_OK && held.files) {
        level = OC_WATCH_LANDLOCK;
    }
    const int listener = oc_watch_filter();
    if (listener >= 0) {
        level = OC_WATCH_SECCOMP;
    }
    const bool told = tell(level, listener);
    if (listener >= 0) {
        (void)close(listener); /* the parent has it: with the last one gone, calls end with ENOSYS */
    }
    (void)close(OC_WATCH_SOCKET);
    return told && level != OC_WATCH_NOTHING;
}
