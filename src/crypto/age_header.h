/*
 * crypto/age_header.h: the textual part of an age v1 file. Source: C2SP age specification, "ABNF definition of file header".
 * Call order: oc_age_header_parse -> oc_age_stanza_next until false. Everything points into the caller's file.
 */
#ifndef OC_CRYPTO_AGE_HEADER_H
#define OC_CRYPTO_AGE_HEADER_H

#include "crypto/age.h"

#define OC_AGE_FILE_KEY_LEN 16
#define OC_AGE_BODY_LEN 32 /* a wrapped file key: 16 bytes and a tag */
#define OC_AGE_SCRYPT_SALT_LEN 16
#define OC_AGE_MAC_LEN 32
#define OC_AGE_NONCE_LEN 16

typedef enum oc_age_type {
    OC_AGE_X25519,
    OC_AGE_SCRYPT,
    OC_AGE_MANGLED, /* a native type's name in another case: no type at all, so the stanza is skipped */
    OC_AGE_FOREIGN
} oc_age_type;

typedef struct oc_age_stanza {
    oc_age_type type;
    oc_span name;                                  /* first argument as it stands */
    uint8_t share[OC_AGE_KEY_LEN];                 /* X25519: ephemeral share */
    uint8_t salt[OC_AGE_SCRYPT_SALT_LEN];          /* scrypt */
    uint64_t log_n;                                /* scrypt; any number: the limit is the caller's */
    uint8_t body[OC_AGE_BODY_LEN];                 /* X25519 and scrypt */
} oc_age_stanza;

typedef struct oc_age_header {
    oc_span stanzas; /* from the first "->" to just before "---" */
    oc_span maced;   /* what the MAC covers */
    oc_span rest;    /* nonce and payload */
    uint8_t mac[OC_AGE_MAC_LEN];
    size_t count[OC_AGE_FOREIGN + 1]; /* stanzas by type */
    size_t stanza_count;
} oc_age_header;

/* The whole header is checked, every stanza of a native type included. ORTCRYPT_E_FORMAT with the offset; ORTCRYPT_E_LIMIT. */
ortcrypt_status oc_age_header_parse(oc_age_header *out, oc_span file, ortcrypt_error *err);

/* The next stanza of a header that was parsed: `cursor` starts as header.stanzas. false after the last. */
bool oc_age_stanza_next(oc_span *cursor, oc_age_stanza *out);

/* "-----BEGIN AGE" after white space: armor, to be undone by oc_age_unarmor (strict; ORTCRYPT_E_FORMAT). Appends to *out. */
bool oc_age_is_armored(oc_span file);
ortcrypt_status oc_age_unarmor(oc_span file, oc_buf *out, ortcrypt_error *err);

#endif
