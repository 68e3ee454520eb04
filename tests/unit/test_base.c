/* Sentences, buffers, lengths, text encodings and secret memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/secret.h"
#include "support/support.h"

static void statuses(void **state)
{
    (void)state;
    static const int codes[] = {0, 2, 1, 1, 6, 5, 5, 4, 3, 6, 1, 1, 1, 1, 1};
    for (int i = 0; i <= ORTCRYPT_E_CANCELLED; i++) {
        assert_int_equal(ortcrypt_status_exit_code((ortcrypt_status)i), codes[i]);
        assert_memory_equal(ortcrypt_status_name((ortcrypt_status)i), "ORTCRYPT_", 9);
    }
    assert_string_equal(ortcrypt_status_name(ORTCRYPT_E_IO), "ORTCRYPT_E_IO");
    assert_string_equal(ortcrypt_status_name((ortcrypt_status)99), "unknown status");
    assert_int_equal(ortcrypt_status_exit_code((ortcrypt_status)99), 1);
    assert_non_null(strchr(ortcrypt_version(), '.'));
    ortcrypt_free(NULL, 7);
    ortcrypt_free(calloc(1, 16), 16);
}

static void sentences(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    assert_int_equal(oc_fail(&err, ORTCRYPT_E_FORMAT, "%s is no bundle", "a"), ORTCRYPT_E_FORMAT);
    assert_string_equal(err.message, "a is no bundle");
    oc_hint(&err, "look at %d", 7);
    oc_at(&err, 42, "0123456789abcdef0123456789abcdef");
    assert_string_equal(err.hint, "look at 7");
    assert_string_equal(err.asset, "0123456789abcdef0123456789abcdef");
    assert_int_equal(err.offset, 42);
    oc_fail(&err, ORTCRYPT_E_INPUT, "outer: %s (%s)", err.message, err.hint); /* from itself */
    assert_string_equal(err.message, "outer: a is no bundle (look at 7)");
    assert_string_equal(err.hint, "");
    assert_string_equal(err.asset, "");
    assert_true(err.offset == ORTCRYPT_NO_OFFSET);
    assert_int_equal(oc_fail(NULL, ORTCRYPT_E_BUSY, "x"), ORTCRYPT_E_BUSY);
    oc_hint(NULL, "x");
    oc_at(NULL, 1, NULL);
}

static void sentences_are_clean(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_fail(&err, ORTCRYPT_E_INPUT, "%s", "a\nb\x1b[2J\x7f\xff\xc3\xa9\xc2\x9b\xed\xa0\x80!");
    assert_string_equal(err.message, "a?b?[2J??\xc3\xa9" "?????" "!"); /* the C1 control is two bytes, the surrogate three */
    oc_fail(&err, ORTCRYPT_E_INPUT, "%s", "end \xe2\x82");
    assert_string_equal(err.message, "end ??");
}

/* Whatever the alignment, a sentence that is too long ends between two characters and says that it was cut. */
static void sentences_are_cut(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    for (size_t shift = 0; shift < 4; shift++) {
        char *text = calloc(1, 4001);
        assert_non_null(text);
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 <= 4000; i += 3) {
            memcpy(text + i, "\xe2\x82\xac", 3);
        }
        oc_fail(&err, ORTCRYPT_E_INPUT, "%s", text);
        oc_hint(&err, "%s", text);
        assert_true(oc_utf8_valid(err.message, strlen(err.message)));
        assert_true(strlen(err.message) >= sizeof(err.message) - 5);
        assert_null(strchr(err.message, '?'));
        assert_string_equal(err.message + strlen(err.message) - 3, "...");
        assert_true(oc_utf8_valid(err.hint, strlen(err.hint)));
        assert_true(strlen(err.hint) >= sizeof(err.hint) - 5);
        oc_fail_errno(&err, ORTCRYPT_E_IO, ENOSPC, "%s", text);
        assert_non_null(strstr(err.message, "...: No space left"));
        assert_true(oc_utf8_valid(err.message, strlen(err.message)));
        free(text);
    }
    char whole[sizeof(err.message)];
    memset(whole, 'y', sizeof(whole) - 1);
    whole[sizeof(whole) - 1] = '\0';
    oc_fail(&err, ORTCRYPT_E_INPUT, "%s", whole);
    assert_string_equal(err.message, whole); /* exactly full is not cut */
}

static void system_errors(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    assert_int_equal(oc_fail_errno(&err, ORTCRYPT_E_IO, ENOENT, "opening %s", "f"), ORTCRYPT_E_IO);
    assert_string_equal(err.message, "opening f: No such file or directory");
    assert_int_equal(err.sys_errno, ENOENT);
    assert_int_equal(oc_fail_errno(&err, ORTCRYPT_E_IO, ENOMEM, "x"), ORTCRYPT_E_NO_MEMORY);
    assert_int_equal(err.status, ORTCRYPT_E_NO_MEMORY);
    assert_int_equal(oc_fail_memory(&err, 5, "a thing"), ORTCRYPT_E_NO_MEMORY);
    assert_string_equal(err.message, "5 bytes of memory for a thing are not available");
    assert_int_equal(err.sys_errno, 0);
}

