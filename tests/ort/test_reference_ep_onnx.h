/* A writer of small ONNX models for tests: every function appends one field (onnx.proto). */
#ifndef TEST_REFERENCE_EP_ONNX_H
#define TEST_REFERENCE_EP_ONNX_H

#include "test_reference_ep_rig.h"

typedef struct pb {
    char data[16384];
    size_t len;
} pb;

static inline void pb_raw(pb *p, const void *data, size_t len)
{
    assert_true(len <= sizeof(p->data) - p->len);
    memcpy(p->data + p->len, data, len);
    p->len += len;
}

static inline void pb_varint(pb *p, uint64_t value)
{
    do {
        const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        pb_raw(p, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static inline void pb_int(pb *p, unsigned field, int64_t value)
{
    pb_varint(p, (uint64_t)field << 3);
    pb_varint(p, (uint64_t)value);
}

static inline void pb_float(pb *p, unsigned field, float value)
{
    pb_varint(p, (uint64_t)field << 3 | 5);
    pb_raw(p, &value, sizeof(value));
}

static inline void pb_data(pb *p, unsigned field, const void *data, size_t len)
{
    pb_varint(p, (uint64_t)field << 3 | 2);
    pb_varint(p, len);
    pb_raw(p, data, len);
}

static inline void pb_text(pb *p, unsigned field, const char *text)
{
    pb_data(p, field, text, strlen(text));
}

static inline void pb_message(pb *p, unsigned field, const pb *message)
{
    pb_data(p, field, message->data, message->len);
}

/* dims of -1: a symbolic dimension "n"; rank -1: no shape. */
static inline void put_value(pb *graph, unsigned field, const char *name, int type, const int64_t *dims, int rank)
{
    pb shape = {.len = 0};
    pb tensor = {.len = 0};
    pb outer = {.len = 0};
    pb value = {.len = 0};
    for (int i = 0; i < rank; i++) {
        pb dim = {.len = 0};
        if (dims[i] >= 0) {
            pb_int(&dim, 1, dims[i]);
        } else {
            pb_text(&dim, 2, "n");
        }
        pb_message(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, type);
    if (rank >= 0) {
        pb_message(&tensor, 2, &shape);
    }
    pb_message(&outer, 1, &tensor);
    pb_text(&value, 1, name);
    pb_message(&value, 2, &outer);
    pb_message(graph, field, &value);
}

static inline pb float_tensor(const char *name, const float *values, size_t count)
{
    pb tensor = {.len = 0};
    pb_int(&tensor, 1, (int64_t)count);
    pb_int(&tensor, 2, 1);
    pb_text(&tensor, 8, name);
    pb_data(&tensor, 9, values, count * sizeof(*values));
    return tensor;
}

static inline pb string_tensor(const char *name, const char *const *values, size_t count)
{
    pb tensor = {.len = 0};
    pb_int(&tensor, 1, (int64_t)count);
    pb_int(&tensor, 2, 8);
    for (size_t i = 0; i < count; i++) {
        pb_text(&tensor, 6, values[i]);
    }
    pb_text(&tensor, 8, name);
    return tensor;
}

/* Inputs and outputs are separated by spaces; "-" stands for a missing one. */
static inline pb node(const char *op_type, const char *domain, const char *inputs, const char *outputs)
{
    pb made = {.len = 0};
    const char *const lists[2] = {inputs, outputs};
    for (unsigned i = 0; i < 2; i++) {
        for (const char *at = lists[i]; *at != '\0';) {
            const size_t len = strcspn(at, " ");
            pb_data(&made, i + 1, at, len == 1 && *at == '-' ? 0 : len);
            at += len + (at[len] == ' ' ? 1 : 0);
        }
    }
    pb_text(&made, 3, outputs);
    pb_text(&made, 4, op_type);
    pb_text(&made, 7, domain);
    return made;
}

static inline void put_attribute(pb *to, const char *name, int type, const pb *content)
{
    pb attribute = {.len = 0};
    pb_text(&attribute, 1, name);
    pb_raw(&attribute, content->data, content->len);
    pb_int(&attribute, 20, type);
    pb_message(to, 5, &attribute);
}

static inline rig_bytes model_of(const pb *graph)
{
    const struct {
        const char *domain;
        int version;
    } imports[] = {{"", 17}, {"ai.onnx.ml", 2}};
    pb model = {.len = 0};
    pb_int(&model, 1, 8);
    pb_message(&model, 7, graph);
    for (size_t i = 0; i < 2; i++) {
        pb import = {.len = 0};
        pb_text(&import, 1, imports[i].domain);
        pb_int(&import, 2, imports[i].version);
        pb_message(&model, 8, &import);
    }
    return rig_copy(model.data, model.len);
}

#endif
