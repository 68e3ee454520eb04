/* crypto/hash.c: SHA-256, HMAC and HKDF from libcrypto. Inputs are borrowed for the call. */
#include "crypto/hash.h"

#include <limits.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "crypto/libcrypto.h"

struct oc_sha256_ctx {
    EVP_MD_CTX *md;
};

ortcrypt_status oc_sha256(uint8_t out[OC_SHA256_LEN], oc_span data, ortcrypt_error *err)
{
    if (EVP_Digest(data.len == 0 ? (const uint8_t *)"" : data.data, data.len, out, NULL, EVP_sha256(), NULL) != 1) {
        return oc_libcrypto_fail(err, "SHA-256");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_sha256_new(oc_sha256_ctx **out, ortcrypt_error *err)
{
    *out = NULL;
    oc_sha256_ctx *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL) {
        return oc_fail_memory(err, sizeof(*ctx), "a hash");
    }
    ctx->md = EVP_MD_CTX_new();
    if (ctx->md == NULL || EVP_DigestInit_ex(ctx->md, EVP_sha256(), NULL) != 1) {
        oc_sha256_free(ctx);
        return oc_libcrypto_fail(err, "SHA-256");
    }
    *out = ctx;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_sha256_update(oc_sha256_ctx *ctx, oc_span data, ortcrypt_error *err)
{
    if (data.len != 0 && EVP_DigestUpdate(ctx->md, data.data, data.len) != 1) {
        return oc_libcrypto_fail(err, "SHA-256");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_sha256_final(oc_sha256_ctx *ctx, uint8_t out[OC_SHA256_LEN], ortcrypt_error *err)
{
    uint8_t digest[OC_SHA256_LEN];
    if (EVP_DigestFinal_ex(ctx->md, digest, NULL) != 1 || EVP_DigestInit_ex(ctx->md, NULL, NULL) != 1) {
        return oc_libcrypto_fail(err, "SHA-256");
    }
    for (size_t i = 0; i < sizeof(digest); i++) {
        out[i] = digest[i];
    }
    return ORTCRYPT_OK;
}

void oc_sha256_free(oc_sha256_ctx *ctx)
{
    if (ctx != NULL) {
        EVP_MD_CTX_free(ctx->md);
        free(ctx);
    }
}

ortcrypt_status oc_hmac_sha256(uint8_t out[OC_SHA256_LEN], oc_span key, oc_span data, ortcrypt_error *err)
{
    if (key.len > INT_MAX || HMAC(EVP_sha256(), key.data, (int)key.len, data.data, data.len, out, NULL) == NULL) {
        return oc_libcrypto_fail(err, "HMAC-SHA-256");
    }
    return ORTCRYPT_OK;
}

/* OpenSSL's parameters take pointers without const but only read through them. */
static OSSL_PARAM octets(const char *name, oc_span bytes)
{
    union {
        const uint8_t *in;
        void *out;
    } data = {.in = bytes.len == 0 ? (const uint8_t *)"" : bytes.data};
    return OSSL_PARAM_construct_octet_string(name, data.out, bytes.len);
}

static ortcrypt_status hkdf(uint8_t *out, size_t out_len, int mode, oc_hash hash, oc_span key, oc_span salt, oc_span info,
                            ortcrypt_error *err)
{
    char sha256[] = "SHA256";
    char sha512[] = "SHA512";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash == OC_HASH_SHA256 ? sha256 : sha512, 0),
        octets(OSSL_KDF_PARAM_KEY, key),
        octets(OSSL_KDF_PARAM_INFO, info),
        octets(OSSL_KDF_PARAM_SALT, salt),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *ctx = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
    bool ok = ctx != NULL && EVP_KDF_derive(ctx, out, out_len, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    if (!ok) {
        oc_wipe(out, out_len);
        return oc_libcrypto_fail(err, "HKDF");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_hkdf(uint8_t *out, size_t out_len, oc_hash hash, oc_span ikm, oc_span salt, oc_span info,
                        ortcrypt_error *err)
{
    return hkdf(out, out_len, EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, hash, ikm, salt, info, err);
}

ortcrypt_status oc_hkdf_expand(uint8_t *out, size_t out_len, oc_hash hash, oc_span prk, oc_span info,
                               ortcrypt_error *err)
{
    return hkdf(out, out_len, EVP_KDF_HKDF_MODE_EXPAND_ONLY, hash, prk, OC_SPAN(NULL, 0), info, err);
}
