/*
 * Every allocation of src/format fails once: the call says so, leaves its output alone and keeps no memory. The program's own
 * malloc stands before libc's (in jansson too), so under a sanitizer, which does the same, there is nothing to run.
 */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "format/manifest.h"
#include "support/failing_malloc.h"
#include "unit/onnx_build.h"

#ifndef SANITIZED

static const char text[] =
    "{\"format\":\"ortcrypt/1\",\"bundle\":\"000102030405060708090a0b0c0d0e0f\",\"sequence\":7,\"creator\":\"c\",\"labels\":{\"a\":\"b\"},"
    "\"assets\":{\"00000000000000000000000000000001\":{\"size\":24,"
    "\"object\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
    "\"pieces\":[\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"],\"x-a\":{\"k\":[1]}}},"
    "\"variants\":[{\"id\":\"e\",\"kind\":\"compiled\",\"ep\":\"E\",\"ep_version\":\"1\",\"runtime\":\"1\",\"device\":\"d\",\"compatibility\":\"c\","
    "\"options\":{\"o\":\"1\"},\"embed\":0,\"verified\":true,\"parts\":[{\"role\":\"model\",\"name\":\"\","
    "\"asset\":\"00000000000000000000000000000001\",\"x-p\":1}],\"tensors\":[{\"name\":\"w\",\"dtype\":\"float\",\"shape\":[2,3],"
    "\"asset\":\"00000000000000000000000000000001\",\"offset\":0,\"length\":24,\"x-t\":\"u\"}],\"x-v\":[]}],\"x-last\":\"z\"}";

static oc_manifest *manifest; /* of text */
static pb model;
static pb external_tensor;

static ortcrypt_status parse_manifest(ortcrypt_error *err)
{
    oc_manifest *m = NULL;
    const ortcrypt_status st = oc_manifest_parse(&m, OC_SPAN(text, sizeof text - 1), err);

    assert_true(st == ORTCRYPT_OK || m == NULL);
    oc_manifest_free(m);
    return st;
}

static ortcrypt_status print_manifest(ortcrypt_error *err)
{
    oc_buf out = OC_BUF(OC_MANIFEST_MAX);
    const ortcrypt_status st = oc_manifest_print(manifest, &out, err);

    assert_int_equal(out.len, st == ORTCRYPT_OK ? sizeof text - 1 : 0);
    oc_buf_free(&out);
    return st;
}

static ortcrypt_status build_manifest(ortcrypt_error *err)
{
    static const uint8_t id[OC_BUNDLE_ID_LEN];
    oc_asset asset = {.size = 24, .piece_count = 1};
    oc_manifest *m = NULL;
    oc_variant *v = NULL;

    ortcrypt_status st = oc_manifest_new(&m, id, err);
    asset.pieces = __libc_calloc(1, OC_LEAF_LEN);
    live++; /* it goes over to the manifest */
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_add_asset(m, &asset, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_add_variant(m, "v", "compiled", &v, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_variant_add_part(v, OC_ROLE_MODEL, "", id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_variant_add_tensor(v, &manifest->variants[0].tensors[0], err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_pair_add(&v->options, &v->option_count, "k", "v", err);
    }
    free(asset.pieces);
    oc_manifest_free(m);
    return st;
}

static ortcrypt_status scan_model(ortcrypt_error *err)
{
    oc_onnx_model *found = NULL;
    const ortcrypt_status st = pb_scan(&model, &found, err);

    assert_true(st == ORTCRYPT_OK || found == NULL);
    oc_onnx_model_free(found);
    return st;
}

static ortcrypt_status drop_bytes(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    (void)state;
    (void)data;
    (void)len;
    (void)err;
    return ORTCRYPT_OK;
}

static ortcrypt_status rewrite_model(ortcrypt_error *err)
{
    static const uint8_t zeros[24];
    static oc_onnx_model *found;
    const oc_span zero_span = OC_SPAN(zeros, sizeof zeros);
    const oc_span span = OC_SPAN(model.data, model.len);
    const oc_source zero_source = oc_source_memory(&zero_span);
    const oc_source source = oc_source_memory(&span);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &zero_source, .length = 24};

    if (found == NULL) { /* the scan is not what is tried here */
        counting = false;
        oc_test_ok(oc_onnx_scan(&found, &source, "m.onnx", err), err);
        counting = true;
        live = 0;
    }
    return oc_onnx_rewrite(found, &source, &edit, 1, drop_bytes, NULL, NULL, err);
}

static ortcrypt_status parse_key_file(ortcrypt_error *err)
{
    static const char payload[] = "{\"format\":\"ortcrypt/1\",\"bundle\":\"000102030405060708090a0b0c0d0eff\","
                                  "\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}\nrecipient a\n";
    uint8_t id[OC_BUNDLE_ID_LEN];
    uint8_t key[OC_BUNDLE_KEY_LEN];
    char *recipients = NULL;
    const ortcrypt_status st = oc_keyfile_parse(OC_SPAN(payload, sizeof payload - 1), id, key, &recipients, err);

    free(recipients);
    return st;
}

/* `blurred`: what jansson makes of a few of them. */
static void fail_each(ortcrypt_status (*call)(ortcrypt_error *err), long at_least, ortcrypt_status blurred)
{
    for (long n = 0;; n++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        until_failure = n;
        all_after_it = true;
        failed = false;
        live = 0;
        counting = true;
        const ortcrypt_status st = call(&err);
        counting = false;
        const long kept = live;
        if (kept != 0) {
            fail_msg("allocation %ld fails: %ld blocks are kept", n, kept);
        }
        if (!failed) {
            oc_test_ok(st, &err);
            assert_true(n >= at_least); /* else nothing was tried */
            return;
        }
        if (st != blurred) {
            oc_test_status(st, ORTCRYPT_E_NO_MEMORY, &err);
        }
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    pb sub = {.len = 0}, attribute = {.len = 0}, node = {.len = 0}, ep = {.len = 0}, g = {.len = 0};

    oc_test_ok(oc_manifest_parse(&manifest, OC_SPAN(text, sizeof text - 1), &err), &err);
    external_tensor = pb_external("w", "w.bin");
    pb_message(&sub, 5, &external_tensor);
    pb_message(&attribute, 6, &sub);
    pb_message(&node, 5, &attribute);
    pb_text(&ep, 4, "EPContext");
    pb_text(&ep, 7, "com.microsoft");
    pb_message(&g, 1, &node);
    pb_message(&g, 1, &ep);
    model = pb_model(&g);

    fail_each(parse_manifest, 40, ORTCRYPT_E_NOT_AUTHENTIC);
    fail_each(print_manifest, 40, ORTCRYPT_E_INVALID);
    fail_each(build_manifest, 8, ORTCRYPT_E_NO_MEMORY);
    fail_each(scan_model, 10, ORTCRYPT_E_NO_MEMORY);
    fail_each(rewrite_model, 3, ORTCRYPT_E_NO_MEMORY);
    fail_each(parse_key_file, 1, ORTCRYPT_E_NO_MEMORY);
    oc_manifest_free(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void is_for_plain_builds(void **state)
{
    (void)state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_for_plain_builds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
