/* crypto/random.c: the kernel's random bytes, straight. */
#include "crypto/random.h"

#include <errno.h>
#include <sys/random.h>

ortcrypt_status oc_random(void *out, size_t len, ortcrypt_error *err)
{
    uint8_t *at = out;
    while (len != 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n < 0 && errno != EINTR) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "random bytes from the kernel");
        }
    }
    return ORTCRYPT_OK;
}
