/* crypto/age_wrap.c: X25519 and scrypt stanzas and the header MAC. */
#include "crypto/age_wrap.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/proverr.h>

#include "crypto/libcrypto.h"
#include "crypto/random.h"

#define X25519_INFO "age-encryption.org/v1/X25519"
#define SCRYPT_LABEL "age-encryption.org/v1/scrypt"
#define SCRYPT_R 8

static const uint8_t zero_nonce[OC_AEAD_NONCE_LEN]; /* a wrap key is used once */

ortcrypt_status oc_age_recipient_of(uint8_t recipient[OC_AGE_KEY_LEN], const uint8_t secret[OC_AGE_KEY_LEN],
                                    ortcrypt_error *err)
{
    size_t len = OC_AGE_KEY_LEN;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", NULL, secret, OC_AGE_KEY_LEN);
    bool ok = key != NULL && EVP_PKEY_get_raw_public_key(key, recipient, &len) == 1 && len == OC_AGE_KEY_LEN;
    EVP_PKEY_free(key);
    return ok ? ORTCRYPT_OK : oc_libcrypto_fail(err, "X25519");
}

/* RFC 7748. *low_order: the shared secret would be all zeros, which libcrypto refuses to give. */
static ortcrypt_status x25519(uint8_t shared[OC_AGE_KEY_LEN], bool *low_order, const uint8_t *secret, const uint8_t *peer,
                              ortcrypt_error *err)
{
    size_t len = OC_AGE_KEY_LEN;
    ortcrypt_status st = ORTCRYPT_OK;
    EVP_PKEY *theirs = EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", NULL, peer, OC_AGE_KEY_LEN);
    EVP_PKEY *ours = EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", NULL, secret, OC_AGE_KEY_LEN);
    EVP_PKEY_CTX *ctx = ours == NULL ? NULL : EVP_PKEY_CTX_new_from_pkey(NULL, ours, NULL);
    *low_order = false;
    if (theirs == NULL || ctx == NULL || EVP_PKEY_derive_init(ctx) != 1 || EVP_PKEY_derive_set_peer(ctx, theirs) != 1) {
        st = oc_libcrypto_fail(err, "X25519");
    } else if (EVP_PKEY_derive(ctx, shared, &len) != 1) {
        *low_order = ERR_GET_REASON(ERR_peek_last_error()) == PROV_R_FAILED_DURING_DERIVATION;
        if (*low_order) {
            ERR_clear_error();
        } else {
            st = oc_libcrypto_fail(err, "X25519");
        }
    }
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(ours);
    EVP_PKEY_free(theirs);
    return st;
}

static ortcrypt_status x25519_wrap_key(oc_age_work *work, const uint8_t *share, const uint8_t *recipient,
                                       ortcrypt_error *err)
{
    uint8_t salt[2 * OC_AGE_KEY_LEN];
    memcpy(salt, share, OC_AGE_KEY_LEN);
    memcpy(salt + OC_AGE_KEY_LEN, recipient, OC_AGE_KEY_LEN);
    return oc_hkdf(work->wrap_key, sizeof(work->wrap_key), OC_HASH_SHA256, OC_SPAN(work->shared, sizeof(work->shared)),
                   OC_SPAN(salt, sizeof(salt)), OC_SPAN_STR(X25519_INFO), err);
}

static ortcrypt_status seal_file_key(const oc_age_work *work, uint8_t body[OC_AGE_BODY_LEN], ortcrypt_error *err)
{
    return oc_chacha_seal(body, work->wrap_key, zero_nonce, OC_SPAN(work->file_key, OC_AGE_FILE_KEY_LEN), err);
}

static ortcrypt_status open_file_key(oc_age_work *work, const uint8_t body[OC_AGE_BODY_LEN], bool *match,
                                     ortcrypt_error *err)
{
    return oc_chacha_open(work->file_key, match, work->wrap_key, zero_nonce, OC_SPAN(body, OC_AGE_BODY_LEN), err);
}

