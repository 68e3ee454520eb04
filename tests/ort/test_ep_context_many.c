/*
 * Many engines and threads through the helper: 64 engines written from 8 threads into one encrypted output, read back from 8
 * threads and by two sessions' contexts at once, all with libortcrypt's own callbacks behind them; and the same through files.
 */
#include "test_flow_rig.h"

#include <dlfcn.h>
#include <pthread.h>

#include "ep_context/internal.h"
#include "test_flow_model.h"

enum { THREADS = 8, PER_THREAD = 8, ENGINES = THREADS * PER_THREAD };

static const char *version; /* of the runtime that the tests run on */

/* Engine i: from none to 200 KiB, bytes made from i. */
static size_t engine_len(size_t i)
{
    return i == 0 ? 0 : i * 3203 % 204800 + 1;
}

static unsigned char engine_byte(size_t i, size_t at)
{
    return (unsigned char)((at * 31 + i * 7 + (at >> 8)) & 0xff);
}

static void engine_name(char name[64], size_t i)
{
    (void)snprintf(name, 64, "engine %zu/%zu", i / PER_THREAD, i % PER_THREAD);
}

/* One thread's share of the work; cmocka must not be called from it. */
typedef struct worker {
    pthread_t thread;
    const ortcrypt_ep_context *context;
    const char *folder; /* NULL: callbacks; else names get this before them */
    size_t index;
    size_t done;
} worker;

static void full_name(const worker *w, char name[256], size_t i)
{
    char plain[64];
    engine_name(plain, i);
    if (w->folder == NULL) {
        (void)snprintf(name, 256, "%s", plain);
    } else {
        *strchr(plain, '/') = '-';
        (void)snprintf(name, 256, "%s/%s", w->folder, plain);
    }
}

static void *write_share(void *argument)
{
    worker *const w = argument;
    for (size_t i = w->index * PER_THREAD; i < (w->index + 1) * PER_THREAD; i++) {
        char name[256];
        const size_t len = engine_len(i);
        unsigned char *const bytes = malloc(len + 1);
        for (size_t at = 0; bytes != NULL && at < len; at++) {
            bytes[at] = engine_byte(i, at);
        }
        full_name(w, name, i);
        OrtStatus *const status = ortcrypt_ep_context_write(w->context, name, NULL, NULL, bytes, len);
        w->done += bytes != NULL && status == NULL ? 1 : 0;
        if (status != NULL) {
            w->context->api->ReleaseStatus(status);
        }
        free(bytes);
    }
    return NULL;
}

static bool is_engine(const ortcrypt_ep_context_data *data, size_t i)
{
    bool equal = data->size == engine_len(i);
    for (size_t at = 0; equal && at < data->size; at++) {
        equal = ((const unsigned char *)data->data)[at] == engine_byte(i, at);
    }
    return equal;
}

/* Every thread reads all, each beginning elsewhere. */
static void *read_all(void *argument)
{
    worker *const w = argument;
    for (size_t k = 0; k < ENGINES; k++) {
        const size_t i = (k + w->index * PER_THREAD) % ENGINES;
        char name[256];
        ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
        full_name(w, name, i);
        OrtStatus *const status = ortcrypt_ep_context_read(w->context, name, NULL, NULL, 204800, &data);
        w->done += status == NULL && is_engine(&data, i) ? 1 : 0;
        if (status != NULL) {
            w->context->api->ReleaseStatus(status);
        }
        ortcrypt_ep_context_data_release(&data);
    }
    return NULL;
}

/* contexts: as many as the threads share among them. */
static void run_threads(void *(*work)(void *), ortcrypt_ep_context *const *contexts, size_t context_count,
                        const char *folder, size_t each)
{
    worker workers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.context = contexts[i % context_count], .folder = folder, .index = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    size_t done = 0;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        done += workers[i].done;
    }
    assert_int_equal(done, THREADS * each);
}

