/* crypto/bech32.h: Bech32 (BIP 173) without its length limit, in one case. Used by age's keys. */
#ifndef OC_CRYPTO_BECH32_H
#define OC_CRYPTO_BECH32_H

#include "base/bytes.h"

#define OC_BECH32_KEY_CHARS 52 /* digits of 32 bytes */
#define OC_BECH32_SUM_CHARS 6

/* "<prefix>1<52 digits><6 digits>" and a NUL. `prefix` is in one case, and the text is in the same. */
void oc_bech32_encode_key(char *text, const char *prefix, const uint8_t key[32]);

/* false unless the text is exactly such a one. `key` is written on success only. */
bool oc_bech32_decode_key(uint8_t key[32], const char *prefix, const char *text, size_t len);

/* Any Bech32 text in one case with a right checksum. */
bool oc_bech32_valid(const char *text, size_t len);

#endif
