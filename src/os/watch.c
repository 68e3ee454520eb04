/*
 * The parent's half: starts the program, answers its notifications, collects its output, ends it when its time is up. The program is
 * a session of its own, so that what it starts ends with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/watch_private.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

typedef struct watch {
    oc_watch_result *result;
    const oc_watch_options *options;
    pid_t pid;
    int pid_fd;
    int output; /* -1: closed by the program */
    int socket; /* -1: the listener came, or never will */
    int listener;
    uint64_t deadline; /* of CLOCK_MONOTONIC, in ms */
} watch;

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* The input as a file in memory, read from its start; sealed by nothing: it is the program's own. */
static ortcrypt_status input_file(int *out, oc_span input, ortcrypt_error *err)
{
    const int fd = memfd_create("input", MFD_CLOEXEC);
    size_t at = 0;

    while (fd >= 0 && at < input.len) {
        const ssize_t done = write(fd, input.data + at, input.len - at);
        if (done < 0 && errno != EINTR) {
            break;
        }
        at += done > 0 ? (size_t)done : 0;
    }
    if (fd < 0 || at < input.len || lseek(fd, 0, SEEK_SET) != 0) {
        const int error = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return oc_fail_errno(err, ORTCRYPT_E_IO, error, "the input of a watched program");
    }
    *out = fd;
    return ORTCRYPT_OK;
}

/* posix_spawn takes texts that are not const, and does not change them. */
static int spawn_const(pid_t *pid, const char *program, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                       const char *const *args, const char *const *env)
{
    char *const *plain_args = NULL;
    char *const *plain_env = NULL;

    memcpy(&plain_args, &args, sizeof(args));
    memcpy(&plain_env, &env, sizeof(env));
    return posix_spawn(pid, program, actions, attributes, plain_args, plain_env);
}

