/* crypto/bech32.c. Source: BIP 173. */
#include "crypto/bech32.h"

#include <string.h>

#define KEY_LEN 32

static const char digits[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static uint32_t polymod(uint32_t sum, unsigned value)
{
    static const uint32_t generator[] = {0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3};
    uint32_t top = sum >> 25;
    sum = (sum & 0x1FFFFFF) << 5 ^ value;
    for (int i = 0; i < 5; i++) {
        sum ^= (top >> i & 1) != 0 ? generator[i] : 0;
    }
    return sum;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static char to_lower(char c)
{
    return is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* The checksum is always over lower case. */
static uint32_t prefix_sum(const char *prefix, size_t len)
{
    uint32_t sum = 1;
    for (size_t i = 0; i < len; i++) {
        sum = polymod(sum, (unsigned char)to_lower(prefix[i]) >> 5);
    }
    sum = polymod(sum, 0);
    for (size_t i = 0; i < len; i++) {
        sum = polymod(sum, (unsigned char)to_lower(prefix[i]) & 31);
    }
    return sum;
}

/* 0 to 31, or -1. */
static int digit_value(char c)
{
    const char *at = c == '\0' ? NULL : strchr(digits, to_lower(c));
    return at == NULL ? -1 : (int)(at - digits);
}

void oc_bech32_encode_key(char *text, const char *prefix, const uint8_t key[32])
{
    size_t len = strlen(prefix);
    uint32_t sum = prefix_sum(prefix, len);
    bool upper = is_upper(prefix[0]);
    memcpy(text, prefix, len);
    text[len++] = '1';
    for (size_t i = 0; i < OC_BECH32_KEY_CHARS + OC_BECH32_SUM_CHARS; i++) {
        unsigned value = 0;
        if (i < OC_BECH32_KEY_CHARS) {
            size_t bit = 5 * i;
            unsigned pair = (unsigned)key[bit / 8] << 8 | (bit / 8 + 1 < KEY_LEN ? key[bit / 8 + 1] : 0);
            value = pair >> (11 - bit % 8) & 31;
            sum = polymod(sum, value);
        } else {
            for (int k = 0; i == OC_BECH32_KEY_CHARS && k < OC_BECH32_SUM_CHARS; k++) {
                sum = polymod(sum, 0);
            }
            sum ^= i == OC_BECH32_KEY_CHARS ? 1 : 0;
            value = sum >> (5 * (OC_BECH32_KEY_CHARS + OC_BECH32_SUM_CHARS - 1 - i)) & 31;
        }
        char c = digits[value];
        text[len++] = upper && is_lower(c) ? (char)(c - 'a' + 'A') : c;
    }
    text[len] = '\0';
}

bool oc_bech32_valid(const char *text, size_t len)
{
    bool upper = false;
    bool lower = false;
    size_t prefix_len = 0; /* up to the last '1' */
    for (size_t i = 0; i < len; i++) {
        if (text[i] < 33 || text[i] > 126) {
            return false;
        }
        upper |= is_upper(text[i]);
        lower |= is_lower(text[i]);
        prefix_len = text[i] == '1' ? i : prefix_len;
    }
    if ((upper && lower) || prefix_len == 0 || len - prefix_len - 1 < OC_BECH32_SUM_CHARS) {
        return false;
    }
    uint32_t sum = prefix_sum(text, prefix_len);
    for (size_t i = prefix_len + 1; i < len; i++) {
        int value = digit_value(text[i]);
        if (value < 0) {
            return false;
        }
        sum = polymod(sum, (unsigned)value);
    }
    return sum == 1;
}

bool oc_bech32_decode_key(uint8_t key[32], const char *prefix, const char *text, size_t len)
{
    size_t prefix_len = strlen(prefix);
    uint8_t bytes[KEY_LEN];
    unsigned held = 0; /* bits not yet in a byte; the top ones are stale */
    unsigned bits = 0;
    size_t out = 0;
    if (len != prefix_len + 1 + OC_BECH32_KEY_CHARS + OC_BECH32_SUM_CHARS || memcmp(text, prefix, prefix_len) != 0 ||
        text[prefix_len] != '1' || !oc_bech32_valid(text, len)) {
        return false;
    }
    for (size_t i = 0; i < OC_BECH32_KEY_CHARS; i++) {
        int value = digit_value(text[prefix_len + 1 + i]);
        if (value < 0) {
            return false; /* a '1' among the digits: valid Bech32 with another prefix */
        }
        held = held << 5 | (unsigned)value;
        bits += 5;
        if (bits >= 8) {
            bits -= 8;
            bytes[out++] = (uint8_t)(held >> bits);
        }
    }
    bool canonical = (held & ((1u << bits) - 1)) == 0; /* the four bits that belong to no byte */
    if (canonical) {
        memcpy(key, bytes, KEY_LEN);
    }
    oc_wipe(bytes, sizeof(bytes));
    return canonical;
}
