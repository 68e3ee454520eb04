/* The worked example of docs/format.md, section 13: its values were computed by another implementation. */
#include <stdlib.h>
#include <string.h>

#include "bundle/internal.h"
#include "support/support.h"

#define SALT "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7"
#define ASSET_COMMITMENT "bc37245c05c48b36db359f7084d11dfaa47156087051b0dc51f92dc22483ad67"

static uint8_t bundle_id[OC_BUNDLE_ID_LEN];
static uint8_t asset_id[OC_ASSET_ID_LEN];
static uint8_t key[OC_BUNDLE_KEY_LEN];

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        bundle_id[i] = (uint8_t)i;
        asset_id[i] = (uint8_t)(0x10 + i);
        key[i] = (uint8_t)(0x20 + i);
        key[16 + i] = (uint8_t)(0x30 + i);
    }
    return 0;
}

static void same_hex(const uint8_t *data, size_t len, const char *hex)
{
    size_t expected_len = 0;
    uint8_t *const expected = oc_test_unhex(hex, &expected_len);

    assert_int_equal(len, expected_len);
    assert_memory_equal(data, expected, len);
    free(expected);
}

static void test_key_file(void **state)
{
    static const char line[] = "{\"format\":\"ortcrypt/1\",\"bundle\":\"000102030405060708090a0b0c0d0e0f\",\"key\":"
                               "\"ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\"}\n";
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t id[OC_BUNDLE_ID_LEN];
    uint8_t found[OC_BUNDLE_KEY_LEN];
    oc_secret printed = {0};
    (void)state;

    assert_int_equal(sizeof line - 1, OC_KEYFILE_LINE_LEN);
    oc_test_ok(oc_keyfile_parse(OC_SPAN_STR(line), id, found, NULL, &err), &err);
    assert_memory_equal(id, bundle_id, sizeof id);
    assert_memory_equal(found, key, sizeof found);
    oc_test_ok(oc_keyfile_print(&printed, bundle_id, key, NULL, 0, &err), &err);
    assert_int_equal(printed.len, OC_KEYFILE_LINE_LEN);
    assert_memory_equal(printed.data, line, OC_KEYFILE_LINE_LEN);
    oc_secret_free(&printed);
}

static void opens_to(oc_span context, const char *hex, const char *plain)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    size_t len = 0;
    uint8_t *const sealed = oc_test_unhex(hex, &len);
    oc_buf out = OC_BUF(1024);

    oc_test_ok(oc_stream_open_all(key, context, OC_SPAN(sealed, len), &out, &err), &err);
    assert_int_equal(out.len, strlen(plain));
    if (out.len != 0) {
        assert_memory_equal(out.data, plain, out.len);
    }
    oc_buf_free(&out);
    free(sealed);
}

static void test_manifest(void **state)
{
    static const char hex[] = SALT "8acef7eb8f1f532b43b444734dfe65c650220565d55ff4b2f97d173e1da3b19a"
                                   "7c958200611db32310ed2f33add7fdc97252";
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t room[OC_CONTEXT_MAX];
    uint8_t m[OC_SHA256_LEN];
    size_t len = 0;
    (void)state;

    const oc_span context = oc_manifest_context(room, bundle_id);
    same_hex(context.data, context.len, "6f727463727970742f31206d616e696665737400000102030405060708090a0b0c0d0e0f");
    opens_to(context, hex, "{}");
    uint8_t *const sealed = oc_test_unhex(hex, &len);
    oc_test_ok(oc_sha256(m, OC_SPAN(sealed, len), &err), &err);
    same_hex(m, sizeof m, "fdb2d4e5c1c7599733a6cc2e294af0de6643b5d92340a318be78fc138bf84387");
    free(sealed);
}

/* The object name of a file of one piece. */
static void named(const char *hex, const char *leaf_hex, const char *name_hex)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t leaf[1][OC_LEAF_LEN];
    uint8_t name[OC_LEAF_LEN];
    size_t len = 0;
    uint8_t *const sealed = oc_test_unhex(hex, &len);

    oc_test_ok(oc_sha256(leaf[0], OC_SPAN(sealed, len), &err), &err);
    same_hex(leaf[0], OC_LEAF_LEN, leaf_hex);
    oc_test_ok(oc_object_name(name, len, (const uint8_t(*)[OC_LEAF_LEN])leaf, 1, &err), &err);
    same_hex(name, sizeof name, name_hex);
    free(sealed);
}

static void test_assets(void **state)
{
    static const char empty[] = SALT ASSET_COMMITMENT "d77a0b4c524abf49b901a7d675757d0e";
    static const char hello[] = SALT ASSET_COMMITMENT "03115b61e74cc01c55a38ec33bfcbbcb18bbbb432b";
    uint8_t room[OC_CONTEXT_MAX];
    (void)state;

    const oc_span context = oc_asset_context(room, bundle_id, asset_id);
    same_hex(context.data, context.len,
             "6f727463727970742f3120617373657400000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    opens_to(context, empty, "");
    opens_to(context, hello, "hello");
    named(empty, "606aa51a0d7e425d09672208bc92c36dc2f40a0f7fb66f0c9599a40efa7cbb68",
          "825be916bef0d1c067df327acf90e997be447547e07ccdb1780a873ac1561670");
    named(hello, "358edce7757779a38e9d86978a9d2ba95c7f3f61e55650593c32e3582cfa2ce6",
          "f8b0fe9e38e00b899c9cdbb8d1bce564292c699456566cc1d276e62e6dc0791f");
}

static void test_two_pieces(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_shape shape;
    uint8_t leaves[2][OC_LEAF_LEN];
    uint8_t name[OC_LEAF_LEN];
    (void)state;

    assert_true(oc_shape_of(&shape, 1048581));
    assert_int_equal(shape.sealed_len, 1049677);
    assert_int_equal(shape.piece_count, 2);
    assert_int_equal(oc_piece_len(&shape, 0), 1049656);
    assert_int_equal(oc_piece_len(&shape, 1), 21);
    assert_true(oc_hex_decode(leaves[0], 32, "74a0bd353c91915ed4ee4e423113cd51dfe413a2bfcf7a4b65e44affcc27777a", 64));
    assert_true(oc_hex_decode(leaves[1], 32, "2b413a1d181a5019f831111151a2f1cf6476a680463fa16de07c814d50cfde6b", 64));
    oc_test_ok(oc_object_name(name, shape.sealed_len, (const uint8_t(*)[OC_LEAF_LEN])leaves, 2, &err), &err);
    same_hex(name, sizeof name, "b82874aae1c9eb616441daab7a2809ff4bce76cf3becdcbc9fce42742a087afd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_file),
        cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_assets),
        cmocka_unit_test(test_two_pieces),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
