/*
 * bundle/keyring.c: recipients, identities, passphrase, callbacks. Secrets are in oc_secret from the moment we have them.
 * Reading identity files: identity.c. Format of the key file: docs/format.md, section 4.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/keyring_internal.h"

#define PASSPHRASE_MAX 1024u
#define RECIPIENT_TEXT_MAX 4096u
#define PAYLOAD_MAX 65536u

ortcrypt_status ortcrypt_identity_generate(char identity[ORTCRYPT_IDENTITY_SIZE], char recipient[ORTCRYPT_RECIPIENT_SIZE],
                                           ortcrypt_error *err)
{
    uint8_t public_key[OC_AGE_KEY_LEN];
    oc_secret secret = {0};
    if (identity == NULL || recipient == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_identity_generate needs identity and recipient");
    }
    identity[0] = recipient[0] = '\0';
    ortcrypt_status st = oc_secret_new(&secret, OC_AGE_KEY_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = oc_age_generate(secret.data, public_key, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_age_identity_text(identity, secret.data);
        oc_age_recipient_text(recipient, public_key);
    }
    oc_secret_free(&secret);
    return st;
}

ortcrypt_status ortcrypt_keyring_new(ortcrypt_keyring **keyring, ortcrypt_error *err)
{
    if (keyring == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_keyring_new needs keyring");
    }
    *keyring = calloc(1, sizeof **keyring);
    return *keyring != NULL ? ORTCRYPT_OK : oc_fail_memory(err, sizeof **keyring, "a keyring");
}

void ortcrypt_keyring_free(ortcrypt_keyring *keyring)
{
    if (keyring != NULL) {
        oc_secret_free(&keyring->identities);
        oc_secret_free(&keyring->passphrase);
        free(keyring->recipients);
        free(keyring->wrap_text);
        free(keyring);
    }
}

/* An age recipient of another type: "age1name1...", or an ssh public key. The data part of Bech32 holds no '1'. */
static bool foreign_recipient(const char *text)
{
    return strncmp(text, "ssh-", 4) == 0 || strncmp(text, "ecdsa-", 6) == 0 ||
           (strncmp(text, "age1", 4) == 0 && strchr(text + 4, '1') != NULL);
}

static ortcrypt_status refuse_recipient(const char *text, ortcrypt_error *err)
{
    ortcrypt_status st;
    if (strncmp(text, "AGE-SECRET-KEY-", 15) == 0 || strncmp(text, "age-secret-key-", 15) == 0) {
        st = oc_fail(err, ORTCRYPT_E_INVALID, "a secret identity was given where a recipient belongs");
        oc_hint(err, "a recipient begins with age1; the identity file has it in a comment");
    } else if (foreign_recipient(text)) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "\"%.80s\" is a recipient of another type than X25519", text);
        oc_hint(err, "wrap the key with a program or callback that knows this type");
    } else if (strncmp(text, "age1", 4) == 0) {
        st = oc_fail(err, ORTCRYPT_E_INVALID, "\"%.80s\" is no age recipient: a character is wrong, missing or too many", text);
    } else {
        st = oc_fail(err, ORTCRYPT_E_INVALID, "a recipient begins with age1; this text does not");
    }
    return st;
}

ortcrypt_status ortcrypt_keyring_add_recipient(ortcrypt_keyring *keyring, const char *recipient, ortcrypt_error *err)
{
    uint8_t key[OC_AGE_KEY_LEN];
    if (keyring == NULL || recipient == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_keyring_add_recipient needs keyring and recipient");
    }
    if (!oc_age_recipient_parse(key, recipient, strlen(recipient))) {
        return refuse_recipient(recipient, err);
    }
    if (keyring->passphrase.len != 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a passphrase excludes every other recipient");
    }
    for (size_t i = 0; i < keyring->recipient_count; i++) {
        if (memcmp(keyring->recipients[i], key, sizeof key) == 0) {
            return ORTCRYPT_OK;
        }
    }
    if (keyring->recipient_count == OC_AGE_STANZA_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "a bundle has at most %u recipients", OC_AGE_STANZA_MAX);
    }
    uint8_t(*const more)[OC_AGE_KEY_LEN] = realloc(keyring->recipients, (keyring->recipient_count + 1) * sizeof *more);
    if (more == NULL) {
        return oc_fail_memory(err, (keyring->recipient_count + 1) * sizeof *more, "recipients");
    }
    memcpy(more[keyring->recipient_count++], key, sizeof key);
    keyring->recipients = more;
    return ORTCRYPT_OK;
}

