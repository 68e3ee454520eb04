/* crypto/age_header.c: strict parser of the age header: one text for each header, so nothing can be hidden in its spelling. */
#include "crypto/age_header.h"

#include <string.h>
#include <strings.h>

#define VERSION_LINE "age-encryption.org/v1"
#define STANZA_PREFIX "-> "
#define MAC_PREFIX "--- "
#define MAC_MARK_LEN 3 /* "---" is under the MAC, the space after it is not */
#define BODY_COLUMNS 64
#define BODY_LINE_LEN 48 /* bytes in a full line */
#define ARGUMENTS_MAX 3  /* of native stanzas, the type's name included; more are only counted */

/* Takes the next line without its LF; false when no LF is left. */
static bool take_line(oc_span *cursor, oc_span *line)
{
    const uint8_t *end = cursor->len == 0 ? NULL : memchr(cursor->data, '\n', cursor->len);
    if (end == NULL) {
        return false;
    }
    size_t len = (size_t)(end - cursor->data);
    *line = OC_SPAN(cursor->data, len);
    *cursor = OC_SPAN(cursor->data + len + 1, cursor->len - len - 1);
    return true;
}

static bool starts_with(oc_span span, const char *prefix)
{
    size_t len = strlen(prefix);
    return span.len >= len && memcmp(span.data, prefix, len) == 0;
}

static bool is_text(oc_span span, const char *text)
{
    return span.len == strlen(text) && starts_with(span, text);
}

static bool is_text_any_case(oc_span span, const char *text)
{
    return span.len == strlen(text) && strncasecmp((const char *)span.data, text, span.len) == 0;
}

static oc_age_type type_of(oc_span name)
{
    if (is_text(name, "X25519")) {
        return OC_AGE_X25519;
    }
    if (is_text(name, "scrypt")) {
        return OC_AGE_SCRYPT;
    }
    return is_text_any_case(name, "X25519") || is_text_any_case(name, "scrypt") ? OC_AGE_MANGLED : OC_AGE_FOREIGN;
}

/* Splits at single spaces. The first ARGUMENTS_MAX go to `arguments`. Returns their number, 0 when one is empty or not VCHAR. */
static size_t split_arguments(oc_span line, oc_span arguments[ARGUMENTS_MAX])
{
    size_t count = 0;
    size_t start = 0;
    for (size_t i = 0; i <= line.len; i++) {
        if (i < line.len && line.data[i] != ' ') {
            if (line.data[i] < 0x21 || line.data[i] > 0x7E) {
                return 0;
            }
        } else {
            if (i == start) {
                return 0;
            }
            if (count < ARGUMENTS_MAX) {
                arguments[count] = OC_SPAN(line.data + start, i - start);
            }
            count++;
            start = i + 1;
        }
    }
    return count;
}

static bool decode_exactly(uint8_t *out, size_t len, oc_span text)
{
    size_t got = 0;
    return oc_base64_decode(out, &got, len, (const char *)text.data, text.len, false) && got == len;
}

/* "[1-9][0-9]*". A number too large for the type becomes the largest: above every limit anyway. */
static bool parse_number(uint64_t *out, oc_span text)
{
    uint64_t value = 0;
    if (text.len == 0 || text.data[0] == '0') {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        if (!oc_mul_u64(value, 10, &value) || !oc_add_u64(value, (uint64_t)(text.data[i] - '0'), &value)) {
            value = UINT64_MAX;
        }
    }
    *out = value;
    return true;
}

/* Lines of 64 columns up to one that is shorter. Keeps the first bytes; *body_len counts all. */
static const char *parse_body(oc_span *cursor, uint8_t body[OC_AGE_BODY_LEN], size_t *body_len)
{
    uint8_t bytes[BODY_LINE_LEN];
    oc_span line;
    *body_len = 0;
    do {
        size_t len = 0;
        if (!take_line(cursor, &line)) {
            return "a stanza's body has no last line";
        }
        if (line.len > BODY_COLUMNS ||
            !oc_base64_decode(bytes, &len, sizeof(bytes), (const char *)line.data, line.len, false)) {
            return "a line of a stanza's body is not canonical base64 of at most 64 columns";
        }
        if (*body_len == 0 && len != 0) {
            memcpy(body, bytes, len < OC_AGE_BODY_LEN ? len : OC_AGE_BODY_LEN);
        }
        *body_len += len;
    } while (line.len == BODY_COLUMNS);
    return NULL;
}

