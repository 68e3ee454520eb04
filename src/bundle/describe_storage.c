/* A bundle seen from outside, without a key. */
#include "bundle/describe_storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crypto/age.h"

#define OBJECTS_MAX (1u << 20) /* names listed; a bundle has at most 65536 objects, and leftovers of interrupted writers */

typedef struct listing {
    oc_storage *storage;
    const oc_store *store;
    size_t cap;
    char folder[16]; /* "objects/ab" */
} listing;

static ortcrypt_status look_at_manifest(oc_storage *out, const oc_store *store, ortcrypt_error *err)
{
    uint64_t longest = 0;
    uint64_t plain = 0;

    (void)oc_stream_sealed_len(OC_MANIFEST_MAX, &longest);
    oc_buf sealed = OC_BUF((size_t)longest);
    ortcrypt_status status = oc_store_read_small(store, "manifest", sealed.max, &sealed, err);
    if (status == ORTCRYPT_E_NOT_FOUND) {
        status = oc_fail(err, ORTCRYPT_E_IO, "%s/manifest is missing: the bundle is damaged", oc_store_path(store));
    } else if (status == ORTCRYPT_E_LIMIT || (status == ORTCRYPT_OK && !oc_stream_plain_len(sealed.len, &plain))) {
        status = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s/manifest has a length that no manifest has: it was cut or altered",
                         oc_store_path(store));
    }
    if (status == ORTCRYPT_OK) {
        out->manifest_len = sealed.len;
        status = oc_sha256(out->manifest_id, OC_SPAN(sealed.data, sealed.len), err);
    }
    oc_buf_free(&sealed);
    return status;
}

static ortcrypt_status look_at_key_file(oc_storage *out, const oc_store *store, ortcrypt_error *err)
{
    char name[OC_NAMED_SIZE];
    oc_buf file = OC_BUF(OC_AGE_FILE_MAX);
    oc_buf types = OC_BUF(OC_AGE_FILE_MAX);

    oc_key_file_name(name, out->manifest_id);
    ortcrypt_status status = oc_store_read_small(store, name, OC_AGE_FILE_MAX, &file, err);
    if (status == ORTCRYPT_E_NOT_FOUND) {
        status = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s/%s is missing: there is no key file of this manifest",
                         oc_store_path(store), name);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_age_stanza_types(OC_SPAN(file.data, file.len), &types, err);
        if (status != ORTCRYPT_OK) {
            status = oc_fail_in(status, name, err);
        }
    }
    if (status == ORTCRYPT_OK) {
        status = oc_buf_append(&types, "", 1, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_strdup(&out->stanzas, (const char *)types.data, err);
    }
    oc_buf_free(&file);
    oc_buf_free(&types);
    return status;
}