/* Duplicated far above first: a descriptor that already has its number would keep its close-on-exec flag. */
static int spawn(pid_t *pid, const oc_watch_options *o, const int fds[3])
{
    static const int low = 64;
    const char *args[16] = {o->program};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;

    for (size_t i = 0; o->args != NULL && o->args[i] != NULL && i + 2 < sizeof(args) / sizeof(args[0]); i++) {
        args[i + 1] = o->args[i];
    }
    (void)sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    for (int i = 0; i < 3 && error == 0; i++) {
        error = posix_spawn_file_actions_adddup2(&actions, fds[i], low + i);
    }
    for (int i = 0; i < 3 && error == 0; i++) {
        error = posix_spawn_file_actions_addopen(&actions, i, "/dev/null", i == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    for (int i = 0; i < 3 && error == 0; i++) {
        error = posix_spawn_file_actions_adddup2(&actions, low + i, OC_WATCH_INPUT + i);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_addclosefrom_np(&actions, OC_WATCH_SOCKET + 1);
    }
    if (error == 0 && o->folder != NULL) {
        error = posix_spawn_file_actions_addchdir_np(&actions, o->folder);
    }
    if (error == 0) {
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    }
    if (error == 0) {
        error = spawn_const(pid, o->program, &actions, &attributes, args, o->env);
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Starts the program; *w owns its ends of the pipes. */
static ortcrypt_status start(watch *w, ortcrypt_error *err)
{
    int input = -1;
    int output[2] = {-1, -1};
    int sockets[2] = {-1, -1};

    ortcrypt_status st = input_file(&input, w->options->input, err);
    if (st == ORTCRYPT_OK && (pipe2(output, O_CLOEXEC) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "a pipe to a watched program");
    }
    if (st == ORTCRYPT_OK) {
        const int fds[3] = {input, output[1], sockets[1]};
        const int error = spawn(&w->pid, w->options, fds);
        st = error == 0 ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_IO, error, "the program %s", w->options->program);
    }
    close_fd(&input);
    close_fd(&output[1]);
    close_fd(&sockets[1]);
    w->output = output[0];
    w->socket = sockets[0];
    if (st == ORTCRYPT_OK) {
        w->pid_fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
        if (w->pid_fd < 0 && errno != ESRCH) { /* ESRCH: it ended already, in a host that ignores SIGCHLD */
            const int error = errno;
            (void)kill(w->pid, SIGKILL);
            (void)waitpid(w->pid, NULL, 0);
            st = oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, error, "this kernel cannot watch a program");
        }
    }
    return st;
}

/* The program's word about how it is held: one byte, with the listener when there is one. */
static void receive_level(watch *w)
{
    char level = OC_WATCH_NOTHING;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&level, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

    if (recvmsg(w->socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) == 1) {
        const struct cmsghdr *const header = CMSG_FIRSTHDR(&message);
        w->result->level = (oc_watch_level)level;
        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            memcpy(&w->listener, CMSG_DATA(header), sizeof(int));
        }
    }
    close_fd(&w->socket);
}

static ortcrypt_status receive_output(watch *w, ortcrypt_error *err)
{
    uint8_t bytes[4096];
    const ssize_t got = read(w->output, bytes, sizeof(bytes));

    if (got > 0) {
        return oc_buf_append(&w->result->output, bytes, (size_t)got, err);
    }
    if (got == 0 || errno != EINTR) {
        close_fd(&w->output);
    }
    return ORTCRYPT_OK;
}

/* Until the program's end; what is still in the pipe then is read too. */
static ortcrypt_status serve(watch *w, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    bool ended = w->pid_fd < 0;

    while (st == ORTCRYPT_OK && (!ended || w->output >= 0)) {
        struct pollfd polled[4] = {{.fd = ended ? -1 : w->pid_fd, .events = POLLIN},
                                   {.fd = w->output, .events = POLLIN},
                                   {.fd = w->socket, .events = POLLIN},
                                   {.fd = w->listener, .events = POLLIN}};
        const uint64_t now = now_ms();
        const int ready = poll(polled, 4, ended ? 0 : now < w->deadline ? (int)(w->deadline - now) : 0);
        if (ready == 0 && ended) {
            break; /* a process it left behind still has the pipe */
        }
        if (ready == 0 && now_ms() >= w->deadline) {
            w->result->end = OC_WATCH_TIMED_OUT;
            break;
        }
        if (ready > 0 && polled[2].revents != 0) {
            receive_level(w);
        }
        if (ready > 0 && (polled[3].revents & POLLIN) != 0) {
            oc_watch_answer(w->listener, w->result);
        } else if (ready > 0 && polled[3].revents != 0) {
            close_fd(&w->listener);
        }
        if (ready > 0 && polled[1].revents != 0) {
            st = receive_output(w, err);
        }
        ended = ended || (ready > 0 && polled[0].revents != 0);
    }
    return st;
}

/* Whatever is left of the program and what it started is killed. A host that ignores SIGCHLD takes the exit code away: -1. */
static void finish(watch *w)
{
    siginfo_t info = {0};
    const bool ended = waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == w->pid;
    int status = 0;

    (void)kill(-w->pid, SIGKILL);
    if (!ended) {
        (void)kill(w->pid, SIGKILL);
    }
    while (waitpid(w->pid, &status, 0) < 0) {
        if (errno != EINTR) {
            w->result->code = -1;
            return;
        }
    }
    if (w->result->end == OC_WATCH_TIMED_OUT) {
        return;
    }
    w->result->end = WIFSIGNALED(status) ? OC_WATCH_SIGNALLED : OC_WATCH_EXITED;
    w->result->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

ortcrypt_status oc_watch_run(oc_watch_result *result, const oc_watch_options *options, ortcrypt_error *err)
{
    watch w = {.result = result, .options = options, .pid = -1, .pid_fd = -1, .output = -1, .socket = -1, .listener = -1};

    memset(result, 0, sizeof(*result));
    result->output = OC_BUF(options->output_max);
    w.deadline = now_ms() + options->timeout_ms;
    ortcrypt_status st = start(&w, err);
    if (st == ORTCRYPT_OK) {
        st = serve(&w, err);
        finish(&w);
    }
    if (st == ORTCRYPT_OK && result->level == OC_WATCH_NOTHING && !options->writes_allowed && result->end == OC_WATCH_EXITED &&
        result->code == OC_WATCH_EXIT_UNHELD) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "this kernel can neither tell nor refuse that a program opens files for writing");
        oc_hint(err, "seccomp user notification (Linux 5.9) or Landlock (Linux 5.13) is needed; some containers take both away");
    }
    close_fd(&w.pid_fd);
    close_fd(&w.output);
    close_fd(&w.socket);
    close_fd(&w.listener);
    if (st != ORTCRYPT_OK) {
        oc_watch_result_free(result);
    }
    return st;
}

void oc_watch_result_free(oc_watch_result *result)
{
    for (size_t i = 0; i < OC_WATCH_TRIES_MAX; i++) {
        free(result->tries[i].path);
    }
    oc_buf_free(&result->output);
    memset(result, 0, sizeof(*result));
}
