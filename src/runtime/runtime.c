/* What the flows ask an open runtime: versions, status conversion, devices. */
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
    const OrtEpDevice **all = NULL;
    size_t all_count = 0;
    size_t found = 0;
    char names[512];

    const ortcrypt_status st = oc_devices_copy(runtime, &all, &all_count, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const OrtEpDevice **const list = calloc(all_count + 1, sizeof(*list));
    if (list == NULL) {
        free(all);
        return oc_fail_memory(err, (all_count + 1) * sizeof(*list), "the list of EP devices");
    }
    for (size_t i = 0; i < all_count; i++) {
        if (strcmp(api->EpDevice_EpName(all[i]), ep) == 0) {
            list[found++] = all[i];
        }
    }
    if (found == 0) {
        list_eps(api, all, all_count, names, sizeof(names));
        free(list);
        free(all);
        (void)oc_fail(err, ORTCRYPT_E_NOT_FOUND, "ONNX Runtime %s has no device of the execution provider %s", runtime->version, ep);
        oc_hint(err, "there are: %s; an EP in a library of its own must be registered first", names);
        return ORTCRYPT_E_NOT_FOUND;
    }
    free(all);
    *devices = list;
    *count = found;
    return ORTCRYPT_OK;
}
