/*
 * What the tests of the reference EP share: a real runtime with the EP registered, a store in memory behind the callbacks,
 * compiling and opening from bytes, inputs made from a seed, and a small reader of compiled models.
 */
#ifndef TEST_REFERENCE_EP_RIG_H
#define TEST_REFERENCE_EP_RIG_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ortcrypt/ep_context.h"
#include "support/support.h"

/* Another EP's test says so before. */
#ifndef EP_NAME
#define EP_NAME "OrtcryptReference"
#define EP_LIBRARY "libortcrypt_reference_ep.so"
#endif

enum { RIG_ITEMS_MAX = 512 };

typedef struct rig_bytes {
    char *data;
    size_t len;
} rig_bytes;

/* What the application stores: name -> bytes. */
typedef struct rig_store {
    struct {
        char name[256];
        rig_bytes bytes;
    } items[RIG_ITEMS_MAX];
    size_t count;
    size_t writes;
    size_t reads;
    const char *fail; /* both callbacks refuse with this sentence */
    const OrtApi *api;
} rig_store;

typedef struct rig {
    const char *version;
    const OrtApiBase *base;
    const OrtApi *api;
    const OrtCompileApi *compile;
    ortcrypt_ep_context_api six;
    OrtEnv *env;
    const OrtEpDevice *device;
    char folder[64]; /* scratch; also HOME */
} rig;

/* How to compile. */
typedef struct rig_options {
    const char *max_nodes; /* provider option, or NULL */
    bool embed;
    rig_store *store;     /* NULL: no callbacks */
    const char *out_path; /* NULL: into memory */
    const char *prefix;   /* ep.context_node_name_prefix, or NULL */
} rig_options;

static inline void rig_ok(const rig *r, OrtStatus *status)
{
    if (status != NULL) {
        print_error("%s: %s\n", r->version, r->api->GetErrorMessage(status));
        r->api->ReleaseStatus(status);
        fail();
    }
}

/* Expects an error whose sentence has `part` in it. */
static inline void rig_refused(const rig *r, OrtStatus *status, const char *part)
{
    assert_non_null(status);
    if (strstr(r->api->GetErrorMessage(status), part) == NULL) {
        print_error("expected \"%s\" in: %s\n", part, r->api->GetErrorMessage(status));
        r->api->ReleaseStatus(status);
        fail();
    }
    r->api->ReleaseStatus(status);
}

static inline const char *rig_env(const char *name)
{
    const char *const value = getenv(name);
    if (value == NULL) {
        fail_msg("the environment variable %s is not set", name);
    }
    return value;
}

static inline void rig_open(rig *r, const char *version)
{
    char path[PATH_MAX];
    memset(r, 0, sizeof(*r));
    r->version = version;
    (void)snprintf(r->folder, sizeof(r->folder), "/tmp/ortcrypt-ref-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    assert_int_equal(setenv("HOME", r->folder, 1), 0);
    (void)snprintf(path, sizeof(path), "%s/ort/%s/libonnxruntime.so.%s", rig_env("ORTCRYPT_DEPS"), version, version);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept: ORT does not like to be unloaded */
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    const OrtApiBase *(*get)(void) = NULL;
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    r->base = get();
    r->api = r->base->GetApi(24);
    r->compile = r->api->GetCompileApi();
    rig_ok(r, ortcrypt_ep_context_api_get(r->base, &r->six));
    rig_ok(r, r->api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &r->env));
    (void)snprintf(path, sizeof(path), "%s/" EP_LIBRARY, rig_env("ORTCRYPT_BUILD"));
    rig_ok(r, r->api->RegisterExecutionProviderLibrary(r->env, EP_NAME, path));
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;
    rig_ok(r, r->api->GetEpDevices(r->env, &devices, &count));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(r->api->EpDevice_EpName(devices[i]), EP_NAME) == 0) {
            r->device = devices[i];
        }
    }
    assert_non_null(r->device);
}

/* Number of entries in a folder. */
static inline size_t rig_folder_count(const char *folder)
{
    size_t count = 0;
    DIR *const open = opendir(folder);
    assert_non_null(open);
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 ? 1 : 0;
    }
    (void)closedir(open);
    return count;
}

static inline void rig_close(rig *r)
{
    rig_ok(r, r->api->UnregisterExecutionProviderLibrary(r->env, EP_NAME));
    r->api->ReleaseEnv(r->env);
    oc_test_rm_rf(r->folder);
}

/* ---- bytes ---- */

static inline rig_bytes rig_copy(const void *data, size_t len)
{
    rig_bytes bytes = {malloc(len + 1), len};
    assert_non_null(bytes.data);
    memcpy(bytes.data, len != 0 ? data : "", len);
    return bytes;
}

static inline rig_bytes rig_file(const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s cannot be opened", path);
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long len = ftell(file);
    assert_true(len >= 0);
    rewind(file);
    rig_bytes bytes = {malloc((size_t)len + 1), (size_t)len};
    assert_non_null(bytes.data);
    assert_int_equal(fread(bytes.data, 1, bytes.len, file), bytes.len);
    (void)fclose(file);
    return bytes;
}

static inline rig_bytes rig_model(const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/models/%s.onnx", rig_env("ORTCRYPT_DEPS"), name);
    return rig_file(path);
}

static inline void rig_save(const char *path, rig_bytes bytes)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.len, file), bytes.len);
    assert_int_equal(fclose(file), 0);
}

/* ---- the store and its callbacks ---- */

static inline rig_store *rig_store_new(const rig *r)
{
    rig_store *const store = calloc(1, sizeof(*store));
    assert_non_null(store);
    store->api = r->api;
    return store;
}

static inline void rig_store_free(rig_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        free(store->items[i].bytes.data);
    }
    free(store);
}

