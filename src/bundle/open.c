/*
 * bundle/open.c: opening a bundle. In: a folder's files through the store, untrusted. Out: an ortcrypt_bundle that owns the
 * store, the key and the authenticated manifest. Order: docs/format.md, sections 1, 4 and 5.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/internal.h"
#include "crypto/age.h"
#include "os/os.h"

#define OPTIONS_SIZE_MAX 4096u

ortcrypt_status oc_options_copy(void *out, size_t out_size, const void *options, const char *what, ortcrypt_error *err)
{
    size_t size = 0;
    memset(out, 0, out_size);
    memcpy(out, &out_size, sizeof out_size);
    if (options == NULL) {
        return ORTCRYPT_OK;
    }
    memcpy(&size, options, sizeof size);
    if (size < sizeof size || size > OPTIONS_SIZE_MAX) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%s.struct_size is %zu, not sizeof(%s)", what, size, what);
    }
    const uint8_t *const bytes = options;
    for (size_t i = out_size; i < size; i++) {
        if (bytes[i] != 0) {
            return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s uses a member that this version of the library does not know", what);
        }
    }
    memcpy(out, options, size < out_size ? size : out_size);
    memcpy(out, &out_size, sizeof out_size);
    return ORTCRYPT_OK;
}

ortcrypt_status oc_open_params_read(oc_open_params *out, const ortcrypt_open_options *options, ortcrypt_error *err)
{
    ortcrypt_open_options o;
    ortcrypt_status st = oc_options_copy(&o, sizeof o, options, "ortcrypt_open_options", err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    oc_open_params p = {.min_sequence = o.min_sequence, .monitor = o.monitor};
    p.max_asset_len = o.max_asset_len != 0 ? o.max_asset_len : oc_physical_memory();
    p.threads = o.threads != 0 ? o.threads : oc_default_threads();
    p.threads = p.threads > OC_THREADS_MAX ? OC_THREADS_MAX : p.threads;
    if (o.bundle_id != NULL) {
        p.has_id = true;
        if (!oc_hex_decode(p.bundle_id, sizeof p.bundle_id, o.bundle_id, strlen(o.bundle_id))) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "a bundle id is 32 lower-case hex digits; \"%s\" is not", o.bundle_id);
        }
    }
    if (o.pin != NULL) {
        p.has_pin = true;
        if (!oc_hex_decode(p.pin, sizeof p.pin, o.pin, strlen(o.pin))) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "a pin is 64 lower-case hex digits; \"%s\" is not", o.pin);
        }
    }
    *out = p;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_bundle_new(ortcrypt_bundle **out, oc_store **store, const oc_open_params *params, ortcrypt_error *err)
{
    ortcrypt_bundle *const bundle = calloc(1, sizeof *bundle);
    if (bundle == NULL) {
        return oc_fail_memory(err, sizeof *bundle, "a bundle");
    }
    bundle->store = *store;
    bundle->key_file = OC_BUF(OC_AGE_FILE_MAX);
    bundle->max_asset_len = params->max_asset_len;
    bundle->threads = params->threads;
    atomic_init(&bundle->check_leaves, params->has_pin);
    atomic_init(&bundle->holds, 0);
    (void)pthread_mutex_init(&bundle->share_lock, NULL);
    *store = NULL;
    *out = bundle;
    return ORTCRYPT_OK;
}

void oc_bundle_free(ortcrypt_bundle *bundle)
{
    if (bundle != NULL) {
        oc_secret_free(&bundle->key);
        oc_manifest_free(bundle->manifest);
        oc_buf_free(&bundle->key_file);
        free(bundle->recipients);
        oc_store_close(bundle->store);
        (void)pthread_mutex_destroy(&bundle->share_lock);
        free(bundle);
    }
}

/* The manifest's bytes, once; M is their hash whatever happens to the file later. */
ortcrypt_status oc_bundle_read_manifest(ortcrypt_bundle *bundle, oc_buf *sealed, ortcrypt_error *err)
{
    const char *const path = oc_store_path(bundle->store);
    ortcrypt_status st = oc_store_read_small(bundle->store, "manifest", sealed->max, sealed, err);
    if (st == ORTCRYPT_E_NOT_FOUND) {
        st = oc_fail(err, ORTCRYPT_E_IO, "%s/manifest is missing: the bundle is damaged", path);
    } else if (st == ORTCRYPT_E_LIMIT) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s/manifest is longer than a manifest can be: it was altered", path);
    }
    return st == ORTCRYPT_OK ? oc_sha256(bundle->manifest_id, OC_SPAN(sealed->data, sealed->len), err) : st;
}

