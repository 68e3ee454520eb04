/* The six EPContext functions on real runtimes of all three eras: what is set is what an EP gets. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ep_context/internal.h"
#include "ortcrypt/ep_context.h"

static const OrtApiBase *load(const char *version)
{
    const char *const deps = getenv("ORTCRYPT_DEPS");
    assert_non_null(deps);
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/ort/%s/libonnxruntime.so.%s", deps, version, version);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept: ORT does not like to be unloaded */
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    const OrtApiBase *(*get)(void) = NULL;
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    assert_non_null(get);
    return get();
}

static void ok(const OrtApi *api, OrtStatus *status)
{
    if (status != NULL) {
        print_error("%s\n", api->GetErrorMessage(status));
        api->ReleaseStatus(status);
        fail();
    }
}

static OrtStatus *ORT_API_CALL read_nothing(void *state, const char *name, OrtAllocator *allocator, void **buffer,
                                            size_t *size)
{
    (void)state, (void)name, (void)allocator, (void)buffer, (void)size;
    return NULL;
}

static OrtStatus *ORT_API_CALL write_nothing(void *state, const char *name, const void *buffer, size_t size)
{
    (void)state, (void)name, (void)buffer, (void)size;
    return NULL;
}

static void read_side(const OrtApi *api, const ortcrypt_ep_context_api *six)
{
    OrtSessionOptions *options = NULL;
    OrtEpContextConfig *config = NULL;
    OrtReadNamedBufferFunc read = NULL;
    OrtWriteNamedBufferFunc write = write_nothing;
    void *state = &options;
    int mine = 0;
    ok(api, api->CreateSessionOptions(&options));
    ok(api, six->SessionOptions_SetEpContextDataReadFunc(options, read_nothing, &mine));
    ok(api, six->SessionOptions_GetEpContextConfig(options, &config));
    assert_non_null(config);
    ok(api, six->EpContextConfig_GetEpContextDataReadFunc(config, &read, &state));
    assert_true(read == read_nothing);
    assert_ptr_equal(state, &mine);
    ok(api, six->EpContextConfig_GetEpContextDataWriteFunc(config, &write, &state));
    assert_true(write == NULL);
    assert_null(state);

    /* the config is a snapshot, and outlives the options */
    ok(api, six->SessionOptions_SetEpContextDataReadFunc(options, NULL, &mine));
    OrtEpContextConfig *cleared = NULL;
    ok(api, six->SessionOptions_GetEpContextConfig(options, &cleared));
    api->ReleaseSessionOptions(options);
    ok(api, six->EpContextConfig_GetEpContextDataReadFunc(config, &read, &state));
    assert_true(read == read_nothing);
    assert_ptr_equal(state, &mine);
    ok(api, six->EpContextConfig_GetEpContextDataReadFunc(cleared, &read, &state));
    assert_true(read == NULL);
    assert_null(state);
    six->ReleaseEpContextConfig(cleared);
    six->ReleaseEpContextConfig(config);
    six->ReleaseEpContextConfig(NULL);
}

static void refused(const OrtApi *api, OrtStatus *status)
{
    assert_non_null(status);
    assert_int_equal(api->GetErrorCode(status), ORT_INVALID_ARGUMENT);
    assert_true(strlen(api->GetErrorMessage(status)) > 0);
    api->ReleaseStatus(status);
}

/* Each call without one of its arguments: refused, and what it would have written is as it was. */
static void missing_arguments(const OrtApi *api, const ortcrypt_ep_context_api *six)
{
    OrtSessionOptions *options = NULL;
    OrtEpContextConfig *config = NULL;
    OrtReadNamedBufferFunc read = read_nothing;
    OrtWriteNamedBufferFunc write = write_nothing;
    void *state = &options;
    OrtEpContextConfig *const untouched = (OrtEpContextConfig *)&config;
    OrtEpContextConfig *kept = untouched;
    refused(api, six->SessionOptions_SetEpContextDataReadFunc(NULL, read_nothing, NULL));
    refused(api, six->ModelCompilationOptions_SetEpContextDataWriteFunc(NULL, write_nothing, NULL));
    refused(api, six->SessionOptions_GetEpContextConfig(NULL, &kept));
    assert_ptr_equal(kept, untouched);
    ok(api, api->CreateSessionOptions(&options));
    refused(api, six->SessionOptions_GetEpContextConfig(options, NULL));
    ok(api, six->SessionOptions_GetEpContextConfig(options, &config));
    refused(api, six->EpContextConfig_GetEpContextDataReadFunc(NULL, &read, &state));
    refused(api, six->EpContextConfig_GetEpContextDataReadFunc(config, NULL, &state));
    refused(api, six->EpContextConfig_GetEpContextDataReadFunc(config, &read, NULL));
    refused(api, six->EpContextConfig_GetEpContextDataWriteFunc(NULL, &write, &state));
    refused(api, six->EpContextConfig_GetEpContextDataWriteFunc(config, NULL, &state));
    refused(api, six->EpContextConfig_GetEpContextDataWriteFunc(config, &write, NULL));
    /* and a configuration without callbacks says so for both */
    ok(api, six->EpContextConfig_GetEpContextDataReadFunc(config, &read, &state));
    assert_true(read == NULL);
    assert_null(state);
    state = &options;
    ok(api, six->EpContextConfig_GetEpContextDataWriteFunc(config, &write, &state));
    assert_true(write == NULL);
    assert_null(state);
    six->ReleaseEpContextConfig(config);
    api->ReleaseSessionOptions(options);
}

