/*
 * The bridge before a fake EP, on a runtime of every era: what the EP is told and finds, ids and the runtime's own callbacks, refusals that
 * leave nothing, every order of unloading.
 */
#include "bridge/bridge_rig.h"

static void what_the_ep_is_told(void **state)
{
    (void)state;
    static const char *const told[] = {"1.28.0", "1.30.0", "1.32.0"};
    static const uint32_t asked[] = {28, 29, 29};
    for (size_t i = 0; i < 3; i++) {
        bed b = open_bed(versions[i]);
        ok(&b, enter(&b, "Fake", fake));
        assert_string_equal(look(fake)->version, told[i]);
        assert_int_equal(look(fake)->api_version, asked[i]);
        run_session(&b, NULL);
        assert_true(look(fake)->read == NULL && look(fake)->write == NULL); /* as without the bridge */
        assert_null(look(fake)->read_state);
        leave_bridge(&b, "Fake");
        assert_false(loaded(fake));
        close_bed(&b);
    }
}

static oc_registration *new_registration(void)
{
    static uint8_t next;
    const uint8_t random[OC_REGISTRATION_RANDOM_LEN] = {++next, 0x5a};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_registration *made = NULL;
    oc_test_ok(oc_registration_new(&made, random, count_read, NULL, &reads, &err), &err);
    return made;
}

static void callbacks_by_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        bed b = open_bed(versions[i]);
        void *buffer = NULL;
        size_t size = 0;
        oc_registration *const registration = new_registration();
        OrtSessionOptions *const options = new_options(&b);
        OrtSession *session = NULL;
        ok(&b, enter(&b, "Fake", fake));
        assert_true(oc_registry_attach(bridge));
        ok(&b, b.api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, oc_registration_id(registration)));
        ok(&b, create_session(&b, "Fake", options, &session));
        const fake_ep_seen ep = *look(fake);
        reads = 0;
        ok(&b, ep.read(ep.read_state, "n", NULL, &buffer, &size));
        assert_int_equal(size, 7);
        assert_int_equal(reads, 1);
        refused(&b, ep.write(ep.write_state, "n", "x", 1), "this session loads"); /* no file in its place */
        oc_registration_end(registration);
        refused(&b, ep.read(ep.read_state, "n", NULL, &buffer, &size), "was closed");
        b.api->ReleaseSession(session);
        refused(&b, ep.read(ep.read_state, "n", NULL, &buffer, &size), "a session that has ended");
        refused(&b, ep.write(ep.write_state, "n", "x", 1), "a session that has ended");
        assert_int_equal(reads, 1);
        refused(&b, create_session(&b, "Fake", options, &session), "callbacks that are not there");
        assert_int_equal(look(fake)->created, 1); /* the EP was not asked */
        b.api->ReleaseSessionOptions(options);
        leave_bridge(&b, "Fake");
        close_bed(&b);
    }
}

/* An EP that knows nothing of 1.31 gets the application's own function and state, and passes for one that advertises. */
static void callbacks_of_the_runtime(void **state)
{
    (void)state;
    for (size_t i = 1; i < 3; i++) {
        bed b = open_bed(versions[i]);
        OrtSessionOptions *const options = new_options(&b);
        OrtSession *session = NULL;
        ok(&b, b.six.SessionOptions_SetEpContextDataReadFunc(options, count_read, &reads));
        ok(&b, enter(&b, "Fake", fake));
        ok(&b, create_session(&b, "Fake", options, &session));
        assert_true(look(fake)->read == count_read);
        assert_ptr_equal(look(fake)->read_state, &reads);
        assert_true(look(fake)->write == NULL);
        b.api->ReleaseSession(session);
        assert_int_equal(look(fake)->eps, 0);
        b.api->ReleaseSessionOptions(options);
        leave_bridge(&b, "Fake");
        assert_false(loaded(fake));
        close_bed(&b);
    }
}

static OrtStatus *ORT_API_CALL take_write(void *state, const char *name, const void *buffer, size_t size)
{
    (void)state, (void)name, (void)buffer, (void)size;
    return NULL;
}
static OrtStatus *ORT_API_CALL take_model(void *state, const void *buffer, size_t size)
{
    (void)state, (void)buffer, (void)size;
    return NULL;
}

