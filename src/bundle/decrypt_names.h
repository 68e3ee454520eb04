/*
 * bundle/decrypt_names.h: which assets of a source variant become which files. Pure functions over a manifest.
 * Format: docs/format.md, "Conventions for x- members" and "Restoring files".
 */
#ifndef OC_BUNDLE_DECRYPT_NAMES_H
#define OC_BUNDLE_DECRYPT_NAMES_H

#include "bundle/split.h"

typedef struct oc_decrypt_item {
    const oc_asset *asset; /* the manifest's */
    const char *name;      /* as the manifest has it */
    bool plain;            /* usable as a relative path */
    oc_role role;
    bool split; /* the model, to be restored from list.split */
} oc_decrypt_item;

/* In the order in which places are given: data files first (the model finds them by name), the model, extra files. */
typedef struct oc_decrypt_list {
    oc_decrypt_item *items;
    size_t count;
    uint64_t total_len; /* bytes of plaintext */
    char *model_name;   /* owned: x-file-name decoded */
    oc_split split;
} oc_decrypt_list;

/*
 * ORTCRYPT_E_NOT_FOUND: no source variant. ORTCRYPT_E_NOT_AUTHENTIC: x-file-name, x-original or x-split is not what the format says.
 * *list is {0} on failure. The manifest must outlive it.
 */
ortcrypt_status oc_decrypt_list_make(oc_decrypt_list *list, const oc_manifest *manifest, ortcrypt_error *err);
void oc_decrypt_list_free(oc_decrypt_list *list);

#endif
