/* Scanning a variant's model, decrypting its external files and handing them and the model to ONNX Runtime. */
#include <stdlib.h>
#include <string.h>

#include "flow/supply.h"

/* The file of a part, made when new: *file is its index. */
static ortcrypt_status find_file(size_t *file, oc_supply *supply, const oc_part *part, ortcrypt_error *err)
{
    for (size_t j = supply->file_count; j-- > 0;) { /* newest first: tensors of one file stand together */
        if (supply->files[j].part == part) {
            *file = j;
            return ORTCRYPT_OK;
        }
    }
    const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(supply->bundle), part->asset);
    if (asset == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is no asset of the bundle", part->name);
    }
    *file = supply->file_count++;
    supply->files[*file] = (oc_supply_file){part, *asset, oc_location_bare(part->name), NULL, NULL, 0};
    return ORTCRYPT_OK;
}

static ortcrypt_status list_files(oc_supply *supply, ortcrypt_error *err)
{
    const oc_onnx_model *const onnx = supply->onnx;
    ortcrypt_status st = ORTCRYPT_OK;

    supply->files = calloc(supply->variant->part_count + 1, sizeof(*supply->files));
    supply->edits = calloc(onnx->tensor_count + 1, sizeof(*supply->edits));
    supply->tensor_files = calloc(onnx->tensor_count + 1, sizeof(*supply->tensor_files));
    if (supply->files == NULL || supply->edits == NULL || supply->tensor_files == NULL) {
        return oc_fail_memory(err, (onnx->tensor_count + 1) * sizeof(*supply->edits), "the list of external files");
    }
    for (size_t i = 0; i < onnx->tensor_count && st == ORTCRYPT_OK; i++) {
        const oc_onnx_tensor *const tensor = &onnx->tensors[i];
        if (!tensor->external) {
            continue;
        }
        st = find_file(&supply->tensor_files[i], supply, oc_cover_part(supply->variant, tensor->location), err); /* there: the cover was checked */
        if (st == ORTCRYPT_OK && oc_location_bare(tensor->location) != tensor->location) {
            supply->edits[supply->edit_count++] =
                (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_RELOCATE, .location = oc_location_bare(tensor->location),
                               .offset = tensor->offset, .length = tensor->length};
        }
    }
    supply->name_count = supply->file_count;
    return st;
}

ortcrypt_status oc_supply_open(oc_supply **out, ortcrypt_bundle *bundle, const oc_variant *variant, ortcrypt_error *err)
{
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_part *const part = oc_variant_find_part(variant, OC_ROLE_MODEL, "");
    oc_asset_reader *reader = NULL;
    oc_supply *supply = calloc(1, sizeof(*supply));
    ortcrypt_status st = ORTCRYPT_OK;

    if (supply == NULL) {
        return oc_fail_memory(err, sizeof(*supply), "loading");
    }
    supply->bundle = bundle;
    supply->variant = variant;
    const oc_asset *const model = part != NULL ? oc_manifest_find_asset(manifest, part->asset) : NULL;
    if (model == NULL) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "variant %s has no model", variant->id);
        goto out;
    }
    supply->model = *model;
    st = oc_asset_reader_open(&reader, bundle, &supply->model, err);
    if (st == ORTCRYPT_OK) {
        const oc_source source = oc_asset_reader_source(reader);
        st = oc_onnx_scan(&supply->onnx, &source, "the model of the bundle", err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_cover_check(supply->onnx, manifest, variant, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_onnx_keep_namesakes(supply->onnx, err);
    }
    if (st == ORTCRYPT_OK) {
        st = list_files(supply, err);
    }
    if (st == ORTCRYPT_OK) {
        *out = supply;
        supply = NULL;
    }
out:
    if (reader != NULL) {
        oc_asset_reader_close(reader);
    }
    oc_supply_free(supply);
    return st;
}

void oc_supply_drop_files(oc_supply *supply)
{
    for (size_t i = 0; i < supply->file_count; i++) {
        oc_bundle_unshare(supply->bundle, supply->files[i].shared);
        supply->files[i].shared = NULL;
        supply->files[i].data = NULL;
    }
    oc_region_free(&supply->small);
    oc_asset_pages_close(supply->pages);
    supply->pages = NULL;
    supply->model_data = NULL;
}

void oc_supply_free(oc_supply *supply)
{
    if (supply == NULL) {
        return;
    }
    oc_supply_drop_files(supply);
    if (supply->onnx != NULL) {
        oc_onnx_model_free(supply->onnx);
    }
    oc_put_back_free(supply->put_back);
    free(supply->files);
    free(supply->tensor_files);
    free(supply->edits);
    free(supply);
}

uint64_t oc_supply_len(const oc_supply *supply)
{
    uint64_t sum = supply->model.size;

    for (size_t i = 0; i < supply->file_count; i++) {
        if (!oc_add_u64(sum, supply->files[i].asset.size, &sum)) {
            return UINT64_MAX;
        }
    }
    return sum;
}

uint64_t oc_supply_files_len(const oc_supply *supply) { return oc_supply_len(supply) - supply->model.size; }

ortcrypt_status oc_supply_load(oc_supply *supply, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    for (size_t i = 0; i < supply->file_count && st == ORTCRYPT_OK; i++) {
        oc_supply_file *const file = &supply->files[i];
        st = oc_bundle_share(&file->shared, supply->bundle, &file->asset, monitor, err);
        if (st == ORTCRYPT_OK) {
            file->data = oc_shared_data(file->shared);
            file->len = (size_t)file->asset.size;
        }
    }
    if (st != ORTCRYPT_OK) {
        oc_supply_drop_files(supply);
    }
    return st;
}

bool oc_supply_aligned(const oc_supply *supply)
{
    static const uint64_t one = 1;

    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        uint64_t element_len = 0;
        if (tensor->external && oc_onnx_tensor_len(tensor->dtype, &one, 1, &element_len) && tensor->offset % element_len != 0) {
            return false;
        }
    }
    return true;
}

