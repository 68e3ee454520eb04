/* os/seccomp.c: the filter as a program of BPF instructions, made from tables. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/seccomp.h"
#include "os/seccomp_calls.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the numbers of system calls are known for x86_64 and aarch64"
#endif
#define X32_BIT 0x40000000u          /* x86_64's second numbering; no number of the first one has it */
#define INSTRUCTIONS_MAX 512
#define SOCKET_TYPE_MASK 0xfu        /* without SOCK_NONBLOCK and SOCK_CLOEXEC */
#define FAST_OPEN 0x20000000u        /* MSG_FASTOPEN: a connection that is made by sending */
#define NETLINK_ROUTE 0u             /* addresses of interfaces (getifaddrs) */
#define NETLINK_KOBJECT_UEVENT 15u   /* devices that come and go (libudev) */
#define TO_THE_END 0xffu             /* a jump that is filled in by close_block */

struct program {
    struct sock_filter at[INSTRUCTIONS_MAX];
    unsigned short len;
};

static void put(struct program *p, uint16_t code, uint32_t value, uint8_t when_true, uint8_t when_false)
{
    if (p->len < INSTRUCTIONS_MAX) {
        p->at[p->len++] = (struct sock_filter){.code = code, .jt = when_true, .jf = when_false, .k = value};
    }
}

static void load(struct program *p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The lower half of an argument: the kernel takes no more of these (int, unsigned). Both machines are little-endian. */
static void load_argument(struct program *p, unsigned number)
{
    load(p, offsetof(struct seccomp_data, args) + number * sizeof(uint64_t));
}

static void allow(struct program *p)
{
    put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void refuse(struct program *p, int cause)
{
    put(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)cause, 0, 0);
}

/* Opens a block for one system call: what follows is for it alone, up to close_block. Returns where it began. */
static unsigned short open_block(struct program *p, long number)
{
    put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, TO_THE_END);
    return (unsigned short)(p->len - 1);
}

/* Every jump to the end goes here. The accumulator may hold anything afterwards. */
static void close_block(struct program *p, unsigned short begin)
{
    for (unsigned short i = begin; i < p->len; i++) {
        const uint8_t rest = (uint8_t)(p->len - i - 1);
        if (BPF_CLASS(p->at[i].code) == BPF_JMP) {
            p->at[i].jt = p->at[i].jt == TO_THE_END ? rest : p->at[i].jt;
            p->at[i].jf = p->at[i].jf == TO_THE_END ? rest : p->at[i].jf;
        }
    }
    load(p, offsetof(struct seccomp_data, nr));
}

/* Goes on when the accumulator is one of two values, else refuses. */
static void need_either(struct program *p, uint32_t one, uint32_t other)
{
    put(p, BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, other, 1, 0);
    refuse(p, EACCES);
}

/* socket(domain, type, protocol) */
static void filter_socket(struct program *p, bool tcp)
{
    const unsigned short begin = open_block(p, SYS_socket);

    load_argument(p, 0);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 5);
    load_argument(p, 2);
    need_either(p, NETLINK_ROUTE, NETLINK_KOBJECT_UEVENT);
    allow(p);
    if (tcp) {
        need_either(p, AF_INET, AF_INET6); /* the accumulator holds the domain still: the jump came from there */
        load_argument(p, 1);
        put(p, BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE_MASK, 0, 0);
        need_either(p, SOCK_STREAM, SOCK_STREAM);
        load_argument(p, 2);
        need_either(p, 0, IPPROTO_TCP);
        allow(p);
    }
    refuse(p, EACCES);
    close_block(p, begin);
}

/* socketpair: a pair of datagram sockets could send to any address; streams and packets are connected for good. */
static void filter_pair(struct program *p)
{
    const unsigned short begin = open_block(p, SYS_socketpair);

    load_argument(p, 1);
    put(p, BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE_MASK, 0, 0);
    need_either(p, SOCK_STREAM, SOCK_SEQPACKET);
    allow(p);
    close_block(p, begin);
}

static void filter_fast_open(struct program *p, long number, unsigned flags_argument)
{
    const unsigned short begin = open_block(p, number);

    load_argument(p, flags_argument);
    put(p, BPF_JMP | BPF_JSET | BPF_K, FAST_OPEN, 0, 1);
    refuse(p, EPERM);
    allow(p);
    close_block(p, begin);
}

/* Commands that store something in a file's or file system's record, or type on a terminal. */
static void filter_ioctl(struct program *p)
{
    const unsigned short begin = open_block(p, SYS_ioctl);

    load_argument(p, 1);
    for (size_t i = 0; i < sizeof refused_commands / sizeof *refused_commands; i++) {
        put(p, BPF_JMP | BPF_JEQ | BPF_K, refused_commands[i], 0, 1);
        refuse(p, EPERM);
    }
    allow(p);
    close_block(p, begin);
}

static void build(struct program *p, bool tcp)
{
    p->len = 0;
    load(p, offsetof(struct seccomp_data, arch));
    put(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    refuse(p, ENOSYS);
    load(p, offsetof(struct seccomp_data, nr));
    put(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    refuse(p, ENOSYS);
    filter_socket(p, tcp);
    filter_pair(p);
    filter_fast_open(p, SYS_sendto, 3);
    filter_fast_open(p, SYS_sendmsg, 2);
    filter_fast_open(p, SYS_sendmmsg, 3);
    filter_ioctl(p);
    for (size_t i = 0; i < sizeof refused_calls / sizeof *refused_calls; i++) {
        put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused_calls[i].number, 0, 1);
        refuse(p, refused_calls[i].cause);
    }
    allow(p);
}

bool oc_seccomp_available(void)
{
    const uint32_t action = SECCOMP_RET_ERRNO;

    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &action) == 0;
}

ortcrypt_status oc_seccomp_restrict(bool tcp, ortcrypt_error *err)
{
    struct program program;
    struct sock_fprog given = {.filter = program.at};

    build(&program, tcp);
    given.len = program.len;
    if (program.len == INSTRUCTIONS_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "the filter of system calls has %d instructions or more", INSTRUCTIONS_MAX);
    }
    /* SPEC_ALLOW: the filter is no wall between two programs, so the slower code that guards one is not wanted */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0 ||
        (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &given) != 0 &&
         (errno != EINVAL || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &given) != 0))) {
        return oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "system calls cannot be filtered here (seccomp)");
    }
    return ORTCRYPT_OK;
}
