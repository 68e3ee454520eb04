/* describe and verify: what they prove, what they say, and that they miss nothing. */
#include <jansson.h>

#include "bundle/internal.h"
#include "unit/bundle_models.h"

/* net.onnx with w.bin (three pieces) and an extra file, encrypted. */
static void make_bundle(const bench *b)
{
    static const ext main[] = {{"w", "w.bin", 0, 2500000}};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    put_file(b, "w.bin", 2500000, 1);
    put_file(b, "vocab.txt", 1000, 2);
    put_model(b, "net.onnx", main, 1, NULL, 0);
    const char *const extra[] = {at(b, "vocab.txt")};
    const ortcrypt_encrypt_options options = {.struct_size = sizeof options, .extra_files = extra, .extra_count = 1};
    oc_test_ok(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), b->writer, &options, NULL, &err), &err);
}

/* The report of verify; *status and err as it returned. NULL when there is none. */
static json_t *verify(bench *b, const ortcrypt_keyring *keyring, const ortcrypt_open_options *options, ortcrypt_status expected,
                      ortcrypt_error *err)
{
    char *text = NULL;
    json_t *report = NULL;

    oc_test_status(ortcrypt_bundle_verify(at(b, "bundle"), keyring, options, &text, err), expected, err);
    if (text != NULL) {
        report = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(report);
    }
    ortcrypt_free(text, 0);
    return report;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}

/* The object file of a part of the source variant. Heap. */
static char *object_path(const bench *b, oc_role role, const char *name)
{
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    const oc_part *const part = oc_variant_find_part(&bundle->manifest->variants[0], role, name);
    char hex[65];

    assert_non_null(part);
    oc_hex_encode(hex, oc_manifest_find_asset(bundle->manifest, part->asset)->object, OC_LEAF_LEN);
    close_bundle(bundle);
    return oc_test_format("%s/bundle/objects/%.2s/%s", b->dir, hex, hex);
}

static void flip(const char *path, size_t offset)
{
    size_t len = 0;
    uint8_t *const data = oc_test_read_file(path, &len);

    assert_true(offset < len);
    data[offset] ^= 0x40;
    oc_test_write_file(path, data, len);
    free(data);
}

static char *key_file_path(const bench *b)
{
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    char name[OC_NAMED_SIZE];

    oc_key_file_name(name, bundle->manifest_id);
    close_bundle(bundle);
    return oc_test_format("%s/bundle/%s", b->dir, name);
}

static void test_describe(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char *text = NULL;

    make_bundle(b);
    oc_test_ok(ortcrypt_bundle_describe(at(b, "bundle"), NULL, NULL, &text, &err), &err);
    json_t *report = json_loads(text, 0, NULL);
    assert_string_equal(text_at(report, "format"), "ortcrypt/1");
    assert_int_equal(strlen(text_at(report, "manifest_id")), 64);
    const json_t *const key_file = json_object_get(report, "key_file");
    assert_true(json_is_true(json_object_get(key_file, "present")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(key_file, "stanzas"), 0)), "X25519");
    assert_true(json_is_false(json_object_get(report, "signature")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(report, "objects"), "count")), 3);
    assert_null(json_object_get(report, "variants"));
    assert_null(strstr(text, "w.bin")); /* nothing of the inside */
    json_decref(report);
    ortcrypt_free(text, 0);

    oc_test_ok(ortcrypt_bundle_describe(at(b, "bundle"), b->reader, NULL, &text, &err), &err);
    report = json_loads(text, 0, NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "recipients"), 0)), b->recipient);
    assert_int_equal(json_integer_value(json_object_get(report, "sequence")), 1);
    const json_t *const variant = json_array_get(json_object_get(report, "variants"), 0);
    assert_string_equal(text_at(variant, "x-file-name"), "net.onnx");
    assert_int_equal(json_integer_value(json_object_get(variant, "tensor_count")), 1);
    const json_t *const part = json_array_get(json_object_get(variant, "parts"), 1);
    assert_string_equal(text_at(part, "role"), "external");
    assert_string_equal(text_at(part, "name"), "w.bin");
    assert_int_equal(json_integer_value(json_object_get(part, "len")), 2500000);
    json_decref(report);
    ortcrypt_free(text, 0);
}

