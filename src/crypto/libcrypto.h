/*
 * crypto/libcrypto.h: what the files of this folder share; no other folder includes it.
 * Source: OpenSSL 3.0 manual pages; RFC 5869, RFC 2104, RFC 8439.
 */
#ifndef OC_CRYPTO_LIBCRYPTO_H
#define OC_CRYPTO_LIBCRYPTO_H

#include "base/bytes.h"
#include "crypto/hash.h"

#define OC_AEAD_KEY_LEN 32
#define OC_AEAD_NONCE_LEN 12
#define OC_AEAD_TAG_LEN 16

/*
 * Translates OpenSSL's newest error ("<what>: <its words>"), once, and empties its queue: nothing of ours stays there for
 * the host to find. ORTCRYPT_E_NO_MEMORY when memory was the reason, else ORTCRYPT_E_UNSUPPORTED: this libcrypto cannot do it.
 */
ortcrypt_status oc_libcrypto_fail(ortcrypt_error *err, const char *what);

/* RFC 5869 expand alone: `prk` is uniformly random. */
ortcrypt_status oc_hkdf_expand(uint8_t *out, size_t out_len, oc_hash hash, oc_span prk, oc_span info,
                               ortcrypt_error *err);

ortcrypt_status oc_hmac_sha256(uint8_t out[OC_SHA256_LEN], oc_span key, oc_span data, ortcrypt_error *err);

/* ChaCha20-Poly1305 without additional data. sealed is plain_len + 16 bytes. Not in place. */
ortcrypt_status oc_chacha_seal(uint8_t *sealed, const uint8_t key[OC_AEAD_KEY_LEN],
                               const uint8_t nonce[OC_AEAD_NONCE_LEN], oc_span plain, ortcrypt_error *err);
/* *authentic says whether the tag was right; `plain` (sealed.len - 16 bytes) is wiped when it was not. */
ortcrypt_status oc_chacha_open(uint8_t *plain, bool *authentic, const uint8_t key[OC_AEAD_KEY_LEN],
                               const uint8_t nonce[OC_AEAD_NONCE_LEN], oc_span sealed, ortcrypt_error *err);

#endif
