/*
 * crypto/age.h: age v1 files (C2SP age specification), X25519 and scrypt recipients, in memory.
 * Source: the C2SP age specification; vectors: CCTV age.
 */
#ifndef OC_CRYPTO_AGE_H
#define OC_CRYPTO_AGE_H

#include "base/secret.h"

#define OC_AGE_KEY_LEN 32
#define OC_AGE_FILE_MAX (256u * 1024u)
#define OC_AGE_STANZA_MAX 1000u
#define OC_AGE_SCRYPT_LOG_N 18u /* written, and the highest accepted unless raised */

ortcrypt_status oc_age_generate(uint8_t secret[OC_AGE_KEY_LEN], uint8_t recipient[OC_AGE_KEY_LEN], ortcrypt_error *err);
/* Bech32 text as age writes it. Decoding: recipients lower case only, identities upper case only, as age does. */
void oc_age_recipient_text(char text[63], const uint8_t recipient[OC_AGE_KEY_LEN]);
void oc_age_identity_text(char text[75], const uint8_t secret[OC_AGE_KEY_LEN]);
bool oc_age_recipient_parse(uint8_t recipient[OC_AGE_KEY_LEN], const char *text, size_t len);
bool oc_age_identity_parse(uint8_t secret[OC_AGE_KEY_LEN], const char *text, size_t len);
/*
 * Well-formed text of a type that is not native: another age1... or AGE-... Bech32 text (post-quantum, tagged, plugins), or an
 * ssh key's line. For ORTCRYPT_E_UNSUPPORTED where oc_age_*_parse says false.
 */
bool oc_age_recipient_foreign(const char *text, size_t len);
bool oc_age_identity_foreign(const char *text, size_t len);
ortcrypt_status oc_age_recipient_of(uint8_t recipient[OC_AGE_KEY_LEN], const uint8_t secret[OC_AGE_KEY_LEN],
                                    ortcrypt_error *err);

/* Who can open. passphrase.len != 0 excludes recipients (ORTCRYPT_E_INVALID). All borrowed. */
typedef struct oc_age_keys {
    const uint8_t (*recipients)[OC_AGE_KEY_LEN]; /* for writing */
    size_t recipient_count;
    const uint8_t (*identities)[OC_AGE_KEY_LEN]; /* for opening */
    size_t identity_count;
    oc_span passphrase; /* for both */
    unsigned scrypt_log_n;     /* written; 0: OC_AGE_SCRYPT_LOG_N */
    unsigned scrypt_log_n_max; /* accepted; 0: OC_AGE_SCRYPT_LOG_N */
    size_t file_max;           /* bytes of file accepted; 0: OC_AGE_FILE_MAX */
} oc_age_keys;

/* Appends an age file holding `payload` to *out. */
ortcrypt_status oc_age_seal(const oc_age_keys *keys, oc_span payload, oc_buf *out, ortcrypt_error *err);

/*
 * Opens `file`, binary or armored. *payload is new secret memory, set only when everything is authentic.
 * ORTCRYPT_E_FORMAT: not an age v1 file or malformed header; ORTCRYPT_E_NO_KEY: no stanza opens with these keys (an altered
 * stanza looks the same); ORTCRYPT_E_NOT_AUTHENTIC: header MAC or payload wrong; ORTCRYPT_E_UNSUPPORTED: only stanzas of
 * types that are not native; ORTCRYPT_E_LIMIT: file, number of stanzas or scrypt work factor above the limit.
 */
ortcrypt_status oc_age_open(const oc_age_keys *keys, oc_span file, oc_secret *payload, ortcrypt_error *err);

/* Types of the stanzas of a header, without a key: "X25519 X25519 scrypt" in *out (NUL-terminated text in the buffer). */
ortcrypt_status oc_age_stanza_types(oc_span file, oc_buf *out, ortcrypt_error *err);

#endif
