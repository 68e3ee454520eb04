/*
 * bench_load: one load of one model, measured, in a process of its own. bench.py runs it and compares.
 *
 * Usage: bench_load plain MODEL.onnx RUNTIME PREPACK - [ep=LIBRARY] [INPUT]...
 *        bench_load seed|ortcrypt|lazy BUNDLE RUNTIME PREPACK IDENTITY [ep=LIBRARY] [INPUT]...
 * PREPACK is 0 or 1, LIBRARY the reference EP (not with seed: for EPContext data the documented flow is what ortcrypt does), INPUT a shape or value as
 * bench_run.h says. Prints one JSON object: seconds for creating the session and for the first inference, peak and resident memory (after that inference) in
 * bytes beyond what the process had after CreateEnv, and a hash of the outputs.
 *
 * plain:    CreateSession with the path of the plaintext model.
 * seed:     the flow that "Compiled Model Encryption" documents: decrypt everything into buffers,
 *           AddExternalInitializersFromFilesInMemory, CreateSessionFromArray; buffers are kept until CreateSession returns.
 * ortcrypt: ortcrypt_session_open.
 * lazy:     the same with its option `lazy`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "bundle/bundle.h"
#include "ortcrypt/session.h"

enum { MAX_FILES = 64 };

typedef struct bench {
    ortcrypt_runtime *runtime;
    const OrtApi *ort;
    OrtSessionOptions *options;
    ortcrypt_keyring *keyring;
    ortcrypt_bundle *bundle;
    ortcrypt_session *opened; /* mode ortcrypt */
    OrtSession *session;
    bool lazy;
    const char *ep_library; /* the reference EP, or NULL: the CPU EP */
    ortcrypt_error err;
} bench;

static void check(const bench *b, OrtStatus *status, const char *what) { bench_check(b->ort, status, what); }

static void need(const bench *b, ortcrypt_status status, const char *what)
{
    if (status != ORTCRYPT_OK) {
        bench_stop(what, b->err.message);
    }
}

static void open_bundle(bench *b, const char *path, const char *identity)
{
    need(b, ortcrypt_keyring_new(&b->keyring, &b->err), "keyring");
    need(b, ortcrypt_keyring_add_identity_file(b->keyring, identity, &b->err), identity);
    need(b, ortcrypt_bundle_open(&b->bundle, path, b->keyring, NULL, &b->err), path);
}

/* Decrypts one part into a plain buffer, as an application that follows the document would. */
static char *decrypt_part(bench *b, const oc_part *part, size_t *len)
{
    const oc_asset *asset = oc_manifest_find_asset(oc_bundle_manifest(b->bundle), part->asset);
    char *buffer = malloc(asset->size + 1);
    if (buffer == NULL) {
        bench_stop(part->name, "not enough memory");
    }
    need(b, oc_bundle_read(b->bundle, asset, buffer, NULL, &b->err), part->name);
    *len = asset->size;
    return buffer;
}

static void create_seed(bench *b)
{
    const oc_variant *variant = &oc_bundle_manifest(b->bundle)->variants[0];
    const ORTCHAR_T *names[MAX_FILES];
    char *buffers[MAX_FILES], *model = NULL;
    size_t lens[MAX_FILES], count = 0, model_len = 0;
    for (size_t i = 0; i < variant->part_count; i++) {
        const oc_part *part = &variant->parts[i];
        if (part->role == OC_ROLE_MODEL) {
            model = decrypt_part(b, part, &model_len);
        } else if (part->role == OC_ROLE_EXTERNAL && count < MAX_FILES) {
            names[count] = part->name;
            buffers[count] = decrypt_part(b, part, &lens[count]);
            count++;
        }
    }
    if (count != 0) {
        check(b, b->ort->AddExternalInitializersFromFilesInMemory(b->options, names, buffers, lens, count), "initializers");
    }
    check(b, b->ort->CreateSessionFromArray(ortcrypt_runtime_env(b->runtime), model, model_len, b->options, &b->session), "session");
    free(model);
    for (size_t i = 0; i < count; i++) {
        free(buffers[i]);
    }
}

