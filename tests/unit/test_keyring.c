/* The keyring: recipients, identities, passphrase, callbacks, and what each refusal says. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "bundle_fixture.h"

/* A well-formed identity; only its text counts here. */
static const char *const identity_text = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
static const char *const stray_recipient = "age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z"; /* of the age README */

typedef struct payload {
    uint8_t bundle_id[OC_BUNDLE_ID_LEN];
    uint8_t key[OC_BUNDLE_KEY_LEN];
} payload;

static const payload sample = {{0x11, 0x22}, {0x33, 0x44, 0x55}};

static void wrap_sample(fixture *f, const ortcrypt_keyring *keyring, oc_buf *out)
{
    *out = OC_BUF(256 * 1024);
    oc_test_ok(oc_keyring_wrap(keyring, sample.bundle_id, sample.key, out, &f->err), &f->err);
}

static ortcrypt_status unwrap(fixture *f, const ortcrypt_keyring *keyring, const oc_buf *file, char **recipients)
{
    uint8_t id[OC_BUNDLE_ID_LEN];
    oc_secret key = {0};
    ortcrypt_status st = oc_keyring_unwrap(keyring, OC_SPAN(file->data, file->len), "keys/x.age", id, &key, recipients, &f->err);
    if (st == ORTCRYPT_OK) {
        assert_memory_equal(id, sample.bundle_id, sizeof id);
        assert_int_equal(key.len, OC_BUNDLE_KEY_LEN);
        assert_memory_equal(key.data, sample.key, OC_BUNDLE_KEY_LEN);
    }
    oc_secret_free(&key);
    return st;
}

static ortcrypt_keyring *new_keyring(fixture *f)
{
    ortcrypt_keyring *keyring = NULL;
    oc_test_ok(ortcrypt_keyring_new(&keyring, &f->err), &f->err);
    return keyring;
}

