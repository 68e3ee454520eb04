/*
 * bundle/local.c: a bundle of this machine's own, bound to the state of the bundle it was made from. In: the origin's key and M.
 * Out: an ortcrypt_bundle or oc_txn whose key, contexts and manifest are those of docs/format.md, section 11.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bundle/local.h"
#include "bundle/txn.h"
#include "format/keyfile.h"

static ortcrypt_status derive_key(oc_secret *out, const ortcrypt_bundle *origin, const uint8_t *machine_key, ortcrypt_error *err)
{
    uint8_t info[sizeof OC_LOCAL_KEY_LABEL + OC_BUNDLE_ID_LEN] = OC_LOCAL_KEY_LABEL; /* its final NUL is the 0x00 of the format */

    memcpy(info + sizeof OC_LOCAL_KEY_LABEL, origin->manifest->bundle_id, OC_BUNDLE_ID_LEN);
    ortcrypt_status st = oc_secret_new(out, OC_BUNDLE_KEY_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = oc_hkdf(out->data, OC_BUNDLE_KEY_LEN, OC_HASH_SHA512, OC_SPAN(origin->key.data, OC_BUNDLE_KEY_LEN),
                     OC_SPAN(machine_key, OC_MACHINE_KEY_LEN), OC_SPAN(info, sizeof info), err);
    }
    return st;
}

/* The JSON text that the manifest has for M. */
#define SOURCE_SIZE (2 * OC_MANIFEST_ID_LEN + 3)
static void source_json(char text[SOURCE_SIZE], const ortcrypt_bundle *origin)
{
    char hex[2 * OC_MANIFEST_ID_LEN + 1];

    oc_hex_encode(hex, origin->manifest_id, OC_MANIFEST_ID_LEN);
    (void)snprintf(text, SOURCE_SIZE, "\"%s\"", hex);
}

static ortcrypt_status check_source(const ortcrypt_bundle *local, const ortcrypt_bundle *origin, ortcrypt_error *err)
{
    char wanted[SOURCE_SIZE];
    const char *const found = oc_pair_get(local->manifest->extensions, local->manifest->extension_count, OC_LOCAL_SOURCE);

    source_json(wanted, origin);
    if (found == NULL || strcmp(found, wanted) != 0) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was compiled from another state of the bundle", oc_store_path(local->store));
    }
    return ORTCRYPT_OK;
}

/* A bundle object around `store` (taken over) with the local key. */
static ortcrypt_status local_new(ortcrypt_bundle **out, oc_store **store, const ortcrypt_bundle *origin, const uint8_t *machine_key,
                                 ortcrypt_error *err)
{
    const oc_open_params params = {.max_asset_len = origin->max_asset_len, .threads = origin->threads};
    ortcrypt_bundle *local = NULL;

    ortcrypt_status st = oc_bundle_new(&local, store, &params, err);
    if (st == ORTCRYPT_OK) {
        local->local = true;
        st = derive_key(&local->key, origin, machine_key, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_bundle_free(local);
        return st;
    }
    *out = local;
    return ORTCRYPT_OK;
}

static ortcrypt_status open_store(ortcrypt_bundle **out, oc_store **store, const ortcrypt_bundle *origin, const uint8_t *machine_key,
                                  ortcrypt_error *err)
{
    const oc_open_params params = {.max_asset_len = origin->max_asset_len, .threads = origin->threads};
    ortcrypt_bundle *local = NULL;
    uint64_t sealed_max = 0;

    (void)oc_stream_sealed_len(OC_MANIFEST_MAX, &sealed_max);
    oc_buf sealed = OC_BUF((size_t)sealed_max);
    ortcrypt_status st = local_new(&local, store, origin, machine_key, err);
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_read_manifest(local, &sealed, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_open_manifest(local, OC_SPAN(sealed.data, sealed.len), &params, origin->manifest->bundle_id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_source(local, origin, err);
    }
    oc_buf_free(&sealed);
    if (st != ORTCRYPT_OK) {
        oc_bundle_free(local);
        return st;
    }
    *out = local;
    return ORTCRYPT_OK;
}

static bool is_there(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 || errno != ENOENT;
}

ortcrypt_status oc_local_open(ortcrypt_bundle **out, const char *path, const ortcrypt_bundle *origin, const uint8_t *machine_key,
                              ortcrypt_error *err)
{
    oc_store *store = NULL;

    *out = NULL;
    if (!is_there(path)) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "%s is not there", path);
    }
    ortcrypt_status st = oc_store_open(&store, path, err);
    if (st == ORTCRYPT_OK) {
        st = open_store(out, &store, origin, machine_key, err);
    }
    oc_store_close(store);
    return st;
}

void oc_local_close(ortcrypt_bundle *local)
{
    oc_bundle_free(local);
}

static ortcrypt_status begin_new(ortcrypt_bundle **view, oc_store **store, const char *path, const ortcrypt_bundle *origin,
                                 const uint8_t *machine_key, ortcrypt_error *err)
{
    char source[SOURCE_SIZE];

    source_json(source, origin);
    ortcrypt_status st = oc_store_create(store, path, err);
    if (st == ORTCRYPT_OK) {
        st = local_new(view, store, origin, machine_key, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_new(&(*view)->manifest, origin->manifest->bundle_id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_pair_add(&(*view)->manifest->extensions, &(*view)->manifest->extension_count, OC_LOCAL_SOURCE, source, err);
    }
    return st;
}

ortcrypt_status oc_local_begin(oc_txn **out, const char *path, const ortcrypt_bundle *origin, const uint8_t *machine_key,
                               ortcrypt_error *err)
{
    oc_store *store = NULL;
    oc_txn *txn = NULL;

    *out = NULL;
    ortcrypt_status st = oc_txn_new(&txn, err);
    if (st == ORTCRYPT_OK && is_there(path)) {
        st = oc_store_open(&store, path, err);
        if (st == ORTCRYPT_OK) {
            st = oc_store_lock(store, OC_LOCK_WAIT_MS, err); /* before the manifest is read */
        }
        if (st == ORTCRYPT_OK) {
            st = open_store(&txn->view, &store, origin, machine_key, err);
        }
        if (st == ORTCRYPT_OK) {
            txn->view->manifest->sequence++;
        }
    } else if (st == ORTCRYPT_OK) {
        st = begin_new(&txn->view, &store, path, origin, machine_key, err);
    }
    oc_store_close(store);
    if (st != ORTCRYPT_OK) {
        oc_txn_end(txn);
        return st;
    }
    txn->threads = origin->threads;
    *out = txn;
    return ORTCRYPT_OK;
}
