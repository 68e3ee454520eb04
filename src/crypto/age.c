/*
 * crypto/age.c: whole age v1 files. In: keys and a payload, or a file, all borrowed. Out: a file in the caller's buffer, or
 * the payload in new secret memory. Every secret in between is in one oc_secret (oc_age_work) that is wiped on every path.
 */
#include "crypto/age.h"

#include <stdio.h>
#include <string.h>

#include "crypto/age_wrap.h"
#include "crypto/bech32.h"
#include "crypto/random.h"

#define RECIPIENT_PREFIX "age"
#define IDENTITY_PREFIX "AGE-SECRET-KEY-"
#define BASE64_32 43 /* digits of 32 bytes without padding */

ortcrypt_status oc_age_generate(uint8_t secret[OC_AGE_KEY_LEN], uint8_t recipient[OC_AGE_KEY_LEN], ortcrypt_error *err)
{
    ortcrypt_status st = oc_random(secret, OC_AGE_KEY_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = oc_age_recipient_of(recipient, secret, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_wipe(secret, OC_AGE_KEY_LEN);
    }
    return st;
}

void oc_age_recipient_text(char text[63], const uint8_t recipient[OC_AGE_KEY_LEN])
{
    oc_bech32_encode_key(text, RECIPIENT_PREFIX, recipient);
}

void oc_age_identity_text(char text[75], const uint8_t secret[OC_AGE_KEY_LEN])
{
    oc_bech32_encode_key(text, IDENTITY_PREFIX, secret);
}

bool oc_age_recipient_parse(uint8_t recipient[OC_AGE_KEY_LEN], const char *text, size_t len)
{
    return oc_bech32_decode_key(recipient, RECIPIENT_PREFIX, text, len);
}

bool oc_age_identity_parse(uint8_t secret[OC_AGE_KEY_LEN], const char *text, size_t len)
{
    return oc_bech32_decode_key(secret, IDENTITY_PREFIX, text, len);
}

static bool starts_with(const char *text, size_t len, const char *prefix)
{
    return len >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

bool oc_age_recipient_foreign(const char *text, size_t len)
{
    uint8_t key[OC_AGE_KEY_LEN];
    if (starts_with(text, len, "ssh-ed25519 ") || starts_with(text, len, "ssh-rsa ")) {
        return true;
    }
    return starts_with(text, len, "age1") && oc_bech32_valid(text, len) && !oc_age_recipient_parse(key, text, len);
}

bool oc_age_identity_foreign(const char *text, size_t len)
{
    uint8_t key[OC_AGE_KEY_LEN];
    bool native = oc_age_identity_parse(key, text, len);
    oc_wipe(key, sizeof(key));
    return !native && starts_with(text, len, "AGE-") && oc_bech32_valid(text, len);
}

static ortcrypt_status append_base64(oc_buf *out, const uint8_t *data, size_t len, const char *after, ortcrypt_error *err)
{
    char text[BASE64_32 + 1];
    size_t text_len = oc_base64_encode(text, data, len, false);
    ortcrypt_status st = oc_buf_append(out, text, text_len, err);
    return st == ORTCRYPT_OK ? oc_buf_append_str(out, after, err) : st;
}

static ortcrypt_status append_x25519(oc_age_work *work, const uint8_t *recipient, oc_buf *out, ortcrypt_error *err)
{
    uint8_t share[OC_AGE_KEY_LEN];
    uint8_t body[OC_AGE_BODY_LEN];
    ortcrypt_status st = oc_age_x25519_seal(work, recipient, share, body, err);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append_str(out, "-> X25519 ", err);
    }
    if (st == ORTCRYPT_OK) {
        st = append_base64(out, share, sizeof(share), "\n", err);
    }
    return st == ORTCRYPT_OK ? append_base64(out, body, sizeof(body), "\n", err) : st;
}

static ortcrypt_status append_scrypt(oc_age_work *work, const oc_age_keys *keys, oc_buf *out, ortcrypt_error *err)
{
    uint8_t salt[OC_AGE_SCRYPT_SALT_LEN];
    uint8_t body[OC_AGE_BODY_LEN];
    char factor[16];
    unsigned log_n = keys->scrypt_log_n == 0 ? OC_AGE_SCRYPT_LOG_N : keys->scrypt_log_n;
    if (log_n > OC_AGE_LOG_N_MAX) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a scrypt work factor of %u is above the limit of %u", log_n, OC_AGE_LOG_N_MAX);
    }
    snprintf(factor, sizeof(factor), " %u\n", log_n);
    ortcrypt_status st = oc_age_scrypt_seal(work, keys->passphrase, log_n, salt, body, err);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append_str(out, "-> scrypt ", err);
    }
    if (st == ORTCRYPT_OK) {
        st = append_base64(out, salt, sizeof(salt), factor, err);
    }
    return st == ORTCRYPT_OK ? append_base64(out, body, sizeof(body), "\n", err) : st;
}

