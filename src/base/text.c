/*
 * base/text.c: hex, base64, UTF-8 and names. Pure functions over the caller's memory.
 * Digits are mapped without tables and without branches on their value: keys pass here as text.
 */
#include "base/bytes.h"

#include <string.h>

/* All ones when lo <= c <= hi, else 0. The arguments are below 256. */
static unsigned in_range(unsigned c, unsigned lo, unsigned hi)
{
    return 0u - ((~(c - lo) & ~(hi - c)) >> 31);
}

static char hex_digit(unsigned value)
{
    return (char)('0' + value + (in_range(value, 10, 15) & ('a' - '0' - 10)));
}

/* 0 to 15, or a number above 255. */
static unsigned hex_value(unsigned c)
{
    unsigned digit = in_range(c, '0', '9');
    unsigned letter = in_range(c, 'a', 'f');
    return (digit & (c - '0')) | (letter & (c - 'a' + 10)) | (~(digit | letter) & 256);
}

void oc_hex_encode(char *hex, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        hex[2 * i] = hex_digit(data[i] >> 4);
        hex[2 * i + 1] = hex_digit(data[i] & 15);
    }
    hex[2 * len] = '\0';
}

bool oc_hex_decode(uint8_t *data, size_t len, const char *hex, size_t hex_len)
{
    if (hex_len % 2 != 0 || hex_len / 2 != len) {
        return false;
    }
    unsigned bad = 0;
    for (size_t i = 0; i < hex_len; i++) {
        bad |= hex_value((unsigned char)hex[i]);
    }
    if (bad > 255) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(hex_value((unsigned char)hex[2 * i]) << 4 | hex_value((unsigned char)hex[2 * i + 1]));
    }
    return true;
}

static char base64_digit(unsigned value)
{
    return (char)((in_range(value, 0, 25) & (value + 'A')) | (in_range(value, 26, 51) & (value - 26 + 'a')) |
                  (in_range(value, 52, 61) & (value - 52 + '0')) | (in_range(value, 62, 62) & '+') |
                  (in_range(value, 63, 63) & '/'));
}

/* 0 to 63, or a number above 255. */
static unsigned base64_value(unsigned c)
{
    unsigned upper = in_range(c, 'A', 'Z');
    unsigned lower = in_range(c, 'a', 'z');
    unsigned digit = in_range(c, '0', '9');
    unsigned plus = in_range(c, '+', '+');
    unsigned slash = in_range(c, '/', '/');
    return (upper & (c - 'A')) | (lower & (c - 'a' + 26)) | (digit & (c - '0' + 52)) | (plus & 62) | (slash & 63) |
           (~(upper | lower | digit | plus | slash) & 256);
}

size_t oc_base64_encode(char *text, const uint8_t *data, size_t len, bool pad)
{
    size_t out = 0;
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        unsigned group = (unsigned)data[i] << 16 | (have > 1 ? (unsigned)data[i + 1] << 8 : 0) | (have > 2 ? data[i + 2] : 0);
        for (size_t k = 0; k <= have; k++) {
            text[out++] = base64_digit(group >> (18 - 6 * k) & 63);
        }
        for (size_t k = have; pad && k < 3; k++) {
            text[out++] = '=';
        }
    }
    text[out] = '\0';
    return out;
}

bool oc_base64_decode(uint8_t *data, size_t *len, size_t max, const char *text, size_t text_len, bool pad)
{
    if (pad) {
        if (text_len % 4 != 0) {
            return false;
        }
        for (int k = 0; k < 2 && text_len != 0 && text[text_len - 1] == '='; k++) {
            text_len--;
        }
    }
    size_t rest = text_len % 4; /* digits of a last group that is not whole */
    size_t out_len = text_len / 4 * 3 + (rest == 0 ? 0 : rest - 1);
    if (rest == 1 || out_len > max) {
        return false;
    }
    unsigned bad = 0;
    size_t out = 0;
    for (size_t i = 0; i < text_len; i += 4) {
        size_t have = text_len - i < 4 ? text_len - i : 4;
        unsigned group = 0;
        for (size_t k = 0; k < 4; k++) {
            unsigned value = k < have ? base64_value((unsigned char)text[i + k]) : 0;
            bad |= value & 256;
            group = group << 6 | (value & 63);
        }
        for (size_t k = 0; k + 1 < have; k++) {
            data[out++] = (uint8_t)(group >> (16 - 8 * k));
        }
        /* bits that belong to no byte must be zero, else one value would have several texts */
        bad |= have == 2 ? group & 0xFFFF : have == 3 ? group & 0xFF : 0;
    }
    if (bad != 0) {
        oc_wipe(data, out);
        return false;
    }
    *len = out_len;
    return true;
}

/* Length of the well-formed character at text[0] (Unicode, table 3-7), or 0. */
static size_t utf8_char_len(const unsigned char *text, size_t len)
{
    unsigned char c = text[0];
    if (c < 0x80) {
        return 1;
    }
    size_t need = c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
    if (need == 0 || len < need) {
        return 0;
    }
    unsigned char lowest = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;  /* below: overlong */
    unsigned char highest = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF; /* above: surrogates, or past U+10FFFF */
    if (text[1] < lowest || text[1] > highest) {
        return 0;
    }
    for (size_t i = 2; i < need; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return need;
}

bool oc_utf8_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = text[i] == '\0' ? 0 : utf8_char_len((const unsigned char *)text + i, len - i);
        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

bool oc_name_valid(const char *name, size_t len)
{
    return len >= 1 && len <= OC_NAME_MAX && oc_utf8_valid(name, len);
}
