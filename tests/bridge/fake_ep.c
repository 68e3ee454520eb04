/* See fake_ep.h. It finds the callbacks as EPs of 1.28 do: by GetExperimentalFunction, and keeps function and state. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_ep.h"

#define EXPORTED __attribute__((visibility("default")))
EXPORTED OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                                      size_t max, size_t *count);
EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);
EXPORTED fake_ep_seen *fake_ep_look(void);

static fake_ep_seen seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the callbacks in it */
static const OrtApi *api;
static char ep_name[2][64];

fake_ep_seen *fake_ep_look(void)
{
    return &seen;
}

static bool fault(const char *name)
{
    const char *const text = getenv("FAKE_EP");
    return text != NULL && strcmp(text, name) == 0;
}

typedef struct fake_factory {
    OrtEpFactory ort;
    const char *name;
} fake_factory;

static const char *ORT_API_CALL factory_name(const OrtEpFactory *self)
{
    return ((const fake_factory *)self)->name;
}
static const char *ORT_API_CALL factory_vendor(const OrtEpFactory *self)
{
    (void)self;
    return "nobody";
}
static const char *ORT_API_CALL factory_version(const OrtEpFactory *self)
{
    (void)self;
    return "1.0.0";
}
static uint32_t ORT_API_CALL vendor_id(const OrtEpFactory *self)
{
    (void)self;
    return 0xffff;
}
static OrtStatus *ORT_API_CALL devices(OrtEpFactory *self, const OrtHardwareDevice *const *all, size_t count, OrtEpDevice **out,
                                       size_t max, size_t *found)
{
    OrtStatus *status = NULL;
    *found = 0;
    for (size_t i = 0; i < count && *found < max && *found < 1 && status == NULL; i++) {
        if (api->HardwareDevice_Type(all[i]) == OrtHardwareDeviceType_CPU) {
            status = api->GetEpApi()->CreateEpDevice(self, all[i], NULL, NULL, &out[*found]);
            *found += status == NULL ? 1 : 0;
        }
    }
    return status;
}
static OrtStatus *ORT_API_CALL no_allocator(OrtEpFactory *self, const OrtMemoryInfo *info, const OrtKeyValuePairs *options, OrtAllocator **out)
{
    (void)self, (void)info, (void)options;
    *out = NULL;
    return NULL;
}
static void ORT_API_CALL release_allocator(OrtEpFactory *self, OrtAllocator *allocator)
{
    (void)self, (void)allocator;
}
static OrtStatus *ORT_API_CALL no_transfer(OrtEpFactory *self, OrtDataTransferImpl **out)
{
    (void)self;
    *out = NULL;
    return NULL;
}
static bool ORT_API_CALL no_streams(const OrtEpFactory *self)
{
    (void)self;
    return false;
}

static const char *ORT_API_CALL get_name(const OrtEp *ep)
{
    (void)ep;
    return ep_name[0];
}
static OrtStatus *ORT_API_CALL capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info)
{
    const OrtNode *nodes[64];
    size_t count = 0;
    (void)ep;
    if (!fault("takes")) {
        return NULL;
    }
    OrtStatus *status = api->Graph_GetNumNodes(graph, &count);
    if (status == NULL && count != 0 && count <= 64) {
        status = api->Graph_GetNodes(graph, nodes, count);
    }
    return status != NULL || count == 0 ? status : api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(info, nodes, 1, NULL);
}
static OrtStatus *ORT_API_CALL compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **nodes, size_t count, OrtNodeComputeInfo **infos,
                                       OrtNode **contexts)
{
    (void)ep, (void)graphs, (void)nodes, (void)count, (void)infos, (void)contexts;
    return api->CreateStatus(ORT_NOT_IMPLEMENTED, "it takes no node");
}
static void ORT_API_CALL release_infos(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count)
{
    (void)ep, (void)infos, (void)count;
}

#define FIND(name) api->GetExperimentalFunction("OrtEpApi_" name "_SinceV28")

