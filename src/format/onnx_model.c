/* format/onnx_model.c: element types, locations, namesakes, memory as a source, and the end of an oc_onnx_model. */
#include <stdlib.h>
#include <string.h>

#include "format/dtype.h"
#include "format/onnx.h"

/* Order: onnx.TensorProto.DataType. bits 0: no fixed size. */
static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    {"undefined", 0},     {"float", 32},       {"uint8", 8},           {"int8", 8},          {"uint16", 16},
    {"int16", 16},        {"int32", 32},       {"int64", 64},          {"string", 0},        {"bool", 8},
    {"float16", 16},      {"double", 64},      {"uint32", 32},         {"uint64", 64},       {"complex64", 64},
    {"complex128", 128},  {"bfloat16", 16},    {"float8e4m3fn", 8},    {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},       {"int4", 4},            {"float4e2m1", 4},    {"float8e8m0", 8},
    {"uint2", 2},         {"int2", 2},
};
#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

const char *oc_dtype_text(int dtype)
{
    return dtype > 0 && (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

int oc_dtype_find(const char *text)
{
    for (size_t i = 1; i < DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, text) == 0) {
            return (int)i;
        }
    }
    return 0;
}

bool oc_onnx_tensor_len(int dtype, const uint64_t *shape, size_t rank, uint64_t *len)
{
    uint64_t bits = 0;

    if (oc_dtype_text(dtype) == NULL || dtypes[dtype].bits == 0) {
        return false;
    }
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] == 0) { /* empty whatever the other dimensions multiply to */
            *len = 0;
            return true;
        }
    }
    bits = dtypes[dtype].bits;
    for (size_t i = 0; i < rank; i++) {
        if (!oc_mul_u64(bits, shape[i], &bits)) {
            return false;
        }
    }
    *len = bits / 8 + (bits % 8 != 0);
    return true;
}

bool oc_onnx_location_plain(const char *location)
{
    const char *part = location;

    if (part[0] == '.' && part[1] == '/') {
        part += 2;
    }
    for (;;) {
        const size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[len] == '\0') {
            return true;
        }
        part += len + 1;
    }
}

static int by_name(const void *a, const void *b)
{
    const oc_onnx_tensor *const x = *(const oc_onnx_tensor *const *)a;
    const oc_onnx_tensor *const y = *(const oc_onnx_tensor *const *)b;

    return strcmp(x->name, y->name);
}

ortcrypt_status oc_onnx_keep_namesakes(oc_onnx_model *model, ortcrypt_error *err)
{
    const oc_onnx_tensor **const sorted = calloc(model->tensor_count + 1, sizeof *sorted);
    size_t count = 0;

    if (sorted == NULL) {
        return oc_fail_memory(err, (model->tensor_count + 1) * sizeof *sorted, "the model's tensors");
    }
    for (size_t i = 0; i < model->tensor_count; i++) {
        if (model->tensors[i].main_graph) {
            sorted[count++] = &model->tensors[i];
        }
    }
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            model->tensors[sorted[i - 1] - model->tensors].movable = false;
            model->tensors[sorted[i] - model->tensors].movable = false;
        }
    }
    free(sorted);
    return ORTCRYPT_OK;
}

static ortcrypt_status memory_read(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    const oc_span *span = state;

    if (offset > span->len || len > span->len - offset) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%zu bytes at %llu are not inside %zu bytes of memory", len,
                       (unsigned long long)offset, span->len);
    }
    if (len != 0) {
        memcpy(buffer, span->data + offset, len);
    }
    return ORTCRYPT_OK;
}

oc_source oc_source_memory(const oc_span *span)
{
    union { /* state is not const for the sake of sources that are files; memory_read does not write through it */
        const oc_span *in;
        void *out;
    } state = {.in = span};

    return (oc_source){memory_read, state.out, span->len};
}

void oc_onnx_model_free(oc_onnx_model *model)
{
    if (model == NULL) {
        return;
    }
    for (size_t i = 0; i < model->tensor_count; i++) {
        free(model->tensors[i].name);
        free(model->tensors[i].shape);
        free(model->tensors[i].location);
    }
    for (size_t i = 0; i < model->ep_context_count; i++) {
        free(model->ep_contexts[i].name);
        free(model->ep_contexts[i].source);
        free(model->ep_contexts[i].partition);
        free(model->ep_contexts[i].cache_context);
    }
    for (size_t i = 0; i < model->subgraph_name_count; i++) {
        free(model->subgraph_names[i]);
    }
    free(model->tensors);
    free(model->ep_contexts);
    free(model->subgraph_names);
    free(model->producer);
    free(model);
}