ortcrypt_status ortcrypt_keyring_add_passphrase(ortcrypt_keyring *keyring, const char *passphrase, size_t len,
                                                ortcrypt_error *err)
{
    if (keyring == NULL || passphrase == NULL || len == 0 || len > PASSPHRASE_MAX) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a passphrase is 1 to %u bytes long", PASSPHRASE_MAX);
    }
    if (keyring->recipient_count != 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a passphrase excludes every other recipient");
    }
    if (keyring->passphrase.len != 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the keyring has a passphrase already");
    }
    return oc_secret_copy(&keyring->passphrase, passphrase, len, err);
}

ortcrypt_status ortcrypt_keyring_set_scrypt_limit(ortcrypt_keyring *keyring, unsigned log_n, ortcrypt_error *err)
{
    if (keyring == NULL || log_n < 1 || log_n > 30) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the scrypt work factor is 1 to 30");
    }
    keyring->scrypt_limit = log_n;
    return ORTCRYPT_OK;
}

static ortcrypt_status copy_recipient_text(char **out, const char *recipient_text, ortcrypt_error *err)
{
    const size_t len = strlen(recipient_text);
    bool plain = len >= 1 && len <= RECIPIENT_TEXT_MAX && oc_utf8_valid(recipient_text, len);
    for (size_t i = 0; plain && i < len; i++) {
        plain = (unsigned char)recipient_text[i] >= 0x20 && recipient_text[i] != 0x7f;
    }
    return plain ? oc_strdup(out, recipient_text, err)
                 : oc_fail(err, ORTCRYPT_E_INVALID, "a recipient's text is one line of 1 to %u bytes of UTF-8", RECIPIENT_TEXT_MAX);
}

ortcrypt_status ortcrypt_keyring_set_callbacks(ortcrypt_keyring *keyring, ortcrypt_wrap_fn wrap, ortcrypt_unwrap_fn unwrap, void *state,
                                               const char *recipient_text, ortcrypt_error *err)
{
    char *text = NULL;
    if (keyring == NULL || (wrap == NULL && unwrap == NULL) || (wrap == NULL && recipient_text != NULL)) {
        return oc_fail(err, ORTCRYPT_E_INVALID,
                       "ortcrypt_keyring_set_callbacks needs a keyring and a callback, and a recipient's text goes with wrap");
    }
    ortcrypt_status st = recipient_text != NULL ? copy_recipient_text(&text, recipient_text, err) : ORTCRYPT_OK;
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (wrap != NULL) {
        free(keyring->wrap_text);
        keyring->wrap = wrap;
        keyring->wrap_state = state;
        keyring->wrap_text = text;
    }
    if (unwrap != NULL) {
        keyring->unwrap = unwrap;
        keyring->unwrap_state = state;
    }
    return ORTCRYPT_OK;
}

/* The lines that are kept beside the key: age's stanzas do not say whose they are. */
static ortcrypt_status print_payload(const ortcrypt_keyring *keyring, const uint8_t *bundle_id, const uint8_t *key,
                                     oc_secret *payload, ortcrypt_error *err)
{
    const size_t count = keyring->wrap != NULL ? keyring->wrap_text != NULL : keyring->passphrase.len != 0 ? 1 : keyring->recipient_count;
    char(*const texts)[ORTCRYPT_RECIPIENT_SIZE] = calloc(count + 1, sizeof *texts);
    const char **const lines = calloc(count + 1, sizeof *lines);
    ortcrypt_status st = ORTCRYPT_OK;
    if (texts == NULL || lines == NULL) {
        st = oc_fail_memory(err, (count + 1) * sizeof *texts, "recipients");
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < count; i++) {
        if (keyring->wrap != NULL) {
            lines[i] = keyring->wrap_text;
        } else if (keyring->passphrase.len != 0) {
            lines[i] = "passphrase";
        } else {
            oc_age_recipient_text(texts[i], keyring->recipients[i]);
            lines[i] = texts[i];
        }
    }
    if (st == ORTCRYPT_OK) {
        st = oc_keyfile_print(payload, bundle_id, key, lines, count, err);
    }
    free(lines);
    free(texts);
    return st;
}

