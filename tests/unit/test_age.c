/* age v1: sealing and opening, and every kind of damage. Vectors: tests/vectors/test_cctv_age.c. Keys as text: test_age_text.c. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "crypto/age.h"
#include "support/support.h"

struct pair {
    uint8_t identity[1][OC_AGE_KEY_LEN];
    uint8_t recipient[1][OC_AGE_KEY_LEN];
};

static struct pair pair_new(void)
{
    struct pair pair;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(oc_age_generate(pair.identity[0], pair.recipient[0], &err), &err);
    return pair;
}

static void seal_to(oc_buf *out, const struct pair *pair, const char *payload)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_age_keys keys = {.recipients = pair->recipient, .recipient_count = 1};
    oc_test_ok(oc_age_seal(&keys, OC_SPAN(payload, strlen(payload)), out, &err), &err);
}

static ortcrypt_status open_with(const struct pair *pair, oc_span file, oc_secret *payload, ortcrypt_error *err)
{
    oc_age_keys keys = {.identities = pair->identity, .identity_count = 1};
    return oc_age_open(&keys, file, payload, err);
}

static void payloads(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 200, 65535, 65536, 65537, 131072, 200000};
    struct pair pair = pair_new();
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_buf file = OC_BUF(300000);
        oc_secret payload;
        uint8_t *plain = malloc(lens[i] + 1);
        assert_non_null(plain);
        oc_test_fill(plain, lens[i], i);
        oc_age_keys keys = {.recipients = pair.recipient, .recipient_count = 1, .identities = pair.identity, .identity_count = 1};
        oc_test_ok(oc_buf_append_str(&file, "kept", &err), &err);
        oc_test_ok(oc_age_seal(&keys, OC_SPAN(plain, lens[i]), &file, &err), &err);
        assert_memory_equal(file.data, "keptage-encryption.org/v1\n-> X25519 ", 36);
        oc_test_ok(oc_age_open(&keys, OC_SPAN(file.data + 4, file.len - 4), &payload, &err), &err);
        assert_int_equal(payload.len, lens[i]);
        assert_memory_equal(payload.data, plain, lens[i]);
        oc_secret_free(&payload);
        oc_buf_free(&file);
        free(plain);
    }
}

static void several_recipients(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct pair pairs[3] = {pair_new(), pair_new(), pair_new()};
    struct pair stranger = pair_new();
    uint8_t recipients[3][OC_AGE_KEY_LEN];
    uint8_t identities[2][OC_AGE_KEY_LEN];
    oc_buf file = OC_BUF(10000), types = OC_BUF(100);
    oc_secret payload;
    for (int i = 0; i < 3; i++) {
        memcpy(recipients[i], pairs[i].recipient[0], OC_AGE_KEY_LEN);
    }
    oc_age_keys keys = {.recipients = recipients, .recipient_count = 3};
    oc_test_ok(oc_age_seal(&keys, OC_SPAN_STR("for three"), &file, &err), &err);
    oc_span bytes = OC_SPAN(file.data, file.len);
    for (int i = 0; i < 3; i++) { /* each of them, after an identity that does not fit */
        memcpy(identities[0], stranger.identity[0], OC_AGE_KEY_LEN);
        memcpy(identities[1], pairs[i].identity[0], OC_AGE_KEY_LEN);
        oc_age_keys mine = {.identities = identities, .identity_count = 2};
        oc_test_ok(oc_age_open(&mine, bytes, &payload, &err), &err);
        assert_memory_equal(payload.data, "for three", 9);
        oc_secret_free(&payload);
    }
    oc_test_status(open_with(&stranger, bytes, &payload, &err), ORTCRYPT_E_NO_KEY, &err);
    assert_null(payload.data);
    oc_age_keys none = {.identity_count = 0};
    oc_test_status(oc_age_open(&none, bytes, &payload, &err), ORTCRYPT_E_NO_KEY, &err);
    assert_non_null(strstr(err.message, "none was given"));
    oc_test_ok(oc_age_stanza_types(bytes, &types, &err), &err);
    assert_string_equal((char *)types.data, "X25519 X25519 X25519");
    assert_int_equal(types.len, 20);
    oc_buf_free(&types);
    oc_buf_free(&file);
}

