/*
 * An application's own CompileModel and own session on ONNX Runtimes without and with callbacks: ours by id in its session options.
 * What was closed is refused by name, never read or written in a file.
 */
#include "test_flow_bed.h"

static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};

static OrtSessionOptions *own_options(const bed *b)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const OrtEpDevice *const *all = NULL;
    const OrtEpDevice *device = NULL;
    OrtSessionOptions *options = NULL;
    size_t count = 0;

    assert_null(api->GetEpDevices(ortcrypt_runtime_env(b->runtime), &all, &count));
    for (size_t i = 0; i < count; i++) {
        device = strcmp(api->EpDevice_EpName(all[i]), EP) == 0 ? all[i] : device;
    }
    assert_non_null(device);
    assert_null(api->CreateSessionOptions(&options));
    assert_null(api->SessionOptionsAppendExecutionProvider_V2(options, ortcrypt_runtime_env(b->runtime), &device, 1, NULL, NULL, 0));
    return options;
}

static char *id_of(const bed *b, const OrtSessionOptions *options)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    size_t size = 0;

    assert_null(api->GetSessionConfigEntry(options, "ortcrypt.ep_context_id", NULL, &size));
    char *const id = malloc(size);
    assert_null(api->GetSessionConfigEntry(options, "ortcrypt.ep_context_id", id, &size));
    return id;
}

/* CompileModel by the application: no EPContext callback is registered, the id in `options` is all there is. */
static OrtStatus *compile_own(const bed *b, const OrtSessionOptions *options, ortcrypt_output *output)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const OrtCompileApi *const c = api->GetCompileApi();
    OrtModelCompilationOptions *compilation = NULL;

    assert_null(c->CreateModelCompilationOptionsFromSessionOptions(ortcrypt_runtime_env(b->runtime), options, &compilation));
    assert_null(c->ModelCompilationOptions_SetInputModelPath(compilation, b->model));
    assert_null(c->ModelCompilationOptions_SetEpContextEmbedMode(compilation, false));
    assert_null(c->ModelCompilationOptions_SetEpContextBinaryInformation(compilation, "./", "model.onnx"));
    assert_null(c->ModelCompilationOptions_SetOutputModelWriteFunc(compilation, ortcrypt_write_model, output));
    OrtStatus *const status = c->CompileModel(ortcrypt_runtime_env(b->runtime), compilation);
    c->ReleaseModelCompilationOptions(compilation);
    return status;
}

static void refused(const bed *b, OrtStatus *status, const char *part)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);

    assert_non_null(status);
    if (strstr(api->GetErrorMessage(status), part) == NULL) {
        fail_msg("expected \"%s\" in: %s", part, api->GetErrorMessage(status));
    }
    api->ReleaseStatus(status);
}

static void compile_with_id(const bed *b)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_output *output = NULL;
    ortcrypt_compile_result result;
    ortcrypt_compile_options how = compile_options(b);

    how.session_options = own_options(b);
    assert_null(api->AddSessionConfigEntry(how.session_options, "ep.context_file_path", "plain_ctx.onnx"));
    assert_st(ortcrypt_output_open(&output, b->runtime, b->bundle, b->keyring, &how, &err), &err, ORTCRYPT_E_INVALID);
    api->ReleaseSessionOptions(how.session_options);
    how.session_options = own_options(b);
    assert_ok(ortcrypt_output_open(&output, b->runtime, b->bundle, b->keyring, &how, &err), &err);
    char *const id = id_of(b, how.session_options);
    assert_int_equal(strspn(id, "0123456789abcdef"), 32);
    assert_int_equal(strlen(id), 32);
    free(id);
    assert_null(compile_own(b, how.session_options, output));
    assert_ok(ortcrypt_output_commit(output, &result, &err), &err);
    assert_true(result.blob_count != 0);
    ortcrypt_output_close(output);
    /* the options still name what was closed */
    refused(b, compile_own(b, how.session_options, NULL), "names callbacks that are not there");
    api->ReleaseSessionOptions(how.session_options);
}

