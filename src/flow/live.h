/*
 * flow/live.h: which states of callbacks are open. ORT, an EP or the application may call one of our callbacks with a state that
 * was closed: that is answered with an error, and the state's memory is not looked at.
 * Call order: oc_live_begin -> (oc_live_enter -> the callback -> oc_live_leave) -> oc_live_end -> free.
 * Threads: everything may run anywhere; _end waits for callbacks that are running, and must not be called from one.
 */
#ifndef OC_FLOW_LIVE_H
#define OC_FLOW_LIVE_H

#include <stdbool.h>

#include <onnxruntime_c_api.h>

#include "base/bytes.h"

typedef enum oc_live_kind { OC_LIVE_INPUTS, OC_LIVE_OUTPUT } oc_live_kind;

/* From here on `state` is open. Its address and the OrtApi are remembered for good, until the address is used again. */
ortcrypt_status oc_live_begin(const void *state, oc_live_kind kind, const OrtApi *api, ortcrypt_error *err);
/* NULL and what never began are allowed. */
void oc_live_end(const void *state);

/* NULL: `state` is open and stays so until oc_live_leave. Else what to return to ORT. */
OrtStatus *oc_live_enter(const void *state, oc_live_kind kind);
void oc_live_leave(const void *state);

#endif
