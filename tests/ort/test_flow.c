/*
 * Flow 1 and flow 2 against real runtimes, end to end: encrypt, compile with the reference EP, load, run, compare with the
 * plaintext model. Tests run on every runtime of rig_versions unless they say otherwise.
 */
#include "test_flow_bed.h"

#include "bundle/bundle.h"
#include "crypto/hash.h"
#include "crypto/stream.h"

/* Flow 1 and 2 with external data in, EPContext data outside and inside the model. */
static void compiles_and_runs(void **state)
{
    const rig_model spec = {.external = true, .sequence = true};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        for (int embed = 0; embed < 2; embed++) {
            ortcrypt_compile_options options = compile_options(&b);
            const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP};
            ortcrypt_compile_result result;
            ortcrypt_variant_info variant;
            ortcrypt_error err = ORTCRYPT_ERROR_INIT;
            options.embed = embed == 1;
            bed_compile(&b, &options, &result);
            assert_string_equal(result.variant, embed == 0 ? "ortcryptreference-1" : "ortcryptreference-2");
            assert_true(result.ep_context_count >= 1);
            assert_true(embed == 1 ? result.blob_count == 0 : result.blob_count >= 1);
            assert_true(embed == 1 ? result.blob_len == 0 : result.blob_len > 4 * MODEL_OUT * MODEL_IN);
            assert_int_equal(result.initializer_count, 1); /* k, which stays with the CPU EP */
            assert_true(result.verified);
            ortcrypt_bundle *const bundle = bed_bundle(&b);
            assert_ok(ortcrypt_bundle_get_variant(bundle, 1 + (size_t)embed, &variant, &err), &err);
            assert_string_equal(variant.ep, EP);
            assert_string_equal(variant.runtime, b.version);
            assert_int_equal(variant.embed, embed);
            assert_true(variant.verified);
            assert_true(variant.compatibility[0] != '\0');
            close_bundle(bundle);
            assert_same_output(&b, &run, embed == 1 ? "embedded" : "external");
        }
        bed_close(&b);
    }
}

/* A compiled variant whose model is long enough for the pipe, with the reference EP. */
static void a_long_compiled_model_is_parsed_as_it_is_decrypted(void **state)
{
    const rig_model spec = {.external = true, .pad = 20u << 20};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP};
        char *text = NULL;
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        ortcrypt_compile_options options = compile_options(&b);
        options.embed = true;
        bed_compile(&b, &options, NULL);
        float *const plain = rig_plain(b.runtime, b.model, NULL);
        float *const y = bed_run(&b, &run, &text);
        rig_assert_close(y, plain, 2 * MODEL_OUT, "compiled, long");
        assert_non_null(strstr(text, "\"array, decrypted as read\""));
        ortcrypt_free(text, 0);
        free(plain);
        free(y);
        bed_close(&b);
    }
}

static void many_engines(void **state)
{
    const rig_model spec = {.external = true, .sequence = true};
    static const char *const keys[] = {"max_nodes_per_engine"};
    static const char *const values[] = {"1"};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP};
        ortcrypt_compile_result result;
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        ortcrypt_compile_options options = compile_options(&b);
        options.ep_option_keys = keys;
        options.ep_option_values = values;
        options.ep_option_count = 1;
        bed_compile(&b, &options, &result);
        assert_true(result.ep_context_count >= 5);
        assert_int_equal(result.blob_count, result.ep_context_count);
        assert_same_output(&b, &run, "many engines");
        bed_close(&b);
    }
}

/* The real models of the demo: compiled, loaded (the load check runs them through both flows), nothing readable left. */
static void real_models_compile(void **state)
{
    static const char *const names[] = {"ppocr_rec", "ppocr_cls", "magika", "silero_vad", "minilm_int8"};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            ortcrypt_compile_result result;
            bed b;
            bed_open(&b, rig_versions[i], NULL);
            char *const model = oc_test_format("%s/models/%s.onnx", oc_test_env("ORTCRYPT_DEPS"), names[j]);
            bed_encrypt(&b, model);
            const ortcrypt_compile_options options = compile_options(&b);
            bed_compile(&b, &options, &result);
            assert_true(result.verified);
            assert_true(result.blob_count >= 1);
            free(model);
            bed_close(&b);
        }
    }
}

/* Before 1.28 the runtime has no callbacks: the EP gets ours by id. Embedded data needs none. */
static void first_era_takes_callbacks_by_id(void **state)
{
    const rig_model spec = {.external = true, .sequence = true};
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP};
    ortcrypt_compile_result result;
    char path[1024];
    bed b;

    (void)state;
    if (!rig_runtime_path(path, "1.24.4")) {
        skip();
    }
    bed_open(&b, "1.24.4", &spec);
    ortcrypt_compile_options options = compile_options(&b);
    bed_compile(&b, &options, &result);
    assert_true(result.blob_count != 0 && result.blob_count == result.ep_context_count);
    assert_int_equal(result.initializer_count, 0); /* this runtime's location callback is not used */
    assert_same_output(&b, &run, "outside on 1.24.4");
    options.embed = true;
    bed_compile(&b, &options, &result);
    assert_int_equal(result.blob_count, 0);
    assert_int_equal(result.initializer_count, 0);
    assert_same_output(&b, &run, "embedded on 1.24.4");
    bed_close(&b);
}