static void passphrases(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf file = OC_BUF(10000), types = OC_BUF(100);
    oc_secret payload;
    struct pair pair = pair_new();
    oc_age_keys keys = {.passphrase = OC_SPAN_STR("correct horse"), .scrypt_log_n = 10};
    oc_test_ok(oc_age_seal(&keys, OC_SPAN_STR("words"), &file, &err), &err);
    oc_span bytes = OC_SPAN(file.data, file.len);
    oc_test_ok(oc_age_stanza_types(bytes, &types, &err), &err);
    assert_string_equal((char *)types.data, "scrypt");
    oc_test_ok(oc_age_open(&keys, bytes, &payload, &err), &err);
    assert_memory_equal(payload.data, "words", 5);
    oc_secret_free(&payload);
    oc_age_keys wrong = {.passphrase = OC_SPAN_STR("correct hors"), .identities = pair.identity, .identity_count = 1};
    oc_test_status(oc_age_open(&wrong, bytes, &payload, &err), ORTCRYPT_E_NO_KEY, &err);
    oc_test_status(open_with(&pair, bytes, &payload, &err), ORTCRYPT_E_NO_KEY, &err);
    assert_non_null(strstr(err.message, "passphrase"));
    keys.scrypt_log_n_max = 9;
    oc_test_status(oc_age_open(&keys, bytes, &payload, &err), ORTCRYPT_E_LIMIT, &err);
    keys.scrypt_log_n_max = 10;
    oc_test_ok(oc_age_open(&keys, bytes, &payload, &err), &err);
    oc_secret_free(&payload);
    /* a passphrase beside identities opens files for either */
    oc_buf other = OC_BUF(10000);
    oc_age_keys both = {.passphrase = OC_SPAN_STR("correct horse"), .identities = pair.identity, .identity_count = 1};
    seal_to(&other, &pair, "for the identity");
    oc_test_ok(oc_age_open(&both, OC_SPAN(other.data, other.len), &payload, &err), &err);
    oc_secret_free(&payload);
    oc_test_ok(oc_age_open(&both, bytes, &payload, &err), &err);
    oc_secret_free(&payload);
    /* what is written by default is what is accepted by default */
    oc_buf usual = OC_BUF(10000);
    oc_age_keys plain = {.passphrase = OC_SPAN_STR("p")};
    oc_test_ok(oc_age_seal(&plain, OC_SPAN_STR("x"), &usual, &err), &err);
    assert_non_null(strstr((char *)usual.data, " 18\n"));
    oc_test_ok(oc_age_open(&plain, OC_SPAN(usual.data, usual.len), &payload, &err), &err);
    oc_secret_free(&payload);
    oc_buf_free(&usual);
    oc_buf_free(&other);
    oc_buf_free(&types);
    oc_buf_free(&file);
}

