/*
 * os/paged_ahead.h: which pieces are filled before anybody touches them. Numbers alone; paged.c asks, and owns the lock.
 *
 * A reader goes on in one direction, forwards or backwards: memcpy does either in large memory, as addresses happen to be, after a look
 * at the other end. As long as it goes on, twice as much is filled ahead each time, up to `most`. One piece in the middle is left
 * out, the marker: its touch tells, while there is still time, that the reader goes on.
 */
#ifndef OC_OS_PAGED_AHEAD_H
#define OC_OS_PAGED_AHEAD_H

#include "base/bytes.h"

typedef struct oc_paged_ahead {
    uint64_t count;   /* of all pieces */
    uint64_t most;    /* pieces ahead of a touch */
    const bool *ends; /* NULL, or for each piece: something ends in it, and is looked at before the rest */
    bool onward;      /* what follows an end is read next; else nothing is filled ahead across it */

    bool back;         /* the reader goes backwards */
    uint64_t next;     /* what is filled next, in that direction */
    uint64_t left;     /* pieces, from there */
    uint64_t len;      /* of the last time; 0: there was none */
    uint64_t expected; /* where it ends: the next touch of a reader that goes on */
    uint64_t marker;   /* UINT64_MAX: none */
} oc_paged_ahead;

oc_paged_ahead oc_paged_ahead_of(uint64_t count, uint64_t most, const bool *ends, bool onward);
/* Piece `number` was touched and was not there; `back`: from behind, in its last page, which is not its first. */
void oc_paged_ahead_touch(oc_paged_ahead *ahead, uint64_t number, bool back);
/* The next piece that could be filled ahead, whatever its state. false: none. */
bool oc_paged_ahead_next(oc_paged_ahead *ahead, uint64_t *number);
/* From now on all of them, in order, or none. */
void oc_paged_ahead_all(oc_paged_ahead *ahead);
void oc_paged_ahead_none(oc_paged_ahead *ahead);

#endif
