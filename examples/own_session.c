/*
 * An application that has its own ONNX Runtime, environment and session, and takes only the model's bytes from ortcrypt.
 *
 *     own_session BUNDLE IDENTITY-FILE LIBONNXRUNTIME [EP-LIBRARY]
 *
 * ortcrypt_inputs_open gives the decrypted model, its weights inside, and adds to the application's session options what the variant
 * needs besides: the callback that reads EPContext data. Prints what whole_app prints.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <dlfcn.h>
#include <ortcrypt/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 48, WIDTH = 320, PIXELS = 3 * HEIGHT * WIDTH, CLASSES = 6625 };
static const char EP[] = "OrtcryptReference";

/* What the application owns. */
typedef struct app {
    const OrtApiBase *base;
    const OrtApi *ort;
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    ortcrypt_runtime *runtime;
    ortcrypt_keyring *keyring;
    ortcrypt_bundle *bundle;
    ortcrypt_inputs *inputs;
} app;

static int ort_failed(const app *a, OrtStatus *status)
{
    if (status == NULL) {
        return 0;
    }
    (void)fprintf(stderr, "%s\n", a->ort->GetErrorMessage(status));
    a->ort->ReleaseStatus(status);
    return 1;
}

static int failed(ortcrypt_status status, const ortcrypt_error *err)
{
    if (status != ORTCRYPT_OK) {
        (void)fprintf(stderr, "%s\n%s\n", err->message, err->hint);
    }
    return status != ORTCRYPT_OK;
}

/* The application's own ONNX Runtime. It stays loaded: its threads may outlive main. */
static int load_runtime(app *a, const char *library)
{
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const OrtApiBase *(*get_base)(void) = NULL;
    void *const symbol = handle != NULL ? dlsym(handle, "OrtGetApiBase") : NULL;

    memcpy(&get_base, &symbol, sizeof(symbol)); /* C has no cast from an object's address to a function's */
    a->base = get_base != NULL ? get_base() : NULL;
    a->ort = a->base != NULL ? a->base->GetApi(ORT_API_VERSION) : NULL;
    if (a->ort == NULL) {
        (void)fprintf(stderr, "%s is no ONNX Runtime with API %d\n", library, ORT_API_VERSION);
        return 1;
    }
    return ort_failed(a, a->ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "own_session", &a->env)) ||
           ort_failed(a, a->ort->CreateSessionOptions(&a->options));
}

static int append_ep(const app *a)
{
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;

    if (ort_failed(a, a->ort->GetEpDevices(a->env, &devices, &count))) {
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(a->ort->EpDevice_EpName(devices[i]), EP) == 0) {
            return ort_failed(a, a->ort->SessionOptionsAppendExecutionProvider_V2(a->options, a->env, &devices[i], 1, NULL, NULL, 0));
        }
    }
    (void)fprintf(stderr, "%s has no device\n", EP);
    return 1;
}

static int open_session(app *a, const char *bundle, const char *identity, const char *ep_library)
{
    const ortcrypt_session_options variant = {
        .struct_size = sizeof(variant), .ep = ep_library != NULL ? EP : NULL, .ep_library = ep_library};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const void *model = NULL;
    size_t model_len = 0;

    if (failed(ortcrypt_runtime_adopt(&a->runtime, a->base, a->env, NULL, &err), &err) ||
        failed(ortcrypt_keyring_new(&a->keyring, &err), &err) ||
        failed(ortcrypt_keyring_add_identity_file(a->keyring, identity, &err), &err) ||
        failed(ortcrypt_bundle_open(&a->bundle, bundle, a->keyring, NULL, &err), &err) ||
        failed(ortcrypt_inputs_open(&a->inputs, a->runtime, a->bundle, a->options, &variant, &err), &err) ||
        (ep_library != NULL && append_ep(a))) {
        return 1;
    }
    ortcrypt_inputs_model(a->inputs, &model, &model_len);
    return ort_failed(a, a->ort->CreateSessionFromArray(a->env, model, model_len, a->options, &a->session));
}

static void print_result(const float *p, size_t count)
{
    for (size_t step = 0; step < count / CLASSES; step++, p += CLASSES) {
        size_t best = 0;
        for (size_t i = 1; i < CLASSES; i++) {
            best = p[i] > p[best] ? i : best;
        }
        (void)printf("%zu %.9g\n", best, (double)p[best]);
    }
}

static int run(const app *a)
{
    static float image[PIXELS];
    static const int64_t shape[] = {1, 3, HEIGHT, WIDTH};
    static const char *const in_names[] = {"x"}, *const out_names[] = {"softmax_11.tmp_0"};
    OrtMemoryInfo *cpu = NULL;
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtValue *in = NULL, *out = NULL;
    const void *data = NULL;
    size_t count = 0;

    for (size_t i = 0; i < PIXELS; i++) {
        image[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    }
    const int bad = ort_failed(a, a->ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu)) ||
                    ort_failed(a, a->ort->CreateTensorWithDataAsOrtValue(cpu, image, sizeof(image), shape, 4,
                                                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in)) ||
                    ort_failed(a, a->ort->Run(a->session, NULL, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out)) ||
                    ort_failed(a, a->ort->GetTensorData(out, &data)) ||
                    ort_failed(a, a->ort->GetTensorTypeAndShape(out, &info)) ||
                    ort_failed(a, a->ort->GetTensorShapeElementCount(info, &count));
    if (!bad) {
        print_result(data, count);
    }
    a->ort->ReleaseTensorTypeAndShapeInfo(info);
    a->ort->ReleaseValue(out);
    a->ort->ReleaseValue(in);
    a->ort->ReleaseMemoryInfo(cpu);
    return bad;
}

/* The inputs use the bundle and the runtime; the session could outlive all three. */
static int close_all(app *a)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    if (a->ort == NULL) {
        return 1;
    }
    a->ort->ReleaseSession(a->session);
    a->ort->ReleaseSessionOptions(a->options);
    ortcrypt_inputs_close(a->inputs);
    const int bad = failed(ortcrypt_bundle_close(a->bundle, &err), &err) || failed(ortcrypt_runtime_close(a->runtime, &err), &err);
    ortcrypt_keyring_free(a->keyring);
    a->ort->ReleaseEnv(a->env); /* the application's own: ortcrypt has let go of it */
    return bad;
}

int main(int argc, char **argv)
{
    app a = {0};

    if (argc < 4) {
        (void)fprintf(stderr, "own_session BUNDLE IDENTITY-FILE LIBONNXRUNTIME [EP-LIBRARY]\n");
        return 2;
    }
    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1); /* before ONNX Runtime is loaded: some versions write model metadata to disk */
    const int bad = load_runtime(&a, argv[3]) || open_session(&a, argv[1], argv[2], argc > 4 ? argv[4] : NULL) || run(&a);
    return close_all(&a) || bad;
}
