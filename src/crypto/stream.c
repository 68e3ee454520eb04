/*
 * crypto/stream.c: Cobblestone-256. Source: C2SP chunked-encryption, with SHA-512 in HKDF-Expand as Wycheproof's vectors have it.
 * In: the bundle key, a context and bytes. The derived key and base nonce live in the oc_stream's secret memory; each lane's
 * key schedule lives in libcrypto's context, which clears it.
 */
#include "crypto/stream.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/secret.h"
#include "crypto/libcrypto.h"
#include "crypto/random.h"

#define SALT_LEN 24
#define NONCE_LEN 12
#define COMMITMENT_LEN 32
#define DERIVED_LEN (OC_STREAM_KEY_LEN + NONCE_LEN + COMMITMENT_LEN)
#define CHUNK_COUNT_MAX ((uint64_t)1 << 38)
#define CONTEXT_MAX 512
#define INFO_LABEL "c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM" /* its final NUL is part of the info */

struct oc_stream {
    oc_secret derived; /* key, base nonce, commitment */
};

struct oc_stream_lane {
    EVP_CIPHER_CTX *ctx; /* keyed once; only the nonce changes from chunk to chunk */
    bool seal;
    uint8_t base_nonce[NONCE_LEN];
};

bool oc_stream_sealed_len(uint64_t plain_len, uint64_t *sealed_len)
{
    uint64_t count = oc_stream_chunk_count(plain_len);
    if (count > CHUNK_COUNT_MAX) {
        return false;
    }
    *sealed_len = OC_STREAM_HEADER_LEN + plain_len + OC_STREAM_TAG_LEN * count;
    return true;
}

bool oc_stream_plain_len(uint64_t sealed_len, uint64_t *plain_len)
{
    if (sealed_len < OC_STREAM_HEADER_LEN + OC_STREAM_TAG_LEN) {
        return false;
    }
    uint64_t full = (sealed_len - OC_STREAM_HEADER_LEN) / OC_STREAM_SEALED_CHUNK_LEN;
    uint64_t rest = (sealed_len - OC_STREAM_HEADER_LEN) % OC_STREAM_SEALED_CHUNK_LEN;
    if (rest < OC_STREAM_TAG_LEN || full >= CHUNK_COUNT_MAX) {
        return false;
    }
    *plain_len = full * OC_STREAM_CHUNK_LEN + rest - OC_STREAM_TAG_LEN;
    return true;
}

uint64_t oc_stream_chunk_count(uint64_t plain_len)
{
    return plain_len / OC_STREAM_CHUNK_LEN + 1;
}

static ortcrypt_status derive(uint8_t derived[DERIVED_LEN], const uint8_t *key, const uint8_t *salt, oc_span context,
                              ortcrypt_error *err)
{
    uint8_t info[sizeof(INFO_LABEL) + SALT_LEN + CONTEXT_MAX];
    size_t len = sizeof(INFO_LABEL);
    if (context.len > CONTEXT_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "a stream's context of %zu bytes is above the limit of %d", context.len,
                       CONTEXT_MAX);
    }
    memcpy(info, INFO_LABEL, sizeof(INFO_LABEL));
    memcpy(info + len, salt, SALT_LEN);
    len += SALT_LEN;
    if (context.len != 0) {
        memcpy(info + len, context.data, context.len);
        len += context.len;
    }
    return oc_hkdf_expand(derived, DERIVED_LEN, OC_HASH_SHA512, OC_SPAN(key, OC_STREAM_KEY_LEN), OC_SPAN(info, len), err);
}

static ortcrypt_status stream_new(oc_stream **out, const uint8_t *key, const uint8_t *salt, oc_span context,
                                  ortcrypt_error *err)
{
    *out = NULL;
    oc_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return oc_fail_memory(err, sizeof(*stream), "a stream");
    }
    ortcrypt_status st = oc_secret_new(&stream->derived, DERIVED_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = derive(stream->derived.data, key, salt, context, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_stream_free(stream);
        return st;
    }
    *out = stream;
    return ORTCRYPT_OK;
}

static const uint8_t *commitment_of(const oc_stream *stream)
{
    return stream->derived.data + OC_STREAM_KEY_LEN + NONCE_LEN;
}

ortcrypt_status oc_stream_seal_new(oc_stream **out, const uint8_t key[OC_STREAM_KEY_LEN], oc_span context,
                                   uint8_t header[OC_STREAM_HEADER_LEN], ortcrypt_error *err)
{
    uint8_t salt[SALT_LEN];
    *out = NULL;
    ortcrypt_status st = oc_random(salt, sizeof(salt), err);
    if (st == ORTCRYPT_OK) {
        st = stream_new(out, key, salt, context, err);
    }
    if (st == ORTCRYPT_OK) {
        memcpy(header, salt, SALT_LEN);
        memcpy(header + SALT_LEN, commitment_of(*out), COMMITMENT_LEN);
    }
    return st;
}

ortcrypt_status oc_stream_open_new(oc_stream **out, const uint8_t key[OC_STREAM_KEY_LEN], oc_span context,
                                   const uint8_t header[OC_STREAM_HEADER_LEN], ortcrypt_error *err)
{
    ortcrypt_status st = stream_new(out, key, header, context, err);
    if (st == ORTCRYPT_OK && !oc_equal(header + SALT_LEN, commitment_of(*out), COMMITMENT_LEN)) {
        oc_stream_free(*out);
        *out = NULL;
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the stream was altered, or belongs to another key or place");
        oc_at(err, SALT_LEN, NULL);
    }
    return st;
}

