/*
 * The EP author's helper on a runtime of each version: which slots it calls when an EP opens and closes its context, that it never asks for
 * a version the runtime has not, and what it makes of runtimes that lack a part.
 */
#include "fakes/fake_calls.h"
#include "ortcrypt/ep_context.h"

static const expected on_api_get[] = {
    BASE(FAKE_GET_API, NAMES, NEWER),
    BASE(FAKE_GET_VERSION, FIRST, NEWER),
    API(GetExperimentalFunction, NAMES, 30),
    API(GetCompileApi, MEMBERS, NEWER),
    API(GetEpApi, MEMBERS, NEWER),
};
static const expected on_open[] = {
    BASE(FAKE_GET_API, FIRST, NEWER),
    BASE(FAKE_GET_VERSION, FIRST, NEWER),
    API(GetExperimentalFunction, NAMES, 30),
    API(GetCompileApi, MEMBERS, NEWER),
    API(GetEpApi, MEMBERS, NEWER),
    API(HasSessionConfigEntry, FIRST, NEWER),
    PLACE(FAKE_EP, 74, MEMBERS, NEWER),
    PLACE(FAKE_EP, 76, MEMBERS, NEWER),
    PLACE(FAKE_EP, 77, MEMBERS, NEWER),
};
static const expected on_close[] = {PLACE(FAKE_EP, 75, MEMBERS, NEWER)};

static OrtStatus *ORT_API_CALL read_nothing(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *len)
{
    (void)state;
    (void)name;
    (void)allocator;
    *buffer = NULL;
    *len = 0;
    return NULL;
}

/* Options of the runtime, with a read callback where it has one. */
static OrtSessionOptions *make_options(const fake *f, const OrtApi *api)
{
    ortcrypt_ep_context_api six;
    OrtSessionOptions *options = NULL;

    assert_null(ortcrypt_ep_context_api_get(f->base, &six));
    assert_null(api->CreateSessionOptions(&options));
    if (six.SessionOptions_SetEpContextDataReadFunc != NULL) {
        assert_null(six.SessionOptions_SetEpContextDataReadFunc(options, read_nothing, options));
    }
    memset(f->control->called, 0, sizeof f->control->called);
    return options;
}

static void calls_of_each_version(void **state)
{
    (void)state;
    for (unsigned minor = FIRST; minor <= NEWER; minor++) {
        const fake f = load(minor);
        const OrtApi *const api = f.base->GetApi(FIRST);
        ortcrypt_ep_context *context = NULL;
        ortcrypt_ep_context_api six;
        OrtSessionOptions *const options = make_options(&f, api);
        assert_null(ortcrypt_ep_context_api_get(f.base, &six));
        CHECK_CALLS(&f, minor, on_api_get);
        assert_null(ortcrypt_ep_context_open(&context, f.base, options));
        CHECK_CALLS(&f, minor, on_open);
        assert_int_equal(ortcrypt_ep_context_callbacks(context), minor >= NAMES ? ORTCRYPT_EP_CONTEXT_READS : 0);
        ortcrypt_ep_context_close(context);
        CHECK_CALLS(&f, minor, on_close);
        assert_false(f.control->asked_beyond);
        api->ReleaseSessionOptions(options);
        assert_int_equal(f.control->live, 0);
    }
}

/* Half an interface is none. */
static void parts_that_are_missing(void **state)
{
    static const struct {
        unsigned minor;
        fake_fault fault;
    } cases[] = {{28, FAKE_NO_NAMES}, {31, FAKE_NO_EP_API}, {32, FAKE_NO_COMPILE_API}, {33, FAKE_NO_SLOT}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const fake f = load(cases[i].minor);
        ortcrypt_ep_context_api six;
        f.control->fault = cases[i].fault;
        memset(&six, 0x5a, sizeof six);
        assert_null(ortcrypt_ep_context_api_get(f.base, &six));
        assert_int_equal(six.era, ORTCRYPT_ERA_NONE);
        assert_true(six.SessionOptions_SetEpContextDataReadFunc == NULL);
        assert_true(six.EpContextConfig_GetEpContextDataWriteFunc == NULL);
    }
}

/* Without an OrtApi there is no error to be made; otherwise what is no 1.x is one. */
static void versions_that_are_none(void **state)
{
    static const char *const texts[] = {"2.0.0", "0.33.0", "", NULL, "1.\xff", "1.9999"};
    ortcrypt_ep_context_api six;

    (void)state;
    const fake f = load(NEWER);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        f.control->version = texts[i];
        f.control->fault = FAKE_NONE;
        OrtStatus *const status = ortcrypt_ep_context_api_get(f.base, &six);
        assert_non_null(status);
        f.base->GetApi(1)->ReleaseStatus(status);
        f.control->fault = FAKE_NO_API;
        assert_null(ortcrypt_ep_context_api_get(f.base, &six));
        assert_int_equal(six.era, ORTCRYPT_ERA_NONE);
        assert_false(f.control->asked_beyond);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_each_version),
        cmocka_unit_test(parts_that_are_missing),
        cmocka_unit_test(versions_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
