/*
 * Registering EP libraries: a path becomes an entry of the OrtEnv and a record of ours, which says what its library can do. Libraries
 * belong to the OrtEnv; records to the runtime.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"
#include "runtime/registry.h"

const OrtEpDevice *oc_runtime_first_device(const ortcrypt_runtime *runtime, const char *ep)
{
    const OrtEpDevice **all = NULL;
    const OrtEpDevice *found = NULL;
    size_t count = 0;

    if (oc_devices_copy(runtime, &all, &count, NULL) != ORTCRYPT_OK) {
        return NULL;
    }
    for (size_t i = 0; i < count && found == NULL; i++) {
        found = strcmp(runtime->api->EpDevice_EpName(all[i]), ep) == 0 ? all[i] : NULL;
    }
    free(all);
    return found;
}

static oc_registered_ep *find_named(const ortcrypt_runtime *runtime, const char *name)
{
    oc_registered_ep *found = runtime->eps;

    while (found != NULL && strcmp(found->name, name) != 0) {
        found = found->next;
    }
    return found;
}

oc_registered_ep *oc_registered_find(ortcrypt_runtime *runtime, const char *ep)
{
    const OrtEpDevice *const device = oc_runtime_first_device(runtime, ep);
    const char *const path = device != NULL ? oc_device_library(runtime, device) : NULL;
    oc_registered_ep *found = find_named(runtime, ep);

    if (found == NULL && path != NULL) { /* registered under another name */
        for (found = runtime->eps; found != NULL && strcmp(found->library, path) != 0; found = found->next) {
        }
    }
    return found;
}

/* ORT's words, unless the table of pairs knows better why this EP does not come with this runtime. */
static ortcrypt_status check_registered(const ortcrypt_runtime *runtime, const char *ep, OrtStatus *refused, ortcrypt_error *err)
{
    bool known = false;
    const oc_pair *const pair = refused != NULL ? oc_pair_find(runtime->minor, ep, NULL, &known) : NULL;

    if (pair == NULL || pair->route != OC_ROUTE_NONE) {
        return oc_ort_check(runtime, refused, err, "EP library");
    }
    runtime->api->ReleaseStatus(refused);
    (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s cannot be used with ONNX Runtime %s", ep, runtime->version);
    oc_hint(err, "%s", pair->why);
    return ORTCRYPT_E_UNSUPPORTED;
}

/*
 * Behind the bridge where the table has it so. One that the bridge does not take is registered as it is: its route is none then, or the
 * canary's to find, and the reason is kept for who asks.
 */
static ortcrypt_status register_way(ortcrypt_runtime *runtime, oc_registered_ep *ep, ortcrypt_error *err)
{
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = ORTCRYPT_E_UNSUPPORTED;

    if (oc_pair_bridged(runtime->minor, ep->name) && !oc_devices_present(runtime, ep->library)) {
        st = oc_bridge_register(runtime, ep->name, ep->library, &reason);
        ep->bridged = st == ORTCRYPT_OK;
        if (st != ORTCRYPT_OK && st != ORTCRYPT_E_UNSUPPORTED) {
            if (err != NULL) {
                *err = reason;
            }
            return st;
        }
    }
    if (ep->bridged) {
        oc_notice(&runtime->monitor, "%s is registered behind ortcrypt's bridge: ONNX Runtime %s and this execution provider have no EPContext callbacks in common",
                  ep->name, runtime->version);
        return ORTCRYPT_OK;
    }
    st = reason.message[0] != '\0' ? oc_strdup(&ep->unbridged, reason.message, err) : ORTCRYPT_OK;
    return st != ORTCRYPT_OK ? st
                             : check_registered(runtime, ep->name, oc_devices_register(runtime, ep->name, ep->library), err);
}

/* Takes the record over on success. Called with the lock held. A library that is there already was registered by the application. */
static ortcrypt_status register_new(ortcrypt_runtime *runtime, oc_registered_ep *ep, ortcrypt_error *err)
{
    ortcrypt_status st = oc_claim_library(runtime, ep->name, ep->library, err);

    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = register_way(runtime, ep, err);
    if (st == ORTCRYPT_OK) {
        ep->attached = !ep->bridged && oc_registry_attach(ep->library);
        ep->next = runtime->eps;
        runtime->eps = ep;
    } else {
        oc_claim_drop(runtime, ep->library);
    }
    return st;
}

void oc_registered_free(oc_registered_ep *ep)
{
    if (ep != NULL) {
        free(ep->name);
        free(ep->library);
        free(ep->unbridged);
        free(ep);
    }
}

ortcrypt_status ortcrypt_runtime_register_ep(ortcrypt_runtime *runtime, const char *name, const char *library,
                                             ortcrypt_error *err)
{
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
        const oc_registered_ep *const known = find_named(runtime, name);
        if (known == NULL) {
            st = register_new(runtime, ep, err);
            ep = st == ORTCRYPT_OK ? NULL : ep;
        } else if (strcmp(known->library, ep->library) != 0) {
            st = oc_fail(err, ORTCRYPT_E_INVALID, "%s is registered already, from %s", name, known->library);
        }
        (void)pthread_mutex_unlock(&runtime->lock);
    }
    oc_registered_free(ep);
    return st;
}
