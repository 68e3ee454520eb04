/* The plugin EP in C++ (tests/ep_cpp): its engines go and come through callbacks, files and the model; errors arrive. */
#define EP_NAME "OrtcryptCpp"
#define EP_LIBRARY "libortcrypt_ep_cpp.so"
#include "test_reference_ep_onnx.h"
#include "test_reference_ep_tensors.h"

static const rig_input INPUTS[] = {
    {"x", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, {2, 3}, 0, 1},
    {"y", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, {2, 3}, 0, 1},
};

/* (x * y) * y */
static rig_bytes mul_model(void)
{
    const int64_t dims[] = {2, 3};
    pb graph = {.len = 0};
    const pb first = node("Mul", "", "x y", "xy");
    const pb second = node("Mul", "", "xy y", "z");
    pb_message(&graph, 1, &first);
    pb_message(&graph, 1, &second);
    pb_text(&graph, 2, "g");
    put_value(&graph, 11, "x", 1, dims, 2);
    put_value(&graph, 11, "y", 1, dims, 2);
    put_value(&graph, 12, "z", 1, dims, 2);
    return model_of(&graph);
}

static void compare(const rig *r, OrtSession *session, rig_bytes model)
{
    OrtSession *const cpu = rig_cpu_session(r, model);
    rig_outputs want = rig_run(r, cpu, INPUTS, 2, 5);
    rig_outputs got = rig_run(r, session, INPUTS, 2, 5);
    assert_true(rig_difference(r, &want, &got) <= 0.0);
    rig_outputs_free(r, &want);
    rig_outputs_free(r, &got);
    r->api->ReleaseSession(cpu);
    r->api->ReleaseSession(session);
}

static void test_callbacks(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = mul_model();
    rig_store *const store = rig_store_new(r);
    const rig_options how = {.store = store, .prefix = "left/"};
    rig_bytes compiled = {NULL, 0};
    OrtSession *session = NULL;
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    assert_int_equal(store->count, 2);
    assert_int_equal(store->writes, 2);
    assert_int_equal(strncmp(store->items[0].name, "left/", 5), 0); /* opaque: passed as the EP made it */
    rig_ok(r, rig_session(r, compiled, store, &session));
    assert_int_equal(store->reads, 2);
    compare(r, session, model);

    store->items[1].bytes.data[0] = 'X';
    rig_refused(r, rig_session(r, compiled, store, &session), "no engine of OrtcryptCpp");
    const rig_bytes good = store->items[1].bytes;
    store->items[1].bytes = rig_copy("", 0);
    rig_refused(r, rig_session(r, compiled, store, &session), "no engine of OrtcryptCpp");
    free(store->items[1].bytes.data);
    store->items[1].bytes = (rig_bytes){calloc(1, 65), 65};
    rig_refused(r, rig_session(r, compiled, store, &session), "at most 64 are accepted");
    free(store->items[1].bytes.data);
    store->items[1].bytes = good;
    store->fail = "the vault is closed";
    rig_refused(r, rig_session(r, compiled, store, &session), "the vault is closed");
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

static void test_files(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    const rig_bytes model = mul_model();
    (void)snprintf(folder, sizeof(folder), "%s/files", r->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/mul_ctx.onnx", folder);
    /* the config alone knows no ep.context_file_path: compiled from a file, the model's folder is known */
    char source[PATH_MAX + 32];
    (void)snprintf(source, sizeof(source), "%s/mul.onnx", folder);
    rig_save(source, model);
    OrtSessionOptions *options = rig_session_options(r, NULL);
    OrtModelCompilationOptions *compilation = NULL;
    OrtSession *session = NULL;
    rig_ok(r, r->compile->CreateModelCompilationOptionsFromSessionOptions(r->env, options, &compilation));
    rig_ok(r, r->compile->ModelCompilationOptions_SetInputModelPath(compilation, source));
    rig_ok(r, r->compile->ModelCompilationOptions_SetOutputModelPath(compilation, path));
    rig_ok(r, r->compile->CompileModel(r->env, compilation));
    r->compile->ReleaseModelCompilationOptions(compilation);
    assert_int_equal(rig_folder_count(folder), 4);
    rig_ok(r, r->api->CreateSession(r->env, path, options, &session));
    compare(r, session, model);
    r->api->ReleaseSessionOptions(options);

    /* from a buffer there is no folder to write to */
    const rig_options how = {.out_path = NULL};
    rig_bytes compiled = {NULL, 0};
    rig_refused(r, rig_compile(r, model, &how, &compiled), "no folder");
    free(model.data);
    oc_test_rm_rf(folder);
}

static void test_embedded(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = mul_model();
    rig_store *const store = rig_store_new(r);
    const rig_options how = {.store = store, .embed = true};
    rig_bytes compiled = {NULL, 0};
    OrtSession *session = NULL;
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    rig_ok(r, rig_session(r, compiled, store, &session));
    compare(r, session, model);
    assert_int_equal(store->writes + store->reads, 0);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

/* A typed option that is neither 0 nor 1 stops CreateEp, as an exception of the wrapper. */
static void test_options(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = mul_model();
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    OrtSession *session = NULL;
    rig_ok(r, r->api->AddSessionConfigEntry(options, "ep.share_ep_contexts", "yes"));
    rig_refused(r, r->api->CreateSessionFromArray(r->env, model.data, model.len, options, &session),
                "ep.share_ep_contexts is 0 or 1, not \"yes\"");
    r->api->ReleaseSessionOptions(options);
    free(model.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_embedded),
        cmocka_unit_test(test_options),
    };
    int failed = cmocka_run_group_tests_name("C++ EP, ORT 1.30.0", tests, rig_open_130, rig_close_group);
    failed += cmocka_run_group_tests_name("C++ EP, ORT 1.32.0", tests, rig_open_132, rig_close_group);
    return failed;
}