ortcrypt_status oc_age_x25519_seal(oc_age_work *work, const uint8_t recipient[OC_AGE_KEY_LEN],
                                   uint8_t share[OC_AGE_KEY_LEN], uint8_t body[OC_AGE_BODY_LEN], ortcrypt_error *err)
{
    bool low_order = false;
    ortcrypt_status st = oc_random(work->ephemeral, sizeof(work->ephemeral), err);
    if (st == ORTCRYPT_OK) {
        st = oc_age_recipient_of(share, work->ephemeral, err);
    }
    if (st == ORTCRYPT_OK) {
        st = x25519(work->shared, &low_order, work->ephemeral, recipient, err);
    }
    if (st == ORTCRYPT_OK && low_order) {
        st = oc_fail(err, ORTCRYPT_E_INVALID, "a recipient is no usable key: its point has a low order");
    }
    if (st == ORTCRYPT_OK) {
        st = x25519_wrap_key(work, share, recipient, err);
    }
    if (st == ORTCRYPT_OK) {
        st = seal_file_key(work, body, err);
    }
    return st;
}

ortcrypt_status oc_age_x25519_open(oc_age_work *work, const uint8_t identity[OC_AGE_KEY_LEN],
                                   const uint8_t recipient[OC_AGE_KEY_LEN], const oc_age_stanza *stanza, bool *match,
                                   ortcrypt_error *err)
{
    bool low_order = false;
    ortcrypt_status st = x25519(work->shared, &low_order, identity, stanza->share, err);
    if (st == ORTCRYPT_OK && low_order) {
        st = oc_fail(err, ORTCRYPT_E_FORMAT, "the age header is malformed: an X25519 stanza's share has a low order");
    }
    if (st == ORTCRYPT_OK) {
        st = x25519_wrap_key(work, stanza->share, recipient, err);
    }
    if (st == ORTCRYPT_OK) {
        st = open_file_key(work, stanza->body, match, err);
    }
    return st;
}

static ortcrypt_status scrypt_wrap_key(oc_age_work *work, oc_span passphrase, unsigned log_n, const uint8_t *salt,
                                       ortcrypt_error *err)
{
    uint8_t label[sizeof(SCRYPT_LABEL) - 1 + OC_AGE_SCRYPT_SALT_LEN];
    uint64_t n = (uint64_t)1 << log_n;
    uint64_t memory = 128 * SCRYPT_R * (n + 2); /* B, V and T of RFC 7914 */
    memcpy(label, SCRYPT_LABEL, sizeof(SCRYPT_LABEL) - 1);
    memcpy(label + sizeof(SCRYPT_LABEL) - 1, salt, OC_AGE_SCRYPT_SALT_LEN);
    if (EVP_PBE_scrypt((const char *)passphrase.data, passphrase.len, label, sizeof(label), n, SCRYPT_R, 1, memory + 65536,
                       work->wrap_key, sizeof(work->wrap_key)) != 1) {
        ortcrypt_status st = oc_libcrypto_fail(err, "scrypt");
        return st == ORTCRYPT_E_NO_MEMORY ? oc_fail_memory(err, memory, "scrypt") : st;
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_age_scrypt_seal(oc_age_work *work, oc_span passphrase, unsigned log_n,
                                   uint8_t salt[OC_AGE_SCRYPT_SALT_LEN], uint8_t body[OC_AGE_BODY_LEN], ortcrypt_error *err)
{
    ortcrypt_status st = oc_random(salt, OC_AGE_SCRYPT_SALT_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = scrypt_wrap_key(work, passphrase, log_n, salt, err);
    }
    if (st == ORTCRYPT_OK) {
        st = seal_file_key(work, body, err);
    }
    return st;
}

ortcrypt_status oc_age_scrypt_open(oc_age_work *work, oc_span passphrase, const oc_age_stanza *stanza, bool *match,
                                   ortcrypt_error *err)
{
    ortcrypt_status st = scrypt_wrap_key(work, passphrase, (unsigned)stanza->log_n, stanza->salt, err);
    if (st == ORTCRYPT_OK) {
        st = open_file_key(work, stanza->body, match, err);
    }
    return st;
}

ortcrypt_status oc_age_mac(oc_age_work *work, oc_span maced, uint8_t mac[OC_AGE_MAC_LEN], ortcrypt_error *err)
{
    ortcrypt_status st = oc_hkdf(work->mac_key, sizeof(work->mac_key), OC_HASH_SHA256,
                                 OC_SPAN(work->file_key, sizeof(work->file_key)), OC_SPAN(NULL, 0), OC_SPAN_STR("header"), err);
    if (st == ORTCRYPT_OK) {
        st = oc_hmac_sha256(mac, OC_SPAN(work->mac_key, sizeof(work->mac_key)), maced, err);
    }
    return st;
}
