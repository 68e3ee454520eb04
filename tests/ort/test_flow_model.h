/*
 * A small model for the flow tests, written byte by byte (onnx.proto), so that its external data can be where a test wants it.
 *   y0 = MatMul(x[n,128], Transpose(w[256,128]))       the optimizer folds Transpose
 *   y1 = MatMul(y0, Cast(q[256,256] int8))             and Cast
 *   y2 = Add(y1, DequantizeLinear(d[1,256] int8))      and this one (a MatMul with it would be fused to another precision)
 *   y3 = MatMul(y2, SequenceAt(SequenceConstruct(k)))  the reference EP does not take sequences: k stays an initializer
 *   y  = Add(y3, b[256])
 */
#ifndef TEST_FLOW_MODEL_H
#define TEST_FLOW_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#define RIG_MODEL_UNUSED __attribute__((unused))
#define MODEL_IN 128
#define MODEL_OUT 256

typedef struct pb {
    uint8_t *data;
    size_t len;
} pb;

static void pb_raw(pb *to, const void *data, size_t len)
{
    to->data = realloc(to->data, to->len + len + 1);
    assert_non_null(to->data);
    if (len != 0) {
        memcpy(to->data + to->len, data, len);
    }
    to->len += len;
}

static void pb_varint(pb *to, uint64_t value)
{
    uint8_t byte;

    do {
        byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        pb_raw(to, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static void pb_int(pb *to, unsigned field, uint64_t value)
{
    pb_varint(to, (uint64_t)field << 3);
    pb_varint(to, value);
}

static void pb_bytes(pb *to, unsigned field, const void *data, size_t len)
{
    pb_varint(to, ((uint64_t)field << 3) | 2);
    pb_varint(to, len);
    pb_raw(to, data, len);
}

static void pb_text(pb *to, unsigned field, const char *text) { pb_bytes(to, field, text, strlen(text)); }

/* Appends the message and frees it. */
static void pb_message(pb *to, unsigned field, pb *message)
{
    pb_bytes(to, field, message->data, message->len);
    free(message->data);
    *message = (pb){NULL, 0};
}

typedef struct rig_model {
    bool external;        /* weights in w.bin; else in the model */
    const char *location; /* as the model spells it; NULL: "w.bin" */
    size_t gap;           /* bytes before the first tensor in w.bin: odd ones misalign everything */
    bool sequence;        /* with the part the reference EP leaves to the CPU EP */
    size_t pad;           /* bytes of one more embedded initializer that nothing uses much: makes the model long */
    bool pad_external;    /* it is in w.bin like the others, and the optimizer folds its Transpose: its last row counts */
} rig_model;

static void add_pair(pb *tensor, const char *key, const char *value)
{
    pb pair = {NULL, 0};

    pb_text(&pair, 1, key);
    pb_text(&pair, 2, value);
    pb_message(tensor, 13, &pair);
}

/* One TensorProto; external ones append their bytes to `file`. */
static void add_tensor(pb *graph, pb *file, const rig_model *spec, const char *name, int dtype, size_t rows, size_t columns,
                       const void *data, size_t len)
{
    pb tensor = {NULL, 0};
    char number[32];

    if (rows != 0) {
        pb_int(&tensor, 1, rows);
    }
    if (columns != 0) {
        pb_int(&tensor, 1, columns);
    }
    pb_int(&tensor, 2, (uint64_t)dtype);
    pb_text(&tensor, 8, name);
    if (spec->external && len > 64 && (spec->pad_external || strcmp(name, "pad") != 0)) {
        add_pair(&tensor, "location", spec->location != NULL ? spec->location : "w.bin");
        (void)snprintf(number, sizeof(number), "%zu", file->len);
        add_pair(&tensor, "offset", number);
        (void)snprintf(number, sizeof(number), "%zu", len);
        add_pair(&tensor, "length", number);
        pb_int(&tensor, 14, 1);
        pb_raw(file, data, len);
    } else {
        pb_bytes(&tensor, 9, data, len);
    }
    pb_message(graph, 5, &tensor);
}

/* attribute: name of an integer attribute, or NULL. perm: a Transpose of two axes. */
static void add_node(pb *graph, const char *type, const char *in0, const char *in1, const char *out, const char *attribute,
                     uint64_t value)
{
    pb node = {NULL, 0};
    pb attr = {NULL, 0};

    pb_text(&node, 1, in0);
    if (in1 != NULL) {
        pb_text(&node, 1, in1);
    }
    pb_text(&node, 2, out);
    pb_text(&node, 3, out);
    pb_text(&node, 4, type);
    if (attribute != NULL) {
        pb_text(&attr, 1, attribute);
        if (strcmp(attribute, "perm") == 0) {
            pb_int(&attr, 8, 1);
            pb_int(&attr, 8, 0);
            pb_int(&attr, 20, 7);
        } else {
            pb_int(&attr, 3, value);
            pb_int(&attr, 20, 2);
        }
        pb_message(&node, 5, &attr);
    }
    pb_message(graph, 1, &node);
}

static void add_value(pb *graph, unsigned field, const char *name, size_t columns)
{
    pb value = {NULL, 0};
    pb type = {NULL, 0};
    pb tensor = {NULL, 0};
    pb shape = {NULL, 0};
    pb dim = {NULL, 0};

    pb_text(&dim, 2, "n");
    pb_message(&shape, 1, &dim);
    pb_int(&dim, 1, columns);
    pb_message(&shape, 1, &dim);
    pb_int(&tensor, 1, 1);
    pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_text(&value, 1, name);
    pb_message(&value, 2, &type);
    pb_message(graph, field, &value);
}

static float *make_floats(size_t count, unsigned seed)
{
    float *const values = malloc(count * sizeof(*values));

    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)((i * 2654435761u + seed * 40503u) % 2001u) / 1000.0f - 1.0f;
    }
    return values;
}

static void add_floats(pb *graph, pb *file, const rig_model *spec, const char *name, size_t rows, size_t columns, unsigned seed)
{
    const size_t count = (rows != 0 ? rows : 1) * (columns != 0 ? columns : 1);
    float *const values = make_floats(count, seed);

    add_tensor(graph, file, spec, name, 1, rows, columns, values, count * sizeof(*values));
    free(values);
}

static void add_int8(pb *graph, pb *file, const rig_model *spec, const char *name, size_t rows,
                     unsigned seed)
{
    uint8_t *const values = malloc(rows * MODEL_OUT);

    assert_non_null(values);
    oc_test_fill(values, rows * MODEL_OUT, seed);
    add_tensor(graph, file, spec, name, 3, rows, MODEL_OUT, values, rows * MODEL_OUT);
    free(values);
}

/* Opset 17, one graph: written to <dir>/model.onnx and freed. */
static void model_finish(pb *graph, const char *dir)
{
    pb model = {NULL, 0};
    pb opset = {NULL, 0};
    char *const path = oc_test_format("%s/model.onnx", dir);

    pb_int(&model, 1, 8);
    pb_text(&model, 2, "ortcrypt-test");
    pb_text(&opset, 1, "");
    pb_int(&opset, 2, 17);
    pb_message(&model, 8, &opset);
    pb_message(&model, 7, graph);
    oc_test_write_file(path, model.data, model.len);
    free(model.data);
    free(path);
}

/* <dir>/model.onnx of which the reference EP takes nothing: x -> SequenceConstruct(k) -> SequenceLength. */
RIG_MODEL_UNUSED static void rig_sequence_model_write(const char *dir)
{
    const rig_model spec = {.external = false};
    pb graph = {NULL, 0};
    pb file = {NULL, 0};

    add_node(&graph, "SequenceConstruct", "k", "x", "s", NULL, 0);
    add_node(&graph, "ConcatFromSequence", "s", NULL, "y", "axis", 0);
    pb_text(&graph, 2, "sequence");
    add_floats(&graph, &file, &spec, "k", 16, MODEL_IN, 1);
    add_value(&graph, 11, "x", MODEL_IN);
    add_value(&graph, 12, "y", MODEL_IN);
    model_finish(&graph, dir);
    free(file.data);
}

/* Writes <dir>/model.onnx and, with external data, <dir>/w.bin. */
RIG_MODEL_UNUSED static void rig_model_write(const char *dir, const rig_model *spec)
{
    const float scale = 0.01f;
    const int64_t zero = 0;
    pb graph = {NULL, 0};
    pb file = {NULL, 0};

    for (size_t i = 0; i < spec->gap; i++) {
        pb_raw(&file, "\xa5", 1);
    }
    add_node(&graph, "Transpose", "w", NULL, "wt", "perm", 0);
    add_node(&graph, "MatMul", "x", "wt", "y0", NULL, 0);
    add_node(&graph, "Cast", "q", NULL, "qf", "to", 1);
    add_node(&graph, "MatMul", "y0", "qf", "y1", NULL, 0);
    add_node(&graph, "DequantizeLinear", "d", "scale", "df", NULL, 0);
    add_node(&graph, "Add", "y1", "df", "y2", NULL, 0);
    if (spec->sequence) {
        add_node(&graph, "SequenceConstruct", "k", NULL, "ks", NULL, 0);
        add_node(&graph, "SequenceAt", "ks", "zero", "kt", NULL, 0);
        add_node(&graph, "MatMul", "y2", "kt", "y3", NULL, 0);
    }
    add_node(&graph, "Add", spec->sequence ? "y3" : "y2", "b", spec->pad != 0 ? "y4" : "y", NULL, 0);
    if (spec->pad != 0) {
        if (spec->pad_external) {
            add_node(&graph, "Transpose", "pad", NULL, "padt", "perm", 0);
            add_node(&graph, "Gather", "padt", "last", "p", "axis", 1);
        } else {
            add_node(&graph, "Gather", "pad", "zero", "p", NULL, 0);
        }
        add_node(&graph, "Add", "y4", "p", "y", NULL, 0);
    }
    pb_text(&graph, 2, "flow");
    add_floats(&graph, &file, spec, "w", MODEL_OUT, MODEL_IN, 1);
    add_int8(&graph, &file, spec, "q", MODEL_OUT, 2);
    add_int8(&graph, &file, spec, "d", 1, 3);
    add_tensor(&graph, &file, spec, "scale", 1, 0, 0, &scale, sizeof(scale));
    add_tensor(&graph, &file, spec, "zero", 7, 0, 0, &zero, sizeof(zero));
    add_floats(&graph, &file, spec, "b", MODEL_OUT, 0, 4);
    if (spec->sequence) {
        add_floats(&graph, &file, spec, "k", MODEL_OUT, MODEL_OUT, 5);
    }
    if (spec->pad_external) {
        const int64_t last = (int64_t)(spec->pad / (MODEL_OUT * sizeof(float))) - 1;
        add_tensor(&graph, &file, spec, "last", 7, 0, 0, &last, sizeof(last));
    }
    if (spec->pad != 0) {
        add_floats(&graph, &file, spec, "pad", spec->pad / (MODEL_OUT * sizeof(float)), MODEL_OUT, 6);
    }
    add_value(&graph, 11, "x", MODEL_IN);
    add_value(&graph, 12, "y", MODEL_OUT);
    model_finish(&graph, dir);
    if (spec->external) {
        char *const path = oc_test_format("%s/w.bin", dir);
        oc_test_write_file(path, file.data, file.len);
        free(path);
    }
    free(file.data);
}

/* For models as an EP writes them. */
typedef struct node {
    const char *context; /* NULL: no attribute */
    int embed;
    int main;
} node;

RIG_MODEL_UNUSED static void add_attribute(pb *to, const char *name, const char *text, int value)
{
    pb attribute = {NULL, 0};

    pb_text(&attribute, 1, name);
    if (text != NULL) {
        pb_text(&attribute, 4, text);
        pb_int(&attribute, 20, 3);
    } else {
        pb_int(&attribute, 3, (uint64_t)value);
        pb_int(&attribute, 20, 2);
    }
    pb_message(to, 5, &attribute);
}

/* A compiled model with these EPContext nodes; `external`: an initializer that refers to a file. */
RIG_MODEL_UNUSED static pb compiled_model(const node *nodes, size_t count, const char *external)
{
    const rig_model spec = {.external = true, .location = external};
    pb model = {NULL, 0};
    pb graph = {NULL, 0};
    pb opset = {NULL, 0};
    pb file = {NULL, 0};

    for (size_t i = 0; i < count; i++) {
        pb context = {NULL, 0};
        pb_text(&context, 1, "x");
        pb_text(&context, 2, i == 0 ? "y" : "z");
        pb_text(&context, 4, "EPContext");
        pb_text(&context, 7, "com.microsoft");
        add_attribute(&context, "main_context", NULL, nodes[i].main);
        add_attribute(&context, "embed_mode", NULL, nodes[i].embed);
        add_attribute(&context, "source", "OrtcryptReference", 0);
        if (nodes[i].context != NULL) {
            add_attribute(&context, "ep_cache_context", nodes[i].context, 0);
        }
        pb_message(&graph, 1, &context);
    }
    if (external != NULL) {
        add_floats(&graph, &file, &spec, "w", 16, 16, 1);
    }
    pb_text(&graph, 2, "compiled");
    add_value(&graph, 11, "x", MODEL_IN);
    add_value(&graph, 12, "y", MODEL_OUT);
    pb_int(&model, 1, 8);
    pb_text(&opset, 1, "");
    pb_int(&opset, 2, 17);
    pb_message(&model, 8, &opset);
    pb_message(&model, 7, &graph);
    free(file.data);
    return model;
}

#endif
