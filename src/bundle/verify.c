/*
 * ortcrypt_bundle_verify. Without a key: each object's name is recomputed from its bytes, which proves that the storage is intact
 * and nothing about who wrote it. With one: every asset of the manifest is decrypted, every leaf recomputed.
 * The report lists all damage; the returned status is the first damage's. *json stays NULL when nothing could be examined
 * (no bundle, no key, manifest not authentic).
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/decrypt_names.h"
#include "bundle/describe_storage.h"
#include "bundle/progress.h"

typedef struct verification {
    oc_storage storage;
    ortcrypt_bundle *bundle; /* NULL: without a key */
    oc_report report;
    json_t *damaged;
    size_t damaged_count;
    ortcrypt_status first;
    ortcrypt_error first_error;
    oc_progress_sum sum;
    size_t checked_count;
    uint64_t checked_len;
} verification;

/* Damage is reported and the check goes on; everything else ends it. */
static bool is_damage(ortcrypt_status status)
{
    return status == ORTCRYPT_E_NOT_AUTHENTIC || status == ORTCRYPT_E_IO || status == ORTCRYPT_E_FORMAT ||
           status == ORTCRYPT_E_LIMIT;
}

/* `item` (taken over) gets status and sentence. */
static void note_damage(verification *run, json_t *item, ortcrypt_status status, const ortcrypt_error *error)
{
    if (run->damaged_count++ == 0) {
        run->first = status;
        run->first_error = *error;
    }
    oc_report_put(&run->report, item, "status", json_string(ortcrypt_status_name(status)));
    oc_report_put(&run->report, item, "error", oc_report_text(error->message));
    oc_report_add(&run->report, run->damaged, item);
}

static ortcrypt_status check_object(verification *run, const oc_store *store, const oc_stored_object *object,
                                    ortcrypt_error *err)
{
    ortcrypt_error error = ORTCRYPT_ERROR_INIT;
    uint64_t plain = 0;

    ortcrypt_status status = oc_object_check_name(store, object->name, &error);
    if (status == ORTCRYPT_OK && !oc_stream_plain_len(object->size, &plain)) {
        char path[OC_OBJECT_PATH_SIZE];
        oc_object_path(path, object->name);
        status = oc_fail(&error, ORTCRYPT_E_NOT_AUTHENTIC, "%s/%s has a length that no object has", oc_store_path(store), path);
    }
    if (status == ORTCRYPT_OK) {
        run->checked_count++;
        run->checked_len += object->size;
    } else if (is_damage(status)) {
        json_t *const item = json_object();
        oc_report_put(&run->report, item, "object", oc_report_hex(object->name, OC_LEAF_LEN));
        note_damage(run, item, status, &error);
    } else {
        if (err != NULL) {
            *err = error;
        }
        return status;
    }
    return oc_progress_sum_add(&run->sum, object->size, err);
}

static ortcrypt_status check_storage(verification *run, const oc_store *store, const ortcrypt_monitor *monitor,
                                     ortcrypt_error *err)
{
    ortcrypt_status status = oc_progress_sum_start(&run->sum, monitor, "checking", run->storage.object_len, err);

    if (run->storage.key_status != ORTCRYPT_OK) {
        json_t *const item = json_object();
        oc_report_put(&run->report, item, "file", json_string("key file"));
        note_damage(run, item, run->storage.key_status, &run->storage.key_error);
    }
    for (size_t i = 0; status == ORTCRYPT_OK && i < run->storage.object_count; i++) {
        status = check_object(run, store, &run->storage.objects[i], err);
    }
    return status;
}

/* Which parts a damaged asset takes with it. */
static json_t *asset_parts(verification *run, const oc_asset *asset)
{
    const oc_manifest *const manifest = run->bundle->manifest;
    json_t *const parts = json_array();

    for (size_t i = 0; i < manifest->variant_count; i++) {
        const oc_variant *const variant = &manifest->variants[i];
        for (size_t k = 0; k < variant->part_count; k++) {
            if (memcmp(variant->parts[k].asset, asset->id, OC_ASSET_ID_LEN) == 0) {
                json_t *const part = json_object();
                oc_report_put(&run->report, part, "variant", oc_report_text(variant->id));
                oc_report_put(&run->report, part, "role", json_string(oc_role_text(variant->parts[k].role)));
                oc_report_put(&run->report, part, "name", oc_report_text(variant->parts[k].name));
                oc_report_add(&run->report, parts, part);
            }
        }
    }
    return parts;
}

