/* SHA-256, HKDF and random bytes. More HKDF vectors: tests/vectors/test_wycheproof.c. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "crypto/hash.h"
#include "crypto/libcrypto.h"
#include "crypto/random.h"
#include "support/support.h"

static void check_hex(const uint8_t *data, size_t len, const char *hex)
{
    char text[256];
    oc_hex_encode(text, data, len);
    assert_string_equal(text, hex);
}

static void sha256(void **state)
{
    (void)state;
    static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; /* FIPS 180-4 */
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t out[OC_SHA256_LEN];
    oc_sha256_ctx *ctx = NULL;
    oc_test_ok(oc_sha256(out, OC_SPAN(NULL, 0), &err), &err);
    check_hex(out, sizeof(out), empty);
    oc_test_ok(oc_sha256(out, OC_SPAN_STR("abc"), &err), &err);
    check_hex(out, sizeof(out), abc);
    oc_test_ok(oc_sha256_new(&ctx, &err), &err);
    oc_test_ok(oc_sha256_final(ctx, out, &err), &err);
    check_hex(out, sizeof(out), empty);
    for (int i = 0; i < 2; i++) { /* final starts anew */
        oc_test_ok(oc_sha256_update(ctx, OC_SPAN_STR("a"), &err), &err);
        oc_test_ok(oc_sha256_update(ctx, OC_SPAN(NULL, 0), &err), &err);
        oc_test_ok(oc_sha256_update(ctx, OC_SPAN_STR("bc"), &err), &err);
        oc_test_ok(oc_sha256_final(ctx, out, &err), &err);
        check_hex(out, sizeof(out), abc);
    }
    oc_sha256_free(ctx);
    oc_sha256_free(NULL);
}

static void hmac(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t out[OC_SHA256_LEN];
    oc_test_ok(oc_hmac_sha256(out, OC_SPAN_STR("Jefe"), OC_SPAN_STR("what do ya want for nothing?"), &err), &err);
    check_hex(out, sizeof(out), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"); /* RFC 4231, case 2 */
}

static void hkdf(void **state)
{
    (void)state;
    static const char okm[] = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"; /* RFC 5869, A.1 */
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t ikm[22];
    uint8_t out[42];
    size_t prk_len = 0;
    memset(ikm, 0x0b, sizeof(ikm));
    oc_span info = OC_SPAN_STR("\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9");
    oc_span salt = OC_SPAN_STR("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
    oc_test_ok(oc_hkdf(out, sizeof(out), OC_HASH_SHA256, OC_SPAN(ikm, sizeof(ikm)), salt, info, &err), &err);
    check_hex(out, sizeof(out), okm);
    uint8_t *prk = oc_test_unhex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5", &prk_len);
    memset(out, 0, sizeof(out));
    oc_test_ok(oc_hkdf_expand(out, sizeof(out), OC_HASH_SHA256, OC_SPAN(prk, prk_len), info, &err), &err);
    check_hex(out, sizeof(out), okm);
    free(prk);
}

/* A refusal carries OpenSSL's words and leaves nothing in its queue. */
static void refusal(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t *out = malloc(255 * 32 + 1); /* more than HKDF can give */
    assert_non_null(out);
    ortcrypt_status st = oc_hkdf(out, 255 * 32 + 1, OC_HASH_SHA256, OC_SPAN_STR("k"), OC_SPAN_STR("s"), OC_SPAN_STR("i"), &err);
    assert_int_equal(st, ORTCRYPT_E_UNSUPPORTED);
    assert_memory_equal(err.message, "OpenSSL refused HKDF: ", 22);
    ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);
    ERR_raise(ERR_LIB_USER, ERR_R_MALLOC_FAILURE);
    assert_int_equal(oc_libcrypto_fail(&err, "a thing"), ORTCRYPT_E_NO_MEMORY);
    assert_string_equal(err.message, "OpenSSL refused a thing: malloc failure");
    assert_int_equal(ERR_peek_error(), 0);
    ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);
    assert_int_equal(oc_libcrypto_fail(&err, "a thing"), ORTCRYPT_E_UNSUPPORTED);
    free(out);
}

static void chacha(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    static const uint8_t key[OC_AEAD_KEY_LEN] = {1};
    static const uint8_t nonce[OC_AEAD_NONCE_LEN] = {2};
    uint8_t sealed[16 + OC_AEAD_TAG_LEN];
    uint8_t plain[16];
    bool authentic = false;
    oc_test_ok(oc_chacha_seal(sealed, key, nonce, OC_SPAN_STR("0123456789abcdef"), &err), &err);
    oc_test_ok(oc_chacha_open(plain, &authentic, key, nonce, OC_SPAN(sealed, sizeof(sealed)), &err), &err);
    assert_true(authentic);
    assert_memory_equal(plain, "0123456789abcdef", 16);
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 1;
        oc_test_ok(oc_chacha_open(plain, &authentic, key, nonce, OC_SPAN(sealed, sizeof(sealed)), &err), &err);
        assert_false(authentic);
        assert_true(oc_equal(plain, (uint8_t[16]){0}, 16));
        sealed[i] ^= 1;
    }
    oc_test_ok(oc_chacha_open(plain, &authentic, key, nonce, OC_SPAN(sealed, 15), &err), &err);
    assert_false(authentic);
}

static void random_bytes(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    enum { LEN = 100000 };
    uint8_t *data = calloc(1, LEN);
    size_t count[256] = {0};
    assert_non_null(data);
    oc_test_ok(oc_random(data, LEN, &err), &err);
    for (size_t i = 0; i < LEN; i++) {
        count[data[i]]++;
    }
    for (size_t i = 0; i < 256; i++) { /* 390 expected; 250 is seven deviations away */
        assert_in_range(count[i], 250, 540);
    }
    oc_test_ok(oc_random(data, 0, &err), &err);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sha256),  cmocka_unit_test(hmac),   cmocka_unit_test(hkdf),
                                       cmocka_unit_test(refusal), cmocka_unit_test(chacha), cmocka_unit_test(random_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
