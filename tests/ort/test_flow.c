/*
 * Both flows against real runtimes, end to end: encrypt, compile with the reference EP, load, run, compare with the plaintext
 * model. Each test runs on every runtime of rig_versions.
 */
#include "test_flow_rig.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/bundle.h"
#include "crypto/hash.h"
#include "crypto/stream.h"
#include "test_flow_model.h"

#define EP "OrtcryptReference"

typedef struct bed {
    const char *version;
    ortcrypt_runtime *runtime;
    ortcrypt_keyring *keyring;
    char *dir;
    char *model;  /* plaintext */
    char *bundle;
    char library[1024]; /* of the EP */
} bed;

static void bed_encrypt(bed *b, const char *model)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_encrypt(model, b->bundle, b->keyring, NULL, NULL, &err), &err);
}

static void bed_open(bed *b, const char *version, const rig_model *spec)
{
    *b = (bed){.version = version, .runtime = rig_runtime(version), .keyring = rig_keyring(), .dir = oc_test_tmpdir()};
    b->model = oc_test_format("%s/model.onnx", b->dir);
    b->bundle = oc_test_format("%s/model.ortc", b->dir);
    rig_reference_path(b->library);
    if (spec != NULL) {
        rig_model_write(b->dir, spec);
        bed_encrypt(b, b->model);
    }
}

static void bed_close(bed *b)
{
    oc_test_rm_rf(b->dir);
    free(b->dir);
    free(b->model);
    free(b->bundle);
    ortcrypt_keyring_free(b->keyring);
    rig_runtime_close(b->runtime);
}

static ortcrypt_compile_options compile_options(const bed *b)
{
    return (ortcrypt_compile_options){.struct_size = sizeof(ortcrypt_compile_options), .ep = EP, .ep_library = b->library};
}

static void bed_compile(const bed *b, const ortcrypt_compile_options *options, ortcrypt_compile_result *result)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_compile(b->runtime, b->bundle, b->keyring, options, result, &err), &err);
}

static ortcrypt_bundle *bed_bundle(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;

    assert_ok(ortcrypt_bundle_open(&bundle, b->bundle, b->keyring, NULL, &err), &err);
    return bundle;
}

static void close_bundle(ortcrypt_bundle *bundle)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
}

/* Opens, runs, closes; the output is the caller's. */
static float *bed_run(const bed *b, const ortcrypt_session_options *options, char **plan)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    ortcrypt_bundle *const bundle = bed_bundle(b);

    assert_ok(ortcrypt_session_open(&session, b->runtime, bundle, options, &err), &err);
    if (plan != NULL) {
        assert_ok(ortcrypt_session_plan(session, plan, &err), &err);
    }
    float *const y = rig_run(ortcrypt_runtime_api(b->runtime), ortcrypt_session_ort(session));
    ortcrypt_session_close(session);
    close_bundle(bundle);
    return y;
}

static void assert_same_output(const bed *b, const ortcrypt_session_options *options, const char *what)
{
    float *const plain = rig_plain(b->runtime, b->model, NULL);
    float *const y = bed_run(b, options, NULL);

    rig_assert_close(y, plain, 2 * MODEL_OUT, what);
    free(plain);
    free(y);
}

static json_t *plan_asset(json_t *plan, const char *role)
{
    size_t index = 0;
    json_t *asset = NULL;

    json_array_foreach(json_object_get(plan, "assets"), index, asset) {
        if (strcmp(json_string_value(json_object_get(asset, "role")), role) == 0) {
            return asset;
        }
    }
    return NULL;
}

static const char *asset_text(json_t *asset, const char *key) { return json_string_value(json_object_get(asset, key)); }

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