/* CompileModel with the runtime's own write callback. */
static OrtStatus *compile_model(const bed *b, const OrtSessionOptions *options)
{
    const OrtCompileApi *const c = b->api->GetCompileApi();
    OrtModelCompilationOptions *compilation = NULL;
    ok(b, c->CreateModelCompilationOptionsFromSessionOptions(b->env, options, &compilation));
    ok(b, c->ModelCompilationOptions_SetInputModelPath(compilation, b->model));
    ok(b, c->ModelCompilationOptions_SetOutputModelWriteFunc(compilation, take_model, NULL));
    ok(b, c->ModelCompilationOptions_SetEpContextBinaryInformation(compilation, "./", "model.onnx"));
    ok(b, b->six.ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, take_write, &reads));
    OrtStatus *const status = c->CompileModel(b->env, compilation);
    c->ReleaseModelCompilationOptions(compilation);
    return status;
}

/* 1.32 refuses an EP that says nothing of callbacks before it compiles; with the bridge before it, it comes to compiling. */
static void what_advertising_is_good_for(void **state)
{
    (void)state;
    for (int bridged = 0; bridged < 2; bridged++) {
        bed b = open_bed("1.32.0");
        OrtSessionOptions *const options = new_options(&b);
        OrtSession *session = NULL;
        ok(&b, bridged ? enter(&b, "Fake", fake) : b.api->RegisterExecutionProviderLibrary(b.env, "Fake", fake));
        ok(&b, create_session(&b, "Fake", options, &session));
        b.api->ReleaseSession(session);
        (void)setenv("FAKE_EP", "takes", 1);
        refused(&b, compile_model(&b, options), bridged ? "it takes no node" : "does not support the registered EPContext data write");
        if (bridged) {
            assert_true(look(fake)->write == take_write);
            assert_ptr_equal(look(fake)->write_state, &reads);
        }
        assert_int_equal(look(fake)->eps, 0);
        b.api->ReleaseSessionOptions(options);
        leave_bridge(&b, "Fake");
        close_bed(&b);
    }
}

static void refusals_leave_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *fault, *words;
    } faults[] = {
        {"fails", "no factories today"},
        {"newer", "built for ONNX Runtime 1.31"},
        {"newer_factory", "newer (1.31) than the bridge knows (1.30)"},
        {"const", "factory cannot be bridged"},
    };
    for (size_t i = 0; i < 3; i++) {
        bed b = open_bed(versions[i]);
        for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++) {
            (void)setenv("FAKE_EP", faults[k].fault, 1);
            refused(&b, enter(&b, "Fake", fake), faults[k].words);
            assert_false(loaded(fake));
        }
        (void)unsetenv("FAKE_EP");
        refused(&b, enter(&b, "Fake", "/nowhere/libep.so"), "does not load");
        refused(&b, enter(&b, "Fake", "libm.so.6"), "is no EP library");
        refused(&b, b.api->RegisterExecutionProviderLibrary(b.env, "Fake", bridge), "was not told");
        assert_true(target("Fake", "/nowhere/libep.so"));
        ok(&b, enter(&b, "Fake", fake)); /* said again: the last one counts */
        run_session(&b, NULL);
        leave_bridge(&b, "Fake");
        close_bed(&b);
    }
    assert_false(target(NULL, "x"));
    assert_false(target("", "x"));
    assert_false(target("x", NULL));
    assert_false(target("x", ""));
}

static void sessions_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *fault, *words;
    } faults[] = {{"newer_ep", "newer (1.31) than the bridge knows (1.30)"}, {"ep_fails", "no EP today"}};
    for (size_t i = 0; i < 3; i++) {
        bed b = open_bed(versions[i]);
        ok(&b, enter(&b, "Fake", fake));
        for (size_t k = 0; k < 2; k++) {
            OrtSessionOptions *const options = new_options(&b);
            OrtSession *session = NULL;
            (void)setenv("FAKE_EP", faults[k].fault, 1);
            refused(&b, create_session(&b, "Fake", options, &session), faults[k].words);
            assert_int_equal(look(fake)->eps, 0);
            b.api->ReleaseSessionOptions(options);
        }
        (void)unsetenv("FAKE_EP");
        run_session(&b, NULL);
        leave_bridge(&b, "Fake");
        close_bed(&b);
    }
}

/* A function of 1.25 that cannot say that 1.24 lacks it: after the first call nothing of this EP is trusted. */
static void missing_functions_end_the_trust(void **state)
{
    (void)state;
    bed b = open_bed("1.24.4");
    OrtSessionOptions *const options = new_options(&b);
    OrtSession *session = NULL;
    ok(&b, enter(&b, "Fake", fake));
    (void)setenv("FAKE_EP", "missing", 1);
    run_session(&b, NULL);
    refused(&b, create_session(&b, "Fake", options, &session), "called a function that ONNX Runtime 1.24 does not have");
    b.api->ReleaseSessionOptions(options);
    leave_bridge(&b, "Fake");
    close_bed(&b);
}

