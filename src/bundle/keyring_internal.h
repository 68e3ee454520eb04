/* bundle/keyring_internal.h: the keyring's members; for keyring.c and identity.c alone. */
#ifndef OC_BUNDLE_KEYRING_INTERNAL_H
#define OC_BUNDLE_KEYRING_INTERNAL_H

#include "bundle/internal.h"
#include "crypto/age.h"

struct ortcrypt_keyring {
    uint8_t (*recipients)[OC_AGE_KEY_LEN];
    size_t recipient_count;
    oc_secret identities; /* len / OC_AGE_KEY_LEN keys, one after the other */
    oc_secret passphrase;
    unsigned scrypt_limit; /* 0: the default */
    ortcrypt_wrap_fn wrap;
    void *wrap_state;
    char *wrap_text;
    ortcrypt_unwrap_fn unwrap;
    void *unwrap_state;
};

#endif