static void take_notice(void *state, const char *sentence)
{
    snprintf(state, 64, "%s", sentence);
}

static int stop_at_ten(void *state, const char *step, uint64_t done, uint64_t total)
{
    (void)state;
    assert_string_equal(step, "encrypting");
    assert_int_equal(total, 20);
    return done >= 10;
}

static void monitors(void **state)
{
    (void)state;
    char seen[64] = "";
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_monitor monitor = {take_notice, stop_at_ten, seen};
    ortcrypt_monitor empty = {NULL, NULL, NULL};
    oc_notice(NULL, "x");
    oc_notice(&empty, "x");
    oc_notice(&monitor, "%s became %s", "a\n", "b");
    assert_string_equal(seen, "a? became b");
    oc_test_ok(oc_progress(NULL, "encrypting", 20, 20, &err), &err);
    oc_test_ok(oc_progress(&empty, "encrypting", 20, 20, &err), &err);
    oc_test_ok(oc_progress(&monitor, "encrypting", 9, 20, &err), &err);
    assert_int_equal(oc_progress(&monitor, "encrypting", 10, 20, &err), ORTCRYPT_E_CANCELLED);
    assert_int_equal(err.status, ORTCRYPT_E_CANCELLED);
}

static void buffers(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf buf = OC_BUF(1000);
    uint8_t *room = NULL;
    oc_test_ok(oc_buf_append(&buf, NULL, 0, &err), &err);
    for (int i = 0; i < 250; i++) {
        oc_test_ok(oc_buf_append_str(&buf, "abcd", &err), &err);
    }
    assert_int_equal(buf.len, 1000);
    assert_memory_equal(buf.data + 996, "abcd", 4);
    assert_memory_equal(buf.data, "abcdabcd", 8);
    assert_true(buf.cap <= 1000);
    assert_int_equal(oc_buf_append(&buf, "x", 1, &err), ORTCRYPT_E_LIMIT);
    assert_int_equal(oc_buf_reserve(&buf, SIZE_MAX, &room, &err), ORTCRYPT_E_LIMIT);
    assert_int_equal(buf.len, 1000);
    oc_buf_free(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.max, 1000);
    oc_test_ok(oc_buf_reserve(&buf, 10, &room, &err), &err);
    assert_int_equal(buf.len, 0);
    assert_ptr_equal(room, buf.data);
    oc_buf_free(&buf);
    oc_buf_free(NULL);
    oc_buf none = OC_BUF(0);
    oc_test_ok(oc_buf_reserve(&none, 0, &room, &err), &err);
    assert_int_equal(oc_buf_append(&none, "x", 1, &err), ORTCRYPT_E_LIMIT);
    oc_buf_free(&none);
}

static void lengths(void **state)
{
    (void)state;
    uint64_t sum = 5;
    size_t len = 5;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    assert_true(oc_add_u64(UINT64_MAX - 1, 1, &sum));
    assert_true(sum == UINT64_MAX);
    assert_false(oc_add_u64(UINT64_MAX, 1, &sum));
    assert_true(oc_mul_u64(UINT64_MAX / 3, 3, &sum));
    assert_false(oc_mul_u64(UINT64_MAX / 3 + 1, 3, &sum));
    assert_true(sum == UINT64_MAX / 3 * 3);
    assert_true(oc_mul_u64(9, 0, &sum));
    oc_test_ok(oc_len(10, 10, "a thing", &len, &err), &err);
    assert_int_equal(len, 10);
    assert_int_equal(oc_len(11, 10, "a thing", &len, &err), ORTCRYPT_E_LIMIT);
    assert_string_equal(err.message, "a thing: 11 bytes are above the limit of 10");
    assert_int_equal(oc_len(UINT64_MAX, UINT64_MAX, "a thing", &len, &err), ORTCRYPT_E_LIMIT);
    assert_int_equal(len, 10);
    uint8_t eight[8];
    oc_store_be64(eight, 0x0102030405060708u);
    assert_memory_equal(eight, "\1\2\3\4\5\6\7\x8", 8);
    assert_true(oc_load_be64(eight) == 0x0102030405060708u);
    assert_true(oc_equal("abc", "abc", 3));
    assert_false(oc_equal("abc", "abd", 3));
    assert_false(oc_equal("\x80", "\0", 1));
    assert_true(oc_equal("x", "y", 0));
}

static void hex(void **state)
{
    (void)state;
    uint8_t all[256];
    uint8_t back[256];
    char text[513];
    for (int i = 0; i < 256; i++) {
        all[i] = (uint8_t)i;
    }
    oc_hex_encode(text, all, 256);
    assert_memory_equal(text + 2 * 0xAF, "afb0", 4);
    assert_true(oc_hex_decode(back, 256, text, 512));
    assert_memory_equal(all, back, 256);
    assert_false(oc_hex_decode(back, 2, "aB12", 4));
    assert_false(oc_hex_decode(back, 2, "ab1", 3));
    assert_false(oc_hex_decode(back, 2, "ab12cd", 6));
    assert_true(oc_hex_decode(back, 0, "", 0));
    for (int c = 0; c < 256; c++) { /* every byte: only the sixteen digits are taken */
        char pair[2] = {'0', (char)c};
        bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        assert_int_equal(oc_hex_decode(back, 1, pair, 2), digit);
    }
}

