/* crypto/libcrypto.c: one border to OpenSSL's errors, and the primitives that age needs besides hashes. */
#include "crypto/libcrypto.h"

#include <limits.h>

#include <openssl/err.h>
#include <openssl/evp.h>

ortcrypt_status oc_libcrypto_fail(ortcrypt_error *err, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *words = code == 0 ? NULL : ERR_reason_error_string(code);
    ortcrypt_status st = ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE ? ORTCRYPT_E_NO_MEMORY : ORTCRYPT_E_UNSUPPORTED;
    st = oc_fail(err, st, "OpenSSL refused %s: %s", what, words != NULL ? words : "no reason given");
    ERR_clear_error();
    return st;
}

/* `data` is in + tag when opening. The tag check is *authentic; everything else that goes wrong is a refusal. */
static bool chacha(bool seal, uint8_t *out, bool *authentic, const uint8_t *key, const uint8_t *nonce, const uint8_t *in,
                   size_t in_len, uint8_t tag[OC_AEAD_TAG_LEN])
{
    int n = 0;
    uint8_t none = 0;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool ok = ctx != NULL && EVP_CipherInit_ex(ctx, EVP_chacha20_poly1305(), NULL, key, nonce, seal ? 1 : 0) == 1 &&
              (seal || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, OC_AEAD_TAG_LEN, tag) == 1) &&
              EVP_CipherUpdate(ctx, out, &n, in_len == 0 ? &none : in, (int)in_len) == 1 && (size_t)n == in_len;
    if (ok) {
        *authentic = EVP_CipherFinal_ex(ctx, out + n, &n) == 1;
        ok = !seal || (*authentic && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, OC_AEAD_TAG_LEN, tag) == 1);
    }
    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

ortcrypt_status oc_chacha_seal(uint8_t *sealed, const uint8_t key[OC_AEAD_KEY_LEN],
                               const uint8_t nonce[OC_AEAD_NONCE_LEN], oc_span plain, ortcrypt_error *err)
{
    bool done = false;
    if (plain.len > INT_MAX - OC_AEAD_TAG_LEN) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%zu bytes are too many for one ChaCha20-Poly1305 message", plain.len);
    }
    if (!chacha(true, sealed, &done, key, nonce, plain.data, plain.len, sealed + plain.len)) {
        return oc_libcrypto_fail(err, "ChaCha20-Poly1305");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_chacha_open(uint8_t *plain, bool *authentic, const uint8_t key[OC_AEAD_KEY_LEN],
                               const uint8_t nonce[OC_AEAD_NONCE_LEN], oc_span sealed, ortcrypt_error *err)
{
    uint8_t tag[OC_AEAD_TAG_LEN];
    bool right = false;
    if (sealed.len > INT_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%zu bytes are too many for one ChaCha20-Poly1305 message", sealed.len);
    }
    if (sealed.len < OC_AEAD_TAG_LEN) {
        *authentic = false;
        return ORTCRYPT_OK;
    }
    size_t plain_len = sealed.len - OC_AEAD_TAG_LEN;
    for (size_t i = 0; i < OC_AEAD_TAG_LEN; i++) {
        tag[i] = sealed.data[plain_len + i];
    }
    bool ok = chacha(false, plain, &right, key, nonce, sealed.data, plain_len, tag);
    if (!ok || !right) {
        oc_wipe(plain, plain_len);
        if (!ok) {
            return oc_libcrypto_fail(err, "ChaCha20-Poly1305");
        }
        ERR_clear_error();
    }
    *authentic = right;
    return ORTCRYPT_OK;
}
