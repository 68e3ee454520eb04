/* A copied OrtApiBase: what it answers, pads, replaces and counts, on real runtimes and on fakes of unknown versions. */
#include "interpose/internal.h"
#include "unit/test_ep_context_rig.h"

static oc_interpose *make(const OrtApiBase *real, const char *version, unsigned api_version)
{
    const oc_interpose_options options = {version, api_version};
    oc_interpose *made = NULL;
    ok(oc_interpose_new(&made, real, &options));
    assert_non_null(made);
    return made;
}

static void copies_say_what_the_runtime_says(void **state)
{
    (void)state;
    static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};
    for (size_t i = 0; i < 3; i++) {
        const OrtApiBase *const real = load(versions[i]);
        oc_interpose *made = NULL;
        OrtSessionOptions *options = NULL;
        ok(oc_interpose_new(&made, real, NULL));
        const OrtApiBase *const copy = oc_interpose_base(made);
        const unsigned minor = oc_interpose_minor(made);
        assert_string_equal(copy->GetVersionString(), versions[i]);
        const OrtApi *const table = copy->GetApi(minor);
        assert_non_null(table);
        assert_ptr_equal(table, copy->GetApi(1));
        assert_ptr_equal(table, oc_interpose_table(made, OC_TABLE_API));
        assert_ptr_not_equal(table, oc_interpose_real(made));
        assert_null(copy->GetApi(0));
        assert_null(copy->GetApi(minor + 1)); /* asked for, and said by nobody on stderr */
        assert_int_equal(oc_interpose_asked(made), minor + 1);
        ok(table->CreateSessionOptions(&options));
        table->ReleaseSessionOptions(options);
        /* the other tables: copies too, with the same functions */
        assert_ptr_equal(table->GetEpApi(), oc_interpose_table(made, OC_TABLE_EP));
        assert_true(table->GetEpApi()->CreateEpDevice == oc_interpose_real(made)->GetEpApi()->CreateEpDevice);
        assert_true(table->GetCompileApi()->CompileModel == oc_interpose_real(made)->GetCompileApi()->CompileModel);
        assert_true(table->GetModelEditorApi()->CreateGraph == oc_interpose_real(made)->GetModelEditorApi()->CreateGraph);
        assert_int_equal(oc_interpose_missed(made), 0);
        oc_interpose_free(made);
    }
}

typedef OrtStatus *(ORT_API_CALL *status_function)(void);

static void not_implemented(const void *table, size_t slot)
{
    oc_function function;
    memcpy(&function, (const char *)table + slot * sizeof(function), sizeof(function));
    OrtStatus *const status = ((status_function)function)();
    assert_non_null(status);
    assert_int_equal(api->GetErrorCode(status), ORT_NOT_IMPLEMENTED);
    refused(status, "ONNX Runtime 1.24 does not have this function");
}

static void missing_functions_say_so(void **state)
{
    (void)state;
    oc_interpose *const made = make(load("1.24.4"), "1.28.0", 0);
    const OrtApiBase *const copy = oc_interpose_base(made);
    assert_string_equal(copy->GetVersionString(), "1.28.0");
    const OrtApi *const table = copy->GetApi(28);
    assert_non_null(table);
    assert_null(copy->GetApi(29));
    not_implemented(table, 415);
    not_implemented(table, 421);
    not_implemented(table, 423);
    not_implemented(table->GetEpApi(), OC_SLOT(OrtEpApi, GetEnvConfigEntries) + 1);
    not_implemented(table->GetEpApi(), OC_SLOT(OrtEpApi, ProfilingEventsContainer_AddEvents));
    not_implemented(table->GetInteropApi(), 12);
    assert_int_equal(oc_interpose_missed(made), 0);
    /* these cannot say it: nothing, and it is counted */
    assert_null(table->GetExperimentalFunction("OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28"));
    table->GetEpApi()->ReleaseOpSchema(NULL);
    table->GetEpApi()->ReleaseProfilingEvent(NULL);
    assert_int_equal(oc_interpose_missed(made), 3);
    oc_interpose_free(made);
}

