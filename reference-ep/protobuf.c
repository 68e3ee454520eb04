/*
 * Writing protobuf into a growing buffer. Wire types: 0 varint, 2 length-delimited, 5 four bytes.
 * Source: protobuf's encoding document. A nested message's length is a five-byte varint (longer than needed is legal), so that
 * it can be filled in afterwards without moving what follows.
 */
#include <stdlib.h>
#include <string.h>

#include "reference_ep.h"

enum { LENGTH_BYTES = 5, VARINT_MAX = 10 };

void oc_ref_reserve(oc_ref_bytes *bytes, size_t capacity)
{
    if (bytes->failed || capacity <= bytes->capacity) {
        return;
    }
    uint8_t *const data = realloc(bytes->data, capacity);
    if (data == NULL) {
        bytes->failed = true;
        return;
    }
    bytes->data = data;
    bytes->capacity = capacity;
}

uint8_t *oc_ref_append(oc_ref_bytes *bytes, size_t len)
{
    if (bytes->failed || len > SIZE_MAX / 2 - bytes->len) {
        bytes->failed = true;
        return NULL;
    }
    const size_t need = bytes->len + len;
    if (need > bytes->capacity) {
        oc_ref_reserve(bytes, need + need / 4 + 256);
    }
    if (bytes->failed) {
        return NULL;
    }
    uint8_t *const at = bytes->data + bytes->len;
    bytes->len = need;
    return at;
}

void oc_ref_free(oc_ref_bytes *bytes)
{
    const oc_ref_bytes empty = {NULL, 0, 0, false};
    free(bytes->data);
    *bytes = empty;
}

static void put_varint(oc_ref_bytes *bytes, uint64_t value)
{
    uint8_t text[VARINT_MAX];
    size_t len = 0;
    do {
        const uint8_t more = value > 0x7f ? 0x80 : 0;
        text[len++] = (uint8_t)(value & 0x7f) | more;
        value >>= 7;
    } while (value != 0);
    uint8_t *const at = oc_ref_append(bytes, len);
    if (at != NULL) {
        memcpy(at, text, len);
    }
}

static void put_tag(oc_ref_bytes *bytes, unsigned field, unsigned wire_type)
{
    put_varint(bytes, (uint64_t)field << 3 | wire_type);
}

void oc_ref_put_int(oc_ref_bytes *bytes, unsigned field, int64_t value)
{
    put_tag(bytes, field, 0);
    put_varint(bytes, (uint64_t)value);
}

void oc_ref_put_float(oc_ref_bytes *bytes, unsigned field, float value)
{
    put_tag(bytes, field, 5);
    uint8_t *const at = oc_ref_append(bytes, sizeof(value));
    if (at != NULL) {
        memcpy(at, &value, sizeof(value)); /* little-endian, as all our platforms are */
    }
}

void oc_ref_put_data(oc_ref_bytes *bytes, unsigned field, const void *data, size_t len)
{
    put_tag(bytes, field, 2);
    put_varint(bytes, len);
    uint8_t *const at = oc_ref_append(bytes, len);
    if (at != NULL && len != 0) {
        memcpy(at, data, len);
    }
}

void oc_ref_put_text(oc_ref_bytes *bytes, unsigned field, const char *text)
{
    oc_ref_put_data(bytes, field, text, strlen(text));
}

size_t oc_ref_begin(oc_ref_bytes *bytes, unsigned field)
{
    put_tag(bytes, field, 2);
    (void)oc_ref_append(bytes, LENGTH_BYTES);
    return bytes->len;
}

void oc_ref_end(oc_ref_bytes *bytes, size_t mark)
{
    if (bytes->failed) {
        return;
    }
    uint64_t len = bytes->len - mark; /* engines are below 2 GiB, checked by the caller: 35 bits are enough */
    uint8_t *const at = bytes->data + mark - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        const uint8_t more = i + 1 < LENGTH_BYTES ? 0x80 : 0;
        at[i] = (uint8_t)(len & 0x7f) | more;
        len >>= 7;
    }
}
