/*
 * An application that calls CompileModel itself and lets ortcrypt encrypt what comes out, as it comes out.
 *
 *     own_compile BUNDLE IDENTITY-FILE LIBONNXRUNTIME EP-LIBRARY
 *
 * Compiles the bundle's source model with the reference EP and adds the result to the bundle. Prints the new variant's id.
 * `ortcrypt compile` does all of this in one call (ortcrypt_compile); this is for applications with compile options of their own.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <dlfcn.h>
#include <ortcrypt/compile.h>
#include <ortcrypt/ep_context.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char EP[] = "OrtcryptReference";

typedef struct app {
    const OrtApiBase *base;
    ortcrypt_runtime *runtime;
    const OrtApi *ort;
    ortcrypt_keyring *keyring;
    ortcrypt_bundle *bundle;
    ortcrypt_inputs *source; /* the model to compile, decrypted */
    ortcrypt_output *output; /* what the compiler writes, encrypted */
    OrtSessionOptions *options;
    OrtModelCompilationOptions *compile;
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

static int load_runtime(app *a, const char *library)
{
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const OrtApiBase *(*get_base)(void) = NULL;
    void *const symbol = handle != NULL ? dlsym(handle, "OrtGetApiBase") : NULL;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    memcpy(&get_base, &symbol, sizeof(symbol)); /* C has no cast from an object's address to a function's */
    a->base = get_base != NULL ? get_base() : NULL;
    if (a->base == NULL) {
        (void)fprintf(stderr, "%s is no ONNX Runtime\n", library);
        return 1;
    }
    if (failed(ortcrypt_runtime_adopt(&a->runtime, a->base, NULL, NULL, &err), &err)) {
        return 1;
    }
    a->ort = ortcrypt_runtime_api(a->runtime);
    return ort_failed(a, a->ort->CreateSessionOptions(&a->options));
}

/* The bundle twice: open for reading its source model, and locked for writing the new variant. */
static int open_bundle(app *a, const char *bundle, const char *identity, const char *ep_library)
{
    const ortcrypt_compile_options variant = {.struct_size = sizeof(variant), .ep = EP, .ep_library = ep_library};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    return failed(ortcrypt_keyring_new(&a->keyring, &err), &err) ||
           failed(ortcrypt_keyring_add_identity_file(a->keyring, identity, &err), &err) ||
           failed(ortcrypt_output_open(&a->output, a->runtime, bundle, a->keyring, &variant, &err), &err) ||
           failed(ortcrypt_bundle_open(&a->bundle, bundle, a->keyring, NULL, &err), &err) ||
           failed(ortcrypt_inputs_open(&a->source, a->runtime, a->bundle, a->options, NULL, &err), &err);
}

static int append_ep(const app *a)
{
    OrtEnv *const env = ortcrypt_runtime_env(a->runtime);
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;

    if (ort_failed(a, a->ort->GetEpDevices(env, &devices, &count))) {
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(a->ort->EpDevice_EpName(devices[i]), EP) == 0) {
            return ort_failed(a, a->ort->SessionOptionsAppendExecutionProvider_V2(a->options, env, &devices[i], 1, NULL, NULL, 0));
        }
    }
    (void)fprintf(stderr, "%s has no device\n", EP);
    return 1;
}

/* The callbacks are ortcrypt's, their state is the output. No file name: the "binary information" is a logical name for the EP. */
static int compile(app *a)
{
    const OrtCompileApi *const c = a->ort->GetCompileApi();
    OrtEnv *const env = ortcrypt_runtime_env(a->runtime);
    ortcrypt_ep_context_api ep_context;
    const void *model = NULL;
    size_t model_len = 0;

    if (ort_failed(a, ortcrypt_ep_context_api_get(a->base, &ep_context))) {
        return 1;
    }
    if (ep_context.era == ORTCRYPT_ERA_NONE) {
        (void)fprintf(stderr, "this ONNX Runtime has no EPContext callbacks: use 1.28 or newer\n");
        return 1;
    }
    ortcrypt_inputs_model(a->source, &model, &model_len);
    return ort_failed(a, c->CreateModelCompilationOptionsFromSessionOptions(env, a->options, &a->compile)) ||
           ort_failed(a, c->ModelCompilationOptions_SetInputModelFromBuffer(a->compile, model, model_len)) ||
           ort_failed(a, c->ModelCompilationOptions_SetOutputModelWriteFunc(a->compile, ortcrypt_write_model, a->output)) ||
           ort_failed(a, c->ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
                             a->compile, ortcrypt_initializer_location, a->output)) ||
           ort_failed(a, ep_context.ModelCompilationOptions_SetEpContextDataWriteFunc(a->compile, ortcrypt_write_named, a->output)) ||
           ort_failed(a, c->ModelCompilationOptions_SetEpContextEmbedMode(a->compile, false)) ||
           ort_failed(a, c->ModelCompilationOptions_SetEpContextBinaryInformation(a->compile, "./", "model.onnx")) ||
           ort_failed(a, c->CompileModel(env, a->compile));
}

/* Checks that the variant is complete and loads, then makes it visible. Without this call nothing of it stays. */
static int publish(app *a)
{
    ortcrypt_compile_result result;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    if (failed(ortcrypt_output_commit(a->output, &result, &err), &err)) {
        return 1;
    }
    (void)printf("%s\n", result.variant);
    return 0;
}

static int close_all(app *a)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    if (a->compile != NULL) {
        a->ort->GetCompileApi()->ReleaseModelCompilationOptions(a->compile);
    }
    if (a->options != NULL) {
        a->ort->ReleaseSessionOptions(a->options);
    }
    ortcrypt_inputs_close(a->source); /* after CompileModel: ONNX Runtime reads the weights late */
    ortcrypt_output_close(a->output);
    const int bad = failed(ortcrypt_bundle_close(a->bundle, &err), &err) || failed(ortcrypt_runtime_close(a->runtime, &err), &err);
    ortcrypt_keyring_free(a->keyring);
    return bad;
}

int main(int argc, char **argv)
{
    app a = {0};

    if (argc != 5) {
        (void)fprintf(stderr, "own_compile BUNDLE IDENTITY-FILE LIBONNXRUNTIME EP-LIBRARY\n");
        return 2;
    }
    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1); /* before ONNX Runtime is loaded: some versions write model metadata to disk */
    const int bad = load_runtime(&a, argv[3]) || open_bundle(&a, argv[1], argv[2], argv[4]) || append_ep(&a) || compile(&a) ||
                    publish(&a);
    return close_all(&a) || bad;
}