static void sharing_without_callbacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        bed b = open_bed(versions[i]);
        OrtSessionOptions *const with = new_options(&b);
        OrtSessionOptions *const without = new_options(&b);
        OrtSession *first = NULL;
        OrtSession *second = NULL;
        oc_registration *const registration = new_registration();
        ok(&b, enter(&b, "Fake", fake));
        assert_true(oc_registry_attach(bridge));
        ok(&b, b.api->AddSessionConfigEntry(with, "ep.share_ep_contexts", "1"));
        ok(&b, b.api->AddSessionConfigEntry(without, "ep.share_ep_contexts", "1"));
        ok(&b, b.api->AddSessionConfigEntry(with, ORTCRYPT_EP_CONTEXT_ID_KEY, oc_registration_id(registration)));
        ok(&b, create_session(&b, "Fake", without, &second)); /* nobody had callbacks yet */
        b.api->ReleaseSession(second);
        ok(&b, create_session(&b, "Fake", with, &first));
        refused(&b, create_session(&b, "Fake", without, &second), "must not share contexts");
        b.api->ReleaseSession(first);
        refused(&b, create_session(&b, "Fake", without, &second), "must not share contexts"); /* the EP may hold it still */
        oc_registration_end(registration);
        b.api->ReleaseSessionOptions(with);
        b.api->ReleaseSessionOptions(without);
        leave_bridge(&b, "Fake");
        close_bed(&b);
    }
}

static char *copy_fake(const char *name)
{
    char *const path = oc_test_format("%s/%s.so", folder, name);
    char *const command = oc_test_format("cp '%s' '%s'", fake, path);
    assert_int_equal(system(command), 0);
    free(command);
    return path;
}

static void unloading_in_any_order(void **state)
{
    (void)state;
    char *const other = copy_fake("other");
    for (size_t i = 0; i < 6; i++) {
        bed b = open_bed(versions[i / 2]);
        ok(&b, enter(&b, "Fake", fake));
        (void)setenv("FAKE_EP", "two", 1);
        ok(&b, enter(&b, "Other", other));
        (void)unsetenv("FAKE_EP");
        assert_int_equal(look(other)->factories, 2);
        leave_bridge(&b, i % 2 == 0 ? "Fake" : "Other");
        assert_int_equal(loaded(fake), i % 2 != 0);
        assert_int_equal(loaded(other), i % 2 == 0);
        if (i % 2 != 0) {
            run_session(&b, NULL);
        }
        leave_bridge(&b, i % 2 == 0 ? "Other" : "Fake");
        assert_false(loaded(fake) || loaded(other));
        close_bed(&b);
    }
    /* at the end of the OrtEnv, all at once */
    bed b = open_bed("1.32.0");
    ok(&b, enter(&b, "Fake", fake));
    ok(&b, enter(&b, "Other", other));
    close_bed(&b);
    assert_false(loaded(fake) || loaded(other));
    free(other);
}

static void one_factory_for_all(void **state)
{
    (void)state;
    bed b = open_bed("1.30.0");
    (void)setenv("FAKE_EP", "same", 1);
    ok(&b, enter(&b, "Fake", fake));
    refused(&b, enter(&b, "Again", fake), "one factory for all its registrations");
    run_session(&b, NULL);
    leave_bridge(&b, "Fake");
    ok(&b, enter(&b, "Fake", fake));
    leave_bridge(&b, "Fake");
    close_bed(&b);
}

/* More often than there are places: a library that does not leave memory keeps its tables, and gets them again. */
static void a_library_that_stays(void **state)
{
    (void)state;
    char *const staying = copy_fake("staying");
    void *const handle = dlopen(staying, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    for (size_t i = 0; i < 40; i++) {
        bed b = open_bed("1.32.0");
        ok(&b, enter(&b, "Fake", staying));
        ok(&b, enter(&b, "Gone", fake));
        leave_bridge(&b, "Gone");
        leave_bridge(&b, "Fake");
        assert_true(loaded(staying));
        close_bed(&b);
    }
    (void)dlclose(handle);
    free(staying);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_ep_is_told),
        cmocka_unit_test(callbacks_by_id),
        cmocka_unit_test(callbacks_of_the_runtime),
        cmocka_unit_test(what_advertising_is_good_for),
        cmocka_unit_test(refusals_leave_nothing),
        cmocka_unit_test(sessions_that_are_refused),
        cmocka_unit_test(missing_functions_end_the_trust),
        cmocka_unit_test(sharing_without_callbacks),
        cmocka_unit_test(unloading_in_any_order),
        cmocka_unit_test(one_factory_for_all),
        cmocka_unit_test(a_library_that_stays),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
