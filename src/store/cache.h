/*
 * store/cache.h: a folder of folders that may be thrown away: <root>/<32 hex>/<64 hex>, each one laid out like a bundle.
 * Nothing else below <root> is ever touched. No key, no crypto here.
 *
 * oc_cache_lock -> look, compile, place -> oc_cache_unlock ; oc_cache_trim at any time.
 */
#ifndef OC_STORE_CACHE_H
#define OC_STORE_CACHE_H

#include "base/bytes.h"

/*
 * flock(EX) on <folder>/lock, so that one process at a time makes an entry there. `folder` is there. Waits at most wait_ms, telling
 * the monitor: ORTCRYPT_E_BUSY then; ORTCRYPT_E_UNSUPPORTED without flock; ORTCRYPT_E_CANCELLED.
 */
ortcrypt_status oc_cache_lock(int *lock, const char *folder, unsigned wait_ms, const ortcrypt_monitor *monitor, ortcrypt_error *err);
void oc_cache_unlock(int lock); /* -1 is allowed */

/* Notes that the entry was used now: the one unused for longest is removed first. Best effort. */
void oc_cache_touch(const char *entry);

/* Removes one entry. false when somebody uses it, or it cannot be. */
bool oc_cache_remove(const char *folder, const char *name);

/* Removes entries, the one unused for longest first and never one in use, until at most max_len bytes are in them. Best effort. */
void oc_cache_trim(const char *root, uint64_t max_len);

#endif
