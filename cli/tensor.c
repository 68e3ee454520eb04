/* cli/tensor.c: tensors in memory. */
#include "tensor.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_type TYPES[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "float32", "f4", 4, 'f'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "float64", "f8", 8, 'f'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, "float16", "f2", 2, 'f'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, "bfloat16", NULL, 2, 'f'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "int8", "i1", 1, 'i'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, "int16", "i2", 2, 'i'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "int32", "i4", 4, 'i'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "int64", "i8", 8, 'i'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "uint8", "u1", 1, 'u'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, "uint16", "u2", 2, 'u'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, "uint32", "u4", 4, 'u'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, "uint64", "u8", 8, 'u'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "bool", "b1", 1, 'b'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, "complex64", "c8", 8, 'c'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, "complex128", "c16", 16, 'c'},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "string", NULL, 0, 's'},
};
#define TYPE_COUNT (sizeof TYPES / sizeof *TYPES)

const cli_type *cli_type_find(ONNXTensorElementDataType type)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (TYPES[i].type == type) {
            return &TYPES[i];
        }
    }
    return NULL;
}

const cli_type *cli_type_find_npy(const char *descr)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (TYPES[i].npy != NULL && strcmp(TYPES[i].npy, descr) == 0) {
            return &TYPES[i];
        }
    }
    return NULL;
}

const char *cli_type_name(ONNXTensorElementDataType type, char out[32])
{
    const cli_type *known = cli_type_find(type);
    if (known != NULL) {
        return known->name;
    }
    (void)snprintf(out, 32, "element type %d", (int)type);
    return out;
}

ortcrypt_status cli_tensor_new(cli_tensor *tensor, ONNXTensorElementDataType type, const int64_t *shape, size_t rank,
                               ortcrypt_error *err)
{
    const cli_type *known = cli_type_find(type);
    uint64_t count = 1;
    char name[32];
    *tensor = (cli_tensor){.type = type, .rank = rank};
    if (known == NULL) {
        return cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "tensors of %s are not supported here", cli_type_name(type, name));
    }
    if (rank > CLI_RANK_MAX) {
        return cli_fail(err, ORTCRYPT_E_LIMIT, "a tensor with %zu dimensions; at most %d are supported", rank, CLI_RANK_MAX);
    }
    const uint64_t size = known->size != 0 ? known->size : sizeof(char *);
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0 || __builtin_mul_overflow(count, (uint64_t)shape[i], &count) || count > CLI_TENSOR_LEN_MAX / size) {
            return cli_fail(err, ORTCRYPT_E_LIMIT, "a tensor shape with dimension %zu of %lld asks for too much memory", i,
                            (long long)shape[i]);
        }
        tensor->shape[i] = shape[i];
    }
    tensor->count = (size_t)count;
    void *memory = calloc(tensor->count != 0 ? tensor->count : 1, (size_t)size);
    if (memory == NULL) {
        return cli_fail(err, ORTCRYPT_E_NO_MEMORY, "%llu bytes of memory for a tensor are not available",
                        (unsigned long long)(count * size));
    }
    if (known->size != 0) {
        tensor->data = memory;
        tensor->len = (size_t)(count * size);
    } else {
        tensor->strings = memory;
    }
    return ORTCRYPT_OK;
}

void cli_tensor_free(cli_tensor *tensor)
{
    for (size_t i = 0; tensor->strings != NULL && i < tensor->count; i++) {
        free(tensor->strings[i]);
    }
    free(tensor->strings);
    free(tensor->data);
    *tensor = (cli_tensor){0};
}

/* IEEE 754 binary16. */
static double half_to_number(uint16_t half)
{
    const int exponent = (half >> 10) & 31;
    const int fraction = half & 1023;
    double value = 0;
    if (exponent == 31) {
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, -24);
    } else {
        value = ldexp(fraction + 1024, exponent - 25);
    }
    return (half & 0x8000) != 0 ? -value : value;
}

static double bfloat_to_number(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof value);
    return value;
}

double cli_tensor_number(const cli_tensor *tensor, size_t index)
{
    const void *data = tensor->data;
    switch (tensor->type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return ((const float *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return ((const double *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return half_to_number(((const uint16_t *)data)[index]);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return bfloat_to_number(((const uint16_t *)data)[index]);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return ((const int8_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16: return ((const int16_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return ((const int32_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return (double)((const int64_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return ((const uint8_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16: return ((const uint16_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32: return ((const uint32_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64: return (double)((const uint64_t *)data)[index];
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64: return (double)cabsf(((const float complex *)data)[index]);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128: return cabs(((const double complex *)data)[index]);
    default: return 0;
    }
}

bool cli_tensor_same_bytes(const cli_tensor *a, const cli_tensor *b)
{
    if (a->type != b->type || a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0 ||
        a->count != b->count || a->len != b->len) {
        return false;
    }
    for (size_t i = 0; a->strings != NULL && i < a->count; i++) {
        if (strcmp(a->strings[i], b->strings[i]) != 0) {
            return false;
        }
    }
    return a->len == 0 || memcmp(a->data, b->data, a->len) == 0;
}

void cli_shape_text(char *out, size_t out_size, ONNXTensorElementDataType type, const int64_t *shape, size_t rank,
                    const char *const *names)
{
    char name[32];
    int used = snprintf(out, out_size, "%s[", cli_type_name(type, name));
    for (size_t i = 0; i < rank && used > 0 && (size_t)used < out_size; i++) {
        const char *comma = i != 0 ? ", " : "";
        if (shape[i] >= 0) {
            used += snprintf(out + used, out_size - (size_t)used, "%s%lld", comma, (long long)shape[i]);
        } else {
            const char *known = names != NULL && names[i] != NULL && names[i][0] != 0 ? names[i] : "?";
            used += snprintf(out + used, out_size - (size_t)used, "%s%s", comma, known);
        }
    }
    if (used > 0 && (size_t)used < out_size) {
        (void)snprintf(out + used, out_size - (size_t)used, "]");
    }
}

void cli_tensor_text(char *out, size_t out_size, const cli_tensor *tensor)
{
    cli_shape_text(out, out_size, tensor->type, tensor->shape, tensor->rank, NULL);
}