/* The source variant at every level: what the optimizer folds must come from the real weights. */
static void folded_weights_are_right(void **state)
{
    static const GraphOptimizationLevel levels[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL};
    static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};
    char path[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        const rig_model spec = {.external = true, .sequence = true, .location = i % 2 == 0 ? "./w.bin" : NULL, .gap = 3};
        if (!rig_runtime_path(path, versions[i])) {
            continue;
        }
        bed b;
        bed_open(&b, versions[i], &spec);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        for (size_t j = 0; j < 2 * sizeof(levels) / sizeof(levels[0]); j++) {
            ortcrypt_session_options run = {.struct_size = sizeof(run)};
            OrtSessionOptions *base = NULL;
            assert_null(api->CreateSessionOptions(&base));
            assert_null(api->SetSessionGraphOptimizationLevel(base, levels[j / 2]));
            assert_null(api->AddSessionConfigEntry(base, "session.disable_prepacking", j % 2 == 0 ? "0" : "1"));
            run.base = base;
            float *const plain = rig_plain(b.runtime, b.model, base);
            float *const y = bed_run(&b, &run, NULL);
            rig_assert_close(y, plain, 2 * MODEL_OUT, versions[i]);
            free(plain);
            free(y);
            api->ReleaseSessionOptions(base);
        }
        bed_close(&b);
    }
}

/* A file of the right name with other content, and a FIFO, in the working folder: neither is ever opened. */
static void planted_files_are_not_opened(void **state)
{
    const rig_model spec = {.external = true, .sequence = true};

    (void)state;
    for (size_t i = 0; i < 2 * RIG_VERSION_COUNT; i++) {
        const ortcrypt_session_options compiled = {.struct_size = sizeof(compiled), .ep = EP};
        const ortcrypt_session_options source = {.struct_size = sizeof(source), .variant = "source"};
        bed b;
        bed_open(&b, rig_versions[i / 2], &spec);
        char *const folder = oc_test_format("%s/cwd", b.dir);
        char *const planted = oc_test_format("%s/w.bin", folder);
        char *const before = getcwd(NULL, 0);
        assert_non_null(before);
        assert_int_equal(mkdir(folder, 0700), 0);
        if (i % 2 == 0) {
            uint8_t *const junk = calloc(1, 1 << 20);
            assert_non_null(junk);
            oc_test_write_file(planted, junk, 1 << 20);
            free(junk);
        } else {
            assert_int_equal(mkfifo(planted, 0600), 0); /* opening it would hang: the test's time limit ends that */
        }
        assert_int_equal(chdir(folder), 0);
        const ortcrypt_compile_options options = compile_options(&b);
        bed_compile(&b, &options, NULL);
        assert_same_output(&b, &compiled, "compiled");
        assert_same_output(&b, &source, "source");
        assert_int_equal(remove(planted), 0);
        assert_int_equal(chdir(before), 0);
        assert_int_equal(rmdir(folder), 0); /* empty: nothing was written there */
        free(before);
        free(planted);
        free(folder);
        bed_close(&b);
    }
}

static void routes_follow_size_and_runtime(void **state)
{
    const rig_model small = {.external = true};
    const rig_model large = {.external = true, .pad = 20u << 20};

    (void)state;
    for (size_t i = 0; i < 2 * RIG_VERSION_COUNT; i++) {
        const bool direct = strcmp(rig_versions[i / 2], "1.32.0") == 0;
        const bool pipe_route = i % 2 == 1;
        const ortcrypt_session_options run = {.struct_size = sizeof(run)};
        char *text = NULL;
        json_error_t where;
        bed b;
        bed_open(&b, rig_versions[i / 2], pipe_route ? &large : &small);
        float *const plain = rig_plain(b.runtime, b.model, NULL);
        float *const y = bed_run(&b, &run, &text);
        rig_assert_close(y, plain, 2 * MODEL_OUT, pipe_route ? "pipe" : "array");
        json_t *const plan = json_loads(text, 0, &where);
        assert_non_null(plan);
        assert_string_equal(asset_text(plan_asset(plan, "model"), "route"), pipe_route ? "pipe" : "array");
        json_t *const external = plan_asset(plan, "external");
        assert_string_equal(asset_text(external, "route"), direct ? "files-in-memory, used directly" : "files-in-memory");
        assert_int_equal(json_is_true(json_object_get(external, "resident")), direct);
        json_decref(plan);
        ortcrypt_free(text, 0);
        free(plain);
        free(y);
        bed_close(&b);
    }
}

