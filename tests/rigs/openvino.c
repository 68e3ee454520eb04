/*
 * An EP library for tests: the OpenVINO EP on a CPU of any maker.
 *
 * OpenVINO's own library offers its CPU device where ONNX Runtime says that the CPU is Intel's, although it runs on others. This one
 * loads it (ORTCRYPT_OPENVINO, else what tools/setup fetched) and hands it an OrtApiBase that says so of every CPU. Everything else is
 * the runtime's own, or whatever this library is given in the runtime's place: it may be registered behind the bridge, and asks it for
 * nothing that OpenVINO does not ask for.
 * OpenVINO's library is never unloaded (it has unique symbols) and keeps the tables of its first registration: so this one stays loaded
 * too (-z nodelete), and a later registration puts its functions into the same tables.
 * ONNX Runtime registers and unregisters EP libraries one after the other: no locks here.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/internal.h"

#define INTEL 0x8086
#define OLDEST 23
#define SLOTS_MAX 512

typedef OrtStatus *(*create_function)(const char *, const OrtApiBase *, const OrtLogger *, OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_function)(OrtEpFactory *);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                                      size_t max, size_t *count);
EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static struct {
    void *library;
    const OrtApiBase *base; /* underneath */
    const OrtApi *api;
    release_function release;
    OrtEpFactory *factory; /* one registration at a time */
} rig;

/* By version; what was never asked for is all zero. */
static oc_function tables[OC_INTERPOSE_MINOR_MAX + 1][SLOTS_MAX];

static uint32_t ORT_API_CALL vendor_id(const OrtHardwareDevice *device)
{
    return rig.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU ? INTEL : rig.api->HardwareDevice_VendorId(device);
}

static const OrtApi *ORT_API_CALL get_api(uint32_t version)
{
    const OrtApi *const api = version <= OC_INTERPOSE_MINOR_MAX ? rig.base->GetApi(version) : NULL;
    if (api == NULL) {
        return NULL;
    }
    /* a runtime has one table for all versions, which only grew: an older one than the first known here is asked to make errors with */
    const size_t count = oc_slot_count(OC_TABLE_API, version < OLDEST ? OLDEST : version);
    oc_function *const table = tables[version];
    if (count > SLOTS_MAX) {
        return NULL;
    }
    memcpy(table, api, count * sizeof(*table));
    table[OC_SLOT(OrtApi, HardwareDevice_VendorId)] = (oc_function)vendor_id;
    rig.api = api;
    return (const OrtApi *)table;
}

static const char *ORT_API_CALL get_version(void)
{
    return rig.base->GetVersionString();
}

static const OrtApiBase given = {get_api, get_version};

static OrtStatus *load(create_function *create)
{
    const char *const named = getenv("ORTCRYPT_OPENVINO");
    rig.library = dlopen(named != NULL ? named : OPENVINO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (rig.library == NULL) {
        return rig.api->CreateStatus(ORT_FAIL, dlerror());
    }
    *create = (create_function)dlsym(rig.library, "CreateEpFactories");
    rig.release = (release_function)dlsym(rig.library, "ReleaseEpFactory");
    if (*create == NULL || rig.release == NULL) {
        return rig.api->CreateStatus(ORT_FAIL, "this is no EP library");
    }
    return NULL;
}

static void unload(void)
{
    if (rig.library != NULL) {
        (void)dlclose(rig.library);
    }
    rig.library = NULL;
    rig.factory = NULL;
}

/* Tables that OpenVINO kept from an earlier registration get this one's functions. */
static void renew_tables(void)
{
    for (uint32_t version = 0; version <= OC_INTERPOSE_MINOR_MAX; version++) {
        if (tables[version][0] != NULL) {
            (void)get_api(version);
        }
    }
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                             size_t *count)
{
    create_function create = NULL;
    if (rig.factory != NULL) {
        return rig.api->CreateStatus(ORT_FAIL, "the rig is registered already");
    }
    rig.base = base;
    rig.api = base->GetApi(OLDEST);
    if (rig.api == NULL) {
        return base->GetApi(1)->CreateStatus(ORT_NOT_IMPLEMENTED, "the rig needs ONNX Runtime 1.23 or a newer 1.x");
    }
    renew_tables();
    OrtStatus *status = load(&create);
    if (status == NULL) {
        status = create(name, &given, logger, factories, max, count);
    }
    if (status != NULL) {
        unload();
        return status;
    }
    rig.factory = factories[0];
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    OrtStatus *const status = rig.release(factory);
    if (factory == rig.factory) {
        unload();
    }
    return status;
}
