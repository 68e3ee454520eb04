/*
 * fakes/fake_bridge.h: the bridge between a fake runtime and the fake EP library. open_scene -> create ... ReleaseEp -> close_scene, which
 * looks for what is left behind. The tests' ids are in ids[], with counts of what came through them.
 */
#ifndef FAKE_BRIDGE_H
#define FAKE_BRIDGE_H

#include "fakes/fake_ep.h"
#include "fakes/fake_load.h"
#include "interpose/interpose.h"
#include "ortcrypt/bridge.h"

typedef OrtStatus *(*create_factories)(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                                       size_t *count);
typedef OrtStatus *(*release_factory)(OrtEpFactory *factory);

/* The bridge's entry points; it stays loaded. */
static struct {
    bool (*target)(const char *name, const char *path);
    bool (*attach)(const ortcrypt_ep_registry *registry);
    create_factories create;
    release_factory release;
} bridge;

static char ep_path[1024];

/* ---- The application's side: ids and how often each was read and written. ---- */

enum { IDS = 2 };
static const char *const ids[IDS] = {"00000000000000000000000000000001", "00000000000000000000000000000002"};
static bool closed[IDS];
static atomic_size_t reads[IDS];
static atomic_size_t writes[IDS];

static int index_of(const char *id)
{
    for (int i = 0; i < IDS; i++) {
        if (strcmp(ids[i], id) == 0 && !closed[i]) {
            return i;
        }
    }
    return -1;
}

static uint32_t ORT_API_CALL callbacks_of(const char *id)
{
    return index_of(id) >= 0 ? ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES : 0;
}

static OrtStatus *ORT_API_CALL read_for(const char *id, const OrtApi *api, const char *name, OrtAllocator *allocator, void **buffer, size_t *len)
{
    const int i = index_of(id);

    (void)name;
    (void)allocator;
    if (i < 0) {
        return api->CreateStatus(ORT_FAIL, "closed");
    }
    reads[i]++;
    *buffer = NULL;
    *len = 0;
    return NULL;
}

static OrtStatus *ORT_API_CALL write_for(const char *id, const OrtApi *api, const char *name, const void *buffer, size_t len)
{
    const int i = index_of(id);

    (void)name;
    (void)buffer;
    (void)len;
    if (i < 0) {
        return api->CreateStatus(ORT_FAIL, "closed");
    }
    writes[i]++;
    return NULL;
}

static const ortcrypt_ep_registry registry = {sizeof(registry), callbacks_of, read_for, write_for};

RIG_UNUSED static OrtStatus *ORT_API_CALL runtime_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *len)
{
    (void)state;
    (void)name;
    (void)allocator;
    *buffer = NULL;
    *len = 0;
    return NULL;
}

/* ---- ONNX Runtime's side. ---- */

/* One registration: a factory behind the bridge. */
typedef struct scene {
    fake f;
    const OrtApi *api;
    OrtEpFactory *factory;
    void *library; /* of the EP, for its control */
    fake_ep_control *ep;
} scene;

static const OrtApi *any_api; /* for errors */

static void ok(OrtStatus *status)
{
    if (status != NULL) {
        print_error("%s\n", any_api->GetErrorMessage(status));
        any_api->ReleaseStatus(status);
        fail();
    }
}

static void refused(OrtStatus *status, const char *words)
{
    assert_non_null(status);
    if (strstr(any_api->GetErrorMessage(status), words) == NULL) {
        fail_msg("\"%s\" is not in: %s", words, any_api->GetErrorMessage(status));
    }
    any_api->ReleaseStatus(status);
}

RIG_UNUSED static OrtStatus *try_scene(scene *s, unsigned minor, const char *name)
{
    fake_ep_control_fn get = NULL;
    size_t count = 0;

    *s = (scene){.f = load(minor)};
    s->api = any_api = s->f.base->GetApi(FIRST);
    s->library = dlopen(ep_path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(s->library);
    void *const symbol = fake_symbol(s->library, "fake_ep_control_get");
    memcpy(&get, &symbol, sizeof get);
    s->ep = get();
    assert_true(bridge.target(name, ep_path));
    return bridge.create(name, s->f.base, NULL, &s->factory, 1, &count);
}

RIG_UNUSED static scene open_scene(unsigned minor, const char *name)
{
    scene s;

    ok(try_scene(&s, minor, name));
    assert_non_null(s.factory);
    return s;
}

/* After the factory is gone: no library, no object of the runtime. */
static void check_nothing_left(const scene *s)
{
    assert_false(s->f.control->asked_beyond);
    assert_null(dlopen(ep_path, RTLD_NOW | RTLD_NOLOAD));
    assert_int_equal(s->f.control->live, 0);
}

static void close_scene(const scene *s)
{
    assert_int_equal(s->ep->eps, 0);
    (void)dlclose(s->library); /* the bridge's hold is the last one */
    ok(bridge.release(s->factory));
    check_nothing_left(s);
}

/* Session options with an id (-1: none), sharing or not. */
static OrtSessionOptions *make_options(const scene *s, int id, bool sharing)
{
    OrtSessionOptions *options = NULL;

    ok(s->api->CreateSessionOptions(&options));
    if (id >= 0) {
        ok(s->api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, ids[id]));
    }
    if (sharing) {
        ok(s->api->AddSessionConfigEntry(options, "ep.share_ep_contexts", "1"));
    }
    return options;
}

static OrtStatus *create(OrtEpFactory *factory, const OrtSessionOptions *options, OrtEp **ep)
{
    return factory->CreateEp(factory, NULL, NULL, 0, options, NULL, ep);
}

static int setup(void **state)
{
    char path[1024];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/libortcrypt_bridge.so", oc_test_env("ORTCRYPT_BUILD"));
    (void)snprintf(ep_path, sizeof ep_path, "%s/fakes/libfake_ep.so", oc_test_env("ORTCRYPT_BUILD"));
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    void *symbol = fake_symbol(library, "ortcrypt_bridge_target");
    memcpy(&bridge.target, &symbol, sizeof symbol);
    symbol = fake_symbol(library, "ortcrypt_ep_attach");
    memcpy(&bridge.attach, &symbol, sizeof symbol);
    symbol = fake_symbol(library, "CreateEpFactories");
    memcpy(&bridge.create, &symbol, sizeof symbol);
    symbol = fake_symbol(library, "ReleaseEpFactory");
    memcpy(&bridge.release, &symbol, sizeof symbol);
    assert_true(bridge.attach(&registry));
    return 0;
}

static int reset(void **state)
{
    (void)state;
    memset(closed, 0, sizeof closed);
    memset(reads, 0, sizeof reads);
    memset(writes, 0, sizeof writes);
    return 0;
}

#endif