static void test_intact(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b);
    json_t *report = verify(b, NULL, NULL, ORTCRYPT_OK, &err);
    assert_string_equal(text_at(report, "status"), "ok");
    assert_true(json_is_false(json_object_get(report, "with_key")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "not_proven"), 0)),
                        "authenticity not checked: no key");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(report, "checked"), "objects")), 3);
    json_decref(report);

    report = verify(b, b->reader, NULL, ORTCRYPT_OK, &err);
    assert_true(json_is_true(json_object_get(report, "with_key")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(report, "checked"), "assets")), 3);
    assert_int_equal(json_array_size(json_object_get(report, "damaged")), 0);
    assert_int_equal(json_array_size(json_object_get(report, "unreferenced")), 0);
    json_decref(report);
    oc_test_ok(ortcrypt_bundle_verify(at(b, "bundle"), b->reader, NULL, NULL, &err), &err);
}

static void test_damaged(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b);
    char *const w = object_path(b, OC_ROLE_EXTERNAL, "w.bin");
    char *const vocab = object_path(b, OC_ROLE_EXTRA, "vocab.txt");
    flip(w, 1500000); /* in the second piece */
    flip(vocab, 3);   /* in the salt */

    json_t *report = verify(b, NULL, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err);
    assert_int_equal(json_array_size(json_object_get(report, "damaged")), 2);
    assert_string_equal(text_at(report, "status"), "ORTCRYPT_E_NOT_AUTHENTIC");
    assert_non_null(strstr(err.message, "and 1 more damaged"));
    json_decref(report);

    report = verify(b, b->reader, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err);
    const json_t *const damaged = json_object_get(report, "damaged");
    size_t seen = 0;
    assert_int_equal(json_array_size(damaged), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *const item = json_array_get(damaged, i);
        const json_t *const part = json_array_get(json_object_get(item, "parts"), 0);
        assert_int_equal(strlen(text_at(item, "asset")), 32);
        assert_string_equal(text_at(part, "variant"), "source");
        seen |= strcmp(text_at(part, "name"), "w.bin") == 0 ? 1u : 0u;
        seen |= strcmp(text_at(part, "name"), "vocab.txt") == 0 ? 2u : 0u;
    }
    assert_int_equal(seen, 3);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(report, "checked"), "assets")), 1);
    json_decref(report);

    /* gone altogether: only who knows the manifest can tell */
    flip(vocab, 3);
    assert_int_equal(unlink(w), 0);
    report = verify(b, b->reader, NULL, ORTCRYPT_E_IO, &err);
    assert_int_equal(json_array_size(json_object_get(report, "damaged")), 1);
    json_decref(report);
    report = verify(b, NULL, NULL, ORTCRYPT_OK, &err);
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "not_proven"), 1)),
                        "completeness not checked: the list of objects is encrypted");
    json_decref(report);
    free(w);
    free(vocab);
}

/* A holder of the bundle key seals other bytes under the same asset id: every tag is right, the leaf is not. */
static void test_right_tags_wrong_leaf(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t context[OC_CONTEXT_MAX];
    uint8_t plain[1000] = {0};
    oc_buf sealed = OC_BUF(4096);

    make_bundle(b);
    char *const path = object_path(b, OC_ROLE_EXTRA, "vocab.txt");
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    const oc_part *const part = oc_variant_find_part(&bundle->manifest->variants[0], OC_ROLE_EXTRA, "vocab.txt");
    oc_test_ok(oc_stream_seal_all(bundle->key.data, oc_asset_context(context, bundle->manifest->bundle_id, part->asset),
                                  OC_SPAN(plain, sizeof plain), &sealed, &err), &err);
    oc_test_write_file(path, sealed.data, sealed.len);

    uint8_t back[1000];
    oc_test_ok(oc_bundle_read(bundle, oc_manifest_find_asset(bundle->manifest, part->asset), back, NULL, &err), &err);
    assert_memory_equal(back, plain, sizeof back); /* without a pin the tags suffice: it is authentic to a key holder */
    close_bundle(bundle);

    json_decref(verify(b, b->reader, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    json_decref(verify(b, NULL, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    oc_buf_free(&sealed);
    free(path);
}

static void test_unreferenced(void **state)
{
    bench *const b = *state;
    const ortcrypt_monitor monitor = {.notice = bench_notice, .state = b};
    const ortcrypt_open_options options = {.struct_size = sizeof options, .monitor = &monitor};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    static const char name[] = "bundle/objects/ab/ab00000000000000000000000000000000000000000000000000000000000000";

    make_bundle(b);
    (void)mkdir(at(b, "bundle/objects/ab"), 0700);
    put_file(b, name, 100, 3);
    json_t *report = verify(b, b->reader, &options, ORTCRYPT_OK, &err);
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "unreferenced"), 0)), name + 18);
    assert_int_equal(b->notice_count, 1);
    json_decref(report);
    json_decref(verify(b, NULL, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err)); /* its name is not its content's */
}

