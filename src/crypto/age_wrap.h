/*
 * crypto/age_wrap.h: age's three steps below the header: file key <-> stanza, header MAC, payload. Source: C2SP age specification.
 * Every secret is in the caller's oc_age_work, which lives in an oc_secret.
 */
#ifndef OC_CRYPTO_AGE_WRAP_H
#define OC_CRYPTO_AGE_WRAP_H

#include "crypto/age_header.h"

#define OC_AGE_LOG_N_MAX 30u /* 1 TiB of scrypt memory: nothing above it is tried */

typedef struct oc_age_work {
    uint8_t file_key[OC_AGE_FILE_KEY_LEN];
    uint8_t ephemeral[OC_AGE_KEY_LEN];
    uint8_t shared[OC_AGE_KEY_LEN];
    uint8_t wrap_key[32];
    uint8_t mac_key[32];
    uint8_t payload_key[32];
} oc_age_work;

/* `share` and `body` are outputs when sealing. */
ortcrypt_status oc_age_x25519_seal(oc_age_work *work, const uint8_t recipient[OC_AGE_KEY_LEN],
                                   uint8_t share[OC_AGE_KEY_LEN], uint8_t body[OC_AGE_BODY_LEN], ortcrypt_error *err);
/* *match: work->file_key is set. ORTCRYPT_E_FORMAT for a share of low order. */
ortcrypt_status oc_age_x25519_open(oc_age_work *work, const uint8_t identity[OC_AGE_KEY_LEN],
                                   const uint8_t recipient[OC_AGE_KEY_LEN], const oc_age_stanza *stanza, bool *match,
                                   ortcrypt_error *err);

ortcrypt_status oc_age_scrypt_seal(oc_age_work *work, oc_span passphrase, unsigned log_n,
                                   uint8_t salt[OC_AGE_SCRYPT_SALT_LEN], uint8_t body[OC_AGE_BODY_LEN], ortcrypt_error *err);
ortcrypt_status oc_age_scrypt_open(oc_age_work *work, oc_span passphrase, const oc_age_stanza *stanza, bool *match,
                                   ortcrypt_error *err);

/* MAC of the header under work->file_key. */
ortcrypt_status oc_age_mac(oc_age_work *work, oc_span maced, uint8_t mac[OC_AGE_MAC_LEN], ortcrypt_error *err);

/* Appends nonce and chunks to *out (which the caller cuts back on failure). */
ortcrypt_status oc_age_payload_seal(oc_age_work *work, oc_span payload, oc_buf *out, ortcrypt_error *err);
/* `rest` is nonce and chunks. *payload is set on success only. */
ortcrypt_status oc_age_payload_open(oc_age_work *work, oc_span rest, oc_secret *payload, ortcrypt_error *err);

#endif
