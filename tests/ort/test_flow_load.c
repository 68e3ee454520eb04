/*
 * Loading: right weights at every level, nothing opened that was not given, routes, closing order, damage, refusals. Tests run
 * on every runtime of rig_versions unless they say otherwise.
 */
#include "test_flow_bed.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/bundle.h"

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

/* The caller's entry would make ORT 1.31 and newer use, for as long as the session lives, buffers that are there to be copied. */
static void copied_buffers_are_not_used_in_place(void **state)
{
    const rig_model misaligned = {.external = true, .gap = 1};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        OrtSessionOptions *base = NULL;
        bed b;
        bed_open(&b, rig_versions[i], &misaligned);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        assert_null(api->CreateSessionOptions(&base));
        assert_null(api->AddSessionConfigEntry(base, "session.use_external_initializer_file_buffers_directly", "1"));
        assert_null(api->AddSessionConfigEntry(base, "session.disable_prepacking", "1"));
        const ortcrypt_session_options run = {.struct_size = sizeof(run), .base = base};
        assert_same_output(&b, &run, "misaligned weights, with the caller's entry");
        api->ReleaseSessionOptions(base);
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
        const bool paged = i % 2 == 1;
        const ortcrypt_session_options run = {.struct_size = sizeof(run)};
        char *text = NULL;
        json_error_t where;
        bed b;
        bed_open(&b, rig_versions[i / 2], paged ? &large : &small);
        float *const plain = rig_plain(b.runtime, b.model, NULL);
        float *const y = bed_run(&b, &run, &text);
        rig_assert_close(y, plain, 2 * MODEL_OUT, paged ? "array, decrypted as read" : "array");
        json_t *const plan = json_loads(text, 0, &where);
        assert_non_null(plan);
        assert_string_equal(asset_text(plan_asset(plan, "model"), "route"), paged ? "array, decrypted as read" : "array");
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
        run = (ortcrypt_session_options){.struct_size = 4};
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_INVALID);
        run = (ortcrypt_session_options){.struct_size = sizeof(run), .ep_option_count = 1};
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_INVALID);
        options = compile_options(&b);
        options.ep = NULL;
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, ORTCRYPT_E_INVALID);
        assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, NULL, NULL, &err), &err, ORTCRYPT_E_INVALID);
        close_bundle(bundle);
        bed_close(&b);
    }
}

/* Options that make ORT write plaintext are refused where they can be seen, and switched off where they cannot. */
static void writing_options_are_kept_out(void **state)
{
    static const char *const entries[] = {"ep.context_enable", "ep.share_ep_contexts", "ep.stop_share_ep_contexts",
                                          "session.save_external_prepacked_constant_initializers", "ep.context_file_path",
                                          "session.collect_node_memory_stats_to_file", "session.node_partition_config_file",
                                          "session.model_external_initializers_file_folder_path", "ep.some.dump_file",
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
            const ortcrypt_status expected = strstr(entries[j], "share") != NULL ? ORTCRYPT_E_UNSUPPORTED : ORTCRYPT_E_INVALID;
            assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, expected);
            assert_non_null(strstr(err.message, entries[j]));
            close_bundle(bundle);
            api->ReleaseSessionOptions(base);
        }
        ortcrypt_session_options run = {.struct_size = sizeof(run)};
        OrtSessionOptions *base = NULL;
        assert_null(api->CreateSessionOptions(&base));
        assert_null(api->SetOptimizedModelFilePath(base, optimized));
        assert_null(api->EnableProfiling(base, profile));
        assert_null(api->AddSessionConfigEntry(base, "session.enable_profiling", "1")); /* ORT does not show it as an entry */
        assert_null(api->AddSessionConfigEntry(base, "session.optimized_model_filepath", optimized));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_weights_are_right),
        cmocka_unit_test(planted_files_are_not_opened),
        cmocka_unit_test(copied_buffers_are_not_used_in_place),
        cmocka_unit_test(routes_follow_size_and_runtime),
        cmocka_unit_test(wrong_order_of_closing_is_busy),
        cmocka_unit_test(damage_is_not_authentic),
        cmocka_unit_test(refusals_name_the_reason),
        cmocka_unit_test(writing_options_are_kept_out),
        cmocka_unit_test(inputs_serve_an_own_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
