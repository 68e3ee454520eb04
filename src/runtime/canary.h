/*
 * runtime/canary.h: proving a route that no table proves: a tiny model that is no secret is compiled, loaded and run with the EP, in a
 * program that cannot write files. Thread-safe; a verdict is kept as long as the runtime, for the EP and its options.
 */
#ifndef OC_RUNTIME_CANARY_H
#define OC_RUNTIME_CANARY_H

#include "runtime/runtime.h"

typedef struct oc_canary_verdict {
    bool proven;
    bool known;    /* kept from before: it has been told */
    char why[512]; /* a sentence part, for people: what was seen */
} oc_canary_verdict;

/*
 * ORTCRYPT_OK with a verdict. `device`: one of the EP's; NULL: its first. An error when nothing can be found out: no ortcrypt-probe, a kernel that cannot watch, an EP whose library
 * is not known. All of them are ORTCRYPT_E_UNSUPPORTED, ORTCRYPT_E_NOT_FOUND, ORTCRYPT_E_NO_MEMORY or ORTCRYPT_E_IO: refusals.
 */
ortcrypt_status oc_canary_prove(oc_canary_verdict *out, ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice *device,
                                const char *const *keys, const char *const *values, size_t count, ortcrypt_error *err);

/* Frees the verdicts kept. */
void oc_canary_forget(ortcrypt_runtime *runtime);

#endif
