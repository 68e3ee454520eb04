/*
 * os/paged.h: what paged.c (filling) and paged_open.c (memory and threads) share. Nobody else includes it.
 */
#ifndef OC_OS_PAGED_H
#define OC_OS_PAGED_H

#include <pthread.h>

#include "os/os.h"
#include "os/paged_ahead.h"

enum { OC_PIECE_ABSENT, OC_PIECE_WANTED, OC_PIECE_FILLING, OC_PIECE_PRESENT, OC_PIECE_EVICTING, OC_PIECE_FAILED };

typedef struct oc_paged_piece {
    unsigned state : 3;
    unsigned seen : 1;    /* was filled, so it was checked */
    unsigned listed : 1;  /* is in `resident`, and counted in resident_len */
    unsigned touched : 1; /* while it was evicted */
    unsigned dropped : 1; /* while the reader was away, and not filled since */
} oc_paged_piece;

typedef struct oc_paged_ring { /* of piece numbers; each is in it once at most, so that it has room */
    uint64_t *items;
    uint64_t first;
    uint64_t count;
} oc_paged_ring;

typedef struct oc_paged_worker {
    oc_paged *paged;
    unsigned lane;
    pthread_t thread;
    oc_region plain; /* one piece */
} oc_paged_worker;

struct oc_paged {
    oc_paged_spec spec;
    size_t page;
    uint8_t *map;
    size_t map_len;
    int fd;
    int wake_fd; /* a semaphore: one count for each thread that has something to do */
    unsigned started;
    unsigned lanes; /* of `workers` */
    oc_paged_worker *workers;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    oc_paged_piece *pieces;
    oc_paged_ring wanted;   /* touched, in order */
    oc_paged_ring resident; /* filled, in order, while evicting */
    size_t resident_len;
    oc_paged_ahead ahead;
    uint64_t unseen;
    uint64_t fills;      /* begun, */
    uint64_t filled;     /* and ended */
    size_t refilled_len; /* bytes read again since the window was last changed, less what was new in between */
    unsigned idle;       /* threads that wait and were not signalled */
    bool completing;     /* settle waits: the rest is what was never filled */
    bool settled;
    bool stop;
    bool lost; /* the descriptors are not ours any more, and the memory is closed to all */
    bool failed;
    ortcrypt_error failure;
};

/* The address of a piece, and its bytes in the mapping: whole pages. */
uint8_t *oc_paged_at(const oc_paged *paged, uint64_t number);
size_t oc_paged_room(const oc_paged *paged, uint64_t number);

void *oc_paged_work(void *worker);        /* a thread of it, until `stop` */
void oc_paged_signal(oc_paged *paged);    /* wakes every idle thread; locked */

#endif
