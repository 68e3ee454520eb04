/*
 * os/os.h: threads and large memory. Knows neither ORT nor OpenSSL.
 */
#ifndef OC_OS_OS_H
#define OC_OS_OS_H

#include "base/bytes.h"

/* min(cores this process may use, 8), at least 1. */
unsigned oc_default_threads(void);

/* Physical memory in bytes. */
uint64_t oc_physical_memory(void);

/*
 * Runs fn(state, lane, item, err) for every item 0..count-1 on up to `threads` threads (the caller's is lane 0; lanes are
 * 0..threads-1; `threads` 0 means oc_default_threads()). Items start in order. The first failure stops further items and is
 * returned. Signals are blocked in the extra threads. Extra threads that cannot be started are done without.
 */
typedef ortcrypt_status (*oc_item_fn)(void *state, unsigned lane, uint64_t item, ortcrypt_error *err);
ortcrypt_status oc_parallel(unsigned threads, uint64_t count, oc_item_fn fn, void *state, ortcrypt_error *err);

/*
 * Memory for decrypted assets: anonymous, zeroed, aligned to 2 MiB with huge pages from 4 MiB on, kept out of dumps and forks
 * (MADV_DONTDUMP, MADV_DONTFORK).
 */
typedef struct oc_region {
    uint8_t *data;
    size_t len;
    void *map;
    size_t map_len;
} oc_region;

ortcrypt_status oc_region_new(oc_region *out, size_t len, ortcrypt_error *err); /* len 0: data is non-NULL, one page */
void oc_region_free(oc_region *region);                                         /* wipes first; NULL and {0} allowed */

/*
 * A pipe that a thread feeds: open -> give oc_feeder_path to a reader -> oc_feeder_join.
 * fn pushes bytes with oc_feeder_push on the feeder's thread; a reader that goes away ends it with ORTCRYPT_E_CANCELLED.
 */
typedef struct oc_feeder oc_feeder;
typedef ortcrypt_status (*oc_feed_fn)(void *state, oc_feeder *feeder, ortcrypt_error *err);
ortcrypt_status oc_feeder_open(oc_feeder **out, oc_feed_fn fn, void *state, ortcrypt_error *err);
const char *oc_feeder_path(const oc_feeder *feeder); /* "/proc/self/fd/N"; may be opened once */
ortcrypt_status oc_feeder_push(oc_feeder *feeder, const void *data, size_t len, ortcrypt_error *err);
/* Closes the reading end, ends the thread, frees; returns what fn returned. NULL is allowed. */
ortcrypt_status oc_feeder_join(oc_feeder *feeder, ortcrypt_error *err);

#endif
