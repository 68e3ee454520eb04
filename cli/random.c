/* cli/random.c: made-up input values, the same on every machine. No secret comes from here. */
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

/* Source: splitmix64, Sebastiano Vigna, public domain (described in "Fast splittable pseudorandom number generators"). */
static uint64_t next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t value = *state;
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* FNV-1a of the name: an input keeps its values when others are added to the model. */
static uint64_t mix_name(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != 0; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    }
    return seed ^ hash;
}

/* `bits` random bits as a number in [-1, 1): every one of them is exact in a type with that many significant bits. */
static double signed_unit(uint64_t *state, unsigned bits)
{
    return (double)(next(state) >> (64 - bits)) / (double)(UINT64_C(1) << (bits - 1)) - 1;
}

/* A number of signed_unit(11 bits) as IEEE 754 binary16. */
static uint16_t number_to_half(double value)
{
    const uint16_t sign = value < 0 ? 0x8000 : 0;
    double rest = value < 0 ? -value : value;
    int exponent = 15;
    if (value == 0) {
        return 0;
    }
    while (rest < 1) {
        rest *= 2;
        exponent--;
    }
    return (uint16_t)(sign | (exponent << 10) | (int)((rest - 1) * 1024));
}

static uint16_t number_to_bfloat(double value)
{
    const float narrow = (float)value;
    uint32_t bits = 0;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void fill_float(cli_tensor *tensor, uint64_t *state)
{
    for (size_t i = 0; i < tensor->count; i++) {
        switch (tensor->type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: ((float *)tensor->data)[i] = (float)signed_unit(state, 24); break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: ((double *)tensor->data)[i] = signed_unit(state, 53); break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
            ((uint16_t *)tensor->data)[i] = number_to_half(signed_unit(state, 11));
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
            ((uint16_t *)tensor->data)[i] = number_to_bfloat(signed_unit(state, 8));
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64:
            ((float *)tensor->data)[2 * i] = (float)signed_unit(state, 24);
            ((float *)tensor->data)[2 * i + 1] = (float)signed_unit(state, 24);
            break;
        default: /* complex128 */
            ((double *)tensor->data)[2 * i] = signed_unit(state, 53);
            ((double *)tensor->data)[2 * i + 1] = signed_unit(state, 53);
            break;
        }
    }
}

ortcrypt_status cli_tensor_random(cli_tensor *tensor, uint64_t seed, const char *name, ortcrypt_error *err)
{
    const cli_type *known = cli_type_find(tensor->type);
    uint64_t state = mix_name(seed, name);
    const bool flags = strstr(name, "mask") != NULL || strstr(name, "type") != NULL || known->kind == 'b';
    const uint64_t top = flags ? 2 : 100;
    if (known->kind == 'f' || known->kind == 'c') {
        fill_float(tensor, &state);
        return ORTCRYPT_OK;
    }
    for (size_t i = 0; i < tensor->count; i++) {
        const uint64_t value = (next(&state) >> 32) % top;
        if (tensor->strings != NULL) {
            char text[24];
            (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
            tensor->strings[i] = strdup(text);
            if (tensor->strings[i] == NULL) {
                return cli_fail_memory(err);
            }
        } else {
            memcpy((char *)tensor->data + i * known->size, &value, known->size); /* little-endian: the low bytes */
        }
    }
    return ORTCRYPT_OK;
}