static ortcrypt_status drop_plain(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    (void)state;
    (void)data;
    (void)len;
    (void)err;
    return ORTCRYPT_OK;
}

static ortcrypt_status check_asset(verification *run, const oc_asset *asset, ortcrypt_error *err)
{
    ortcrypt_error error = ORTCRYPT_ERROR_INIT;

    const ortcrypt_status status = oc_bundle_stream(run->bundle, asset, drop_plain, NULL, &run->sum.monitor, &error);
    if (status == ORTCRYPT_OK) {
        run->checked_count++;
        run->checked_len += asset->size;
    } else if (is_damage(status)) {
        json_t *const item = json_object();
        oc_report_put(&run->report, item, "asset", oc_report_hex(asset->id, OC_ASSET_ID_LEN));
        oc_report_put(&run->report, item, "object", oc_report_hex(asset->object, OC_LEAF_LEN));
        oc_report_put(&run->report, item, "parts", asset_parts(run, asset));
        note_damage(run, item, status, &error);
    } else {
        if (err != NULL) {
            *err = error;
        }
        return status;
    }
    return oc_progress_sum_add(&run->sum, asset->size, err);
}

static int by_object(const void *a, const void *b)
{
    return memcmp(a, b, OC_LEAF_LEN);
}

/* Objects that the manifest does not name: leftovers of an interrupted writer, or put there by somebody. Harmless, and said. */
static ortcrypt_status note_unreferenced(verification *run, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    const oc_manifest *const manifest = run->bundle->manifest;
    json_t *const list = json_array();
    size_t count = 0;

    uint8_t(*const named)[OC_LEAF_LEN] = calloc(manifest->asset_count + 1, OC_LEAF_LEN);
    if (named == NULL) {
        json_decref(list);
        return oc_fail_memory(err, manifest->asset_count, "the list of objects");
    }
    for (size_t i = 0; i < manifest->asset_count; i++) {
        memcpy(named[i], manifest->assets[i].object, OC_LEAF_LEN);
    }
    qsort(named, manifest->asset_count, OC_LEAF_LEN, by_object);
    for (size_t i = 0; i < run->storage.object_count; i++) {
        const uint8_t *const name = run->storage.objects[i].name;
        if (bsearch(name, named, manifest->asset_count, OC_LEAF_LEN, by_object) == NULL) {
            oc_report_add(&run->report, list, oc_report_hex(name, OC_LEAF_LEN));
            count++;
        }
    }
    free(named);
    oc_report_put(&run->report, run->report.top, "unreferenced", list);
    if (count != 0) {
        oc_notice(monitor, "%zu object%s in the bundle belong%s to no asset of its manifest; they were not checked", count,
                  count == 1 ? "" : "s", count == 1 ? "s" : "");
    }
    return ORTCRYPT_OK;
}

/* `limited`: the caller has set the longest asset himself. */
static ortcrypt_status check_assets(verification *run, bool limited, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    const oc_manifest *const manifest = run->bundle->manifest;
    uint64_t total = 0;

    for (size_t i = 0; i < manifest->asset_count; i++) {
        total += manifest->assets[i].size;
    }
    oc_bundle_require_leaves(run->bundle);
    if (!limited) {
        run->bundle->max_asset_len = UINT64_MAX; /* assets stream by: memory is no limit */
    }
    ortcrypt_status status = oc_progress_sum_start(&run->sum, monitor, "verifying", total, err);
    for (size_t i = 0; status == ORTCRYPT_OK && i < manifest->asset_count; i++) {
        status = check_asset(run, &manifest->assets[i], err);
    }
    return status == ORTCRYPT_OK ? note_unreferenced(run, monitor, err) : status;
}

/* Extensions that decrypt would refuse are refused here too: what verifies must decrypt. A bundle may have no source. */
static ortcrypt_status check_names(const verification *run, ortcrypt_error *err)
{
    oc_decrypt_list list = {0};
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;
    const ortcrypt_status status = oc_decrypt_list_make(&list, run->bundle->manifest, &reason);

    oc_decrypt_list_free(&list);
    if (status == ORTCRYPT_OK || status == ORTCRYPT_E_NOT_FOUND) {
        return ORTCRYPT_OK;
    }
    if (err != NULL) {
        *err = reason;
    }
    return status;
}

