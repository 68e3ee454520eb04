/* bundle/keyring.h: what the bundle layer asks of an ortcrypt_keyring. */
#ifndef OC_BUNDLE_KEYRING_H
#define OC_BUNDLE_KEYRING_H

#include "base/secret.h"
#include "format/keyfile.h"
#include "ortcrypt/keyring.h"

/* ORTCRYPT_E_NO_KEY (with a hint) when the keyring has nothing to write for. Appends the key file to *out. */
ortcrypt_status oc_keyring_wrap(const ortcrypt_keyring *keyring, const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                                const uint8_t key[OC_BUNDLE_KEY_LEN], oc_buf *out, ortcrypt_error *err);

/* *key is new secret memory of OC_BUNDLE_KEY_LEN bytes. *recipients (may be NULL) as in oc_keyfile_parse. `what` names the file. */
ortcrypt_status oc_keyring_unwrap(const ortcrypt_keyring *keyring, oc_span key_file, const char *what,
                                  uint8_t bundle_id[OC_BUNDLE_ID_LEN], oc_secret *key, char **recipients,
                                  ortcrypt_error *err);

#endif