/* What is known of a slot's kind is compared with the header, name by name, where a missing one would do harm. */
static void kinds_of_functions(void **state)
{
    (void)state;
    assert_true(oc_slot_returns_status(OC_TABLE_API, OC_SLOT(OrtApi, SessionOptionsSetWeightlessSourceModelBuffer)));
    assert_false(oc_slot_returns_status(OC_TABLE_API, OC_SLOT(OrtApi, RunOptionsSetSyncStream)));
    assert_false(oc_slot_returns_status(OC_TABLE_API, 425)); /* after the header: nobody knows */
    assert_true(oc_slot_returns_status(OC_TABLE_EP, OC_SLOT(OrtEpApi, KernelInfo_GetEp)));
    assert_false(oc_slot_returns_status(OC_TABLE_EP, OC_SLOT(OrtEpApi, ReleaseKernelImpl)));
    assert_false(oc_slot_returns_status(OC_TABLE_INTEROP, OC_SLOT(OrtInteropApi, ReleaseExternalMemoryHandle)));
    assert_true(oc_slot_returns_status(OC_TABLE_COMPILE, OC_SLOT(OrtCompileApi, ModelCompilationOptions_SetWeightlessEnabled)));
    assert_false(oc_slot_returns_status(OC_TABLE_COMPILE, 16));
}

static unsigned asked_by[OC_INTERPOSE_POOL];
#define MAKE(n)                                                                                                        \
    static uint32_t ORT_API_CALL vendor_##n(const OrtHardwareDevice *device)                                           \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        asked_by[n]++;                                                                                                 \
        return 0x8086;                                                                                                 \
    }
OC_INTERPOSE_EACH(MAKE)
#define LIST(n) (oc_function)vendor_##n,
static const oc_function vendors[] = {OC_INTERPOSE_EACH(LIST)};

static void slots_are_replaced_in_one_instance(void **state)
{
    (void)state;
    const OrtApiBase *const real = load("1.30.0");
    oc_interpose *const first = make(real, NULL, 0);
    oc_interpose *const second = make(real, NULL, 0);
    oc_interpose *const third = make(real, NULL, 0);
    const size_t slot = OC_SLOT(OrtApi, HardwareDevice_VendorId);
    oc_function original = NULL;
    assert_true(oc_interpose_replace(first, OC_TABLE_API, slot, vendors[oc_interpose_index(first)], &original));
    assert_true((oc_function)oc_interpose_real(first)->HardwareDevice_VendorId == original);
    assert_true(oc_interpose_replace(second, OC_TABLE_API, slot, vendors[oc_interpose_index(second)], NULL));
    assert_ptr_equal(oc_interpose_at(oc_interpose_index(second)), second);
    assert_int_equal(oc_interpose_base(first)->GetApi(30)->HardwareDevice_VendorId(NULL), 0x8086);
    assert_int_equal(asked_by[oc_interpose_index(first)], 1);
    assert_int_equal(asked_by[oc_interpose_index(second)], 0);
    assert_true(oc_interpose_base(third)->GetApi(30)->HardwareDevice_VendorId == oc_interpose_real(third)->HardwareDevice_VendorId);
    assert_false(oc_interpose_replace(first, OC_TABLE_API, 426, original, NULL)); /* of 1.31 */
    assert_false(oc_interpose_replace(first, OC_TABLE_COMPILE, 16, original, NULL));
    oc_interpose_free(first);
    oc_interpose_free(second);
    oc_interpose_free(third);
}

static void the_pool_has_an_end(void **state)
{
    (void)state;
    oc_interpose *made[OC_INTERPOSE_POOL];
    oc_interpose *more = NULL;
    for (size_t i = 0; i < OC_INTERPOSE_POOL; i++) {
        made[i] = make(base, NULL, 0);
        assert_int_equal(oc_interpose_index(made[i]), i);
        assert_non_null(oc_interpose_base(made[i])->GetApi(32)->GetEpApi());
    }
    refused(oc_interpose_new(&more, base, NULL), "more than 16 EP libraries");
    assert_null(more);
    oc_interpose_free(made[5]);
    assert_null(oc_interpose_at(5));
    made[5] = make(base, "1.29.0", 0);
    assert_int_equal(oc_interpose_index(made[5]), 5);
    assert_string_equal(oc_interpose_base(made[5])->GetVersionString(), "1.29.0");
    assert_null(oc_interpose_base(made[5])->GetApi(30));
    assert_non_null(oc_interpose_base(made[6])->GetApi(30));
    for (size_t i = 0; i < OC_INTERPOSE_POOL; i++) {
        oc_interpose_free(made[i]);
    }
    assert_null(oc_interpose_at(OC_INTERPOSE_POOL));
    oc_interpose_free(NULL);
}

