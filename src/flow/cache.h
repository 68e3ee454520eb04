/*
 * flow/cache.h: variants compiled just in time, kept outside the bundle. Format: docs/format.md, section 11.
 *
 * Call order: oc_cache_open -> oc_cache_get -> (session on the entry) -> when it does not load: oc_cache_renew -> ... -> close the
 * session, then the entry's bundle -> oc_cache_close.
 * In: the bundle's source and this machine's key. Out: a bundle of this machine, which the caller owns, and a variant in it.
 */
#ifndef OC_FLOW_CACHE_H
#define OC_FLOW_CACHE_H

#include "base/secret.h"
#include "bundle/local.h"
#include "flow/flow.h"

#define OC_CACHE_MAX_LEN (UINT64_C(4) << 30) /* bytes, unless the caller says otherwise */
#define OC_CACHE_WAIT_MS 120000u

typedef struct oc_cache {
    ortcrypt_runtime *runtime;
    ortcrypt_bundle *origin; /* held */
    const ortcrypt_session_options *options; /* the caller's, until the session is open */
    oc_choice choice;
    oc_secret key; /* of the machine */
    char *root;
    char *folder; /* of the bundle, below root */
    char *path;   /* of the entry, below folder: named after M */
    char name[65];
    uint64_t max_len;
    bool added; /* an entry: the cache may have become too large */
} oc_cache;

/* Makes the folders. ORTCRYPT_E_NO_KEY for a machine key that is not to be used. */
ortcrypt_status oc_cache_open(oc_cache **out, ortcrypt_runtime *runtime, ortcrypt_bundle *origin, const oc_choice *choice,
                              const ortcrypt_session_options *options, ortcrypt_error *err);
/* Lets go of everything, and removes entries over the limit. NULL is allowed. */
void oc_cache_close(oc_cache *cache);

/* The variant for this EP, its options, its version and this runtime; *fresh: it was compiled now. *local is the caller's to close. */
ortcrypt_status oc_cache_get(ortcrypt_bundle **local, const oc_variant **variant, bool *fresh, oc_cache *cache, ortcrypt_error *err);

/* The same after removing an entry that does not load for `reason`. */
ortcrypt_status oc_cache_renew(ortcrypt_bundle **local, const oc_variant **variant, oc_cache *cache, const ortcrypt_error *reason,
                               ortcrypt_error *err);

/* True for what may be wrong with a cache, its folder or its lock, so that the source is compiled in memory instead. */
bool oc_cache_unusable(ortcrypt_status status);

#endif