static void wraps_for_each_recipient_once(void **state)
{
    fixture *const f = *state;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    char *listed = NULL;
    oc_buf file;
    ortcrypt_keyring *const writer = new_keyring(f);
    ortcrypt_keyring *const reader = new_keyring(f);
    oc_test_ok(ortcrypt_identity_generate(identity, recipient, &f->err), &f->err);
    assert_int_equal(strlen(identity), ORTCRYPT_IDENTITY_SIZE - 1);
    assert_int_equal(strlen(recipient), ORTCRYPT_RECIPIENT_SIZE - 1);
    oc_test_ok(ortcrypt_keyring_add_recipient(writer, recipient, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_add_recipient(writer, stray_recipient, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_add_recipient(writer, recipient, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_add_identity(reader, identity, strlen(identity), &f->err), &f->err);
    wrap_sample(f, writer, &file);
    oc_test_ok(unwrap(f, reader, &file, &listed), &f->err);
    char *const expected = oc_test_format("%s\n%s\n", recipient, stray_recipient);
    assert_string_equal(listed, expected);
    free(expected);
    free(listed);
    oc_buf_free(&file);
    ortcrypt_keyring_free(writer);
    ortcrypt_keyring_free(reader);
}

static void wrong_and_missing_keys(void **state)
{
    fixture *const f = *state;
    oc_buf file;
    ortcrypt_keyring *const stranger = new_keyring(f);
    wrap_sample(f, f->keyring, &file);
    oc_test_status(unwrap(f, stranger, &file, NULL), ORTCRYPT_E_NO_KEY, &f->err);
    assert_non_null(strstr(f->err.message, "none was given"));
    for (int i = 0; i < 2; i++) {
        char identity[ORTCRYPT_IDENTITY_SIZE];
        char recipient[ORTCRYPT_RECIPIENT_SIZE];
        oc_test_ok(ortcrypt_identity_generate(identity, recipient, &f->err), &f->err);
        oc_test_ok(ortcrypt_keyring_add_identity(stranger, identity, strlen(identity), &f->err), &f->err);
    }
    oc_test_status(unwrap(f, stranger, &file, NULL), ORTCRYPT_E_NO_KEY, &f->err);
    assert_string_equal(f->err.message, "no identity of the 2 given opens keys/x.age: a wrong key, or the file was altered");
    assert_int_equal(ortcrypt_status_exit_code(f->err.status), 4);
    ortcrypt_keyring *const empty = new_keyring(f);
    oc_buf nothing = OC_BUF(1000);
    oc_test_status(oc_keyring_wrap(empty, sample.bundle_id, sample.key, &nothing, &f->err), ORTCRYPT_E_NO_KEY, &f->err);
    assert_int_not_equal(strlen(f->err.hint), 0);
    oc_buf_free(&file);
    ortcrypt_keyring_free(empty);
    ortcrypt_keyring_free(stranger);
}

static void passphrase(void **state)
{
    fixture *const f = *state;
    oc_buf file;
    char *listed = NULL;
    ortcrypt_keyring *const right = new_keyring(f);
    ortcrypt_keyring *const wrong = new_keyring(f);
    oc_test_ok(ortcrypt_keyring_add_passphrase(right, "correct horse", 13, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_add_passphrase(wrong, "correct hors", 12, &f->err), &f->err);
    oc_test_status(ortcrypt_keyring_add_recipient(right, stray_recipient, &f->err), ORTCRYPT_E_INVALID, &f->err);
    oc_test_status(ortcrypt_keyring_add_passphrase(f->keyring, "x", 1, &f->err), ORTCRYPT_E_INVALID, &f->err);
    oc_test_status(ortcrypt_keyring_add_passphrase(right, "", 0, &f->err), ORTCRYPT_E_INVALID, &f->err);
    wrap_sample(f, right, &file);
    oc_test_ok(unwrap(f, right, &file, &listed), &f->err);
    assert_string_equal(listed, "passphrase\n");
    oc_test_status(unwrap(f, wrong, &file, NULL), ORTCRYPT_E_NO_KEY, &f->err);
    oc_test_ok(ortcrypt_keyring_set_scrypt_limit(right, 17, &f->err), &f->err);
    oc_test_status(unwrap(f, right, &file, NULL), ORTCRYPT_E_UNSUPPORTED, &f->err);
    oc_test_status(ortcrypt_keyring_set_scrypt_limit(right, 31, &f->err), ORTCRYPT_E_INVALID, &f->err);
    free(listed);
    oc_buf_free(&file);
    ortcrypt_keyring_free(right);
    ortcrypt_keyring_free(wrong);
}

static void bad_recipients(void **state)
{
    static const struct {
        const char *text;
        ortcrypt_status status;
    } cases[] = {
        {"", ORTCRYPT_E_INVALID},
        {"age1", ORTCRYPT_E_INVALID},
        {"age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2y", ORTCRYPT_E_INVALID},
        {"AGE1LVYVWAWKR0MCNNNNCAGHUNADRQKMUF9E6507X9Y920XXPP866CNQL7DP2Z", ORTCRYPT_E_INVALID},
        {" age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z", ORTCRYPT_E_INVALID},
        {"age1yubikey1qwxyz", ORTCRYPT_E_UNSUPPORTED},
        {"age1pq1qqqq", ORTCRYPT_E_UNSUPPORTED},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN", ORTCRYPT_E_UNSUPPORTED},
    };
    fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        oc_test_status(ortcrypt_keyring_add_recipient(f->keyring, cases[i].text, &f->err), cases[i].status, &f->err);
    }
    /* a secret in the wrong place is not repeated */
    oc_test_status(ortcrypt_keyring_add_recipient(f->keyring, identity_text, &f->err), ORTCRYPT_E_INVALID, &f->err);
    assert_null(strstr(f->err.message, "GFPYYSJZ"));
}

static void identity_texts(void **state)
{
    static const struct {
        const char *text; /* %s: a good identity */
        ortcrypt_status status;
        const char *says;
    } cases[] = {
        {"# created: today\n# public key: age1...\n%s\n", ORTCRYPT_OK, NULL},
        {"\n\r\n%s\r\n", ORTCRYPT_OK, NULL},
        {"%s", ORTCRYPT_OK, NULL},
        {"", ORTCRYPT_E_INPUT, "no identity"},
        {"# nothing\n", ORTCRYPT_E_INPUT, "no identity"},
        {"%s\n# ok\nsomething else\n", ORTCRYPT_E_INPUT, "line 3"},
        {" %s\n", ORTCRYPT_E_INPUT, "line 1"},
        {"age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z\n", ORTCRYPT_E_INPUT, "recipient"},
        {"AGE-PLUGIN-YUBIKEY-1QQ\n", ORTCRYPT_E_UNSUPPORTED, "plugin"},
        {"AGE-SECRET-KEY-PQ-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQAE0WQE\n", ORTCRYPT_E_UNSUPPORTED, "another type"},
        {"-----BEGIN OPENSSH PRIVATE KEY-----\n", ORTCRYPT_E_UNSUPPORTED, "ssh"},
        {"age-encryption.org/v1\n-> scrypt x 18\n", ORTCRYPT_E_UNSUPPORTED, "encrypted identity"},
    };
    fixture *const f = *state;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ortcrypt_keyring *const keyring = new_keyring(f);
        oc_test_ok(ortcrypt_identity_generate(identity, recipient, &f->err), &f->err);
        const char *const hole = strstr(cases[i].text, "%s");
        char *const text = hole == NULL ? oc_test_format("%s", cases[i].text)
                                        : oc_test_format("%.*s%s%s", (int)(hole - cases[i].text), cases[i].text, identity, hole + 2);
        oc_test_status(ortcrypt_keyring_add_identity(keyring, text, strlen(text), &f->err), cases[i].status, &f->err);
        if (cases[i].says != NULL) {
            assert_non_null(strstr(f->err.message, cases[i].says));
            assert_null(strstr(f->err.message, identity));
            /* nothing of a refused text was kept */
            oc_buf file;
            wrap_sample(f, f->keyring, &file);
            oc_test_status(unwrap(f, keyring, &file, NULL), ORTCRYPT_E_NO_KEY, &f->err);
            assert_non_null(strstr(f->err.message, "none was given"));
            oc_buf_free(&file);
        }
        free(text);
        ortcrypt_keyring_free(keyring);
    }
}

static void identity_files(void **state)
{
    fixture *const f = *state;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    ortcrypt_keyring *const keyring = new_keyring(f);
    char *const file = oc_test_format("%s/id", f->folder);
    char *const link = oc_test_format("%s/link", f->folder);
    char *const fifo = oc_test_format("%s/fifo", f->folder);
    char *const missing = oc_test_format("%s/none", f->folder);
    char *const large = malloc(65537);
    oc_test_ok(ortcrypt_identity_generate(identity, recipient, &f->err), &f->err);
    oc_test_write_file(file, identity, strlen(identity));
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    oc_test_ok(ortcrypt_keyring_add_identity_file(keyring, link, &f->err), &f->err);
    oc_test_status(ortcrypt_keyring_add_identity_file(keyring, fifo, &f->err), ORTCRYPT_E_IO, &f->err);
    oc_test_status(ortcrypt_keyring_add_identity_file(keyring, f->folder, &f->err), ORTCRYPT_E_IO, &f->err);
    oc_test_status(ortcrypt_keyring_add_identity_file(keyring, missing, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_int_equal(f->err.sys_errno, ENOENT);
    assert_non_null(strstr(f->err.message, missing));
    memset(large, '#', 65537);
    oc_test_write_file(file, large, 65537);
    oc_test_status(ortcrypt_keyring_add_identity_file(keyring, file, &f->err), ORTCRYPT_E_INPUT, &f->err);
    oc_test_write_file(file, large, 65536);
    oc_test_status(ortcrypt_keyring_add_identity_file(keyring, file, &f->err), ORTCRYPT_E_INPUT, &f->err);
    assert_non_null(strstr(f->err.message, "no identity"));
    free(large);
    free(missing);
    free(fifo);
    free(link);
    free(file);
    ortcrypt_keyring_free(keyring);
}

static void *slow_writer(void *state)
{
    const int fd = *(const int *)state;
    static const char text[] = "# one byte at a time\nAGE-SECRET-KEY-1";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        assert_int_equal(write(fd, text + i, 1), 1);
    }
    close(fd);
    return NULL;
}

static void identity_through_a_pipe(void **state)
{
    fixture *const f = *state;
    int ends[2];
    pthread_t thread;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    ortcrypt_keyring *const keyring = new_keyring(f);
    oc_test_ok(ortcrypt_identity_generate(identity, recipient, &f->err), &f->err);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], identity, strlen(identity)), strlen(identity));
    close(ends[1]);
    oc_test_ok(ortcrypt_keyring_add_identity_fd(keyring, ends[0], &f->err), &f->err);
    assert_int_equal(fcntl(ends[0], F_GETFD), FD_CLOEXEC); /* left open */
    close(ends[0]);
    /* an empty non-blocking pipe is waited for; what comes is no identity */
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&thread, NULL, slow_writer, &ends[1]), 0);
    oc_test_status(ortcrypt_keyring_add_identity_fd(keyring, ends[0], &f->err), ORTCRYPT_E_INPUT, &f->err);
    assert_non_null(strstr(f->err.message, "line 2"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(ends[0]);
    oc_test_status(ortcrypt_keyring_add_identity_fd(keyring, -1, &f->err), ORTCRYPT_E_INVALID, &f->err);
    ortcrypt_keyring_free(keyring);
}

/* A "KMS" that adds one to every byte. */
static int shift_wrap(void *state, const void *data, size_t len, void *out, size_t out_max, size_t *out_len)
{
    if (*(int *)state != 0 || len > out_max) {
        return *(int *)state;
    }
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)out)[i] = (uint8_t)(((const uint8_t *)data)[i] + 1);
    }
    *out_len = len;
    return 0;
}

