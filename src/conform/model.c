/*
 * ONNX models written field by field. Fields (onnx.proto): ModelProto ir_version 1, producer_name 2, graph 7, opset_import 8;
 * GraphProto node 1, name 2, initializer 5, input 11, output 12; NodeProto input 1, output 2, name 3, op_type 4, attribute 5;
 * AttributeProto name 1, ints 8, type 20; TensorProto dims 1, data_type 2, name 8, raw_data 9; ValueInfoProto name 1, type 2.
 */
#include <stdlib.h>
#include <string.h>

#include "conform/model.h"

#define MESSAGE_MAX (1u << 20)
#define FLOAT 1 /* TensorProto.DataType */

/* A message being written; the first failure stays, and what follows does nothing. */
typedef struct message {
    oc_buf bytes;
    ortcrypt_status st;
    ortcrypt_error *err;
} message;

static message begin(ortcrypt_error *err) { return (message){OC_BUF(MESSAGE_MAX), ORTCRYPT_OK, err}; }

static void put(message *m, const void *data, size_t len)
{
    if (m->st == ORTCRYPT_OK) {
        m->st = oc_buf_append(&m->bytes, data, len, m->err);
    }
}

static void put_varint(message *m, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(m, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static void put_number(message *m, unsigned field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, value);
}

static void put_bytes(message *m, unsigned field, const void *data, size_t len)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, len);
    put(m, data, len);
}

static void put_text(message *m, unsigned field, const char *text) { put_bytes(m, field, text, strlen(text)); }

/* Takes `child` over. */
static void put_message(message *m, unsigned field, message *child)
{
    if (m->st == ORTCRYPT_OK) {
        m->st = child->st;
    }
    if (m->st == ORTCRYPT_OK) {
        put_bytes(m, field, child->bytes.data, child->bytes.len);
    }
    oc_buf_free(&child->bytes);
}

void oc_model_fill(float *values, size_t count, unsigned seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (size_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u; /* a linear congruence: the same numbers everywhere */
        values[i] = (float)(x >> 8) / 16777216.0f - 0.5f;
    }
}

static size_t count_of(const int64_t *shape, size_t rank)
{
    size_t count = 1;

    for (size_t i = 0; i < rank; i++) {
        count *= (size_t)shape[i];
    }
    return count;
}

static void put_weight(message *graph, const char *name, const int64_t *shape, size_t rank, unsigned seed)
{
    const size_t count = count_of(shape, rank);
    float *const values = malloc(count * sizeof(*values));
    message tensor = begin(graph->err);

    for (size_t i = 0; i < rank; i++) {
        put_number(&tensor, 1, (uint64_t)shape[i]);
    }
    put_number(&tensor, 2, FLOAT);
    put_text(&tensor, 8, name);
    if (values != NULL) {
        oc_model_fill(values, count, seed);
        put_bytes(&tensor, 9, values, count * sizeof(*values));
    } else {
        tensor.st = oc_fail_memory(graph->err, count * sizeof(*values), "a model's weights");
    }
    free(values);
    put_message(graph, 5, &tensor);
}

