/*
 * runtime/runtime.h: speaking to an ONNX Runtime: the only caller of GetApi in the library.
 * Call order: ortcrypt_runtime_open -> oc_runtime_* -> ortcrypt_runtime_close.
 */
#ifndef OC_RUNTIME_RUNTIME_H
#define OC_RUNTIME_RUNTIME_H

#include "base/bytes.h"
#include "ortcrypt/ep_context.h"
#include "ortcrypt/runtime.h"

/* Minor version: 32 for 1.32.0. */
unsigned oc_runtime_minor(const ortcrypt_runtime *runtime);
const ortcrypt_ep_context_api *oc_runtime_ep_context(const ortcrypt_runtime *runtime);
const OrtCompileApi *oc_runtime_compile_api(const ortcrypt_runtime *runtime);

/* The function or entry of that name in the table of functions.h: is it there, and from which minor version on is it? */
bool oc_runtime_has(const ortcrypt_runtime *runtime, const char *name);
unsigned oc_runtime_since(const char *name);

/* Sessions, inputs and outputs hold the runtime. Thread-safe. */
void oc_runtime_hold(ortcrypt_runtime *runtime);
void oc_runtime_release(ortcrypt_runtime *runtime);

/* Takes an OrtStatus over: ORTCRYPT_OK for NULL, else ORTCRYPT_E_ORT with "<doing>: <ORT's words>"; releases it. */
ortcrypt_status oc_ort_check(const ortcrypt_runtime *runtime, OrtStatus *status, ortcrypt_error *err, const char *doing);
/* The other way, for callbacks: a new OrtStatus with the sentence. */
OrtStatus *oc_ort_status(const OrtApi *api, ortcrypt_status status, const ortcrypt_error *err);

/* Which way EPContext data takes for an EP on this runtime. */
typedef enum oc_route {
    OC_ROUTE_NONE,
    OC_ROUTE_NATIVE,  /* the runtime's own callbacks */
    OC_ROUTE_BRIDGED, /* by id, which the bridge makes the runtime's callbacks for an EP that knows nothing of ids */
    OC_ROUTE_HELPER,  /* by id, which the EP's own library understands; the runtime's own callbacks are set too where there are some */
    OC_ROUTE_UNPROVEN /* no table has this pair: the canary must prove it first (canary.h) */
} oc_route;
/* *why is a sentence part, valid until the runtime is closed (for NONE: what would help). */
oc_route oc_runtime_route(ortcrypt_runtime *runtime, const char *ep, const char **why);
/* True when an EP's library takes callbacks by id (runtime/registry.h): they are named in the session options then. */
bool oc_runtime_takes_ids(ortcrypt_runtime *runtime, const char *ep);
/* True when the runtime's own callbacks are to be set for an EP. */
bool oc_runtime_takes_callbacks(ortcrypt_runtime *runtime, const char *ep);

/* All devices of an EP by name. ORTCRYPT_E_NOT_FOUND lists the EPs there are. *devices is heap (free); the devices are ORT's. */
ortcrypt_status oc_runtime_devices(const ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice ***devices,
                                   size_t *count, ortcrypt_error *err);

#endif
