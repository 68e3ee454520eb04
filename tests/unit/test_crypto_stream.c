/* Cobblestone-256: lengths, sealing, opening and every kind of damage. Vectors: tests/vectors/test_wycheproof.c. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "crypto/stream.h"
#include "os/os.h"
#include "support/support.h"

static const uint8_t key[OC_STREAM_KEY_LEN] = {1, 2, 3};
static const uint64_t chunk_count_max = (uint64_t)1 << 38;

static void lengths(void **state)
{
    (void)state;
    static const uint64_t pairs[][2] = {{0, 72},         {1, 73},         {16383, 16455},         {16384, 16472},
                                        {16385, 16473},  {32768, 32872},  {1048576, 1049672},     {4294967296, 4299161672}};
    uint64_t got = 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_true(oc_stream_sealed_len(pairs[i][0], &got));
        assert_true(got == pairs[i][1]);
        assert_true(oc_stream_plain_len(pairs[i][1], &got));
        assert_true(got == pairs[i][0]);
    }
    for (uint64_t sealed = 0; sealed < 40000; sealed++) { /* the inverse takes exactly what sealing makes */
        uint64_t plain = 0, back = 0;
        bool whole = oc_stream_plain_len(sealed, &plain);
        assert_int_equal(whole, sealed >= 72 && (sealed - 56) % 16400 >= 16);
        if (whole) {
            assert_true(oc_stream_sealed_len(plain, &back));
            assert_true(back == sealed);
        }
    }
    uint64_t most = chunk_count_max * 16384 - 1;
    assert_true(oc_stream_sealed_len(most, &got));
    assert_true(oc_stream_plain_len(got, &got));
    assert_true(got == most);
    assert_false(oc_stream_sealed_len(most + 1, &got));
    assert_false(oc_stream_sealed_len(UINT64_MAX, &got));
    assert_false(oc_stream_plain_len(UINT64_MAX, &got));
    assert_true(oc_stream_chunk_count(0) == 1);
    assert_true(oc_stream_chunk_count(16383) == 1);
    assert_true(oc_stream_chunk_count(16384) == 2);
}

static void seal(oc_buf *out, oc_span context, const uint8_t *plain, size_t len)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(oc_stream_seal_all(key, context, OC_SPAN(plain, len), out, &err), &err);
}

static void whole_streams(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 16383, 16384, 16385, 32768, 100000};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_buf sealed = OC_BUF(200000), again = OC_BUF(200000), opened = OC_BUF(200000);
        uint8_t *plain = malloc(lens[i] + 1);
        assert_non_null(plain);
        oc_test_fill(plain, lens[i], i);
        seal(&sealed, OC_SPAN_STR("place"), plain, lens[i]);
        assert_int_equal(sealed.len, 56 + lens[i] + 16 * (lens[i] / 16384 + 1));
        oc_test_ok(oc_buf_append_str(&opened, "kept", &err), &err);
        oc_test_ok(oc_stream_open_all(key, OC_SPAN_STR("place"), OC_SPAN(sealed.data, sealed.len), &opened, &err), &err);
        assert_int_equal(opened.len, lens[i] + 4);
        assert_memory_equal(opened.data, "kept", 4);
        assert_memory_equal(opened.data + 4, plain, lens[i]);
        seal(&again, OC_SPAN_STR("place"), plain, lens[i]); /* a fresh salt every time */
        assert_memory_not_equal(again.data, sealed.data, 24);
        assert_memory_not_equal(again.data + 24, sealed.data + 24, 32);
        free(plain);
        oc_buf_free(&sealed);
        oc_buf_free(&again);
        oc_buf_free(&opened);
    }
}

