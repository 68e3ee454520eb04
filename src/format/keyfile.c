/* format/keyfile.c: the key file's payload, compared byte for byte so that no parser leaves copies of the key. */
#include "format/keyfile.h"

#include <stdlib.h>
#include <string.h>

static const char head_text[] = "{\"format\":\"ortcrypt/1\",\"bundle\":\"";
static const char key_text[] = "\",\"key\":\"";
static const char tail_text[] = "\"}\n";
static const char recipient_text[] = "recipient ";

enum {
    HEAD_LEN = sizeof head_text - 1,
    ID_LEN = 2 * OC_BUNDLE_ID_LEN,
    KEY_LEN = 44, /* base64 of 32 bytes */
    KEY_OFF = HEAD_LEN + ID_LEN + sizeof key_text - 1,
    RECIPIENT_LEN = sizeof recipient_text - 1
};

_Static_assert(KEY_OFF + KEY_LEN + sizeof tail_text - 1 == OC_KEYFILE_LINE_LEN, "the line has the length the format says");

static bool is_recipient(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    return oc_name_valid(text, len);
}

ortcrypt_status oc_keyfile_print(oc_secret *out, const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                                 const uint8_t key[OC_BUNDLE_KEY_LEN], const char *const *recipients,
                                 size_t recipient_count, ortcrypt_error *err)
{
    oc_secret text = {0};
    size_t len = OC_KEYFILE_LINE_LEN;

    for (size_t i = 0; i < recipient_count; i++) {
        const size_t one = strlen(recipients[i]);
        if (!is_recipient(recipients[i], one)) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "recipient %zu is no text of one line and at most %d bytes", i + 1,
                           OC_NAME_MAX);
        }
        len += RECIPIENT_LEN + one + 1;
    }
    /* one byte more: the encoders add a NUL */
    ortcrypt_status st = oc_secret_new(&text, len + 1, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    char *at = (char *)text.data;
    memcpy(at, head_text, HEAD_LEN);
    oc_hex_encode(at + HEAD_LEN, bundle_id, OC_BUNDLE_ID_LEN);
    memcpy(at + HEAD_LEN + ID_LEN, key_text, sizeof key_text - 1);
    (void)oc_base64_encode(at + KEY_OFF, key, OC_BUNDLE_KEY_LEN, true);
    memcpy(at + KEY_OFF + KEY_LEN, tail_text, sizeof tail_text - 1);
    at += OC_KEYFILE_LINE_LEN;
    for (size_t i = 0; i < recipient_count; i++) {
        const size_t one = strlen(recipients[i]);
        memcpy(at, recipient_text, RECIPIENT_LEN);
        memcpy(at + RECIPIENT_LEN, recipients[i], one);
        at += RECIPIENT_LEN + one;
        *at++ = '\n';
    }
    text.len = len;
    *out = text;
    return ORTCRYPT_OK;
}

static bool equals(oc_span payload, size_t at, const char *text, size_t len)
{
    return payload.len >= at && payload.len - at >= len && memcmp(payload.data + at, text, len) == 0;
}

/* The lines after the first one, without their first word. `rest` ends with a newline or is empty. */
static ortcrypt_status parse_recipients(oc_span rest, char **out, ortcrypt_error *err)
{
    char *list = malloc(rest.len + 1);
    char *end = list;
    size_t at = 0;

    if (list == NULL) {
        return oc_fail_memory(err, rest.len + 1, "a list of recipients");
    }
    while (at < rest.len) {
        const char *line = (const char *)rest.data + at;
        const char *newline = memchr(line, '\n', rest.len - at);
        if (newline == NULL || !equals(rest, at, recipient_text, RECIPIENT_LEN) ||
            !is_recipient(line + RECIPIENT_LEN, (size_t)(newline - line) - RECIPIENT_LEN)) {
            free(list);
            return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the key file's payload has a line that names no recipient");
        }
        const size_t len = (size_t)(newline - line) - RECIPIENT_LEN + 1;
        memcpy(end, line + RECIPIENT_LEN, len);
        end += len;
        at += RECIPIENT_LEN + len;
    }
    *end = '\0';
    *out = list;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_keyfile_parse(oc_span payload, uint8_t bundle_id[OC_BUNDLE_ID_LEN], uint8_t key[OC_BUNDLE_KEY_LEN],
                                 char **recipients, ortcrypt_error *err)
{
    const char *text = (const char *)payload.data;
    uint8_t id[OC_BUNDLE_ID_LEN];
    uint8_t key_bytes[OC_BUNDLE_KEY_LEN];
    size_t key_len = 0;
    char *list = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    if (payload.len < OC_KEYFILE_LINE_LEN || !equals(payload, 0, head_text, HEAD_LEN) ||
        !equals(payload, HEAD_LEN + ID_LEN, key_text, sizeof key_text - 1) ||
        !equals(payload, KEY_OFF + KEY_LEN, tail_text, sizeof tail_text - 1)) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the key file's payload does not begin with an ortcrypt/1 line");
    }
    if (!oc_hex_decode(id, sizeof id, text + HEAD_LEN, ID_LEN)) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the key file's bundle id is not 32 lower hex digits");
    }
    st = parse_recipients(OC_SPAN(payload.data + OC_KEYFILE_LINE_LEN, payload.len - OC_KEYFILE_LINE_LEN), &list, err);
    if (st == ORTCRYPT_OK &&
        (!oc_base64_decode(key_bytes, &key_len, sizeof key_bytes, text + KEY_OFF, KEY_LEN, true) ||
         key_len != sizeof key_bytes)) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the key file's key is not 32 bytes in canonical base64");
    }
    if (st == ORTCRYPT_OK) {
        memcpy(bundle_id, id, sizeof id);
        memcpy(key, key_bytes, sizeof key_bytes);
        if (recipients != NULL) {
            *recipients = list;
            list = NULL;
        }
    }
    oc_wipe(key_bytes, sizeof key_bytes);
    free(list);
    return st;
}

ortcrypt_status oc_format_check(oc_span content, const char *path, ortcrypt_error *err)
{
    static const char stem[] = "ortcrypt/";
    size_t at = sizeof stem - 1;

    if (content.len == sizeof OC_FORMAT_TEXT - 1 && equals(content, 0, OC_FORMAT_TEXT, content.len)) {
        return ORTCRYPT_OK;
    }
    if (equals(content, 0, stem, at)) {
        const size_t first = at;
        while (at < content.len && at - first < 9 && content.data[at] >= '0' && content.data[at] <= '9') {
            at++;
        }
        if (at > first && content.data[first] != '0' && at + 1 == content.len && content.data[at] == '\n' &&
            !(at - first == 1 && content.data[first] == '1')) {
            ortcrypt_status st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s says format ortcrypt/%.*s, and this version reads ortcrypt/1",
                                         path, (int)(at - first), (const char *)content.data + first);
            oc_hint(err, "use a newer ortcrypt");
            return st;
        }
    }
    return oc_fail(err, ORTCRYPT_E_FORMAT, "%s does not say \"ortcrypt/1\": this is no bundle", path);
}
