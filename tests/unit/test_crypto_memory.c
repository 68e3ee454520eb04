/*
 * Every allocation of src/crypto, OpenSSL's own included, fails once: the call says so and never blames the file or the key,
 * leaves its outputs alone, keeps no memory and leaves nothing in OpenSSL's queue. The program's own malloc stands before
 * libc's, so under a sanitizer, which does the same, there is nothing to run.
 */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "crypto/age.h"
#include "crypto/hash.h"
#include "crypto/stream.h"
#include "support/failing_malloc.h"

#ifndef SANITIZED

static const uint8_t key[OC_STREAM_KEY_LEN] = {7};
static uint8_t identity[1][OC_AGE_KEY_LEN];
static uint8_t recipient[1][OC_AGE_KEY_LEN];
static uint8_t sealed_stream[20000]; /* of 18000 zeros */
static size_t sealed_stream_len;
static uint8_t sealed_file[1000]; /* "payload" */
static size_t sealed_file_len;

static ortcrypt_status seal_stream(ortcrypt_error *err)
{
    static const uint8_t zeros[18000];
    oc_buf out = OC_BUF(sizeof(sealed_stream));
    ortcrypt_status st = oc_stream_seal_all(key, OC_SPAN_STR("c"), OC_SPAN(zeros, sizeof(zeros)), &out, err);
    assert_true(st == ORTCRYPT_OK || out.len == 0);
    if (st == ORTCRYPT_OK) {
        memcpy(sealed_stream, out.data, out.len);
        sealed_stream_len = out.len;
    }
    oc_buf_free(&out);
    return st;
}

static ortcrypt_status open_stream(ortcrypt_error *err)
{
    oc_buf out = OC_BUF(20000);
    ortcrypt_status st = oc_stream_open_all(key, OC_SPAN_STR("c"), OC_SPAN(sealed_stream, sealed_stream_len), &out, err);
    assert_int_equal(out.len, st == ORTCRYPT_OK ? 18000 : 0);
    oc_buf_free(&out);
    return st;
}

static ortcrypt_status seal_age(ortcrypt_error *err)
{
    oc_age_keys keys = {.recipients = recipient, .recipient_count = 1};
    oc_buf out = OC_BUF(sizeof(sealed_file));
    ortcrypt_status st = oc_age_seal(&keys, OC_SPAN_STR("payload"), &out, err);
    assert_true(st == ORTCRYPT_OK || out.len == 0);
    if (st == ORTCRYPT_OK) {
        memcpy(sealed_file, out.data, out.len);
        sealed_file_len = out.len;
    }
    oc_buf_free(&out);
    return st;
}

static ortcrypt_status open_age(ortcrypt_error *err)
{
    oc_age_keys keys = {.identities = identity, .identity_count = 1};
    oc_secret payload;
    ortcrypt_status st = oc_age_open(&keys, OC_SPAN(sealed_file, sealed_file_len), &payload, err);
    assert_int_equal(payload.data != NULL, st == ORTCRYPT_OK);
    if (st == ORTCRYPT_OK) {
        assert_memory_equal(payload.data, "payload", 7);
    }
    oc_secret_free(&payload);
    return st;
}

static ortcrypt_status seal_and_open_scrypt(ortcrypt_error *err)
{
    oc_age_keys keys = {.passphrase = OC_SPAN_STR("p"), .scrypt_log_n = 2};
    oc_buf out = OC_BUF(1000);
    oc_secret payload = {NULL, 0, 0};
    ortcrypt_status st = oc_age_seal(&keys, OC_SPAN_STR("payload"), &out, err);
    if (st == ORTCRYPT_OK) {
        st = oc_age_open(&keys, OC_SPAN(out.data, out.len), &payload, err);
    }
    oc_secret_free(&payload);
    oc_buf_free(&out);
    return st;
}

static ortcrypt_status hash(ortcrypt_error *err)
{
    oc_sha256_ctx *ctx = NULL;
    uint8_t digest[OC_SHA256_LEN];
    ortcrypt_status st = oc_sha256(digest, OC_SPAN_STR("abc"), err);
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_new(&ctx, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_update(ctx, OC_SPAN_STR("abc"), err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_final(ctx, digest, err);
    }
    oc_sha256_free(ctx);
    return st;
}

/* Fails the first allocation, then the second, until a run needs no more. */
static void sweep(const char *name, ortcrypt_status (*run)(ortcrypt_error *err))
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(run(&err), &err); /* OpenSSL keeps what it has looked up */
    long at = 0;
    for (failed = true; failed; at++) {
        long before = live;
        failed = false;
        until_failure = at;
        counting = true;
        ortcrypt_status st = run(&err);
        counting = false;
        if (st != ORTCRYPT_OK && st != ORTCRYPT_E_NO_MEMORY && st != ORTCRYPT_E_UNSUPPORTED) {
            fail_msg("%s, allocation %ld: %s: %s", name, at, ortcrypt_status_name(st), err.message);
        }
        assert_int_equal(ERR_peek_error(), 0);
        assert_true(live <= before);
        assert_true(failed || st == ORTCRYPT_OK);
    }
    print_message("%s: %ld allocations\n", name, at - 1);
    assert_true(at > 5); /* fewer: OpenSSL's own were not counted */
}

static void allocations(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(oc_age_generate(identity[0], recipient[0], &err), &err);
    sweep("seal stream", seal_stream);
    sweep("open stream", open_stream);
    sweep("seal age", seal_age);
    sweep("open age", open_age);
    sweep("scrypt", seal_and_open_scrypt);
    sweep("hash", hash);
}

#else

static void allocations(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
