/*
 * Every good model of tests/models on every runtime and at every optimization level, through the source variant and compiled
 * (embedded and not), against the values computed when the models were made.
 */
#include "test_flow_bed.h"

#include <unistd.h>

#define VALUES_MAX 64 /* the largest tensor of these models has fewer */

typedef struct array {
    int64_t shape[4];
    size_t rank;
    size_t count;
    bool boolean;
    float values[VALUES_MAX];
    bool truth; /* of a boolean scalar */
} array;

/* Version 1.0 files of float32 or bool, in C order, as numpy.save writes them. */
static bool load_npy(array *out, const char *path)
{
    size_t len = 0;

    if (access(path, R_OK) != 0) {
        return false;
    }
    uint8_t *const bytes = oc_test_read_file(path, &len);
    assert_true(len > 10 && memcmp(bytes, "\x93NUMPY\x01", 7) == 0);
    const size_t header_len = bytes[8] + 256u * bytes[9];
    char *const header = (char *)bytes + 10;
    *out = (array){.count = 1};
    out->boolean = strstr(header, "'|b1'") != NULL;
    assert_true(out->boolean || strstr(header, "'<f4'") != NULL);
    assert_non_null(strstr(header, "'fortran_order': False"));
    for (char *at = strstr(header, "'shape': (") + 10; *at != ')';) {
        out->shape[out->rank] = strtol(at, &at, 10);
        out->count *= (size_t)out->shape[out->rank++];
        at += strspn(at, ", ");
    }
    assert_true(out->count <= VALUES_MAX);
    if (out->boolean) {
        out->truth = bytes[10 + header_len] != 0;
    } else {
        memcpy(out->values, bytes + 10 + header_len, out->count * sizeof(float));
    }
    free(bytes);
    return true;
}

