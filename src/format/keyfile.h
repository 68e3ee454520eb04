/* format/keyfile.h: the key file's payload and the FORMAT file. Format: docs/format.md, "Key file". Pure functions. */
#ifndef OC_FORMAT_KEYFILE_H
#define OC_FORMAT_KEYFILE_H

#include "base/secret.h"

#define OC_KEYFILE_LINE_LEN 121
#define OC_BUNDLE_ID_LEN 16
#define OC_BUNDLE_KEY_LEN 32

/* Payload text in secret memory: first line, then one "recipient <text>" line each. */
ortcrypt_status oc_keyfile_print(oc_secret *out, const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                                 const uint8_t key[OC_BUNDLE_KEY_LEN], const char *const *recipients,
                                 size_t recipient_count, ortcrypt_error *err);

/*
 * Compared byte for byte outside the two fields; canonical base64, lower hex. *recipients (may be NULL): the texts, newline
 * after each, NUL-terminated, heap. ORTCRYPT_E_NOT_AUTHENTIC for anything else (age authenticated it, so its writer is wrong).
 */
ortcrypt_status oc_keyfile_parse(oc_span payload, uint8_t bundle_id[OC_BUNDLE_ID_LEN], uint8_t key[OC_BUNDLE_KEY_LEN],
                                 char **recipients, ortcrypt_error *err);

#define OC_FORMAT_TEXT "ortcrypt/1\n"
/* ORTCRYPT_E_FORMAT: not a bundle; ORTCRYPT_E_UNSUPPORTED: "ortcrypt/N\n" with another N. `path` is for the sentence. */
ortcrypt_status oc_format_check(oc_span content, const char *path, ortcrypt_error *err);

#endif