ortcrypt_status oc_supply_add(const oc_supply *supply, const ortcrypt_runtime *runtime, OrtSessionOptions *options,
                              bool direct, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    const size_t count = supply->file_count;
    const char **names = calloc(count + 1, sizeof(*names));
    char **buffers = calloc(count + 1, sizeof(*buffers));
    size_t *lens = calloc(count + 1, sizeof(*lens));
    ortcrypt_status st = ORTCRYPT_OK;

    if (names == NULL || buffers == NULL || lens == NULL) {
        st = oc_fail_memory(err, count * sizeof(*lens), "the list of external files");
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = supply->files[i].name;
        buffers[i] = (char *)supply->files[i].data;
        lens[i] = supply->files[i].len;
    }
    if (oc_runtime_has(runtime, OC_DIRECT_ENTRY)) { /* either way: the caller's own entry must not make ORT keep what goes away */
        st = oc_ort_check(runtime, api->AddSessionConfigEntry(options, OC_DIRECT_ENTRY, direct ? "1" : "0"), err, "external data");
    }
    if (st == ORTCRYPT_OK && count != 0) {
        st = oc_ort_check(runtime, api->AddExternalInitializersFromFilesInMemory(options, names, buffers, lens, count), err,
                          "external data");
    }
out:
    free(names);
    free(buffers);
    free(lens);
    return st;
}

typedef struct fill {
    oc_region *region;
    size_t at;
} fill;

static ortcrypt_status fill_region(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    fill *const to = state;

    if (len > to->region->len - to->at) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "the model changed its length while it was read");
    }
    memcpy(to->region->data + to->at, data, len);
    to->at += len;
    return ORTCRYPT_OK;
}

static ortcrypt_status rewrite(const oc_supply *supply, oc_push_fn push, void *state, uint64_t *len, ortcrypt_error *err)
{
    oc_asset_reader *reader = NULL;

    ortcrypt_status st = oc_asset_reader_open(&reader, supply->bundle, &supply->model, err);
    if (st == ORTCRYPT_OK) {
        const oc_source source = oc_asset_reader_source(reader);
        st = oc_onnx_rewrite(supply->onnx, &source, supply->edits, supply->edit_count, push, state, len, err);
        oc_asset_reader_close(reader);
    }
    return st;
}

ortcrypt_status oc_supply_model(const oc_supply *supply, oc_region *region, size_t *len, const ortcrypt_monitor *monitor,
                                ortcrypt_error *err)
{
    uint64_t model_len = supply->model.size;
    oc_region made = {0};
    size_t made_len = 0;
    ortcrypt_status st = ORTCRYPT_OK;

    if (supply->edit_count != 0) {
        st = rewrite(supply, NULL, NULL, &model_len, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_len(model_len, SIZE_MAX / 2, "the model", &made_len, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_region_new(&made, made_len, err);
    }
    if (st == ORTCRYPT_OK && supply->edit_count != 0) {
        fill to = {&made, 0};
        st = rewrite(supply, fill_region, &to, NULL, err);
    } else if (st == ORTCRYPT_OK) {
        st = oc_bundle_read(supply->bundle, &supply->model, made.data, monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        *region = made;
        *len = made_len;
    } else {
        oc_region_free(&made);
    }
    return st;
}

static ortcrypt_status push_to_pipe(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    return oc_feeder_push(state, data, len, err);
}

ortcrypt_status oc_supply_feed(const oc_supply *supply, oc_feeder *feeder, ortcrypt_error *err)
{
    if (supply->edit_count != 0) {
        return rewrite(supply, push_to_pipe, feeder, NULL, err);
    }
    return oc_bundle_stream(supply->bundle, &supply->model, push_to_pipe, feeder, NULL, err);
}
