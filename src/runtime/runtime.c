/* What the flows ask an open runtime: versions, status conversion, routes, EP libraries and devices. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

unsigned oc_runtime_minor(const ortcrypt_runtime *runtime) { return runtime->minor; }

const ortcrypt_ep_context_api *oc_runtime_ep_context(const ortcrypt_runtime *runtime) { return &runtime->ep_context; }

const OrtCompileApi *oc_runtime_compile_api(const ortcrypt_runtime *runtime) { return runtime->compile; }

void oc_runtime_hold(ortcrypt_runtime *runtime) { (void)atomic_fetch_add(&runtime->holds, 1); }

void oc_runtime_release(ortcrypt_runtime *runtime) { (void)atomic_fetch_sub(&runtime->holds, 1); }

const char *ortcrypt_runtime_version(const ortcrypt_runtime *runtime) { return runtime->version; }

const OrtApi *ortcrypt_runtime_api(const ortcrypt_runtime *runtime) { return runtime->api; }

OrtEnv *ortcrypt_runtime_env(const ortcrypt_runtime *runtime) { return runtime->env; }

ortcrypt_status oc_ort_check(const ortcrypt_runtime *runtime, OrtStatus *status, ortcrypt_error *err, const char *doing)
{
    char words[768];

    if (status == NULL) {
        return ORTCRYPT_OK;
    }
    ortcrypt_ort_words(words, sizeof(words), runtime->api->GetErrorMessage(status));
    runtime->api->ReleaseStatus(status);
    return oc_fail(err, ORTCRYPT_E_ORT, "%s: %s", doing, words[0] != '\0' ? words : "ONNX Runtime gave no reason");
}

OrtStatus *oc_ort_status(const OrtApi *api, ortcrypt_status status, const ortcrypt_error *err)
{
    const char *const message = err != NULL && err->message[0] != '\0' ? err->message : ortcrypt_status_name(status);

    return api->CreateStatus(status == ORTCRYPT_E_INVALID ? ORT_INVALID_ARGUMENT : ORT_FAIL, message);
}

oc_route oc_runtime_route(const ortcrypt_runtime *runtime, const char *ep, const char **why)
{
    const ortcrypt_era era = runtime->ep_context.era;
    const bool known = strcmp(ep, "QNNExecutionProvider") == 0 || strcmp(ep, "OpenVINOExecutionProvider") == 0;
    const bool ours = strcmp(ep, OC_EP_REFERENCE) == 0;
    const char *reason = NULL;
    oc_route route = OC_ROUTE_NONE;

    if (strcmp(ep, OC_EP_CPU) == 0) {
        reason = "it compiles nothing: run the source variant with it";
    } else if (!known && !ours && era != ORTCRYPT_ERA_NONE) {
        route = OC_ROUTE_UNPROVEN;
        reason = "no table proves that it hands its EPContext data to the application: it is tried out before it sees a model";
    } else if (!known && !ours) {
        reason = "nothing proves that it hands its EPContext data to the application instead of writing it to a file";
    } else if (era == ORTCRYPT_ERA_NONE) {
        reason = ours ? "this ONNX Runtime has no EPContext callbacks: use 1.28 or newer, or embed mode"
                      : "this ONNX Runtime has no EPContext callbacks and the EP would write plaintext: use 1.28 to 1.30";
    } else if (known && era != ORTCRYPT_ERA_EXPERIMENTAL) {
        reason = "it does not advertise the EPContext callbacks of ONNX Runtime 1.31 and newer and would write plaintext: use 1.28 to 1.30";
    } else {
        route = OC_ROUTE_NATIVE;
        reason = "it reads and writes its EPContext data through the callbacks of this ONNX Runtime";
    }
    if (why != NULL) {
        *why = reason;
    }
    return route;
}

/* Appends "name, name" of the EPs that have devices; cut where the text ends. */
static void list_eps(const OrtApi *api, const OrtEpDevice *const *devices, size_t count, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *const name = api->EpDevice_EpName(devices[i]);
        const size_t name_len = strlen(name);
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++) {
            seen = strcmp(api->EpDevice_EpName(devices[j]), name) == 0;
        }
        if (!seen && len + name_len + 3 < size) {
            if (len != 0) {
                memcpy(text + len, ", ", 2);
                len += 2;
            }
            memcpy(text + len, name, name_len + 1);
            len += name_len;
        }
    }
}

