/* The layout of object files against docs/format.md: the worked example, the formulas at every border and at the far end. */
#include "bundle_fixture.h"

static void names_of_the_worked_example(void **state)
{
    static const struct {
        uint64_t plain_len;
        uint64_t sealed_len;
        const char *leaves[2];
        const char *name;
    } cases[] = {
        {0, 72, {"606aa51a0d7e425d09672208bc92c36dc2f40a0f7fb66f0c9599a40efa7cbb68", NULL},
         "825be916bef0d1c067df327acf90e997be447547e07ccdb1780a873ac1561670"},
        {5, 77, {"358edce7757779a38e9d86978a9d2ba95c7f3f61e55650593c32e3582cfa2ce6", NULL},
         "f8b0fe9e38e00b899c9cdbb8d1bce564292c699456566cc1d276e62e6dc0791f"},
        {1048581, 1049677,
         {"74a0bd353c91915ed4ee4e423113cd51dfe413a2bfcf7a4b65e44affcc27777a",
          "2b413a1d181a5019f831111151a2f1cf6476a680463fa16de07c814d50cfde6b"},
         "b82874aae1c9eb616441daab7a2809ff4bce76cf3becdcbc9fce42742a087afd"},
    };
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t leaves[2][OC_LEAF_LEN];
        uint8_t name[OC_LEAF_LEN];
        char hex[2 * OC_LEAF_LEN + 1];
        oc_shape shape;
        size_t count = 0;
        for (; count < 2 && cases[i].leaves[count] != NULL; count++) {
            assert_true(oc_hex_decode(leaves[count], OC_LEAF_LEN, cases[i].leaves[count], 64));
        }
        assert_true(oc_shape_of(&shape, cases[i].plain_len));
        assert_int_equal(shape.sealed_len, cases[i].sealed_len);
        assert_int_equal(shape.piece_count, count);
        oc_test_ok(oc_object_name(name, shape.sealed_len, leaves, count, &err), &err);
        oc_hex_encode(hex, name, sizeof name);
        assert_string_equal(hex, cases[i].name);
    }
}

/* Pieces follow each other without a gap, cover the file and the plaintext, and none is empty in the file. */
static void pieces_cover_the_file(void **state)
{
    (void)state;
    for (uint64_t base = 0; base <= 4; base++) {
        for (int64_t around = -2; around <= 2; around++) {
            for (uint64_t chunks = 0; chunks <= 64; chunks += 16) {
                const int64_t len = (int64_t)(base * OC_PIECE_PLAIN_LEN + chunks * OC_STREAM_CHUNK_LEN) + around;
                oc_shape shape;
                uint64_t file = 0;
                uint64_t plain = 0;
                if (len < 0) {
                    continue;
                }
                assert_true(oc_shape_of(&shape, (uint64_t)len));
                for (uint64_t piece = 0; piece < shape.piece_count; piece++) {
                    assert_int_equal(oc_piece_offset(piece), file);
                    assert_true(oc_piece_len(&shape, piece) >= OC_STREAM_TAG_LEN && oc_piece_len(&shape, piece) <= OC_PIECE_ROOM);
                    file += oc_piece_len(&shape, piece);
                    plain += oc_piece_plain_len(&shape, piece);
                }
                assert_int_equal(file, shape.sealed_len);
                assert_int_equal(plain, len);
            }
        }
    }
}

static void the_far_end(void **state)
{
    oc_shape shape;
    (void)state;
    const uint64_t longest = (UINT64_C(1) << 52) - 1; /* 2^38 chunks, where streams end */
    assert_true(oc_shape_of(&shape, longest));
    assert_int_equal(shape.sealed_len, 56 + longest + 16 * (longest / 16384 + 1));
    assert_int_equal(oc_piece_offset(shape.piece_count - 1) + oc_piece_len(&shape, shape.piece_count - 1), shape.sealed_len);
    assert_false(oc_shape_of(&shape, longest + 1));
    assert_false(oc_shape_of(&shape, UINT64_MAX));
    assert_false(oc_shape_of(&shape, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_worked_example),
        cmocka_unit_test(pieces_cover_the_file),
        cmocka_unit_test(the_far_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
