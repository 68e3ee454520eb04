/*
 * bundle/identity.c: identities from text, files and descriptors. In: secret text, read straight into secret memory.
 * Out: raw keys in the keyring. No sentence ever quotes a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/keyring_internal.h"

#define IDENTITY_TEXT_MAX 65536u
#define IDENTITY_COUNT_MAX 1000u

static bool begins(const char *line, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* What stands in line `number` of `what` instead of an identity. */
static ortcrypt_status refuse_line(const char *line, size_t len, size_t number, const char *what, ortcrypt_error *err)
{
    ortcrypt_status st;
    if (begins(line, len, "AGE-PLUGIN-")) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "line %zu of %s is the identity of a plugin", number, what);
        oc_hint(err, "open the key file with age and its plugin, through an unwrap callback or command");
    } else if (oc_age_identity_foreign(line, len)) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "line %zu of %s is an identity of another type than X25519", number, what);
        oc_hint(err, "open the key file with an age that knows this type, through an unwrap callback or command");
    } else if (begins(line, len, "age-encryption.org/") || begins(line, len, "-----BEGIN AGE")) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s is an encrypted identity file", what);
        oc_hint(err, "decrypt it with age and hand over the result through a pipe");
    } else if (begins(line, len, "-----BEGIN ")) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s holds an ssh or PEM key, not an age identity", what);
        oc_hint(err, "open the key file with age, through an unwrap callback or command");
    } else if (begins(line, len, "age1")) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "line %zu of %s is a recipient; opening needs the identity", number, what);
    } else {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "line %zu of %s is no age identity", number, what);
    }
    return st;
}

/* Takes the identities out of `text` into `keys`, which has room for as many as the text has lines. */
static ortcrypt_status parse_text(const char *text, size_t len, const char *what, oc_secret *keys, ortcrypt_error *err)
{
    size_t number = 0;
    size_t count = 0;
    for (size_t at = 0; at < len;) {
        const char *const line = text + at;
        const char *const end = memchr(line, '\n', len - at);
        size_t line_len = end == NULL ? len - at : (size_t)(end - line);
        at += line_len + 1;
        number++;
        line_len -= line_len != 0 && line[line_len - 1] == '\r' ? 1 : 0;
        if (line_len == 0 || line[0] == '#') {
            continue;
        }
        if (!oc_age_identity_parse(keys->data + count * OC_AGE_KEY_LEN, line, line_len)) {
            return refuse_line(line, line_len, number, what, err);
        }
        count++;
    }
    keys->len = count * OC_AGE_KEY_LEN;
    return count != 0 ? ORTCRYPT_OK : oc_fail(err, ORTCRYPT_E_INPUT, "%s holds no identity", what);
}

static size_t count_lines(const char *text, size_t len)
{
    size_t lines = 1;
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n' ? 1 : 0;
    }
    return lines;
}

/* All of the text or nothing. */
static ortcrypt_status add_text(ortcrypt_keyring *keyring, const char *text, size_t len, const char *what, ortcrypt_error *err)
{
    oc_secret fresh = {0};
    oc_secret all = {0};
    const size_t have = keyring->identities.len;
    ortcrypt_status st = oc_secret_new(&fresh, count_lines(text, len) * OC_AGE_KEY_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = parse_text(text, len, what, &fresh, err);
    }
    if (st == ORTCRYPT_OK && (have + fresh.len) / OC_AGE_KEY_LEN > IDENTITY_COUNT_MAX) {
        st = oc_fail(err, ORTCRYPT_E_LIMIT, "a keyring holds at most %u identities", IDENTITY_COUNT_MAX);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_secret_new(&all, have + fresh.len, err);
    }
    if (st == ORTCRYPT_OK) {
        if (have != 0) {
            memcpy(all.data, keyring->identities.data, have);
        }
        memcpy(all.data + have, fresh.data, fresh.len);
        oc_secret_free(&keyring->identities);
        keyring->identities = all;
    }
    oc_secret_free(&fresh);
    return st;
}

ortcrypt_status ortcrypt_keyring_add_identity(ortcrypt_keyring *keyring, const char *text, size_t len, ortcrypt_error *err)
{
    if (keyring == NULL || (text == NULL && len != 0)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_keyring_add_identity needs keyring and text");
    }
    if (len > IDENTITY_TEXT_MAX) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "the identity text is longer than %u bytes", IDENTITY_TEXT_MAX);
    }
    return add_text(keyring, text == NULL ? "" : text, len, "the identity text", err);
}

static ortcrypt_status read_text(int fd, const char *what, oc_secret *text, ortcrypt_error *err)
{
    size_t len = 0;
    ortcrypt_status st = oc_secret_new(text, IDENTITY_TEXT_MAX + 1, err);
    while (st == ORTCRYPT_OK && len <= IDENTITY_TEXT_MAX) {
        const ssize_t got = read(fd, text->data + len, IDENTITY_TEXT_MAX + 1 - len);
        if (got == 0) {
            break;
        }
        if (got > 0) {
            len += (size_t)got;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLIN};
            (void)poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be read", what);
        }
    }
    if (st == ORTCRYPT_OK && len > IDENTITY_TEXT_MAX) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "%s is no identity file: it is longer than %u bytes", what, IDENTITY_TEXT_MAX);
    }
    text->len = len;
    return st;
}

static ortcrypt_status add_fd(ortcrypt_keyring *keyring, int fd, const char *what, ortcrypt_error *err)
{
    oc_secret text = {0};
    ortcrypt_status st = read_text(fd, what, &text, err);
    if (st == ORTCRYPT_OK) {
        st = add_text(keyring, (const char *)text.data, text.len, what, err);
    }
    oc_secret_free(&text);
    return st;
}

ortcrypt_status ortcrypt_keyring_add_identity_fd(ortcrypt_keyring *keyring, int fd, ortcrypt_error *err)
{
    if (keyring == NULL || fd < 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_keyring_add_identity_fd needs keyring and an open descriptor");
    }
    return add_fd(keyring, fd, "the identity descriptor", err);
}

ortcrypt_status ortcrypt_keyring_add_identity_file(ortcrypt_keyring *keyring, const char *path, ortcrypt_error *err)
{
    struct stat info;
    if (keyring == NULL || path == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_keyring_add_identity_file needs keyring and path");
    }
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the identity file %s cannot be opened", path);
    }
    ortcrypt_status st = ORTCRYPT_OK;
    if (fstat(fd, &info) != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the identity file %s cannot be read", path);
    } else if (!S_ISREG(info.st_mode)) {
        st = oc_fail(err, ORTCRYPT_E_IO, "the identity file %s is no regular file", path);
        oc_hint(err, "hand over a pipe as an open descriptor");
    } else {
        st = add_fd(keyring, fd, path, err);
    }
    close(fd);
    return st;
}
