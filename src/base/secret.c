/* base/secret.c: each secret has pages of its own, so that locking and the advice to the kernel touch nothing else. */
#include "base/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

ortcrypt_status oc_secret_new(oc_secret *out, size_t len, ortcrypt_error *err)
{
    *out = (oc_secret){NULL, 0, 0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (len > SIZE_MAX / 2) {
        return oc_fail_memory(err, len, "a secret");
    }
    size_t map_len = len == 0 ? page : (len + page - 1) / page * page;
    void *map = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return oc_fail_memory(err, len, "a secret");
    }
    int saved = errno;
    (void)mlock(map, map_len); /* beyond RLIMIT_MEMLOCK it stays swappable: better than no key at all */
    (void)madvise(map, map_len, MADV_DONTDUMP);
#ifdef MADV_WIPEONFORK
    /* a forked child reads zeros and can still free: with DONTFORK its exit handlers would crash */
    (void)madvise(map, map_len, MADV_WIPEONFORK);
#else
    (void)madvise(map, map_len, MADV_DONTFORK);
#endif
    errno = saved;
    *out = (oc_secret){map, len, map_len};
    return ORTCRYPT_OK;
}

ortcrypt_status oc_secret_copy(oc_secret *out, const void *data, size_t len, ortcrypt_error *err)
{
    ortcrypt_status st = oc_secret_new(out, len, err);
    if (st == ORTCRYPT_OK && len != 0) {
        memcpy(out->data, data, len);
    }
    return st;
}

void oc_secret_free(oc_secret *secret)
{
    if (secret != NULL && secret->data != NULL) {
        oc_wipe(secret->data, secret->map_len); /* all of it: len may have been lowered */
        (void)munmap(secret->data, secret->map_len);
        *secret = (oc_secret){NULL, 0, 0};
    }
}
