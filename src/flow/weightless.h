/*
 * flow/weightless.h: compiled variants whose weights stay in the source variant (ORT 1.29). Such a variant is marked x-weightless.
 * In: the source variant's model and external data. Out: one model with everything in it, which ORT hands to the EP and which
 * must live as long as the session.
 */
#ifndef OC_FLOW_WEIGHTLESS_H
#define OC_FLOW_WEIGHTLESS_H

#include "flow/flow.h"

#define OC_WEIGHTLESS_MARK "x-weightless" /* member of a variant: the JSON text true */

bool oc_weightless_variant(const oc_variant *variant);

/* ORTCRYPT_E_UNSUPPORTED below 1.29. */
ortcrypt_status oc_weightless_check(const ortcrypt_runtime *runtime, ortcrypt_error *err);

/* The source model, its external data moved in, in *region (the caller's); set as the options' source model. */
ortcrypt_status oc_weightless_load(oc_region *region, size_t *len, const ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                                   OrtSessionOptions *options, ortcrypt_error *err);

#endif
