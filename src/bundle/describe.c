/*
 * ortcrypt_bundle_describe: what is visible of a bundle, as JSON; with a keyring the manifest's content too.
 * The store (or the open bundle, which owns it) -> oc_storage -> JSON, whose text the caller frees.
 */
#include <string.h>

#include "bundle/describe_storage.h"

/* Lines of text ending with newlines, as the key file's recipients are kept. */
static json_t *lines_json(oc_report *json, const char *lines)
{
    json_t *const array = json_array();

    for (const char *at = lines == NULL ? "" : lines; *at != '\0';) {
        const size_t len = strcspn(at, "\n");
        oc_report_add(json, array, json_stringn(at, len));
        at += len;
        at += *at == '\n';
    }
    return array;
}

static json_t *pairs_json(oc_report *json, const oc_pair *pairs, size_t count)
{
    json_t *const object = json_object();

    for (size_t i = 0; i < count; i++) {
        oc_report_put(json, object, pairs[i].key, oc_report_text(pairs[i].value));
    }
    return object;
}

static json_t *parts_json(oc_report *json, const oc_manifest *manifest, const oc_variant *variant)
{
    json_t *const parts = json_array();

    for (size_t i = 0; i < variant->part_count; i++) {
        const oc_part *const part = &variant->parts[i];
        const oc_asset *const asset = oc_manifest_find_asset(manifest, part->asset);
        json_t *const item = json_object();
        oc_report_put(json, item, "role", json_string(oc_role_text(part->role)));
        oc_report_put(json, item, "name", oc_report_text(part->name));
        oc_report_put(json, item, "asset", oc_report_hex(part->asset, OC_ASSET_ID_LEN));
        oc_report_put(json, item, "len", oc_report_number(asset == NULL ? 0 : asset->size));
        oc_report_add(json, parts, item);
    }
    return parts;
}

static json_t *variant_json(oc_report *json, const oc_manifest *manifest, const oc_variant *variant)
{
    const struct {
        const char *key;
        const char *value;
    } texts[] = {{"ep", variant->ep},
                 {"ep_version", variant->ep_version},
                 {"runtime", variant->runtime},
                 {"device", variant->device},
                 {"compatibility", variant->compatibility}};
    json_t *const item = json_object();

    oc_report_put(json, item, "id", oc_report_text(variant->id));
    oc_report_put(json, item, "kind", oc_report_text(variant->kind));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].value != NULL) {
            oc_report_put(json, item, texts[i].key, oc_report_text(texts[i].value));
        }
    }
    if (variant->option_count != 0) {
        oc_report_put(json, item, "options", pairs_json(json, variant->options, variant->option_count));
    }
    if (variant->embed >= 0) {
        oc_report_put(json, item, "embed", json_integer(variant->embed));
    }
    if (variant->verified >= 0) {
        oc_report_put(json, item, "verified", json_boolean(variant->verified));
    }
    for (size_t i = 0; i < variant->extension_count; i++) {
        const oc_pair *const member = &variant->extensions[i];
        oc_report_put(json, item, member->key, json_loads(member->value, JSON_DECODE_ANY, NULL));
    }
    oc_report_put(json, item, "parts", parts_json(json, manifest, variant));
    oc_report_put(json, item, "tensor_count", oc_report_number(variant->tensor_count));
    return item;
}

static void bundle_json(oc_report *json, const ortcrypt_bundle *bundle)
{
    const oc_manifest *const manifest = bundle->manifest;
    json_t *const variants = json_array();
    ortcrypt_bundle_info info;

    oc_bundle_fill_info(bundle, &info);
    oc_report_put(json, json->top, "bundle_id", json_string(info.bundle_id));
    oc_report_put(json, json->top, "sequence", oc_report_number(info.sequence));
    oc_report_put(json, json->top, "creator", oc_report_text(manifest->creator));
    oc_report_put(json, json->top, "labels", pairs_json(json, manifest->labels, manifest->label_count));
    oc_report_put(json, json->top, "recipients", lines_json(json, bundle->recipients));
    oc_report_put(json, json->top, "asset_count", oc_report_number(info.asset_count));
    oc_report_put(json, json->top, "plain_len", oc_report_number(info.plain_len));
    for (size_t i = 0; i < manifest->variant_count; i++) {
        oc_report_add(json, variants, variant_json(json, manifest, &manifest->variants[i]));
    }
    oc_report_put(json, json->top, "variants", variants);
}

ortcrypt_status ortcrypt_bundle_describe(const char *path, const ortcrypt_keyring *keyring,
                                         const ortcrypt_open_options *options, char **json, ortcrypt_error *err)
{
    oc_store *store = NULL; /* without a key */
    ortcrypt_bundle *bundle = NULL;
    oc_storage storage = {.key_error = ORTCRYPT_ERROR_INIT};
    oc_report report = {0};
    oc_open_params params;

    if (path == NULL || json == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_bundle_describe needs a path and a place for the text");
    }
    *json = NULL;
    ortcrypt_status status = oc_open_params_read(&params, options, err);
    if (status == ORTCRYPT_OK && keyring == NULL) {
        status = oc_store_open(&store, path, err);
    } else if (status == ORTCRYPT_OK) {
        status = ortcrypt_bundle_open(&bundle, path, keyring, options, err);
    }
    if (status == ORTCRYPT_OK) {
        status = bundle == NULL ? oc_storage_look(&storage, store, NULL, err)
                                : oc_storage_look(&storage, bundle->store, bundle->manifest_id, err);
    }
    if (status == ORTCRYPT_OK && bundle == NULL) {
        status = oc_storage_demand(&storage, store, &params, err);
    }
    if (status == ORTCRYPT_OK) {
        oc_report_start(&report);
        oc_storage_json(&storage, path, &report);
        if (bundle != NULL) {
            bundle_json(&report, bundle);
        }
        status = oc_report_finish(&report, json, err);
    }
    oc_report_free(&report);
    oc_storage_free(&storage);
    oc_store_close(store);
    oc_bundle_free(bundle);
    return status;
}
