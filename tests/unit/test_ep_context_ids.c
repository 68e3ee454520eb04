/* Callbacks by id, the EP's side: looked up in what was attached, never a file in their place, on runtimes of every era. */
#include "unit/test_ep_context_rig.h"

#define KNOWN "00112233445566778899aabbccddeeff"

static const char *known = KNOWN; /* what the registry below knows; NULL: it was closed */
static char written[64];

static uint32_t ORT_API_CALL callbacks(const char *id)
{
    return known != NULL && strcmp(id, known) == 0 ? ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES : 0;
}

static OrtStatus *closed(const OrtApi *of)
{
    return of->CreateStatus(ORT_FAIL, "it was closed");
}

static OrtStatus *ORT_API_CALL read_named(const char *id, const OrtApi *of, const char *name, OrtAllocator *allocator, void **buffer,
                                          size_t *size)
{
    if (callbacks(id) == 0) {
        return closed(of);
    }
    *size = strlen(name);
    *buffer = allocator->Alloc(allocator, *size);
    memcpy(*buffer, name, *size);
    return NULL;
}

static OrtStatus *ORT_API_CALL write_named(const char *id, const OrtApi *of, const char *name, const void *buffer, size_t size)
{
    if (callbacks(id) == 0) {
        return closed(of);
    }
    (void)snprintf(written, sizeof(written), "%s=%.*s", name, (int)size, (const char *)buffer);
    return NULL;
}

static const ortcrypt_ep_registry registry = {sizeof(registry), callbacks, read_named, write_named};

static OrtStatus *open_with(const char *id, ortcrypt_ep_context **context)
{
    OrtSessionOptions *options = NULL;
    *context = NULL;
    ok(api->CreateSessionOptions(&options));
    ok(api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, id));
    OrtStatus *const status = ortcrypt_ep_context_open(context, base, options);
    api->ReleaseSessionOptions(options);
    return status;
}

static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};

static void on_runtime(const char *version)
{
    base = load(version);
    api = base->GetApi(24);
}

static void nothing_attached(void **state)
{
    (void)state;
    ortcrypt_ep_context *context = NULL;
    for (size_t i = 0; i < 3; i++) {
        on_runtime(versions[i]);
        refused(open_with(KNOWN, &context), "names callbacks that are not there");
        assert_null(context);
    }
    const ortcrypt_ep_registry old = {sizeof(old) - 1, callbacks, read_named, write_named};
    assert_false(ortcrypt_ep_attach(NULL));
    assert_false(ortcrypt_ep_attach(&old));
}

static void callbacks_of_an_id(void **state)
{
    (void)state;
    assert_true(ortcrypt_ep_attach(&registry));
    assert_true(ortcrypt_ep_attach(&registry)); /* again */
    for (size_t i = 0; i < 3; i++) {
        ortcrypt_ep_context *context = NULL;
        ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
        on_runtime(versions[i]);
        ok(open_with(KNOWN, &context));
        assert_int_equal(ortcrypt_ep_context_callbacks(context), 3);
        ok(ortcrypt_ep_context_read(context, "../blob", NULL, NULL, 0, &data));
        assert_int_equal(data.size, 7);
        assert_memory_equal(data.data, "../blob", 7);
        ortcrypt_ep_context_data_release(&data);
        ok(ortcrypt_ep_context_write(context, in_folder("blob"), NULL, NULL, "abc", 3));
        assert_non_null(strstr(written, "blob=abc"));
        /* closed meanwhile: looked up at every call, and nothing becomes a file */
        known = NULL;
        refused(ortcrypt_ep_context_read(context, in_folder("blob"), NULL, NULL, 0, &data), "it was closed");
        refused(ortcrypt_ep_context_write(context, in_folder("blob"), NULL, NULL, "abc", 3), "it was closed");
        known = KNOWN;
        ortcrypt_ep_context_close(context);
        assert_int_equal(entries(folder), 0);
    }
}

