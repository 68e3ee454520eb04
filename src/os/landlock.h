/*
 * os/landlock.h: a domain of the kernel (Landlock) in which a thread can write no file. Source: the kernel's
 * userspace-api/landlock.rst; the numbers are our own, because older headers lack the newer ones.
 *
 * oc_landlock_abi -> oc_landlock_restrict. It holds the calling thread and the threads and processes that it starts later, for ever;
 * threads that were there before stay as they are. Nothing here reads or restricts reading.
 */
#ifndef OC_OS_LANDLOCK_H
#define OC_OS_LANDLOCK_H

#include "base/bytes.h"

#define OC_LANDLOCK_ABI_NET 4   /* TCP: bind and connect */
#define OC_LANDLOCK_ABI_SCOPE 6 /* signals and abstract Unix sockets */

/* The ABI that the kernel offers, 0: none (not built in, switched off, or before Linux 5.13). */
int oc_landlock_abi(void);

/* What a domain holds; what its ABI does not know stays false. */
typedef struct oc_landlock_held {
    int abi;       /* that was used */
    bool files;    /* no file, folder or link is made, written, renamed or removed; opened descriptors stay usable (ABI 1) */
    bool truncate; /* nor cut (ABI 3) */
    bool tcp;      /* no TCP connection and no TCP port (ABI 4) */
    bool signals;  /* no signal to a process outside (ABI 6; not on kernels where it would stop signals between our own threads) */
} oc_landlock_held;

/*
 * Restricts the calling thread. These character devices stay usable, as far as they are there now: /dev/null, zero, full, random,
 * urandom, tty, those of GPUs and NPUs (landlock_devices.c), and devices[0..device_count-1]. ORTCRYPT_E_UNSUPPORTED without Landlock,
 * ORTCRYPT_E_INVALID when one of `devices` is no character device; then nothing is restricted. Also sets PR_SET_NO_NEW_PRIVS.
 */
ortcrypt_status oc_landlock_restrict(const char *const *devices, size_t device_count, oc_landlock_held *held, ortcrypt_error *err);

/* The same with no more than ABI `abi_max` has, as on an older kernel: for tests. */
ortcrypt_status oc_landlock_restrict_as(int abi_max, const char *const *devices, size_t device_count, oc_landlock_held *held,
                                        ortcrypt_error *err);

/* For landlock.c. Calls fn(state, fd) with an O_PATH descriptor of each such device; its errno (0: fine) ends it and is returned. */
typedef int (*oc_device_fn)(void *state, int fd);
int oc_devices_each(oc_device_fn fn, void *state);
/* The same for one device of the caller's; ENOTTY when `path` is something else than a character device. */
int oc_device_one(const char *path, oc_device_fn fn, void *state);

#endif