static const OrtApiBase *base_of(const char *of)
{
    char path[1024];
    assert_true(rig_runtime_path(path, of));
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* the one the runtime has open */
    assert_non_null(library);
    const OrtApiBase *(*get)(void) = NULL;
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

static ortcrypt_ep_context *open_helper(const OrtSessionOptions *options)
{
    ortcrypt_ep_context *context = NULL;
    assert_null(ortcrypt_ep_context_open(&context, base_of(version), options));
    return context;
}

typedef struct bed {
    ortcrypt_runtime *runtime;
    ortcrypt_keyring *keyring;
    char *dir;
    char *bundle;
    char library[1024];
} bed;

static void bed_open(bed *b)
{
    const rig_model spec = {.external = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    *b = (bed){.runtime = rig_runtime(version), .keyring = rig_keyring(), .dir = oc_test_tmpdir()};
    char *const model = oc_test_format("%s/model.onnx", b->dir);
    b->bundle = oc_test_format("%s/model.ortc", b->dir);
    rig_reference_path(b->library);
    rig_model_write(b->dir, &spec);
    assert_ok(ortcrypt_encrypt(model, b->bundle, b->keyring, NULL, NULL, &err), &err);
    free(model);
}

static void bed_close(bed *b)
{
    oc_test_rm_rf(b->dir);
    free(b->dir);
    free(b->bundle);
    ortcrypt_keyring_free(b->keyring);
    rig_runtime_close(b->runtime);
}

/* 64 engines from 8 threads; even threads have an EP instance's context of their own, the odd ones share one. */
static void write_engines(const bed *b)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const ortcrypt_compile_options how = {
        .struct_size = sizeof(how), .ep = "OrtcryptReference", .ep_library = b->library, .no_load_check = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_output *output = NULL;
    ortcrypt_compile_result result;
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context *contexts[THREADS];
    static char names[ENGINES][64];
    static node nodes[ENGINES];
    assert_ok(ortcrypt_output_open(&output, b->runtime, b->bundle, b->keyring, &how, &err), &err);
    assert_null(api->CreateSessionOptions(&options));
    for (size_t i = 0; i < THREADS; i++) {
        contexts[i] = i % 2 == 0 || i == 1 ? open_helper(options) : contexts[1];
        contexts[i]->write = ortcrypt_write_named; /* as compile options set it */
        contexts[i]->write_state = output;
    }
    api->ReleaseSessionOptions(options);
    run_threads(write_share, contexts, THREADS, NULL, PER_THREAD);
    for (size_t i = 0; i < ENGINES; i++) {
        engine_name(names[i], i);
        nodes[i] = (node){names[i], 0, 1};
    }
    for (size_t i = 0; i < THREADS; i++) {
        if (i % 2 == 0 || i == 1) {
            ortcrypt_ep_context_close(contexts[i]);
        }
    }
    pb model = compiled_model(nodes, ENGINES, NULL);
    assert_null(ortcrypt_write_model(output, model.data, model.len));
    free(model.data);
    assert_ok(ortcrypt_output_commit(output, &result, &err), &err);
    assert_int_equal(result.blob_count, ENGINES);
    ortcrypt_output_close(output);
}

typedef struct reader {
    ortcrypt_bundle *bundle;
    ortcrypt_inputs *inputs;
    ortcrypt_ep_context *context;
} reader;

static void reader_open(reader *r, const bed *b, const char *variant)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const ortcrypt_session_options how = {.struct_size = sizeof(how), .variant = variant};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    OrtSessionOptions *options = NULL;
    assert_null(api->CreateSessionOptions(&options));
    assert_ok(ortcrypt_bundle_open(&r->bundle, b->bundle, b->keyring, NULL, &err), &err);
    assert_ok(ortcrypt_inputs_open(&r->inputs, b->runtime, r->bundle, options, &how, &err), &err);
    r->context = open_helper(options);
    assert_true(ortcrypt_ep_context_has_read(r->context));
    OrtStatus *const refused = ortcrypt_ep_context_write(r->context, "new", NULL, NULL, "1", 1);
    assert_non_null(refused); /* by id: not even a file is made */
    api->ReleaseStatus(refused);
    api->ReleaseSessionOptions(options);
}

static void reader_close(reader *r)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_ep_context_close(r->context);
    ortcrypt_inputs_close(r->inputs);
    assert_ok(ortcrypt_bundle_close(r->bundle, &err), &err);
}

static void test_callbacks(void **state)
{
    (void)state;
    bed b;
    reader one;
    reader two;
    bed_open(&b);
    write_engines(&b);
    reader_open(&one, &b, "ortcryptreference-1");
    run_threads(read_all, &one.context, 1, NULL, ENGINES);
    reader_open(&two, &b, "ortcryptreference-1"); /* a second session while the first is open */
    ortcrypt_ep_context *const both[] = {one.context, two.context};
    run_threads(read_all, both, 2, NULL, ENGINES);
    reader_close(&one);
    run_threads(read_all, &two.context, 1, NULL, ENGINES);
    reader_close(&two);
    bed_close(&b);
}