static void ids_that_nobody_knows(void **state)
{
    (void)state;
    static const char *const ids[] = {"00112233445566778899aabbccddeefe", "0", KNOWN "0", KNOWN KNOWN KNOWN};
    ortcrypt_ep_context *context = NULL;
    for (size_t i = 0; i < 4; i++) {
        on_runtime(versions[i % 3]);
        refused(open_with(ids[i], &context), "names callbacks that are not there");
        assert_null(context);
    }
    ok(open_with("", &context)); /* empty is absent */
    assert_int_equal(ortcrypt_ep_context_callbacks(context), 0);
    ortcrypt_ep_context_close(context);
}

static OrtStatus *ORT_API_CALL never_called(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *size)
{
    (void)state, (void)name, (void)allocator, (void)buffer, (void)size;
    fail();
    return NULL;
}

static void an_id_goes_before_the_runtimes_own(void **state)
{
    (void)state;
    for (size_t i = 1; i < 3; i++) {
        ortcrypt_ep_context_api six;
        OrtSessionOptions *options = NULL;
        ortcrypt_ep_context *context = NULL;
        ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
        on_runtime(versions[i]);
        ok(ortcrypt_ep_context_api_get(base, &six));
        ok(api->CreateSessionOptions(&options));
        ok(six.SessionOptions_SetEpContextDataReadFunc(options, never_called, NULL));
        ok(api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, KNOWN));
        ok(ortcrypt_ep_context_open(&context, base, options));
        ok(ortcrypt_ep_context_read(context, "x", NULL, NULL, 0, &data));
        ortcrypt_ep_context_data_release(&data);
        ortcrypt_ep_context_close(context);
        api->ReleaseSessionOptions(options);
    }
}

/* What ep_context.hpp does: a context of an id stands for a configuration, on runtimes that have none too. */
static void a_context_as_configuration(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ortcrypt_ep_context *context = NULL;
        ortcrypt_ep_context *again = NULL;
        on_runtime(versions[i]);
        ok(open_with(KNOWN, &context));
        ok(ortcrypt_ep_context_open_config(&again, base, ORTCRYPT_EP_CONTEXT_AS_CONFIG(context)));
        assert_int_equal(ortcrypt_ep_context_callbacks(again), 3);
        ok(ortcrypt_ep_context_write(again, "again", NULL, NULL, "1", 1));
        assert_string_equal(written, "again=1");
        ortcrypt_ep_context_close(again);
        known = NULL;
        refused(ortcrypt_ep_context_open_config(&again, base, ORTCRYPT_EP_CONTEXT_AS_CONFIG(context)), "not there");
        known = KNOWN;
        ortcrypt_ep_context_close(context);
    }
}

static void several_copies_of_ortcrypt(void **state)
{
    (void)state;
    static const ortcrypt_ep_registry more[] = {
        {sizeof(registry), callbacks, read_named, write_named}, {sizeof(registry), callbacks, read_named, write_named},
        {sizeof(registry), callbacks, read_named, write_named}, {sizeof(registry), callbacks, read_named, write_named},
        {sizeof(registry), callbacks, read_named, write_named}, {sizeof(registry), callbacks, read_named, write_named},
        {sizeof(registry), callbacks, read_named, write_named}, {sizeof(registry), callbacks, read_named, write_named},
    };
    for (size_t i = 0; i < 7; i++) {
        assert_true(ortcrypt_ep_attach(&more[i]));
    }
    assert_false(ortcrypt_ep_attach(&more[7]));
    assert_true(ortcrypt_ep_attach(&more[6]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_attached), /* first: what is attached stays */
        cmocka_unit_test(callbacks_of_an_id),
        cmocka_unit_test(ids_that_nobody_knows),
        cmocka_unit_test(an_id_goes_before_the_runtimes_own),
        cmocka_unit_test(a_context_as_configuration),
        cmocka_unit_test(several_copies_of_ortcrypt),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
