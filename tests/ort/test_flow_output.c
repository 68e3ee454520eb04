/*
 * The output for applications that call CompileModel themselves, and what commit refuses. Models and blobs are written
 * through the callbacks by hand here, so that every kind of wrong result can be made.
 */
#include "test_flow_rig.h"

#include <pthread.h>
#include <unistd.h>

#include "bundle/bundle.h"
#include "test_flow_model.h"

#define EP "OrtcryptReference"
#define VERSION "1.32.0"

typedef struct bed {
    ortcrypt_runtime *runtime;
    ortcrypt_keyring *keyring;
    char *dir;
    char *bundle;
    char library[1024];
    ortcrypt_output *output;
} bed;

static void begin(bed *b, const ortcrypt_compile_options *more)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_compile_options options = more != NULL ? *more : (ortcrypt_compile_options){0};

    options.struct_size = sizeof(options);
    options.ep = EP;
    options.ep_library = b->library;
    assert_ok(ortcrypt_output_open(&b->output, b->runtime, b->bundle, b->keyring, &options, &err), &err);
}

static void bed_open(bed *b, const ortcrypt_compile_options *options)
{
    const rig_model spec = {.external = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    *b = (bed){.runtime = rig_runtime(VERSION), .keyring = rig_keyring(), .dir = oc_test_tmpdir()};
    char *const model = oc_test_format("%s/model.onnx", b->dir);
    b->bundle = oc_test_format("%s/model.ortc", b->dir);
    rig_reference_path(b->library);
    rig_model_write(b->dir, &spec);
    assert_ok(ortcrypt_encrypt(model, b->bundle, b->keyring, NULL, NULL, &err), &err);
    free(model);
    begin(b, options);
}

static void bed_close(bed *b)
{
    ortcrypt_output_close(b->output);
    oc_test_rm_rf(b->dir);
    free(b->dir);
    free(b->bundle);
    ortcrypt_keyring_free(b->keyring);
    rig_runtime_close(b->runtime);
}

/* What the bundle has: variants, and nothing half done. */
static size_t variant_count(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;
    ortcrypt_bundle *bundle = NULL;

    assert_ok(ortcrypt_bundle_open(&bundle, b->bundle, b->keyring, NULL, &err), &err);
    ortcrypt_bundle_get_info(bundle, &info);
    assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
    return info.variant_count;
}

static void write_ok(bed *b, const char *name, const char *text)
{
    OrtStatus *const status = ortcrypt_write_named(b->output, name, text, strlen(text));

    if (status != NULL) {
        fail_msg("%s", ortcrypt_runtime_api(b->runtime)->GetErrorMessage(status));
    }
}

static void write_refused(bed *b, const char *name, const char *text, const char *words)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    OrtStatus *const status = ortcrypt_write_named(b->output, name, text, text != NULL ? strlen(text) : 3);

    assert_non_null(status);
    assert_non_null(strstr(api->GetErrorMessage(status), words));
    api->ReleaseStatus(status);
}

static void write_model(bed *b, const node *nodes, size_t count, const char *external)
{
    pb model = compiled_model(nodes, count, external);

    for (size_t at = 0; at < model.len; at += 100) { /* in pieces, as ORT does */
        assert_null(ortcrypt_write_model(b->output, model.data + at, model.len - at < 100 ? model.len - at : 100));
    }
    free(model.data);
}

static void commit_refused(bed *b, ortcrypt_status expected, const char *words)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_st(ortcrypt_output_commit(b->output, NULL, &err), &err, expected);
    if (strstr(err.message, words) == NULL) {
        fail_msg("'%s' is not in: %s", words, err.message);
    }
    ortcrypt_output_close(b->output);
    b->output = NULL;
    assert_int_equal(variant_count(b), 1);
}

static const ortcrypt_compile_options unchecked = {.no_load_check = true};

static void commit_publishes(void **state)
{
    static const node nodes[] = {{"a.bin", 0, 1}, {"b.bin", 0, 1}, {"a.bin", 0, 0}, {NULL, 1, 0}, {"inside", 1, 1}};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_compile_result result;
    bed b;

    (void)state;
    bed_open(&b, &unchecked);
    assert_int_equal(variant_count(&b), 1); /* nothing is visible yet */
    write_ok(&b, "a.bin", "first");
    write_ok(&b, "b.bin", "");
    write_model(&b, nodes, 5, NULL);
    assert_null(ortcrypt_write_model(b.output, NULL, 0));
    assert_ok(ortcrypt_output_commit(b.output, &result, &err), &err);
    assert_st(ortcrypt_output_commit(b.output, &result, &err), &err, ORTCRYPT_E_INVALID);
    assert_string_equal(result.variant, "ortcryptreference-1");
    assert_int_equal(result.ep_context_count, 5);
    assert_int_equal(result.blob_count, 2);
    assert_int_equal(result.blob_len, 5);
    assert_false(result.verified);
    ortcrypt_output_close(b.output);
    b.output = NULL;
    assert_int_equal(variant_count(&b), 2);
    bed_close(&b);
}