/* What a name written again means, as the application was told: the same bytes only, the last write, or one more chunk. */
static void write_again(const bed *b, ortcrypt_rewrite rewrite, const char *variant)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    const ortcrypt_compile_options how = {.struct_size = sizeof(how),
                                          .variant = variant,
                                          .ep = "OrtcryptReference",
                                          .ep_library = b->library,
                                          .no_load_check = true,
                                          .rewrite = rewrite};
    const node made = {"a", 0, 1};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_output *output = NULL;
    OrtSessionOptions *options = NULL;
    assert_ok(ortcrypt_output_open(&output, b->runtime, b->bundle, b->keyring, &how, &err), &err);
    assert_null(api->CreateSessionOptions(&options));
    ortcrypt_ep_context *const context = open_helper(options);
    context->write = ortcrypt_write_named;
    context->write_state = output;
    assert_null(ortcrypt_ep_context_write(context, "a", NULL, NULL, "one", 3));
    assert_null(ortcrypt_ep_context_write(context, "a", NULL, NULL, "one", 3));
    OrtStatus *const other = ortcrypt_ep_context_write(context, "a", NULL, NULL, "two!", 4);
    assert_int_equal(other != NULL, rewrite == ORTCRYPT_REWRITE_SAME);
    api->ReleaseStatus(other);
    ortcrypt_ep_context_close(context);
    api->ReleaseSessionOptions(options);
    pb model = compiled_model(&made, 1, NULL);
    assert_null(ortcrypt_write_model(output, model.data, model.len));
    free(model.data);
    assert_st(ortcrypt_output_commit(output, NULL, &err), &err,
              rewrite == ORTCRYPT_REWRITE_SAME ? ORTCRYPT_E_INPUT : ORTCRYPT_OK);
    ortcrypt_output_close(output);
}

static void expect_written(const bed *b, const char *variant, const char *text)
{
    reader r;
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    reader_open(&r, b, variant);
    assert_null(ortcrypt_ep_context_read(r.context, "a", NULL, NULL, 0, &data));
    assert_int_equal(data.size, strlen(text));
    assert_memory_equal(data.data, text, strlen(text));
    ortcrypt_ep_context_data_release(&data);
    reader_close(&r);
}

static void test_written_again(void **state)
{
    (void)state;
    bed b;
    bed_open(&b);
    write_again(&b, ORTCRYPT_REWRITE_SAME, "same");
    write_again(&b, ORTCRYPT_REWRITE_REPLACE, "replaced");
    write_again(&b, ORTCRYPT_REWRITE_APPEND, "appended");
    expect_written(&b, "replaced", "two!");
    expect_written(&b, "appended", "oneonetwo!");
    bed_close(&b);
}

static void test_files(void **state)
{
    (void)state;
    const OrtApi *const api = base_of(version)->GetApi(23);
    OrtSessionOptions *options = NULL;
    char *const dir = oc_test_tmpdir();
    assert_null(api->CreateSessionOptions(&options));
    ortcrypt_ep_context *const contexts[] = {open_helper(options), open_helper(options)};
    api->ReleaseSessionOptions(options);
    run_threads(write_share, contexts, 2, dir, PER_THREAD);
    run_threads(read_all, contexts, 2, dir, ENGINES);
    ortcrypt_ep_context_close(contexts[0]);
    ortcrypt_ep_context_close(contexts[1]);
    oc_test_rm_rf(dir);
    free(dir);
}

/* A callback that itself reads, through another context: nothing is locked around it. */
static OrtStatus *ORT_API_CALL read_through(void *state, const char *name, OrtAllocator *allocator, void **buffer,
                                            size_t *size)
{
    const ortcrypt_ep_context *const inner = state;
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    OrtStatus *const status = ortcrypt_ep_context_read(inner, name, NULL, allocator, 0, &data);
    *buffer = data.memory; /* handed on: the allocator is the same */
    *size = data.size;
    return status;
}

static void test_reentrancy(void **state)
{
    (void)state;
    const OrtApi *const api = base_of(version)->GetApi(23);
    ortcrypt_ep_context_api six;
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    char *const dir = oc_test_tmpdir();
    char *const path = oc_test_format("%s/engine", dir);
    assert_null(ortcrypt_ep_context_api_get(base_of(version), &six));
    assert_null(api->CreateSessionOptions(&options));
    ortcrypt_ep_context *const inner = open_helper(options);
    assert_null(six.SessionOptions_SetEpContextDataReadFunc(options, read_through, inner));
    ortcrypt_ep_context *const outer = open_helper(options);
    api->ReleaseSessionOptions(options);
    assert_null(ortcrypt_ep_context_write(inner, path, NULL, NULL, "bytes", 5));
    assert_null(ortcrypt_ep_context_read(outer, path, NULL, NULL, 0, &data));
    assert_int_equal(data.size, 5);
    assert_memory_equal(data.data, "bytes", 5);
    ortcrypt_ep_context_data_release(&data);
    ortcrypt_ep_context_close(outer);
    ortcrypt_ep_context_close(inner);
    oc_test_rm_rf(dir);
    free(path);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_written_again),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_reentrancy),
    };
    int failed = 0;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        version = rig_versions[i];
        failed += cmocka_run_group_tests_name(version, tests, NULL, NULL);
    }
    return failed;
}
