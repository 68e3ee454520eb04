/*
 * The library's two exports, OrtEpFactory and the life of an OrtEp.
 *
 * ORT -> CreateEpFactories (one factory) -> CreateEp (one per session) -> ReleaseEp -> ReleaseEpFactory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_ep.h"
#include "weightless.h"

__attribute__((visibility("default"))) OrtStatus *CreateEpFactories(const char *registration_name,
                                                                    const OrtApiBase *base, const OrtLogger *logger,
                                                                    OrtEpFactory **factories, size_t max_factories,
                                                                    size_t *factory_count);
__attribute__((visibility("default"))) OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

/* The plugin EP API this code uses is complete from here on. */
enum { MINOR_MIN = 23 };

static const char *ORT_API_CALL factory_name(const OrtEpFactory *factory) NO_EXCEPTION
{
    (void)factory;
    return OC_REF_NAME;
}

static const char *ORT_API_CALL factory_vendor(const OrtEpFactory *factory) NO_EXCEPTION
{
    (void)factory;
    return OC_REF_VENDOR;
}

static uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory *factory) NO_EXCEPTION
{
    (void)factory;
    return 0xffff; /* PCI's number for no vendor */
}

static const char *ORT_API_CALL factory_version(const OrtEpFactory *factory) NO_EXCEPTION
{
    (void)factory;
    return ORTCRYPT_VERSION;
}

static OrtStatus *ORT_API_CALL supported_devices(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                                 size_t device_count, OrtEpDevice **ep_devices, size_t max_ep_devices,
                                                 size_t *ep_device_count) NO_EXCEPTION
{
    const oc_ref_factory *const self = (const oc_ref_factory *)factory;
    OrtStatus *status = NULL;
    *ep_device_count = 0;
    for (size_t i = 0; i < device_count && *ep_device_count < max_ep_devices && status == NULL; i++) {
        if (self->api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) {
            status = self->ep_api->CreateEpDevice(factory, devices[i], NULL, NULL, &ep_devices[*ep_device_count]);
            *ep_device_count += status == NULL ? 1 : 0;
        }
    }
    return status;
}

/* ORT calls these four without asking whether they are there. The EP computes in CPU memory: ORT's own serves. */
static OrtStatus *ORT_API_CALL create_allocator(OrtEpFactory *factory, const OrtMemoryInfo *info,
                                                const OrtKeyValuePairs *options, OrtAllocator **allocator) NO_EXCEPTION
{
    (void)factory, (void)info, (void)options;
    *allocator = NULL;
    return NULL;
}

static void ORT_API_CALL release_allocator(OrtEpFactory *factory, OrtAllocator *allocator) NO_EXCEPTION
{
    (void)factory, (void)allocator;
}

static OrtStatus *ORT_API_CALL create_data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **transfer) NO_EXCEPTION
{
    (void)factory;
    *transfer = NULL;
    return NULL;
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory *factory) NO_EXCEPTION
{
    (void)factory;
    return false;
}

static const char *ORT_API_CALL ep_name(const OrtEp *ep) NO_EXCEPTION
{
    (void)ep;
    return OC_REF_NAME;
}

static const char *ORT_API_CALL ep_compatibility(OrtEp *ep, const OrtGraph *graph) NO_EXCEPTION
{
    (void)graph;
    return ((const oc_ref_ep *)ep)->factory->compatibility;
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep) NO_EXCEPTION
{
    (void)factory;
    oc_ref_ep *const self = (oc_ref_ep *)ep;
    if (self != NULL) {
        ortcrypt_ep_context_close(self->io);
        oc_ref_options_free(&self->options);
        oc_ref_source_free(self->source);
        free(self);
    }
}

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                         const OrtKeyValuePairs *const *metadata, size_t device_count,
                                         const OrtSessionOptions *options, const OrtLogger *logger,
                                         OrtEp **ep) NO_EXCEPTION
{
    (void)devices, (void)metadata, (void)device_count, (void)logger;
    const oc_ref_factory *const self = (const oc_ref_factory *)factory;
    oc_ref_ep *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return oc_ref_status(self->api, ORT_FAIL, "no memory for " OC_REF_NAME);
    }
    made->factory = self;
    OrtEp *const ort = &made->base.ort;
    ort->ort_version_supported = self->struct_version;
    ort->GetName = ep_name;
    ort->GetCapability = oc_ref_get_capability;
    ort->Compile = oc_ref_compile;
    ort->ReleaseNodeComputeInfos = oc_ref_release_infos;
    ort->GetCompiledModelCompatibilityInfo = ep_compatibility;
    ort->GetWeightlessSupport = oc_ref_weightless_support;
    OrtStatus *status = oc_ref_options_read(self->api, options, &made->options);
    if (status == NULL) {
        status = oc_ref_source_open(self, options, &made->source);
    }
    if (status == NULL) {
        status = ortcrypt_ep_context_open(&made->io, self->base, options);
    }
    if (status == NULL) {
        status = ortcrypt_ep_context_advertise(made->io, ort, sizeof(made->base),
                                               ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES);
    }
    if (status != NULL) {
        release_ep(factory, ort);
        return status;
    }
    *ep = ort;
    return NULL;
}