/* What is wrong with the stanza at the cursor, or NULL. */
static const char *parse_stanza(oc_span *cursor, oc_age_stanza *out)
{
    oc_span line;
    oc_span arguments[ARGUMENTS_MAX];
    size_t body_len = 0;
    memset(out, 0, sizeof(*out));
    if (!take_line(cursor, &line) || !starts_with(line, STANZA_PREFIX)) {
        return "neither a stanza nor the MAC is where one must be";
    }
    size_t count = split_arguments(OC_SPAN(line.data + 3, line.len - 3), arguments);
    if (count == 0) {
        return "a stanza's arguments are not words with one space between them";
    }
    const char *wrong = parse_body(cursor, out->body, &body_len);
    if (wrong != NULL) {
        return wrong;
    }
    out->name = arguments[0];
    out->type = type_of(arguments[0]);
    if (out->type == OC_AGE_X25519) {
        if (count != 2 || !decode_exactly(out->share, sizeof(out->share), arguments[1])) {
            return "an X25519 stanza's share is not one of 32 bytes";
        }
    } else if (out->type == OC_AGE_SCRYPT) {
        if (count != 3 || !decode_exactly(out->salt, sizeof(out->salt), arguments[1])) {
            return "a scrypt stanza's salt is not one of 16 bytes";
        }
        if (!parse_number(&out->log_n, arguments[2])) {
            return "a scrypt stanza's work factor is not a decimal number";
        }
    } else {
        return NULL;
    }
    /* checked before anything is decrypted, as the specification demands (partitioning oracles) */
    return body_len == OC_AGE_BODY_LEN ? NULL : "a stanza does not hold a file key of 16 bytes";
}

static ortcrypt_status malformed(ortcrypt_error *err, oc_span file, oc_span at, const char *wrong)
{
    ortcrypt_status st = oc_fail(err, ORTCRYPT_E_FORMAT, "the age header is malformed: %s", wrong);
    oc_at(err, (uint64_t)(at.data - file.data), NULL);
    return st;
}

/* Walks over all stanzas; leaves the cursor at the MAC line. */
static ortcrypt_status walk_stanzas(oc_age_header *header, oc_span file, oc_span *cursor, ortcrypt_error *err)
{
    oc_span start = *cursor;
    while (!starts_with(*cursor, "---")) {
        oc_age_stanza stanza;
        oc_span at = *cursor;
        if (header->stanza_count == OC_AGE_STANZA_MAX) {
            return oc_fail(err, ORTCRYPT_E_LIMIT, "the age header has more than %u stanzas", OC_AGE_STANZA_MAX);
        }
        const char *wrong = parse_stanza(cursor, &stanza);
        if (wrong != NULL) {
            return malformed(err, file, at, wrong);
        }
        header->stanza_count++;
        header->count[stanza.type]++;
    }
    if (header->stanza_count == 0) {
        return malformed(err, file, start, "there is no stanza");
    }
    if (header->count[OC_AGE_SCRYPT] != 0 && header->stanza_count != 1) {
        return malformed(err, file, start, "a passphrase does not stand alone");
    }
    header->stanzas = OC_SPAN(start.data, (size_t)(cursor->data - start.data));
    return ORTCRYPT_OK;
}

ortcrypt_status oc_age_header_parse(oc_age_header *out, oc_span file, ortcrypt_error *err)
{
    oc_age_header header = {.stanza_count = 0};
    oc_span cursor = file;
    oc_span line;
    if (!take_line(&cursor, &line) || !is_text(line, VERSION_LINE)) {
        bool other = starts_with(file, "age-encryption.org/");
        return oc_fail(err, ORTCRYPT_E_FORMAT, other ? "an age file of another version than v1" : "not an age file");
    }
    ortcrypt_status st = walk_stanzas(&header, file, &cursor, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    oc_span at = cursor;
    header.maced = OC_SPAN(file.data, (size_t)(cursor.data - file.data) + MAC_MARK_LEN);
    if (!take_line(&cursor, &line) || !starts_with(line, MAC_PREFIX) ||
        !decode_exactly(header.mac, sizeof(header.mac), OC_SPAN(line.data + 4, line.len - 4))) {
        return malformed(err, file, at, "the MAC is not one of 32 bytes");
    }
    if (cursor.len < OC_AGE_NONCE_LEN) {
        return malformed(err, file, cursor, "the file was cut before the payload");
    }
    header.rest = cursor;
    *out = header;
    return ORTCRYPT_OK;
}

bool oc_age_stanza_next(oc_span *cursor, oc_age_stanza *out)
{
    return cursor->len != 0 && parse_stanza(cursor, out) == NULL;
}

ortcrypt_status oc_age_stanza_types(oc_span file, oc_buf *out, ortcrypt_error *err)
{
    oc_age_header header;
    oc_age_stanza stanza;
    oc_buf binary = OC_BUF(OC_AGE_FILE_MAX);
    size_t len_before = out->len;
    ortcrypt_status st = ORTCRYPT_OK;
    if (file.len > OC_AGE_FILE_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%zu bytes of age file are above the limit of %u", file.len, OC_AGE_FILE_MAX);
    }
    if (oc_age_is_armored(file)) {
        st = oc_age_unarmor(file, &binary, err);
        file = OC_SPAN(binary.data, binary.len);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_age_header_parse(&header, file, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_span cursor = header.stanzas;
        while (st == ORTCRYPT_OK && oc_age_stanza_next(&cursor, &stanza)) {
            st = oc_buf_append(out, stanza.name.data, stanza.name.len, err);
            if (st == ORTCRYPT_OK) {
                st = oc_buf_append(out, cursor.len != 0 ? " " : "", 1, err); /* the last one is followed by the NUL */
            }
        }
    }
    if (st == ORTCRYPT_OK) {
        out->len--; /* the NUL is there but does not count */
    } else {
        out->len = len_before;
    }
    oc_buf_free(&binary);
    return st;
}
