/*
 * A whole application: the text recogniser in a bundle, run on an image that is made up.
 *
 *     whole_app BUNDLE IDENTITY-FILE LIBONNXRUNTIME [EP-LIBRARY]
 *
 * With the library of the reference EP, what was compiled for that EP runs; without, the model itself on the CPU.
 * Prints one line for each step of the output: the likeliest class and its probability.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <ortcrypt/session.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEIGHT = 48, WIDTH = 320, PIXELS = 3 * HEIGHT * WIDTH, CLASSES = 6625 };

/* True after an error of ONNX Runtime, which is printed. */
static int ort_failed(const OrtApi *ort, OrtStatus *status)
{
    if (status == NULL) {
        return 0;
    }
    (void)fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    return 1;
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

/* From here on it is ordinary ONNX Runtime. */
static int run(const OrtApi *ort, OrtSession *session)
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
    int failed = ort_failed(ort, ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu)) ||
                 ort_failed(ort, ort->CreateTensorWithDataAsOrtValue(cpu, image, sizeof(image), shape, 4,
                                                                     ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in)) ||
                 ort_failed(ort, ort->Run(session, NULL, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out)) ||
                 ort_failed(ort, ort->GetTensorData(out, &data)) ||
                 ort_failed(ort, ort->GetTensorTypeAndShape(out, &info)) ||
                 ort_failed(ort, ort->GetTensorShapeElementCount(info, &count));
    if (!failed) {
        print_result(data, count);
    }
    ort->ReleaseTensorTypeAndShapeInfo(info);
    ort->ReleaseValue(out);
    ort->ReleaseValue(in);
    ort->ReleaseMemoryInfo(cpu);
    return failed;
}

int main(int argc, char **argv)
{
    ortcrypt_session_options options = {.struct_size = sizeof(options)};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    ortcrypt_keyring *keyring = NULL;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_session *session = NULL;
    int failed = 1;

    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1); /* before ONNX Runtime is loaded: some versions write model metadata to disk */
    if (argc > 4) {
        options.ep = "OrtcryptReference";
        options.ep_library = argv[4];
    }
    if (argc < 4 || ortcrypt_runtime_open(&runtime, argv[3], NULL, &err) != ORTCRYPT_OK ||
        ortcrypt_keyring_new(&keyring, &err) != ORTCRYPT_OK ||
        ortcrypt_keyring_add_identity_file(keyring, argv[2], &err) != ORTCRYPT_OK ||
        ortcrypt_bundle_open(&bundle, argv[1], keyring, NULL, &err) != ORTCRYPT_OK ||
        ortcrypt_session_open(&session, runtime, bundle, &options, &err) != ORTCRYPT_OK) {
        (void)fprintf(stderr, "%s\n%s\n", argc < 4 ? "whole_app BUNDLE IDENTITY-FILE LIBONNXRUNTIME [EP-LIBRARY]" : err.message, err.hint);
    } else {
        failed = run(ortcrypt_runtime_api(runtime), ortcrypt_session_ort(session));
    }
    ortcrypt_session_close(session); /* before what it stands on; NULL is allowed in all of these */
    ortcrypt_keyring_free(keyring);
    return ortcrypt_bundle_close(bundle, &err) != ORTCRYPT_OK || ortcrypt_runtime_close(runtime, &err) != ORTCRYPT_OK || failed;
}