/* A model of which the EP takes nothing. */
static void nothing_compiled(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_compile_result result;
        bed b;
        bed_open(&b, rig_versions[i], NULL);
        rig_sequence_model_write(b.dir);
        bed_encrypt(&b, b.model);
        ortcrypt_compile_options options = compile_options(&b);
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_INPUT);
        assert_string_equal(err.message, "OrtcryptReference compiled no node of this model");
        options.allow_none_compiled = true;
        bed_compile(&b, &options, &result);
        assert_int_equal(result.ep_context_count, 0);
        assert_int_equal(result.initializer_count, 1);
        bed_close(&b);
    }
}

/* The old bundle stays as it is; the new one has everything. */
static void compiles_into_a_new_bundle(void **state)
{
    const rig_model spec = {.external = true};
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_compile_result result;
        ortcrypt_bundle_info info;
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        char *const out = oc_test_format("%s/new.ortc", b.dir);
        ortcrypt_compile_options options = compile_options(&b);
        options.out_path = out;
        options.variant = "mine";
        bed_compile(&b, &options, &result);
        assert_string_equal(result.variant, "mine");
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        ortcrypt_bundle_get_info(bundle, &info);
        assert_int_equal(info.variant_count, 1);
        close_bundle(bundle);
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_EXISTS);
        oc_test_rm_rf(b.bundle);
        assert_int_equal(rename(out, b.bundle), 0);
        assert_same_output(&b, &run, "new bundle");
        free(out);
        bed_close(&b);
    }
}

/* docs/format.md: SHA-256 of a label, the file's length and the leaves. */
static void name_object(oc_asset *asset)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf text = OC_BUF(1u << 20);
    uint64_t sealed_len = 0;
    uint8_t number[8];

    assert_true(oc_stream_sealed_len(asset->size, &sealed_len));
    oc_store_be64(number, sealed_len);
    assert_ok(oc_buf_append(&text, OC_OBJECT_LABEL, sizeof(OC_OBJECT_LABEL), &err), &err);
    assert_ok(oc_buf_append(&text, number, sizeof(number), &err), &err);
    assert_ok(oc_buf_append(&text, asset->pieces, asset->piece_count * sizeof(*asset->pieces), &err), &err);
    assert_ok(oc_sha256(asset->object, OC_SPAN(text.data, text.len), &err), &err);
    oc_buf_free(&text);
}

/* Says of the external data that it has 2 GiB, so that nobody has to write that much. */
static void enlarge(const bed *b)
{
    const uint64_t len = 1ull << 31;
    const size_t pieces = (size_t)(len / OC_PIECE_PLAIN_LEN) + 1;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;

    assert_ok(oc_txn_begin(&txn, b->bundle, NULL, b->keyring, NULL, &err), &err);
    oc_manifest *const manifest = oc_txn_manifest(txn);
    for (size_t i = 0; i < manifest->asset_count; i++) {
        oc_asset *const asset = &manifest->assets[i];
        if (memcmp(asset->id, manifest->variants[0].tensors[0].asset, OC_ASSET_ID_LEN) == 0) {
            free(asset->pieces);
            asset->pieces = calloc(pieces, sizeof(*asset->pieces));
            assert_non_null(asset->pieces);
            asset->piece_count = pieces;
            asset->size = len;
            name_object(asset);
        }
    }
    assert_ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

static void embedding_two_gib_is_refused_first(void **state)
{
    const rig_model spec = {.external = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    bed b;

    (void)state;
    bed_open(&b, "1.32.0", &spec);
    enlarge(&b);
    ortcrypt_compile_options options = compile_options(&b);
    options.embed = true;
    assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_LIMIT);
    assert_non_null(strstr(err.message, "2 GiB"));
    options.embed = false;
    options.weightless = true; /* the source would have to be handed over in one piece */
    assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_LIMIT);
    assert_non_null(strstr(err.message, "weightless"));
    options.weightless = false; /* gets as far as reading, where there is no such object */
    const ortcrypt_status st = ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err);
    assert_true(st == ORTCRYPT_E_NOT_AUTHENTIC || st == ORTCRYPT_E_IO);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiles_and_runs),
        cmocka_unit_test(a_long_compiled_model_is_parsed_as_it_is_decrypted),
        cmocka_unit_test(many_engines),
        cmocka_unit_test(real_models_compile),
        cmocka_unit_test(first_era_takes_callbacks_by_id),
        cmocka_unit_test(nothing_compiled),
        cmocka_unit_test(compiles_into_a_new_bundle),
        cmocka_unit_test(embedding_two_gib_is_refused_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
