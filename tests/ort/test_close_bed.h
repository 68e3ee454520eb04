/* What the tests of closing share: bundles with a compiled variant, an application's own session, and what must be refused. */
#ifndef TEST_CLOSE_BED_H
#define TEST_CLOSE_BED_H

#include "test_flow_bed.h"

static const rig_model external_model = {.external = true, .sequence = true};

/* `source`: the source variant on the CPU EP, else the compiled one on the reference EP. */
static inline ortcrypt_session_options variant_options(bool source)
{
    return (ortcrypt_session_options){.struct_size = sizeof(ortcrypt_session_options), .ep = source ? NULL : EP};
}

static inline void bed_open_compiled(bed *b, const char *version)
{
    bed_open(b, version, &external_model);
    const ortcrypt_compile_options options = compile_options(b);
    bed_compile(b, &options, NULL);
}

static inline void assert_both_busy(const bed *b, ortcrypt_bundle *bundle)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_st(ortcrypt_bundle_close(bundle, &err), &err, ORTCRYPT_E_BUSY);
    assert_non_null(strstr(err.message, "in use"));
    assert_st(ortcrypt_runtime_close(b->runtime, &err), &err, ORTCRYPT_E_BUSY);
    assert_non_null(strstr(err.message, "in use"));
}

static inline void assert_runs(const bed *b, OrtSession *session, const char *what)
{
    float *const plain = rig_plain(b->runtime, b->model, NULL);
    float *const y = rig_run(ortcrypt_runtime_api(b->runtime), session);

    rig_assert_close(y, plain, 2 * MODEL_OUT, what);
    free(plain);
    free(y);
}

/* The application's own session on ortcrypt's inputs. */
typedef struct own {
    OrtSessionOptions *options;
    OrtSession *session;
    ortcrypt_inputs *inputs;
} own;

static inline void append_reference_ep(const bed *b, OrtSessionOptions *options)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const OrtEpDevice *const *devices = NULL;
    const OrtEpDevice *device = NULL;
    size_t count = 0;

    assert_null(api->GetEpDevices(ortcrypt_runtime_env(b->runtime), &devices, &count));
    for (size_t i = 0; i < count; i++) {
        device = strcmp(api->EpDevice_EpName(devices[i]), EP) == 0 ? devices[i] : device;
    }
    assert_non_null(device);
    assert_null(api->SessionOptionsAppendExecutionProvider_V2(options, ortcrypt_runtime_env(b->runtime), &device, 1, NULL, NULL, 0));
}

static inline own own_open(const bed *b, ortcrypt_bundle *bundle, bool source)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const ortcrypt_session_options options = variant_options(source);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    own made = {NULL, NULL, NULL};
    const void *model = NULL;
    size_t model_len = 0;

    assert_null(api->CreateSessionOptions(&made.options));
    if (!source) {
        append_reference_ep(b, made.options);
    }
    assert_ok(ortcrypt_inputs_open(&made.inputs, b->runtime, bundle, made.options, &options, &err), &err);
    ortcrypt_inputs_model(made.inputs, &model, &model_len);
    assert_null(api->CreateSessionFromArray(ortcrypt_runtime_env(b->runtime), model, model_len, made.options, &made.session));
    return made;
}

static inline void assert_refused(const bed *b, OrtStatus *status)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);

    assert_non_null(status);
    assert_true(strlen(api->GetErrorMessage(status)) > 10);
    api->ReleaseStatus(status);
}

static inline size_t variant_count(const bed *b)
{
    ortcrypt_bundle_info info;
    ortcrypt_bundle *const bundle = bed_bundle(b);

    ortcrypt_bundle_get_info(bundle, &info);
    close_bundle(bundle);
    return info.variant_count;
}

static inline ortcrypt_output *output_open(const bed *b)
{
    const ortcrypt_compile_options options = compile_options(b);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_output *output = NULL;

    assert_ok(ortcrypt_output_open(&output, b->runtime, b->bundle, b->keyring, &options, &err), &err);
    return output;
}

#endif