void oc_stream_free(oc_stream *stream)
{
    if (stream != NULL) {
        oc_secret_free(&stream->derived);
        free(stream);
    }
}

ortcrypt_status oc_stream_lane_new(oc_stream_lane **out, const oc_stream *stream, bool seal, ortcrypt_error *err)
{
    *out = NULL;
    oc_stream_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return oc_fail_memory(err, sizeof(*lane), "a stream");
    }
    lane->seal = seal;
    memcpy(lane->base_nonce, stream->derived.data + OC_STREAM_KEY_LEN, NONCE_LEN);
    lane->ctx = EVP_CIPHER_CTX_new();
    if (lane->ctx == NULL ||
        EVP_CipherInit_ex(lane->ctx, EVP_aes_256_gcm(), NULL, stream->derived.data, NULL, seal ? 1 : 0) != 1) {
        oc_stream_lane_free(lane);
        return oc_libcrypto_fail(err, "AES-256-GCM");
    }
    *out = lane;
    return ORTCRYPT_OK;
}

void oc_stream_lane_free(oc_stream_lane *lane)
{
    if (lane != NULL) {
        EVP_CIPHER_CTX_free(lane->ctx);
        oc_wipe(lane, sizeof(*lane));
        free(lane);
    }
}

/* Base nonce XOR the chunk's number, big-endian. */
static bool set_nonce(oc_stream_lane *lane, uint64_t index)
{
    uint8_t nonce[NONCE_LEN];
    uint8_t number[8];
    oc_store_be64(number, index);
    memcpy(nonce, lane->base_nonce, NONCE_LEN);
    for (size_t i = 0; i < sizeof(number); i++) {
        nonce[NONCE_LEN - sizeof(number) + i] ^= number[i];
    }
    bool ok = EVP_CipherInit_ex(lane->ctx, NULL, NULL, NULL, nonce, -1) == 1;
    oc_wipe(nonce, sizeof(nonce));
    return ok;
}

static bool chunk_len_valid(bool last, size_t plain_len)
{
    return last ? plain_len < OC_STREAM_CHUNK_LEN : plain_len == OC_STREAM_CHUNK_LEN;
}

static ortcrypt_status check_index(uint64_t index, ortcrypt_error *err)
{
    if (index >= CHUNK_COUNT_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "a stream ends before chunk %llu", (unsigned long long)index);
    }
    return ORTCRYPT_OK;
}

/* Offset of a chunk in the whole stream, for the error. */
static uint64_t chunk_off(uint64_t index)
{
    return OC_STREAM_HEADER_LEN + index * OC_STREAM_SEALED_CHUNK_LEN;
}

ortcrypt_status oc_stream_seal_chunk(oc_stream_lane *lane, uint64_t index, bool last, const uint8_t *plain,
                                     size_t plain_len, uint8_t *sealed, ortcrypt_error *err)
{
    int n = 0;
    uint8_t none = 0;
    ortcrypt_status st = check_index(index, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (!lane->seal || !chunk_len_valid(last, plain_len)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "chunk %llu cannot be sealed with %zu bytes", (unsigned long long)index,
                       plain_len);
    }
    if (!set_nonce(lane, index) ||
        EVP_EncryptUpdate(lane->ctx, sealed, &n, plain_len == 0 ? &none : plain, (int)plain_len) != 1 ||
        EVP_EncryptFinal_ex(lane->ctx, sealed + n, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(lane->ctx, EVP_CTRL_AEAD_GET_TAG, OC_STREAM_TAG_LEN, sealed + plain_len) != 1) {
        oc_wipe(sealed, plain_len); /* it may be the plaintext's own place */
        return oc_libcrypto_fail(err, "AES-256-GCM");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_stream_open_chunk(oc_stream_lane *lane, uint64_t index, bool last, const uint8_t *sealed,
                                     size_t sealed_len, uint8_t *plain, ortcrypt_error *err)
{
    int n = 0;
    uint8_t none = 0;
    uint8_t tag[OC_STREAM_TAG_LEN];
    ortcrypt_status st = check_index(index, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (lane->seal) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "chunk %llu: a sealing lane cannot open", (unsigned long long)index);
    }
    if (sealed_len < OC_STREAM_TAG_LEN || !chunk_len_valid(last, sealed_len - OC_STREAM_TAG_LEN)) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "chunk %llu has %zu bytes: the stream was cut or lengthened",
                     (unsigned long long)index, sealed_len);
        oc_at(err, chunk_off(index), NULL);
        return st;
    }
    size_t plain_len = sealed_len - OC_STREAM_TAG_LEN;
    memcpy(tag, sealed + plain_len, OC_STREAM_TAG_LEN);
    if (!set_nonce(lane, index) || EVP_CIPHER_CTX_ctrl(lane->ctx, EVP_CTRL_AEAD_SET_TAG, OC_STREAM_TAG_LEN, tag) != 1 ||
        EVP_DecryptUpdate(lane->ctx, plain, &n, plain_len == 0 ? &none : sealed, (int)plain_len) != 1) {
        oc_wipe(plain, plain_len);
        return oc_libcrypto_fail(err, "AES-256-GCM");
    }
    if (EVP_DecryptFinal_ex(lane->ctx, plain + n, &n) != 1) {
        oc_wipe(plain, plain_len);
        ERR_clear_error();
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "chunk %llu was altered", (unsigned long long)index);
        oc_at(err, chunk_off(index), NULL);
        return st;
    }
    return ORTCRYPT_OK;
}
