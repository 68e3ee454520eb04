/*
 * bench_compile: one compilation with the reference EP, measured, in a process of its own. bench.py runs it and compares.
 *
 * Usage: bench_compile plain MODEL.onnx OUT RUNTIME EP-LIBRARY -
 *        bench_compile ortcrypt|unchecked BUNDLE OUT RUNTIME EP-LIBRARY IDENTITY
 * plain: ONNX Runtime's CompileModel from path to path, the EP's data in a file of its own. ortcrypt: ortcrypt_compile into a new bundle; unchecked: without
 * loading the result once. Prints one JSON object: seconds, and peak memory in bytes beyond what the process had after CreateEnv.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "ortcrypt/compile.h"

static ortcrypt_error err = ORTCRYPT_ERROR_INIT;

static void need(ortcrypt_status status, const char *what)
{
    if (status != ORTCRYPT_OK) {
        bench_stop(what, err.message);
    }
}

static void compile_plain(ortcrypt_runtime *runtime, char **argv)
{
    const OrtApi *const ort = ortcrypt_runtime_api(runtime);
    const OrtCompileApi *const compile = ort->GetCompileApi();
    OrtEnv *const env = ortcrypt_runtime_env(runtime);
    OrtSessionOptions *options = NULL;
    OrtModelCompilationOptions *how = NULL;
    need(ortcrypt_runtime_register_ep(runtime, BENCH_EP_NAME, argv[5], &err), argv[5]);
    bench_check(ort, ort->CreateSessionOptions(&options), "session options");
    bench_append_ep(ort, env, options);
    bench_check(ort, compile->CreateModelCompilationOptionsFromSessionOptions(env, options, &how), "compile options");
    bench_check(ort, compile->ModelCompilationOptions_SetInputModelPath(how, argv[2]), argv[2]);
    bench_check(ort, compile->ModelCompilationOptions_SetOutputModelPath(how, argv[3]), argv[3]);
    bench_check(ort, compile->ModelCompilationOptions_SetEpContextEmbedMode(how, false), "embed mode");
    bench_check(ort, compile->CompileModel(env, how), "compile");
    compile->ReleaseModelCompilationOptions(how);
    ort->ReleaseSessionOptions(options);
}

static void compile_bundle(ortcrypt_runtime *runtime, char **argv, bool check)
{
    const ortcrypt_compile_options options = {.struct_size = sizeof options, .ep = BENCH_EP_NAME, .ep_library = argv[5],
                                              .no_load_check = !check, .out_path = argv[3]};
    ortcrypt_keyring *keyring = NULL;
    need(ortcrypt_keyring_new(&keyring, &err), "keyring");
    need(ortcrypt_keyring_add_identity_file(keyring, argv[6], &err), argv[6]);
    need(ortcrypt_compile(runtime, argv[2], keyring, &options, NULL, &err), argv[2]);
    ortcrypt_keyring_free(keyring);
}

int main(int argc, char **argv)
{
    ortcrypt_runtime *runtime = NULL;
    const bool plain = argc == 7 && strcmp(argv[1], "plain") == 0;
    const bool check = argc == 7 && strcmp(argv[1], "ortcrypt") == 0;
    if (!plain && !check && (argc != 7 || strcmp(argv[1], "unchecked") != 0)) {
        bench_stop("usage", "bench_compile plain|ortcrypt|unchecked MODEL-OR-BUNDLE OUT RUNTIME EP-LIBRARY IDENTITY|-");
    }
    need(ortcrypt_runtime_open(&runtime, argv[4], NULL, &err), argv[4]);
    const long long before = bench_memory("VmRSS:");
    const double start = bench_now();
    if (plain) {
        compile_plain(runtime, argv);
    } else {
        compile_bundle(runtime, argv, check);
    }
    printf("{\"seconds\": %.4f, \"peak\": %lld}\n", bench_now() - start, bench_memory("VmHWM:") - before);
    need(ortcrypt_runtime_close(runtime, &err), "runtime");
    return 0;
}