static ortcrypt_status check_pin(const ortcrypt_bundle *bundle, const oc_open_params *params, ortcrypt_error *err)
{
    char found[2 * OC_MANIFEST_ID_LEN + 1];
    if (!params->has_pin || memcmp(params->pin, bundle->manifest_id, OC_MANIFEST_ID_LEN) == 0) {
        return ORTCRYPT_OK;
    }
    oc_hex_encode(found, bundle->manifest_id, OC_MANIFEST_ID_LEN);
    ortcrypt_status st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is not the pinned bundle: its manifest is %s",
                                 oc_store_path(bundle->store), found);
    oc_hint(err, "it was altered, is an older or newer version, or the pin is of another bundle");
    return st;
}

static ortcrypt_status find_key_file(void *state, const char *name, ortcrypt_error *err)
{
    const size_t len = strlen(name);
    (void)err;
    *(bool *)state = *(bool *)state || (len > 4 && strcmp(name + len - 4, ".age") == 0);
    return ORTCRYPT_OK;
}

/* keys/<M>.age is not there: either the manifest is not the one the keys belong to, or nobody's key came along. */
static ortcrypt_status explain_missing_key(const ortcrypt_bundle *bundle, const char *name, ortcrypt_error *err)
{
    const char *const path = oc_store_path(bundle->store);
    bool others = false;
    ortcrypt_status st = oc_store_list(bundle->store, "keys", find_key_file, &others, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (others) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC,
                     "%s: manifest and key file do not belong together: the manifest was altered, or is of another version", path);
        oc_hint(err, "get the bundle again; %s would belong to this manifest", name);
    } else {
        st = oc_fail(err, ORTCRYPT_E_NO_KEY, "%s has no key file: %s is missing", path, name);
        oc_hint(err, "get the bundle again, whole");
    }
    return st;
}

static ortcrypt_status read_key_file(ortcrypt_bundle *bundle, const char *name, ortcrypt_error *err)
{
    const char *const path = oc_store_path(bundle->store);
    ortcrypt_error cause = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = oc_store_read_small(bundle->store, name, OC_AGE_FILE_MAX, &bundle->key_file, &cause);
    if (st == ORTCRYPT_E_NOT_FOUND) {
        return explain_missing_key(bundle, name, err);
    }
    if (st == ORTCRYPT_E_LIMIT) {
        return oc_fail(err, ORTCRYPT_E_FORMAT, "%s/%s is no key file: it is longer than %u bytes", path, name, OC_AGE_FILE_MAX);
    }
    if (st == ORTCRYPT_E_IO && (cause.sys_errno == 0 || cause.sys_errno == ELOOP || cause.sys_errno == ENXIO)) {
        /* a folder, a FIFO, a link to itself or a socket in its place */
        return oc_fail(err, ORTCRYPT_E_FORMAT, "%s: it is no key file", cause.message);
    }
    if (st != ORTCRYPT_OK && err != NULL) {
        *err = cause;
    }
    return st;
}

static ortcrypt_status open_key(ortcrypt_bundle *bundle, const ortcrypt_keyring *keyring, const oc_open_params *params,
                                uint8_t bundle_id[OC_BUNDLE_ID_LEN], ortcrypt_error *err)
{
    char name[OC_NAMED_SIZE];
    char what[1024];
    oc_key_file_name(name, bundle->manifest_id);
    snprintf(what, sizeof what, "%s/%s", oc_store_path(bundle->store), name);
    ortcrypt_status st = read_key_file(bundle, name, err);
    if (st == ORTCRYPT_OK) {
        st = oc_keyring_unwrap(keyring, OC_SPAN(bundle->key_file.data, bundle->key_file.len), what, bundle_id, &bundle->key,
                               &bundle->recipients, err);
    }
    if (st == ORTCRYPT_OK && params->has_id && memcmp(params->bundle_id, bundle_id, OC_BUNDLE_ID_LEN) != 0) {
        char found[2 * OC_BUNDLE_ID_LEN + 1];
        oc_hex_encode(found, bundle_id, OC_BUNDLE_ID_LEN);
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is another bundle than the one asked for: its id is %s",
                     oc_store_path(bundle->store), found);
    }
    return st;
}

