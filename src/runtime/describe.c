/*
 * ortcrypt_runtime_describe: one JSON object.
 *   runtime   {version, library (null: the one in the process), era ("none", "experimental", "stable"), api}
 *   functions [{name, table, since, slot (null: an entry), found, checked, lost}]: those that not every version has. found:
 *             "GetExperimentalFunction", "member", "entry", or null; checked: how its row is proven here; lost: without it
 *   eps       [{name, vendor, version, devices: [{type, vendor, probe}], route, why}]; route: "native", "bridged", "none", or "unproven"
 *             (no table has it: it is tried out before it sees a model); with options.probe "refused" in the place of what did not prove
 *             itself; probe: {proven, why} of a device that was tried out, else null
 *   telemetry "off", "accepted" or "not in this version"
 *   kernel    {userfaultfd, landlock, seccomp, user_notification, proc_self_fd, swap (null: not known), core_pattern}
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/canary.h"
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

/* What trying it out showed, an impossible try included. */
static json_t *probe_json(ortcrypt_runtime *runtime, const ortcrypt_describe_options *o, const char *ep, const OrtEpDevice *device)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_canary_verdict verdict;

    if (oc_canary_prove(&verdict, runtime, ep, device, o->ep_option_keys, o->ep_option_values, o->ep_option_count, &err) != ORTCRYPT_OK) {
        return json_pack("{s:b, s:o}", "proven", 0, "why", text_json(err.message));
    }
    return json_pack("{s:b, s:o}", "proven", verdict.proven, "why", text_json(verdict.why));
}

static json_t *device_json(const OrtApi *api, const OrtEpDevice *device, json_t *probe)
{
    const OrtHardwareDevice *const hardware = api->EpDevice_Device(device);

    return json_pack("{s:s, s:o, s:o}", "type", type_text(api->HardwareDevice_Type(hardware)), "vendor",
                     text_json(api->HardwareDevice_Vendor(hardware)), "probe", probe != NULL ? probe : json_null());
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

static json_t *find_entry(const json_t *list, const char *name)
{
    json_t *entry = NULL;
    size_t i = 0;

    json_array_foreach(list, i, entry) {
        const char *const other = json_string_value(json_object_get(entry, "name"));
        if (other != NULL && strcmp(other, name) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* An EP whose devices were tried out: what one of them proved, else why the first did not. */
static void settle(json_t *entry)
{
    const bool unproven = strcmp(json_string_value(json_object_get(entry, "route")), "unproven") == 0;
    json_t *why = NULL;
    json_t *device = NULL;
    bool proven = false;
    size_t i = 0;

    json_array_foreach(json_object_get(entry, "devices"), i, device) {
        json_t *const probe = json_object_get(device, "probe");
        if (json_is_object(probe) && !proven) {
            proven = json_is_true(json_object_get(probe, "proven"));
            why = why == NULL || proven ? json_object_get(probe, "why") : why;
        }
    }
    if (why != NULL) {
        (void)json_object_set(entry, "why", why);
    }
    if (why != NULL && (unproven || !proven)) {
        (void)json_object_set_new(entry, "route", json_string(proven ? "native" : "refused"));
    }
}

static json_t *eps_json(ortcrypt_runtime *runtime, const ortcrypt_describe_options *o, const OrtEpDevice *const *devices, size_t count)
{
    json_t *const list = json_array();
    json_t *entry = NULL;
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        const char *const name = runtime->api->EpDevice_EpName(devices[i]);
        const bool tried = o->probe && oc_runtime_route(runtime, name, NULL) != OC_ROUTE_NONE;
        entry = find_entry(list, name);
        if (entry == NULL) {
            entry = ep_json(runtime, devices[i]);
            (void)json_array_append_new(list, entry);
        }
        (void)json_array_append_new(json_object_get(entry, "devices"),
                                    device_json(runtime->api, devices[i], tried ? probe_json(runtime, o, name, devices[i]) : NULL));
    }
    json_array_foreach(list, at, entry) {
        settle(entry);
    }
    return list;
}

static json_t *kernel_json(void)
{
    oc_kernel kernel;

    oc_kernel_probe(&kernel);
    return json_pack("{s:b, s:i, s:b, s:b, s:b, s:o, s:o}", "userfaultfd", kernel.userfaultfd, "landlock", kernel.landlock_abi,
                     "seccomp", kernel.seccomp, "user_notification", kernel.user_notification, "proc_self_fd", kernel.proc_self_fd, "swap",
                     kernel.swap_known ? json_boolean(kernel.swap) : json_null(), "core_pattern",
                     text_json(kernel.core_pattern));
}

static ortcrypt_status read_options(ortcrypt_describe_options *out, const ortcrypt_describe_options *options, ortcrypt_error *err)
{
    *out = (ortcrypt_describe_options){.struct_size = sizeof(*out)};
    if (options == NULL) {
        return ORTCRYPT_OK;
    }
    if (options->struct_size != sizeof(*out)) { /* there is one version of this struct so far */
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_describe_options.struct_size is %zu, not sizeof(ortcrypt_describe_options)",
                       options->struct_size);
    }
    *out = *options;
    return ORTCRYPT_OK;
}

static const char *telemetry_text(const ortcrypt_runtime *runtime)
{
    if (runtime->telemetry_off) {
        return "off";
    }
    return runtime->minor < OC_RUNTIME_TELEMETRY_MINOR ? "not in this version" : "accepted";
}

ortcrypt_status ortcrypt_runtime_describe(ortcrypt_runtime *runtime, const ortcrypt_describe_options *options, char **json,
                                          ortcrypt_error *err)
{
    const OrtEpDevice **devices = NULL;
    ortcrypt_describe_options o;
    size_t count = 0;

    if (runtime == NULL || json == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_runtime_describe needs a runtime and a place for the text");
    }
    *json = NULL;
    ortcrypt_status st = read_options(&o, options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_devices_copy(runtime, &devices, &count, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_t *const all = json_pack(
        "{s:{s:s, s:o, s:s, s:i}, s:o, s:o, s:s, s:o}", "runtime", "version", runtime->version, "library",
        text_json(runtime->library), "era", era_text(runtime->ep_context.era), "api", (int)runtime->api_version, "functions",
        functions_json(runtime), "eps", eps_json(runtime, &o, devices, count), "telemetry", telemetry_text(runtime), "kernel",
        kernel_json());
    free(devices);
    char *const text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (text == NULL) {
        return oc_fail_memory(err, 4096, "the description of the runtime");
    }
    *json = text;
    return ORTCRYPT_OK;
}