ortcrypt_status oc_runtime_devices(const ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice ***devices,
                                   size_t *count, ortcrypt_error *err)
{
    const OrtApi *const api = runtime->api;
    const OrtEpDevice *const *all = NULL;
    size_t all_count = 0;
    size_t found = 0;
    char names[512];

    const ortcrypt_status st = oc_ort_check(runtime, api->GetEpDevices(runtime->env, &all, &all_count), err, "EP devices");
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const OrtEpDevice **list = calloc(all_count + 1, sizeof(*list));
    if (list == NULL) {
        return oc_fail_memory(err, (all_count + 1) * sizeof(*list), "the list of EP devices");
    }
    for (size_t i = 0; i < all_count; i++) {
        if (strcmp(api->EpDevice_EpName(all[i]), ep) == 0) {
            list[found++] = all[i];
        }
    }
    if (found == 0) {
        free(list);
        list_eps(api, all, all_count, names, sizeof(names));
        (void)oc_fail(err, ORTCRYPT_E_NOT_FOUND, "ONNX Runtime %s has no device of the execution provider %s", runtime->version, ep);
        oc_hint(err, "there are: %s; an EP in a library of its own must be registered first", names);
        return ORTCRYPT_E_NOT_FOUND;
    }
    *devices = list;
    *count = found;
    return ORTCRYPT_OK;
}

/* True when some device says it came from this library: the env is shared and somebody else registered it. */
static bool library_present(const ortcrypt_runtime *runtime, const char *library)
{
    const OrtEpDevice *const *all = NULL;
    size_t count = 0;
    bool present = false;
    OrtStatus *const refused = runtime->api->GetEpDevices(runtime->env, &all, &count);

    if (refused != NULL) {
        runtime->api->ReleaseStatus(refused);
        return false;
    }
    for (size_t i = 0; i < count && !present; i++) {
        const char *const path = runtime->api->GetKeyValue(runtime->api->EpDevice_EpMetadata(all[i]), "library_path");
        present = path != NULL && strcmp(path, library) == 0;
    }
    return present;
}

/* Takes name and library over on success. Called with the lock held. */
static ortcrypt_status register_new(ortcrypt_runtime *runtime, oc_registered_ep *ep, ortcrypt_error *err)
{
    OrtStatus *refused = NULL;

    const ortcrypt_status claimed = oc_claim_library(runtime, ep->name, ep->library, err);
    if (claimed != ORTCRYPT_OK) {
        return claimed;
    }
    if (!library_present(runtime, ep->library)) {
        refused = runtime->api->RegisterExecutionProviderLibrary(runtime->env, ep->name, ep->library);
    }
    const ortcrypt_status st = oc_ort_check(runtime, refused, err, "EP library");
    if (st == ORTCRYPT_OK) {
        ep->next = runtime->eps;
        runtime->eps = ep;
    } else {
        oc_claim_drop(runtime, ep->library);
    }
    return st;
}

ortcrypt_status ortcrypt_runtime_register_ep(ortcrypt_runtime *runtime, const char *name, const char *library,
                                             ortcrypt_error *err)
{
    const oc_registered_ep *known = NULL;
    oc_registered_ep *ep = NULL;

    if (runtime == NULL || name == NULL || name[0] == '\0' || library == NULL || library[0] == '\0') {
        return oc_fail(err, ORTCRYPT_E_INVALID, "registering an EP needs a runtime, a name and the path of a library");
    }
    ep = calloc(1, sizeof(*ep));
    if (ep == NULL) {
        return oc_fail_memory(err, sizeof(*ep), "an EP");
    }
    ortcrypt_status st = oc_strdup(&ep->name, name, err);
    if (st == ORTCRYPT_OK) {
        ep->library = realpath(library, NULL);
        if (ep->library == NULL) {
            st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the EP library %s", library);
        }
    }
    if (st == ORTCRYPT_OK) {
        (void)pthread_mutex_lock(&runtime->lock);
        for (known = runtime->eps; known != NULL && strcmp(known->name, name) != 0; known = known->next) {
        }
        if (known == NULL) {
            st = register_new(runtime, ep, err);
            ep = st == ORTCRYPT_OK ? NULL : ep;
        } else if (strcmp(known->library, ep->library) != 0) {
            st = oc_fail(err, ORTCRYPT_E_INVALID, "%s is registered already, from %s", name, known->library);
        }
        (void)pthread_mutex_unlock(&runtime->lock);
    }
    if (ep != NULL) {
        free(ep->name);
        free(ep->library);
        free(ep);
    }
    return st;
}