static inline OrtStatus *ORT_API_CALL rig_store_write(void *state, const char *name, const void *buffer, size_t len)
{
    rig_store *const store = state;
    store->writes++;
    if (store->fail != NULL) {
        return store->api->CreateStatus(ORT_NO_SUCHFILE, store->fail);
    }
    for (size_t i = 0; i < store->count; i++) {
        if (strcmp(store->items[i].name, name) == 0) {
            return store->api->CreateStatus(ORT_FAIL, "a name was written twice");
        }
    }
    if (store->count == RIG_ITEMS_MAX || strlen(name) >= sizeof(store->items[0].name)) {
        return store->api->CreateStatus(ORT_FAIL, "the test's store is full");
    }
    (void)snprintf(store->items[store->count].name, sizeof(store->items[0].name), "%s", name);
    store->items[store->count++].bytes = rig_copy(buffer, len);
    return NULL;
}

static inline OrtStatus *ORT_API_CALL rig_store_read(void *state, const char *name, OrtAllocator *allocator,
                                                     void **buffer, size_t *len)
{
    rig_store *const store = state;
    store->reads++;
    if (store->fail != NULL) {
        return store->api->CreateStatus(ORT_NO_SUCHFILE, store->fail);
    }
    for (size_t i = 0; i < store->count; i++) {
        if (strcmp(store->items[i].name, name) == 0) {
            const rig_bytes bytes = store->items[i].bytes;
            void *const copy = bytes.len != 0 ? allocator->Alloc(allocator, bytes.len) : NULL;
            if (copy != NULL) {
                memcpy(copy, bytes.data, bytes.len);
            }
            *buffer = copy;
            *len = bytes.len;
            return NULL;
        }
    }
    return store->api->CreateStatus(ORT_NO_SUCHFILE, "the test's store has no such name");
}

/* ---- sessions ---- */

static inline OrtSessionOptions *rig_session_options(const rig *r, const char *max_nodes)
{
    const char *const key = "max_nodes_per_engine";
    OrtSessionOptions *options = NULL;
    rig_ok(r, r->api->CreateSessionOptions(&options));
    rig_ok(r, r->api->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL));
    rig_ok(r, r->api->SessionOptionsAppendExecutionProvider_V2(options, r->env, &r->device, 1, &key, &max_nodes,
                                                               max_nodes != NULL ? 1 : 0));
    return options;
}

/* Compiles from a buffer; *out (when options->out_path is NULL) is the compiled model. */
static inline OrtStatus *rig_compile(const rig *r, rig_bytes model, const rig_options *how, rig_bytes *out)
{
    OrtSessionOptions *const options = rig_session_options(r, how->max_nodes);
    OrtModelCompilationOptions *compilation = NULL;
    OrtAllocator *allocator = NULL;
    void *buffer = NULL;
    size_t len = 0;
    if (how->prefix != NULL) {
        rig_ok(r, r->api->AddSessionConfigEntry(options, "ep.context_node_name_prefix", how->prefix));
    }
    rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
    rig_ok(r, r->compile->CreateModelCompilationOptionsFromSessionOptions(r->env, options, &compilation));
    rig_ok(r, r->compile->ModelCompilationOptions_SetInputModelFromBuffer(compilation, model.data, model.len));
    rig_ok(r, r->compile->ModelCompilationOptions_SetEpContextEmbedMode(compilation, how->embed));
    rig_ok(r, r->compile->ModelCompilationOptions_SetFlags(compilation, 1)); /* an error when nothing was compiled */
    if (how->out_path != NULL) {
        rig_ok(r, r->compile->ModelCompilationOptions_SetOutputModelPath(compilation, how->out_path));
    } else {
        rig_ok(r, r->compile->ModelCompilationOptions_SetOutputModelBuffer(compilation, allocator, &buffer, &len));
    }
    if (how->store != NULL) {
        rig_ok(r, r->six.ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, rig_store_write, how->store));
    }
    OrtStatus *const status = r->compile->CompileModel(r->env, compilation);
    if (status == NULL && how->out_path == NULL) {
        *out = rig_copy(buffer, len);
    }
    if (buffer != NULL) {
        allocator->Free(allocator, buffer);
    }
    r->compile->ReleaseModelCompilationOptions(compilation);
    r->api->ReleaseSessionOptions(options);
    return status;
}

/* A session with the EP (`store` NULL: without callback), from bytes. */
static inline OrtStatus *rig_session(const rig *r, rig_bytes model, rig_store *store, OrtSession **session)
{
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    if (store != NULL) {
        rig_ok(r, r->six.SessionOptions_SetEpContextDataReadFunc(options, rig_store_read, store));
    }
    OrtStatus *const status = r->api->CreateSessionFromArray(r->env, model.data, model.len, options, session);
    r->api->ReleaseSessionOptions(options);
    return status;
}

static inline OrtSession *rig_cpu_session(const rig *r, rig_bytes model)
{
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    rig_ok(r, r->api->CreateSessionOptions(&options));
    rig_ok(r, r->api->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL));
    rig_ok(r, r->api->CreateSessionFromArray(r->env, model.data, model.len, options, &session));
    r->api->ReleaseSessionOptions(options);
    return session;
}

/* Both runtimes run the same tests: RIG_MAIN(name, tests) makes the program. */
static rig the_rig;

static inline int rig_open_130(void **state)
{
    (void)state;
    rig_open(&the_rig, "1.30.0");
    return 0;
}

static inline int rig_open_132(void **state)
{
    (void)state;
    rig_open(&the_rig, "1.32.0");
    return 0;
}

static inline int rig_close_group(void **state)
{
    (void)state;
    rig_close(&the_rig);
    return 0;
}

#endif
