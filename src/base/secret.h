/*
 * base/secret.h: memory for keys and key-file payloads: own pages, locked where allowed, kept out of dumps and forks, wiped.
 * Call order: oc_secret_new -> use data -> oc_secret_free.
 */
#ifndef OC_BASE_SECRET_H
#define OC_BASE_SECRET_H

#include "base/bytes.h"

typedef struct oc_secret {
    uint8_t *data;
    size_t len;     /* bytes in use; may be lowered by the owner */
    size_t map_len; /* bytes mapped */
} oc_secret;

/* Zeroed. mlock is best effort (ordinary users have 8 MiB at most). *out is {0} on failure. */
ortcrypt_status oc_secret_new(oc_secret *out, size_t len, ortcrypt_error *err);
ortcrypt_status oc_secret_copy(oc_secret *out, const void *data, size_t len, ortcrypt_error *err);
void oc_secret_free(oc_secret *secret); /* NULL and {0} are allowed */

#endif
