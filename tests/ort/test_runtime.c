/* The runtime loader against real ONNX Runtimes: versions, eras, telemetry, routes, EP libraries, two runtimes at once. */
#include "test_flow_rig.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <jansson.h>

#include "runtime/runtime.h"

static void opens_with_its_era(void **state)
{
    static const ortcrypt_era eras[] = {ORTCRYPT_ERA_EXPERIMENTAL, ORTCRYPT_ERA_STABLE};

    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_runtime *const runtime = rig_runtime(rig_versions[i]);
        assert_string_equal(ortcrypt_runtime_version(runtime), rig_versions[i]);
        assert_int_equal(oc_runtime_ep_context(runtime)->era, eras[i]);
        assert_non_null(ortcrypt_runtime_api(runtime));
        assert_non_null(ortcrypt_runtime_env(runtime));
        assert_non_null(oc_runtime_compile_api(runtime));
        rig_runtime_close(runtime);
    }
}

static void first_era_opens_without_callbacks(void **state)
{
    char path[1024];

    (void)state;
    if (!rig_runtime_path(path, "1.24.4")) {
        skip();
    }
    ortcrypt_runtime *const runtime = rig_runtime("1.24.4");
    const char *why = NULL;
    assert_int_equal(oc_runtime_ep_context(runtime)->era, ORTCRYPT_ERA_NONE);
    assert_int_equal(oc_runtime_route(runtime, "OrtcryptReference", &why), OC_ROUTE_NONE);
    assert_non_null(strstr(why, "1.28"));
    rig_runtime_close(runtime);
}

static void two_runtimes_live_side_by_side(void **state)
{
    (void)state;
    ortcrypt_runtime *const a = rig_runtime("1.30.0");
    ortcrypt_runtime *const b = rig_runtime("1.32.0");
    assert_ptr_not_equal(ortcrypt_runtime_api(a), ortcrypt_runtime_api(b));
    assert_string_equal(ortcrypt_runtime_version(a), "1.30.0");
    assert_string_equal(ortcrypt_runtime_version(b), "1.32.0");
    rig_runtime_close(a);
    rig_runtime_close(b);
}

static void held_runtime_does_not_close(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    (void)state;
    ortcrypt_runtime *const runtime = rig_runtime("1.32.0");
    oc_runtime_hold(runtime);
    assert_st(ortcrypt_runtime_close(runtime, &err), &err, ORTCRYPT_E_BUSY);
    oc_runtime_release(runtime);
    rig_runtime_close(runtime);
}

static void wrong_libraries_are_named(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    (void)state;
    char *const dir = oc_test_tmpdir();
    char *const path = oc_test_format("%s/text.so", dir);
    assert_st(ortcrypt_runtime_open(&runtime, "/nonexistent/libonnxruntime.so", NULL, &err), &err, ORTCRYPT_E_IO);
    assert_null(runtime);
    assert_non_null(strstr(err.message, "/nonexistent/libonnxruntime.so"));
    oc_test_write_file(path, "no library\n", 11);
    assert_st(ortcrypt_runtime_open(&runtime, path, NULL, &err), &err, ORTCRYPT_E_INPUT);
    assert_non_null(strstr(err.message, "does not load"));
    assert_st(ortcrypt_runtime_open(&runtime, "libc.so.6", NULL, &err), &err, ORTCRYPT_E_INPUT);
    assert_non_null(strstr(err.message, "OrtGetApiBase"));
    oc_test_rm_rf(dir);
    free(path);
    free(dir);
}

static const char *fake_version = "";
static const OrtApiBase *real_base;

static const char *ORT_API_CALL fake_get_version(void) { return fake_version; }

static const OrtApi *ORT_API_CALL fake_get_api(uint32_t version) { return real_base->GetApi(version); }

static const OrtApi *ORT_API_CALL no_api(uint32_t version)
{
    (void)version;
    return NULL;
}

