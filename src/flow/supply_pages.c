/* A supply whose files are decrypted when ORT reads them, and naming the external tensors to ORT one by one. */
#include <stdlib.h>

#include "flow/supply.h"

#define SMALL_LEN ((uint64_t)64 << 10) /* bytes of a tensor up to which it is copied first, if all such are few */
#define SMALL_PART 16u                 /* few: a sixteenth of the files */

/* ORT takes the tensors in an order of its own, each from begin to end, but for its last bytes, which memcpy may read first. */
static oc_pages_end *list_ends(const oc_supply *supply, size_t *count)
{
    oc_pages_end *const ends = calloc(supply->onnx->tensor_count + 1, sizeof(*ends));

    *count = 0;
    for (size_t i = 0; ends != NULL && i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        if (tensor->external && tensor->length >= OC_TENSOR_LARGE_LEN) {
            ends[(*count)++] = (oc_pages_end){supply->tensor_files[i], tensor->offset + tensor->length - 1};
        } else if (supply->lifted && oc_supply_lifts(tensor)) {
            ends[(*count)++] = (oc_pages_end){supply->file_count, tensor->raw_off + tensor->raw_len - 1};
        }
    }
    return ends;
}

ortcrypt_status oc_supply_load_pages(oc_supply *supply, size_t window_len, ortcrypt_error *err)
{
    const oc_asset **const assets = calloc(supply->file_count + 1, sizeof(*assets)); /* the last for the model */
    const size_t count = supply->file_count + (supply->lifted ? 1 : 0);
    size_t end_count = 0;
    oc_pages_end *const ends = list_ends(supply, &end_count);
    ortcrypt_status st = ORTCRYPT_OK;

    if (assets == NULL || ends == NULL) {
        st = oc_fail_memory(err, (supply->file_count + 1) * sizeof(*assets), "the list of external files");
    }
    for (size_t i = 0; i < supply->file_count && st == ORTCRYPT_OK; i++) {
        assets[i] = &supply->files[i].asset;
    }
    if (st == ORTCRYPT_OK) {
        assets[supply->file_count] = &supply->model;
        const uint64_t len = supply->lifted ? oc_supply_len(supply) : oc_supply_files_len(supply);
        const oc_pages_options options = {.window_len = window_len, .ahead_len = oc_load_ahead(len), .ends = ends, .end_count = end_count};
        st = oc_asset_pages_open(&supply->pages, supply->bundle, assets, count, &options, err);
    }
    for (size_t i = 0; i < supply->file_count && st == ORTCRYPT_OK; i++) {
        supply->files[i].data = oc_asset_pages_data(supply->pages, i);
        supply->files[i].len = (size_t)supply->files[i].asset.size;
    }
    if (st == ORTCRYPT_OK && supply->lifted) {
        supply->model_data = oc_asset_pages_data(supply->pages, supply->file_count);
    }
    free(assets);
    free(ends);
    return st;
}

ortcrypt_status oc_supply_settle(oc_supply *supply, bool complete, ortcrypt_error *err)
{
    return supply->pages != NULL ? oc_asset_pages_settle(supply->pages, complete, err) : ORTCRYPT_OK;
}

/* ONNX's numbers of types are ORT's up to int4; complex numbers and 8-bit floats are not values everywhere. */
bool oc_supply_plain_type(int dtype) { return (dtype >= 1 && dtype <= 13 && dtype != 8) || dtype == 16; }

bool oc_supply_plain_types(const oc_supply *supply)
{
    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        if (supply->onnx->tensors[i].external && !oc_supply_plain_type(supply->onnx->tensors[i].dtype)) {
            return false;
        }
    }
    return true;
}

uint64_t oc_supply_largest(const oc_supply *supply, bool external)
{
    uint64_t largest = 0;

    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        const uint64_t len = !external ? tensor->raw_len : tensor->external ? tensor->length : 0;
        largest = len > largest ? len : largest;
    }
    return largest;
}

/* Its bytes in the region of small ones: aligned for every type. */
static uint64_t small_room(const oc_onnx_tensor *tensor)
{
    return (tensor->length + 63) / 64 * 64;
}

