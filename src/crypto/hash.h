/* crypto/hash.h: SHA-256 and HKDF, from libcrypto. */
#ifndef OC_CRYPTO_HASH_H
#define OC_CRYPTO_HASH_H

#include "base/bytes.h"

#define OC_SHA256_LEN 32

ortcrypt_status oc_sha256(uint8_t out[OC_SHA256_LEN], oc_span data, ortcrypt_error *err);

typedef struct oc_sha256_ctx oc_sha256_ctx; /* new -> update... -> final -> free */
ortcrypt_status oc_sha256_new(oc_sha256_ctx **out, ortcrypt_error *err);
ortcrypt_status oc_sha256_update(oc_sha256_ctx *ctx, oc_span data, ortcrypt_error *err);
ortcrypt_status oc_sha256_final(oc_sha256_ctx *ctx, uint8_t out[OC_SHA256_LEN], ortcrypt_error *err); /* resets: may be used again */
void oc_sha256_free(oc_sha256_ctx *ctx);

typedef enum oc_hash { OC_HASH_SHA256, OC_HASH_SHA512 } oc_hash;
/* RFC 5869 extract and expand. */
ortcrypt_status oc_hkdf(uint8_t *out, size_t out_len, oc_hash hash, oc_span ikm, oc_span salt, oc_span info,
                        ortcrypt_error *err);

#endif
