/* Keys as age writes them: Bech32 text of identities and recipients. */
#include <stdio.h>
#include <string.h>

#include "crypto/age.h"
#include "crypto/bech32.h"
#include "support/support.h"

/* The pair of the age specification. */
#define SPEC_IDENTITY "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
#define SPEC_RECIPIENT "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

static void keys_as_text(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t secret[OC_AGE_KEY_LEN], recipient[OC_AGE_KEY_LEN], back[OC_AGE_KEY_LEN];
    char text[75];
    assert_true(oc_age_identity_parse(secret, SPEC_IDENTITY, strlen(SPEC_IDENTITY)));
    oc_test_ok(oc_age_recipient_of(recipient, secret, &err), &err);
    oc_age_recipient_text(text, recipient);
    assert_string_equal(text, SPEC_RECIPIENT);
    oc_age_identity_text(text, secret);
    assert_string_equal(text, SPEC_IDENTITY);
    for (int i = 0; i < 50; i++) {
        uint8_t identity[OC_AGE_KEY_LEN];
        oc_test_ok(oc_age_generate(identity, recipient, &err), &err);
        oc_age_identity_text(text, identity);
        assert_int_equal(strlen(text), 74);
        assert_true(oc_age_identity_parse(back, text, 74));
        assert_memory_equal(back, identity, sizeof(back));
        oc_age_recipient_text(text, recipient);
        assert_int_equal(strlen(text), 62);
        assert_true(oc_age_recipient_parse(back, text, 62));
        assert_memory_equal(back, recipient, sizeof(back));
    }
}

/* Each character of the text replaced by every other byte: a checksum, not luck, refuses it. */
static void altered_text(void **state)
{
    (void)state;
    uint8_t key[OC_AGE_KEY_LEN];
    char text[80];
    for (size_t at = 0; at < strlen(SPEC_RECIPIENT); at++) {
        for (int c = 0; c < 256; c++) {
            snprintf(text, sizeof(text), "%s", SPEC_RECIPIENT);
            text[at] = (char)c;
            assert_int_equal(oc_age_recipient_parse(key, text, strlen(SPEC_RECIPIENT)), (char)c == SPEC_RECIPIENT[at]);
        }
    }
    assert_false(oc_age_recipient_parse(key, SPEC_RECIPIENT, strlen(SPEC_RECIPIENT) - 1));
    assert_false(oc_age_recipient_parse(key, SPEC_RECIPIENT "q", strlen(SPEC_RECIPIENT) + 1));
    assert_false(oc_age_recipient_parse(key, "", 0));
    assert_false(oc_age_recipient_parse(key, SPEC_IDENTITY, strlen(SPEC_IDENTITY)));
    assert_false(oc_age_identity_parse(key, SPEC_RECIPIENT, strlen(SPEC_RECIPIENT)));
    for (size_t i = 0; i <= strlen(SPEC_RECIPIENT); i++) {
        text[i] = SPEC_RECIPIENT[i];
        text[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i];
    }
    assert_true(oc_bech32_valid(text, 62)); /* Bech32, but age writes recipients in lower case */
    assert_false(oc_age_recipient_parse(key, text, 62));
    for (size_t i = 0; i <= strlen(SPEC_IDENTITY); i++) {
        text[i] = SPEC_IDENTITY[i];
        text[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
    }
    assert_true(oc_bech32_valid(text, 74));
    assert_false(oc_age_identity_parse(key, text, 74));
}

static void bech32(void **state)
{
    (void)state;
    static const char *good[] = {"A12UEL5L", "a12uel5l", "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw", "?1ezyfcl"}; /* BIP 173 */
    static const char *bad[] = {"pzry9x0s0muk", "1pzry9x0s0muk", "x1b4n0q5v", "li1dgmt3", "A1G7SGD8", "10a06t8", "1qzzfhee", "A12uEL5L", ""};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(oc_bech32_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(oc_bech32_valid(bad[i], strlen(bad[i])));
    }
}

/* Spare bits of the last digit must be zero, even with a checksum that fits. */
static void spare_bits(void **state)
{
    (void)state;
    static const char digits[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    uint8_t key[OC_AGE_KEY_LEN];
    size_t found = 0;
    for (int low = 1; low < 16; low++) {
        char text[63];
        snprintf(text, sizeof(text), "%s", SPEC_RECIPIENT);
        int old = (int)(strchr(digits, text[55]) - digits);
        text[55] = digits[(old & 16) | low];
        uint32_t difference = (uint32_t)((old ^ ((old & 16) | low)) & 31); /* the code is linear: so changes its sum */
        static const uint32_t generator[] = {0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3};
        for (int k = 0; k < 6; k++) {
            uint32_t top = difference >> 25;
            difference = (difference & 0x1FFFFFF) << 5;
            for (int b = 0; b < 5; b++) {
                difference ^= (top >> b & 1) != 0 ? generator[b] : 0;
            }
        }
        for (int k = 0; k < 6; k++) {
            int value = (int)(strchr(digits, text[56 + k]) - digits) ^ (int)(difference >> (5 * (5 - k)) & 31);
            text[56 + k] = digits[value];
        }
        assert_true(oc_bech32_valid(text, 62));
        found += oc_age_recipient_parse(key, text, 62);
    }
    assert_int_equal(found, 0);
}

static void other_types(void **state)
{
    (void)state;
    static const char pq[] = "AGE-SECRET-KEY-PQ-1XX76JRALNLXDMEW0CRK45QMCCH4X06SE84UN3VPM33W6HWDX0H3SK3ZQFR";
    static const char tag[] = "age1tag1qt8lw0ual6avlwmwatk888yqnmdamm7xfd0wak53ut6elz5c4swx2yqdj4e";
    static const char ssh[] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGv me";
    uint8_t key[OC_AGE_KEY_LEN];
    assert_true(oc_age_identity_foreign(pq, strlen(pq)));
    assert_false(oc_age_identity_parse(key, pq, strlen(pq)));
    assert_true(oc_age_recipient_foreign(tag, strlen(tag)));
    assert_false(oc_age_recipient_parse(key, tag, strlen(tag)));
    assert_true(oc_age_recipient_foreign(ssh, strlen(ssh)));
    assert_false(oc_age_identity_foreign(SPEC_IDENTITY, strlen(SPEC_IDENTITY)));
    assert_false(oc_age_recipient_foreign(SPEC_RECIPIENT, strlen(SPEC_RECIPIENT)));
    assert_false(oc_age_recipient_foreign(tag, strlen(tag) - 1)); /* a mistyped one is no other type */
    assert_false(oc_age_recipient_foreign(SPEC_RECIPIENT, strlen(SPEC_RECIPIENT) - 1));
    assert_false(oc_age_recipient_foreign("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_as_text), cmocka_unit_test(altered_text), cmocka_unit_test(bech32),
                                       cmocka_unit_test(spare_bits), cmocka_unit_test(other_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
