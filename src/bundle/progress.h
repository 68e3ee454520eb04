/*
 * bundle/progress.h: one progress report over many assets: each step's own count is added to what is done already.
 * Call order: oc_progress_sum_start -> pass &sum.monitor to a step -> oc_progress_sum_add its bytes -> next step.
 */
#ifndef OC_BUNDLE_PROGRESS_H
#define OC_BUNDLE_PROGRESS_H

#include "base/error.h"

typedef struct oc_progress_sum {
    ortcrypt_monitor monitor;    /* for the steps */
    const ortcrypt_monitor *user; /* borrowed; may be NULL */
    const char *step;            /* the constant phrase shown */
    uint64_t done;               /* bytes of the steps behind us */
    uint64_t total;
} oc_progress_sum;

/* `sum` must not move afterwards. Reports 0 of total. */
ortcrypt_status oc_progress_sum_start(oc_progress_sum *sum, const ortcrypt_monitor *user, const char *step, uint64_t total,
                                      ortcrypt_error *err);
ortcrypt_status oc_progress_sum_add(oc_progress_sum *sum, uint64_t len, ortcrypt_error *err);
/* Everything is done, whatever the total was estimated to be. */
ortcrypt_status oc_progress_sum_end(oc_progress_sum *sum, ortcrypt_error *err);

#endif
