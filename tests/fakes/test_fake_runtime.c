/*
 * What the library calls of an ONNX Runtime of each era, slot by slot, and what it does with one that answers wrongly. The runtimes
 * are fakes (fake_ort.h): a slot that is not in the lists below ends the process, and so does a look beyond a table's end.
 */
#include <jansson.h>

#include "fakes/fake_calls.h"
#include "runtime/runtime.h"

/* ---- Which slots are called. ---- */

/* From 1.33 on the round trip is made in a child, and its calls are not seen here. */
static const expected on_open[] = {
    BASE(FAKE_GET_API, FIRST, NEWER),
    BASE(FAKE_GET_VERSION, FIRST, NEWER),
    API(GetCompileApi, FIRST, NEWER),
    API(GetEpApi, 29, NEWER),
    API(GetExperimentalFunction, NAMES, 30),
    API(CreateSessionOptions, NAMES, PROVEN),
    API(ReleaseSessionOptions, NAMES, PROVEN),
    API(GetErrorCode, NAMES, PROVEN),
    API(ReleaseStatus, NAMES, PROVEN),
    API(SessionOptionsSetWeightlessSourceModelBuffer, 29, PROVEN),
    PLACE(FAKE_EP, 73, 29, PROVEN),
    PLACE(FAKE_API, 426, MEMBERS, PROVEN),
    PLACE(FAKE_COMPILE, 16, MEMBERS, PROVEN),
    PLACE(FAKE_EP, 74, MEMBERS, PROVEN),
    PLACE(FAKE_EP, 75, MEMBERS, PROVEN),
    PLACE(FAKE_EP, 76, MEMBERS, PROVEN),
    PLACE(FAKE_EP, 77, MEMBERS, PROVEN),
    API(CreateEnvWithCustomLogger, FIRST, NEWER),
};
static const expected on_describe[] = {
    API(GetEpDevices, FIRST, NEWER),        API(EpDevice_EpName, FIRST, NEWER),     API(EpDevice_EpVendor, FIRST, NEWER),
    API(EpDevice_EpMetadata, FIRST, NEWER), API(EpDevice_Device, FIRST, NEWER),     API(GetKeyValue, FIRST, NEWER),
    API(HardwareDevice_Type, FIRST, NEWER), API(HardwareDevice_Vendor, FIRST, NEWER), API(GetEpApi, 29, NEWER),
};
static const expected on_register[] = {
    API(GetEpDevices, FIRST, NEWER),
    API(EpDevice_EpMetadata, FIRST, NEWER),
    API(GetKeyValue, FIRST, NEWER),
    API(RegisterExecutionProviderLibrary, FIRST, NEWER),
};
static const expected on_close[] = {API(ReleaseEnv, FIRST, NEWER)};

/* A version is asked for exactly where the library says so, and never one that the runtime has not. */
static void check_asked(const fake *f, unsigned minor)
{
    for (unsigned version = 0; version < FAKE_VERSION_MAX; version++) {
        const unsigned own = minor < 29 ? minor : 29; /* the header's version */
        const unsigned callbacks = minor < NAMES ? own : minor < MEMBERS ? NAMES : MEMBERS;
        assert_int_equal(f->control->asked[version], version == own || version == callbacks);
    }
    assert_false(f->control->asked_beyond);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(f->control->by_name[i], minor >= NAMES && minor < MEMBERS);
    }
}