static void test_key_file(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b);
    char *const path = key_file_path(b);
    size_t len = 0;
    uint8_t *const data = oc_test_read_file(path, &len);
    oc_test_write_file(path, "age-encryption.org/v2\n", 22);
    json_t *report = verify(b, NULL, NULL, ORTCRYPT_E_FORMAT, &err);
    assert_string_equal(text_at(json_array_get(json_object_get(report, "damaged"), 0), "file"), "key file");
    json_decref(report);
    assert_null(verify(b, b->reader, NULL, ORTCRYPT_E_FORMAT, &err)); /* nothing could be examined */

    assert_int_equal(unlink(path), 0);
    json_decref(verify(b, NULL, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    oc_test_write_file(path, data, len);

    ortcrypt_keyring *other = NULL;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    oc_test_ok(ortcrypt_identity_generate(identity, recipient, &err), &err);
    oc_test_ok(ortcrypt_keyring_new(&other, &err), &err);
    oc_test_ok(ortcrypt_keyring_add_identity(other, identity, strlen(identity), &err), &err);
    assert_null(verify(b, other, NULL, ORTCRYPT_E_NO_KEY, &err));
    ortcrypt_keyring_free(other);
    free(data);
    free(path);
}

static void test_manifest(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char *text = NULL;

    make_bundle(b);
    size_t len = 0;
    uint8_t *const data = oc_test_read_file(at(b, "bundle/manifest"), &len);
    oc_test_write_file(at(b, "bundle/manifest"), data, 71); /* shorter than any stream */
    assert_null(verify(b, NULL, NULL, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    assert_int_equal(unlink(at(b, "bundle/manifest")), 0);
    assert_null(verify(b, NULL, NULL, ORTCRYPT_E_IO, &err));
    oc_test_status(ortcrypt_bundle_describe(at(b, "bundle"), NULL, NULL, &text, &err), ORTCRYPT_E_IO, &err);
    assert_null(text);
    oc_test_write_file(at(b, "bundle/manifest"), data, len);
    free(data);
    oc_test_write_file(at(b, "bundle/FORMAT"), "ortcrypt/2\n", 11);
    assert_null(verify(b, NULL, NULL, ORTCRYPT_E_UNSUPPORTED, &err));
    oc_test_write_file(at(b, "bundle/FORMAT"), "other", 5);
    assert_null(verify(b, NULL, NULL, ORTCRYPT_E_FORMAT, &err));
}

static void test_demands(void **state)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;
    ortcrypt_open_options options = {.struct_size = sizeof options, .pin = zeros};
    char *text = NULL;

    make_bundle(b);
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    ortcrypt_bundle_get_info(bundle, &info);
    close_bundle(bundle);
    assert_null(verify(b, NULL, &options, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    assert_null(verify(b, b->reader, &options, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    oc_test_status(ortcrypt_bundle_describe(at(b, "bundle"), NULL, &options, &text, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    options.pin = info.manifest_id;
    json_decref(verify(b, NULL, &options, ORTCRYPT_OK, &err));
    json_decref(verify(b, b->reader, &options, ORTCRYPT_OK, &err));
    options.bundle_id = info.bundle_id;
    options.min_sequence = 1;
    json_decref(verify(b, b->reader, &options, ORTCRYPT_OK, &err));
    assert_null(verify(b, NULL, &options, ORTCRYPT_E_INVALID, &err)); /* cannot be known without a key */
    options.min_sequence = 2;
    assert_null(verify(b, b->reader, &options, ORTCRYPT_E_NOT_AUTHENTIC, &err));
    oc_test_status(ortcrypt_bundle_verify(NULL, NULL, NULL, NULL, &err), ORTCRYPT_E_INVALID, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_describe, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_intact, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_damaged, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_right_tags_wrong_leaf, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_unreferenced, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_key_file, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_manifest, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_demands, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
