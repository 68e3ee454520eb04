/*
 * Whole sessions at once: threads that open sessions of one EP library, each with callbacks and a store of its own; every engine is
 * asked for once, of the right store. And binary information together with the write callback.
 */
#include "test_reference_ep_rig.h"

#include <pthread.h>

enum { SESSIONS = 4, ROUNDS = 3 };

/* One session's owner; fails by `rounds`, not by cmocka. */
typedef struct owner {
    pthread_t thread;
    const rig *r;
    rig_bytes compiled;
    rig_store *store;
    size_t rounds;
} owner;

static void *open_and_close(void *argument)
{
    owner *const o = argument;
    for (size_t i = 0; i < ROUNDS; i++) {
        OrtSession *session = NULL;
        const size_t before = o->store->reads;
        OrtStatus *const status = rig_session(o->r, o->compiled, o->store, &session);
        if (status == NULL) {
            o->r->api->ReleaseSession(session);
            o->rounds += o->store->reads - before == o->store->count ? 1 : 0;
        } else {
            o->r->api->ReleaseStatus(status);
        }
    }
    return NULL;
}

static void test_sessions(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_cls");
    owner owners[SESSIONS];
    for (size_t i = 0; i < SESSIONS; i++) {
        const rig_options how = {.max_nodes = i % 2 == 0 ? "7" : "30", .store = rig_store_new(r)};
        owners[i] = (owner){.r = r, .store = how.store};
        rig_ok(r, rig_compile(r, model, &how, &owners[i].compiled));
        assert_true(how.store->count > 1);
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        assert_int_equal(pthread_create(&owners[i].thread, NULL, open_and_close, &owners[i]), 0);
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        assert_int_equal(pthread_join(owners[i].thread, NULL), 0);
        assert_int_equal(owners[i].rounds, ROUNDS);
        rig_store_free(owners[i].store);
        free(owners[i].compiled.data);
    }
    free(model.data);
}

/* Two compilations at once, each into its own store: nothing of the one arrives at the other. */
typedef struct compiler {
    pthread_t thread;
    const rig *r;
    rig_bytes model;
    rig_store *store;
    char prefix[8];
    rig_bytes compiled;
    bool done;
} compiler;

static void *compile(void *argument)
{
    compiler *const c = argument;
    const rig_options how = {.max_nodes = "20", .store = c->store, .prefix = c->prefix};
    OrtStatus *const status = rig_compile(c->r, c->model, &how, &c->compiled);
    c->done = status == NULL;
    if (status != NULL) {
        c->r->api->ReleaseStatus(status);
    }
    return NULL;
}

static void test_compilations(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_cls");
    compiler compilers[2];
    for (size_t i = 0; i < 2; i++) {
        compilers[i] = (compiler){.r = r, .model = model, .store = rig_store_new(r)};
        (void)snprintf(compilers[i].prefix, sizeof(compilers[i].prefix), "side%c_", i == 0 ? 'a' : 'b');
        assert_int_equal(pthread_create(&compilers[i].thread, NULL, compile, &compilers[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(compilers[i].thread, NULL), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_true(compilers[i].done);
        assert_true(compilers[i].store->count > 3);
        for (size_t k = 0; k < compilers[i].store->count; k++) {
            assert_non_null(strstr(compilers[i].store->items[k].name, compilers[i].prefix));
            assert_null(strstr(compilers[i].store->items[k].name, compilers[1 - i].prefix));
        }
        rig_store_free(compilers[i].store);
        free(compilers[i].compiled.data);
    }
    free(model.data);
}

/* The binary information says where files would go; with a callback set, they do not. */
static void test_binary_information(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_cls");
    for (int with = 0; with < 2; with++) {
        char folder[PATH_MAX];
        (void)snprintf(folder, sizeof(folder), "%s/info/", r->folder);
        assert_int_equal(mkdir(folder, 0700), 0);
        rig_store *const store = rig_store_new(r);
        OrtSessionOptions *const options = rig_session_options(r, NULL);
        OrtModelCompilationOptions *compilation = NULL;
        OrtAllocator *allocator = NULL;
        void *buffer = NULL;
        size_t len = 0;
        rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
        rig_ok(r, r->compile->CreateModelCompilationOptionsFromSessionOptions(r->env, options, &compilation));
        rig_ok(r, r->compile->ModelCompilationOptions_SetInputModelFromBuffer(compilation, model.data, model.len));
        rig_ok(r, r->compile->ModelCompilationOptions_SetOutputModelBuffer(compilation, allocator, &buffer, &len));
        rig_ok(r, r->compile->ModelCompilationOptions_SetEpContextBinaryInformation(compilation, folder, "cls.onnx"));
        if (with != 0) {
            rig_ok(r, r->six.ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, rig_store_write, store));
        }
        rig_ok(r, r->compile->CompileModel(r->env, compilation));
        assert_int_equal(store->count, with);
        assert_int_equal(rig_folder_count(folder), 1 - with);
        allocator->Free(allocator, buffer);
        r->compile->ReleaseModelCompilationOptions(compilation);
        r->api->ReleaseSessionOptions(options);
        rig_store_free(store);
        oc_test_rm_rf(folder);
    }
    free(model.data);
}

/* A write callback set, then cleared or replaced: what counts is what was set when CompileModel is called. */
static void test_write_replaced(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_cls");
    rig_store *const first = rig_store_new(r);
    rig_store *const second = rig_store_new(r);
    for (int clear = 0; clear < 2; clear++) {
        OrtSessionOptions *const options = rig_session_options(r, NULL);
        OrtModelCompilationOptions *compilation = NULL;
        OrtAllocator *allocator = NULL;
        void *buffer = NULL;
        size_t len = 0;
        rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
        rig_ok(r, r->compile->CreateModelCompilationOptionsFromSessionOptions(r->env, options, &compilation));
        rig_ok(r, r->compile->ModelCompilationOptions_SetInputModelFromBuffer(compilation, model.data, model.len));
        rig_ok(r, r->compile->ModelCompilationOptions_SetOutputModelBuffer(compilation, allocator, &buffer, &len));
        rig_ok(r, r->six.ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, rig_store_write, first));
        rig_ok(r, r->six.ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, clear ? NULL : rig_store_write,
                                                                           second));
        OrtStatus *const status = r->compile->CompileModel(r->env, compilation);
        if (clear) {
            rig_refused(r, status, "set no callback"); /* and no folder: nothing is written anywhere */
        } else {
            rig_ok(r, status);
            allocator->Free(allocator, buffer);
        }
        r->compile->ReleaseModelCompilationOptions(compilation);
        r->api->ReleaseSessionOptions(options);
    }
    assert_int_equal(first->writes, 0);
    assert_int_equal(second->writes, 1);
    rig_store_free(first);
    rig_store_free(second);
    free(model.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_compilations),
        cmocka_unit_test(test_binary_information),
        cmocka_unit_test(test_write_replaced),
    };
    int failed = cmocka_run_group_tests_name("sessions at once, ORT 1.30.0", tests, rig_open_130, rig_close_group);
    failed += cmocka_run_group_tests_name("sessions at once, ORT 1.32.0", tests, rig_open_132, rig_close_group);
    return failed;
}
