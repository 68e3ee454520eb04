/* Memory filled when touched: when its window grows, and when it does not. */
#include <string.h>
#include <sys/mman.h>

#include "os/os.h"
#include "support/support.h"

#define PIECE ((size_t)64 * 1024)
#define PIECES 250u
#define PAGE ((size_t)4096)
#define WINDOW 2u /* pieces */
#define ROOM 16u  /* window, one ahead, and twice what is dropped in one go and what is in a thread's hands */

static ortcrypt_status fill(void *state, unsigned lane, uint64_t piece, uint8_t *to, ortcrypt_error *err)
{
    (void)state;
    (void)lane;
    (void)err;
    memset(to, (int)piece + 1, PIECE);
    return ORTCRYPT_OK;
}

static oc_paged *open_paged(void)
{
    static uint32_t lens[PIECES];
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_paged *paged = NULL;

    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
    for (size_t i = 0; i < PIECES; i++) {
        lens[i] = PIECE;
    }
    const oc_paged_spec spec = {.piece_len = PIECE, .piece_count = PIECES, .lens = lens, .window = WINDOW * PIECE, .ahead = 1, .fill = fill};
    oc_test_ok(oc_paged_open(&paged, &spec, &err), &err);
    return paged;
}

static void read_piece(oc_paged *paged, size_t piece)
{
    assert_int_equal(((const volatile uint8_t *)oc_paged_data(paged))[piece * PIECE], piece + 1);
}

static size_t resident_pieces(oc_paged *paged)
{
    unsigned char there[PIECE / PAGE * PIECES];
    size_t count = 0;

    assert_int_equal(mincore(oc_paged_data(paged), PIECE * PIECES, there), 0);
    for (size_t i = 0; i < PIECES; i++) {
        count += there[i * (PIECE / PAGE)] & 1;
    }
    return count;
}

/* Where two tensors meet, a piece is read twice, long after each other. */
static void stays_when_pieces_come_back_now_and_then(void **state)
{
    (void)state;
    oc_paged *const paged = open_paged();

    for (size_t piece = 2; piece < PIECES; piece++) {
        read_piece(paged, piece);
        if (piece % 4 == 1) {
            read_piece(paged, piece % 8 == 1 ? 0 : 1);
        }
    }
    assert_in_range(resident_pieces(paged), 0, ROOM);
    oc_paged_close(paged);
}

static void grows_when_all_of_it_comes_back(void **state)
{
    (void)state;
    oc_paged *const paged = open_paged();

    for (size_t i = 0; i < 400; i++) {
        read_piece(paged, i % 16);
    }
    assert_true(oc_paged_fills(paged) < 200);
    oc_paged_close(paged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_when_pieces_come_back_now_and_then),
        cmocka_unit_test(grows_when_all_of_it_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
