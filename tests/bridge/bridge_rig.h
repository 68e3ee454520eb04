/* What the tests of the bridge share: one OrtEnv of a real runtime, the fake EP before and behind the bridge. */
#ifndef TEST_BRIDGE_RIG_H
#define TEST_BRIDGE_RIG_H

#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bridge/fake_ep.h"
#include "ortcrypt/bridge.h"
#include "runtime/registry.h"
#include "support/support.h"

static const char *const versions[] = {"1.24.4", "1.30.0", "1.32.0"};

typedef struct bed {
    const OrtApiBase *base;
    const OrtApi *api;
    OrtEnv *env;
    ortcrypt_ep_context_api six;
    char *model;
} bed;

static char bridge[PATH_MAX];
static char fake[PATH_MAX];
static char *folder;
static bool (*target)(const char *, const char *);

static inline void ok(const bed *b, OrtStatus *status)
{
    if (status != NULL) {
        fail_msg("%s", b->api->GetErrorMessage(status));
    }
}

static inline void refused(const bed *b, OrtStatus *status, const char *part)
{
    if (status == NULL) {
        fail_msg("not refused; expected: %s", part);
    }
    if (strstr(b->api->GetErrorMessage(status), part) == NULL) {
        fail_msg("expected \"%s\" in: %s", part, b->api->GetErrorMessage(status));
    }
    b->api->ReleaseStatus(status);
}

static inline bool loaded(const char *path)
{
    void *const handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (handle != NULL) {
        (void)dlclose(handle);
    }
    return handle != NULL;
}

/* What the library at `path`, which is loaded, has seen. */
static inline fake_ep_seen *look(const char *path)
{
    fake_ep_look_function function = NULL;
    void *const handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    void *const symbol = dlsym(handle, "fake_ep_look");
    memcpy(&function, &symbol, sizeof(function));
    (void)dlclose(handle);
    return function();
}

static inline bed open_bed(const char *version)
{
    bed b = {0};
    char path[PATH_MAX];
    const OrtApiBase *(*get)(void) = NULL;
    (void)snprintf(path, sizeof(path), "%s/ort/%s/libonnxruntime.so.%s", oc_test_env("ORTCRYPT_DEPS"), version, version);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    b.base = get();
    b.api = b.base->GetApi(24);
    ok(&b, b.api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &b.env));
    ok(&b, ortcrypt_ep_context_api_get(b.base, &b.six));
    b.model = oc_test_format("%s/testmodels/embedded/embedded.onnx", oc_test_env("ORTCRYPT_DEPS"));
    (void)unsetenv("FAKE_EP");
    return b;
}

static inline void close_bed(bed *b)
{
    b->api->ReleaseEnv(b->env);
    free(b->model);
    (void)unsetenv("FAKE_EP");
}

static inline OrtStatus *enter(const bed *b, const char *name, const char *library)
{
    assert_true(target(name, library));
    return b->api->RegisterExecutionProviderLibrary(b->env, name, bridge);
}

static inline OrtStatus *create_session(const bed *b, const char *ep, OrtSessionOptions *options, OrtSession **session)
{
    const OrtEpDevice *const *all = NULL;
    const OrtEpDevice *device = NULL;
    size_t count = 0;
    ok(b, b->api->GetEpDevices(b->env, &all, &count));
    for (size_t i = 0; i < count; i++) {
        device = strcmp(b->api->EpDevice_EpName(all[i]), ep) == 0 ? all[i] : device;
    }
    assert_non_null(device);
    ok(b, b->api->SessionOptionsAppendExecutionProvider_V2(options, b->env, &device, 1, NULL, NULL, 0));
    *session = NULL;
    return b->api->CreateSession(b->env, b->model, options, session);
}

static inline OrtSessionOptions *new_options(const bed *b)
{
    OrtSessionOptions *options = NULL;
    ok(b, b->api->CreateSessionOptions(&options));
    return options;
}

/* A session whose options carry `id` (NULL: none), gone again; the EP's view is in look(). */
static inline void run_session(const bed *b, const char *id)
{
    OrtSessionOptions *const options = new_options(b);
    OrtSession *session = NULL;
    if (id != NULL) {
        ok(b, b->api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, id));
    }
    ok(b, create_session(b, "Fake", options, &session));
    assert_int_equal(look(fake)->eps, 1);
    b->api->ReleaseSession(session);
    b->api->ReleaseSessionOptions(options);
    assert_int_equal(look(fake)->eps, 0);
}

static inline void leave_bridge(const bed *b, const char *name)
{
    ok(b, b->api->UnregisterExecutionProviderLibrary(b->env, name));
}

static int reads;
static inline OrtStatus *ORT_API_CALL count_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *size)
{
    (void)name, (void)allocator;
    assert_ptr_equal(state, &reads);
    (void)__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
    *buffer = NULL;
    *size = 7;
    return NULL;
}

static inline int setup(void **state)
{
    (void)state;
    (void)snprintf(bridge, sizeof(bridge), "%s/libortcrypt_bridge.so", oc_test_env("ORTCRYPT_BUILD"));
    (void)snprintf(fake, sizeof(fake), "%s/fake_ep/libortcrypt_fake_ep.so", oc_test_env("ORTCRYPT_BUILD"));
    folder = oc_test_tmpdir();
    void *const handle = dlopen(bridge, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        print_error("%s\n", dlerror());
        return -1;
    }
    void *const symbol = dlsym(handle, "ortcrypt_bridge_target");
    memcpy(&target, &symbol, sizeof(target));
    return target != NULL ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    oc_test_rm_rf(folder);
    free(folder);
    return 0;
}

#endif
