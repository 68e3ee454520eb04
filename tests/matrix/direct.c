/*
 * An EP without ortcrypt: what the matrix compares with, and what it proves its watch with.
 *
 *     matrix_direct run     LIBONNXRUNTIME EP LIBRARY MODEL INPUTS OUTPUTS [KEY=VALUE]...
 *     matrix_direct compile LIBONNXRUNTIME EP LIBRARY MODEL OUT.onnx BINARY-FOLDER [KEY=VALUE]...
 *
 * run: the plaintext model on the EP, float inputs from INPUTS/<name>.npy, outputs as raw bytes in OUTPUTS/<number>.bin.
 * compile: as an application without callbacks does it, so the EP writes what it compiled to a file; BINARY-FOLDER "" says nothing of
 * where. KEY=VALUE are the EP's options. Level "basic" of the optimizer, as `ortcrypt compile --optimize basic`.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_c_api.h>

#define OLDEST 23 /* members of 1.23 are used, and no later ones */
#define MAX 8     /* inputs, outputs, options */

static const OrtApi *api;
static OrtEnv *env;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "matrix_direct: %s: %s\n", what, why);
    exit(1);
}

static void check(OrtStatus *status, const char *what)
{
    if (status != NULL) {
        die(what, api->GetErrorMessage(status));
    }
}

static void open_runtime(const char *library)
{
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        die(library, dlerror());
    }
    const OrtApiBase *(*const get_base)(void) = (const OrtApiBase *(*)(void))dlsym(handle, "OrtGetApiBase");
    api = get_base != NULL ? get_base()->GetApi(OLDEST) : NULL;
    if (api == NULL) {
        die(library, "it has no OrtApi of version 23");
    }
    check(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "direct", &env), "environment");
}

static OrtSessionOptions *options_for(const char *ep, const char *library, char **pairs, int count)
{
    const char *keys[MAX];
    const char *values[MAX];
    const OrtEpDevice *const *devices = NULL;
    const OrtEpDevice *device = NULL;
    size_t device_count = 0;
    OrtSessionOptions *options = NULL;

    for (int i = 0; i < count && i < MAX; i++) {
        char *const equals = strchr(pairs[i], '=');
        if (equals == NULL) {
            die(pairs[i], "KEY=VALUE is wanted");
        }
        *equals = 0;
        keys[i] = pairs[i];
        values[i] = equals + 1;
    }
    check(api->RegisterExecutionProviderLibrary(env, ep, library), library);
    check(api->GetEpDevices(env, &devices, &device_count), "devices");
    for (size_t i = 0; i < device_count && device == NULL; i++) {
        device = strcmp(api->EpDevice_EpName(devices[i]), ep) == 0 ? devices[i] : NULL;
    }
    if (device == NULL) {
        die(ep, "it has no device here");
    }
    check(api->CreateSessionOptions(&options), "options");
    check(api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_BASIC), "options");
    check(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values, (size_t)count), ep);
    return options;
}

static void *read_npy(const char *folder, const char *name, size_t *len)
{
    char path[PATH_MAX];
    unsigned char head[10];
    (void)snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *const file = fopen(path, "rb");
    if (file == NULL || fread(head, 1, sizeof head, file) != sizeof head || memcmp(head, "\x93NUMPY\x01", 7) != 0) {
        die(path, "it is no .npy file of version 1");
    }
    const long start = (long)sizeof head + head[8] + 256L * head[9];
    if (fseek(file, 0, SEEK_END) != 0) {
        die(path, "it cannot be read");
    }
    *len = (size_t)(ftell(file) - start);
    void *const data = malloc(*len + 1);
    if (data == NULL || fseek(file, start, SEEK_SET) != 0 || fread(data, 1, *len, file) != *len) {
        die(path, "it cannot be read");
    }
    (void)fclose(file);
    return data;
}

static OrtValue *make_input(const OrtSession *session, size_t index, const char *name, const char *folder)
{
    OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *value = NULL;
    int64_t dims[MAX];
    size_t count = 0;
    size_t len = 0;

    check(api->SessionGetInputTypeInfo(session, index, &type), name);
    check(api->CastTypeInfoToTensorInfo(type, &shape), name);
    check(api->GetDimensionsCount(shape, &count), name);
    if (count > MAX) {
        die(name, "it has too many dimensions");
    }
    check(api->GetDimensions(shape, dims, count), name);
    void *const data = read_npy(folder, name, &len);
    check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory), "memory");
    check(api->CreateTensorWithDataAsOrtValue(memory, data, len, dims, count, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value), name);
    api->ReleaseMemoryInfo(memory);
    api->ReleaseTypeInfo(type);
    return value;
}

