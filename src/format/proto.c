/* format/proto.c: see proto.h. Source of the encoding: protobuf's "Encoding" page; of the differences: its C++ parser. */
#include "format/proto.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_LEN (64u * 1024u)
#define VARINT_MAX 10 /* bytes */
#define LENGTH_MAX 5  /* bytes of a tag or a length: parsers cut longer ones off in different ways */

ortcrypt_status oc_proto_refuse(const oc_proto *in, uint64_t offset, ortcrypt_error *err, const char *format, ...)
{
    char sentence[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    ortcrypt_status st = oc_fail(err, ORTCRYPT_E_INPUT, "%s is no usable ONNX model: %s (at byte %llu)", in->what, sentence,
                                 (unsigned long long)offset);
    oc_at(err, offset, NULL);
    return st;
}

ortcrypt_status oc_proto_open(oc_proto *in, const oc_source *source, const char *what, ortcrypt_error *err)
{
    uint8_t *window = malloc(WINDOW_LEN);

    if (window == NULL) {
        return oc_fail_memory(err, WINDOW_LEN, "a read-ahead window");
    }
    *in = (oc_proto){.source = source, .what = what, .window = window};
    return ORTCRYPT_OK;
}

void oc_proto_close(oc_proto *in)
{
    if (in->window != NULL) {
        oc_wipe(in->window, WINDOW_LEN);
        free(in->window);
        in->window = NULL;
    }
}

/* Makes the byte at in->pos, which must exist, and as much as possible after it available. */
static ortcrypt_status fill(oc_proto *in, ortcrypt_error *err)
{
    const uint64_t left = in->source->size - in->pos;
    const size_t len = left < WINDOW_LEN ? (size_t)left : WINDOW_LEN;

    in->window_len = 0;
    ortcrypt_status st = in->source->read(in->source->state, in->pos, in->window, len, err);
    if (st == ORTCRYPT_OK) {
        in->window_off = in->pos;
        in->window_len = len;
    }
    return st;
}

static ortcrypt_status next_byte(oc_proto *in, uint64_t end, uint8_t *byte, ortcrypt_error *err)
{
    if (in->pos >= end || in->pos >= in->source->size) {
        return oc_proto_refuse(in, in->pos, err, "a field is cut off");
    }
    if (in->pos < in->window_off || in->pos - in->window_off >= in->window_len) {
        ortcrypt_status st = fill(in, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    *byte = in->window[in->pos - in->window_off];
    in->pos++;
    return ORTCRYPT_OK;
}

static ortcrypt_status read_varint(oc_proto *in, uint64_t end, size_t max_bytes, uint64_t *value, size_t *bytes,
                                   ortcrypt_error *err)
{
    const uint64_t start = in->pos;
    uint64_t result = 0;

    for (size_t i = 0; i < max_bytes; i++) {
        uint8_t byte = 0;
        ortcrypt_status st = next_byte(in, end, &byte, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
        if (i == VARINT_MAX - 1 && byte > 1) {
            break;
        }
        result |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            *value = result;
            *bytes = i + 1;
            return ORTCRYPT_OK;
        }
    }
    return oc_proto_refuse(in, start, err, "a number is too long");
}

ortcrypt_status oc_proto_varint(oc_proto *in, uint64_t end, uint64_t *value, ortcrypt_error *err)
{
    size_t bytes = 0;

    return read_varint(in, end, VARINT_MAX, value, &bytes, err);
}

static ortcrypt_status read_tag(oc_proto *in, uint64_t end, oc_field *field, ortcrypt_error *err)
{
    uint64_t tag = 0;
    size_t bytes = 0;

    field->tag_off = in->pos;
    ortcrypt_status st = read_varint(in, end, LENGTH_MAX, &tag, &bytes, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (tag > UINT32_MAX || tag >> 3 == 0 || (bytes > 1 && tag >> (7 * (bytes - 1)) == 0)) {
        return oc_proto_refuse(in, field->tag_off, err, "its bytes are no protobuf fields");
    }
    field->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case OC_WIRE_VARINT:
    case OC_WIRE_FIXED64:
    case OC_WIRE_LEN:
    case OC_WIRE_FIXED32:
        field->wire = (oc_wire)(tag & 7);
        return ORTCRYPT_OK;
    case 3:
    case 4:
        return oc_proto_refuse(in, field->tag_off, err, "it holds a protobuf group, which ONNX has none of");
    default:
        return oc_proto_refuse(in, field->tag_off, err, "its bytes are no protobuf fields");
    }
}

ortcrypt_status oc_proto_next(oc_proto *in, uint64_t end, oc_field *field, ortcrypt_error *err)
{
    oc_field f = {0};
    size_t bytes = 0;

    ortcrypt_status st = read_tag(in, end, &f, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    f.len_off = f.off = in->pos;
    if (f.wire == OC_WIRE_VARINT) {
        st = read_varint(in, end, VARINT_MAX, &f.value, &bytes, err);
        f.len = bytes;
    } else if (f.wire == OC_WIRE_LEN) {
        st = read_varint(in, end, LENGTH_MAX, &f.len, &bytes, err);
        f.off = in->pos;
    } else {
        f.len = f.wire == OC_WIRE_FIXED64 ? 8 : 4;
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (f.len > OC_PROTO_MAX || f.len > end - f.off) {
        return oc_proto_refuse(in, f.tag_off, err, "field %u is longer than what holds it; the file may be cut off",
                               (unsigned)f.number);
    }
    in->pos = f.off + f.len;
    *field = f;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_proto_rule(const oc_proto *in, const oc_field *field, const char *message, const oc_rule *rules,
                              size_t rule_count, uint32_t *seen, const oc_rule **rule, ortcrypt_error *err)
{
    size_t i = 0;

    while (i < rule_count && rules[i].number != field->number) {
        i++;
    }
    if (i == rule_count) {
        *rule = NULL;
        return ORTCRYPT_OK;
    }
    if (field->wire != rules[i].wire && !(rules[i].count == OC_PACKED && field->wire == OC_WIRE_LEN)) {
        return oc_proto_refuse(in, field->tag_off, err, "the field %s of a %s has the wrong wire type", rules[i].name,
                               message);
    }
    if (rules[i].count == OC_ONCE && (*seen & 1u << i) != 0) {
        return oc_proto_refuse(in, field->tag_off, err, "a %s has two fields %s, which readers would understand differently",
                               message, rules[i].name);
    }
    *seen |= 1u << i;
    *rule = &rules[i];
    return ORTCRYPT_OK;
}

/* Copies a field's bytes; leaves in->pos alone. */
static ortcrypt_status read_bytes(oc_proto *in, const oc_field *field, char *out, ortcrypt_error *err)
{
    const uint64_t resume = in->pos;
    ortcrypt_status st = ORTCRYPT_OK;

    in->pos = field->off;
    for (uint64_t i = 0; st == ORTCRYPT_OK && i < field->len; i++) {
        uint8_t byte = 0;
        st = next_byte(in, field->off + field->len, &byte, err);
        out[i] = (char)byte;
    }
    in->pos = resume;
    return st;
}

ortcrypt_status oc_proto_text(oc_proto *in, const oc_field *field, const char *name, char **out, ortcrypt_error *err)
{
    char *text = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    if (field->len > OC_NAME_MAX) {
        return oc_proto_refuse(in, field->tag_off, err, "%s has %llu bytes, the limit is %d", name,
                               (unsigned long long)field->len, OC_NAME_MAX);
    }
    text = malloc((size_t)field->len + 1);
    if (text == NULL) {
        return oc_fail_memory(err, field->len + 1, name);
    }
    text[field->len] = '\0';
    st = read_bytes(in, field, text, err);
    if (st == ORTCRYPT_OK && !oc_utf8_valid(text, (size_t)field->len)) {
        st = oc_proto_refuse(in, field->tag_off, err, "%s is not UTF-8 without NUL", name);
    }
    if (st != ORTCRYPT_OK) {
        free(text);
        return st;
    }
    free(*out);
    *out = text;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_proto_equals(oc_proto *in, const oc_field *field, const char *text, bool *equal, ortcrypt_error *err)
{
    char bytes[64];
    const size_t len = strlen(text);

    *equal = false;
    if (field->len != len || len > sizeof bytes) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = read_bytes(in, field, bytes, err);
    *equal = st == ORTCRYPT_OK && memcmp(bytes, text, len) == 0;
    return st;
}

uint64_t oc_proto_name_hash(const char *name, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3u;
    }
    return hash;
}

ortcrypt_status oc_proto_hash(oc_proto *in, const oc_field *field, uint64_t *hash, ortcrypt_error *err)
{
    char bytes[OC_NAME_MAX];

    if (field->len > sizeof bytes) {
        return oc_proto_refuse(in, field->tag_off, err, "a name has %llu bytes, the limit is %d", (unsigned long long)field->len, OC_NAME_MAX);
    }
    const ortcrypt_status st = read_bytes(in, field, bytes, err);
    *hash = st == ORTCRYPT_OK ? oc_proto_name_hash(bytes, (size_t)field->len) : 0;
    return st;
}
