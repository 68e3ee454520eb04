/* conform/check_internal.h: check.c runs the EP, check_rows.c says what that shows. */
#ifndef OC_CONFORM_CHECK_INTERNAL_H
#define OC_CONFORM_CHECK_INTERNAL_H

#include "conform/check.h"
#include "conform/drive.h"
#include "runtime/probe.h"

/* Runs: each model with callbacks that work; then one model in each of the other ways. */
typedef enum oc_run {
    OC_RUN_PLAIN, /* OC_MODEL_COUNT of them */
    OC_RUN_WRITE_FAILS = OC_RUN_PLAIN + OC_MODEL_COUNT,
    OC_RUN_READ_FAILS,
    OC_RUN_EMPTY,
    OC_RUN_CUT,
    OC_RUN_FOREIGN,
    OC_RUN_WITHOUT, /* no callbacks: files in a scratch folder */
    OC_RUN_COUNT
} oc_run;

typedef struct oc_check {
    const oc_check_options *options;
    oc_probe_result runs[OC_RUN_COUNT]; /* report NULL: it did not take place */
    size_t model; /* of the runs that are not OC_RUN_PLAIN; OC_MODEL_COUNT: none was taken whole */
    json_t *models;
    json_t *rows;
    size_t failed;
} oc_check;

/* Fills `models` from the plain runs, and chooses `model`. */
void oc_check_models(oc_check *check);
/* Fills `rows`. */
void oc_check_rows(oc_check *check);

#endif