static void refused(oc_span context, const uint8_t *sealed, size_t len)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf out = OC_BUF(200000);
    uint8_t *room = NULL;
    oc_test_ok(oc_buf_reserve(&out, out.max, &room, &err), &err);
    memset(room, 0, out.max);
    oc_test_status(oc_stream_open_all(key, context, OC_SPAN(sealed, len), &out, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    assert_int_equal(out.len, 0);
    for (size_t i = 0; i < out.max; i++) {
        assert_int_equal(room[i], 0); /* also what was authentic before the damage */
    }
    assert_int_equal(ERR_peek_error(), 0);
    oc_buf_free(&out);
}

static void damage(void **state)
{
    (void)state;
    enum { LEN = 40000 };
    uint8_t *plain = malloc(LEN);
    oc_buf s = OC_BUF(100000);
    oc_span place = OC_SPAN_STR("place");
    assert_non_null(plain);
    oc_test_fill(plain, LEN, 9);
    seal(&s, place, plain, LEN);
    for (size_t at = 0; at < s.len; at += at < 80 || at + 80 > s.len ? 1 : 997) {
        s.data[at] ^= 0x10;
        refused(place, s.data, s.len);
        s.data[at] ^= 0x10;
    }
    for (size_t border = 56; border <= s.len; border += 16400) { /* cuts at and around every chunk's border */
        refused(place, s.data, border - 1);
        refused(place, s.data, border);
        refused(place, s.data, border + 1);
        refused(place, s.data, border + 15);
        refused(place, s.data, border + 16);
    }
    refused(place, s.data, 0);
    refused(place, s.data, s.len - 1);
    uint8_t *longer = calloc(1, s.len + 16400);
    assert_non_null(longer);
    memcpy(longer, s.data, s.len);
    refused(place, longer, s.len + 1);
    refused(place, longer, s.len + 16);
    memcpy(longer + s.len, s.data + 56, 16400); /* another chunk of the same stream */
    refused(place, longer, s.len + 16400);
    memcpy(longer, s.data, s.len);
    memcpy(longer + 56, s.data + 56 + 16400, 16400); /* chunks 0 and 1 exchanged */
    memcpy(longer + 56 + 16400, s.data + 56, 16400);
    refused(place, longer, s.len);
    refused(OC_SPAN_STR("elsewhere"), s.data, s.len);
    refused(OC_SPAN_STR("place\0"), s.data, s.len);
    free(longer);
    free(plain);
    oc_buf_free(&s);
}

static void chunks(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_stream *sealing = NULL, *opening = NULL;
    oc_stream_lane *in = NULL, *out = NULL;
    uint8_t header[OC_STREAM_HEADER_LEN];
    uint8_t *plain = malloc(16400), *sealed = malloc(16400), *back = malloc(16400);
    assert_true(plain != NULL && sealed != NULL && back != NULL);
    oc_test_fill(plain, 16400, 4);
    oc_test_ok(oc_stream_seal_new(&sealing, key, OC_SPAN(NULL, 0), header, &err), &err);
    oc_test_ok(oc_stream_open_new(&opening, key, OC_SPAN(NULL, 0), header, &err), &err);
    oc_test_ok(oc_stream_lane_new(&in, sealing, true, &err), &err);
    oc_test_ok(oc_stream_lane_new(&out, opening, false, &err), &err);
    /* any order, each chunk by itself, in place too */
    static const uint64_t order[] = {5, 0, 255, 256, 65536, ((uint64_t)1 << 38) - 1};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        oc_test_ok(oc_stream_seal_chunk(in, order[i], false, plain, 16384, sealed, &err), &err);
        assert_memory_not_equal(sealed, plain, 16384);
        oc_test_status(oc_stream_open_chunk(out, order[i] ^ 1, false, sealed, 16400, back, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
        oc_test_ok(oc_stream_open_chunk(out, order[i], false, sealed, 16400, back, &err), &err);
        assert_memory_equal(back, plain, 16384);
        oc_test_ok(oc_stream_open_chunk(out, order[i], false, sealed, 16400, sealed, &err), &err);
        assert_memory_equal(sealed, plain, 16384);
        memcpy(back, plain, 16384);
        oc_test_ok(oc_stream_seal_chunk(in, order[i], false, back, 16384, back, &err), &err);
        oc_test_ok(oc_stream_open_chunk(out, order[i], false, back, 16400, sealed, &err), &err);
        assert_memory_equal(sealed, plain, 16384);
    }
    /* a wrong tag leaves no plaintext, and names the chunk's place */
    oc_test_ok(oc_stream_seal_chunk(in, 3, false, plain, 16384, sealed, &err), &err);
    sealed[16399] ^= 0x80;
    memset(back, 0xAA, 16400);
    oc_test_status(oc_stream_open_chunk(out, 3, false, sealed, 16400, back, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    assert_int_equal(err.offset, 56 + 3 * 16400);
    for (size_t i = 0; i < 16384; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_int_equal(back[16384], 0xAA);
    /* what the caller must not ask for */
    oc_test_status(oc_stream_seal_chunk(in, 0, false, plain, 16383, sealed, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_stream_seal_chunk(in, 0, true, plain, 16384, sealed, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_stream_seal_chunk(out, 0, true, plain, 1, sealed, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_stream_open_chunk(in, 0, true, sealed, 17, back, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_stream_seal_chunk(in, chunk_count_max, true, plain, 1, sealed, &err), ORTCRYPT_E_LIMIT, &err);
    oc_test_status(oc_stream_open_chunk(out, chunk_count_max, true, sealed, 17, back, &err), ORTCRYPT_E_LIMIT, &err);
    oc_test_status(oc_stream_open_chunk(out, 0, true, sealed, 16400, back, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    oc_test_status(oc_stream_open_chunk(out, 0, false, sealed, 16399, back, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    oc_test_status(oc_stream_open_chunk(out, 0, true, sealed, 15, back, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    oc_test_ok(oc_stream_seal_chunk(in, 0, true, NULL, 0, sealed, &err), &err);
    oc_test_ok(oc_stream_open_chunk(out, 0, true, sealed, 16, back, &err), &err);
    oc_stream_lane_free(in);
    oc_stream_lane_free(out);
    oc_stream_free(sealing);
    oc_stream_free(opening);
    oc_stream_lane_free(NULL);
    oc_stream_free(NULL);
    free(plain);
    free(sealed);
    free(back);
}

static void limits(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_stream *stream = (oc_stream *)&err; /* set to NULL on failure */
    uint8_t header[OC_STREAM_HEADER_LEN] = {0};
    uint8_t context[513] = {0};
    oc_test_status(oc_stream_seal_new(&stream, key, OC_SPAN(context, 513), header, &err), ORTCRYPT_E_LIMIT, &err);
    assert_null(stream);
    oc_test_ok(oc_stream_seal_new(&stream, key, OC_SPAN(context, 512), header, &err), &err);
    oc_stream_free(stream);
    oc_buf small = OC_BUF(71);
    oc_test_status(oc_stream_seal_all(key, OC_SPAN(NULL, 0), OC_SPAN(NULL, 0), &small, &err), ORTCRYPT_E_LIMIT, &err);
    small.max = 72;
    oc_test_ok(oc_stream_seal_all(key, OC_SPAN(NULL, 0), OC_SPAN(NULL, 0), &small, &err), &err);
    oc_buf_free(&small);
}

#define POOL_CHUNKS 64

struct pool {
    oc_stream_lane *lanes[4];
    uint8_t *sealed;
    uint8_t *plain;
};

static ortcrypt_status open_one(void *state, unsigned lane, uint64_t item, ortcrypt_error *err)
{
    const struct pool *pool = state;
    bool last = item == POOL_CHUNKS;
    return oc_stream_open_chunk(pool->lanes[lane], item, last, pool->sealed + 56 + item * 16400, last ? 16 : 16400,
                                pool->plain + item * 16384, err);
}

/* One stream, several lanes at once. */
static void lanes(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    enum { LEN = POOL_CHUNKS * 16384 };
    oc_buf sealed = OC_BUF(2 * LEN);
    oc_stream *stream = NULL;
    struct pool pool = {.plain = malloc(LEN)};
    uint8_t *plain = malloc(LEN);
    assert_true(plain != NULL && pool.plain != NULL);
    oc_test_fill(plain, LEN, 5);
    seal(&sealed, OC_SPAN(NULL, 0), plain, LEN);
    pool.sealed = sealed.data;
    oc_test_ok(oc_stream_open_new(&stream, key, OC_SPAN(NULL, 0), sealed.data, &err), &err);
    for (int i = 0; i < 4; i++) {
        oc_test_ok(oc_stream_lane_new(&pool.lanes[i], stream, false, &err), &err);
    }
    oc_test_ok(oc_parallel(4, POOL_CHUNKS + 1, open_one, &pool, &err), &err);
    assert_memory_equal(pool.plain, plain, LEN);
    for (int i = 0; i < 4; i++) {
        oc_stream_lane_free(pool.lanes[i]);
    }
    oc_stream_free(stream);
    oc_buf_free(&sealed);
    free(pool.plain);
    free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths), cmocka_unit_test(whole_streams), cmocka_unit_test(damage),
                                       cmocka_unit_test(chunks),  cmocka_unit_test(limits),        cmocka_unit_test(lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