/* "...;key=value;..." -> value's length and place, or NULL. */
static const char *value_of(const char *text, const char *key, size_t *len)
{
    const char *const at = strstr(text, key);
    if (at == NULL) {
        return NULL;
    }
    const char *const value = at + strlen(key);
    *len = strcspn(value, ";");
    return value;
}

/*
 * Another layout of engines cannot be read. The same layout by another ONNX Runtime can, as far as that one knows the operators,
 * so recompiling is better.
 */
static OrtStatus *ORT_API_CALL validate(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                        size_t device_count, const char *info,
                                        OrtCompiledModelCompatibility *result) NO_EXCEPTION
{
    (void)devices, (void)device_count;
    const oc_ref_factory *const self = (const oc_ref_factory *)factory;
    char engine[16];
    size_t len = 0;
    (void)snprintf(engine, sizeof(engine), "%d", (int)OC_REF_ENGINE_VERSION);
    const size_t name_len = strlen(OC_REF_NAME);
    if (info == NULL || strncmp(info, OC_REF_NAME, name_len) != 0 || info[name_len] != ';') {
        *result = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
        return NULL;
    }
    const char *const version = value_of(info, ";engine=", &len);
    if (version == NULL || len != strlen(engine) || strncmp(version, engine, len) != 0) {
        *result = OrtCompiledModelCompatibility_EP_UNSUPPORTED;
        return NULL;
    }
    *result = strcmp(info, self->compatibility) == 0 ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
                                                     : OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
    return NULL;
}

/* 30 for "1.30.0"; 0 for what is no 1.x. */
static unsigned minor_of(const char *version)
{
    return strncmp(version, "1.", 2) == 0 ? (unsigned)strtoul(version + 2, NULL, 10) : 0;
}

OrtStatus *CreateEpFactories(const char *registration_name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t max_factories, size_t *factory_count)
{
    (void)registration_name, (void)logger;
    const char *const version = base->GetVersionString();
    const unsigned minor = minor_of(version);
    const unsigned known = minor < ORT_API_VERSION ? minor : ORT_API_VERSION;
    const OrtApi *const api = base->GetApi(minor < MINOR_MIN ? 1 : known);
    if (api == NULL) {
        return NULL; /* no OrtApi, so no way to say it; *factory_count stays 0 */
    }
    if (minor < MINOR_MIN) {
        return oc_ref_status(api, ORT_NOT_IMPLEMENTED,
                             OC_REF_NAME " needs ONNX Runtime 1.%d or a newer 1.x, and this is %.40s", (int)MINOR_MIN,
                             version);
    }
    if (max_factories < 1) {
        return oc_ref_status(api, ORT_INVALID_ARGUMENT, OC_REF_NAME " needs room for one factory");
    }
    oc_ref_factory *const self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return oc_ref_status(api, ORT_FAIL, "no memory for " OC_REF_NAME);
    }
    self->base = base;
    self->api = api;
    self->ep_api = api->GetEpApi();
    self->editor = api->GetModelEditorApi();
    self->minor = minor;
    self->struct_version = known;
    (void)snprintf(self->compatibility, sizeof(self->compatibility), OC_REF_NAME ";engine=%d;ep=%s;ort=%.40s",
                   (int)OC_REF_ENGINE_VERSION, ORTCRYPT_VERSION, version);
    self->ort.ort_version_supported = known;
    self->ort.GetName = factory_name;
    self->ort.GetVendor = factory_vendor;
    self->ort.GetVendorId = factory_vendor_id;
    self->ort.GetVersion = factory_version;
    self->ort.GetSupportedDevices = supported_devices;
    self->ort.CreateEp = create_ep;
    self->ort.ReleaseEp = release_ep;
    self->ort.ValidateCompiledModelCompatibilityInfo = validate;
    self->ort.CreateAllocator = create_allocator;
    self->ort.ReleaseAllocator = release_allocator;
    self->ort.CreateDataTransfer = create_data_transfer;
    self->ort.IsStreamAware = is_stream_aware;
    factories[0] = &self->ort;
    *factory_count = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    free(factory); /* the base is the first member */
    return NULL;
}