static const char *fake_version;
static const char *ORT_API_CALL say_version(void)
{
    return fake_version;
}
static const OrtApi *ORT_API_CALL give_api(uint32_t version)
{
    return base->GetApi(version > 32 ? 99 : version);
}
static const OrtApi *ORT_API_CALL give_oldest(uint32_t version)
{
    return version == 1 ? base->GetApi(1) : NULL;
}
static const OrtApi *ORT_API_CALL give_nothing(uint32_t version)
{
    (void)version;
    return NULL;
}

static void versions_out_of_range(void **state)
{
    (void)state;
    OrtApiBase fake = {give_api, say_version};
    const oc_interpose_options bad[] = {{"2.0.0", 0}, {"1.22.0", 0}, {"one", 0}, {"1.30.0-with-a-name-that-is-too-long", 0},
                                        {NULL, 22},   {NULL, 33}};
    oc_interpose *made = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refused(oc_interpose_new(&made, base, &bad[i]), "to offer");
        assert_null(made);
    }
    static const char *const versions[] = {"1.22.1", "2.0.0", "", "next"};
    for (size_t i = 0; i < 4; i++) {
        fake_version = versions[i];
        refused(oc_interpose_new(&made, &fake, NULL), "1.23 or a newer 1.x is needed");
    }
    fake_version = "1.32.0";
    fake.GetApi = give_oldest;
    refused(oc_interpose_new(&made, &fake, NULL), "does not give its own OrtApi");
    fake.GetApi = give_nothing;
    assert_null(oc_interpose_new(&made, &fake, NULL));
    assert_null(made);
    assert_null(oc_interpose_at(0)); /* nothing stayed in the pool */
}

static void newer_runtimes_are_offered_as_the_newest_known(void **state)
{
    (void)state;
    const OrtApiBase fake = {give_api, say_version};
    oc_interpose *made = NULL;
    fake_version = "1.40.0";
    ok(oc_interpose_new(&made, &fake, NULL));
    assert_int_equal(oc_interpose_minor(made), 40);
    assert_string_equal(oc_interpose_base(made)->GetVersionString(), "1.40.0");
    assert_non_null(oc_interpose_base(made)->GetApi(32));
    assert_null(oc_interpose_base(made)->GetApi(33));
    oc_interpose_free(made);
}

/* The reference EP is told 1.28 on a runtime that is older, and makes its factory. */
static void an_ep_lives_on_copies(void **state)
{
    (void)state;
    char path[PATH_MAX];
    OrtEpFactory *factory = NULL;
    size_t count = 0;
    (void)snprintf(path, sizeof(path), "%s/libortcrypt_reference_ep.so", getenv("ORTCRYPT_BUILD"));
    oc_interpose *const made = make(load("1.24.4"), "1.28.0", 0);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    CreateEpApiFactoriesFn create = NULL;
    ReleaseEpApiFactoryFn release = NULL;
    void *symbol = dlsym(library, "CreateEpFactories");
    memcpy(&create, &symbol, sizeof(create));
    symbol = dlsym(library, "ReleaseEpFactory");
    memcpy(&release, &symbol, sizeof(release));
    ok(create("reference", oc_interpose_base(made), NULL, &factory, 1, &count));
    assert_int_equal(count, 1);
    assert_string_equal(factory->GetName(factory), "OrtcryptReference");
    assert_int_equal(factory->ort_version_supported, 28);
    assert_int_equal(oc_interpose_asked(made), 28);
    ok(release(factory));
    (void)dlclose(library);
    assert_int_equal(oc_interpose_missed(made), 0);
    oc_interpose_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_say_what_the_runtime_says),
        cmocka_unit_test(missing_functions_say_so),
        cmocka_unit_test(kinds_of_functions),
        cmocka_unit_test(slots_are_replaced_in_one_instance),
        cmocka_unit_test(the_pool_has_an_end),
        cmocka_unit_test(versions_out_of_range),
        cmocka_unit_test(newer_runtimes_are_offered_as_the_newest_known),
        cmocka_unit_test(an_ep_lives_on_copies),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
