/* crypto/age_payload.c: age's payload: 16-byte nonce, then 64 KiB chunks of ChaCha20-Poly1305; the last says so in its nonce. */
#include <string.h>

#include "crypto/age_wrap.h"
#include "crypto/libcrypto.h"
#include "crypto/random.h"

#define CHUNK_LEN 65536
#define SEALED_CHUNK_LEN (CHUNK_LEN + OC_AEAD_TAG_LEN)

static ortcrypt_status derive(oc_age_work *work, const uint8_t *nonce, ortcrypt_error *err)
{
    return oc_hkdf(work->payload_key, sizeof(work->payload_key), OC_HASH_SHA256,
                   OC_SPAN(work->file_key, sizeof(work->file_key)), OC_SPAN(nonce, OC_AGE_NONCE_LEN), OC_SPAN_STR("payload"),
                   err);
}

/* 11 bytes of big-endian counter, then 1 for the last chunk. */
static void chunk_nonce(uint8_t nonce[OC_AEAD_NONCE_LEN], uint64_t index, bool last)
{
    memset(nonce, 0, OC_AEAD_NONCE_LEN);
    oc_store_be64(nonce + 3, index);
    nonce[OC_AEAD_NONCE_LEN - 1] = last;
}

ortcrypt_status oc_age_payload_seal(oc_age_work *work, oc_span payload, oc_buf *out, ortcrypt_error *err)
{
    uint8_t nonce[OC_AGE_NONCE_LEN];
    uint8_t chunk[OC_AEAD_NONCE_LEN];
    ortcrypt_status st = oc_random(nonce, sizeof(nonce), err);
    if (st == ORTCRYPT_OK) {
        st = derive(work, nonce, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append(out, nonce, sizeof(nonce), err);
    }
    bool last = false;
    for (uint64_t i = 0; st == ORTCRYPT_OK && !last; i++) {
        uint8_t *room = NULL;
        size_t len = payload.len < CHUNK_LEN ? payload.len : CHUNK_LEN;
        last = len == payload.len;
        chunk_nonce(chunk, i, last);
        st = oc_buf_reserve(out, len + OC_AEAD_TAG_LEN, &room, err);
        if (st == ORTCRYPT_OK) {
            st = oc_chacha_seal(room, work->payload_key, chunk, OC_SPAN(payload.data, len), err);
        }
        if (st == ORTCRYPT_OK) {
            out->len += len + OC_AEAD_TAG_LEN;
            payload = OC_SPAN(len == 0 ? NULL : payload.data + len, payload.len - len);
        }
    }
    return st;
}

static ortcrypt_status altered(ortcrypt_error *err, const char *how)
{
    return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the age file's payload was %s", how);
}

static ortcrypt_status open_chunks(const oc_age_work *work, oc_span sealed, uint8_t *plain, ortcrypt_error *err)
{
    uint8_t nonce[OC_AEAD_NONCE_LEN];
    bool last = false;
    for (uint64_t i = 0; !last; i++) {
        bool authentic = false;
        size_t len = sealed.len < SEALED_CHUNK_LEN ? sealed.len : SEALED_CHUNK_LEN;
        last = len == sealed.len;
        chunk_nonce(nonce, i, last);
        ortcrypt_status st = oc_chacha_open(plain + i * CHUNK_LEN, &authentic, work->payload_key, nonce,
                                            OC_SPAN(sealed.data, len), err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
        if (!authentic) {
            return altered(err, "altered or cut");
        }
        sealed = OC_SPAN(sealed.data + len, sealed.len - len);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_age_payload_open(oc_age_work *work, oc_span rest, oc_secret *payload, ortcrypt_error *err)
{
    oc_secret plain = {NULL, 0, 0};
    oc_span sealed = OC_SPAN(rest.data + OC_AGE_NONCE_LEN, rest.len - OC_AGE_NONCE_LEN);
    size_t full = sealed.len / SEALED_CHUNK_LEN;
    size_t last = sealed.len % SEALED_CHUNK_LEN;
    if (sealed.len < OC_AEAD_TAG_LEN || (last != 0 && last < OC_AEAD_TAG_LEN)) {
        return altered(err, "cut");
    }
    if (full != 0 && last == OC_AEAD_TAG_LEN) {
        return altered(err, "altered: an empty chunk follows a full one");
    }
    ortcrypt_status st = oc_secret_new(&plain, full * CHUNK_LEN + (last == 0 ? 0 : last - OC_AEAD_TAG_LEN), err);
    if (st == ORTCRYPT_OK) {
        st = derive(work, rest.data, err);
    }
    if (st == ORTCRYPT_OK) {
        st = open_chunks(work, sealed, plain.data, err);
    }
    if (st == ORTCRYPT_OK) {
        *payload = plain;
        plain = (oc_secret){NULL, 0, 0};
    }
    oc_secret_free(&plain);
    return st;
}
