/*
 * os/outside.h: the store thread: one thread outside of the sandbox, which does the writing of the whole library.
 *
 * oc_outside_start (before a domain is entered) -> oc_outside, oc_disk_*, oc_outside_apart from any thread. Without it, or in a child
 * after fork, they run where they are called. It ends with the process (or when the library is unloaded).
 *
 * No deadlock: what runs on the store thread are leaves, a few system calls that wait for nobody. Work that may wait (an
 * application's) gets a thread of its own, which the store thread starts, so that it is outside too.
 */
#ifndef OC_OS_OUTSIDE_H
#define OC_OS_OUTSIDE_H

#include <sys/types.h>

#include "base/bytes.h"

/* Starts the store thread; again: nothing. The calling thread must be outside of any domain that is to be left out. */
ortcrypt_status oc_outside_start(ortcrypt_error *err);
bool oc_outside_running(void);

/*
 * Runs fn(state) on the store thread and returns its result and errno. fn is a leaf: it takes no lock, waits for nothing and calls
 * nothing of this library but what is in this header.
 */
typedef long (*oc_outside_fn)(void *state);
long oc_outside(oc_outside_fn fn, void *state);

/* Runs fn(state, err) on a new thread outside and waits for it. Signals are blocked there, as in all our threads. */
typedef ortcrypt_status (*oc_apart_fn)(void *state, ortcrypt_error *err);
ortcrypt_status oc_outside_apart(oc_apart_fn fn, void *state, ortcrypt_error *err);

/* The system calls of these names (-1 and errno), made outside. Everything of ours that makes, renames or removes goes through them. */
int oc_disk_openat(int folder, const char *name, int flags, mode_t mode);
int oc_disk_mkdirat(int folder, const char *name, mode_t mode);
int oc_disk_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
int oc_disk_linkat(int from_folder, const char *from, int to_folder, const char *to);
int oc_disk_unlinkat(int folder, const char *name, int flags);
int oc_disk_touch(int fd); /* futimens(fd, NULL) */

#endif