/* The manifest's own word on each object: its name must be made of its length and leaves. */
static ortcrypt_status check_assets(const oc_manifest *manifest, const char *what, ortcrypt_error *err)
{
    uint8_t name[OC_LEAF_LEN];
    char id[2 * OC_ASSET_ID_LEN + 1];
    ortcrypt_status st = ORTCRYPT_OK;
    for (size_t i = 0; st == ORTCRYPT_OK && i < manifest->asset_count; i++) {
        const oc_asset *const asset = &manifest->assets[i];
        oc_shape shape;
        bool right = oc_shape_of(&shape, asset->size) && shape.piece_count == asset->piece_count;
        if (right) {
            st = oc_object_name(name, shape.sealed_len, asset->pieces, asset->piece_count, err);
            right = st != ORTCRYPT_OK || memcmp(name, asset->object, OC_LEAF_LEN) == 0;
        }
        if (!right) {
            oc_hex_encode(id, asset->id, OC_ASSET_ID_LEN);
            st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s: size, pieces and object of the asset %s do not fit together", what, id);
            oc_at(err, ORTCRYPT_NO_OFFSET, id);
        }
    }
    return st;
}

ortcrypt_status oc_bundle_open_manifest(ortcrypt_bundle *bundle, oc_span sealed, const oc_open_params *params,
                                        const uint8_t bundle_id[OC_BUNDLE_ID_LEN], ortcrypt_error *err)
{
    uint8_t context[OC_CONTEXT_MAX];
    char what[1024];
    oc_buf json = OC_BUF(OC_MANIFEST_MAX);
    snprintf(what, sizeof what, "%s/manifest", oc_store_path(bundle->store));
    ortcrypt_status st = oc_stream_open_all(bundle->key.data, oc_bundle_context(context, bundle, bundle_id, NULL), sealed, &json, err);
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_parse(&bundle->manifest, OC_SPAN(json.data, json.len), err);
    }
    oc_buf_free(&json);
    if (st != ORTCRYPT_OK) {
        return oc_fail_in(st, what, err);
    }
    if (memcmp(bundle->manifest->bundle_id, bundle_id, OC_BUNDLE_ID_LEN) != 0) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s and the key file name different bundle ids", what);
    }
    if (bundle->manifest->sequence < params->min_sequence) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was rolled back: its sequence is %llu, and %llu is the lowest accepted",
                       oc_store_path(bundle->store), (unsigned long long)bundle->manifest->sequence,
                       (unsigned long long)params->min_sequence);
    }
    return check_assets(bundle->manifest, what, err);
}

ortcrypt_status oc_bundle_open_store(ortcrypt_bundle **out, oc_store **store, const ortcrypt_keyring *keyring,
                                     const oc_open_params *params, ortcrypt_error *err)
{
    uint64_t sealed_max = 0;
    uint8_t bundle_id[OC_BUNDLE_ID_LEN];
    ortcrypt_bundle *bundle = NULL;
    oc_store *const lent = *store;
    (void)oc_stream_sealed_len(OC_MANIFEST_MAX, &sealed_max);
    oc_buf sealed = OC_BUF((size_t)sealed_max);
    ortcrypt_status st = oc_bundle_new(&bundle, store, params, err);
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_read_manifest(bundle, &sealed, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_pin(bundle, params, err);
    }
    if (st == ORTCRYPT_OK) {
        st = open_key(bundle, keyring, params, bundle_id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_open_manifest(bundle, OC_SPAN(sealed.data, sealed.len), params, bundle_id, err);
    }
    oc_buf_free(&sealed);
    if (st != ORTCRYPT_OK) {
        if (bundle != NULL) {
            bundle->store = NULL;
            *store = lent;
        }
        oc_bundle_free(bundle);
        return st;
    }
    *out = bundle;
    return ORTCRYPT_OK;
}

ortcrypt_status ortcrypt_bundle_open(ortcrypt_bundle **bundle, const char *path, const ortcrypt_keyring *keyring,
                                     const ortcrypt_open_options *options, ortcrypt_error *err)
{
    oc_open_params params;
    oc_store *store = NULL;
    if (bundle == NULL || path == NULL || keyring == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_bundle_open needs bundle, path and keyring");
    }
    *bundle = NULL;
    ortcrypt_status st = oc_open_params_read(&params, options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_store_open(&store, path, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_open_store(bundle, &store, keyring, &params, err);
    }
    oc_store_close(store);
    return st;
}

ortcrypt_status ortcrypt_bundle_close(ortcrypt_bundle *bundle, ortcrypt_error *err)
{
    if (bundle == NULL) {
        return ORTCRYPT_OK;
    }
    const int holds = atomic_load(&bundle->holds);
    if (holds != 0) {
        ortcrypt_status st = oc_fail(err, ORTCRYPT_E_BUSY, "%s is in use by %d session%s or input%s", oc_store_path(bundle->store),
                                     holds, holds == 1 ? "" : "s", holds == 1 ? "" : "s");
        oc_hint(err, "close those first");
        return st;
    }
    oc_bundle_free(bundle);
    return ORTCRYPT_OK;
}