static ortcrypt_status wrap_by_callback(const ortcrypt_keyring *keyring, oc_span payload, oc_buf *out, ortcrypt_error *err)
{
    uint8_t *room = NULL;
    size_t len = 0;
    ortcrypt_status st = oc_buf_reserve(out, OC_AGE_FILE_MAX, &room, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const int said = keyring->wrap(keyring->wrap_state, payload.data, payload.len, room, OC_AGE_FILE_MAX, &len);
    if (said != 0) {
        return oc_fail(err, ORTCRYPT_E_NO_KEY, "the application's wrap callback did not wrap the key: it returned %d", said);
    }
    if (len == 0 || len > OC_AGE_FILE_MAX) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the application's wrap callback returned a key file of %zu bytes", len);
    }
    out->len += len;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_keyring_wrap(const ortcrypt_keyring *keyring, const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                                const uint8_t key[OC_BUNDLE_KEY_LEN], oc_buf *out, ortcrypt_error *err)
{
    oc_secret payload = {0};
    if (keyring->wrap == NULL && keyring->recipient_count == 0 && keyring->passphrase.len == 0) {
        ortcrypt_status none = oc_fail(err, ORTCRYPT_E_NO_KEY, "the keyring has nobody to encrypt for");
        oc_hint(err, "add a recipient or a passphrase");
        return none;
    }
    ortcrypt_status st = print_payload(keyring, bundle_id, key, &payload, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const oc_span text = OC_SPAN(payload.data, payload.len);
    if (keyring->wrap != NULL) {
        st = wrap_by_callback(keyring, text, out, err);
    } else {
        const oc_age_keys keys = {
            .recipients = (const uint8_t(*)[OC_AGE_KEY_LEN])keyring->recipients,
            .recipient_count = keyring->recipient_count,
            .passphrase = OC_SPAN(keyring->passphrase.data, keyring->passphrase.len),
        };
        st = oc_age_seal(&keys, text, out, err);
    }
    oc_secret_free(&payload);
    return st;
}

static ortcrypt_status unwrap_by_callback(const ortcrypt_keyring *keyring, oc_span key_file, const char *what, oc_secret *payload,
                                          ortcrypt_error *err)
{
    size_t len = 0;
    ortcrypt_status st = oc_secret_new(payload, PAYLOAD_MAX, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const int said = keyring->unwrap(keyring->unwrap_state, key_file.data, key_file.len, payload->data, PAYLOAD_MAX, &len);
    if (said != 0) {
        return oc_fail(err, ORTCRYPT_E_NO_KEY, "the application's unwrap callback does not open %s: it returned %d", what, said);
    }
    if (len > PAYLOAD_MAX) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the application's unwrap callback returned %zu bytes, more than the %u it was given",
                       len, PAYLOAD_MAX);
    }
    payload->len = len;
    return ORTCRYPT_OK;
}

/* age's word on the key file, in the words of a bundle. */
static ortcrypt_status explain(ortcrypt_status st, size_t given, const char *what, ortcrypt_error *err)
{
    if (st == ORTCRYPT_E_NO_KEY) {
        st = oc_fail(err, st, "no identity of the %zu given opens %s: a wrong key, or the file was altered", given, what);
    } else if (st == ORTCRYPT_E_LIMIT) {
        /* a work factor or stanza count that is not accepted: as with any header that this build does not take */
        st = oc_fail_in(ORTCRYPT_E_UNSUPPORTED, what, err);
    } else if (st == ORTCRYPT_E_UNSUPPORTED) {
        st = oc_fail_in(st, what, err);
        oc_hint(err, "open it with a program or callback that knows these types");
    } else if (st != ORTCRYPT_OK && st != ORTCRYPT_E_NO_MEMORY) {
        st = oc_fail_in(st, what, err);
    }
    return st;
}

static ortcrypt_status unwrap_natively(const ortcrypt_keyring *keyring, oc_span key_file, const char *what, oc_secret *payload,
                                       ortcrypt_error *err)
{
    const size_t count = keyring->identities.len / OC_AGE_KEY_LEN;
    const size_t given = count + (keyring->passphrase.len != 0 ? 1 : 0);
    if (given == 0) {
        ortcrypt_status st = oc_fail(err, ORTCRYPT_E_NO_KEY, "%s needs a key, and none was given", what);
        oc_hint(err, "give an identity or a passphrase");
        return st;
    }
    const oc_age_keys keys = {
        .identities = (void *)keyring->identities.data,
        .identity_count = count,
        .passphrase = OC_SPAN(keyring->passphrase.data, keyring->passphrase.len),
        .scrypt_log_n_max = keyring->scrypt_limit,
    };
    return explain(oc_age_open(&keys, key_file, payload, err), given, what, err);
}

ortcrypt_status oc_keyring_unwrap(const ortcrypt_keyring *keyring, oc_span key_file, const char *what,
                                  uint8_t bundle_id[OC_BUNDLE_ID_LEN], oc_secret *key, char **recipients, ortcrypt_error *err)
{
    oc_secret payload = {0};
    oc_secret found = {0};
    ortcrypt_status st = keyring->unwrap != NULL ? unwrap_by_callback(keyring, key_file, what, &payload, err)
                                                 : unwrap_natively(keyring, key_file, what, &payload, err);
    if (st == ORTCRYPT_OK) {
        st = oc_secret_new(&found, OC_BUNDLE_KEY_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_keyfile_parse(OC_SPAN(payload.data, payload.len), bundle_id, found.data, recipients, err);
        if (st != ORTCRYPT_OK) {
            st = oc_fail_in(st, what, err);
        }
    }
    oc_secret_free(&payload);
    if (st != ORTCRYPT_OK) {
        oc_secret_free(&found);
        return st;
    }
    *key = found;
    return ORTCRYPT_OK;
}
