/*
 * Memory filled when touched: every page is right whatever the order, whoever drops it, in a fork, in a system call, after a failure;
 * never zeros. Where userfaultfd is denied there is nothing to test, and the tests say so by being skipped.
 */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paged_rig.h"

static void touched_pieces_are_filled_and_no_others(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *paged = open_paged(&from, 0, 0);
    oc_test_ok(oc_paged_settle(paged, false, &err), &err);
    assert_int_equal(resident_len(paged), 0);
    assert_true(piece_right(oc_paged_data(paged), &from, 7));
    assert_true(piece_right(oc_paged_data(paged), &from, PIECES - 1));
    assert_int_equal(oc_paged_fills(paged), 2);
    assert_int_equal(resident_len(paged), PIECE + (LAST_LEN + PAGE - 1) / PAGE * PAGE);
    for (size_t i = LAST_LEN; i < (LAST_LEN + PAGE - 1) / PAGE * PAGE; i++) { /* the rest of the last page */
        assert_int_equal(oc_paged_data(paged)[(PIECES - 1) * PIECE + i], 0);
    }
    oc_paged_close(paged);
}

static void settling_checks_what_nobody_touched(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *paged = open_paged(&from, 4, 2);
    assert_true(piece_right(oc_paged_data(paged), &from, 20));
    oc_test_ok(oc_paged_settle(paged, true, &err), &err);
    assert_int_equal(oc_paged_fills(paged), PIECES);
    assert_all_right(paged, &from);
    oc_paged_close(paged);
}

/* Somebody else in the process gives pages back: they are filled again, never zeros. */
static void dropped_pages_come_back(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *paged = open_paged(&from, 0, 0);
    oc_test_ok(oc_paged_settle(paged, true, &err), &err);
    assert_int_equal(madvise(oc_paged_data(paged) + PIECE + PAGE, 5 * PIECE, MADV_DONTNEED), 0);
    assert_all_right(paged, &from);
    assert_int_equal(madvise(oc_paged_data(paged), PIECES * PIECE, MADV_DONTNEED), 0);
    assert_all_right(paged, &from);
    oc_paged_close(paged);
}

static void a_system_call_fails_and_reads_no_zeros(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    int ends[2];
    oc_paged *paged = open_paged(&from, 0, 0);
    oc_test_ok(oc_paged_settle(paged, false, &err), &err);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], oc_paged_data(paged), 100), -1);
    assert_int_equal(errno, EFAULT);
    assert_true(piece_right(oc_paged_data(paged), &from, 0));
    assert_int_equal(write(ends[1], oc_paged_data(paged), 100), 100);
    (void)(close(ends[0]) + close(ends[1]));
    oc_paged_close(paged);
}

/* What a child made of it: its exit code, or minus the signal that ended it. */
static int result_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* fork; the child dies of its signals, which sanitizers would catch and exit instead. */
static pid_t start_child(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
    }
    return child;
}

static int read_in_child(oc_paged *paged, size_t at)
{
    const pid_t child = start_child();
    if (child == 0) {
        _exit(((const volatile uint8_t *)oc_paged_data(paged))[at] == 0 ? 100 : 101);
    }
    return result_of(child);
}

static void a_forked_child_has_no_such_memory(void **state)
{
    (void)state;
    filler from;
    oc_paged *paged = open_paged(&from, 0, 0);
    assert_true(piece_right(oc_paged_data(paged), &from, 2));
    assert_int_equal(read_in_child(paged, 0), -SIGSEGV);
    assert_int_equal(read_in_child(paged, 2 * PIECE), -SIGSEGV);
    oc_paged_close(paged);
}

static void a_failure_before_settling_is_told_by_it(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    for (unsigned i = 0; i < 2; i++) {
        oc_paged *paged = open_paged(&from, 4 * (size_t)i, 2);
        atomic_store(&from.fail_at, 21);
        if (i == 0) { /* touched; else settle finds it */
            assert_int_equal(oc_paged_data(paged)[21 * PIECE], 0xff);
            assert_int_equal(oc_paged_data(paged)[21 * PIECE + PIECE - 1], 0xff);
        }
        assert_int_equal(oc_paged_settle(paged, true, &err), ORTCRYPT_E_NOT_AUTHENTIC);
        assert_string_equal(err.message, "piece 21");
        oc_paged_close(paged);
    }
}

/* In a child that makes the memory itself. 0 and above: it lived. */
static int fail_in_child(size_t at, bool drop_first)
{
    const pid_t child = start_child();
    if (child == 0) {
        static filler from;
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_paged *paged = open_paged(&from, 0, 0);
        if (oc_paged_settle(paged, drop_first, &err) != ORTCRYPT_OK) {
            _exit(102);
        }
        atomic_store(&from.fail_at, 5);
        if (drop_first) {
            (void)madvise(oc_paged_data(paged), PIECES * PIECE, MADV_DONTNEED);
        }
        const uint8_t *const data = oc_paged_data(paged);
        const bool others = piece_right(data, &from, 4) && piece_right(data, &from, 6);
        _exit(others ? ((const volatile uint8_t *)data)[at] : 103);
    }
    return result_of(child);
}

