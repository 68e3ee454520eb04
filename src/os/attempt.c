/* What may crash or hang runs in a forked child; its result comes through a pipe, since a host may reap any child of its own. */
#include "os/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The host's handlers would report a crash that is expected here, or wait for threads that are not in this child. */
static void forget_handlers(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGTERM, SIGINT};
    struct sigaction plain = {.sa_flags = 0};
    sigset_t none;

    plain.sa_handler = SIG_DFL;
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
        (void)sigaction(crashes[i], &plain, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_child(int (*fn)(void *state), void *state, int out)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)prctl(PR_SET_DUMPABLE, 0); /* no core file of a process that may hold keys */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    forget_handlers();
    if (nowhere >= 0) {
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
    }
    const unsigned char result = (unsigned char)fn(state);
    _exit(write(out, &result, 1) == 1 ? 0 : 1);
}

static long long now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int read_result(int in, int limit_ms)
{
    struct pollfd ready = {.fd = in, .events = POLLIN};
    const long long end = now_ms() + limit_ms;
    unsigned char result = 0;
    ssize_t len = 0;
    int count = 0;

    do {
        const long long left = end - now_ms();
        count = poll(&ready, 1, left > 0 ? (int)left : 0);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return OC_ATTEMPT_HUNG;
    }
    do {
        len = read(in, &result, 1);
    } while (len < 0 && errno == EINTR);
    return len == 1 && result <= OC_ATTEMPT_MAX ? result : OC_ATTEMPT_CRASHED;
}

int oc_attempt(int (*fn)(void *state), void *state, int limit_ms)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return OC_ATTEMPT_NO_CHILD;
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        run_child(fn, state, ends[1]);
    }
    (void)close(ends[1]);
    if (child < 0) {
        (void)close(ends[0]);
        return OC_ATTEMPT_NO_CHILD;
    }
    const int result = read_result(ends[0], limit_ms);
    (void)close(ends[0]);
    if (result == OC_ATTEMPT_HUNG) {
        (void)kill(child, SIGKILL);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return result;
}
