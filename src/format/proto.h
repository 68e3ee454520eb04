/*
 * format/proto.h: protobuf fields read from an oc_source through a small window. Private to src/format.
 * Call order: oc_proto_open -> oc_proto_next ... (set pos to a field's off to enter it) -> oc_proto_close. One thread.
 *
 * What protobuf's own parsers read in different ways is refused: groups, tags that are not minimal, lengths of more than five
 * bytes, a known field of another wire type, a second value for a field that has one (protobuf would merge or replace).
 */
#ifndef OC_FORMAT_PROTO_H
#define OC_FORMAT_PROTO_H

#include "format/onnx.h"

#define OC_PROTO_MAX 0x7fffffffu /* the largest message protobuf takes */

typedef enum oc_wire { OC_WIRE_VARINT = 0, OC_WIRE_FIXED64 = 1, OC_WIRE_LEN = 2, OC_WIRE_FIXED32 = 5 } oc_wire;

typedef struct oc_field {
    uint32_t number;
    oc_wire wire;
    uint64_t tag_off; /* where the tag begins */
    uint64_t len_off; /* OC_WIRE_LEN: where the length begins */
    uint64_t off;     /* where the content begins */
    uint64_t len;     /* bytes of content */
    uint64_t value;   /* OC_WIRE_VARINT only */
} oc_field;

/* One field of a message as onnx.proto has it. */
typedef struct oc_rule {
    uint32_t number;
    oc_wire wire;
    enum { OC_ONCE, OC_MANY, OC_PACKED } count; /* OC_PACKED: repeated numbers, also as one OC_WIRE_LEN field */
    const char *name;
} oc_rule;

typedef struct oc_proto {
    const oc_source *source;
    const char *what; /* the file's name in sentences */
    uint8_t *window;
    uint64_t window_off;
    size_t window_len;
    uint64_t pos;
} oc_proto;

/* `source` and `what` are borrowed until close. */
ortcrypt_status oc_proto_open(oc_proto *in, const oc_source *source, const char *what, ortcrypt_error *err);
void oc_proto_close(oc_proto *in); /* wipes the window */

/* Reads the field at in->pos, which is below `end` (the end of its message), and moves behind its content. */
ortcrypt_status oc_proto_next(oc_proto *in, uint64_t end, oc_field *field, ortcrypt_error *err);
/* One varint at in->pos, below `end`. */
ortcrypt_status oc_proto_varint(oc_proto *in, uint64_t end, uint64_t *value, ortcrypt_error *err);

/*
 * The rule for a field, NULL when onnx.proto does not know it. `seen` holds one bit per rule (at most 32) and starts at 0.
 * ORTCRYPT_E_INPUT: another wire type, or a second one of an OC_ONCE field. `message` names the message in sentences.
 */
ortcrypt_status oc_proto_rule(const oc_proto *in, const oc_field *field, const char *message, const oc_rule *rules,
                              size_t rule_count, uint32_t *seen, const oc_rule **rule, ortcrypt_error *err);

/* A copy of a field's text: UTF-8 without NUL, at most OC_NAME_MAX bytes. NULL-terminated, heap. */
ortcrypt_status oc_proto_text(oc_proto *in, const oc_field *field, const char *name, char **out, ortcrypt_error *err);
/* Whether a field's bytes are `text`. */
ortcrypt_status oc_proto_equals(oc_proto *in, const oc_field *field, const char *text, bool *equal, ortcrypt_error *err);

/* A hash of a field's bytes, of which there are OC_NAME_MAX at most, whatever they are. */
uint64_t oc_proto_name_hash(const char *name, size_t len);
ortcrypt_status oc_proto_hash(oc_proto *in, const oc_field *field, uint64_t *hash, ortcrypt_error *err);

/* "<what> is no usable ONNX model: <sentence>", with the offset. */
ortcrypt_status oc_proto_refuse(const oc_proto *in, uint64_t offset, ortcrypt_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
