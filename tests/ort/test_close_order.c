/*
 * Closing in a wrong order: an error or nothing at all, never a crash and never another result. Worth most under the address
 * sanitizer.
 */
#include "test_close_bed.h"

#include <dlfcn.h>

#include "ortcrypt/ep_context.h"

static void bundle_and_runtime_before_session(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * RIG_VERSION_COUNT; i++) {
        const ortcrypt_session_options options = variant_options(i % 2 == 0);
        ortcrypt_session *sessions[2] = {NULL, NULL};
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        bed b;
        bed_open_compiled(&b, rig_versions[i / 2]);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        for (int j = 0; j < 2; j++) {
            assert_ok(ortcrypt_session_open(&sessions[j], b.runtime, bundle, &options, &err), &err);
        }
        assert_both_busy(&b, bundle);
        assert_runs(&b, ortcrypt_session_ort(sessions[0]), "after a close that was refused");
        ortcrypt_session_close(sessions[0]);
        assert_both_busy(&b, bundle);
        assert_runs(&b, ortcrypt_session_ort(sessions[1]), "after its sister was closed");
        ortcrypt_session_close(sessions[1]);
        close_bundle(bundle);
        bed_close(&b);
    }
}

/* The bundle outlives the runtime, and the keyring neither: all three orders are allowed. */
static void keyring_first_bundle_last(void **state)
{
    const ortcrypt_session_options options = variant_options(true);
    ortcrypt_session *session = NULL;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;
    bed b;

    (void)state;
    bed_open(&b, rig_versions[0], &external_model);
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    ortcrypt_keyring_free(b.keyring);
    b.keyring = NULL;
    assert_ok(ortcrypt_session_open(&session, b.runtime, bundle, &options, &err), &err);
    assert_runs(&b, ortcrypt_session_ort(session), "without the keyring");
    ortcrypt_session_close(session);
    rig_runtime_close(b.runtime);
    b.runtime = NULL;
    ortcrypt_bundle_get_info(bundle, &info);
    assert_int_equal(info.variant_count, 1);
    close_bundle(bundle);
    bed_close(&b);
}

static const OrtApiBase *runtime_base(const bed *b)
{
    const OrtApiBase *(*get_base)(void) = NULL;
    char path[1024];

    assert_true(rig_runtime_path(path, b->version));
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); /* the rig's; never unloaded */
    assert_non_null(library);
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof(symbol));
    return get_base();
}

/* CompileModel by the application, with everything it writes going to `output`. */
static void own_compile(const bed *b, ortcrypt_output *output)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const OrtCompileApi *const c = api->GetCompileApi();
    OrtEnv *const env = ortcrypt_runtime_env(b->runtime);
    OrtModelCompilationOptions *compile = NULL;
    ortcrypt_ep_context_api callbacks;
    ortcrypt_bundle *const bundle = bed_bundle(b);
    const void *model = NULL;
    size_t model_len = 0;
    own o = {NULL, NULL, NULL};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_null(api->CreateSessionOptions(&o.options));
    append_reference_ep(b, o.options);
    assert_ok(ortcrypt_inputs_open(&o.inputs, b->runtime, bundle, o.options, NULL, &err), &err);
    ortcrypt_inputs_model(o.inputs, &model, &model_len);
    assert_null(ortcrypt_ep_context_api_get(runtime_base(b), &callbacks));
    assert_null(c->CreateModelCompilationOptionsFromSessionOptions(env, o.options, &compile));
    assert_null(c->ModelCompilationOptions_SetInputModelFromBuffer(compile, model, model_len));
    assert_null(c->ModelCompilationOptions_SetOutputModelWriteFunc(compile, ortcrypt_write_model, output));
    assert_null(c->ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(compile, ortcrypt_initializer_location, output));
    assert_null(callbacks.ModelCompilationOptions_SetEpContextDataWriteFunc(compile, ortcrypt_write_named, output));
    assert_null(c->ModelCompilationOptions_SetEpContextBinaryInformation(compile, "./", "model.onnx"));
    assert_null(c->CompileModel(env, compile));
    c->ReleaseModelCompilationOptions(compile);
    api->ReleaseSessionOptions(o.options);
    ortcrypt_inputs_close(o.inputs);
    close_bundle(bundle);
}

