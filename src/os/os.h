/*
 * os/os.h: threads and large memory. Knows neither ORT nor OpenSSL.
 */
#ifndef OC_OS_OS_H
#define OC_OS_OS_H

#include "base/bytes.h"

/* min(cores this process may use, 8), at least 1. */
#define OC_DEFAULT_THREADS_MAX 8
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
/* Whole pages; those that are not there are left alone. false: it is not known of all. */
bool oc_wipe_resident(uint8_t *map, size_t map_len);

/*
 * Memory that is filled, piece by piece, when it is first touched (userfaultfd), by threads of its own: open -> hand the address
 * to a reader -> settle -> ... -> close. Like regions it is kept out of dumps and forks; a child that touches it dies of SIGSEGV.
 * A system call that is given an address whose page is not there fails with EFAULT: only for readers that read themselves.
 * What a reader has left alone for a while before settle is dropped too: it is at other work, and needs memory for that.
 *
 * While the reader prepares (until settle) a piece that cannot be filled becomes 0xff bytes, so that a reader that cannot be
 * interrupted ends, and settle says why: nothing made from the memory may be used then. Afterwards it is tried
 * again for some seconds if memory or descriptors were short; a piece that still cannot be filled becomes SIGBUS.
 */
typedef struct oc_paged oc_paged;
/* Fills piece `piece` (its bytes) at `to`. `lane` is below OC_DEFAULT_THREADS_MAX. */
typedef ortcrypt_status (*oc_page_fill_fn)(void *state, unsigned lane, uint64_t piece, uint8_t *to, ortcrypt_error *err);
typedef struct oc_paged_spec {
    size_t piece_len;     /* from the begin of one piece to the next, a multiple of the page size */
    uint64_t piece_count; /* at least 1 */
    unsigned threads;     /* that fill, up to OC_DEFAULT_THREADS_MAX; 0: as many as there are cores */
    const uint32_t *lens; /* bytes in each piece, at most piece_len; the caller's until close. What lies between is not readable */
    size_t window;        /* bytes behind the reader that stay until settle; 0: all. Grows when the reader comes back too often */
    size_t ahead;         /* pieces filled ahead of the one that was touched */
    const bool *ends;     /* NULL, or for each piece: something ends in it, and is looked at before the rest */
    bool onward;          /* what follows an end is read next; else nothing is filled ahead across it */
    oc_page_fill_fn fill;
    void *state;
} oc_paged_spec;

bool oc_paged_available(void); /* false: the kernel or a filter (a container's) denies it */
ortcrypt_status oc_paged_open(oc_paged **out, const oc_paged_spec *spec, ortcrypt_error *err);
uint8_t *oc_paged_data(const oc_paged *paged);
/* Pieces filled so far, those filled again counted again. */
uint64_t oc_paged_fills(oc_paged *paged);
/*
 * The reader has prepared: ends eviction. `complete`: fills every piece that never was, so that every byte has been checked once.
 * The first failure of a fill so far.
 */
ortcrypt_status oc_paged_settle(oc_paged *paged, bool complete, ortcrypt_error *err);
void oc_paged_close(oc_paged *paged); /* nobody reads any more; wipes. NULL is allowed */

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
