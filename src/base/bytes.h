/*
 * base/bytes.h: byte spans, growing buffers, checked lengths, hex, base64, big-endian numbers, names.
 * Rule: every length from outside passes one of the checked conversions before it reaches an allocation.
 */
#ifndef OC_BASE_BYTES_H
#define OC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Borrowed bytes. data may be NULL only when len is 0. */
typedef struct oc_span {
    const uint8_t *data;
    size_t len;
} oc_span;

#define OC_SPAN(pointer, length) ((oc_span){(const uint8_t *)(pointer), (length)})
#define OC_SPAN_STR(literal) ((oc_span){(const uint8_t *)(literal), sizeof(literal) - 1})

/* A growing buffer born with a maximum. Owned; wiped when freed. {0} with max set is a valid empty one. */
typedef struct oc_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t max;
} oc_buf;

#define OC_BUF(maximum) ((oc_buf){NULL, 0, 0, (maximum)})

ortcrypt_status oc_buf_append(oc_buf *buf, const void *data, size_t len, ortcrypt_error *err);
ortcrypt_status oc_buf_append_str(oc_buf *buf, const char *text, ortcrypt_error *err);
/* Room for `len` more bytes; *room points to them; they count once the caller adds to buf->len. */
ortcrypt_status oc_buf_reserve(oc_buf *buf, size_t len, uint8_t **room, ortcrypt_error *err);
void oc_buf_free(oc_buf *buf);

/* Not optimised away. */
void oc_wipe(void *memory, size_t len);
/* Constant-time comparison of secrets and tags. */
bool oc_equal(const void *a, const void *b, size_t len);

/* false on overflow; *out untouched then. */
bool oc_add_u64(uint64_t a, uint64_t b, uint64_t *out);
bool oc_mul_u64(uint64_t a, uint64_t b, uint64_t *out);
/* The one conversion of outside lengths to memory lengths: ORTCRYPT_E_LIMIT, naming `what`, above `limit` or SIZE_MAX/2. */
ortcrypt_status oc_len(uint64_t len, uint64_t limit, const char *what, size_t *out, ortcrypt_error *err);

/* Lower hex only; upper case is refused when decoding. hex has 2*len characters, encode adds a NUL. */
void oc_hex_encode(char *hex, const uint8_t *data, size_t len);
bool oc_hex_decode(uint8_t *data, size_t len, const char *hex, size_t hex_len);

/* Standard base64. With pad false: age's unpadded form. Decoding accepts only the canonical text. */
size_t oc_base64_encode(char *text, const uint8_t *data, size_t len, bool pad); /* returns characters; adds a NUL */
bool oc_base64_decode(uint8_t *data, size_t *len, size_t max, const char *text, size_t text_len, bool pad);

void oc_store_be64(uint8_t out[8], uint64_t value);
uint64_t oc_load_be64(const uint8_t in[8]);

bool oc_utf8_valid(const char *text, size_t len); /* no NUL inside, no surrogates, no overlong forms */

/* A name as the format allows it: 1 to 4096 bytes of UTF-8, no NUL. */
#define OC_NAME_MAX 4096
bool oc_name_valid(const char *name, size_t len);

/* strdup/strndup with an error; NULL-safe free is free(). */
ortcrypt_status oc_strdup(char **out, const char *text, ortcrypt_error *err);

#endif