/* `start` is where the file begins in *out. */
static ortcrypt_status append_mac(oc_age_work *work, oc_buf *out, size_t start, ortcrypt_error *err)
{
    uint8_t mac[OC_AGE_MAC_LEN];
    ortcrypt_status st = oc_buf_append_str(out, "---", err);
    if (st == ORTCRYPT_OK) {
        st = oc_age_mac(work, OC_SPAN(out->data + start, out->len - start), mac, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append_str(out, " ", err);
    }
    return st == ORTCRYPT_OK ? append_base64(out, mac, sizeof(mac), "\n", err) : st;
}

static ortcrypt_status seal_with(oc_age_work *work, const oc_age_keys *keys, oc_span payload, oc_buf *out,
                                 ortcrypt_error *err)
{
    size_t start = out->len;
    size_t file_max = keys->file_max == 0 ? OC_AGE_FILE_MAX : keys->file_max;
    ortcrypt_status st = oc_random(work->file_key, sizeof(work->file_key), err);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append_str(out, "age-encryption.org/v1\n", err);
    }
    if (st == ORTCRYPT_OK && keys->passphrase.len != 0) {
        st = append_scrypt(work, keys, out, err);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < keys->recipient_count; i++) {
        st = append_x25519(work, keys->recipients[i], out, err);
    }
    if (st == ORTCRYPT_OK) {
        st = append_mac(work, out, start, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_age_payload_seal(work, payload, out, err);
    }
    if (st == ORTCRYPT_OK && out->len - start > file_max) {
        st = oc_fail(err, ORTCRYPT_E_LIMIT, "an age file of %zu bytes is above the limit of %zu", out->len - start, file_max);
    }
    if (st != ORTCRYPT_OK) {
        out->len = start;
    }
    return st;
}

ortcrypt_status oc_age_seal(const oc_age_keys *keys, oc_span payload, oc_buf *out, ortcrypt_error *err)
{
    oc_secret memory;
    if ((keys->passphrase.len != 0) == (keys->recipient_count != 0)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, keys->recipient_count != 0
                                                    ? "a passphrase excludes every other recipient"
                                                    : "there is neither a recipient nor a passphrase");
    }
    if (keys->recipient_count > OC_AGE_STANZA_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%zu recipients are above the limit of %u", keys->recipient_count,
                       OC_AGE_STANZA_MAX);
    }
    ortcrypt_status st = oc_secret_new(&memory, sizeof(oc_age_work), err);
    if (st == ORTCRYPT_OK) {
        st = seal_with((oc_age_work *)(void *)memory.data, keys, payload, out, err);
    }
    oc_secret_free(&memory);
    return st;
}

static ortcrypt_status try_passphrase(oc_age_work *work, const oc_age_keys *keys, const oc_age_header *header, bool *match,
                                      ortcrypt_error *err)
{
    oc_age_stanza stanza;
    oc_span cursor = header->stanzas;
    unsigned limit = keys->scrypt_log_n_max == 0 ? OC_AGE_SCRYPT_LOG_N : keys->scrypt_log_n_max;
    limit = limit > OC_AGE_LOG_N_MAX ? OC_AGE_LOG_N_MAX : limit;
    if (!oc_age_stanza_next(&cursor, &stanza)) { /* it stands alone */
        return ORTCRYPT_OK;
    }
    if (stanza.log_n > limit) {
        ortcrypt_status st = oc_fail(err, ORTCRYPT_E_LIMIT, "a scrypt work factor of %llu is above the limit of %u",
                                     (unsigned long long)stanza.log_n, limit);
        oc_hint(err, "each step doubles time and memory; raise the limit only for a file that you trust");
        return st;
    }
    return oc_age_scrypt_open(work, keys->passphrase, &stanza, match, err);
}