static OrtValue *make_value(const OrtApi *api, const OrtMemoryInfo *memory, array *from)
{
    OrtValue *value = NULL;

    assert_null(from->boolean
                    ? api->CreateTensorWithDataAsOrtValue(memory, &from->truth, 1, from->shape, from->rank,
                                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, &value)
                    : api->CreateTensorWithDataAsOrtValue(memory, from->values, from->count * sizeof(float), from->shape,
                                                          from->rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    return value;
}

/* Runs with x and, where the model has it, cond; compares y. */
static void run_and_compare(const OrtApi *api, OrtSession *session, const char *name, const char *what)
{
    static const char *const input_names[] = {"x", "cond"};
    static const char *const output_names[] = {"y"};
    const char *const deps = oc_test_env("ORTCRYPT_DEPS");
    OrtMemoryInfo *memory = NULL;
    OrtValue *inputs[2] = {NULL, NULL};
    OrtValue *output = NULL;
    const void *data = NULL;
    size_t len = 0;
    array x;
    array cond;
    array y;
    char *const x_path = oc_test_format("%s/testmodels/%s/%s.x.npy", deps, name, name);
    char *const cond_path = oc_test_format("%s/testmodels/%s/%s.cond.npy", deps, name, name);
    char *const y_path = oc_test_format("%s/testmodels/%s/%s.expected.y.npy", deps, name, name);

    assert_true(load_npy(&x, x_path) && load_npy(&y, y_path));
    const bool has_cond = load_npy(&cond, cond_path);
    assert_null(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    inputs[0] = make_value(api, memory, &x);
    inputs[1] = has_cond ? make_value(api, memory, &cond) : NULL;
    OrtStatus *const status = api->Run(session, NULL, input_names, (const OrtValue *const *)inputs, has_cond ? 2 : 1,
                                       output_names, 1, &output);
    if (status != NULL) {
        fail_msg("%s, %s: %s", name, what, api->GetErrorMessage(status));
    }
    assert_null(api->GetTensorSizeInBytes(output, &len));
    assert_int_equal(len, y.count * sizeof(float));
    assert_null(api->GetTensorData(output, &data));
    rig_assert_close(data, y.values, y.count, name);
    api->ReleaseValue(inputs[0]);
    api->ReleaseValue(inputs[1]);
    api->ReleaseValue(output);
    api->ReleaseMemoryInfo(memory);
    free(x_path);
    free(cond_path);
    free(y_path);
}

/* The variant at every level. `variant` NULL: the source. */
static void run_levels(const bed *b, const char *name, const char *variant)
{
    static const GraphOptimizationLevel levels[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL};
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    ortcrypt_bundle *const bundle = bed_bundle(b);

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        ortcrypt_session_options run = {.struct_size = sizeof(run), .variant = variant};
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_session *session = NULL;
        OrtSessionOptions *base = NULL;
        assert_null(api->CreateSessionOptions(&base));
        assert_null(api->SetSessionGraphOptimizationLevel(base, levels[i]));
        run.base = base;
        if (ortcrypt_session_open(&session, b->runtime, bundle, &run, &err) != ORTCRYPT_OK) {
            fail_msg("%s, %s, level %d on %s: %s", name, variant != NULL ? variant : "source", (int)levels[i], b->version, err.message);
        }
        run_and_compare(api, ortcrypt_session_ort(session), name, variant != NULL ? variant : "source");
        ortcrypt_session_close(session);
        api->ReleaseSessionOptions(base);
    }
    close_bundle(bundle);
}

/* 1.24.4 has no callbacks, and writes compiled models with an If, Loop or Scan that no runtime loads again. */
static bool compiles(const char *version, const char *name, bool embed)
{
    const bool control_flow = strstr("if_ext loop_ext nested_ext scan_ext", name) != NULL;

    return strcmp(version, "1.24.4") != 0 || (embed && !control_flow);
}

/* 1.24.4 takes string tensors for external data and does not load them, from a plaintext file neither. */
static bool loads(const char *version, const char *name)
{
    return strcmp(version, "1.24.4") != 0 || strcmp(name, "strings") != 0;
}

static void run_model(const char *version, const char *name)
{
    bed b;

    if (!loads(version, name)) {
        return;
    }
    bed_open(&b, version, NULL);
    char *const model = oc_test_format("%s/testmodels/%s/%s.onnx", oc_test_env("ORTCRYPT_DEPS"), name, name);
    bed_encrypt(&b, model);
    run_levels(&b, name, NULL);
    for (int embed = 0; embed < 2; embed++) {
        ortcrypt_compile_options options = compile_options(&b);
        ortcrypt_compile_result result;
        options.embed = embed == 1;
        if (!compiles(version, name, options.embed)) {
            continue;
        }
        options.allow_none_compiled = true; /* what the EP takes is its own tests' business */
        bed_compile(&b, &options, &result);
        run_levels(&b, name, result.variant);
    }
    free(model);
    bed_close(&b);
}

static void models_give_their_values(void **state)
{
    static const char *const names[] = {
        "chain",       "dynamic",   "embedded",  "ext_dotslash", "ext_empty",   "ext_int4",  "ext_no_length",
        "ext_odd",     "ext_padded", "ext_shared_offset", "ext_simple", "ext_subfolder", "ext_symlink", "ext_two_files",
        "ext_types",   "fold_cast", "fold_quantize", "fold_transpose", "if_ext", "loop_ext", "nested_ext", "scan_ext",
        "constant_ext", "function_ext", "ext_same_base", "ext_unicode", "ext_unaligned", "strings", "functions", "opset23",
        "sparse", "int4",
    };
    static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};
    char path[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]) && rig_runtime_path(path, versions[i]); j++) {
            run_model(versions[i], names[j]);
        }
    }
}

/* Every one of these keeps its weights in a file of its own called weights.bin. */
static void sessions_share_a_file_name(void **state)
{
    static const char *const names[] = {"ext_simple", "ext_shared_offset", "fold_transpose", "ext_padded"};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};
    char path[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && rig_runtime_path(path, versions[i]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_session *sessions[COUNT];
        ortcrypt_bundle *bundles[COUNT];
        bed beds[COUNT];
        for (size_t j = 0; j < COUNT; j++) {
            bed_open(&beds[j], versions[i], NULL);
            char *const model = oc_test_format("%s/testmodels/%s/%s.onnx", oc_test_env("ORTCRYPT_DEPS"), names[j], names[j]);
            bed_encrypt(&beds[j], model);
            free(model);
            bundles[j] = bed_bundle(&beds[j]);
            assert_ok(ortcrypt_session_open(&sessions[j], beds[j].runtime, bundles[j], NULL, &err), &err);
        }
        for (size_t turn = 0; turn < 2; turn++) {
            for (size_t j = 0; j < COUNT; j++) {
                run_and_compare(ortcrypt_runtime_api(beds[j].runtime), ortcrypt_session_ort(sessions[j]), names[j], versions[i]);
            }
        }
        for (size_t j = 0; j < COUNT; j++) {
            ortcrypt_session_close(sessions[j]);
            close_bundle(bundles[j]);
            bed_close(&beds[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_share_a_file_name),
        cmocka_unit_test(models_give_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
