/* EP libraries and devices: one CPU device, and one more for each registered library. Libraries are not opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_objects.h"

enum { DEVICES_MAX = 8 };

struct OrtEpDevice {
    char name[64];
    char library[1024];
};

static OrtEpDevice devices[DEVICES_MAX] = {{"CPUExecutionProvider", ""}};

static OrtStatus *ORT_API_CALL get_ep_devices(const OrtEnv *env, const OrtEpDevice *const **list, size_t *count) NO_EXCEPTION
{
    static const OrtEpDevice *pointers[DEVICES_MAX];

    (void)env;
    NOTE(GetEpDevices);
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        pointers[i] = &devices[i];
    }
    *list = pointers;
    *count = 1 + fake_ort.libraries;
    return NULL;
}

static const char *ORT_API_CALL ep_name(const OrtEpDevice *device) NO_EXCEPTION
{
    NOTE(EpDevice_EpName);
    return device->name;
}

static const char *ORT_API_CALL ep_vendor(const OrtEpDevice *device) NO_EXCEPTION
{
    (void)device;
    NOTE(EpDevice_EpVendor);
    return "nobody \xff"; /* what an EP says is not always UTF-8 */
}

static const OrtKeyValuePairs *ORT_API_CALL ep_metadata(const OrtEpDevice *device) NO_EXCEPTION
{
    NOTE(EpDevice_EpMetadata);
    return (const OrtKeyValuePairs *)(const void *)device;
}

static const OrtHardwareDevice *ORT_API_CALL ep_hardware(const OrtEpDevice *device) NO_EXCEPTION
{
    NOTE(EpDevice_Device);
    return (const OrtHardwareDevice *)(const void *)device;
}

static OrtHardwareDeviceType ORT_API_CALL hardware_type(const OrtHardwareDevice *device) NO_EXCEPTION
{
    (void)device;
    NOTE(HardwareDevice_Type);
    return OrtHardwareDeviceType_CPU;
}

static const char *ORT_API_CALL hardware_vendor(const OrtHardwareDevice *device) NO_EXCEPTION
{
    (void)device;
    NOTE(HardwareDevice_Vendor);
    return "nobody";
}

static const char *ORT_API_CALL get_key_value(const OrtKeyValuePairs *pairs, const char *key) NO_EXCEPTION
{
    const OrtEpDevice *const device = (const OrtEpDevice *)(const void *)pairs;

    NOTE(GetKeyValue);
    return strcmp(key, "library_path") == 0 && device->library[0] != '\0' ? device->library : NULL;
}

static OrtStatus *ORT_API_CALL register_library(OrtEnv *env, const char *name, const char *path) NO_EXCEPTION
{
    (void)env;
    NOTE(RegisterExecutionProviderLibrary);
    if (path[0] != '/' || fake_ort.libraries + 1 >= DEVICES_MAX) {
        return fake_error(ORT_INVALID_ARGUMENT, "a relative path, or too many");
    }
    OrtEpDevice *const device = &devices[1 + fake_ort.libraries];
    (void)snprintf(device->name, sizeof device->name, "%s", name);
    (void)snprintf(device->library, sizeof device->library, "%s", path);
    fake_ort.libraries++;
    if (fake_ort.fault == FAKE_REGISTER_FAILS) {
        fake_ort.libraries--; /* as ORT does: what it began it takes back */
        return fake_error(ORT_FAIL, "the library's factories are missing");
    }
    return NULL;
}

static OrtStatus *ORT_API_CALL unregister_library(OrtEnv *env, const char *name) NO_EXCEPTION
{
    (void)env;
    NOTE(UnregisterExecutionProviderLibrary);
    if (fake_ort.libraries == 0 || strcmp(devices[fake_ort.libraries].name, name) != 0) {
        return fake_error(ORT_INVALID_ARGUMENT, "it is not registered");
    }
    fake_ort.libraries--;
    return NULL;
}

void fake_put_eps(OrtApi *api)
{
    api->GetEpDevices = get_ep_devices;
    api->EpDevice_EpName = ep_name;
    api->EpDevice_EpVendor = ep_vendor;
    api->EpDevice_EpMetadata = ep_metadata;
    api->EpDevice_Device = ep_hardware;
    api->HardwareDevice_Type = hardware_type;
    api->HardwareDevice_Vendor = hardware_vendor;
    api->GetKeyValue = get_key_value;
    api->RegisterExecutionProviderLibrary = register_library;
    api->UnregisterExecutionProviderLibrary = unregister_library;
}