static int shift_unwrap(void *state, const void *data, size_t len, void *out, size_t out_max, size_t *out_len)
{
    if (*(int *)state != 0 || len > out_max) {
        return *(int *)state;
    }
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)out)[i] = (uint8_t)(((const uint8_t *)data)[i] - 1);
    }
    *out_len = len;
    return 0;
}

static void callbacks(void **state)
{
    fixture *const f = *state;
    int answer = 0;
    oc_buf file;
    char *listed = NULL;
    ortcrypt_keyring *const keyring = new_keyring(f);
    oc_test_status(ortcrypt_keyring_set_callbacks(keyring, shift_wrap, shift_unwrap, &answer, "two\nlines", &f->err), ORTCRYPT_E_INVALID,
                   &f->err);
    oc_test_status(ortcrypt_keyring_set_callbacks(keyring, NULL, NULL, &answer, NULL, &f->err), ORTCRYPT_E_INVALID, &f->err);
    oc_test_status(ortcrypt_keyring_set_callbacks(keyring, NULL, shift_unwrap, &answer, "kms://key/1", &f->err), ORTCRYPT_E_INVALID,
                   &f->err);
    oc_test_ok(ortcrypt_keyring_set_callbacks(keyring, shift_wrap, NULL, &answer, "kms://key/1", &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_set_callbacks(keyring, NULL, shift_unwrap, &answer, NULL, &f->err), &f->err); /* wrap stays */
    wrap_sample(f, keyring, &file);
    oc_test_ok(unwrap(f, keyring, &file, &listed), &f->err);
    assert_string_equal(listed, "kms://key/1\n");
    file.data[3] ^= 1; /* what comes out is no key file's payload any more */
    oc_test_status(unwrap(f, keyring, &file, NULL), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_non_null(strstr(f->err.message, "keys/x.age"));
    answer = 7;
    oc_test_status(unwrap(f, keyring, &file, NULL), ORTCRYPT_E_NO_KEY, &f->err);
    assert_non_null(strstr(f->err.message, "7"));
    file.len = 0;
    oc_test_status(oc_keyring_wrap(keyring, sample.bundle_id, sample.key, &file, &f->err), ORTCRYPT_E_NO_KEY, &f->err);
    assert_int_equal(file.len, 0);
    free(listed);
    oc_buf_free(&file);
    ortcrypt_keyring_free(keyring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wraps_for_each_recipient_once, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(wrong_and_missing_keys, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(passphrase, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(bad_recipients, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(identity_texts, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(identity_files, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(identity_through_a_pipe, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(callbacks, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