/* A second commit, and callbacks that come after the first, are refused and change nothing. */
static void output_after_its_commit(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        const ortcrypt_session_options options = variant_options(false);
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_compile_result result;
        bed b;
        bed_open(&b, rig_versions[i], &external_model);
        ortcrypt_output *const output = output_open(&b);
        own_compile(&b, output);
        assert_ok(ortcrypt_output_commit(output, &result, &err), &err);
        assert_st(ortcrypt_output_commit(output, &result, &err), &err, ORTCRYPT_E_INVALID);
        assert_refused(&b, ortcrypt_write_model(output, "more", 4));
        assert_refused(&b, ortcrypt_write_named(output, "new name", "more", 4));
        assert_st(ortcrypt_output_commit(output, &result, &err), &err, ORTCRYPT_E_INVALID);
        assert_st(ortcrypt_runtime_close(b.runtime, &err), &err, ORTCRYPT_E_BUSY);
        ortcrypt_output_close(output);
        assert_int_equal(variant_count(&b), 2);
        assert_same_output(&b, &options, "compiled");
        assert_ok(ortcrypt_bundle_verify(b.bundle, b.keyring, NULL, NULL, &err), &err);
        bed_close(&b);
    }
}

/* Closed without a commit, with and without bytes in it, and after a commit that was refused: the bundle is as before. */
static void output_without_commit(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        bed b;
        bed_open(&b, rig_versions[i], &external_model);
        ortcrypt_output_close(output_open(&b));
        ortcrypt_output *output = output_open(&b);
        own_compile(&b, output);
        ortcrypt_output_close(output);
        output = output_open(&b);
        assert_null(ortcrypt_write_named(output, "blob", "bytes", 5));
        assert_int_not_equal(ortcrypt_output_commit(output, NULL, &err), ORTCRYPT_OK);
        assert_st(ortcrypt_output_commit(output, NULL, &err), &err, ORTCRYPT_E_INVALID);
        assert_refused(&b, ortcrypt_write_named(output, "blob", "bytes", 5));
        ortcrypt_output_close(output);
        assert_int_equal(variant_count(&b), 1);
        assert_ok(ortcrypt_bundle_verify(b.bundle, b.keyring, NULL, NULL, &err), &err);
        bed_close(&b);
    }
}

static void keyring_before_commit(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    bed b;

    (void)state;
    bed_open(&b, rig_versions[1], &external_model);
    ortcrypt_output *const output = output_open(&b);
    own_compile(&b, output);
    ortcrypt_keyring_free(b.keyring);
    b.keyring = NULL;
    assert_ok(ortcrypt_output_commit(output, NULL, &err), &err);
    ortcrypt_output_close(output);
    bed_close(&b);
}

/* An open that is refused leaves NULL in its handle, and NULL can be closed as often as one likes. */
static void nothing_is_closed(void **state)
{
    char nonsense;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    bed b;

    (void)state;
    bed_open(&b, rig_versions[1], &external_model);
    ortcrypt_bundle *const good = bed_bundle(&b);
    const ortcrypt_session_options unknown = {.struct_size = sizeof(unknown), .variant = "no such"};
    const ortcrypt_compile_options no_ep = {.struct_size = sizeof(no_ep)};
    ortcrypt_bundle *bundle = (void *)&nonsense;
    ortcrypt_session *session = (void *)&nonsense;
    ortcrypt_inputs *inputs = (void *)&nonsense;
    ortcrypt_output *output = (void *)&nonsense;
    ortcrypt_runtime *runtime = (void *)&nonsense;
    OrtSessionOptions *options = NULL;
    assert_null(ortcrypt_runtime_api(b.runtime)->CreateSessionOptions(&options));
    assert_int_not_equal(ortcrypt_bundle_open(&bundle, b.dir, b.keyring, NULL, &err), ORTCRYPT_OK);
    assert_int_not_equal(ortcrypt_session_open(&session, b.runtime, good, &unknown, &err), ORTCRYPT_OK);
    assert_int_not_equal(ortcrypt_inputs_open(&inputs, b.runtime, good, options, &unknown, &err), ORTCRYPT_OK);
    assert_int_not_equal(ortcrypt_output_open(&output, b.runtime, b.bundle, b.keyring, &no_ep, &err), ORTCRYPT_OK);
    assert_int_not_equal(ortcrypt_runtime_open(&runtime, b.model, NULL, &err), ORTCRYPT_OK);
    ortcrypt_runtime_api(b.runtime)->ReleaseSessionOptions(options);
    for (int i = 0; i < 2; i++) {
        ortcrypt_session_close(session);
        ortcrypt_inputs_close(inputs);
        ortcrypt_output_close(output);
        assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
        assert_ok(ortcrypt_runtime_close(runtime, &err), &err);
        assert_ok(ortcrypt_bundle_close(NULL, NULL), &err);
        assert_ok(ortcrypt_runtime_close(NULL, NULL), &err);
        ortcrypt_keyring_free(NULL);
    }
    close_bundle(good);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundle_and_runtime_before_session), cmocka_unit_test(keyring_first_bundle_last),
        cmocka_unit_test(output_after_its_commit),           cmocka_unit_test(output_without_commit),
        cmocka_unit_test(keyring_before_commit),             cmocka_unit_test(nothing_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
