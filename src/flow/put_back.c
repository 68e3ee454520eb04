/*
 * Weights back into the model: the external files of a supply become readers, and every external tensor an edit that takes its
 * bytes from one of them. They are decrypted piece by piece while the model is made; the supply owns all of it.
 */
#include <stdlib.h>

#include "flow/supply.h"

#define MODEL_MAX ((uint64_t)INT32_MAX)
#define TENSOR_ROOM 64u /* bytes of tags and lengths that a tensor's data brings along, at most */

struct oc_put_back {
    size_t file_count;
    oc_asset_reader **readers;
    oc_source *sources;
};

void oc_put_back_free(struct oc_put_back *put_back)
{
    if (put_back == NULL) {
        return;
    }
    for (size_t i = 0; put_back->readers != NULL && i < put_back->file_count; i++) {
        oc_asset_reader_close(put_back->readers[i]);
    }
    free(put_back->readers);
    free(put_back->sources);
    free(put_back);
}

void oc_supply_drop_put_back(oc_supply *supply)
{
    if (supply->put_back != NULL) {
        oc_put_back_free(supply->put_back);
        supply->put_back = NULL;
        supply->edit_count = 0; /* they read from it */
    }
}

/* By tensors, not by files: several may share bytes, and each gets its own. */
bool oc_supply_fits(const oc_supply *supply)
{
    uint64_t sum = supply->model.size;
    bool known = true;

    for (size_t i = 0; i < supply->onnx->tensor_count && known; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        known = !tensor->external || (oc_add_u64(sum, tensor->length, &sum) && oc_add_u64(sum, TENSOR_ROOM, &sum));
    }
    return known && sum <= MODEL_MAX;
}

static ortcrypt_status open_files(struct oc_put_back *put_back, const oc_supply *supply, ortcrypt_error *err)
{
    const size_t count = supply->file_count;
    ortcrypt_status st = ORTCRYPT_OK;

    put_back->readers = calloc(count + 1, sizeof(*put_back->readers));
    put_back->sources = calloc(count + 1, sizeof(*put_back->sources));
    if (put_back->readers == NULL || put_back->sources == NULL) {
        return oc_fail_memory(err, (count + 1) * sizeof(*put_back->sources), "the list of external files");
    }
    put_back->file_count = count;
    for (size_t i = 0; i < count && st == ORTCRYPT_OK; i++) {
        st = oc_asset_reader_open(&put_back->readers[i], supply->bundle, &supply->files[i].asset, err);
        if (st == ORTCRYPT_OK) {
            put_back->sources[i] = oc_asset_reader_source(put_back->readers[i]);
        }
    }
    return st;
}

/* The supply's list has room for every tensor; whatever it said of some of them is replaced. */
static void list_edits(oc_supply *supply, const struct oc_put_back *put_back)
{
    supply->edit_count = 0;
    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        if (tensor->external) {
            supply->edits[supply->edit_count++] =
                (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_INLINE, .source = &put_back->sources[supply->tensor_files[i]],
                               .offset = tensor->offset, .length = tensor->length};
        }
    }
}

ortcrypt_status oc_supply_put_back(oc_supply *supply, ortcrypt_error *err)
{
    if (!oc_supply_fits(supply)) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "a model of 2 GiB or more cannot have its weights inside");
    }
    struct oc_put_back *const put_back = calloc(1, sizeof(*put_back));
    if (put_back == NULL) {
        return oc_fail_memory(err, sizeof(*put_back), "the list of external files");
    }
    const ortcrypt_status st = open_files(put_back, supply, err);
    if (st != ORTCRYPT_OK) {
        oc_put_back_free(put_back);
        return st;
    }
    list_edits(supply, put_back);
    oc_supply_drop_files(supply);
    supply->file_count = 0;
    supply->put_back = put_back;
    return ORTCRYPT_OK;
}
