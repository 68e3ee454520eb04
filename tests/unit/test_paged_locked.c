/*
 * Memory filled when touched, in a process that locks its memory: mlockall(MCL_FUTURE) fills new mappings with zeros at once, and what is
 * there is never asked for. And what cannot be opened at all.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/os.h"
#include "support/support.h"

#define PIECE ((size_t)64 * 1024)
#define PIECES 24u

static ortcrypt_status fill(void *state, unsigned lane, uint64_t piece, uint8_t *to, ortcrypt_error *err)
{
    (void)state;
    (void)lane;
    (void)err;
    memset(to, (int)piece + 1, PIECE);
    return ORTCRYPT_OK;
}

static void right(const volatile uint8_t *data)
{
    for (size_t at = 0; at < PIECES * PIECE; at += 512) {
        assert_int_equal(data[at], at / PIECE + 1);
    }
}

static void run(size_t window)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_paged *paged = NULL;
    uint32_t lens[PIECES];

    for (unsigned i = 0; i < PIECES; i++) {
        lens[i] = PIECE;
    }
    const oc_paged_spec spec = {.piece_len = PIECE, .piece_count = PIECES, .lens = lens, .window = window, .fill = fill};
    if (mlockall(MCL_FUTURE) != 0) {
        print_message("memory cannot be locked here: nothing is tested\n");
        skip();
    }
    const ortcrypt_status st = oc_paged_open(&paged, &spec, &err);
    (void)munlockall();
    oc_test_ok(st, &err);
    right(oc_paged_data(paged));
    oc_test_ok(oc_paged_settle(paged, true, &err), &err);
    right(oc_paged_data(paged));
    if (window != 0) { /* evicted, and filled again: more than once each */
        assert_true(oc_paged_fills(paged) > PIECES);
    }
    oc_paged_close(paged);
}

static void locked_memory_is_filled(void **state)
{
    (void)state;
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
    run(0);
}

static void locked_memory_is_evicted(void **state)
{
    (void)state;
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
    run(4 * PIECE);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    static const uint32_t lens[1] = {1};
    oc_paged *paged = NULL;
    oc_paged_spec spec = {.piece_len = PIECE, .piece_count = 0, .lens = lens, .fill = fill};
    assert_int_equal(oc_paged_open(&paged, &spec, &err), ORTCRYPT_E_INVALID);
    spec = (oc_paged_spec){.piece_len = 1000, .piece_count = 1, .lens = lens, .fill = fill};
    assert_int_equal(oc_paged_open(&paged, &spec, &err), ORTCRYPT_E_INVALID);
    assert_null(paged);
    oc_paged_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locked_memory_is_filled),
        cmocka_unit_test(locked_memory_is_evicted),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
