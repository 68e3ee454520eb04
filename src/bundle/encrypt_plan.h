/*
 * bundle/encrypt_plan.h: everything about the input of an encryption, found and checked before a byte is written: the model's
 * scan, its data files, the ranges of its external tensors, what must be rewritten in the model, extra files.
 *
 * Call order: oc_encrypt_plan_make -> read the lists -> oc_encrypt_plan_free.
 */
#ifndef OC_BUNDLE_ENCRYPT_PLAN_H
#define OC_BUNDLE_ENCRYPT_PLAN_H

#include "bundle/bundle.h"
#include "bundle/inputs_files.h"

typedef struct oc_encrypt_plan oc_encrypt_plan;

/* One distinct external-data file, or an extra file. */
typedef struct oc_plan_file {
    oc_input input; /* looked at; closed */
    char *path;     /* owned */
    char *name;     /* owned: its name in the bundle */
    oc_source lazy; /* for rewriting: opens itself when read and closes the one read before it */
    oc_encrypt_plan *plan;
} oc_plan_file;

/* An external tensor and where its bytes are. */
typedef struct oc_plan_tensor {
    size_t tensor; /* index into onnx->tensors */
    size_t file;   /* index into files */
    char *name;    /* owned until the files have it: the normalised location */
    uint64_t offset;
    uint64_t length;
} oc_plan_tensor;

/* An embedded tensor that moves into the bundle's file of weights. */
typedef struct oc_plan_moved {
    size_t tensor;   /* index into onnx->tensors */
    uint64_t offset; /* in the weights, a multiple of OC_SPLIT_ALIGN */
} oc_plan_moved;

#define OC_SPLIT_ALIGN 4096u /* bytes */

struct oc_encrypt_plan {
    oc_input model; /* looked at; open */
    oc_onnx_model *onnx;
    oc_plan_tensor *tensors; /* sorted by file, then offset */
    size_t tensor_count;
    oc_plan_file *files;
    size_t file_count;
    oc_plan_file *extras;
    size_t extra_count;
    oc_plan_moved *moved; /* in the order of the model; none: the model is not split */
    size_t moved_count;
    uint64_t moved_len;   /* bytes of those tensors */
    uint64_t weights_len; /* the same with the gaps between them */
    char *weights_name;   /* owned: the location that the split model has for them */
    oc_onnx_edit *edits; /* ascending body_off; none: the model is stored as it is */
    size_t edit_count;
    oc_plan_file *lazy_open; /* the one file that `lazy` holds open, or NULL */
    uint64_t total_len;      /* bytes that will be read for storing */
};

ortcrypt_status oc_encrypt_plan_make(oc_encrypt_plan **out, const char *model_path,
                                     const ortcrypt_encrypt_options *options, ortcrypt_error *err);
void oc_encrypt_plan_free(oc_encrypt_plan *plan); /* NULL is allowed */

/* The steps of _make after the scan, in their own files. */
ortcrypt_status oc_encrypt_plan_tensors(oc_encrypt_plan *plan, ortcrypt_error *err);
ortcrypt_status oc_encrypt_plan_split(oc_encrypt_plan *plan, const ortcrypt_encrypt_options *options, ortcrypt_error *err);
ortcrypt_status oc_encrypt_plan_edits(oc_encrypt_plan *plan, ortcrypt_error *err);

/* The weights that move, as one file; valid while the plan is. Its read is called by one thread at a time. */
oc_source oc_encrypt_plan_weights(oc_encrypt_plan *plan);
/* Forgets them; the edits must be planned again. */
void oc_encrypt_plan_unsplit(oc_encrypt_plan *plan);

/* A zeroed array of `count` elements (room for one when there are none), heap. NULL: *status and *err say so; else *status is left alone. */
void *oc_plan_alloc(size_t count, size_t size, const char *what, ortcrypt_status *status, ortcrypt_error *err);

#endif
