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
    OC_ROUTE_NATIVE,
    OC_ROUTE_BRIDGED,
    OC_ROUTE_UNPROVEN /* no table has this pair: the canary must prove it first (canary.h) */
} oc_route;
/* *why is a constant sentence part (for NONE: what would help). */
oc_route oc_runtime_route(const ortcrypt_runtime *runtime, const char *ep, const char **why);

/* All devices of an EP by name. ORTCRYPT_E_NOT_FOUND lists the EPs there are. *devices is heap (free); the devices are ORT's. */
ortcrypt_status oc_runtime_devices(const ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice ***devices,
                                   size_t *count, ortcrypt_error *err);

#endif
