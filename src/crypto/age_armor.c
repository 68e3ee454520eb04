/* crypto/age_armor.c: age's ASCII armor, strict PEM (RFC 7468, figure 3). Source: C2SP age specification, "ASCII armor". */
#include <string.h>

#include "crypto/age_header.h"

#define BEGIN_LINE "-----BEGIN AGE ENCRYPTED FILE-----"
#define END_LINE "-----END AGE ENCRYPTED FILE-----"
#define COLUMNS 64
#define LINE_LEN 48
#define BLANK_MAX 1024 /* bytes of white space taken before and after, each */

static size_t blank_len(oc_span span)
{
    size_t len = 0;
    while (len < span.len && (span.data[len] == ' ' || span.data[len] == '\t' || span.data[len] == '\r' || span.data[len] == '\n')) {
        len++;
    }
    return len;
}

/* The next line without LF or CRLF; the last one may lack both. */
static oc_span take_line(oc_span *cursor)
{
    const uint8_t *end = cursor->len == 0 ? NULL : memchr(cursor->data, '\n', cursor->len);
    size_t len = end == NULL ? cursor->len : (size_t)(end - cursor->data);
    size_t used = end == NULL ? len : len + 1;
    oc_span line = OC_SPAN(cursor->data, len);
    if (end != NULL && len != 0 && line.data[len - 1] == '\r') {
        line.len--;
    }
    *cursor = OC_SPAN(cursor->data + used, cursor->len - used);
    return line;
}

static bool is_line(oc_span line, const char *text)
{
    return line.len == strlen(text) && memcmp(line.data, text, line.len) == 0;
}

bool oc_age_is_armored(oc_span file)
{
    static const char start[] = "-----BEGIN AGE";
    size_t blank = blank_len(file);
    return file.len - blank >= sizeof(start) - 1 && memcmp(file.data + blank, start, sizeof(start) - 1) == 0;
}

static ortcrypt_status malformed(ortcrypt_error *err, const char *wrong)
{
    return oc_fail(err, ORTCRYPT_E_FORMAT, "the age armor is malformed: %s", wrong);
}

static ortcrypt_status take_body(oc_span *cursor, oc_buf *out, ortcrypt_error *err)
{
    bool ended = false; /* a line that is not full is the last */
    for (;;) {
        uint8_t bytes[LINE_LEN];
        size_t len = 0;
        if (cursor->len == 0) {
            return malformed(err, "there is no end line");
        }
        oc_span line = take_line(cursor);
        if (is_line(line, END_LINE)) {
            return ORTCRYPT_OK;
        }
        if (ended || line.len == 0 || line.len > COLUMNS ||
            !oc_base64_decode(bytes, &len, sizeof(bytes), (const char *)line.data, line.len, true)) {
            return malformed(err, "a line is not canonical base64 of 64 columns");
        }
        ended = len < LINE_LEN;
        ortcrypt_status st = oc_buf_append(out, bytes, len, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
}

ortcrypt_status oc_age_unarmor(oc_span file, oc_buf *out, ortcrypt_error *err)
{
    size_t len_before = out->len;
    oc_span cursor = file;
    /* whole blank lines only: a space before the first line's text is not white space around the armor */
    for (oc_span rest = cursor; rest.len != 0;) {
        oc_span line = take_line(&rest);
        if (blank_len(line) != line.len) {
            break;
        }
        cursor = rest;
    }
    if (file.len - cursor.len > BLANK_MAX) {
        return malformed(err, "too much white space before it");
    }
    if (!is_line(take_line(&cursor), BEGIN_LINE)) {
        return malformed(err, "the first line is not age's");
    }
    ortcrypt_status st = take_body(&cursor, out, err);
    if (st == ORTCRYPT_OK && (blank_len(cursor) != cursor.len || cursor.len > BLANK_MAX)) {
        st = malformed(err, "something follows its end");
    }
    if (st != ORTCRYPT_OK) {
        out->len = len_before;
    }
    return st;
}
