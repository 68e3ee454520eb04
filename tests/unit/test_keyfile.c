/* The key file's payload and the FORMAT file: exact bytes, and every way they can be wrong. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/keyfile.h"

static const uint8_t id[OC_BUNDLE_ID_LEN] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff};
static const char line[] = "{\"format\":\"ortcrypt/1\",\"bundle\":\"000102030405060708090a0b0c0d0eff\","
                           "\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}\n";

static void key_bytes(uint8_t key[OC_BUNDLE_KEY_LEN])
{
    for (int i = 0; i < OC_BUNDLE_KEY_LEN; i++) {
        key[i] = (uint8_t)i;
    }
}

static void prints_the_exact_bytes(void **state)
{
    (void)state;
    const char *const recipients[] = {"age1example", "ssh-ed25519 AAAA m\xc3\xbcller"};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t key[OC_BUNDLE_KEY_LEN];
    oc_secret text = {0};

    key_bytes(key);
    assert_int_equal(sizeof line - 1, OC_KEYFILE_LINE_LEN);
    oc_test_ok(oc_keyfile_print(&text, id, key, NULL, 0, &err), &err);
    assert_int_equal(text.len, OC_KEYFILE_LINE_LEN);
    assert_memory_equal(text.data, line, text.len);
    oc_secret_free(&text);

    oc_test_ok(oc_keyfile_print(&text, id, key, recipients, 2, &err), &err);
    char *expected = oc_test_format("%srecipient age1example\nrecipient ssh-ed25519 AAAA m\xc3\xbcller\n", line);
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.data, expected, text.len);
    free(expected);
    oc_secret_free(&text);
}

static void refuses_recipients_of_more_lines(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a\nb", "a\rb", "a\tb", "a\x7f", "\xff"};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t key[OC_BUNDLE_KEY_LEN];
    oc_secret text = {0};

    key_bytes(key);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        oc_test_status(oc_keyfile_print(&text, id, key, &bad[i], 1, &err), ORTCRYPT_E_INVALID, &err);
        assert_null(text.data);
    }
}

static void parses_what_it_prints(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t expected[OC_BUNDLE_KEY_LEN];
    uint8_t got_id[OC_BUNDLE_ID_LEN] = {0};
    uint8_t key[OC_BUNDLE_KEY_LEN] = {0};
    char *recipients = NULL;

    key_bytes(expected);
    oc_test_ok(oc_keyfile_parse(OC_SPAN(line, sizeof line - 1), got_id, key, &recipients, &err), &err);
    assert_memory_equal(got_id, id, sizeof id);
    assert_memory_equal(key, expected, sizeof key);
    assert_string_equal(recipients, "");
    free(recipients);

    char *text = oc_test_format("%srecipient age1a\nrecipient b c\n", line);
    oc_test_ok(oc_keyfile_parse(OC_SPAN(text, strlen(text)), got_id, key, &recipients, &err), &err);
    assert_string_equal(recipients, "age1a\nb c\n");
    free(recipients);
    oc_test_ok(oc_keyfile_parse(OC_SPAN(text, strlen(text)), got_id, key, NULL, &err), &err);
    free(text);
}

static void refused(const char *text, size_t len, const char *what)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t got_id[OC_BUNDLE_ID_LEN] = {0};
    uint8_t key[OC_BUNDLE_KEY_LEN] = {0};
    static const uint8_t zero[OC_BUNDLE_KEY_LEN];
    char *recipients = NULL;

    if (oc_keyfile_parse(OC_SPAN(text, len), got_id, key, &recipients, &err) != ORTCRYPT_E_NOT_AUTHENTIC) {
        fail_msg("%s was not refused", what);
    }
    assert_null(recipients);
    assert_memory_equal(key, zero, sizeof key);
    assert_memory_equal(got_id, zero, sizeof got_id);
    assert_null(strstr(err.message, "AAECAw")); /* no key in a sentence */
}

static void refuses_every_other_byte(void **state)
{
    (void)state;
    char text[sizeof line];

    /* outside the two fields any change counts; inside them one that leaves hex or base64 */
    for (size_t i = 0; i < OC_KEYFILE_LINE_LEN; i++) {
        memcpy(text, line, sizeof line);
        text[i] = text[i] == '~' ? '}' : '~';
        refused(text, OC_KEYFILE_LINE_LEN, "a changed byte");
        refused(line, i, "a cut line");
    }
}

static void refuses_other_spellings(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"0d0eff", "0D0eff"},     /* upper-case hex */
        {"0eff", "0EFF"},         {"Hh8=", "Hh9="}, /* not canonical: bits behind the end */
        {"Hh8=", "Hh8A"},         /* 33 bytes */
        {"Hh8=", "Hg=="},         /* 31 bytes */
        {"ortcrypt/1", "ortcrypt/2"},
    };

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char text[sizeof line];
        memcpy(text, line, sizeof line);
        memcpy(strstr(text, changes[i].from), changes[i].to, strlen(changes[i].to));
        refused(text, OC_KEYFILE_LINE_LEN, changes[i].to);
    }
}

static void refuses_other_lines(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "recipient a", "recipient \n", "recipient\n", "recipients a\n", "\n", " ", "recipient a\r\n", "recipient a\n\n",
        "recipient \xc3\n", "recipient a\nx",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *text = oc_test_format("%s%s", line, bad[i]);
        refused(text, strlen(text), bad[i]);
        free(text);
    }
    char *text = oc_test_format("%srecipient a?b\n", line);
    *strchr(text, '?') = '\0';
    refused(text, sizeof line - 1 + 14, "NUL in a recipient");
    free(text);
}

static void format_file(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ortcrypt_status status;
    } cases[] = {
        {"ortcrypt/1\n", ORTCRYPT_OK},
        {"ortcrypt/2\n", ORTCRYPT_E_UNSUPPORTED},
        {"ortcrypt/10\n", ORTCRYPT_E_UNSUPPORTED},
        {"ortcrypt/123456789\n", ORTCRYPT_E_UNSUPPORTED},
        {"ortcrypt/1234567890\n", ORTCRYPT_E_FORMAT},
        {"ortcrypt/01\n", ORTCRYPT_E_FORMAT},
        {"ortcrypt/0\n", ORTCRYPT_E_FORMAT},
        {"ortcrypt/1", ORTCRYPT_E_FORMAT},
        {"ortcrypt/2", ORTCRYPT_E_FORMAT},
        {"ortcrypt/\n", ORTCRYPT_E_FORMAT},
        {"ortcrypt/1\n\n", ORTCRYPT_E_FORMAT},
        {"ortcrypt/1\r\n", ORTCRYPT_E_FORMAT},
        {"", ORTCRYPT_E_FORMAT},
        {"Ortcrypt/1\n", ORTCRYPT_E_FORMAT},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        const ortcrypt_status st = oc_format_check(OC_SPAN(cases[i].text, strlen(cases[i].text)), "m.ortc/FORMAT", &err);
        oc_test_status(st, cases[i].status, &err);
        if (st != ORTCRYPT_OK) {
            assert_non_null(strstr(err.message, "m.ortc/FORMAT"));
        }
        if (st == ORTCRYPT_E_UNSUPPORTED) {
            assert_string_not_equal(err.hint, "");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_the_exact_bytes),    cmocka_unit_test(refuses_recipients_of_more_lines),
        cmocka_unit_test(parses_what_it_prints),     cmocka_unit_test(refuses_every_other_byte),
        cmocka_unit_test(refuses_other_spellings),   cmocka_unit_test(refuses_other_lines),
        cmocka_unit_test(format_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