static ortcrypt_status add_object(listing *list, const uint8_t name[OC_LEAF_LEN], ortcrypt_error *err)
{
    oc_storage *const storage = list->storage;
    int fd = -1;

    if (storage->object_count == OBJECTS_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%s has more than %u objects", oc_store_path(list->store), OBJECTS_MAX);
    }
    if (storage->object_count == list->cap) {
        const size_t cap = list->cap == 0 ? 64 : 2 * list->cap;
        oc_stored_object *const grown = realloc(storage->objects, cap * sizeof *grown);
        if (grown == NULL) {
            return oc_fail_memory(err, cap * sizeof *grown, "the list of objects");
        }
        storage->objects = grown;
        list->cap = cap;
    }
    oc_stored_object *const object = &storage->objects[storage->object_count++];
    *object = (oc_stored_object){.size = 0};
    memcpy(object->name, name, OC_LEAF_LEN);
    if (oc_store_open_object(list->store, name, &fd, &object->size, NULL) == ORTCRYPT_OK) {
        object->regular = true;
        storage->object_len += object->size;
        close(fd);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status list_object(void *state, const char *name, ortcrypt_error *err)
{
    listing *const list = state;
    uint8_t object[OC_LEAF_LEN];

    if (!oc_hex_decode(object, sizeof object, name, strlen(name)) || strncmp(list->folder + 8, name, 2) != 0) {
        list->storage->stray_count++;
        return ORTCRYPT_OK;
    }
    return add_object(list, object, err);
}

static ortcrypt_status list_folder(void *state, const char *name, ortcrypt_error *err)
{
    listing *const list = state;
    uint8_t first = 0;

    if (!oc_hex_decode(&first, 1, name, strlen(name))) {
        list->storage->stray_count++;
        return ORTCRYPT_OK;
    }
    (void)snprintf(list->folder, sizeof list->folder, "objects/%.2s", name);
    return oc_store_list(list->store, list->folder, list_object, list, err);
}

static int by_name(const void *a, const void *b)
{
    return memcmp(((const oc_stored_object *)a)->name, ((const oc_stored_object *)b)->name, OC_LEAF_LEN);
}

ortcrypt_status oc_storage_look(oc_storage *out, const oc_store *store, const uint8_t *expected, ortcrypt_error *err)
{
    oc_storage storage = {.key_error = ORTCRYPT_ERROR_INIT};
    listing list = {.storage = &storage, .store = store};
    char name[OC_NAMED_SIZE];

    ortcrypt_status status = look_at_manifest(&storage, store, err);
    if (status == ORTCRYPT_OK && expected != NULL && memcmp(expected, storage.manifest_id, OC_MANIFEST_ID_LEN) != 0) {
        status = oc_fail(err, ORTCRYPT_E_BUSY, "%s was changed by another process while it was being examined",
                         oc_store_path(store));
    }
    if (status == ORTCRYPT_OK) {
        storage.key_status = look_at_key_file(&storage, store, &storage.key_error);
        oc_sig_file_name(name, storage.manifest_id);
        storage.signature = oc_store_exists(store, name);
        status = oc_store_list(store, "objects", list_folder, &list, err);
    }
    if (status != ORTCRYPT_OK) {
        oc_storage_free(&storage);
        return status;
    }
    if (storage.object_count != 0) {
        qsort(storage.objects, storage.object_count, sizeof *storage.objects, by_name);
    }
    *out = storage;
    return ORTCRYPT_OK;
}

void oc_storage_free(oc_storage *storage)
{
    free(storage->stanzas);
    free(storage->objects);
    *storage = (oc_storage){.key_error = ORTCRYPT_ERROR_INIT};
}

ortcrypt_status oc_storage_demand(const oc_storage *storage, const oc_store *store, const oc_open_params *params,
                                  ortcrypt_error *err)
{
    if (params->has_id || params->min_sequence != 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a bundle id and a sequence can only be checked with a key");
    }
    if (params->has_pin && memcmp(params->pin, storage->manifest_id, OC_MANIFEST_ID_LEN) != 0) {
        char found[2 * OC_MANIFEST_ID_LEN + 1];
        oc_hex_encode(found, storage->manifest_id, OC_MANIFEST_ID_LEN);
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is not the pinned bundle: its manifest is %s", oc_store_path(store),
                       found);
    }
    return ORTCRYPT_OK;
}

void oc_storage_json(const oc_storage *storage, const char *path, oc_report *json)
{
    json_t *const key_file = json_object();
    json_t *const stanzas = json_array();
    json_t *const objects = json_object();

    oc_report_put(json, json->top, "path", oc_report_text(path));
    oc_report_put(json, json->top, "format", json_string("ortcrypt/1"));
    oc_report_put(json, json->top, "manifest_id", oc_report_hex(storage->manifest_id, OC_MANIFEST_ID_LEN));
    oc_report_put(json, json->top, "manifest_len", oc_report_number(storage->manifest_len));
    for (const char *at = storage->stanzas == NULL ? "" : storage->stanzas; *at != '\0';) {
        const size_t len = strcspn(at, " ");
        oc_report_add(json, stanzas, json_stringn(at, len));
        at += len;
        at += *at == ' ';
    }
    oc_report_put(json, key_file, "present", json_boolean(storage->key_status == ORTCRYPT_OK));
    if (storage->key_status != ORTCRYPT_OK) {
        oc_report_put(json, key_file, "error", oc_report_text(storage->key_error.message));
    }
    oc_report_put(json, key_file, "stanzas", stanzas);
    oc_report_put(json, json->top, "key_file", key_file);
    oc_report_put(json, json->top, "signature", json_boolean(storage->signature));
    oc_report_put(json, objects, "count", oc_report_number(storage->object_count));
    oc_report_put(json, objects, "len", oc_report_number(storage->object_len));
    oc_report_put(json, json->top, "objects", objects);
}
