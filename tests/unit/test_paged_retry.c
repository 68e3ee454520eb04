/* Memory filled when touched, where filling lacks memory or descriptors for a moment: after the handover it is tried again. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "os/os.h"
#include "support/support.h"

#define PIECE ((size_t)64 * 1024)
#define PIECES 4u
#define FOR_EVER 1000000u

typedef struct filler {
    atomic_uint failures; /* how many fills still fail */
    bool spare_first;     /* those of piece 0 do not */
    atomic_uint tries;
    ortcrypt_status status; /* with these two */
    int number;
    uint32_t lens[PIECES];
} filler;

static ortcrypt_status fill(void *state, unsigned lane, uint64_t piece, uint8_t *to, ortcrypt_error *err)
{
    filler *const from = state;
    (void)lane;
    atomic_fetch_add(&from->tries, 1);
    if (atomic_load(&from->failures) != 0 && (piece != 0 || !from->spare_first)) {
        atomic_fetch_sub(&from->failures, 1);
        memset(to, 0xee, PIECE);
        return oc_fail_errno(err, from->status, from->number, "piece %llu", (unsigned long long)piece);
    }
    memset(to, (int)piece + 1, from->lens[piece]);
    return ORTCRYPT_OK;
}

static oc_paged *open_paged(filler *from, size_t ahead, ortcrypt_status status, int number)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_paged *paged = NULL;
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
    atomic_store(&from->failures, 0);
    from->spare_first = false;
    atomic_store(&from->tries, 0);
    from->status = status;
    from->number = number;
    for (unsigned i = 0; i < PIECES; i++) {
        from->lens[i] = PIECE;
    }
    const oc_paged_spec spec = {.piece_len = PIECE, .piece_count = PIECES, .lens = from->lens, .ahead = ahead, .fill = fill, .state = from};
    oc_test_ok(oc_paged_open(&paged, &spec, &err), &err);
    return paged;
}

static void what_is_short_for_a_moment_is_tried_again(void **state)
{
    static const struct {
        ortcrypt_status status;
        int number;
    } cases[] = {{ORTCRYPT_E_NO_MEMORY, 0}, {ORTCRYPT_E_IO, EMFILE}, {ORTCRYPT_E_IO, ENFILE}, {ORTCRYPT_E_IO, ENOMEM}, {ORTCRYPT_E_IO, EAGAIN}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        filler from;
        oc_paged *const paged = open_paged(&from, 0, cases[i].status, cases[i].number);
        oc_test_ok(oc_paged_settle(paged, false, &err), &err);
        atomic_store(&from.failures, 3);
        for (size_t at = 0; at < PIECE; at++) {
            assert_int_equal(((const volatile uint8_t *)oc_paged_data(paged))[PIECE + at], 2);
        }
        assert_int_equal(atomic_load(&from.tries), 4);
        oc_test_ok(oc_paged_settle(paged, false, &err), &err); /* nothing failed */
        oc_paged_close(paged);
    }
}

/* Its reader is told, and what it made of the memory is not used. */
static void before_the_handover_it_is_a_failure(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *const paged = open_paged(&from, 0, ORTCRYPT_E_IO, EMFILE);
    atomic_store(&from.failures, 1);
    assert_int_equal(((const volatile uint8_t *)oc_paged_data(paged))[PIECE], 0xff);
    assert_int_equal(atomic_load(&from.tries), 1);
    oc_test_status(oc_paged_settle(paged, false, &err), ORTCRYPT_E_IO, &err);
    assert_int_equal(err.sys_errno, EMFILE);
    oc_paged_close(paged);
}

/* Nothing touches the piece that is tried: it is filled ahead. */
static void closing_does_not_wait_for_it(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    filler from;
    oc_paged *const paged = open_paged(&from, 2, ORTCRYPT_E_NO_MEMORY, 0);
    oc_test_ok(oc_paged_settle(paged, false, &err), &err);
    from.spare_first = true;
    atomic_store(&from.failures, FOR_EVER);
    assert_int_equal(*(const volatile uint8_t *)oc_paged_data(paged), 1);
    while (atomic_load(&from.tries) < 5) { /* the next two are tried, again and again */
        sched_yield();
    }
    const unsigned tries = atomic_load(&from.tries);
    oc_paged_close(paged);
    assert_true(atomic_load(&from.tries) - tries < 50); /* of 500 for each */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_short_for_a_moment_is_tried_again),
        cmocka_unit_test(before_the_handover_it_is_a_failure),
        cmocka_unit_test(closing_does_not_wait_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
