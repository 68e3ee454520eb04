/*
 * bundle/split.h: a source model whose embedded weights lie in an asset of their own, and the way back to the original file.
 * Format: docs/format.md, section 7, x-split.
 *
 * Call order: oc_split_read -> oc_split_restore. Whoever writes one: oc_split_print.
 */
#ifndef OC_BUNDLE_SPLIT_H
#define OC_BUNDLE_SPLIT_H

#include <jansson.h>

#include "bundle/bundle.h"
#include "crypto/hash.h"

#define OC_SPLIT_MEMBER "x-split"

typedef struct oc_split {
    const oc_asset *weights; /* the manifest's; NULL: the variant is not split */
    const oc_asset *recipe;
    uint64_t size;           /* bytes of the original model file */
    uint8_t sha256[OC_SHA256_LEN]; /* of it */
} oc_split;

/* *out is {0} when the variant has no x-split. ORTCRYPT_E_NOT_AUTHENTIC: it has one that is not what the format says. */
ortcrypt_status oc_split_read(oc_split *out, const oc_manifest *manifest, const oc_variant *variant, ortcrypt_error *err);

/* The member's value, JSON; heap (free). */
ortcrypt_status oc_split_print(char **out, const uint8_t weights[OC_ASSET_ID_LEN], const uint8_t recipe[OC_ASSET_ID_LEN],
                               uint64_t size, const uint8_t sha256[OC_SHA256_LEN], ortcrypt_error *err);

/*
 * Pushes the original model: exactly split->size bytes. Their hash goes to `sha256`; comparing it is the caller's. `model` is the
 * variant's model.
 */
ortcrypt_status oc_split_restore(ortcrypt_bundle *bundle, const oc_asset *model, const oc_split *split, oc_push_fn push,
                                 void *push_state, uint8_t sha256[OC_SHA256_LEN], ortcrypt_error *err);

/* An extension's value as JSON: text that the manifest's parser has printed, so that only memory can be missing. json_decref. */
ortcrypt_status oc_extension_load(json_t **json, const char *raw, ortcrypt_error *err);
/* "<key> of variant <id> is not <what>", ORTCRYPT_E_NOT_AUTHENTIC. */
ortcrypt_status oc_extension_fail(const oc_variant *variant, const char *key, const char *what, ortcrypt_error *err);
/* The asset that a JSON string names; NULL: it is none of this manifest. */
const oc_asset *oc_extension_asset(const oc_manifest *manifest, const json_t *id);

#endif