/* A compiled variant whose model is long enough for the pipe, with the reference EP. */
static void compiled_model_through_the_pipe(void **state)
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
        rig_assert_close(y, plain, 2 * MODEL_OUT, "compiled, pipe");
        assert_non_null(strstr(text, "\"pipe\""));
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

static void wrong_order_of_closing_is_busy(void **state)
{
    const rig_model spec = {.external = true};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_session *session = NULL;
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        assert_ok(ortcrypt_session_open(&session, b.runtime, bundle, NULL, &err), &err);
        assert_st(ortcrypt_bundle_close(bundle, &err), &err, ORTCRYPT_E_BUSY);
        assert_st(ortcrypt_runtime_close(b.runtime, &err), &err, ORTCRYPT_E_BUSY);
        free(rig_run(ortcrypt_runtime_api(b.runtime), ortcrypt_session_ort(session))); /* still works */
        ortcrypt_session_close(session);
        close_bundle(bundle);
        bed_close(&b);
    }
}

/* Flips one byte in the middle of the object that holds the first part of that role in the variant added last. */
static void damage(const bed *b, oc_role role)
{
    char object[2 * OC_LEAF_LEN + 1] = "";
    size_t len = 0;
    ortcrypt_bundle *const bundle = bed_bundle(b);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_variant *const variant = &manifest->variants[manifest->variant_count - 1];

    for (size_t i = 0; i < variant->part_count && object[0] == '\0'; i++) {
        if (variant->parts[i].role == role) {
            oc_hex_encode(object, oc_manifest_find_asset(manifest, variant->parts[i].asset)->object, OC_LEAF_LEN);
        }
    }
    assert_int_equal(strlen(object), 2 * OC_LEAF_LEN);
    close_bundle(bundle);
    char *const path = oc_test_format("%s/objects/%.2s/%s", b->bundle, object, object);
    uint8_t *const bytes = oc_test_read_file(path, &len);
    bytes[len / 2] ^= 0x10;
    assert_int_equal(remove(path), 0);
    oc_test_write_file(path, bytes, len);
    free(bytes);
    free(path);
}

/* Whatever ORT and the EP make of it, the reason reaches the caller. */
static void damage_is_not_authentic(void **state)
{
    static const oc_role roles[] = {OC_ROLE_EP_CONTEXT, OC_ROLE_MODEL, OC_ROLE_INITIALIZER, OC_ROLE_EXTERNAL, OC_ROLE_MODEL};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        for (size_t j = 0; j < sizeof(roles) / sizeof(roles[0]); j++) {
            const bool source = j >= 3;
            const rig_model spec = {.external = true, .sequence = true, .pad = j == 4 ? 20u << 20 : 0};
            const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = source ? NULL : EP};
            ortcrypt_error err = ORTCRYPT_ERROR_INIT;
            ortcrypt_session *session = NULL;
            bed b;
            bed_open(&b, rig_versions[i], &spec);
            if (!source) {
                const ortcrypt_compile_options options = compile_options(&b);
                bed_compile(&b, &options, NULL);
            }
            damage(&b, roles[j]);
            ortcrypt_bundle *const bundle = bed_bundle(&b);
            assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
            assert_null(session);
            close_bundle(bundle); /* nothing was left holding it */
            bed_close(&b);
        }
    }
}

