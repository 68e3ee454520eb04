/*
 * The bridge between fake runtimes of every version and an EP library that knows the callbacks by name: what the EP is told, which way
 * its data takes, and that nothing is left behind. No slot that a version has not is called or read.
 */
#include "fakes/fake_bridge.h"

static void by_id_on_every_version(void **state)
{
    (void)state;
    for (unsigned minor = FIRST; minor <= PROVEN; minor++) {
        scene s = open_scene(minor, "Fake");
        void *buffer = NULL;
        OrtEp *ep = NULL;
        size_t len = 0;
        assert_string_equal(s.ep->told, minor < NAMES ? "1.28.0" : s.f.control->version);
        OrtSessionOptions *const options = make_options(&s, 0, false);
        ok(create(s.factory, options, &ep));
        s.api->ReleaseSessionOptions(options);
        ok(s.ep->write(s.ep->write_state, "a", "x", 1));
        ok(s.ep->read(s.ep->read_state, "a", NULL, &buffer, &len));
        closed[0] = true;
        refused(s.ep->write(s.ep->write_state, "a", "x", 1), "");
        closed[0] = false;
        s.factory->ReleaseEp(s.factory, ep);
        refused(s.ep->write(s.ep->write_state, "a", "x", 1), "session that has ended");
        assert_int_equal(writes[0], minor - FIRST + 1);
        assert_int_equal(reads[0], minor - FIRST + 1);
        close_scene(&s);
    }
}

/* Without an id the EP gets what the runtime has, or nothing. */
static void without_an_id(void **state)
{
    (void)state;
    for (unsigned minor = FIRST; minor <= PROVEN; minor++) {
        scene s = open_scene(minor, "Fake");
        ortcrypt_ep_context_api six;
        OrtEp *ep = NULL;
        OrtSessionOptions *const options = make_options(&s, -1, false);
        ok(create(s.factory, options, &ep));
        assert_true(s.ep->read == NULL);
        assert_true(s.ep->write == NULL);
        s.factory->ReleaseEp(s.factory, ep);
        ok(ortcrypt_ep_context_api_get(s.f.base, &six));
        if (minor >= NAMES) {
            ok(six.SessionOptions_SetEpContextDataReadFunc(options, runtime_read, &s));
            ok(create(s.factory, options, &ep));
            assert_true(s.ep->read == runtime_read);
            assert_ptr_equal(s.ep->read_state, &s);
            if (minor >= MEMBERS) { /* ORT is told that callbacks are used: member 26 */
                OrtStatus *(ORT_API_CALL *support)(const OrtEp *ep, uint32_t *flags) = NULL;
                uint32_t flags = 0;
                memcpy(&support, (const char *)ep + 26 * sizeof(void *), sizeof support);
                assert_true(ep->ort_version_supported >= MEMBERS);
                ok(support(ep, &flags));
                assert_int_equal(flags, 3);
            }
            s.factory->ReleaseEp(s.factory, ep);
        }
        s.api->ReleaseSessionOptions(options);
        close_scene(&s);
    }
}

/* What does not come about leaves nothing. */

static void half_registrations(void **state)
{
    OrtEpFactory *factory = NULL;
    size_t count = 0;
    scene s;

    (void)state;
    for (unsigned minor = FIRST; minor <= PROVEN; minor++) {
        fake_ep_control_fn get = NULL;
        void *const library = dlopen(ep_path, RTLD_NOW | RTLD_LOCAL);
        void *const symbol = fake_symbol(library, "fake_ep_control_get");
        memcpy(&get, &symbol, sizeof get);
        get()->refuse = true;
        refused(try_scene(&s, minor, "Fake"), "does not want to");
        assert_int_equal(get()->factories, 0);
        (void)dlclose(library);
        (void)dlclose(s.library);
        check_nothing_left(&s);
        s = (scene){.f = load(minor)};
        any_api = s.f.base->GetApi(FIRST);
        refused(bridge.create("Fake", s.f.base, NULL, &factory, 1, &count), "was not told"); /* once said is once used */
        assert_true(bridge.target("Fake", "/nonexistent.so"));
        refused(bridge.create("Fake", s.f.base, NULL, &factory, 1, &count), "does not load");
        assert_int_equal(count, 0);
        assert_int_equal(s.f.control->live, 0);
    }
}

static void newer_than_the_bridge_knows(void **state)
{
    fake_ep_control_fn get = NULL;
    OrtEp *ep = NULL;
    scene s;

    (void)state;
    void *const library = dlopen(ep_path, RTLD_NOW | RTLD_LOCAL);
    void *const symbol = fake_symbol(library, "fake_ep_control_get");
    memcpy(&get, &symbol, sizeof get);
    get()->asks = PROVEN;
    refused(try_scene(&s, PROVEN, "Fake"), "was built for ONNX Runtime 1.32");
    assert_int_equal(get()->factories, 0);
    (void)dlclose(library);
    (void)dlclose(s.library);
    check_nothing_left(&s);
    s = open_scene(30, "Fake");
    s.ep->version = 31;
    OrtSessionOptions *const options = make_options(&s, 0, false);
    refused(create(s.factory, options, &ep), "newer (1.31) than the bridge knows");
    assert_int_equal(s.ep->eps, 0);
    s.api->ReleaseSessionOptions(options);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(by_id_on_every_version, reset),
        cmocka_unit_test_setup(without_an_id, reset),
        cmocka_unit_test_setup(half_registrations, reset),
        cmocka_unit_test_setup(newer_than_the_bridge_knows, reset),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