static OrtStatus *ORT_API_CALL read_other(void *state, const char *name, OrtAllocator *allocator, void **buffer,
                                          size_t *size)
{
    return read_nothing(state, name, allocator, buffer, size);
}

/* A callback set anew replaces function and state; what was extracted before stays as it was. */
static void replaced(const OrtApi *api, const ortcrypt_ep_context_api *six)
{
    OrtSessionOptions *options = NULL;
    OrtEpContextConfig *first = NULL;
    OrtEpContextConfig *second = NULL;
    OrtReadNamedBufferFunc read = NULL;
    void *state = NULL;
    int mine[2] = {0, 0};
    ok(api, api->CreateSessionOptions(&options));
    ok(api, six->SessionOptions_SetEpContextDataReadFunc(options, read_nothing, &mine[0]));
    ok(api, six->SessionOptions_GetEpContextConfig(options, &first));
    ok(api, six->SessionOptions_SetEpContextDataReadFunc(options, read_other, &mine[1]));
    ok(api, six->SessionOptions_GetEpContextConfig(options, &second));
    api->ReleaseSessionOptions(options);
    ok(api, six->EpContextConfig_GetEpContextDataReadFunc(first, &read, &state));
    assert_true(read == read_nothing);
    assert_ptr_equal(state, &mine[0]);
    six->ReleaseEpContextConfig(first);
    ok(api, six->EpContextConfig_GetEpContextDataReadFunc(second, &read, &state));
    assert_true(read == read_other);
    assert_ptr_equal(state, &mine[1]);
    six->ReleaseEpContextConfig(second);
}

/* The write function set on compile options cannot be asked back there; that an EP gets it is test_reference_ep's matter. */
static void write_side(const OrtApi *api, const ortcrypt_ep_context_api *six)
{
    const OrtCompileApi *const compile = api->GetCompileApi();
    OrtEnv *env = NULL;
    OrtSessionOptions *options = NULL;
    OrtModelCompilationOptions *compilation = NULL;
    ok(api, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "test", &env));
    ok(api, api->CreateSessionOptions(&options));
    ok(api, compile->CreateModelCompilationOptionsFromSessionOptions(env, options, &compilation));
    ok(api, six->ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, write_nothing, NULL));
    ok(api, six->ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, write_nothing, &options));
    ok(api, compile->ModelCompilationOptions_SetEpContextBinaryInformation(compilation, "folder/", "model.onnx"));
    ok(api, six->ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, NULL, &options));
    compile->ReleaseModelCompilationOptions(compilation);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(env);
}

static void round_trip(const char *version, ortcrypt_era era)
{
    const OrtApiBase *const base = load(version);
    assert_string_equal(base->GetVersionString(), version);
    const OrtApi *const api = base->GetApi(23);
    ortcrypt_ep_context_api six;
    ok(api, ortcrypt_ep_context_api_get(base, &six));
    assert_int_equal(six.era, era);
    read_side(api, &six);
    missing_arguments(api, &six);
    replaced(api, &six);
    write_side(api, &six);
}

static void test_experimental_era(void **state)
{
    (void)state;
    round_trip("1.30.0", ORTCRYPT_ERA_EXPERIMENTAL);
}

static void test_stable_era(void **state)
{
    (void)state;
    round_trip("1.32.0", ORTCRYPT_ERA_STABLE);
}

/* A base that only says a version and hands on to a real one: what the real runtimes at hand cannot show. */
static const OrtApiBase *real_base;
static const char *told_version;
static uint32_t asked_version;

static const OrtApi *ORT_API_CALL told_api(uint32_t version) NO_EXCEPTION
{
    asked_version = version;
    return real_base->GetApi(version);
}

static const char *ORT_API_CALL told_string(void) NO_EXCEPTION
{
    return told_version;
}

static void test_versions(void **state)
{
    (void)state;
    const OrtApiBase told = {told_api, told_string};
    ortcrypt_ep_context_api six;
    real_base = load("1.32.0");
    const OrtApi *const api = real_base->GetApi(23);

    const char *const early[] = {"1.22.0", "1.23.2", "1.27.0"};
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
        told_version = early[i];
        asked_version = 0;
        memset(&six, 0x5a, sizeof(six));
        ok(api, ortcrypt_ep_context_api_get(&told, &six));
        assert_int_equal(six.era, ORTCRYPT_ERA_NONE);
        assert_true(six.SessionOptions_GetEpContextConfig == NULL);
        assert_int_equal(asked_version, 0); /* an API that is not there is not asked for */
    }
    told_version = "1.31.0-dev+abc";
    ok(api, ortcrypt_ep_context_api_get(&told, &six));
    assert_int_equal(six.era, ORTCRYPT_ERA_STABLE);
    assert_int_equal(asked_version, 31);

    const char *const unknown[] = {"2.0.0", "0.9.0", "", "x", "1", "1.", "1.x"};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        told_version = unknown[i];
        OrtStatus *const status = ortcrypt_ep_context_api_get(&told, &six);
        assert_non_null(status);
        assert_non_null(strstr(api->GetErrorMessage(status), unknown[i]));
        api->ReleaseStatus(status);
        assert_int_equal(six.era, ORTCRYPT_ERA_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experimental_era),
        cmocka_unit_test(test_stable_era),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests_name("ep_context api", tests, NULL, NULL);
}
