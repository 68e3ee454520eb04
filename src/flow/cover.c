/*
 * The complete cover of a model's external tensors and EPContext data by a variant's parts. Pure: structs in, a verdict out.
 * Everything here was authenticated already; what disagrees was made wrong, or by somebody who holds the bundle key.
 */
#include <stdlib.h>
#include <string.h>

#include "flow/supply.h"

/* ORT's own mark for a pointer in place of a file name: from outside it would make ORT read any address. */
#define ORT_MEMORY_MARK "*/_ORT_MEM_ADDR_/*"

const char *oc_location_bare(const char *location)
{
    while (location[0] == '.' && location[1] == '/') {
        location += 2;
    }
    return location;
}

const oc_part *oc_cover_part(const oc_variant *variant, const char *location)
{
    const char *const bare = oc_location_bare(location);

    for (size_t i = 0; i < variant->part_count; i++) {
        const oc_part *const part = &variant->parts[i];
        if ((part->role == OC_ROLE_EXTERNAL || part->role == OC_ROLE_INITIALIZER) &&
            strcmp(oc_location_bare(part->name), bare) == 0) {
            return part;
        }
    }
    return NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const oc_tensor *const *)a)->name, (*(const oc_tensor *const *)b)->name);
}

/* The table sorted by name, so that a model of many tensors is checked in n log n. */
static ortcrypt_status sort_table(const oc_tensor ***out, const oc_variant *variant, ortcrypt_error *err)
{
    const oc_tensor **const table = calloc(variant->tensor_count + 1, sizeof(*table));

    if (table == NULL) {
        return oc_fail_memory(err, (variant->tensor_count + 1) * sizeof(*table), "the tensor table");
    }
    for (size_t i = 0; i < variant->tensor_count; i++) {
        table[i] = &variant->tensors[i];
    }
    qsort(table, variant->tensor_count, sizeof(*table), compare_names);
    *out = table;
    return ORTCRYPT_OK;
}

static const oc_tensor *find_tensor(const oc_tensor *const *table, size_t count, const char *name)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(table[middle]->name, name);
        if (order == 0) {
            return table[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static bool same_shape(const oc_onnx_tensor *a, const oc_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof(*a->shape)) == 0);
}

static ortcrypt_status check_tensor(const oc_onnx_tensor *tensor, const oc_tensor *row, const oc_manifest *manifest,
                                    const oc_variant *variant, ortcrypt_error *err)
{
    const oc_part *const part = oc_cover_part(variant, tensor->location);
    uint64_t end = 0;
    uint64_t natural = 0;

    if (!tensor->main_graph) {
        (void)oc_fail(err, ORTCRYPT_E_INPUT, "the external tensor '%s' is not an initializer of the main graph, so ONNX Runtime would open a file for it",
                      tensor->name);
        oc_hint(err, "encrypt the model again: tensors of subgraphs are moved into the model then");
        return ORTCRYPT_E_INPUT;
    }
    if (!oc_onnx_location_plain(tensor->location) || strncmp(tensor->location, ORT_MEMORY_MARK, sizeof(ORT_MEMORY_MARK) - 1) == 0) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "the location of the external tensor '%s' is not a plain relative name",
                       tensor->name);
    }
    if (part == NULL || row == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the external tensor '%s' is not in variant %s, and ONNX Runtime would look for a file",
                       tensor->name, variant->id);
    }
    if (memcmp(row->asset, part->asset, OC_ASSET_ID_LEN) != 0 || row->offset != tensor->offset ||
        row->length != tensor->length || !same_shape(tensor, row)) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "model and manifest of variant %s disagree about the external tensor '%s'",
                       variant->id, tensor->name);
    }
    const oc_asset *const asset = oc_manifest_find_asset(manifest, part->asset);
    if (asset == NULL || !oc_add_u64(tensor->offset, tensor->length, &end) || end > asset->size ||
        !oc_onnx_tensor_len(tensor->dtype, tensor->shape, tensor->rank, &natural) || natural != tensor->length) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the external tensor '%s' of variant %s does not fit its asset",
                       tensor->name, variant->id);
    }
    return ORTCRYPT_OK;
}

/* Embed mode 0 of a main context: the EP asks for that name; without a part it would go to a file. */
static ortcrypt_status check_context(const oc_onnx_ep_context *node, const oc_variant *variant, ortcrypt_error *err)
{
    const bool named = node->embed_mode == 0 && node->cache_context != NULL && node->cache_context[0] != '\0';

    if (named && oc_variant_find_part(variant, OC_ROLE_EP_CONTEXT, node->cache_context) == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the EPContext data '%s' that the model refers to is not in variant %s",
                       node->cache_context, variant->id);
    }
    if (!named && node->embed_mode == 0 && node->main_context != 0) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "an EPContext node of variant %s names no data", variant->id);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_cover_check(const oc_onnx_model *onnx, const oc_manifest *manifest, const oc_variant *variant,
                               ortcrypt_error *err)
{
    const oc_tensor **table = NULL;

    ortcrypt_status st = sort_table(&table, variant, err);
    for (size_t i = 0; i < onnx->tensor_count && st == ORTCRYPT_OK; i++) {
        const oc_onnx_tensor *const tensor = &onnx->tensors[i];
        if (tensor->external) {
            st = check_tensor(tensor, find_tensor(table, variant->tensor_count, tensor->name), manifest, variant, err);
        }
    }
    for (size_t i = 0; i < onnx->ep_context_count && st == ORTCRYPT_OK; i++) {
        st = check_context(&onnx->ep_contexts[i], variant, err);
    }
    free(table);
    return st;
}
