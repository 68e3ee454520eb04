/* crypto/random.h: random bytes from getrandom(2) (it notices a restored VM snapshot; OpenSSL's own generator does not). */
#ifndef OC_CRYPTO_RANDOM_H
#define OC_CRYPTO_RANDOM_H

#include "base/bytes.h"

ortcrypt_status oc_random(void *out, size_t len, ortcrypt_error *err);

#endif
