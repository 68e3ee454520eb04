/* base/bytes.c: growing buffers, wiping, checked lengths, big-endian numbers. The caller owns every buffer. */
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 256

void oc_wipe(void *memory, size_t len)
{
    if (len != 0) {
        explicit_bzero(memory, len);
    }
}

bool oc_equal(const void *a, const void *b, size_t len)
{
    const volatile uint8_t *x = a;
    const volatile uint8_t *y = b;
    uint8_t differ = 0;
    for (size_t i = 0; i < len; i++) {
        differ |= (uint8_t)(x[i] ^ y[i]);
    }
    return differ == 0;
}

bool oc_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

bool oc_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

ortcrypt_status oc_len(uint64_t len, uint64_t limit, const char *what, size_t *out, ortcrypt_error *err)
{
    if (limit > SIZE_MAX / 2) {
        limit = SIZE_MAX / 2;
    }
    if (len > limit) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%s: %llu bytes are above the limit of %llu", what,
                       (unsigned long long)len, (unsigned long long)limit);
    }
    *out = (size_t)len;
    return ORTCRYPT_OK;
}

/* Memory is moved by hand and not by realloc, which would leave the old copy behind unwiped. */
static ortcrypt_status grow(oc_buf *buf, size_t need, ortcrypt_error *err)
{
    size_t cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    }
    if (cap > buf->max) {
        cap = buf->max;
    }
    uint8_t *data = malloc(cap == 0 ? 1 : cap);
    if (data == NULL) {
        return oc_fail_memory(err, cap, "a buffer");
    }
    if (buf->len != 0) {
        memcpy(data, buf->data, buf->len);
    }
    oc_wipe(buf->data, buf->cap);
    free(buf->data);
    buf->data = data;
    buf->cap = cap;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_buf_reserve(oc_buf *buf, size_t len, uint8_t **room, ortcrypt_error *err)
{
    if (buf->len > buf->max || len > buf->max - buf->len) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%zu bytes and %zu more are above the limit of %zu", buf->len, len, buf->max);
    }
    if (buf->data == NULL || len > buf->cap - buf->len) {
        ortcrypt_status st = grow(buf, buf->len + len, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    *room = buf->data + buf->len;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_buf_append(oc_buf *buf, const void *data, size_t len, ortcrypt_error *err)
{
    uint8_t *room = NULL;
    if (len == 0) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = oc_buf_reserve(buf, len, &room, err);
    if (st == ORTCRYPT_OK) {
        memcpy(room, data, len);
        buf->len += len;
    }
    return st;
}

ortcrypt_status oc_buf_append_str(oc_buf *buf, const char *text, ortcrypt_error *err)
{
    return oc_buf_append(buf, text, strlen(text), err);
}

void oc_buf_free(oc_buf *buf)
{
    if (buf != NULL) {
        oc_wipe(buf->data, buf->cap);
        free(buf->data);
        *buf = OC_BUF(buf->max);
    }
}

void oc_store_be64(uint8_t out[8], uint64_t value)
{
    for (int i = 7; i >= 0; i--) {
        out[i] = (uint8_t)value;
        value >>= 8;
    }
}

uint64_t oc_load_be64(const uint8_t in[8])
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | in[i];
    }
    return value;
}

ortcrypt_status oc_strdup(char **out, const char *text, ortcrypt_error *err)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (copy == NULL) {
        return oc_fail_memory(err, size, "a string");
    }
    memcpy(copy, text, size);
    *out = copy;
    return ORTCRYPT_OK;
}