static const OrtApiBase *load_base(const char *version)
{
    char path[1024];
    const OrtApiBase *(*get)(void) = NULL;

    assert_true(rig_runtime_path(path, version));
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    void *const symbol = dlsym(handle, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

static void version_rules(void **state)
{
    static const char *const refused[] = {"1.22.1", "2.0.0", "0.9.0", "", "x", "1", "11.30.0", "1.99999999999"};
    const OrtApiBase base = {fake_get_api, fake_get_version};
    const OrtApiBase empty = {no_api, fake_get_version};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    (void)state;
    real_base = load_base("1.32.0");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        fake_version = refused[i];
        assert_st(ortcrypt_runtime_adopt(&runtime, &base, NULL, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
        assert_null(runtime);
    }
    fake_version = "1.32.0";
    assert_st(ortcrypt_runtime_adopt(&runtime, &empty, NULL, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    assert_ok(ortcrypt_runtime_adopt(&runtime, &base, NULL, NULL, &err), &err);
    rig_runtime_close(runtime);
}

static int notices;

static void count_notice(void *state, const char *sentence)
{
    (void)state;
    assert_non_null(strstr(sentence, "1.40.0"));
    notices++;
}

static void newer_minor_is_accepted_with_a_notice(void **state)
{
    const OrtApiBase base = {fake_get_api, fake_get_version};
    const ortcrypt_monitor monitor = {count_notice, NULL, NULL};
    const ortcrypt_runtime_options options = {.struct_size = sizeof(options), .monitor = &monitor};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    (void)state;
    real_base = load_base("1.32.0");
    fake_version = "1.40.0";
    assert_ok(ortcrypt_runtime_adopt(&runtime, &base, NULL, &options, &err), &err);
    assert_int_equal(notices, 1);
    rig_runtime_close(runtime);
}

static void telemetry_needs_the_variable(void **state)
{
    ortcrypt_runtime_options options = {.struct_size = sizeof(options), .accept_telemetry = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    char path[1024];

    (void)state;
    assert_true(rig_runtime_path(path, "1.32.0"));
    assert_int_equal(setenv("ORT_DISABLE_TELEMETRY", "0", 1), 0);
    assert_st(ortcrypt_runtime_open(&runtime, path, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "ORT_DISABLE_TELEMETRY=1"));
    assert_int_equal(unsetenv("ORT_DISABLE_TELEMETRY"), 0);
    assert_st(ortcrypt_runtime_open(&runtime, path, NULL, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    /* the rule alone: ORT itself is kept from writing by the variable, set again before anything is loaded from it */
    assert_int_equal(setenv("ORT_DISABLE_TELEMETRY", "1", 1), 0);
    assert_ok(ortcrypt_runtime_open(&runtime, path, &options, &err), &err);
    rig_runtime_close(runtime);
}

static void routes(void **state)
{
    (void)state;
    ortcrypt_runtime *const old = rig_runtime("1.30.0");
    ortcrypt_runtime *const new = rig_runtime("1.32.0");
    const char *why = NULL;
    assert_int_equal(oc_runtime_route(old, "OrtcryptReference", &why), OC_ROUTE_NATIVE);
    assert_int_equal(oc_runtime_route(new, "OrtcryptReference", &why), OC_ROUTE_NATIVE);
    assert_int_equal(oc_runtime_route(old, "QNNExecutionProvider", &why), OC_ROUTE_NATIVE);
    assert_int_equal(oc_runtime_route(old, "OpenVINOExecutionProvider", &why), OC_ROUTE_NATIVE);
    assert_int_equal(oc_runtime_route(new, "QNNExecutionProvider", &why), OC_ROUTE_NONE);
    assert_non_null(strstr(why, "it needs the bridge here")); /* nobody registered it */
    assert_int_equal(oc_runtime_route(new, "OpenVINOExecutionProvider", &why), OC_ROUTE_NONE);
    assert_int_equal(oc_runtime_route(new, "CPUExecutionProvider", &why), OC_ROUTE_NONE);
    assert_int_equal(oc_runtime_route(new, "CUDAExecutionProvider", &why), OC_ROUTE_UNPROVEN);
    rig_runtime_close(old);
    rig_runtime_close(new);
}

static void registers_an_ep_once(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const OrtEpDevice **devices = NULL;
    size_t count = 0;
    char library[1024];
    char other[1024];

    (void)state;
    rig_reference_path(library);
    assert_true(rig_runtime_path(other, "1.30.0"));
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_runtime *const runtime = rig_runtime(rig_versions[i]);
        assert_st(oc_runtime_devices(runtime, "OrtcryptReference", &devices, &count, &err), &err, ORTCRYPT_E_NOT_FOUND);
        assert_non_null(strstr(err.hint, "CPUExecutionProvider"));
        assert_ok(ortcrypt_runtime_register_ep(runtime, "OrtcryptReference", library, &err), &err);
        assert_ok(ortcrypt_runtime_register_ep(runtime, "OrtcryptReference", library, &err), &err);
        assert_st(ortcrypt_runtime_register_ep(runtime, "OrtcryptReference", other, &err), &err, ORTCRYPT_E_INVALID);
        assert_st(ortcrypt_runtime_register_ep(runtime, "Other", "/nonexistent.so", &err), &err, ORTCRYPT_E_IO);
        assert_st(ortcrypt_runtime_register_ep(runtime, "Other", other, &err), &err, ORTCRYPT_E_ORT);
        assert_null(strchr(err.message, '\n'));
        assert_ok(oc_runtime_devices(runtime, "OrtcryptReference", &devices, &count, &err), &err);
        assert_true(count >= 1);
        free(devices);
        /* a second runtime object over the same library shares its OrtEnv and finds the EP registered */
        ortcrypt_runtime *const again = rig_runtime(rig_versions[i]);
        assert_ok(ortcrypt_runtime_register_ep(again, "OrtcryptReference", library, &err), &err);
        rig_runtime_close(again);
        rig_runtime_close(runtime);
    }
}

/* Complete, told apart, and on the newest runtime all there. */
static void check_functions(const json_t *functions)
{
    static const char *const checks[] = {"set and read back", "refuses NULL", "place"};
    size_t by_check[3] = {0, 0, 0};
    size_t index = 0;
    json_t *row = NULL;

    json_array_foreach(functions, index, row) {
        const char *const found = json_string_value(json_object_get(row, "found"));
        const char *const table = json_string_value(json_object_get(row, "table"));
        assert_string_equal(found, strcmp(table, "session entry") == 0 ? "entry" : "member");
        assert_true(strlen(json_string_value(json_object_get(row, "lost"))) > 10);
        for (size_t i = 0; i < 3; i++) {
            by_check[i] += strcmp(json_string_value(json_object_get(row, "checked")), checks[i]) == 0;
        }
    }
    assert_int_equal(by_check[0], 7);
    assert_int_equal(by_check[1], 1);
    assert_int_equal(by_check[0] + by_check[1] + by_check[2], index);
    assert_string_equal(json_string_value(json_object_get(json_array_get(functions, 0), "name")), "SessionOptions_SetEpContextDataReadFunc");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(functions, 0), "slot")), 426);
}

static void describes_itself(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    json_error_t where;
    char *text = NULL;

    (void)state;
    ortcrypt_runtime *const runtime = rig_runtime("1.32.0");
    assert_ok(ortcrypt_runtime_describe(runtime, NULL, &text, &err), &err);
    json_t *const all = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    assert_non_null(all);
    json_t *const about = json_object_get(all, "runtime");
    assert_string_equal(json_string_value(json_object_get(about, "version")), "1.32.0");
    assert_string_equal(json_string_value(json_object_get(about, "era")), "stable");
    check_functions(json_object_get(all, "functions"));
    json_t *const cpu = json_array_get(json_object_get(all, "eps"), 0);
    assert_string_equal(json_string_value(json_object_get(cpu, "name")), "CPUExecutionProvider");
    assert_string_equal(json_string_value(json_object_get(cpu, "route")), "none");
    assert_string_equal(json_string_value(json_object_get(all, "telemetry")), "off");
    assert_true(json_is_object(json_object_get(all, "kernel")));
    json_decref(all);
    ortcrypt_free(text, 0);
    rig_runtime_close(runtime);
}

static void prints_nothing(void **state)
{
    char byte;
    bool closed = true;

    (void)state;
    char *const dir = oc_test_tmpdir();
    char *const path = oc_test_format("%s/out", dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)fflush(NULL);
    const int out = dup(1);
    const int errors = dup(2);
    (void)dup2(fd, 1);
    (void)dup2(fd, 2);
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_runtime *runtime = NULL;
        OrtSession *session = NULL;
        OrtSessionOptions *options = NULL;
        char library[1024];
        (void)rig_runtime_path(library, rig_versions[i]);
        if (ortcrypt_runtime_open(&runtime, library, NULL, &err) == ORTCRYPT_OK) {
            const OrtApi *const api = ortcrypt_runtime_api(runtime);
            api->ReleaseStatus(api->CreateSessionOptions(&options));
            api->ReleaseStatus(api->CreateSessionFromArray(ortcrypt_runtime_env(runtime), "no model", 8, options, &session));
            api->ReleaseSessionOptions(options);
            closed = closed && ortcrypt_runtime_close(runtime, &err) == ORTCRYPT_OK;
        }
    }
    (void)fflush(NULL);
    (void)dup2(out, 1);
    (void)dup2(errors, 2);
    (void)close(out);
    (void)close(errors);
    assert_true(closed);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(read(fd, &byte, 1), 0);
    (void)close(fd);
    oc_test_rm_rf(dir);
    free(path);
    free(dir);
}

/* What is left of ORT's messages; the ones seen, and what only looks like a place in a source. */
static void words_without_places(void **state)
{
    static const char *const pairs[][2] = {
        {"/onnxruntime_src/onnxruntime/core/graph/model.cc:202 onnxruntime::Model::Model(onnx::ModelProto&&, const "
         "onnxruntime::IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::ModelOptions&) Unsupported model IR version: 99\n",
         "Unsupported model IR version: 99"},
        {"Exception during initialization: /onnxruntime_src/core/optimizer/initializer.cc:51 onnxruntime::Initializer::Initializer(const "
         "std::filesystem::path&) [ONNXRuntimeError] : 1 : FAIL : tensorprotoutils.cc:1469 ValidateSize Initializer 'w': raw_data size",
         "Exception during initialization: [ONNXRuntimeError] : 1 : FAIL : Initializer 'w': raw_data size"},
        {"/x/y.h:7 std::vector<std::function<int(long)>> a::B<T>::c(const std::pair<int, int>&)::<lambda(auto:1)> const [with T = long "
         "int; R = x[3]] count was false.",
         "count was false."},
        {"/x/y.h:46 void a::Check(const std::unordered_map<std::__cxx11::basic_string<char>, int>&, bool) ONNX Runtime only", "ONNX Runtime only"},
        {"/x/y.cc:1 a::operator()(int) const said no", "said no"},
        {"Status Message: matmul_helper.h:59 Compute MatMul dimension mismatch", "Status Message: MatMul dimension mismatch"},
        {"model.onnx:5 and a.h: 3 and x.cc stay (as they are)", "model.onnx:5 and a.h: 3 and x.cc stay (as they are)"},
        {"/x/y.cc:1 a::b(int", "a::b(int"},
        {"/x/y.cc:1", ""},
        {"  two \n\t words ", "two words"},
        {NULL, ""},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        ortcrypt_ort_words(text, sizeof text, pairs[i][0]);
        assert_string_equal(text, pairs[i][1]);
    }
    ortcrypt_ort_words(text, 6, "long words");
    assert_string_equal(text, "long ");
    text[0] = 'x';
    ortcrypt_ort_words(text, 0, "words");
    assert_int_equal(text[0], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_with_its_era),
        cmocka_unit_test(first_era_opens_without_callbacks),
        cmocka_unit_test(two_runtimes_live_side_by_side),
        cmocka_unit_test(held_runtime_does_not_close),
        cmocka_unit_test(wrong_libraries_are_named),
        cmocka_unit_test(version_rules),
        cmocka_unit_test(newer_minor_is_accepted_with_a_notice),
        cmocka_unit_test(telemetry_needs_the_variable),
        cmocka_unit_test(routes),
        cmocka_unit_test(describes_itself),
        cmocka_unit_test(prints_nothing),
        cmocka_unit_test(words_without_places),
        cmocka_unit_test(registers_an_ep_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
