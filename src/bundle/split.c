/*
 * bundle/split.c: the x-split member, and the original model from the split one, its weights and the recipe.
 * The three assets are read at random places, one authenticated piece of each in memory at a time.
 */
#include "bundle/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/recipe.h"

ortcrypt_status oc_extension_fail(const oc_variant *variant, const char *key, const char *what, ortcrypt_error *err)
{
    return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the manifest is not valid: %s of variant %s is not %s", key, variant->id,
                   what);
}

ortcrypt_status oc_extension_load(json_t **json, const char *raw, ortcrypt_error *err)
{
    *json = json_loads(raw, JSON_DECODE_ANY, NULL);
    return *json != NULL ? ORTCRYPT_OK : oc_fail_memory(err, strlen(raw), "an extension of the manifest");
}

const oc_asset *oc_extension_asset(const oc_manifest *manifest, const json_t *id)
{
    uint8_t bytes[OC_ASSET_ID_LEN];

    if (!json_is_string(id) || !oc_hex_decode(bytes, sizeof bytes, json_string_value(id), json_string_length(id))) {
        return NULL;
    }
    return oc_manifest_find_asset(manifest, bytes);
}

static bool is_external_part(const oc_variant *variant, const oc_asset *asset)
{
    for (size_t i = 0; i < variant->part_count; i++) {
        if (variant->parts[i].role == OC_ROLE_EXTERNAL && memcmp(variant->parts[i].asset, asset->id, OC_ASSET_ID_LEN) == 0) {
            return true;
        }
    }
    return false;
}

ortcrypt_status oc_split_read(oc_split *out, const oc_manifest *manifest, const oc_variant *variant, ortcrypt_error *err)
{
    const char *const raw = oc_pair_get(variant->extensions, variant->extension_count, OC_SPLIT_MEMBER);
    oc_split split = {0};
    json_t *json = NULL;

    *out = split;
    if (raw == NULL) {
        return ORTCRYPT_OK;
    }
    const ortcrypt_status st = oc_extension_load(&json, raw, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const json_t *const size = json_object_get(json, "size");
    const json_t *const sha256 = json_object_get(json, "sha256");
    split.weights = oc_extension_asset(manifest, json_object_get(json, "weights"));
    split.recipe = oc_extension_asset(manifest, json_object_get(json, "recipe"));
    split.size = json_is_integer(size) && json_integer_value(size) > 0 ? (uint64_t)json_integer_value(size) : 0;
    const bool valid = json_object_size(json) == 4 && split.weights != NULL && split.recipe != NULL && split.size != 0 &&
                       split.size <= INT32_MAX && json_is_string(sha256) &&
                       oc_hex_decode(split.sha256, sizeof split.sha256, json_string_value(sha256), json_string_length(sha256)) &&
                       is_external_part(variant, split.weights) &&
                       oc_pair_get(variant->extensions, variant->extension_count, "x-original") == NULL;
    json_decref(json);
    if (!valid) {
        return oc_extension_fail(variant, OC_SPLIT_MEMBER, "weights of this variant, a recipe, a size and a hash", err);
    }
    *out = split;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_split_print(char **out, const uint8_t weights[OC_ASSET_ID_LEN], const uint8_t recipe[OC_ASSET_ID_LEN],
                               uint64_t size, const uint8_t sha256[OC_SHA256_LEN], ortcrypt_error *err)
{
    char ids[2][2 * OC_ASSET_ID_LEN + 1];
    char hash[2 * OC_SHA256_LEN + 1];
    char text[320];

    oc_hex_encode(ids[0], weights, OC_ASSET_ID_LEN);
    oc_hex_encode(ids[1], recipe, OC_ASSET_ID_LEN);
    oc_hex_encode(hash, sha256, OC_SHA256_LEN);
    (void)snprintf(text, sizeof text, "{\"weights\":\"%s\",\"recipe\":\"%s\",\"size\":%" PRIu64 ",\"sha256\":\"%s\"}", ids[0],
                   ids[1], size, hash);
    return oc_strdup(out, text, err);
}

typedef struct hashing_push {
    oc_sha256_ctx *hash;
    oc_push_fn push;
    void *state;
} hashing_push;

static ortcrypt_status push_hashed(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    const hashing_push *const to = state;

    const ortcrypt_status st = oc_sha256_update(to->hash, OC_SPAN(data, len), err);
    return st == ORTCRYPT_OK ? to->push(to->state, data, len, err) : st;
}

ortcrypt_status oc_split_restore(ortcrypt_bundle *bundle, const oc_asset *model, const oc_split *split, oc_push_fn push,
                                 void *push_state, uint8_t sha256[OC_SHA256_LEN], ortcrypt_error *err)
{
    const oc_asset *const assets[3] = {split->recipe, model, split->weights};
    oc_asset_reader *readers[3] = {NULL};
    oc_source sources[3];
    hashing_push to = {.push = push, .state = push_state};

    ortcrypt_status st = oc_sha256_new(&to.hash, err);
    for (size_t i = 0; st == ORTCRYPT_OK && i < 3; i++) {
        st = oc_asset_reader_open(&readers[i], bundle, assets[i], err);
        if (st == ORTCRYPT_OK) {
            sources[i] = oc_asset_reader_source(readers[i]);
        }
    }
    if (st == ORTCRYPT_OK) {
        st = oc_recipe_apply(&sources[0], &sources[1], &sources[2], split->size, push_hashed, &to, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_final(to.hash, sha256, err);
    }
    for (size_t i = 0; i < 3; i++) {
        oc_asset_reader_close(readers[i]);
    }
    oc_sha256_free(to.hash);
    return st;
}
