/* Memory filled when touched, and the reader it is filled for: ahead of it, behind it, and while it is away. */
#include <string.h>
#include <unistd.h>

#include "os/uffd.h"
#include "paged_rig.h"

/* Two after the first touch, more when the reader goes on; unit/test_paged_ahead has all of it. */
static void the_next_pieces_are_filled_ahead(void **state)
{
    (void)state;
    filler from;
    oc_paged *paged = open_paged(&from, 0, 4);
    assert_true(piece_right(oc_paged_data(paged), &from, 10));
    wait_for_fills(paged, 3);
    for (uint64_t piece = 10; piece < 13; piece++) {
        assert_true(piece_right(oc_paged_data(paged), &from, piece));
    }
    assert_int_equal(oc_paged_fills(paged), 3); /* they were there */
    assert_true(piece_right(oc_paged_data(paged), &from, 13));
    wait_for_fills(paged, 8);
    for (uint64_t piece = 13; piece < 18; piece++) {
        assert_true(piece_right(oc_paged_data(paged), &from, piece));
    }
    assert_int_equal(oc_paged_fills(paged), 8);
    oc_paged_close(paged);
}

/* Who enters a piece by its last page comes from behind. */
static void a_reader_that_goes_backwards_is_filled_ahead_of(void **state)
{
    (void)state;
    filler from;
    oc_paged *paged = open_paged(&from, 0, 4);
    assert_int_equal(oc_paged_data(paged)[21 * PIECE - 1], byte_of(20, PIECE - 1));
    wait_for_fills(paged, 3);
    for (uint64_t piece = 18; piece <= 20; piece++) {
        assert_true(piece_right(oc_paged_data(paged), &from, piece));
    }
    assert_int_equal(oc_paged_fills(paged), 3);
    oc_paged_close(paged);
}

/* It has gone to other work: memory is not kept for it, and is right when it comes back. */
static void what_a_reader_leaves_alone_is_dropped(void **state)
{
    (void)state;
    filler from;
    oc_paged *paged = open_paged(&from, 8, 2);
    assert_true(piece_right(oc_paged_data(paged), &from, 10));
    assert_true(resident_len(paged) != 0);
    while (resident_len(paged) != 0) {
        sched_yield();
    }
    assert_true(piece_right(oc_paged_data(paged), &from, 10));
    assert_all_right(paged, &from);
    oc_paged_close(paged);
}

/* A reader that is away again and again gets its pieces once each time it comes back, and no more room than one that stays. */
static void a_pause_makes_no_window_grow(void **state)
{
    (void)state;
    enum { PAUSES = 5 };
    filler from;
    oc_paged *paged = open_paged(&from, 4, 2);
    for (unsigned i = 0; i < PAUSES; i++) {
        assert_int_equal(oc_paged_data(paged)[10 * PIECE], byte_of(10, 0));
        while (resident_len(paged) != 0) {
            sched_yield();
        }
    }
    assert_true(oc_paged_fills(paged) <= 2 * 3 * PAUSES); /* three each time, but for a reader that gets no turn in between */
    assert_all_right(paged, &from);
    assert_true(resident_len(paged) <= 11 * PIECE);
    oc_paged_close(paged);
}

/* Behind the reader pages go; a reader that comes back gets them again. */
static void the_window_moves_and_grows(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *paged = open_paged(&from, 4, 2);
    assert_all_right(paged, &from);
    assert_true(resident_len(paged) <= 11 * PIECE); /* window, ahead, slack, and one in each thread's hands */
    const uint64_t once = oc_paged_fills(paged);
    assert_int_equal(once, PIECES);
    for (unsigned round = 0; round < 20; round++) {
        assert_all_right(paged, &from);
    }
    assert_true(oc_paged_fills(paged) < 10 * (uint64_t)PIECES); /* 21 without a growing window */
    assert_true(oc_paged_fills(paged) > once);
    oc_test_ok(oc_paged_settle(paged, true, &err), &err);
    assert_all_right(paged, &from);
    const uint64_t settled = oc_paged_fills(paged);
    assert_all_right(paged, &from);
    assert_int_equal(oc_paged_fills(paged), settled); /* nothing goes any more */
    oc_paged_close(paged);
}

/* What is dropped is wiped first, however often. */
static void dropped_memory_was_wiped(void **state)
{
    (void)state;
    uint8_t *const map = mmap(NULL, PIECES * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    for (unsigned i = 0; i < PIECES; i++) {
        memset(map + i * PIECE, (int)i + 1, PIECE);
        assert_true(oc_uffd_evict(map + i * PIECE, PIECE));
        assert_int_equal(map[i * PIECE], 0);
    }
    assert_int_equal(munmap(map, PIECES * PIECE), 0);
}

/* Plaintext beside a page that must not be touched, and beside one that is not there, goes too. */
static void a_poisoned_page_keeps_no_other(void **state)
{
    (void)state;
    static const uint8_t plain[PAGE] = {1, 2, 3};
    need_userfaultfd();
    uint8_t *const map = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    const int fd = oc_uffd_open(map, 5 * PAGE);
    assert_true(fd >= 0);
    assert_int_equal(oc_uffd_copy(fd, map, plain, PAGE), 0);
    assert_int_equal(oc_uffd_copy(fd, map + 2 * PAGE, plain, PAGE), 0);
    assert_int_equal(oc_uffd_copy(fd, map + 4 * PAGE, plain, PAGE), 0);
    oc_uffd_poison(fd, map + PAGE, PAGE);
    assert_int_equal(mprotect(map + 2 * PAGE, 2 * PAGE, PROT_NONE), 0); /* as before Linux 6.6 */
    oc_uffd_overwrite(map, 5 * PAGE);
    for (size_t at = 0; at < 5 * PAGE; at += 2 * PAGE) {
        assert_memory_not_equal(map + at, plain, PAGE);
    }
    assert_false(oc_uffd_present(map + 3 * PAGE));
    (void)close(fd);
    assert_int_equal(munmap(map, 5 * PAGE), 0);
}

static void no_more_threads_than_asked_for(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        oc_paged *paged = open_paged_by(&from, 4, 8, threads);
        assert_all_right(paged, &from);
        oc_test_ok(oc_paged_settle(paged, true, &err), &err);
        assert_true(atomic_load(&from.lanes) != 0 && atomic_load(&from.lanes) < 1u << threads);
        oc_paged_close(paged);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_pieces_are_filled_ahead),
        cmocka_unit_test(a_reader_that_goes_backwards_is_filled_ahead_of),
        cmocka_unit_test(what_a_reader_leaves_alone_is_dropped),
        cmocka_unit_test(a_pause_makes_no_window_grow),
        cmocka_unit_test(the_window_moves_and_grows),
        cmocka_unit_test(dropped_memory_was_wiped),
        cmocka_unit_test(no_more_threads_than_asked_for),
        cmocka_unit_test(a_poisoned_page_keeps_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
