/* Trying in a child what may crash or hang: the outcome is told apart, and nothing of it stays. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/attempt.h"

static int changed;

static int give(void *state)
{
    changed = 1;
    (void)puts("this must not be seen");
    (void)fflush(stdout);
    return *(const int *)state;
}

static int crash(void *state)
{
    volatile int *const nowhere = state;
    return *nowhere;
}

static int stop_hard(void *state)
{
    abort();
    return *(const int *)state;
}

static int leave(void *state)
{
    _exit(0); /* before there is a result */
    return *(const int *)state;
}

static int hang(void *state)
{
    while (pause() < 0) {
    }
    return *(const int *)state;
}

static int handled;

static void handler(int number)
{
    (void)number;
    handled++;
}

static void results_come_back(void **state)
{
    (void)state;
    for (int result = 0; result <= OC_ATTEMPT_MAX; result += OC_ATTEMPT_MAX) {
        assert_int_equal(oc_attempt(give, &result, 60000), result);
    }
    assert_int_equal(changed, 0);
}

static void ends_are_told_apart(void **state)
{
    struct sigaction mine = {.sa_flags = 0};
    struct sigaction before;

    (void)state;
    mine.sa_handler = handler;
    assert_int_equal(sigaction(SIGSEGV, &mine, &before), 0);
    assert_int_equal(oc_attempt(crash, NULL, 60000), OC_ATTEMPT_CRASHED); /* a host's handler would go on for ever */
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(handled, 0);
    assert_int_equal(oc_attempt(stop_hard, NULL, 60000), OC_ATTEMPT_CRASHED);
    assert_int_equal(oc_attempt(leave, NULL, 60000), OC_ATTEMPT_CRASHED);
    assert_int_equal(oc_attempt(hang, NULL, 50), OC_ATTEMPT_HUNG);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* A host that ignores SIGCHLD, or reaps every child itself, takes the exit status away, not the result. */
static void a_host_that_reaps(void **state)
{
    struct sigaction ignore = {.sa_flags = 0};
    struct sigaction before;
    int result = 7;

    (void)state;
    ignore.sa_handler = SIG_IGN;
    assert_int_equal(sigaction(SIGCHLD, &ignore, &before), 0);
    assert_int_equal(oc_attempt(give, &result, 60000), 7);
    assert_int_equal(oc_attempt(stop_hard, NULL, 60000), OC_ATTEMPT_CRASHED);
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
}

static void without_a_pipe(void **state)
{
    int fds[4096];
    size_t count = 0;
    int result = 1;

    (void)state;
    while (count < sizeof fds / sizeof *fds && (fds[count] = dup(0)) >= 0) {
        count++;
    }
    const int outcome = oc_attempt(give, &result, 60000);
    const int expected = count < sizeof fds / sizeof *fds ? OC_ATTEMPT_NO_CHILD : 1;
    while (count > 0) {
        (void)close(fds[--count]);
    }
    assert_int_equal(outcome, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_back),
        cmocka_unit_test(ends_are_told_apart),
        cmocka_unit_test(a_host_that_reaps),
        cmocka_unit_test(without_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
