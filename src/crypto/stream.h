/*
 * crypto/stream.h: Cobblestone-256 (C2SP chunked-encryption, HKDF-Expand over SHA-512, AES-256-GCM, 16 KiB chunks).
 * Format: docs/format.md, "Cobblestone-256".
 *
 * Call order: oc_stream_seal_new / oc_stream_open_new -> one oc_stream_lane per thread -> chunks -> free both.
 * Threads: an oc_stream is read-only after new; a lane belongs to one thread.
 */
#ifndef OC_CRYPTO_STREAM_H
#define OC_CRYPTO_STREAM_H

#include "base/bytes.h"

#define OC_STREAM_KEY_LEN 32
#define OC_STREAM_HEADER_LEN 56 /* salt and commitment */
#define OC_STREAM_CHUNK_LEN 16384
#define OC_STREAM_TAG_LEN 16
#define OC_STREAM_SEALED_CHUNK_LEN (OC_STREAM_CHUNK_LEN + OC_STREAM_TAG_LEN)

/* 56 + n + 16 * (n / 16384 + 1). false on overflow. */
bool oc_stream_sealed_len(uint64_t plain_len, uint64_t *sealed_len);
/* The inverse; false when no plaintext has that length. */
bool oc_stream_plain_len(uint64_t sealed_len, uint64_t *plain_len);
/* n / 16384 + 1: the last chunk holds 0 to 16383 bytes. */
uint64_t oc_stream_chunk_count(uint64_t plain_len);

typedef struct oc_stream oc_stream;
typedef struct oc_stream_lane oc_stream_lane;

/* A new stream: fresh salt, header written to `header`. */
ortcrypt_status oc_stream_seal_new(oc_stream **out, const uint8_t key[OC_STREAM_KEY_LEN], oc_span context,
                                   uint8_t header[OC_STREAM_HEADER_LEN], ortcrypt_error *err);
/* An existing one: ORTCRYPT_E_NOT_AUTHENTIC when the commitment does not match key and context. */
ortcrypt_status oc_stream_open_new(oc_stream **out, const uint8_t key[OC_STREAM_KEY_LEN], oc_span context,
                                   const uint8_t header[OC_STREAM_HEADER_LEN], ortcrypt_error *err);
void oc_stream_free(oc_stream *stream); /* wipes */

ortcrypt_status oc_stream_lane_new(oc_stream_lane **out, const oc_stream *stream, bool seal, ortcrypt_error *err);
void oc_stream_lane_free(oc_stream_lane *lane);

/*
 * One chunk. Sealing: plain_len is OC_STREAM_CHUNK_LEN unless `last`, then 0 to 16383; `sealed` takes plain_len + 16 bytes.
 * Opening: sealed_len likewise; `plain` takes sealed_len - 16 bytes and is wiped when the tag is wrong
 * (ORTCRYPT_E_NOT_AUTHENTIC). `plain` and `sealed` may be the same address.
 */
ortcrypt_status oc_stream_seal_chunk(oc_stream_lane *lane, uint64_t index, bool last, const uint8_t *plain,
                                     size_t plain_len, uint8_t *sealed, ortcrypt_error *err);
ortcrypt_status oc_stream_open_chunk(oc_stream_lane *lane, uint64_t index, bool last, const uint8_t *sealed,
                                     size_t sealed_len, uint8_t *plain, ortcrypt_error *err);

/* Whole streams in memory (manifest). The result is appended to *out; nothing is on failure. */
ortcrypt_status oc_stream_seal_all(const uint8_t key[OC_STREAM_KEY_LEN], oc_span context, oc_span plain, oc_buf *out,
                                   ortcrypt_error *err);
ortcrypt_status oc_stream_open_all(const uint8_t key[OC_STREAM_KEY_LEN], oc_span context, oc_span sealed, oc_buf *out,
                                   ortcrypt_error *err);

#endif