static void a_failure_after_settling_is_a_signal(void **state)
{
    (void)state;
    need_userfaultfd();
    const int first = fail_in_child(5 * PIECE, false);
    assert_true(first == -SIGBUS || first == -SIGSEGV); /* the second before Linux 6.6 */
    assert_int_equal(fail_in_child(5 * PIECE + PIECE - 1, false), first);
    assert_int_equal(fail_in_child(5 * PIECE + 10, true), first);
    assert_int_equal(fail_in_child(3 * PIECE + PAGE, false), first); /* behind the end of a short piece */
    assert_int_equal(fail_in_child(4 * PIECE, false), byte_of(4, 0));
}

/* Nor does a reader wait for ever when somebody dropped what stood for a piece that could not be filled. */
static void a_failed_piece_that_was_dropped_is_a_signal(void **state)
{
    (void)state;
    need_userfaultfd();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static filler from;
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        (void)alarm(60);
        oc_paged *paged = open_paged(&from, 4, 2);
        const volatile uint8_t *const at = oc_paged_data(paged) + 5 * PIECE;
        atomic_store(&from.fail_at, 5);
        if (*at != 0xff || madvise(oc_paged_data(paged) + 5 * PIECE, PAGE, MADV_DONTNEED) != 0) {
            _exit(102);
        }
        _exit(*at);
    }
    const int result = result_of(child);
    assert_true(result == -SIGBUS || result == -SIGSEGV);
}

/* A poisoned piece is left alone when the memory is wiped. Nothing here touches it: it was filled ahead. */
static void closing_survives_a_failed_piece(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *paged = open_paged(&from, 0, 2);
    oc_test_ok(oc_paged_settle(paged, false, &err), &err);
    atomic_store(&from.fail_at, 5);
    assert_true(piece_right(oc_paged_data(paged), &from, 4));
    wait_for_fills(paged, 3);
    oc_paged_close(paged);
}

/* Other code closes every descriptor of the process. A reader dies, at the latest soon: it never goes on with zeros. */
static int read_without_descriptors(bool touch_at_once)
{
    const pid_t child = start_child();
    if (child == 0) {
        static filler from;
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_paged *paged = open_paged(&from, 0, 0);
        (void)!oc_paged_settle(paged, false, &err);
        const uint8_t *const data = oc_paged_data(paged);
        const bool right = piece_right(data, &from, 1);
        for (int fd = 3; fd < 1024; fd++) {
            (void)close(fd);
        }
        alarm(20); /* else it lives for ever */
        while (touch_at_once && right) {
            (void)piece_right(data, &from, 2);
        }
        oc_paged_close(paged); /* and closing ends */
        _exit(right ? 0 : 2);
    }
    return result_of(child);
}

static void closed_descriptors_are_no_zeros(void **state)
{
    (void)state;
    need_userfaultfd();
    assert_int_equal(read_without_descriptors(true), -SIGSEGV);
    assert_int_equal(read_without_descriptors(false), 0);
}

static void an_ordinary_user_may(void **state)
{
    (void)state;
    need_userfaultfd();
    if (geteuid() != 0) {
        skip(); /* the other tests ran as one */
    }
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static filler from;
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(1);
        }
        oc_paged *paged = open_paged(&from, 4, 2);
        bool right = true;
        for (uint64_t piece = 0; piece < PIECES; piece++) {
            right = right && piece_right(oc_paged_data(paged), &from, piece);
        }
        oc_paged_close(paged);
        _exit(right ? 0 : 2);
    }
    assert_int_equal(result_of(child), 0);
}

typedef struct reader {
    const uint8_t *data;
    const filler *from;
    unsigned seed;
    unsigned wrong;
} reader;

static void *read_around(void *state)
{
    reader *const self = state;
    for (unsigned i = 0; i < 400; i++) {
        self->seed = self->seed * 1103515245u + 12345u;
        const uint64_t piece = self->seed / 65536u % PIECES;
        self->wrong += piece_right(self->data, self->from, piece) ? 0 : 1;
        if (i % 50 == 0) {
            (void)madvise((void *)((uintptr_t)self->data + piece * PIECE), PIECE, MADV_DONTNEED);
        }
    }
    return NULL;
}

/* Readers in all directions while a window of two pieces moves over 40, and while it ends. */
static void many_readers_see_right_bytes(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    pthread_t threads[4];
    reader readers[4];
    for (unsigned round = 0; round < 2; round++) {
        oc_paged *paged = open_paged(&from, 2, 3);
        for (unsigned i = 0; i < 4; i++) {
            readers[i] = (reader){oc_paged_data(paged), &from, 7 * i + 1, 0};
            assert_int_equal(pthread_create(&threads[i], NULL, read_around, &readers[i]), 0);
        }
        if (round == 0) {
            oc_test_ok(oc_paged_settle(paged, true, &err), &err);
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(readers[i].wrong, 0);
        }
        oc_paged_close(paged);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(touched_pieces_are_filled_and_no_others),
        cmocka_unit_test(settling_checks_what_nobody_touched),
        cmocka_unit_test(dropped_pages_come_back),
        cmocka_unit_test(a_system_call_fails_and_reads_no_zeros),
        cmocka_unit_test(a_forked_child_has_no_such_memory),
        cmocka_unit_test(a_failure_before_settling_is_told_by_it),
        cmocka_unit_test(a_failure_after_settling_is_a_signal),
        cmocka_unit_test(a_failed_piece_that_was_dropped_is_a_signal),
        cmocka_unit_test(closing_survives_a_failed_piece),
        cmocka_unit_test(closed_descriptors_are_no_zeros),
        cmocka_unit_test(an_ordinary_user_may),
        cmocka_unit_test(many_readers_see_right_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