static void refuse_compile(ortcrypt_runtime *runtime, const char *bundle_path)
{
    const ortcrypt_compile_options options = {.struct_size = sizeof options, .ep = "CPUExecutionProvider"};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    ortcrypt_keyring *const keyring = rig_keyring();
    char *const model = oc_test_format("%s/testmodels/embedded/embedded.onnx", oc_test_env("ORTCRYPT_DEPS"));
    assert_ok(ortcrypt_encrypt(model, bundle_path, keyring, NULL, NULL, &err), &err);
    assert_st(ortcrypt_compile(runtime, bundle_path, keyring, &options, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    ortcrypt_keyring_free(keyring);
    free(model);
}

static void calls_of_each_version(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char ep[1024];

    (void)state;
    rig_reference_path(ep);
    char *const dir = oc_test_tmpdir();
    for (unsigned minor = FIRST; minor <= NEWER; minor++) {
        const fake f = load(minor);
        ortcrypt_runtime *runtime = NULL;
        char *text = NULL;
        assert_ok(ortcrypt_runtime_open(&runtime, f.path, NULL, &err), &err);
        CHECK_CALLS(&f, minor, on_open);
        assert_ok(ortcrypt_runtime_describe(runtime, NULL, &text, &err), &err);
        CHECK_CALLS(&f, minor, on_describe);
        assert_ok(ortcrypt_runtime_register_ep(runtime, "Fake", ep, &err), &err);
        CHECK_CALLS(&f, minor, on_register);
        char *const bundle = oc_test_format("%s/%u.ortc", dir, minor);
        refuse_compile(runtime, bundle);
        check_calls(&f, minor, "refusing to compile", NULL, 0); /* before ORT is called at all */
        rig_runtime_close(runtime);
        CHECK_CALLS(&f, minor, on_close);
        check_asked(&f, minor);
        assert_int_equal(f.control->live, 0);
        ortcrypt_free(text, 0);
        free(bundle);
    }
    oc_test_rm_rf(dir);
    free(dir);
}

/* ---- Runtimes that answer wrongly. ---- */

typedef struct refusal {
    fake_fault fault;
    unsigned since; /* from this version on it matters */
    bool seen;      /* on versions up to 1.32 too: there the round trip is not in a child, which a crash would need */
    ortcrypt_status status;
    const char *words;
} refusal;

static const refusal refusals[] = {
    {FAKE_NO_API, FIRST, true, ORTCRYPT_E_UNSUPPORTED, "does not offer its API version"},
    {FAKE_NO_COMPILE_API, FIRST, true, ORTCRYPT_E_UNSUPPORTED, "with model compilation"},
    {FAKE_NO_EP_API, MEMBERS, true, ORTCRYPT_E_UNSUPPORTED, "lacks functions for execution providers"},
    {FAKE_NO_SLOT, MEMBERS, true, ORTCRYPT_E_UNSUPPORTED, "lacks functions for execution providers"},
    {FAKE_ENV_FAILS, FIRST, true, ORTCRYPT_E_ORT, "OrtEnv: no environment today"},
    {FAKE_OPTIONS_FAIL, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "makes no session options"},
    {FAKE_SET_READ_FAILS, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "refuses a read callback"},
    {FAKE_SET_READ_FORGETS, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "does not give back the read callback"},
    {FAKE_CONFIG_FAILS, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "gives no EPContext configuration"},
    {FAKE_CONFIG_NULL, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "gives no EPContext configuration"},
    {FAKE_GET_READ_FAILS, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "refuses to say which read callback"},
    {FAKE_WRONG_FUNCTION, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "does not give back the read callback"},
    {FAKE_WRONG_STATE, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "does not give back the read callback"},
    {FAKE_NEVER_CLEARED, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "does not give back the read callback"},
    {FAKE_GET_WRITE_FAILS, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "refuses to say which write callback"},
    {FAKE_WRITE_INVENTED, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "gives a write callback where none was set"},
    {FAKE_SET_WRITE_BLIND, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "accepts a write callback without options"},
    {FAKE_SIZE_LIMIT, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "refuses to say which read callback"},
    {FAKE_SIZE_LIMIT_OPTIONAL, NAMES, true, ORTCRYPT_E_UNSUPPORTED, "more arguments than are known"},
    {FAKE_WEIGHTLESS_DIFFERS, 29, true, ORTCRYPT_E_UNSUPPORTED, "source of a model without weights"},
    {FAKE_SHIFTED, NEWER, false, ORTCRYPT_E_UNSUPPORTED, "crashes in its callback functions"},
    {FAKE_CRASHES, NEWER, false, ORTCRYPT_E_UNSUPPORTED, "crashes in its callback functions"},
};

static void wrong_answers_are_refused(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        for (unsigned minor = refusals[i].seen ? refusals[i].since : NEWER; minor <= NEWER; minor++) {
            const fake f = load(minor);
            ortcrypt_runtime *runtime = (ortcrypt_runtime *)&err;
            f.control->fault = refusals[i].fault;
            assert_st(ortcrypt_runtime_open(&runtime, f.path, NULL, &err), &err, refusals[i].status);
            assert_null(runtime);
            if (strstr(err.message, refusals[i].words) == NULL) {
                fail_msg("1.%u, fault %d: %s", minor, (int)refusals[i].fault, err.message);
            }
            assert_false(f.control->asked_beyond);
            assert_int_equal(f.control->live, 0); /* nothing is left behind */
            /* and the same library is used once it answers rightly */
            f.control->fault = FAKE_NONE;
            assert_ok(ortcrypt_runtime_adopt(&runtime, f.base, NULL, NULL, &err), &err);
            rig_runtime_close(runtime);
        }
    }
}

/* Without the names a version of the second era is one without callbacks: usable, and no EP has a route. */
static void names_that_are_missing(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    const char *why = NULL;

    (void)state;
    const fake f = load(30);
    f.control->fault = FAKE_NO_NAMES;
    assert_ok(ortcrypt_runtime_open(&runtime, f.path, NULL, &err), &err);
    assert_int_equal(oc_runtime_ep_context(runtime)->era, ORTCRYPT_ERA_NONE);
    assert_false(oc_runtime_has(runtime, "SessionOptions_SetEpContextDataReadFunc"));
    assert_int_equal(oc_runtime_route(runtime, "OrtcryptReference", &why), OC_ROUTE_NONE);
    rig_runtime_close(runtime);
}

/* ---- Versions. ---- */

static int notices;

static void count_notice(void *state, const char *sentence)
{
    (void)state;
    assert_non_null(strstr(sentence, "is newer than any"));
    notices++;
}

static void versions(void **state)
{
    static const struct {
        const char *text;
        int notices; /* -1: refused */
        const char *words;
    } cases[] = {
        {"1.32.0", 0, NULL},
        {"1.31.0-dev", 0, NULL},
        {"1.32.0+build.7", 0, NULL},
        {"1.33.0", 1, NULL},
        {"1.100.0", 1, NULL},
        {"1.9999", -1, "ONNX Runtime 1.9999 is not supported"},
        {"1.18446744073709551648", -1, "is not supported"}, /* 32 + 2^64 */
        {"2.0.0", -1, "ONNX Runtime 2.0.0 is not supported"},
        {"2.33.0", -1, "is not supported"},
        {"1.22.0", -1, "is not supported"},
        {"0.33.0", -1, "is not supported"},
        {" 1.32.0", -1, "is not supported"},
        {"1. 32.0", -1, "is not supported"},
        {"1.-32.0", -1, "is not supported"},
        {"1.\xff\xfe\x1b[2J", -1, "ONNX Runtime 1.???[2J is not supported"},
        {"", -1, "that does not say its version is not supported"},
        {NULL, -1, "that does not say its version is not supported"},
    };
    const ortcrypt_monitor monitor = {count_notice, NULL, NULL};
    const ortcrypt_runtime_options options = {.struct_size = sizeof options, .monitor = &monitor};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const fake f = load(NEWER);
        f.control->version = cases[i].text;
        notices = 0;
        if (cases[i].notices < 0) {
            assert_st(ortcrypt_runtime_open(&runtime, f.path, &options, &err), &err, ORTCRYPT_E_UNSUPPORTED);
            assert_non_null(strstr(err.message, cases[i].words));
            assert_false(f.control->called[FAKE_BASE][FAKE_GET_API]); /* nothing of it was used */
            assert_int_equal(notices, 0);
        } else {
            assert_ok(ortcrypt_runtime_open(&runtime, f.path, &options, &err), &err);
            assert_int_equal(notices, cases[i].notices);
            rig_runtime_close(runtime);
        }
        assert_int_equal(f.control->live, 0);
    }
}