static void create_ortcrypt(bench *b)
{
    const ortcrypt_session_options options = {.struct_size = sizeof options, .base = b->options, .ep = b->ep_library != NULL ? BENCH_EP_NAME : NULL,
                                              .ep_library = b->ep_library,
                                              .lazy = b->lazy};
    need(b, ortcrypt_session_open(&b->opened, b->runtime, b->bundle, &options, &b->err), "session");
    b->session = ortcrypt_session_ort(b->opened);
}

static void create_plain(bench *b, const char *path)
{
    if (b->ep_library != NULL) {
        need(b, ortcrypt_runtime_register_ep(b->runtime, BENCH_EP_NAME, b->ep_library, &b->err), b->ep_library);
        bench_append_ep(b->ort, ortcrypt_runtime_env(b->runtime), b->options);
    }
    check(b, b->ort->CreateSession(ortcrypt_runtime_env(b->runtime), path, b->options, &b->session), "session");
}

/* What the plan said of the peak; 0 without a plan. */
static long long expected_peak(bench *b)
{
    char *plan = NULL;
    long long expected = 0;
    if (b->opened != NULL) {
        need(b, ortcrypt_session_plan(b->opened, &plan, &b->err), "plan");
        const char *at = strstr(plan, "\"expected_peak\":");
        expected = at != NULL ? atoll(at + strlen("\"expected_peak\":")) : 0;
        ortcrypt_free(plan, 0);
    }
    return expected;
}

static void finish(bench *b)
{
    if (b->opened != NULL) {
        ortcrypt_session_close(b->opened);
    } else {
        b->ort->ReleaseSession(b->session);
    }
    b->ort->ReleaseSessionOptions(b->options);
    need(b, ortcrypt_bundle_close(b->bundle, &b->err), "bundle");
    ortcrypt_keyring_free(b->keyring);
    need(b, ortcrypt_runtime_close(b->runtime, &b->err), "runtime");
}

int main(int argc, char **argv)
{
    bench b = {.err = ORTCRYPT_ERROR_INIT};
    const char *mode = argc > 5 ? argv[1] : "";
    bench_values values;
    const bool plain = strcmp(mode, "plain") == 0, seed = strcmp(mode, "seed") == 0;
    b.lazy = strcmp(mode, "lazy") == 0;
    if (!plain && !seed && !b.lazy && strcmp(mode, "ortcrypt") != 0) {
        bench_stop("usage", "bench_load plain|seed|ortcrypt|lazy MODEL-OR-BUNDLE RUNTIME PREPACK IDENTITY|- [INPUT]...");
    }
    const int specs = argc > 6 && strncmp(argv[6], "ep=", 3) == 0 ? 7 : 6;
    b.ep_library = specs == 7 ? argv[6] + 3 : NULL;
    need(&b, ortcrypt_runtime_open(&b.runtime, argv[3], NULL, &b.err), argv[3]);
    b.ort = ortcrypt_runtime_api(b.runtime);
    check(&b, b.ort->CreateSessionOptions(&b.options), "session options");
    if (strcmp(argv[4], "0") == 0) {
        check(&b, b.ort->AddSessionConfigEntry(b.options, "session.disable_prepacking", "1"), "session options");
    }
    const long long before = bench_memory("VmRSS:");
    const double start = bench_now();
    if (plain) {
        create_plain(&b, argv[2]);
    } else {
        open_bundle(&b, argv[2], argv[5]);
        (seed ? create_seed : create_ortcrypt)(&b);
    }
    const double created = bench_now();
    bench_inputs_make(&values, b.ort, b.session, argv + specs, (size_t)(argc - specs));
    const double asked = bench_now();
    const uint64_t hash = bench_run(&values, b.ort, b.session);
    const double answered = bench_now();
    printf("{\"expected\": %lld, \"create_s\": %.4f, \"first_s\": %.4f, \"peak\": %lld, \"resident\": %lld, \"hash\": \"%016llx\"}\n", expected_peak(&b), created - start,
           answered - asked, bench_memory("VmHWM:") - before, bench_memory("VmRSS:") - before, (unsigned long long)hash);
    finish(&b);
    return 0;
}
