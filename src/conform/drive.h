/*
 * conform/drive.h: what ortcrypt-probe does: one compile, load and run of one model with one EP, and a report of what was seen.
 * Call order: oc_drive_begin -> oc_drive_run -> oc_drive_end. One thread; callbacks may come from the EP's.
 */
#ifndef OC_CONFORM_DRIVE_H
#define OC_CONFORM_DRIVE_H

#include <jansson.h>
#include <pthread.h>

#include "conform/model.h"
#include "conform/witness.h"
#include "runtime/registry.h"
#include "runtime/runtime.h"

typedef enum oc_drive_mode { OC_DRIVE_GIVE, OC_DRIVE_FAIL, OC_DRIVE_EMPTY, OC_DRIVE_CUT, OC_DRIVE_FOREIGN } oc_drive_mode;

/* What the callbacks say when they fail: an EP that passes errors on has it in its own. */
#define OC_DRIVE_REFUSAL "the canary's callback refuses"

typedef struct oc_drive_blob {
    char *name;
    void *data;
    size_t len;
    struct oc_drive_blob *next;
} oc_drive_blob;

typedef struct oc_drive {
    json_t *job;
    json_t *report;
    const oc_model *model;
    bool callbacks;
    oc_drive_mode write;
    oc_drive_mode read;
    ortcrypt_runtime *runtime;
    const OrtApi *api;
    const OrtEpDevice *device;
    oc_registration *registration; /* of the callbacks of this step, where the EP's library takes them by id */
    char ep[256];        /* its name, as the device says */
    oc_witness *witness; /* NULL: none */
    oc_buf onnx;
    oc_buf compiled; /* what the model callback got */
    oc_drive_blob *blobs;
    float *expected; /* the CPU EP's output */
    size_t expected_count;
    pthread_mutex_t lock; /* guards `blobs` and `report` while ORT is at work */
    int out;              /* descriptor of the report */
} oc_drive;

/* `job` is text; false when it is none of this version's. */
bool oc_drive_begin(oc_drive *drive, const char *job, int out);
/* Every step until one fails; the report says which. */
void oc_drive_run(oc_drive *drive);
void oc_drive_end(oc_drive *drive);

/* drive.c, for the steps. */
void oc_drive_stage(oc_drive *drive, const char *stage); /* tells the report too */

/* steps: compile.c, load.c. Statuses with a sentence. */
ortcrypt_status oc_drive_expect(oc_drive *drive, ortcrypt_error *err); /* `expected` */
ortcrypt_status oc_drive_compile(oc_drive *drive, ortcrypt_error *err);
ortcrypt_status oc_drive_load(oc_drive *drive, OrtSession **session, ortcrypt_error *err);
ortcrypt_status oc_drive_compare(oc_drive *drive, OrtSession *session, ortcrypt_error *err);
/* New session options with the EP and its options. */
ortcrypt_status oc_drive_options(oc_drive *drive, OrtSessionOptions **out, ortcrypt_error *err);

/* compile.c: names callbacks in the options, as libortcrypt does, where the EP's library takes ids; those of the step before end. */
ortcrypt_status oc_drive_name(oc_drive *drive, OrtSessionOptions *options, OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write,
                              ortcrypt_error *err);

#define OC_DRIVE_INPUT "canary.onnx"
#define OC_DRIVE_FILE "canary_ctx.onnx" /* without callbacks */

#endif