/* ---- Registering. ---- */

static void failed_registration_leaves_nothing(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    const OrtEpDevice **devices = NULL;
    size_t count = 0;
    char ep[1024];

    (void)state;
    rig_reference_path(ep);
    const fake f = load(PROVEN);
    assert_ok(ortcrypt_runtime_open(&runtime, f.path, NULL, &err), &err);
    f.control->fault = FAKE_REGISTER_FAILS;
    for (int i = 0; i < 2; i++) {
        assert_st(ortcrypt_runtime_register_ep(runtime, "Fake", ep, &err), &err, ORTCRYPT_E_ORT);
        assert_non_null(strstr(err.message, "factories are missing"));
        assert_st(oc_runtime_devices(runtime, "Fake", &devices, &count, &err), &err, ORTCRYPT_E_NOT_FOUND);
        assert_int_equal(f.control->libraries, 0);
    }
    f.control->fault = FAKE_NONE;
    assert_ok(ortcrypt_runtime_register_ep(runtime, "Fake", ep, &err), &err);
    assert_int_equal(f.control->libraries, 1);
    assert_ok(oc_runtime_devices(runtime, "Fake", &devices, &count, &err), &err);
    assert_int_equal(count, 1);
    free(devices);
    rig_runtime_close(runtime);
    assert_int_equal(f.control->live, 0);
}

/* An environment that was handed in is used and stays its owner's. */
static void adopted_environment_stays(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    int env = 0;

    (void)state;
    const fake f = load(PROVEN);
    assert_ok(ortcrypt_runtime_adopt(&runtime, f.base, (OrtEnv *)&env, NULL, &err), &err);
    assert_ptr_equal(ortcrypt_runtime_env(runtime), &env);
    rig_runtime_close(runtime);
    assert_false(f.control->called[FAKE_API][offsetof(OrtApi, CreateEnvWithCustomLogger) / sizeof(void *)]);
    assert_false(f.control->called[FAKE_API][offsetof(OrtApi, ReleaseEnv) / sizeof(void *)]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_each_version),
        cmocka_unit_test(wrong_answers_are_refused),
        cmocka_unit_test(names_that_are_missing),
        cmocka_unit_test(versions),
        cmocka_unit_test(failed_registration_leaves_nothing),
        cmocka_unit_test(adopted_environment_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
