/*
 * tests/support/tamper.h: every way of damaging a bundle that the sweep knows, each undone after it was tried.
 * Data: a bundle on disk -> one damage -> the opener under test -> its status is judged by the file's class -> repair.
 */
#ifndef OC_TEST_TAMPER_H
#define OC_TEST_TAMPER_H

#include <stddef.h>

#include "ortcrypt/error.h"

/* Opens the bundle and uses every byte of it; must leave nothing behind. Returns what the library said. */
typedef ortcrypt_status (*oc_test_open_fn)(void *state, const char *bundle, ortcrypt_error *err);

typedef struct oc_tamper {
    const char *bundle;
    oc_test_open_fn open;
    void *state;
    unsigned flips;    /* bytes flipped per file, spread evenly */
    unsigned cut_step; /* 1: cut at every chunk border and one byte around it; n: at every n-th */
    size_t tried;      /* out: damages tried */
} oc_tamper;

/* Each asserts (cmocka) that every damage was refused with the right kind of status. */
void oc_tamper_flip(oc_tamper *t);
void oc_tamper_cut(oc_tamper *t);
void oc_tamper_lengthen(oc_tamper *t);
void oc_tamper_delete(oc_tamper *t);
void oc_tamper_replace_by_directory(oc_tamper *t);
void oc_tamper_replace_by_fifo(oc_tamper *t);
void oc_tamper_replace_by_wrong_link(oc_tamper *t);
void oc_tamper_swap_objects(oc_tamper *t);
/* Objects, manifest and key file of another valid bundle of the same shape, one at a time. */
void oc_tamper_swap_between(oc_tamper *t, const char *other);
/* A link to the right bytes is no damage: it loads. */
void oc_tamper_right_link(oc_tamper *t);

#endif