/* As an EP of 1.28 does it: function and state are kept, the configuration is not. */
static OrtStatus *take_callbacks(const OrtSessionOptions *options)
{
    typedef OrtStatus *(ORT_API_CALL * get_config)(const OrtSessionOptions *, OrtEpContextConfig **);
    typedef void(ORT_API_CALL * release_config)(OrtEpContextConfig *);
    typedef OrtStatus *(ORT_API_CALL * get_read)(const OrtEpContextConfig *, OrtReadNamedBufferFunc *, void **);
    typedef OrtStatus *(ORT_API_CALL * get_write)(const OrtEpContextConfig *, OrtWriteNamedBufferFunc *, void **);
    const get_config config = (get_config)FIND("SessionOptions_GetEpContextConfig");
    const get_read read = (get_read)FIND("EpContextConfig_GetEpContextDataReadFunc");
    const get_write write = (get_write)FIND("EpContextConfig_GetEpContextDataWriteFunc");
    const release_config release = (release_config)FIND("ReleaseEpContextConfig");
    OrtEpContextConfig *found = NULL;
    fake_ep_seen got = {.read = NULL};
    if (config == NULL || read == NULL || write == NULL || release == NULL) {
        seen.read = NULL;
        seen.write = NULL;
        return NULL; /* as shipped EPs do: files */
    }
    OrtStatus *status = config(options, &found);
    if (status == NULL) {
        status = read(found, &got.read, &got.read_state);
    }
    if (status == NULL) {
        status = write(found, &got.write, &got.write_state);
    }
    release(found);
    (void)pthread_mutex_lock(&lock);
    seen.read = got.read;
    seen.read_state = got.read_state;
    seen.write = got.write;
    seen.write_state = got.write_state;
    (void)pthread_mutex_unlock(&lock);
    return status;
}

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *hardware,
                                         const OrtKeyValuePairs *const *metadata, size_t count, const OrtSessionOptions *options,
                                         const OrtLogger *logger, OrtEp **ep)
{
    (void)factory, (void)hardware, (void)metadata, (void)count, (void)logger;
    OrtStatus *const status = take_callbacks(options);
    if (status != NULL) {
        return status;
    }
    if (fault("ep_fails")) {
        return api->CreateStatus(ORT_ENGINE_ERROR, "no EP today");
    }
    if (fault("missing")) {
        api->GetEpApi()->ReleaseOpSchema(NULL);
    }
    OrtEp *const made = calloc(1, sizeof(*made));
    made->ort_version_supported = fault("newer_ep") ? 31 : 24;
    made->GetName = get_name;
    made->GetCapability = capability;
    made->Compile = compile;
    made->ReleaseNodeComputeInfos = release_infos;
    (void)__atomic_fetch_add(&seen.eps, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&seen.created, 1, __ATOMIC_RELAXED);
    *ep = made;
    return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep)
{
    (void)factory;
    if (ep != NULL) {
        (void)__atomic_fetch_sub(&seen.eps, 1, __ATOMIC_RELAXED);
        free(ep);
    }
}

#define MEMBERS                                                                                                        \
    {                                                                                                                  \
        .ort = {.ort_version_supported = 24,                                                                           \
                .GetName = factory_name,                                                                               \
                .GetVendor = factory_vendor,                                                                           \
                .GetVendorId = vendor_id,                                                                              \
                .GetVersion = factory_version,                                                                         \
                .GetSupportedDevices = devices,                                                                        \
                .CreateEp = create_ep,                                                                                 \
                .ReleaseEp = release_ep,                                                                               \
                .CreateAllocator = no_allocator,                                                                       \
                .ReleaseAllocator = release_allocator,                                                                 \
                .CreateDataTransfer = no_transfer,                                                                     \
                .IsStreamAware = no_streams},                                                                          \
        .name = ep_name[0]                                                                                             \
    }
static const fake_factory pattern = MEMBERS;
static fake_factory only_one = MEMBERS;

static OrtEpFactory *make_factory(size_t index)
{
    union {
        const OrtEpFactory *given;
        OrtEpFactory *factory;
    } read_only = {&pattern.ort};
    seen.factories++;
    if (fault("const")) {
        return read_only.factory;
    }
    if (fault("same")) {
        return &only_one.ort;
    }
    fake_factory *const made = calloc(1, sizeof(*made));
    *made = pattern;
    made->name = ep_name[index];
    made->ort.ort_version_supported = fault("newer_factory") ? 31 : 24;
    return &made->ort;
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                             size_t *count)
{
    (void)logger;
    (void)snprintf(seen.version, sizeof(seen.version), "%s", base->GetVersionString());
    const unsigned minor = (unsigned)strtoul(seen.version + 2, NULL, 10);
    seen.api_version = minor < 29 ? minor : 29;
    api = base->GetApi(seen.api_version);
    if (fault("newer")) {
        (void)base->GetApi(31);
    }
    *count = 0;
    if (fault("fails")) {
        return api->CreateStatus(ORT_ENGINE_ERROR, "no factories today");
    }
    const size_t wanted = fault("none") ? 0 : fault("two") ? 2 : 1;
    for (size_t i = 0; i < wanted && i < max; i++) {
        (void)snprintf(ep_name[i], sizeof(ep_name[i]), "%.50s%s", name, i == 0 ? "" : "Second");
        factories[(*count)++] = make_factory(i);
    }
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    seen.factories--;
    if (factory != &pattern.ort && factory != &only_one.ort) {
        free(factory);
    }
    return NULL;
}