static void refusals_name_the_reason(void **state)
{
    const rig_model spec = {.external = true};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_session *session = NULL;
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        ortcrypt_compile_options options = compile_options(&b);
        options.ep = "CPUExecutionProvider";
        options.ep_library = NULL;
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "CPUExecutionProvider"));
        options = compile_options(&b);
        options.variant = "source";
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_EXISTS);
        options.variant = "a/b";
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_INVALID);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP, .ep_library = b.library};
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_NOT_FOUND);
        assert_non_null(strstr(err.hint, "compile"));
        run = (ortcrypt_session_options){.struct_size = sizeof(run), .variant = "none"};
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_NOT_FOUND);
        run = (ortcrypt_session_options){.struct_size = sizeof(run), .ep = "NoSuchEP"};
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_NOT_FOUND);
        assert_non_null(strstr(err.hint, "CPUExecutionProvider"));
        close_bundle(bundle);
        bed_close(&b);
    }
}

/* Options that make ORT write plaintext are refused where they can be seen, and switched off where they cannot. */
static void writing_options_are_kept_out(void **state)
{
    static const char *const entries[] = {"ep.context_enable", "ep.share_ep_contexts",
                                          "session.debug_layout_transformation"};
    const rig_model spec = {.external = true};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        bed b;
        bed_open(&b, rig_versions[i], &spec);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        char *const optimized = oc_test_format("%s/optimized.onnx", b.dir);
        char *const profile = oc_test_format("%s/profile", b.dir);
        for (size_t j = 0; j < sizeof(entries) / sizeof(entries[0]); j++) {
            ortcrypt_error err = ORTCRYPT_ERROR_INIT;
            ortcrypt_session_options run = {.struct_size = sizeof(run)};
            ortcrypt_session *session = NULL;
            OrtSessionOptions *base = NULL;
            assert_null(api->CreateSessionOptions(&base));
            assert_null(api->AddSessionConfigEntry(base, entries[j], "1"));
            run.base = base;
            ortcrypt_bundle *const bundle = bed_bundle(&b);
            assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_INVALID);
            assert_non_null(strstr(err.message, entries[j]));
            close_bundle(bundle);
            api->ReleaseSessionOptions(base);
        }
        ortcrypt_session_options run = {.struct_size = sizeof(run)};
        OrtSessionOptions *base = NULL;
        assert_null(api->CreateSessionOptions(&base));
        assert_null(api->SetOptimizedModelFilePath(base, optimized));
        assert_null(api->EnableProfiling(base, profile));
        run.base = base;
        free(bed_run(&b, &run, NULL));
        api->ReleaseSessionOptions(base);
        assert_int_not_equal(access(optimized, F_OK), 0);
        assert_int_equal(remove(b.model), 0);
        char *const data = oc_test_format("%s/w.bin", b.dir);
        assert_int_equal(remove(data), 0);
        oc_test_rm_rf(b.bundle);
        assert_int_equal(rmdir(b.dir), 0); /* nothing else is there: no profile either */
        free(data);
        free(optimized);
        free(profile);
        bed_close(&b);
    }
}

