/*
 * What the tests on real runtimes share: where things are, a scratch folder, and refusals with their words.
 * ORTCRYPT_DEPS (runtimes, models) and ORTCRYPT_BUILD (the reference EP) come from the environment.
 */
#ifndef TEST_FLOW_RIG_H
#define TEST_FLOW_RIG_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ortcrypt/compile.h"
#include "support/support.h"

#define RIG_UNUSED __attribute__((unused))

static const char *const rig_versions[] = {"1.30.0", "1.32.0"};
#define RIG_VERSION_COUNT (sizeof(rig_versions) / sizeof(rig_versions[0]))

#define assert_st(status, err, expected) oc_test_status((status), (expected), (err))
#define assert_ok(status, err) oc_test_ok((status), (err))

/* Path of a runtime; `path` has PATH_MAX-like room of 1024 bytes. False when it is not there. */
RIG_UNUSED static int rig_runtime_path(char path[1024], const char *version)
{
    (void)snprintf(path, 1024, "%s/ort/%s/libonnxruntime.so.%s", oc_test_env("ORTCRYPT_DEPS"), version, version);
    return access(path, R_OK) == 0;
}

RIG_UNUSED static ortcrypt_runtime *rig_runtime(const char *version)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    char path[1024];

    if (!rig_runtime_path(path, version)) {
        fail_msg("%s is missing: run make setup", path);
    }
    assert_ok(ortcrypt_runtime_open(&runtime, path, NULL, &err), &err);
    return runtime;
}

RIG_UNUSED static void rig_runtime_close(ortcrypt_runtime *runtime)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_runtime_close(runtime, &err), &err);
}

RIG_UNUSED static void rig_reference_path(char path[1024])
{
    (void)snprintf(path, 1024, "%s/libortcrypt_reference_ep.so", oc_test_env("ORTCRYPT_BUILD"));
    if (access(path, R_OK) != 0) {
        (void)snprintf(path, 1024, "%s/reference-ep/libortcrypt_reference_ep.so", oc_test_env("ORTCRYPT_BUILD"));
    }
}

/* Runs a model with input x[2, 128] and output y[2, 256]; the caller frees. */
RIG_UNUSED static float *rig_run(const OrtApi *api, OrtSession *session)
{
    static const char *const inputs[] = {"x"};
    static const char *const outputs[] = {"y"};
    const int64_t shape[] = {2, 128};
    float x[2 * 128];
    OrtMemoryInfo *memory = NULL;
    OrtValue *in = NULL;
    OrtValue *out = NULL;
    const void *data = NULL;

    for (size_t i = 0; i < 2 * 128; i++) {
        x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    }
    assert_null(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    assert_null(api->CreateTensorWithDataAsOrtValue(memory, x, sizeof(x), shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in));
    OrtStatus *const status = api->Run(session, NULL, inputs, (const OrtValue *const *)&in, 1, outputs, 1, &out);
    if (status != NULL) {
        fail_msg("%s", api->GetErrorMessage(status));
    }
    assert_null(api->GetTensorData(out, &data));
    float *const y = malloc(2 * 256 * sizeof(*y));
    assert_non_null(y);
    memcpy(y, data, 2 * 256 * sizeof(*y));
    api->ReleaseValue(in);
    api->ReleaseValue(out);
    api->ReleaseMemoryInfo(memory);
    return y;
}

/* Equal within 1e-5 of the range: kernels of one runtime may sum in another order. */
RIG_UNUSED static void rig_assert_close(const float *a, const float *b, size_t count, const char *what)
{
    double range = 0;
    double worst = 0;

    for (size_t i = 0; i < count; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        range = fmax(range, fabs((double)b[i]));
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    }
    if (!(worst <= 1e-5 * range)) {
        fail_msg("%s: off by %g in a range of %g", what, worst, range);
    }
}

/* Output of the plaintext model, by path. options NULL: ORT's defaults. */
RIG_UNUSED static float *rig_plain(ortcrypt_runtime *runtime, const char *model, const OrtSessionOptions *options)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtSessionOptions *defaults = NULL;
    OrtSession *session = NULL;

    assert_null(api->CreateSessionOptions(&defaults));
    OrtStatus *const status =
        api->CreateSession(ortcrypt_runtime_env(runtime), model, options != NULL ? options : defaults, &session);
    if (status != NULL) {
        fail_msg("%s: %s", model, api->GetErrorMessage(status));
    }
    float *const y = rig_run(api, session);
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(defaults);
    return y;
}

/* A keyring with one identity and its recipient. */
RIG_UNUSED static ortcrypt_keyring *rig_keyring(void)
{
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_keyring *keyring = NULL;

    assert_ok(ortcrypt_identity_generate(identity, recipient, &err), &err);
    assert_ok(ortcrypt_keyring_new(&keyring, &err), &err);
    assert_ok(ortcrypt_keyring_add_recipient(keyring, recipient, &err), &err);
    assert_ok(ortcrypt_keyring_add_identity(keyring, identity, strlen(identity), &err), &err);
    return keyring;
}

#endif
