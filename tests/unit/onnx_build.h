/* tests/unit/onnx_build.h: protobuf by hand, for models that no writer would make. A pb is a message being built, by value. */
#ifndef OC_TESTS_ONNX_BUILD_H
#define OC_TESTS_ONNX_BUILD_H

#include <stdint.h>
#include <string.h>

#include "format/onnx.h"

typedef struct pb {
    uint8_t data[6000];
    size_t len;
} pb;

static inline void pb_raw(pb *m, const void *data, size_t len)
{
    assert_true(len <= sizeof m->data - m->len);
    memcpy(m->data + m->len, data, len);
    m->len += len;
}

static inline void pb_varint(pb *m, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        pb_raw(m, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static inline void pb_number(pb *m, unsigned field, uint64_t value)
{
    pb_varint(m, field << 3);
    pb_varint(m, value);
}

static inline void pb_bytes(pb *m, unsigned field, const void *data, size_t len)
{
    pb_varint(m, field << 3 | 2);
    pb_varint(m, len);
    pb_raw(m, data, len);
}

static inline void pb_text(pb *m, unsigned field, const char *text)
{
    pb_bytes(m, field, text, strlen(text));
}

static inline void pb_message(pb *m, unsigned field, const pb *child)
{
    pb_bytes(m, field, child->data, child->len);
}

static inline void pb_entry(pb *tensor, const char *key, const char *value)
{
    pb entry = {.len = 0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

/* float [2, 3] named `name` at `location`, offset 8, length 24. */
static inline pb pb_external(const char *name, const char *location)
{
    pb t = {.len = 0};
    pb_number(&t, 1, 2);
    pb_number(&t, 1, 3);
    pb_number(&t, 2, 1);
    pb_text(&t, 8, name);
    pb_entry(&t, "location", location);
    pb_entry(&t, "offset", "8");
    pb_entry(&t, "length", "24");
    pb_number(&t, 14, 1);
    return t;
}

/* int8 [4] with raw_data. */
static inline pb pb_embedded(const char *name)
{
    pb t = {.len = 0};
    pb_number(&t, 1, 4);
    pb_number(&t, 2, 3);
    pb_text(&t, 8, name);
    pb_bytes(&t, 9, "\1\2\3\4", 4);
    return t;
}

/* A model with this graph. */
static inline pb pb_model(const pb *graph)
{
    pb m = {.len = 0};
    pb_number(&m, 1, 8);
    pb_text(&m, 2, "by hand");
    pb_message(&m, 7, graph);
    return m;
}

/* A model whose graph has this one initializer. */
static inline pb pb_model_of(const pb *tensor)
{
    pb g = {.len = 0};
    pb_message(&g, 5, tensor);
    return pb_model(&g);
}

static inline ortcrypt_status pb_scan(const pb *m, oc_onnx_model **out, ortcrypt_error *err)
{
    const oc_span span = OC_SPAN(m->data, m->len);
    const oc_source source = oc_source_memory(&span);
    *out = NULL;
    return oc_onnx_scan(out, &source, "m.onnx", err);
}

#endif