static void commit_refuses_what_is_not_whole(void **state)
{
    static const node missing[] = {{"a.bin", 0, 1}};
    static const node nameless[] = {{"", 0, 1}};
    static const node absent[] = {{NULL, 0, 1}};
    static const node hollow[] = {{NULL, 1, 1}};
    static const node orphan[] = {{"", 0, 0}};
    static const node good[] = {{"inside", 1, 1}};
    bed b;

    (void)state;
    bed_open(&b, &unchecked);
    write_model(&b, missing, 1, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "'a.bin' that was never written through the callback: plaintext of the model may have reached the disk");
    begin(&b, &unchecked);
    write_model(&b, nameless, 1, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "has no data");
    begin(&b, &unchecked);
    write_model(&b, absent, 1, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "has no data");
    begin(&b, &unchecked);
    write_model(&b, hollow, 1, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "has no data");
    begin(&b, &unchecked);
    write_model(&b, orphan, 1, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "main context that is not there");
    begin(&b, &unchecked);
    write_model(&b, NULL, 0, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "compiled no node");
    begin(&b, &unchecked);
    write_model(&b, good, 1, "w.bin"); /* a part of the source, not of this variant */
    commit_refused(&b, ORTCRYPT_E_NOT_AUTHENTIC, "external tensor 'w'");
    begin(&b, &unchecked);
    commit_refused(&b, ORTCRYPT_E_INVALID, "no compiled model was written");
    begin(&b, &unchecked);
    assert_null(ortcrypt_write_model(b.output, "{\"json\": true}", 14));
    commit_refused(&b, ORTCRYPT_E_INPUT, "");
    begin(&b, NULL);
    write_model(&b, good, 1, NULL); /* whole, but no engine of the EP: the load check says so */
    commit_refused(&b, ORTCRYPT_E_ORT, "does not load");
    bed_close(&b);
}

/* A refused callback decides, even when the caller goes on as if nothing had been. */
static void failed_callback_decides(void **state)
{
    static const node nodes[] = {{"a.bin", 0, 1}};
    bed b;

    (void)state;
    bed_open(&b, &unchecked);
    write_ok(&b, "a.bin", "first");
    write_ok(&b, "a.bin", "first"); /* the same bytes again are accepted */
    write_refused(&b, "a.bin", "other", "twice, with different bytes");
    write_model(&b, nodes, 1, NULL);
    commit_refused(&b, ORTCRYPT_E_INPUT, "twice, with different bytes");
    begin(&b, &unchecked);
    write_refused(&b, "", "x", "usable name");
    write_refused(&b, "\xff", "x", "usable name");
    write_refused(&b, NULL, "x", "usable name");
    write_refused(&b, "a", NULL, "usable name");
    bed_close(&b);
}

static void rewrite_policies(void **state)
{
    static const node nodes[] = {{"a.bin", 0, 1}};
    static const char *const expected[] = {"second", "firstsecond"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const ortcrypt_compile_options options = {
            .no_load_check = true, .rewrite = i == 0 ? ORTCRYPT_REWRITE_REPLACE : ORTCRYPT_REWRITE_APPEND};
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_bundle *bundle = NULL;
        char text[64] = "";
        bed b;
        bed_open(&b, &options);
        write_ok(&b, "a.bin", "first");
        write_ok(&b, "a.bin", "second");
        write_model(&b, nodes, 1, NULL);
        assert_ok(ortcrypt_output_commit(b.output, NULL, &err), &err);
        ortcrypt_output_close(b.output);
        b.output = NULL;
        assert_ok(ortcrypt_bundle_open(&bundle, b.bundle, b.keyring, NULL, &err), &err);
        const oc_manifest *const manifest = oc_bundle_manifest(bundle);
        const oc_part *const part = oc_variant_find_part(&manifest->variants[1], OC_ROLE_EP_CONTEXT, "a.bin");
        assert_non_null(part);
        const oc_asset *const asset = oc_manifest_find_asset(manifest, part->asset);
        assert_int_equal(asset->size, strlen(expected[i]));
        assert_int_equal(manifest->asset_count, 4); /* model, w.bin, compiled model, blob: no replaced one */
        assert_ok(oc_bundle_read(bundle, asset, text, NULL, &err), &err);
        assert_string_equal(text, expected[i]);
        assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
        bed_close(&b);
    }
}

