/* sly_ep/ways_channels.c: ways to other processes: sockets, their memory and descriptors, what the kernel keeps; and what must stay. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sly.h"

#define KEYRING_PROCESS (-2)

static int through(bool yes)
{
    return yes ? SLY_THROUGH : errno == ENOSYS ? SLY_ABSENT : SLY_HELD;
}

static socklen_t unix_address(struct sockaddr_un *address, const sly *s, const char *name, bool abstract)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (abstract) {
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                           (size_t)snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "sly-%d", s->pid));
    }
    /* a path in the room may be too long for the struct, so the room gets a short one; its descriptor stays */
    static int room = -1;
    room = room < 0 ? open(s->room, O_PATH | O_DIRECTORY | O_CLOEXEC) : room;
    (void)snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", room, name);
    return sizeof *address;
}

static struct sockaddr_in internet_address(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Connects and sends; both ends of a socket that is closed right away. */
static int say(const sly *s, int fd, const void *address, socklen_t len)
{
    const bool said = fd >= 0 && connect(fd, address, len) == 0 && send(fd, s->text, s->len, MSG_NOSIGNAL) == (ssize_t)s->len;
    const int cause = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = cause;
    return through(said);
}

static int unix_stream(const sly *s)
{
    struct sockaddr_un address;
    const socklen_t len = unix_address(&address, s, "stream", false);
    return say(s, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, len);
}

static int unix_abstract(const sly *s)
{
    struct sockaddr_un address;
    const socklen_t len = unix_address(&address, s, NULL, true);
    return say(s, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, len);
}

static int unix_datagram(const sly *s)
{
    struct sockaddr_un address;
    const socklen_t len = unix_address(&address, s, "datagram", false);
    return say(s, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), &address, len);
}

/* A connected pair of datagram sockets still sends to any address that is given. */
static int unix_pair(const sly *s)
{
    struct sockaddr_un address;
    const socklen_t len = unix_address(&address, s, "datagram", false);
    int pair[2] = {-1, -1};
    const bool made = socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0;
    const int result =
        through(made && sendto(pair[0], s->text, s->len, MSG_NOSIGNAL, (const struct sockaddr *)&address, len) == (ssize_t)s->len);
    close(pair[0]);
    close(pair[1]);
    return result;
}

static int udp(const sly *s)
{
    const struct sockaddr_in address = internet_address(s->udp_port);
    return say(s, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), &address, sizeof address);
}

static int tcp(const sly *s)
{
    const struct sockaddr_in address = internet_address(s->tcp_port);
    return say(s, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, sizeof address);
}

static int tcp_fast_open(const sly *s)
{
    const struct sockaddr_in address = internet_address(s->tcp_port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int result = through(sendto(fd, s->text, s->len, MSG_FASTOPEN | MSG_NOSIGNAL, (const struct sockaddr *)&address,
                                      sizeof address) == (ssize_t)s->len);
    close(fd);
    return result;
}

static int tcp_listen(const sly *s)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int result = through(fd >= 0 && listen(fd, 1) == 0);
    (void)s;
    close(fd);
    return result;
}

static int tcp_bind(const sly *s)
{
    const struct sockaddr_in address = internet_address(0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int result = through(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    (void)s;
    close(fd);
    return result;
}

static int traced(const sly *s)
{
    int status = 0;
    if (ptrace(PTRACE_ATTACH, s->pid, NULL, NULL) != 0) {
        return through(false);
    }
    (void)waitpid(s->pid, &status, __WALL);
    return through(ptrace(PTRACE_DETACH, s->pid, NULL, NULL) == 0);
}

static int memory_of_process(const sly *s)
{
    const struct iovec from = {.iov_base = (void *)(uintptr_t)s->text, .iov_len = s->len};
    const struct iovec to = {.iov_base = s->address, .iov_len = s->len};
    return through(process_vm_writev(s->pid, &from, 1, &to, 1, 0) == (ssize_t)s->len);
}

static int memory_by_file(const sly *s)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/mem", s->pid);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    const int result = through(fd >= 0 && pwrite(fd, s->text, s->len, (off_t)(uintptr_t)s->address) == (ssize_t)s->len);
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

/* Descriptor 1 of the process is a file. */
static int descriptor_taken(const sly *s)
{
    const int process = (int)syscall(SYS_pidfd_open, s->pid, 0);
    const int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, 1, 0);
    const int result = through(fd >= 0 && write(fd, s->text, s->len) == (ssize_t)s->len);
    close(process);
    close(fd);
    return result;
}

static int descriptor_reopened(const sly *s)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/1", s->pid);
    return sly_write_file(s, path, O_APPEND);
}

