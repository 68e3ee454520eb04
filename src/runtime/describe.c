/*
 * ortcrypt_runtime_describe: one JSON object.
 *   runtime   {version, library (null: the one in the process), era ("none", "experimental", "stable"), api}
 *   functions [{name, table, since, slot (null: an entry), found, checked, lost}]: those that not every version has. found:
 *             "GetExperimentalFunction", "member", "entry", or null; checked: how its row is proven here; lost: without it
 *   eps       [{name, vendor, version, devices: [{type, vendor}], route ("native", "bridged", "unproven", "none"), why}]
 *   telemetry "off", "accepted" or "not in this version"
 *   kernel    {userfaultfd, landlock, proc_self_fd, swap (null: not known), core_pattern}
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/functions.h"
#include "runtime/kernel.h"
#include "runtime/private.h"

static const char *era_text(ortcrypt_era era)
{
    switch (era) {
    case ORTCRYPT_ERA_EXPERIMENTAL:
        return "experimental";
    case ORTCRYPT_ERA_STABLE:
        return "stable";
    case ORTCRYPT_ERA_NONE:
    default:
        return "none";
    }
}

static const char *type_text(OrtHardwareDeviceType type)
{
    switch (type) {
    case OrtHardwareDeviceType_GPU:
        return "GPU";
    case OrtHardwareDeviceType_NPU:
        return "NPU";
    case OrtHardwareDeviceType_CPU:
        return "CPU";
    default:
        return "other";
    }
}

/* jansson refuses text that is not UTF-8; an EP's strings are its own. */
static json_t *text_json(const char *text)
{
    json_t *const value = text != NULL ? json_string(text) : NULL;

    return value != NULL ? value : json_null();
}

static json_t *functions_json(const ortcrypt_runtime *runtime)
{
    static const char *const found[] = {NULL, "GetExperimentalFunction", "member", "entry"}; /* by oc_found */
    json_t *const list = json_array();
    oc_function_row row;

    for (size_t i = 0; oc_function_at(&row, i); i++) {
        char since[16];
        (void)snprintf(since, sizeof(since), "1.%u", row.experimental != NULL ? OC_FIRST_EXPERIMENTAL : row.since);
        const oc_found how = oc_function_find(runtime, &row);
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "name", row.name, "table", oc_function_home_text(row.home), "since", since,
                            "slot", row.home != OC_HOME_ENTRY ? json_integer(row.slot) : json_null(), "found", text_json(found[how]),
                            "checked", how != OC_FOUND_NOT ? json_string(oc_function_check_text(row.check)) : json_null(), "lost", row.lost));
    }
    return list;
}

static json_t *device_json(const OrtApi *api, const OrtEpDevice *device)
{
    const OrtHardwareDevice *const hardware = api->EpDevice_Device(device);

    return json_pack("{s:s, s:o}", "type", type_text(api->HardwareDevice_Type(hardware)), "vendor",
                     text_json(api->HardwareDevice_Vendor(hardware)));
}

static const char *route_text(oc_route route)
{
    switch (route) {
    case OC_ROUTE_BRIDGED:
        return "bridged";
    case OC_ROUTE_NATIVE:
    case OC_ROUTE_HELPER: /* the EP's own library does it, by one way or the other */
        return "native";
    case OC_ROUTE_UNPROVEN:
        return "unproven";
    case OC_ROUTE_NONE:
    default:
        return "none";
    }
}

static json_t *ep_json(ortcrypt_runtime *runtime, const OrtEpDevice *device)
{
    const OrtApi *const api = runtime->api;
    const char *const name = api->EpDevice_EpName(device);
    const char *why = NULL;
    const oc_route route = oc_runtime_route(runtime, name, &why);

    return json_pack("{s:o, s:o, s:o, s:[], s:s, s:s}", "name", text_json(name), "vendor",
                     text_json(api->EpDevice_EpVendor(device)), "version",
                     text_json(api->GetKeyValue(api->EpDevice_EpMetadata(device), "version")), "devices", "route",
                     route_text(route), "why", why);
}

static json_t *eps_json(ortcrypt_runtime *runtime, const OrtEpDevice *const *devices, size_t count)
{
    json_t *const list = json_array();

    for (size_t i = 0; i < count; i++) {
        const char *const name = runtime->api->EpDevice_EpName(devices[i]);
        json_t *entry = NULL;
        for (size_t j = 0; j < json_array_size(list) && entry == NULL; j++) {
            json_t *const other = json_array_get(list, j);
            const char *const other_name = json_string_value(json_object_get(other, "name"));
            entry = other_name != NULL && strcmp(other_name, name) == 0 ? other : NULL;
        }
        if (entry == NULL) {
            entry = ep_json(runtime, devices[i]);
            (void)json_array_append_new(list, entry);
        }
        (void)json_array_append_new(json_object_get(entry, "devices"), device_json(runtime->api, devices[i]));
    }
    return list;
}

static json_t *kernel_json(void)
{
    oc_kernel kernel;

    oc_kernel_probe(&kernel);
    return json_pack("{s:b, s:i, s:b, s:b, s:o, s:o}", "userfaultfd", kernel.userfaultfd, "landlock", kernel.landlock_abi,
                     "seccomp", kernel.seccomp, "proc_self_fd", kernel.proc_self_fd, "swap",
                     kernel.swap_known ? json_boolean(kernel.swap) : json_null(), "core_pattern",
                     text_json(kernel.core_pattern));
}

ortcrypt_status ortcrypt_runtime_describe(ortcrypt_runtime *runtime, char **json, ortcrypt_error *err)
{
    const OrtEpDevice **devices = NULL;
    size_t count = 0;
    const char *telemetry = "accepted";

    if (runtime == NULL || json == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_runtime_describe needs a runtime and a place for the text");
    }
    *json = NULL;
    const ortcrypt_status st = oc_devices_copy(runtime, &devices, &count, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (runtime->telemetry_off) {
        telemetry = "off";
    } else if (runtime->minor < OC_RUNTIME_TELEMETRY_MINOR) {
        telemetry = "not in this version";
    }
    json_t *const all = json_pack(
        "{s:{s:s, s:o, s:s, s:i}, s:o, s:o, s:s, s:o}", "runtime", "version", runtime->version, "library",
        text_json(runtime->library), "era", era_text(runtime->ep_context.era), "api", (int)runtime->api_version, "functions",
        functions_json(runtime), "eps", eps_json(runtime, devices, count), "telemetry", telemetry, "kernel", kernel_json());
    free(devices);
    char *const text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (text == NULL) {
        return oc_fail_memory(err, 4096, "the description of the runtime");
    }
    *json = text;
    return ORTCRYPT_OK;
}