static void put_value(message *graph, unsigned field, const char *name, const int64_t *shape, size_t rank)
{
    message value = begin(graph->err);
    message type = begin(graph->err);
    message tensor = begin(graph->err);
    message dims = begin(graph->err);

    for (size_t i = 0; i < rank; i++) {
        message dim = begin(graph->err);
        put_number(&dim, 1, (uint64_t)shape[i]);
        put_message(&dims, 1, &dim);
    }
    put_number(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &dims);
    put_message(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_message(&value, 2, &type);
    put_message(graph, field, &value);
}

/* An attribute of integers; they end with -1. `inputs` are names with blanks between. */
typedef struct ints {
    const char *name;
    int values[5];
} ints;

static void put_ints(message *node, const ints *list)
{
    message attribute = begin(node->err);

    put_text(&attribute, 1, list->name);
    for (size_t i = 0; list->values[i] >= 0; i++) {
        put_number(&attribute, 8, (uint64_t)list->values[i]);
    }
    put_number(&attribute, 20, 7); /* INTS */
    put_message(node, 5, &attribute);
}

static void put_node(message *graph, const char *op, const char *inputs, const char *output, const ints *attributes)
{
    message node = begin(graph->err);

    while (*inputs != '\0') {
        const size_t len = strcspn(inputs, " ");
        put_bytes(&node, 1, inputs, len);
        inputs += len + (inputs[len] == ' ' ? 1 : 0);
    }
    put_text(&node, 2, output);
    put_text(&node, 3, output);
    put_text(&node, 4, op);
    for (; attributes != NULL && attributes->name != NULL; attributes++) {
        put_ints(&node, attributes);
    }
    put_message(graph, 1, &node);
}

/* Takes `graph` over. */
static ortcrypt_status finish(oc_buf *onnx, message *graph, ortcrypt_error *err)
{
    message model = begin(err);
    message opset = begin(err);

    put_number(&model, 1, 8);
    put_text(&model, 2, "ortcrypt");
    put_text(graph, 2, "canary");
    put_message(&model, 7, graph);
    put_text(&opset, 1, "");
    put_number(&opset, 2, 13);
    put_message(&model, 8, &opset);
    if (model.st == ORTCRYPT_OK) {
        *onnx = model.bytes;
    } else {
        oc_buf_free(&model.bytes);
    }
    return model.st;
}

static const ints CONV[] = {{"kernel_shape", {3, 3, -1}}, {"pads", {1, 1, 1, 1, -1}}, {"strides", {1, 1, -1}}, {NULL, {0}}};
static const ints POOL[] = {{"kernel_shape", {2, 2, -1}}, {"strides", {2, 2, -1}}, {NULL, {0}}};

static ortcrypt_status build_matmul(oc_buf *onnx, ortcrypt_error *err)
{
    message graph = begin(err);

    put_node(&graph, "MatMul", "x w", "product", NULL);
    put_node(&graph, "Add", "product b", "y", NULL);
    put_weight(&graph, "w", (const int64_t[]){256, 128}, 2, 1);
    put_weight(&graph, "b", (const int64_t[]){128}, 1, 2);
    put_value(&graph, 11, "x", (const int64_t[]){1, 256}, 2);
    put_value(&graph, 12, "y", (const int64_t[]){1, 128}, 2);
    return finish(onnx, &graph, err);
}

static ortcrypt_status build_conv(oc_buf *onnx, ortcrypt_error *err)
{
    message graph = begin(err);

    put_node(&graph, "Conv", "x w b", "sum", CONV);
    put_node(&graph, "Relu", "sum", "y", NULL);
    put_weight(&graph, "w", (const int64_t[]){32, 3, 3, 3}, 4, 3);
    put_weight(&graph, "b", (const int64_t[]){32}, 1, 4);
    put_value(&graph, 11, "x", (const int64_t[]){1, 3, 16, 16}, 4);
    put_value(&graph, 12, "y", (const int64_t[]){1, 32, 16, 16}, 4);
    return finish(onnx, &graph, err);
}

static ortcrypt_status build_cnn(oc_buf *onnx, ortcrypt_error *err)
{
    message graph = begin(err);

    put_node(&graph, "Conv", "x w1 b1", "sum1", CONV);
    put_node(&graph, "Relu", "sum1", "positive1", NULL);
    put_node(&graph, "MaxPool", "positive1", "pooled", POOL);
    put_node(&graph, "Conv", "pooled w2 b2", "sum2", CONV);
    put_node(&graph, "Relu", "sum2", "positive2", NULL);
    put_node(&graph, "GlobalAveragePool", "positive2", "y", NULL);
    put_weight(&graph, "w1", (const int64_t[]){32, 3, 3, 3}, 4, 5);
    put_weight(&graph, "b1", (const int64_t[]){32}, 1, 6);
    put_weight(&graph, "w2", (const int64_t[]){64, 32, 3, 3}, 4, 7);
    put_weight(&graph, "b2", (const int64_t[]){64}, 1, 8);
    put_value(&graph, 11, "x", (const int64_t[]){1, 3, 16, 16}, 4);
    put_value(&graph, 12, "y", (const int64_t[]){1, 64, 1, 1}, 4);
    return finish(onnx, &graph, err);
}

static ortcrypt_status build_mul(oc_buf *onnx, ortcrypt_error *err)
{
    message graph = begin(err);

    put_node(&graph, "Mul", "a b", "y", NULL);
    put_value(&graph, 11, "a", (const int64_t[]){1, 64}, 2);
    put_value(&graph, 11, "b", (const int64_t[]){1, 64}, 2);
    put_value(&graph, 12, "y", (const int64_t[]){1, 64}, 2);
    return finish(onnx, &graph, err);
}

const oc_model OC_MODELS[OC_MODEL_COUNT] = {
    {"matmul", "MatMul, Add", {{"x", {1, 256}, 2}}, 1, (256 * 128 + 128) * sizeof(float), build_matmul},
    {"conv", "Conv, Relu", {{"x", {1, 3, 16, 16}, 4}}, 1, (32 * 3 * 9 + 32) * sizeof(float), build_conv},
    {"cnn", "Conv, Relu, MaxPool, Conv, Relu, GlobalAveragePool", {{"x", {1, 3, 16, 16}, 4}}, 1,
     (32 * 3 * 9 + 32 + 64 * 32 * 9 + 64) * sizeof(float), build_cnn},
    {"mul", "Mul of two inputs", {{"a", {1, 64}, 2}, {"b", {1, 64}, 2}}, 2, 0, build_mul},
};

const oc_model *oc_model_find(const char *name)
{
    for (size_t i = 0; i < OC_MODEL_COUNT; i++) {
        if (strcmp(OC_MODELS[i].name, name) == 0) {
            return &OC_MODELS[i];
        }
    }
    return NULL;
}