static void write_output(const OrtValue *value, const char *folder, size_t number)
{
    char path[PATH_MAX];
    OrtTensorTypeAndShapeInfo *shape = NULL;
    const void *data = NULL;
    size_t count = 0;

    check(api->GetTensorTypeAndShape(value, &shape), "output");
    check(api->GetTensorShapeElementCount(shape, &count), "output");
    check(api->GetTensorMutableData((OrtValue *)(uintptr_t)value, (void **)(uintptr_t)&data), "output");
    (void)snprintf(path, sizeof path, "%s/%zu.bin", folder, number);
    FILE *const file = fopen(path, "wb");
    if (file == NULL || fwrite(data, sizeof(float), count, file) != count || fclose(file) != 0) {
        die(path, "it cannot be written");
    }
    api->ReleaseTensorTypeAndShapeInfo(shape);
}

static void run(const OrtSessionOptions *options, const char *model, const char *inputs, const char *outputs)
{
    OrtAllocator *allocator = NULL;
    OrtSession *session = NULL;
    char *in_names[MAX] = {NULL};
    char *out_names[MAX] = {NULL};
    OrtValue *in[MAX] = {NULL};
    OrtValue *out[MAX] = {NULL};
    size_t in_count = 0;
    size_t out_count = 0;

    check(api->CreateSession(env, model, options, &session), model);
    check(api->GetAllocatorWithDefaultOptions(&allocator), "allocator");
    check(api->SessionGetInputCount(session, &in_count), model);
    check(api->SessionGetOutputCount(session, &out_count), model);
    if (in_count > MAX || out_count > MAX) {
        die(model, "it has too many inputs or outputs");
    }
    for (size_t i = 0; i < in_count; i++) {
        check(api->SessionGetInputName(session, i, allocator, &in_names[i]), model);
        in[i] = make_input(session, i, in_names[i], inputs);
    }
    for (size_t i = 0; i < out_count; i++) {
        check(api->SessionGetOutputName(session, i, allocator, &out_names[i]), model);
    }
    check(api->Run(session, NULL, (const char *const *)in_names, (const OrtValue *const *)in, in_count,
                   (const char *const *)out_names, out_count, out),
          model);
    for (size_t i = 0; i < out_count; i++) {
        write_output(out[i], outputs, i);
    }
    api->ReleaseSession(session);
}

static void compile(const OrtSessionOptions *options, const char *model, const char *out, const char *folder)
{
    const OrtCompileApi *const c = api->GetCompileApi();
    OrtModelCompilationOptions *compilation = NULL;

    check(c->CreateModelCompilationOptionsFromSessionOptions(env, options, &compilation), "compile options");
    check(c->ModelCompilationOptions_SetInputModelPath(compilation, model), model);
    check(c->ModelCompilationOptions_SetOutputModelPath(compilation, out), out);
    check(c->ModelCompilationOptions_SetGraphOptimizationLevel(compilation, ORT_ENABLE_BASIC), "compile options");
    if (folder[0] != 0) {
        check(c->ModelCompilationOptions_SetEpContextBinaryInformation(compilation, folder, "model"), folder);
    }
    check(c->CompileModel(env, compilation), model);
    c->ReleaseModelCompilationOptions(compilation);
}

int main(int argc, char **argv)
{
    const char *const verb = argc >= 8 ? argv[1] : "";
    if (argc < 8 || argc - 8 > MAX || (strcmp(verb, "run") != 0 && strcmp(verb, "compile") != 0)) {
        (void)fputs("usage: matrix_direct run LIBONNXRUNTIME EP LIBRARY MODEL INPUTS OUTPUTS [KEY=VALUE]...\n"
                    "       matrix_direct compile LIBONNXRUNTIME EP LIBRARY MODEL OUT.onnx BINARY-FOLDER [KEY=VALUE]...\n",
                    stderr);
        return 2;
    }
    open_runtime(argv[2]);
    OrtSessionOptions *const options = options_for(argv[3], argv[4], argv + 8, argc - 8);
    if (strcmp(verb, "run") == 0) {
        run(options, argv[5], argv[6], argv[7]);
    } else {
        compile(options, argv[5], argv[6], argv[7]);
    }
    api->ReleaseSessionOptions(options);
    check(api->UnregisterExecutionProviderLibrary(env, argv[3]), argv[3]);
    api->ReleaseEnv(env);
    return 0;
}