static void refused_to_write(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct pair pair = pair_new();
    oc_buf file = OC_BUF(1000);
    uint8_t zero[1][OC_AGE_KEY_LEN] = {{0}};
    oc_age_keys none = {.recipient_count = 0};
    oc_age_keys both = {.recipients = pair.recipient, .recipient_count = 1, .passphrase = OC_SPAN_STR("p")};
    oc_age_keys low_order = {.recipients = zero, .recipient_count = 1};
    oc_age_keys hard = {.passphrase = OC_SPAN_STR("p"), .scrypt_log_n = 31};
    oc_age_keys many = {.recipients = pair.recipient, .recipient_count = OC_AGE_STANZA_MAX + 1};
    oc_age_keys short_file = {.recipients = pair.recipient, .recipient_count = 1, .file_max = 100};
    oc_test_status(oc_age_seal(&none, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_age_seal(&both, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_age_seal(&low_order, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_age_seal(&hard, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_age_seal(&many, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_LIMIT, &err);
    oc_test_status(oc_age_seal(&short_file, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_LIMIT, &err);
    file.max = 150; /* full in the middle */
    oc_age_keys one = {.recipients = pair.recipient, .recipient_count = 1};
    oc_test_status(oc_age_seal(&one, OC_SPAN_STR("x"), &file, &err), ORTCRYPT_E_LIMIT, &err);
    assert_int_equal(file.len, 0);
    assert_int_equal(ERR_peek_error(), 0);
    oc_buf_free(&file);
}

/* Every byte flipped, every length cut: one of the four refusals, no payload, no crash. */
static void damage(void **state)
{
    (void)state;
    struct pair pair = pair_new();
    oc_buf file = OC_BUF(10000);
    oc_secret payload;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    seal_to(&file, &pair, "a payload");
    for (size_t at = 0; at < file.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            file.data[at] ^= (uint8_t)(1 << bit);
            ortcrypt_status st = open_with(&pair, OC_SPAN(file.data, file.len), &payload, &err);
            assert_true(st == ORTCRYPT_E_FORMAT || st == ORTCRYPT_E_NO_KEY || st == ORTCRYPT_E_NOT_AUTHENTIC ||
                        st == ORTCRYPT_E_UNSUPPORTED);
            assert_null(payload.data);
            assert_int_equal(err.status, st);
            file.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    for (size_t len = 0; len < file.len; len++) {
        uint8_t *cut = malloc(len + 1); /* its own block, so that the sanitizer sees one byte too far */
        assert_non_null(cut);
        memcpy(cut, file.data, len);
        ortcrypt_status st = open_with(&pair, OC_SPAN(cut, len), &payload, &err);
        assert_true(st == ORTCRYPT_E_FORMAT || st == ORTCRYPT_E_NOT_AUTHENTIC);
        assert_null(payload.data);
        free(cut);
    }
    oc_test_ok(oc_buf_append_str(&file, "x", &err), &err);
    oc_test_status(open_with(&pair, OC_SPAN(file.data, file.len), &payload, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    assert_int_equal(ERR_peek_error(), 0);
    oc_buf_free(&file);
}

static void damage_scrypt(void **state)
{
    (void)state;
    oc_buf file = OC_BUF(10000);
    oc_secret payload;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_age_keys keys = {.passphrase = OC_SPAN_STR("p"), .scrypt_log_n = 1, .scrypt_log_n_max = 9};
    oc_test_ok(oc_age_seal(&keys, OC_SPAN_STR("a payload"), &file, &err), &err);
    for (size_t at = 0; at < file.len; at++) {
        file.data[at] ^= 4;
        ortcrypt_status st = oc_age_open(&keys, OC_SPAN(file.data, file.len), &payload, &err);
        assert_true(st == ORTCRYPT_E_FORMAT || st == ORTCRYPT_E_NO_KEY || st == ORTCRYPT_E_NOT_AUTHENTIC ||
                    st == ORTCRYPT_E_UNSUPPORTED || st == ORTCRYPT_E_LIMIT);
        assert_null(payload.data);
        file.data[at] ^= 4;
    }
    oc_buf_free(&file);
}

static ortcrypt_status open_header(const char *header, oc_secret *payload, ortcrypt_error *err)
{
    struct pair pair = pair_new();
    return open_with(&pair, OC_SPAN(header, strlen(header)), payload, err);
}

#define MAC_LINE "--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
#define NONCE "0123456789abcdef"

static void headers(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_secret payload;
    oc_test_status(open_header("age-encryption.org/v1\n-> ssh-ed25519 a b\nAAAA\n" MAC_LINE NONCE, &payload, &err),
                   ORTCRYPT_E_UNSUPPORTED, &err);
    assert_non_null(strstr(err.message, "ssh-ed25519"));
    assert_true(err.hint[0] != '\0');
    oc_test_status(open_header("age-encryption.org/v1\n" MAC_LINE NONCE, &payload, &err), ORTCRYPT_E_FORMAT, &err);
    oc_test_status(open_header("age-encryption.org/v2\n" MAC_LINE NONCE, &payload, &err), ORTCRYPT_E_FORMAT, &err);
    assert_non_null(strstr(err.message, "another version"));
    oc_test_status(open_header("", &payload, &err), ORTCRYPT_E_FORMAT, &err);
    oc_test_status(open_header("PK\x03\x04", &payload, &err), ORTCRYPT_E_FORMAT, &err);
    oc_test_status(open_header("age-encryption.org/v1\n-> X25519 AAAA\nAAAA\n" MAC_LINE NONCE, &payload, &err),
                   ORTCRYPT_E_FORMAT, &err);
    assert_int_equal(err.offset, 22);
}

static void limits(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct pair pair = pair_new();
    oc_buf file = OC_BUF(1000000);
    oc_secret payload;
    static uint8_t recipients[OC_AGE_STANZA_MAX][OC_AGE_KEY_LEN];
    for (size_t i = 0; i < OC_AGE_STANZA_MAX; i++) {
        memcpy(recipients[i], pair.recipient[0], OC_AGE_KEY_LEN);
    }
    oc_age_keys keys = {.recipients = recipients, .recipient_count = OC_AGE_STANZA_MAX};
    oc_test_ok(oc_age_seal(&keys, OC_SPAN_STR("to a thousand"), &file, &err), &err);
    assert_true(file.len <= OC_AGE_FILE_MAX);
    oc_test_ok(open_with(&pair, OC_SPAN(file.data, file.len), &payload, &err), &err);
    oc_secret_free(&payload);
    oc_buf more = OC_BUF(1000000);
    oc_test_ok(oc_buf_append(&more, file.data, 22, &err), &err);
    oc_test_ok(oc_buf_append_str(&more, "-> more\n\n", &err), &err);
    oc_test_ok(oc_buf_append(&more, file.data + 22, file.len - 22, &err), &err);
    oc_test_status(open_with(&pair, OC_SPAN(more.data, more.len), &payload, &err), ORTCRYPT_E_LIMIT, &err);
    oc_buf types = OC_BUF(100);
    oc_test_status(oc_age_stanza_types(OC_SPAN(file.data, file.len), &types, &err), ORTCRYPT_E_LIMIT, &err);
    assert_int_equal(types.len, 0);
    uint8_t *large = calloc(1, OC_AGE_FILE_MAX + 1);
    assert_non_null(large);
    oc_test_status(open_with(&pair, OC_SPAN(large, OC_AGE_FILE_MAX + 1), &payload, &err), ORTCRYPT_E_LIMIT, &err);
    oc_test_status(open_with(&pair, OC_SPAN(large, OC_AGE_FILE_MAX), &payload, &err), ORTCRYPT_E_FORMAT, &err);
    free(large);
    oc_buf_free(&types);
    oc_buf_free(&more);
    oc_buf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads), cmocka_unit_test(several_recipients), cmocka_unit_test(passphrases),
        cmocka_unit_test(refused_to_write), cmocka_unit_test(damage), cmocka_unit_test(damage_scrypt),
        cmocka_unit_test(headers), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
