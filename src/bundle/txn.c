/*
 * bundle/txn.c: a writing transaction: begin, add, commit or leave no trace.
 * In: assets of the writers, variants of the caller in the manifest. Out: a published manifest with its key file.
 * Format: docs/format.md, section 9.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/txn.h"
#include "crypto/age.h"
#include "crypto/random.h"
#include "os/os.h"

ortcrypt_status oc_txn_new(oc_txn **out, ortcrypt_error *err)
{
    oc_txn *const txn = calloc(1, sizeof *txn);
    if (txn == NULL) {
        return oc_fail_memory(err, sizeof *txn, "writing a bundle");
    }
    if (pthread_mutex_init(&txn->mutex, NULL) != 0) {
        free(txn);
        return oc_fail_memory(err, sizeof txn->mutex, "a lock");
    }
    *out = txn;
    return ORTCRYPT_OK;
}

void oc_txn_end(oc_txn *txn)
{
    if (txn != NULL) {
        oc_bundle_free(txn->view); /* its store removes what was not published */
        pthread_mutex_destroy(&txn->mutex);
        free(txn);
    }
}

/* Id, key, key file and an empty manifest of a new bundle. */
static ortcrypt_status fill_new(ortcrypt_bundle *view, const ortcrypt_keyring *keyring, ortcrypt_error *err)
{
    uint8_t bundle_id[OC_BUNDLE_ID_LEN];
    ortcrypt_status st = oc_random(bundle_id, sizeof bundle_id, err);
    if (st == ORTCRYPT_OK) {
        st = oc_secret_new(&view->key, OC_BUNDLE_KEY_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_random(view->key.data, OC_BUNDLE_KEY_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_keyring_wrap(keyring, bundle_id, view->key.data, &view->key_file, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_new(&view->manifest, bundle_id, err);
    }
    if (st == ORTCRYPT_OK) {
        view->manifest->sequence = 1;
    }
    return st;
}

ortcrypt_status oc_txn_create(oc_txn **out, const char *path, const ortcrypt_keyring *keyring, ortcrypt_error *err)
{
    const oc_open_params params = {.max_asset_len = UINT64_MAX, .threads = oc_default_threads()};
    oc_txn *txn = NULL;
    oc_store *store = NULL;
    *out = NULL;
    ortcrypt_status st = oc_txn_new(&txn, err);
    if (st == ORTCRYPT_OK) {
        txn->threads = params.threads;
        st = oc_store_create(&store, path, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_new(&txn->view, &store, &params, err);
    }
    if (st == ORTCRYPT_OK) {
        st = fill_new(txn->view, keyring, err);
    }
    oc_store_close(store);
    if (st != ORTCRYPT_OK) {
        oc_txn_end(txn);
        return st;
    }
    *out = txn;
    return ORTCRYPT_OK;
}

static ortcrypt_status refuse_signed(const ortcrypt_bundle *view, ortcrypt_error *err)
{
    char name[OC_NAMED_SIZE];
    oc_sig_file_name(name, view->manifest_id);
    if (!oc_store_exists(view->store, name)) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s is signed, and changing it needs the signing key",
                                 oc_store_path(view->store));
    oc_hint(err, "write a new bundle instead and sign that");
    return st;
}

typedef struct copy_job {
    const ortcrypt_bundle *view;
    oc_store *to;
} copy_job;

/* Every object of `view` into the new store, each compared with its name first: a damaged bundle is not passed on. */
static ortcrypt_status copy_object(void *state, unsigned lane, uint64_t item, ortcrypt_error *err)
{
    const copy_job *const job = state;
    const oc_asset *const asset = &job->view->manifest->assets[item];
    char id[2 * OC_ASSET_ID_LEN + 1];
    (void)lane;
    ortcrypt_status st = oc_object_check_name(job->view->store, asset->object, err);
    if (st == ORTCRYPT_OK) {
        st = oc_store_copy_object(job->to, job->view->store, asset->object, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_hex_encode(id, asset->id, OC_ASSET_ID_LEN);
        oc_at(err, err == NULL ? ORTCRYPT_NO_OFFSET : err->offset, id);
    }
    return st;
}

/* The view becomes one of the new bundle; the old one is only read, and let go. */
static ortcrypt_status move_to(oc_txn *txn, const char *out_path, ortcrypt_error *err)
{
    oc_store *fresh = NULL;
    ortcrypt_status st = oc_store_create(&fresh, out_path, err);
    if (st == ORTCRYPT_OK) {
        copy_job job = {txn->view, fresh};
        st = oc_parallel(txn->threads, txn->view->manifest->asset_count, copy_object, &job, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_store_close(txn->view->store);
        txn->view->store = fresh;
        fresh = NULL;
    }
    oc_store_close(fresh);
    return st;
}

ortcrypt_status oc_txn_begin(oc_txn **out, const char *path, const char *out_path, const ortcrypt_keyring *keyring,
                             const ortcrypt_open_options *options, ortcrypt_error *err)
{
    oc_open_params params;
    oc_txn *txn = NULL;
    oc_store *store = NULL;
    *out = NULL;
    ortcrypt_status st = oc_open_params_read(&params, options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_txn_new(&txn, err);
    }
    if (st == ORTCRYPT_OK) {
        txn->threads = params.threads;
        st = oc_store_open(&store, path, err);
    }
    if (st == ORTCRYPT_OK && out_path == NULL) {
        st = oc_store_lock(store, OC_LOCK_WAIT_MS, err); /* before the manifest is read */
    }
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_open_store(&txn->view, &store, keyring, &params, err);
    }
    if (st == ORTCRYPT_OK) {
        st = out_path == NULL ? refuse_signed(txn->view, err) : move_to(txn, out_path, err);
    }
    oc_store_close(store);
    if (st != ORTCRYPT_OK) {
        oc_txn_end(txn);
        return st;
    }
    txn->view->manifest->sequence++;
    *out = txn;
    return ORTCRYPT_OK;
}

ortcrypt_bundle *oc_txn_view(oc_txn *txn)
{
    return txn->view;
}

oc_manifest *oc_txn_manifest(oc_txn *txn)
{
    return txn->view->manifest;
}

void oc_txn_set_threads(oc_txn *txn, unsigned threads)
{
    txn->threads = threads == 0 ? oc_default_threads() : threads > OC_THREADS_MAX ? OC_THREADS_MAX : threads;
    txn->view->threads = txn->threads;
}

ortcrypt_status oc_txn_add_object(oc_txn *txn, oc_file *file, const uint8_t id[OC_ASSET_ID_LEN], const oc_shape *shape,
                                  uint8_t (**leaves)[OC_LEAF_LEN], ortcrypt_error *err)
{
    oc_asset asset = {.size = shape->plain_len, .pieces = *leaves, .piece_count = (size_t)shape->piece_count};
    memcpy(asset.id, id, OC_ASSET_ID_LEN);
    ortcrypt_status st = oc_object_name(asset.object, shape->sealed_len, asset.pieces, asset.piece_count, err);
    if (st != ORTCRYPT_OK) {
        oc_file_discard(file);
        return st;
    }
    st = oc_file_publish_object(file, asset.object, err);
    if (st == ORTCRYPT_OK) {
        pthread_mutex_lock(&txn->mutex);
        st = oc_manifest_add_asset(txn->view->manifest, &asset, err);
        pthread_mutex_unlock(&txn->mutex);
        *leaves = asset.pieces; /* NULL once the manifest has them */
    }
    return st;
}

ortcrypt_status oc_txn_drop_asset(oc_txn *txn, const uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    oc_manifest *const manifest = txn->view->manifest;
    ortcrypt_status st = ORTCRYPT_OK;
    pthread_mutex_lock(&txn->mutex);
    const oc_asset *const asset = oc_manifest_find_asset(manifest, id);
    if (asset == NULL) {
        st = oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the bundle has no such asset");
    } else {
        const size_t index = (size_t)(asset - manifest->assets);
        free(manifest->assets[index].pieces);
        manifest->asset_count--;
        memmove(&manifest->assets[index], &manifest->assets[index + 1], (manifest->asset_count - index) * sizeof *manifest->assets);
    }
    pthread_mutex_unlock(&txn->mutex);
    return st;
}

/* The manifest as text, read back by the rules for readers: what nobody could open is not published. */
static ortcrypt_status print_checked(const oc_manifest *manifest, oc_buf *json, ortcrypt_error *err)
{
    oc_manifest *again = NULL;
    ortcrypt_status st = oc_manifest_print(manifest, json, err);
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_parse(&again, OC_SPAN(json->data, json->len), err);
        if (st == ORTCRYPT_E_NOT_AUTHENTIC) {
            st = oc_fail_in(ORTCRYPT_E_INVALID, "the bundle cannot be described", err);
        }
    }
    oc_manifest_free(again);
    return st;
}

static ortcrypt_status publish_key_file(const ortcrypt_bundle *view, const uint8_t *manifest_id, ortcrypt_error *err)
{
    char name[OC_NAMED_SIZE];
    oc_file *file = NULL;
    oc_key_file_name(name, manifest_id);
    ortcrypt_status st = oc_file_new(&file, view->store, err);
    if (st == ORTCRYPT_OK) {
        st = oc_file_write(file, view->key_file.data, view->key_file.len, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_file_discard(file);
        return st;
    }
    return oc_file_publish_named(file, name, err);
}

static int compare_names(const void *a, const void *b)
{
    return memcmp(a, b, OC_LEAF_LEN);
}

/* Old objects, keys and signatures. What cannot be deleted now is left for a later commit. */
static void collect(const ortcrypt_bundle *view)
{
    const oc_manifest *const manifest = view->manifest;
    char id[2 * OC_MANIFEST_ID_LEN + 1];
    uint8_t(*const keep)[OC_LEAF_LEN] = calloc(manifest->asset_count + 1, sizeof *keep);
    if (keep != NULL) {
        for (size_t i = 0; i < manifest->asset_count; i++) {
            memcpy(keep[i], manifest->assets[i].object, OC_LEAF_LEN);
        }
        qsort(keep, manifest->asset_count, sizeof *keep, compare_names);
        oc_hex_encode(id, view->manifest_id, OC_MANIFEST_ID_LEN);
        (void)oc_store_collect(view->store, (const uint8_t(*)[OC_LEAF_LEN])keep, manifest->asset_count, id, NULL);
    }
    free(keep);
}

ortcrypt_status oc_txn_commit(oc_txn *txn, ortcrypt_bundle_info *info, ortcrypt_error *err)
{
    uint8_t context[OC_CONTEXT_MAX];
    uint8_t manifest_id[OC_MANIFEST_ID_LEN];
    ortcrypt_bundle *const view = txn->view;
    oc_buf json = OC_BUF(OC_MANIFEST_MAX);
    oc_buf sealed = OC_BUF(2 * (size_t)OC_MANIFEST_MAX);
    if (txn->ended) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%s was committed already", oc_store_path(view->store));
    }
    txn->ended = true;
    ortcrypt_status st = print_checked(view->manifest, &json, err);
    if (st == ORTCRYPT_OK) {
        st = oc_stream_seal_all(view->key.data, oc_bundle_context(context, view, view->manifest->bundle_id, NULL),
                                OC_SPAN(json.data, json.len), &sealed, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256(manifest_id, OC_SPAN(sealed.data, sealed.len), err);
    }
    if (st == ORTCRYPT_OK && !view->local) {
        st = publish_key_file(view, manifest_id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_store_publish_manifest(view->store, OC_SPAN(sealed.data, sealed.len), err);
    }
    if (st == ORTCRYPT_OK) {
        memcpy(view->manifest_id, manifest_id, sizeof manifest_id);
        collect(view);
        if (info != NULL) {
            oc_bundle_fill_info(view, info);
        }
    }
    oc_buf_free(&json);
    oc_buf_free(&sealed);
    return st;
}