static bool decodes(const char *text, bool pad, const char *expected)
{
    uint8_t data[64];
    size_t len = 99;
    bool ok = oc_base64_decode(data, &len, sizeof(data), text, strlen(text), pad);
    if (ok) {
        assert_int_equal(len, strlen(expected));
        assert_memory_equal(data, expected, len);
    }
    return ok;
}

static void base64(void **state)
{
    (void)state;
    static const char *plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"}; /* RFC 4648, section 10 */
    static const char *padded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    char text[64];
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(oc_base64_encode(text, (const uint8_t *)plain[i], strlen(plain[i]), true), strlen(padded[i]));
        assert_string_equal(text, padded[i]);
        assert_true(decodes(padded[i], true, plain[i]));
        oc_base64_encode(text, (const uint8_t *)plain[i], strlen(plain[i]), false);
        assert_int_equal(strlen(text), strcspn(padded[i], "="));
        assert_true(decodes(text, false, plain[i]));
        assert_int_equal(decodes(padded[i], false, plain[i]), strchr(padded[i], '=') == NULL);
        assert_int_equal(decodes(text, true, plain[i]), strchr(padded[i], '=') == NULL);
    }
    static const char *bad[] = {"Zh==", "Zm9=", "Z===", "====", "Zg=", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm-_", "Zg=a", "=Zg="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(decodes(bad[i], true, ""));
    }
    assert_false(decodes("Zh", false, "")); /* spare bits set */
    assert_false(decodes("Zm9", false, ""));
    assert_false(decodes("Z", false, ""));
    uint8_t small[2];
    size_t len = 7;
    assert_false(oc_base64_decode(small, &len, 2, "Zm9v", 4, true));
    assert_int_equal(len, 7);
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int c = 0; c < 256; c++) { /* every byte: only the alphabet is taken */
        uint8_t three[3];
        char four[4] = {'A', 'A', 'A', (char)c};
        const char *at = c == 0 ? NULL : strchr(alphabet, c);
        assert_int_equal(oc_base64_decode(three, &len, 3, four, 4, false), at != NULL);
        if (at != NULL) {
            assert_int_equal(three[2], at - alphabet);
        }
    }
}

static void names(void **state)
{
    (void)state;
    static const char *good[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "../x", "a\nb"};
    static const char *bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xe2\x28\xa1", "a\xff"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(oc_name_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(oc_utf8_valid(bad[i], strlen(bad[i])));
        assert_false(oc_name_valid(bad[i], strlen(bad[i])));
    }
    char name[OC_NAME_MAX + 1];
    memset(name, 'n', sizeof(name));
    assert_true(oc_name_valid(name, OC_NAME_MAX));
    assert_false(oc_name_valid(name, OC_NAME_MAX + 1));
    assert_false(oc_name_valid("", 0));
    assert_true(oc_utf8_valid("", 0));
    assert_false(oc_name_valid("a\0b", 3));
}

static void secrets(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_secret secret;
    oc_test_ok(oc_secret_copy(&secret, "very secret", 11, &err), &err);
    assert_int_equal(secret.len, 11);
    assert_int_equal((uintptr_t)secret.data % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    pid_t child = fork();
    if (child == 0) { /* the key is not in a child, and freeing it there is harmless */
        bool gone = oc_equal(secret.data, (uint8_t[11]){0}, 11);
        oc_secret_free(&secret);
        _exit(gone ? 0 : 1);
    }
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_memory_equal(secret.data, "very secret", 11);
    oc_secret_free(&secret);
    assert_null(secret.data);
    oc_secret_free(&secret);
    oc_secret_free(NULL);
    oc_test_ok(oc_secret_new(&secret, 0, &err), &err);
    assert_non_null(secret.data);
    oc_secret_free(&secret);
    oc_test_ok(oc_secret_new(&secret, 5000, &err), &err);
    assert_true(oc_equal(secret.data, (uint8_t[5000]){0}, 5000));
    oc_secret_free(&secret);
    assert_int_equal(oc_secret_new(&secret, SIZE_MAX, &err), ORTCRYPT_E_NO_MEMORY);
    assert_int_equal(oc_secret_new(&secret, SIZE_MAX / 4, &err), ORTCRYPT_E_NO_MEMORY);
    assert_null(secret.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),      cmocka_unit_test(sentences), cmocka_unit_test(sentences_are_clean),
        cmocka_unit_test(sentences_are_cut), cmocka_unit_test(system_errors), cmocka_unit_test(monitors),
        cmocka_unit_test(buffers),       cmocka_unit_test(lengths),   cmocka_unit_test(hex),
        cmocka_unit_test(base64),        cmocka_unit_test(names),     cmocka_unit_test(secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