static void load_with_id(const bed *b)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const ortcrypt_session_options how = {.struct_size = sizeof(how), .ep = EP};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    OrtSessionOptions *const options = own_options(b);
    ortcrypt_bundle *const bundle = bed_bundle(b);
    ortcrypt_inputs *inputs = NULL;
    OrtSession *session = NULL;
    const void *model = NULL;
    size_t model_len = 0;

    assert_ok(ortcrypt_inputs_open(&inputs, b->runtime, bundle, options, &how, &err), &err);
    ortcrypt_inputs_model(inputs, &model, &model_len);
    assert_null(api->CreateSessionFromArray(ortcrypt_runtime_env(b->runtime), model, model_len, options, &session));
    float *const plain = rig_plain(b->runtime, b->model, NULL);
    float *const y = rig_run(api, session);
    rig_assert_close(y, plain, 2 * MODEL_OUT, b->version);
    free(plain);
    free(y);
    api->ReleaseSession(session);
    void *const kept = malloc(model_len);
    memcpy(kept, model, model_len);
    char *const first = id_of(b, options);
    ortcrypt_inputs_close(inputs);
    refused(b, api->CreateSessionFromArray(ortcrypt_runtime_env(b->runtime), kept, model_len, options, &session),
            "names callbacks that are not there");
    free(kept);
    /* other inputs, another id */
    assert_ok(ortcrypt_inputs_open(&inputs, b->runtime, bundle, options, &how, &err), &err);
    char *const second = id_of(b, options);
    assert_string_not_equal(first, second);
    free(first);
    free(second);
    ortcrypt_inputs_close(inputs);
    close_bundle(bundle);
    api->ReleaseSessionOptions(options);
}

static void own_flows(void **state)
{
    const rig_model spec = {0};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        bed b;
        bed_open(&b, versions[i], &spec);
        assert_ok(ortcrypt_runtime_register_ep(b.runtime, EP, b.library, &err), &err);
        compile_with_id(&b);
        load_with_id(&b);
        bed_close(&b);
    }
}

/* Without a place for the id the EP would write a file. */
static void before_128_the_options_are_needed(void **state)
{
    const rig_model spec = {0};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_output *output = NULL;
    bed b;

    (void)state;
    bed_open(&b, "1.24.4", &spec);
    ortcrypt_compile_options how = compile_options(&b);
    assert_st(ortcrypt_output_open(&output, b.runtime, b.bundle, b.keyring, &how, &err), &err, ORTCRYPT_E_INVALID);
    assert_non_null(strstr(err.hint, "session_options"));
    assert_null(output);
    how.embed = true;
    assert_ok(ortcrypt_output_open(&output, b.runtime, b.bundle, b.keyring, &how, &err), &err);
    ortcrypt_output_close(output);
    bed_close(&b);
}

/* Base options that carry another session's id: it is not taken over. */
static void ids_of_others_are_forgotten(void **state)
{
    const rig_model spec = {0};
    ortcrypt_compile_result result;
    bed b;

    (void)state;
    bed_open(&b, "1.24.4", &spec);
    const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
    OrtSessionOptions *base = NULL;
    assert_null(api->CreateSessionOptions(&base));
    assert_null(api->AddSessionConfigEntry(base, "ortcrypt.ep_context_id", "00112233445566778899aabbccddeeff"));
    ortcrypt_compile_options how = compile_options(&b);
    how.base = base;
    how.embed = true;
    bed_compile(&b, &how, &result);
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP, .base = base};
    assert_same_output(&b, &run, "embedded: no id at all");
    api->ReleaseSessionOptions(base);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_flows),
        cmocka_unit_test(before_128_the_options_are_needed),
        cmocka_unit_test(ids_of_others_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
