/* Files of a source variant: the model under its own name with its own bytes, the rest under the names of the parts. */
#include "bundle/decrypt_names.h"

#include <stdlib.h>
#include <string.h>

#include "bundle/decrypt_outdir.h"

#define DEFAULT_MODEL_NAME "model.onnx"

static const oc_variant *find_source(const oc_manifest *manifest)
{
    for (size_t i = 0; i < manifest->variant_count; i++) {
        if (strcmp(manifest->variants[i].kind, "source") == 0) {
            return &manifest->variants[i];
        }
    }
    return NULL;
}

static ortcrypt_status read_model_name(char **name, const oc_variant *variant, ortcrypt_error *err)
{
    const char *const raw = oc_pair_get(variant->extensions, variant->extension_count, "x-file-name");
    if (raw == NULL) {
        return oc_strdup(name, DEFAULT_MODEL_NAME, err);
    }
    json_t *json = NULL;
    ortcrypt_status status = oc_extension_load(&json, raw, err);
    if (status != ORTCRYPT_OK) {
        return status;
    }
    if (!json_is_string(json) || !oc_name_valid(json_string_value(json), json_string_length(json))) {
        status = oc_extension_fail(variant, "x-file-name", "a file name", err);
    } else {
        status = oc_strdup(name, json_string_value(json), err);
    }
    json_decref(json);
    return status;
}

/* *asset stays as it is when there is no x-original. */
static ortcrypt_status read_original(const oc_asset **asset, const oc_manifest *manifest, const oc_variant *variant,
                                     ortcrypt_error *err)
{
    const char *const raw = oc_pair_get(variant->extensions, variant->extension_count, "x-original");

    if (raw == NULL) {
        return ORTCRYPT_OK;
    }
    json_t *json = NULL;
    const ortcrypt_status status = oc_extension_load(&json, raw, err);
    if (status != ORTCRYPT_OK) {
        return status;
    }
    const oc_asset *const found =
        json_object_size(json) == 1 ? oc_extension_asset(manifest, json_object_get(json, "asset")) : NULL;
    json_decref(json);
    if (found == NULL) {
        return oc_extension_fail(variant, "x-original", "an asset of this bundle", err);
    }
    *asset = found;
    return ORTCRYPT_OK;
}

/* Rank of a part: what is placed first keeps its name. */
static int rank(oc_role role)
{
    return role == OC_ROLE_MODEL ? 1 : role == OC_ROLE_EXTRA ? 2 : 0;
}

static ortcrypt_status add_item(oc_decrypt_list *list, const oc_manifest *manifest, const oc_variant *variant,
                                const oc_part *part, ortcrypt_error *err)
{
    oc_decrypt_item *const item = &list->items[list->count];
    uint64_t len = 0;
    ortcrypt_status status = ORTCRYPT_OK;

    if (part->role == OC_ROLE_EXTERNAL && list->split.weights != NULL &&
        memcmp(part->asset, list->split.weights->id, OC_ASSET_ID_LEN) == 0) {
        return ORTCRYPT_OK; /* no file of the original: it goes back into the model */
    }
    *item = (oc_decrypt_item){.asset = oc_manifest_find_asset(manifest, part->asset), .name = part->name, .role = part->role};
    if (part->role == OC_ROLE_MODEL) {
        item->name = list->model_name;
        item->split = list->split.weights != NULL;
        status = read_original(&item->asset, manifest, variant, err);
    }
    if (status == ORTCRYPT_OK && item->asset == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the manifest is not valid: a part of variant %s names no asset",
                       variant->id);
    }
    if (status != ORTCRYPT_OK) {
        return status;
    }
    item->plain = oc_outdir_name_plain(item->name) && (part->role != OC_ROLE_MODEL || strchr(item->name, '/') == NULL);
    len = item->split ? list->split.size : item->asset->size;
    if (!oc_add_u64(list->total_len, len, &list->total_len)) {
        list->total_len = UINT64_MAX; /* more than there is room for anywhere */
    }
    list->count++;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_decrypt_list_make(oc_decrypt_list *out, const oc_manifest *manifest, ortcrypt_error *err)
{
    oc_decrypt_list list = {0};
    const oc_variant *const variant = find_source(manifest);

    *out = list;
    if (variant == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the bundle has no source variant, only compiled ones");
    }
    ortcrypt_status status = read_model_name(&list.model_name, variant, err);
    if (status == ORTCRYPT_OK) {
        status = oc_split_read(&list.split, manifest, variant, err);
    }
    if (status == ORTCRYPT_OK) {
        list.items = calloc(variant->part_count + 1, sizeof *list.items);
        status = list.items != NULL ? ORTCRYPT_OK : oc_fail_memory(err, variant->part_count, "the list of files");
    }
    for (int pass = 0; pass <= 2; pass++) {
        for (size_t i = 0; status == ORTCRYPT_OK && i < variant->part_count; i++) {
            if (rank(variant->parts[i].role) == pass) {
                status = add_item(&list, manifest, variant, &variant->parts[i], err);
            }
        }
    }
    if (status != ORTCRYPT_OK) {
        oc_decrypt_list_free(&list);
        return status;
    }
    *out = list;
    return ORTCRYPT_OK;
}

void oc_decrypt_list_free(oc_decrypt_list *list)
{
    free(list->items);
    free(list->model_name);
    *list = (oc_decrypt_list){0};
}
