/*
 * bundle/describe_storage.h: what a bundle shows without a key: manifest and key file by their outside, and the objects there are.
 * Nothing here is authenticated. Call order: oc_storage_look -> read -> oc_storage_free.
 */
#ifndef OC_BUNDLE_DESCRIBE_STORAGE_H
#define OC_BUNDLE_DESCRIBE_STORAGE_H

#include "bundle/describe_report.h"
#include "bundle/internal.h"

typedef struct oc_stored_object {
    uint8_t name[OC_LEAF_LEN];
    uint64_t size; /* bytes; 0 when it cannot be opened */
    bool regular;  /* false: missing behind a link, a folder, a FIFO, not readable */
} oc_stored_object;

typedef struct oc_storage {
    uint8_t manifest_id[OC_MANIFEST_ID_LEN];
    uint64_t manifest_len;
    char *stanzas; /* types of the key file's stanzas, space between, owned; NULL: see key_status */
    ortcrypt_status key_status;
    ortcrypt_error key_error;
    bool signature;
    oc_stored_object *objects; /* sorted by name */
    size_t object_count;
    uint64_t object_len; /* bytes of all of them */
    size_t stray_count;  /* names below objects/ that are no object's */
} oc_storage;

/*
 * A missing or impossible manifest is an error; what is wrong with the key file is kept in key_status and key_error.
 * `expected` (may be NULL): M of the bundle that is open already; another one by now is ORTCRYPT_E_BUSY.
 */
ortcrypt_status oc_storage_look(oc_storage *out, const oc_store *store, const uint8_t *expected, ortcrypt_error *err);

/* For calls without a key: a pin is checked, an id and a sequence cannot be (ORTCRYPT_E_INVALID). */
ortcrypt_status oc_storage_demand(const oc_storage *storage, const oc_store *store, const oc_open_params *params,
                                  ortcrypt_error *err);
void oc_storage_free(oc_storage *storage);

/* path, manifest_id, manifest_len, key_file, signature, objects. */
void oc_storage_json(const oc_storage *storage, const char *path, oc_report *json);

#endif
