/*
 * An EP library for tests: the OpenVINO EP on a CPU of any maker.
 *
 * OpenVINO's own library offers its CPU device where ONNX Runtime says that the CPU is Intel's, although it runs on others. This one
 * loads it (ORTCRYPT_OPENVINO, else what tools/setup fetched) and hands it an OrtApiBase that says so of every CPU. Everything else is
 * the runtime's own, or whatever this library is given in the runtime's place: it may be registered behind the bridge.
 * ONNX Runtime registers and unregisters EP libraries one after the other: no locks here.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "interpose/interpose.h"

#define INTEL 0x8086

typedef OrtStatus *(*create_function)(const char *, const OrtApiBase *, const OrtLogger *, OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_function)(OrtEpFactory *);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                                      size_t max, size_t *count);
EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static struct {
    void *library;
    oc_interpose *interpose;
    const OrtApi *api; /* the one underneath */
    release_function release;
    OrtEpFactory *factory; /* one registration at a time */
} rig;

static uint32_t ORT_API_CALL vendor_id(const OrtHardwareDevice *device)
{
    return rig.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU ? INTEL : rig.api->HardwareDevice_VendorId(device);
}

static void unload(void)
{
    if (rig.library != NULL) {
        (void)dlclose(rig.library);
    }
    oc_interpose_free(rig.interpose);
    rig.library = NULL;
    rig.interpose = NULL;
    rig.factory = NULL;
}

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

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                             size_t *count)
{
    create_function create = NULL;
    if (rig.factory != NULL) {
        return rig.api->CreateStatus(ORT_FAIL, "the rig is registered already");
    }
    OrtStatus *status = oc_interpose_new(&rig.interpose, base, NULL);
    if (status != NULL || rig.interpose == NULL) {
        return status;
    }
    rig.api = oc_interpose_real(rig.interpose);
    (void)oc_interpose_replace(rig.interpose, OC_TABLE_API, OC_SLOT(OrtApi, HardwareDevice_VendorId), (oc_function)vendor_id, NULL);
    status = load(&create);
    if (status == NULL) {
        status = create(name, oc_interpose_base(rig.interpose), logger, factories, max, count);
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
