/* paged_rig.h: 40 pieces of memory filled when touched, whose bytes are known; one program uses it at a time. */
#ifndef OC_TESTS_UNIT_PAGED_RIG_H
#define OC_TESTS_UNIT_PAGED_RIG_H

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "os/os.h"
#include "support/support.h"

#define PIECE ((size_t)64 * 1024)
#define PIECES 40u
#define PAGE ((size_t)4096)
#define LAST_LEN 10000u /* bytes of the last piece: no multiple of a page */
#define NONE UINT64_MAX

typedef struct filler {
    atomic_uint_fast64_t fail_at; /* piece */
    atomic_uint lanes;            /* bit i: lane i filled something */
    uint32_t lens[PIECES];
} filler;

/* Never 0, and different for every 16 bytes of every piece. */
static inline uint8_t byte_of(uint64_t piece, size_t at) { return (uint8_t)((piece * 37 + at / 16 * 11 + at) % 255 + 1); }

static inline ortcrypt_status fill(void *state, unsigned lane, uint64_t piece, uint8_t *to, ortcrypt_error *err)
{
    filler *const from = state;
    assert_true(lane < OC_DEFAULT_THREADS_MAX);
    atomic_fetch_or(&from->lanes, 1u << lane);
    if (piece == atomic_load(&from->fail_at)) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "piece %llu", (unsigned long long)piece);
    }
    for (size_t i = 0; i < from->lens[piece]; i++) {
        to[i] = byte_of(piece, i);
    }
    return ORTCRYPT_OK;
}

static inline void need_userfaultfd(void)
{
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
}

static inline oc_paged *open_paged_by(filler *from, size_t window_pieces, size_t ahead, unsigned threads)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_paged *paged = NULL;
    need_userfaultfd();
    for (unsigned i = 0; i < PIECES; i++) {
        from->lens[i] = i + 1 == PIECES ? LAST_LEN : i == 3 ? 100 : PIECE;
    }
    atomic_store(&from->fail_at, NONE);
    atomic_store(&from->lanes, 0);
    const oc_paged_spec spec = {.piece_len = PIECE, .piece_count = PIECES, .lens = from->lens, .window = window_pieces * PIECE,
                                .ahead = ahead, .threads = threads, .fill = fill, .state = from};
    oc_test_ok(oc_paged_open(&paged, &spec, &err), &err);
    return paged;
}

static inline oc_paged *open_paged(filler *from, size_t window_pieces, size_t ahead)
{
    return open_paged_by(from, window_pieces, ahead, 0);
}

/* Compares; no cmocka here, threads and children use it too. */
static inline bool piece_right(const uint8_t *data, const filler *from, uint64_t piece)
{
    bool right = true;
    for (size_t i = 0; i < from->lens[piece]; i++) {
        right = right && ((const volatile uint8_t *)data)[piece * PIECE + i] == byte_of(piece, i);
    }
    return right;
}

static inline void assert_all_right(oc_paged *paged, const filler *from)
{
    for (uint64_t piece = 0; piece < PIECES; piece++) {
        assert_true(piece_right(oc_paged_data(paged), from, piece));
    }
}

static inline size_t resident_len(oc_paged *paged)
{
    unsigned char there[PIECE / PAGE * PIECES];
    size_t sum = 0;
    assert_int_equal(mincore(oc_paged_data(paged), PIECE * PIECES, there), 0);
    for (size_t i = 0; i < sizeof(there); i++) {
        sum += (there[i] & 1) != 0 ? PAGE : 0;
    }
    return sum;
}

static inline void wait_for_fills(oc_paged *paged, uint64_t count)
{
    while (oc_paged_fills(paged) < count) {
        sched_yield();
    }
}

#endif