static void write_report(verification *run)
{
    oc_report *const report = &run->report;
    json_t *const proven = json_array();
    json_t *const not_proven = json_array();
    json_t *const checked = json_object();
    const bool with_key = run->bundle != NULL;
    const bool intact = run->damaged_count == 0;

    oc_report_put(report, report->top, "with_key", json_boolean(with_key));
    oc_report_put(report, report->top, "status", json_string(intact ? "ok" : ortcrypt_status_name(run->first)));
    oc_report_put(report, checked, with_key ? "assets" : "objects", oc_report_number(run->checked_count));
    oc_report_put(report, checked, "len", oc_report_number(run->checked_len));
    oc_report_put(report, report->top, "checked", checked);
    if (intact && with_key) {
        oc_report_add(report, proven, json_string("manifest and every asset were written by a holder of the bundle key and are unaltered"));
    } else if (intact) {
        oc_report_add(report, proven, json_string("every object that is here has the content that its name says"));
        oc_report_add(report, proven, json_string("the key file is an age file"));
    }
    if (!with_key) {
        oc_report_add(report, not_proven, json_string("authenticity not checked: no key"));
        oc_report_add(report, not_proven, json_string("completeness not checked: the list of objects is encrypted"));
    }
    oc_report_add(report, not_proven, json_string("who wrote the bundle: no signature was checked"));
    oc_report_put(report, report->top, "damaged", json_incref(run->damaged));
    oc_report_put(report, report->top, "proven", proven);
    oc_report_put(report, report->top, "not_proven", not_proven);
}

/* The first damage is the call's error; the others are counted. */
static ortcrypt_status damage_found(const verification *run, ortcrypt_error *err)
{
    if (run->damaged_count == 0) {
        return ORTCRYPT_OK;
    }
    if (err != NULL) {
        *err = run->first_error;
        if (run->damaged_count > 1) {
            (void)oc_fail(err, run->first, "%s (and %zu more damaged)", run->first_error.message, run->damaged_count - 1);
            err->sys_errno = run->first_error.sys_errno;
            oc_at(err, run->first_error.offset, run->first_error.asset);
            oc_hint(err, "%s", run->first_error.hint);
        }
    }
    return run->first;
}

ortcrypt_status ortcrypt_bundle_verify(const char *path, const ortcrypt_keyring *keyring,
                                       const ortcrypt_open_options *options, char **json, ortcrypt_error *err)
{
    verification run = {.storage = {.key_error = ORTCRYPT_ERROR_INIT}, .first_error = ORTCRYPT_ERROR_INIT};
    ortcrypt_open_options given;
    oc_open_params params;
    oc_store *store = NULL;
    char *text = NULL;

    if (path == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_bundle_verify needs a path");
    }
    if (json != NULL) {
        *json = NULL;
    }
    ortcrypt_status status = oc_options_copy(&given, sizeof given, options, "ortcrypt_open_options", err);
    if (status == ORTCRYPT_OK) {
        status = oc_open_params_read(&params, options, err);
    }
    if (status == ORTCRYPT_OK && keyring == NULL) {
        status = oc_store_open(&store, path, err);
    } else if (status == ORTCRYPT_OK) {
        status = ortcrypt_bundle_open(&run.bundle, path, keyring, options, err);
    }
    if (status == ORTCRYPT_OK) {
        status = run.bundle == NULL ? oc_storage_look(&run.storage, store, NULL, err)
                                    : oc_storage_look(&run.storage, run.bundle->store, run.bundle->manifest_id, err);
    }
    if (status == ORTCRYPT_OK && run.bundle == NULL) {
        status = oc_storage_demand(&run.storage, store, &params, err);
    }
    if (status == ORTCRYPT_OK && run.bundle != NULL) {
        status = check_names(&run, err);
    }
    if (status != ORTCRYPT_OK) {
        goto out;
    }
    oc_report_start(&run.report);
    oc_storage_json(&run.storage, path, &run.report);
    run.damaged = json_array();
    status = run.bundle == NULL ? check_storage(&run, store, params.monitor, err)
                                : check_assets(&run, given.max_asset_len != 0, params.monitor, err);
    if (status == ORTCRYPT_OK) {
        write_report(&run);
        status = oc_report_finish(&run.report, &text, err);
    }
    if (status == ORTCRYPT_OK) {
        status = damage_found(&run, err);
    }
    if (json != NULL) {
        *json = text;
        text = NULL;
    }
out:
    free(text);
    json_decref(run.damaged);
    oc_report_free(&run.report);
    oc_storage_free(&run.storage);
    oc_store_close(store);
    oc_bundle_free(run.bundle);
    return status;
}