/* An application that creates its own session. */
static void inputs_serve_an_own_session(void **state)
{
    const rig_model spec = {.external = true, .sequence = true};

    (void)state;
    for (size_t i = 0; i < 2 * RIG_VERSION_COUNT; i++) {
        const bool compiled = i % 2 == 1;
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_inputs *inputs = NULL;
        OrtSessionOptions *options = NULL;
        OrtSession *session = NULL;
        const void *model = NULL;
        size_t model_len = 0;
        bed b;
        bed_open(&b, rig_versions[i / 2], &spec);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        const ortcrypt_session_options want = {.struct_size = sizeof(want), .ep = compiled ? EP : NULL};
        assert_null(api->CreateSessionOptions(&options));
        if (compiled) {
            const ortcrypt_compile_options how = compile_options(&b);
            const OrtEpDevice *const *devices = NULL;
            size_t count = 0;
            size_t at = 0;
            bed_compile(&b, &how, NULL);
            assert_null(api->GetEpDevices(ortcrypt_runtime_env(b.runtime), &devices, &count));
            while (at < count && strcmp(api->EpDevice_EpName(devices[at]), EP) != 0) {
                at++;
            }
            assert_null(api->SessionOptionsAppendExecutionProvider_V2(options, ortcrypt_runtime_env(b.runtime), devices + at,
                                                                      1, NULL, NULL, 0));
        }
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        assert_ok(ortcrypt_inputs_open(&inputs, b.runtime, bundle, options, &want, &err), &err);
        assert_st(ortcrypt_bundle_close(bundle, &err), &err, ORTCRYPT_E_BUSY);
        ortcrypt_inputs_model(inputs, &model, &model_len);
        assert_null(api->CreateSessionFromArray(ortcrypt_runtime_env(b.runtime), model, model_len, options, &session));
        float *const plain = rig_plain(b.runtime, b.model, NULL);
        float *const y = rig_run(api, session);
        rig_assert_close(y, plain, 2 * MODEL_OUT, "own session");
        api->ReleaseSession(session);
        ortcrypt_inputs_close(inputs);
        api->ReleaseSessionOptions(options);
        close_bundle(bundle);
        free(plain);
        free(y);
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

/* Before 1.28 there are no callbacks: outside data is refused before ORT sees anything, embedded data needs none. */
static void first_era_embeds_or_refuses(void **state)
{
    const rig_model spec = {.external = true, .sequence = true};
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_compile_result result;
    ortcrypt_session *session = NULL;
    char path[1024];
    bed b;

    (void)state;
    if (!rig_runtime_path(path, "1.24.4")) {
        skip();
    }
    bed_open(&b, "1.24.4", &spec);
    ortcrypt_compile_options options = compile_options(&b);
    assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, EP));
    assert_non_null(strstr(err.hint, "1.28"));
    options.embed = true;
    bed_compile(&b, &options, &result);
    assert_int_equal(result.blob_count, 0);
    assert_int_equal(result.initializer_count, 0); /* this runtime's location callback is not used */
    assert_same_output(&b, &run, "embedded on 1.24.4");
    rig_runtime_close(b.runtime);
    b.runtime = rig_runtime("1.32.0"); /* outside data made here does not load there */
    options = compile_options(&b);
    bed_compile(&b, &options, &result);
    rig_runtime_close(b.runtime);
    b.runtime = rig_runtime("1.24.4");
    assert_ok(ortcrypt_runtime_register_ep(b.runtime, EP, b.library, &err), &err);
    const ortcrypt_session_options newest = {.struct_size = sizeof(newest), .variant = result.variant};
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &newest, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    close_bundle(bundle);
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
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_ORT);
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
    options.embed = false; /* gets as far as reading, where there is no such object */
    const ortcrypt_status st = ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err);
    assert_true(st == ORTCRYPT_E_NOT_AUTHENTIC || st == ORTCRYPT_E_IO);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiles_and_runs),
        cmocka_unit_test(folded_weights_are_right),
        cmocka_unit_test(planted_files_are_not_opened),
        cmocka_unit_test(routes_follow_size_and_runtime),
        cmocka_unit_test(compiled_model_through_the_pipe),
        cmocka_unit_test(many_engines),
        cmocka_unit_test(wrong_order_of_closing_is_busy),
        cmocka_unit_test(damage_is_not_authentic),
        cmocka_unit_test(refusals_name_the_reason),
        cmocka_unit_test(writing_options_are_kept_out),
        cmocka_unit_test(inputs_serve_an_own_session),
        cmocka_unit_test(real_models_compile),
        cmocka_unit_test(first_era_embeds_or_refuses),
        cmocka_unit_test(nothing_compiled),
        cmocka_unit_test(compiles_into_a_new_bundle),
        cmocka_unit_test(embedding_two_gib_is_refused_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
