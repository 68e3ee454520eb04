/* bundle/info.c: what an open bundle says of itself; small shared helpers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/internal.h"

const oc_manifest *oc_bundle_manifest(const ortcrypt_bundle *bundle)
{
    return bundle->manifest;
}

void oc_bundle_hold(ortcrypt_bundle *bundle)
{
    atomic_fetch_add(&bundle->holds, 1);
}

void oc_bundle_release(ortcrypt_bundle *bundle)
{
    atomic_fetch_sub(&bundle->holds, 1);
}

void oc_bundle_require_leaves(ortcrypt_bundle *bundle)
{
    atomic_store(&bundle->check_leaves, true);
}

ortcrypt_status oc_fail_in(ortcrypt_status status, const char *what, ortcrypt_error *err)
{
    if (err != NULL) {
        char sentence[sizeof err->message];
        char hint[sizeof err->hint];
        char asset[sizeof err->asset];
        const int cause = err->sys_errno;
        const uint64_t offset = err->offset;
        memcpy(sentence, err->message, sizeof sentence);
        memcpy(hint, err->hint, sizeof hint);
        memcpy(asset, err->asset, sizeof asset);
        (void)oc_fail(err, status, "%s: %s", what, sentence);
        err->sys_errno = cause;
        oc_at(err, offset, asset);
        if (hint[0] != '\0') {
            oc_hint(err, "%s", hint);
        }
    }
    return status;
}

void oc_bundle_fill_info(const ortcrypt_bundle *bundle, ortcrypt_bundle_info *info)
{
    const oc_manifest *const manifest = bundle->manifest;
    memset(info, 0, sizeof *info);
    oc_hex_encode(info->bundle_id, manifest->bundle_id, OC_BUNDLE_ID_LEN);
    oc_hex_encode(info->manifest_id, bundle->manifest_id, OC_MANIFEST_ID_LEN);
    info->sequence = manifest->sequence;
    info->asset_count = manifest->asset_count;
    info->variant_count = manifest->variant_count;
    for (size_t i = 0; i < manifest->asset_count; i++) {
        info->plain_len += manifest->assets[i].size;
    }
}

void ortcrypt_bundle_get_info(const ortcrypt_bundle *bundle, ortcrypt_bundle_info *info)
{
    if (bundle != NULL && info != NULL) {
        oc_bundle_fill_info(bundle, info);
    }
}

static const char *text(const char *value)
{
    return value == NULL ? "" : value;
}

/* Notes an asset once: its index in the manifest's list is its place in `seen`. */
static void count_asset(const oc_manifest *manifest, bool *seen, const uint8_t id[OC_ASSET_ID_LEN], uint64_t *sum)
{
    const oc_asset *const asset = oc_manifest_find_asset(manifest, id);
    if (asset != NULL && !seen[asset - manifest->assets]) {
        seen[asset - manifest->assets] = true;
        *sum += asset->size;
    }
}

static ortcrypt_status variant_len(const oc_manifest *manifest, const oc_variant *variant, uint64_t *sum, ortcrypt_error *err)
{
    bool *const seen = calloc(manifest->asset_count + 1, sizeof *seen);
    if (seen == NULL) {
        return oc_fail_memory(err, manifest->asset_count, "a variant's assets");
    }
    *sum = 0;
    for (size_t i = 0; i < variant->part_count; i++) {
        count_asset(manifest, seen, variant->parts[i].asset, sum);
    }
    for (size_t i = 0; i < variant->tensor_count; i++) {
        count_asset(manifest, seen, variant->tensors[i].asset, sum);
    }
    free(seen);
    return ORTCRYPT_OK;
}

ortcrypt_status ortcrypt_bundle_get_variant(const ortcrypt_bundle *bundle, size_t index, ortcrypt_variant_info *info,
                                            ortcrypt_error *err)
{
    if (bundle == NULL || info == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_bundle_get_variant needs bundle and info");
    }
    const oc_manifest *const manifest = bundle->manifest;
    if (index >= manifest->variant_count) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "%s has %zu variants; there is no number %zu", oc_store_path(bundle->store),
                       manifest->variant_count, index);
    }
    const oc_variant *const v = &manifest->variants[index];
    uint64_t plain_len = 0;
    ortcrypt_status st = variant_len(manifest, v, &plain_len, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    *info = (ortcrypt_variant_info){
        .id = text(v->id),
        .kind = text(v->kind),
        .ep = text(v->ep),
        .ep_version = text(v->ep_version),
        .runtime = text(v->runtime),
        .compatibility = text(v->compatibility),
        .embed = v->embed,
        .verified = v->verified != 0,
        .part_count = v->part_count,
        .tensor_count = v->tensor_count,
        .plain_len = plain_len,
    };
    return ORTCRYPT_OK;
}

/* Extra files belong to the source variant; another one that has a file of that name is second best. */
static const oc_part *find_extra(const oc_manifest *manifest, const char *name)
{
    const oc_part *found = NULL;
    for (size_t i = 0; i < manifest->variant_count; i++) {
        const oc_variant *const variant = &manifest->variants[i];
        const oc_part *const part = oc_variant_find_part(variant, OC_ROLE_EXTRA, name);
        if (part != NULL && strcmp(text(variant->kind), "source") == 0) {
            return part;
        }
        found = found == NULL ? part : found;
    }
    return found;
}

ortcrypt_status ortcrypt_bundle_read_extra(ortcrypt_bundle *bundle, const char *name, void **data, uint64_t *len,
                                           ortcrypt_error *err)
{
    if (bundle == NULL || name == NULL || data == NULL || len == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_bundle_read_extra needs bundle, name, data and len");
    }
    *data = NULL;
    *len = 0;
    const oc_part *const part = find_extra(bundle->manifest, name);
    const oc_asset *const asset = part == NULL ? NULL : oc_manifest_find_asset(bundle->manifest, part->asset);
    if (asset == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "%s has no extra file \"%s\"", oc_store_path(bundle->store), name);
    }
    size_t size = 0;
    ortcrypt_status st = oc_len(asset->size, bundle->max_asset_len, name, &size, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    void *const buffer = size == 0 ? NULL : malloc(size);
    if (size != 0 && buffer == NULL) {
        return oc_fail_memory(err, size, name);
    }
    st = oc_bundle_read(bundle, asset, buffer, NULL, err);
    if (st != ORTCRYPT_OK) {
        free(buffer);
        return st;
    }
    *data = buffer;
    *len = size;
    return ORTCRYPT_OK;
}