static int signalled(const sly *s)
{
    return through(kill(s->pid, SIGCONT) == 0);
}

static int system_v_memory(const sly *s)
{
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    (void)s;
    return through(id >= 0 && shmctl(id, IPC_RMID, NULL) == 0);
}

static int system_v_queue(const sly *s)
{
    const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    (void)s;
    return through(id >= 0 && msgctl(id, IPC_RMID, NULL) == 0);
}

static int posix_queue(const sly *s)
{
    char name[32];
    (void)snprintf(name, sizeof name, "/sly-%d", s->pid);
    const mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, NULL);
    if (queue == (mqd_t)-1) {
        return through(false);
    }
    (void)mq_close(queue);
    return through(mq_unlink(name) == 0);
}

static int kernel_key(const sly *s)
{
    return through(syscall(SYS_add_key, "user", "sly", s->text, s->len, KEYRING_PROCESS) > 0);
}

static int io_uring(const sly *s)
{
    char parameters[120] = {0}; /* struct io_uring_params */
    const int fd = (int)syscall(425, 1, parameters);
    (void)s;
    if (fd >= 0) {
        close(fd);
    }
    return through(fd >= 0);
}

static int other_numbering(const sly *s)
{
#if defined(__x86_64__)
    /* the 32-bit call, which takes its number from another table; getpid there is harmless */
    long result = 20;
    (void)s;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result > 0 ? SLY_THROUGH : SLY_HELD;
#else
    (void)s;
    return SLY_ABSENT;
#endif
}

static bool is_unfiltered(const char *thread)
{
    char text[4096] = "";
    char path[300];
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        text[0] = read(fd, text, sizeof text - 1) > 0 ? text[0] : '\0';
        close(fd);
    }
    return strstr(text, "\nSeccomp:\t0\n") != NULL;
}

/* One thread is outside, ortcrypt's own that writes its files. Any other would be a way out. */
static int second_thread_outside(const sly *s)
{
    unsigned outside = 0;
    DIR *const listing = opendir("/proc/self/task");
    const struct dirent *entry;
    (void)s;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        outside += entry->d_name[0] != '.' && is_unfiltered(entry->d_name) ? 1 : 0;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return outside > 1 ? SLY_THROUGH : SLY_HELD;
}

/* What must work in the sandbox too: names begin with "keeps-". */
static int keeps_memfd(const sly *s)
{
    const int fd = memfd_create("sly", MFD_CLOEXEC);
    const bool wrote = write(fd, s->text, s->len) == (ssize_t)s->len;
    close(fd);
    return through(wrote);
}

static int keeps_shared_memory(const sly *s)
{
    char *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return SLY_HELD;
    }
    memcpy(page, s->text, s->len);
    (void)munmap(page, 4096);
    return SLY_THROUGH;
}

static int keeps_pair(const sly *s)
{
    int pair[2] = {-1, -1};
    const bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
    const int result = through(made && send(pair[0], s->text, s->len, 0) == (ssize_t)s->len);
    close(pair[0]);
    close(pair[1]);
    return result;
}

static int keeps_null(const sly *s)
{
    return sly_write_file(s, "/dev/null", O_TRUNC);
}

static int keeps_userfaultfd(const sly *s)
{
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1); /* UFFD_USER_MODE_ONLY */
    (void)s;
    close(fd);
    return through(fd >= 0);
}

const sly_way SLY_CHANNELS[] = {
    {"unix-stream", unix_stream}, {"unix-abstract", unix_abstract}, {"unix-datagram", unix_datagram}, {"unix-pair", unix_pair},
    {"udp", udp}, {"tcp", tcp}, {"tcp-fast-open", tcp_fast_open}, {"tcp-listen", tcp_listen}, {"tcp-bind", tcp_bind},
    {"traced", traced}, {"memory-of-process", memory_of_process}, {"memory-by-file", memory_by_file},
    {"descriptor-taken", descriptor_taken}, {"descriptor-reopened", descriptor_reopened}, {"signal", signalled},
    {"system-v-memory", system_v_memory}, {"system-v-queue", system_v_queue}, {"posix-queue", posix_queue}, {"kernel-key", kernel_key},
    {"io-uring", io_uring}, {"other-numbering", other_numbering}, {"second-thread-outside", second_thread_outside}, {"keeps-memfd", keeps_memfd},
    {"keeps-shared-memory", keeps_shared_memory}, {"keeps-pair", keeps_pair}, {"keeps-null", keeps_null},
    {"keeps-userfaultfd", keeps_userfaultfd}, {0}};
