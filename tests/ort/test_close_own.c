/*
 * An application's own session and the inputs it was made from, closed in any order: the session runs on, and callbacks that outlive
 * their state are refused. Worth most under the address sanitizer.
 */
#include "test_close_bed.h"

static void bundle_and_runtime_before_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * RIG_VERSION_COUNT; i++) {
        bed b;
        bed_open_compiled(&b, rig_versions[i / 2]);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        own o = own_open(&b, bundle, i % 2 == 0);
        assert_both_busy(&b, bundle);
        api->ReleaseSessionOptions(o.options); /* the session has what it needs of them */
        assert_runs(&b, o.session, "own session");
        api->ReleaseSession(o.session);
        assert_both_busy(&b, bundle);
        ortcrypt_inputs_close(o.inputs);
        close_bundle(bundle);
        bed_close(&b);
    }
}

static void inputs_before_own_session(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * RIG_VERSION_COUNT; i++) {
        bed b;
        bed_open_compiled(&b, rig_versions[i / 2]);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        own o = own_open(&b, bundle, i % 2 == 0);
        assert_runs(&b, o.session, "own session");
        ortcrypt_inputs_close(o.inputs);
        assert_runs(&b, o.session, "after its inputs were closed");
        close_bundle(bundle);
        assert_runs(&b, o.session, "after the bundle was closed");
        api->ReleaseSession(o.session);
        api->ReleaseSessionOptions(o.options);
        bed_close(&b);
    }
}

/* A copy of the inputs' model (free), which they take along when they are closed. */
static void *keep_model(const own *o, size_t *len)
{
    const void *model = NULL;

    ortcrypt_inputs_model(o->inputs, &model, len);
    void *const kept = malloc(*len);
    assert_non_null(kept);
    memcpy(kept, model, *len);
    return kept;
}

/* Session options that were prepared once are good for another session: nothing in them leads to freed weights. */
static void inputs_before_second_session(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        bed b;
        size_t model_len = 0;
        OrtSession *second = NULL;
        bed_open(&b, rig_versions[i], &external_model);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        own o = own_open(&b, bundle, true);
        void *const kept = keep_model(&o, &model_len);
        ortcrypt_inputs_close(o.inputs);
        close_bundle(bundle);
        assert_null(api->CreateSessionFromArray(ortcrypt_runtime_env(b.runtime), kept, model_len, o.options, &second));
        assert_runs(&b, second, "a second session, made after the inputs were closed");
        api->ReleaseSession(second);
        api->ReleaseSession(o.session);
        api->ReleaseSessionOptions(o.options);
        free(kept);
        bed_close(&b);
    }
}

/* Callbacks outlive what they read from and write to: whoever still has them is told so. */
static void callbacks_after_close(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        bed b;
        size_t model_len = 0;
        size_t len = 0;
        void *bytes = NULL;
        OrtAllocator *allocator = NULL;
        OrtSession *second = NULL;
        OrtExternalInitializerInfo *info = NULL;
        bed_open_compiled(&b, rig_versions[i]);
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        own o = own_open(&b, bundle, false);
        void *const kept = keep_model(&o, &model_len);
        ortcrypt_inputs_close(o.inputs);
        close_bundle(bundle);
        assert_refused(&b, api->CreateSessionFromArray(ortcrypt_runtime_env(b.runtime), kept, model_len, o.options, &second));
        assert_null(second);
        assert_null(api->GetAllocatorWithDefaultOptions(&allocator));
        assert_refused(&b, ortcrypt_read_named(o.inputs, "any", allocator, &bytes, &len));
        assert_null(bytes);
        ortcrypt_output *const output = output_open(&b);
        assert_refused(&b, ortcrypt_read_named(output, "any", allocator, &bytes, &len)); /* not the state of this callback */
        ortcrypt_output_close(output);
        assert_refused(&b, ortcrypt_write_named(output, "any", "bytes", 5));
        assert_refused(&b, ortcrypt_write_model(output, "bytes", 5));
        assert_refused(&b, ortcrypt_initializer_location(output, "any", NULL, NULL, &info));
        assert_int_equal(variant_count(&b), 2);
        api->ReleaseSession(o.session);
        api->ReleaseSessionOptions(o.options);
        free(kept);
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundle_and_runtime_before_inputs),
        cmocka_unit_test(inputs_before_own_session),
        cmocka_unit_test(inputs_before_second_session),
        cmocka_unit_test(callbacks_after_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