static ortcrypt_status try_identities(oc_age_work *work, const oc_age_keys *keys, const oc_age_header *header, bool *match,
                                      ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    for (size_t i = 0; st == ORTCRYPT_OK && !*match && i < keys->identity_count; i++) {
        uint8_t recipient[OC_AGE_KEY_LEN];
        oc_age_stanza stanza;
        oc_span cursor = header->stanzas;
        st = oc_age_recipient_of(recipient, keys->identities[i], err);
        while (st == ORTCRYPT_OK && !*match && oc_age_stanza_next(&cursor, &stanza)) {
            if (stanza.type == OC_AGE_X25519) {
                st = oc_age_x25519_open(work, keys->identities[i], recipient, &stanza, match, err);
            }
        }
    }
    return st;
}

static ortcrypt_status no_key(const oc_age_keys *keys, const oc_age_header *header, ortcrypt_error *err)
{
    if (header->count[OC_AGE_FOREIGN] == header->stanza_count) {
        oc_age_stanza stanza = {.name = OC_SPAN_STR("?")};
        oc_span cursor = header->stanzas;
        (void)oc_age_stanza_next(&cursor, &stanza);
        int name_len = stanza.name.len > 64 ? 64 : (int)stanza.name.len;
        ortcrypt_status st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the age file has only recipients of other types: %.*s",
                                     name_len, (const char *)stanza.name.data);
        oc_hint(err, "an identity command (an installed age with its plugins, for one) can open it");
        return st;
    }
    if (header->count[OC_AGE_SCRYPT] != 0) {
        return oc_fail(err, ORTCRYPT_E_NO_KEY, keys->passphrase.len == 0
                                                   ? "the age file opens with a passphrase, and none was given"
                                                   : "the passphrase does not open the age file: it is the wrong one, or the "
                                                     "file was altered");
    }
    if (keys->identity_count == 0) {
        return oc_fail(err, ORTCRYPT_E_NO_KEY, "the age file opens with an identity, and none was given");
    }
    return oc_fail(err, ORTCRYPT_E_NO_KEY, "no identity given opens the age file: it was made for others, or it was altered");
}

static ortcrypt_status open_with(oc_age_work *work, const oc_age_keys *keys, oc_span file, oc_secret *payload,
                                 ortcrypt_error *err)
{
    oc_age_header header;
    uint8_t mac[OC_AGE_MAC_LEN];
    bool match = false;
    ortcrypt_status st = oc_age_header_parse(&header, file, err);
    if (st == ORTCRYPT_OK && header.count[OC_AGE_SCRYPT] != 0 && keys->passphrase.len != 0) {
        st = try_passphrase(work, keys, &header, &match, err);
    }
    if (st == ORTCRYPT_OK && header.count[OC_AGE_X25519] != 0) {
        st = try_identities(work, keys, &header, &match, err);
    }
    if (st == ORTCRYPT_OK && !match) {
        st = no_key(keys, &header, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_age_mac(work, header.maced, mac, err);
    }
    if (st == ORTCRYPT_OK && !oc_equal(mac, header.mac, sizeof(mac))) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the age file's header was altered");
        oc_at(err, (uint64_t)header.maced.len, NULL);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_age_payload_open(work, header.rest, payload, err);
    }
    return st;
}

ortcrypt_status oc_age_open(const oc_age_keys *keys, oc_span file, oc_secret *payload, ortcrypt_error *err)
{
    oc_secret memory = {NULL, 0, 0};
    size_t file_max = keys->file_max == 0 ? OC_AGE_FILE_MAX : keys->file_max;
    oc_buf binary = OC_BUF(file_max);
    ortcrypt_status st = ORTCRYPT_OK;
    *payload = (oc_secret){NULL, 0, 0};
    if (file.len > file_max) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "an age file of %zu bytes is above the limit of %zu", file.len, file_max);
    }
    if (oc_age_is_armored(file)) {
        st = oc_age_unarmor(file, &binary, err);
        file = OC_SPAN(binary.data, binary.len);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_secret_new(&memory, sizeof(oc_age_work), err);
    }
    if (st == ORTCRYPT_OK) {
        st = open_with((oc_age_work *)(void *)memory.data, keys, file, payload, err);
    }
    oc_secret_free(&memory);
    oc_buf_free(&binary);
    return st;
}
