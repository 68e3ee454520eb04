/* cli/error.c: filling an ortcrypt_error, and text that is safe to show. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Bytes of the UTF-8 sequence at `text` (1 to 4), or 0 when it is none. Source: Unicode, table 3-7. */
static size_t utf8_sequence(const unsigned char *text)
{
    if (text[0] < 0x80) {
        return 1;
    }
    if (text[0] < 0xc2 || text[0] > 0xf4) {
        return 0;
    }
    const size_t len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0; /* also at the final NUL */
        }
    }
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf0 && text[1] < 0x90) ||
        (text[0] == 0xf4 && text[1] > 0x8f)) {
        return 0;
    }
    return len;
}

/*
 * C0, DEL, and C1 (U+0080 to U+009F, which some terminals obey); marks that reorder or break a line (U+200E, U+200F, U+2028 to
 * U+202E, U+2066 to U+2069): a name must not make a line read as another.
 */
static bool is_control(const unsigned char *text, size_t len)
{
    if (len == 3 && text[0] == 0xe2) {
        return (text[1] == 0x80 && (text[2] == 0x8e || text[2] == 0x8f || (text[2] >= 0xa8 && text[2] <= 0xae))) ||
               (text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9);
    }
    return (len == 1 && (text[0] < 0x20 || text[0] == 0x7f)) || (len == 2 && text[0] == 0xc2 && text[1] < 0xa0);
}

void cli_text_clean(char *out, size_t out_size, const char *text)
{
    const unsigned char *from = (const unsigned char *)text;
    size_t used = 0;
    while (*from != 0) {
        const size_t len = utf8_sequence(from);
        const bool bad = len == 0 || is_control(from, len);
        const size_t room = bad ? 1 : len;
        if (used + room >= out_size) {
            break;
        }
        if (bad) {
            out[used] = '?';
        } else {
            memcpy(out + used, from, len);
        }
        used += room;
        from += len == 0 ? 1 : len;
    }
    out[used] = 0;
}

static void fill(ortcrypt_error *err, ortcrypt_status status, const char *format, va_list list, const char *tail)
{
    char raw[sizeof err->message];
    const int len = vsnprintf(raw, sizeof raw, format, list);
    if (len < 0) {
        raw[0] = 0;
    }
    if (tail != NULL && len >= 0 && (size_t)len < sizeof raw) {
        (void)snprintf(raw + len, sizeof raw - (size_t)len, ": %s", tail);
    }
    *err = (ortcrypt_error)ORTCRYPT_ERROR_INIT;
    err->status = status;
    cli_text_clean(err->message, sizeof err->message, raw);
}

ortcrypt_status cli_fail(ortcrypt_error *err, ortcrypt_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fill(err, status, format, list, NULL);
    va_end(list);
    return status;
}

ortcrypt_status cli_fail_errno(ortcrypt_error *err, ortcrypt_status status, int sys_errno, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fill(err, status, format, list, strerror(sys_errno));
    va_end(list);
    err->sys_errno = sys_errno;
    return status;
}

ortcrypt_status cli_fail_memory(ortcrypt_error *err)
{
    return cli_fail(err, ORTCRYPT_E_NO_MEMORY, "memory ran out");
}

void cli_hint(ortcrypt_error *err, const char *format, ...)
{
    char raw[sizeof err->hint];
    va_list list;
    va_start(list, format);
    if (vsnprintf(raw, sizeof raw, format, list) < 0) {
        raw[0] = 0;
    }
    va_end(list);
    cli_text_clean(err->hint, sizeof err->hint, raw);
}