typedef struct writer {
    bed *b;
    unsigned number;
    unsigned failures;
} writer;

static void *write_many(void *state)
{
    writer *const w = state;
    char name[32];

    for (unsigned i = 0; i < 8; i++) { /* names 0 to 7 are everybody's, with the same bytes; the others are one thread's */
        (void)snprintf(name, sizeof(name), "shared-%u", i);
        w->failures += ortcrypt_write_named(w->b->output, name, name, strlen(name)) != NULL;
        (void)snprintf(name, sizeof(name), "own-%u-%u", w->number, i);
        w->failures += ortcrypt_write_named(w->b->output, name, name, strlen(name)) != NULL;
    }
    return NULL;
}

static void callbacks_are_thread_safe(void **state)
{
    static const node nodes[] = {{"shared-3", 0, 1}};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_compile_result result;
    pthread_t threads[4];
    writer writers[4];
    bed b;

    (void)state;
    bed_open(&b, &unchecked);
    for (unsigned i = 0; i < 4; i++) {
        writers[i] = (writer){&b, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failures, 0);
    }
    write_model(&b, nodes, 1, NULL);
    assert_ok(ortcrypt_output_commit(b.output, &result, &err), &err);
    assert_int_equal(result.blob_count, 8 + 4 * 8);
    ortcrypt_output_close(b.output);
    b.output = NULL;
    bed_close(&b);
}

static void output_holds_lock_and_runtime(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_output *second = NULL;
    bed b;

    (void)state;
    bed_open(&b, &unchecked);
    const ortcrypt_compile_options options = {.struct_size = sizeof(options), .ep = EP};
    assert_st(ortcrypt_runtime_close(b.runtime, &err), &err, ORTCRYPT_E_BUSY);
    assert_st(ortcrypt_output_open(&second, b.runtime, b.bundle, b.keyring, &options, &err), &err, ORTCRYPT_E_BUSY);
    assert_null(second);
    ortcrypt_output_close(b.output);
    b.output = NULL;
    assert_ok(ortcrypt_output_open(&second, b.runtime, b.bundle, b.keyring, &options, &err), &err);
    ortcrypt_output_close(second);
    bed_close(&b);
}

/* The location callback: large tensors become assets, the rest stays in the model. */
static void initializer_locations(void **state)
{
    static float values[512];
    const int64_t shape[] = {16, 32};
    const int64_t small_shape[] = {4};
    OrtExternalInitializerInfo *place = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtAllocator *allocator = NULL;
    OrtValue *large = NULL;
    OrtValue *small = NULL;
    OrtValue *text = NULL;
    bed b;

    (void)state;
    bed_open(&b, &unchecked);
    const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
    assert_null(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    assert_null(api->GetAllocatorWithDefaultOptions(&allocator));
    assert_null(api->CreateTensorWithDataAsOrtValue(memory, values, sizeof(values), shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &large));
    assert_null(api->CreateTensorWithDataAsOrtValue(memory, values, 16, small_shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &small));
    assert_null(api->CreateTensorAsOrtValue(allocator, shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &text));
    assert_null(ortcrypt_initializer_location(b.output, "large", large, NULL, &place));
    assert_non_null(place);
    assert_int_equal(strncmp(api->ExternalInitializerInfo_GetFilePath(place), "ortc-init-", 10), 0);
    assert_int_equal(strlen(api->ExternalInitializerInfo_GetFilePath(place)), 10 + 32);
    assert_int_equal(api->ExternalInitializerInfo_GetFileOffset(place), 0);
    assert_int_equal(api->ExternalInitializerInfo_GetByteSize(place), sizeof(values));
    api->ReleaseExternalInitializerInfo(place);
    assert_null(ortcrypt_initializer_location(b.output, "large", large, NULL, &place)); /* a second of that name */
    assert_null(place);
    assert_null(ortcrypt_initializer_location(b.output, "small", small, NULL, &place));
    assert_null(place);
    assert_null(ortcrypt_initializer_location(b.output, "text", text, NULL, &place));
    assert_null(place);
    api->ReleaseValue(large);
    api->ReleaseValue(small);
    api->ReleaseValue(text);
    api->ReleaseMemoryInfo(memory);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_publishes),
        cmocka_unit_test(commit_refuses_what_is_not_whole),
        cmocka_unit_test(failed_callback_decides),
        cmocka_unit_test(rewrite_policies),
        cmocka_unit_test(callbacks_are_thread_safe),
        cmocka_unit_test(output_holds_lock_and_runtime),
        cmocka_unit_test(initializer_locations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
