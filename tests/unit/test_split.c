/* Reading bundles whose x-split somebody wrote who holds the key: one fault each, refused by decrypt, and by verify where it can tell. */
#include "bundle/bundle.h"
#include "bundle/split.h"
#include "unit/bundle_models.h"

typedef struct lie {
    const char *member; /* of x-split, and the JSON put in place of its value; NULL: removed */
    const char *value;
    bool verifies; /* only following the recipe shows it */
} lie;

static const char recipe[] = "M\0\0\0\0\0\0\0\3W\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2"; /* "abc", then "XY" of "WXYZ" */

static void put(oc_txn *txn, const char *data, size_t len, uint8_t id[OC_ASSET_ID_LEN])
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    oc_test_ok(oc_txn_put(txn, OC_SPAN(data, len), id, &err), &err);
}

/* A split source, its x-split changed as `l` says (NULL: as it must be). */
static void make_bundle(const bench *b, const char *name, const lie *l, oc_role role, const char *another)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t model[OC_ASSET_ID_LEN], weights[OC_ASSET_ID_LEN], how[OC_ASSET_ID_LEN], sha256[OC_SHA256_LEN];
    oc_txn *txn = NULL;
    oc_variant *variant = NULL;
    char *text = NULL;

    oc_test_ok(oc_sha256(sha256, OC_SPAN("abcXY", 5), &err), &err);
    oc_test_ok(oc_txn_create(&txn, at(b, name), b->writer, &err), &err);
    oc_test_ok(oc_manifest_add_variant(oc_txn_manifest(txn), "v", "source", &variant, &err), &err);
    put(txn, "abc", 3, model);
    put(txn, "WXYZ", 4, weights);
    put(txn, recipe, sizeof recipe - 1, how);
    oc_test_ok(oc_variant_add_part(variant, OC_ROLE_MODEL, "", model, &err), &err);
    oc_test_ok(oc_variant_add_part(variant, role, "w", weights, &err), &err);
    oc_test_ok(oc_split_print(&text, weights, how, 5, sha256, &err), &err);
    if (l != NULL) {
        json_t *const json = json_loads(text, 0, NULL);
        free(text);
        if (l->value == NULL) {
            assert_int_equal(json_object_del(json, l->member), 0);
        } else {
            assert_int_equal(json_object_set_new(json, l->member, json_loads(l->value, JSON_DECODE_ANY, NULL)), 0);
        }
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
    }
    oc_test_ok(oc_pair_add(&variant->extensions, &variant->extension_count, OC_SPLIT_MEMBER, text, &err), &err);
    free(text);
    if (another != NULL) {
        oc_test_ok(oc_pair_add(&variant->extensions, &variant->extension_count, "x-original", another, &err), &err);
    }
    oc_test_ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

static ortcrypt_status decrypt(const bench *b, const char *name, ortcrypt_error *err)
{
    ortcrypt_bundle *const bundle = open_bundle(b, name);
    const ortcrypt_status status = ortcrypt_bundle_decrypt(bundle, at(b, "out"), NULL, err);

    close_bundle(bundle);
    return status;
}

static void the_truth(void **state)
{
    const bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    size_t len = 0;

    make_bundle(b, "bundle", NULL, OC_ROLE_EXTERNAL, NULL);
    oc_test_ok(decrypt(b, "bundle", &err), &err);
    uint8_t *const data = oc_test_read_file(at(b, "out/model.onnx"), &len);
    assert_int_equal(len, 5);
    assert_memory_equal(data, "abcXY", 5);
    assert_false(there(b, "out/w"));
    free(data);
}

static void lies(void **state)
{
    static const lie all[] = {
        {"weights", NULL, false},
        {"recipe", NULL, false},
        {"size", NULL, false},
        {"sha256", NULL, false},
        {"more", "1", false},
        {"weights", "\"00112233445566778899aabbccddeeff\"", false},
        {"weights", "7", false},
        {"recipe", "\"00112233445566778899aabbccddeeff\"", false},
        {"recipe", "[]", false},
        {"size", "0", false},
        {"size", "\"5\"", false},
        {"size", "2147483648", false},
        {"size", "4", true},
        {"size", "6", true},
        {"sha256", "\"00\"", false},
        {"sha256", "\"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\"", false},
        {"sha256", "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"", true},
    };
    const bench *const b = *state;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        char name[16];
        (void)snprintf(name, sizeof name, "bundle%zu", i);
        make_bundle(b, name, &all[i], OC_ROLE_EXTERNAL, NULL);
        oc_test_status(decrypt(b, name, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
        assert_int_equal(count_names(b, "out"), 0);
        oc_test_status(ortcrypt_bundle_verify(at(b, name), b->reader, NULL, NULL, &err),
                       all[i].verifies ? ORTCRYPT_OK : ORTCRYPT_E_NOT_AUTHENTIC, &err);
    }
}

static void not_an_external_part(void **state)
{
    const bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b, "extra", NULL, OC_ROLE_EXTRA, NULL);
    oc_test_status(decrypt(b, "extra", &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    make_bundle(b, "both", NULL, OC_ROLE_EXTERNAL, "{\"asset\":\"00112233445566778899aabbccddeeff\"}");
    oc_test_status(decrypt(b, "both", &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_truth, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(lies, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(not_an_external_part, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