/* Bytes of the small tensors; 0: they are too many to be held beside the window. */
static size_t small_len(const oc_supply *supply)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        if (tensor->external && tensor->length < SMALL_LEN) {
            sum += small_room(tensor);
        }
    }
    return sum <= oc_supply_files_len(supply) / SMALL_PART ? (size_t)sum : 0;
}

/*
 * Small tensors lie between the large ones, and ORT takes all in an order of its own: each would bring a piece back. They are copied
 * first, in the order of the model, so that most pieces are decrypted once for it. at[i] is where tensor i begins.
 */
static ortcrypt_status copy_small(oc_supply *supply, uint8_t **at, ortcrypt_error *err)
{
    const size_t len = small_len(supply);
    oc_asset_reader *reader = NULL;
    size_t open_file = SIZE_MAX;
    ortcrypt_status st = len != 0 ? oc_region_new(&supply->small, len, err) : ORTCRYPT_OK;
    uint8_t *to = supply->small.data;

    for (size_t i = 0; len != 0 && i < supply->onnx->tensor_count && st == ORTCRYPT_OK; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        if (!tensor->external || tensor->length >= SMALL_LEN) {
            continue;
        }
        const size_t file = supply->tensor_files[i];
        if (file != open_file) {
            oc_asset_reader_close(reader);
            reader = NULL;
            st = oc_asset_reader_open(&reader, supply->bundle, &supply->files[file].asset, err);
            open_file = file;
        }
        if (st == ORTCRYPT_OK) {
            const oc_source source = oc_asset_reader_source(reader);
            st = source.read(source.state, tensor->offset, to, (size_t)tensor->length, err);
            at[i] = to;
            to += small_room(tensor);
        }
    }
    oc_asset_reader_close(reader);
    return st;
}

typedef struct tensor_list {
    const char **names;
    OrtValue **values;
    uint8_t **at; /* of every tensor of the model; NULL: not small, or not external */
    size_t count;
} tensor_list;

static ortcrypt_status make_value(OrtValue **out, const oc_onnx_tensor *tensor, void *data, uint64_t len, const ortcrypt_runtime *runtime,
                                  const OrtMemoryInfo *memory, ortcrypt_error *err)
{
    int64_t *const shape = calloc(tensor->rank + 1, sizeof(*shape));

    if (shape == NULL) {
        return oc_fail_memory(err, (tensor->rank + 1) * sizeof(*shape), "a tensor's shape");
    }
    for (size_t i = 0; i < tensor->rank; i++) {
        shape[i] = (int64_t)tensor->shape[i]; /* the product was checked against the asset */
    }
    const ortcrypt_status st = oc_ort_check(
        runtime,
        ortcrypt_runtime_api(runtime)->CreateTensorWithDataAsOrtValue(memory, data, (size_t)len, shape, tensor->rank,
                                                                      (ONNXTensorElementDataType)tensor->dtype, out),
        err, tensor->name);
    free(shape);
    return st;
}

/* Where the bytes of a tensor are that is given by name; NULL: it is not. */
static uint8_t *data_of(const oc_supply *supply, const tensor_list *list, size_t index)
{
    const oc_onnx_tensor *const tensor = &supply->onnx->tensors[index];

    if (!tensor->external) {
        return supply->lifted && oc_supply_lifts(tensor) ? supply->model_data + tensor->raw_off : NULL;
    }
    if (!tensor->read_main && !tensor->read_below) { /* ORT has removed it already, and takes no value for it */
        return NULL;
    }
    return list->at[index] != NULL ? list->at[index] : supply->files[supply->tensor_files[index]].data + tensor->offset;
}

