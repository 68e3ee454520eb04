/*
 * The way EPContext data takes for an EP: from the table of pairs, and from how its library was registered.
 * Nothing of an EP is believed but what was tried: a pair in the table by tests, another by the canary.
 */
#include <string.h>

#include "runtime/private.h"

bool oc_runtime_takes_ids(ortcrypt_runtime *runtime, const char *ep)
{
    (void)pthread_mutex_lock(&runtime->lock);
    const oc_registered_ep *const registered = oc_registered_find(runtime, ep);
    const bool takes = registered != NULL && (registered->attached || registered->bridged);
    (void)pthread_mutex_unlock(&runtime->lock);
    return takes;
}

/*
 * Behind the bridge an id says it all, and the EP need not pass for one that knows members of 1.31. An EP with the helper also gets the
 * runtime's own callbacks: from 1.31 on ORT then refuses those that do not advertise, a second net below ours.
 */
bool oc_runtime_takes_callbacks(ortcrypt_runtime *runtime, const char *ep)
{
    (void)pthread_mutex_lock(&runtime->lock);
    const oc_registered_ep *const registered = oc_registered_find(runtime, ep);
    const bool bridged = registered != NULL && registered->bridged;
    (void)pthread_mutex_unlock(&runtime->lock);
    return runtime->ep_context.era != ORTCRYPT_ERA_NONE && !bridged;
}

/* What a pair of the table comes to with the library as it was registered; `ep` may be NULL. */
static oc_route pair_route(const ortcrypt_runtime *runtime, const oc_pair *pair, const oc_registered_ep *ep, const char **why)
{
    const bool callbacks = runtime->ep_context.era != ORTCRYPT_ERA_NONE;
    oc_route route = pair->route;

    *why = pair->why;
    if (route == OC_ROUTE_HELPER && (ep == NULL || !ep->attached)) {
        route = callbacks ? OC_ROUTE_NATIVE : OC_ROUTE_NONE;
        *why = callbacks ? "it reads and writes its EPContext data through the callbacks of this ONNX Runtime"
                         : "this ONNX Runtime has no EPContext callbacks, and the library takes none from ortcrypt: use 1.28 or newer, or embed mode";
    } else if (route == OC_ROUTE_NATIVE && ep != NULL && ep->bridged) {
        route = OC_ROUTE_BRIDGED;
    } else if (route == OC_ROUTE_BRIDGED && (ep == NULL || !ep->bridged)) {
        route = OC_ROUTE_NONE;
        *why = ep != NULL && ep->unbridged != NULL ? ep->unbridged
                                                   : "it needs the bridge here, and its library was registered without: leave registering it to ortcrypt";
    }
    return route;
}

/*
 * A pair that is in no row can be tried out (canary.h) where callbacks of some kind reach it. Not with the bridge on a runtime that has
 * none: functions of the runtime that are missing there may be asked for by other models than the canary.
 */
static oc_route unknown_route(const ortcrypt_runtime *runtime, bool known, const oc_registered_ep *ep, const char **why)
{
    const bool callbacks = runtime->ep_context.era != ORTCRYPT_ERA_NONE;

    if (callbacks || (ep != NULL && ep->attached && !ep->bridged)) {
        *why = "no table proves that it hands its EPContext data to the application: it is tried out before it sees a model";
        return OC_ROUTE_UNPROVEN;
    }
    *why = known ? "no proven way is known for this version of it on this ONNX Runtime"
                 : "nothing proves that it hands its EPContext data to the application instead of writing it to a file";
    return OC_ROUTE_NONE;
}

/* What the EP says of its version; NULL: it has no device here. */
static const char *version_of(const ortcrypt_runtime *runtime, const char *ep)
{
    const OrtEpDevice *const device = oc_runtime_first_device(runtime, ep);

    return device != NULL ? runtime->api->GetKeyValue(runtime->api->EpDevice_EpMetadata(device), "version") : NULL;
}

oc_route oc_runtime_route(ortcrypt_runtime *runtime, const char *ep, const char **why)
{
    const char *reason = NULL;
    oc_route route = OC_ROUTE_NONE;
    bool known = false;
    const oc_pair *pair = oc_pair_find(runtime->minor, ep, NULL, &known);

    if (pair != NULL && pair->route == OC_ROUTE_NONE) { /* whatever its version, and before the runtime is asked anything */
        if (why != NULL) {
            *why = pair->why;
        }
        return OC_ROUTE_NONE;
    }
    pair = oc_pair_find(runtime->minor, ep, version_of(runtime, ep), &known);
    (void)pthread_mutex_lock(&runtime->lock);
    const oc_registered_ep *const registered = oc_registered_find(runtime, ep);
    if (pair != NULL) {
        route = pair_route(runtime, pair, registered, &reason);
    } else {
        route = unknown_route(runtime, known, registered, &reason);
    }
    (void)pthread_mutex_unlock(&runtime->lock);
    if (why != NULL) {
        *why = reason;
    }
    return route;
}