static ortcrypt_status list_tensors(tensor_list *list, oc_supply *supply, const ortcrypt_runtime *runtime, const OrtMemoryInfo *memory,
                                    ortcrypt_error *err)
{
    const oc_onnx_model *const onnx = supply->onnx;

    list->names = calloc(onnx->tensor_count + 1, sizeof(*list->names));
    list->values = calloc(onnx->tensor_count + 1, sizeof(*list->values));
    list->at = calloc(onnx->tensor_count + 1, sizeof(*list->at));
    if (list->names == NULL || list->values == NULL || list->at == NULL) {
        return oc_fail_memory(err, (onnx->tensor_count + 1) * sizeof(*list->values), "the list of tensors");
    }
    ortcrypt_status st = copy_small(supply, list->at, err);
    for (size_t i = 0; i < onnx->tensor_count && st == ORTCRYPT_OK; i++) {
        const oc_onnx_tensor *const tensor = &onnx->tensors[i];
        uint8_t *const data = data_of(supply, list, i);
        if (data != NULL) {
            list->names[list->count] = tensor->name;
            st = make_value(&list->values[list->count], tensor, data, tensor->external ? tensor->length : tensor->raw_len, runtime, memory, err);
            list->count += st == ORTCRYPT_OK ? 1 : 0;
        }
    }
    return st;
}

ortcrypt_status oc_supply_add_tensors(oc_supply *supply, const ortcrypt_runtime *runtime, OrtSessionOptions *options, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtMemoryInfo *memory = NULL;
    tensor_list list = {NULL, NULL, NULL, 0};

    ortcrypt_status st = oc_ort_check(runtime, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory), err, "external data");
    if (st == ORTCRYPT_OK) {
        st = list_tensors(&list, supply, runtime, memory, err);
    }
    if (st == ORTCRYPT_OK && list.count != 0) {
        st = oc_ort_check(runtime, api->AddExternalInitializers(options, list.names, (const OrtValue *const *)list.values, list.count), err,
                          "external data");
    }
    for (size_t i = 0; i < list.count; i++) {
        api->ReleaseValue(list.values[i]); /* the options have them too */
    }
    if (memory != NULL) {
        api->ReleaseMemoryInfo(memory);
    }
    free(list.names);
    free(list.values);
    free(list.at);
    if (!supply->lifted) {
        supply->edit_count = 0; /* no file is looked for: whatever its name, the model stays as it is */
    }
    return st;
}

static ortcrypt_status open_model(oc_asset_pages **out, const oc_supply *supply, ortcrypt_error *err)
{
    oc_pages_end *const ends = calloc(supply->onnx->tensor_count + 1, sizeof(*ends));
    oc_pages_options options = {.window_len = OC_COPY_WINDOW_LEN, .ahead_len = oc_load_ahead(supply->model.size), .ends = ends, .onward = true};

    if (ends == NULL) {
        return oc_fail_memory(err, (supply->onnx->tensor_count + 1) * sizeof(*ends), "the list of tensors");
    }
    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        if (tensor->raw_len >= OC_TENSOR_LARGE_LEN) {
            ends[options.end_count++] = (oc_pages_end){0, tensor->raw_off + tensor->raw_len - 1};
        }
    }
    const oc_asset *const asset = &supply->model;
    const ortcrypt_status st = oc_asset_pages_open(out, supply->bundle, &asset, 1, &options, err);
    free(ends);
    return st;
}

ortcrypt_status oc_model_bytes_make(oc_model_bytes *out, const oc_supply *supply, bool paged, const ortcrypt_monitor *monitor,
                                    ortcrypt_error *err)
{
    oc_model_bytes made = {.len = (size_t)supply->model.size};
    ortcrypt_status st = ORTCRYPT_OK;

    if (paged) {
        st = open_model(&made.pages, supply, err);
        made.data = st == ORTCRYPT_OK ? oc_asset_pages_data(made.pages, 0) : NULL;
    } else {
        st = oc_supply_model(supply, &made.region, &made.len, monitor, err);
        made.data = made.region.data;
    }
    if (st == ORTCRYPT_OK) {
        *out = made;
    }
    return st;
}

ortcrypt_status oc_model_bytes_settle(const oc_model_bytes *model, bool complete, ortcrypt_error *err)
{
    return model->pages != NULL ? oc_asset_pages_settle(model->pages, complete, err) : ORTCRYPT_OK;
}

void oc_model_bytes_drop(oc_model_bytes *model)
{
    oc_region_free(&model->region);
    oc_asset_pages_close(model->pages);
    *model = (oc_model_bytes){NULL, 0, {0}, NULL};
}
