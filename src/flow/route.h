/*
 * flow/route.h: which way each asset takes into ONNX Runtime. Pure: facts in, a decision with its reasons out.
 *
 * Only ways that are proven for folded weights, at every optimization level, on every runtime, are here: AddInitializer is not
 * (the optimizer reads the stub in the model). Only the CPU EP gets memory that is not filled yet: others may hand it to a system
 * call or a device. What ORT copies is filled: then any EP gets ORT's copy.
 */
#ifndef OC_FLOW_ROUTE_H
#define OC_FLOW_ROUTE_H

#include "base/bytes.h"

typedef enum oc_file_way {
    OC_FILES_NONE,         /* there are none */
    OC_FILES_EAGER_DIRECT, /* decrypted first, used in place */
    OC_FILES_PAGED_DIRECT, /* used in place; decrypted when read, dropped behind the reader until the session exists */
    OC_FILES_LAZY_DIRECT,  /* used in place; decrypted when first touched, whenever that is */
    OC_FILES_EAGER_COPY,   /* decrypted first, copied by ORT */
    OC_FILES_PAGED_COPY,   /* copied by ORT, tensor by tensor; decrypted when read, dropped behind the reader */
    OC_FILES_PUT_BACK      /* back into the model */
} oc_file_way;

typedef enum oc_model_way {
    OC_MODEL_ARRAY, /* decrypted first */
    OC_MODEL_PAGED, /* an array that is decrypted when read, dropped behind the reader */
    OC_MODEL_LIFTED, /* an array without its large weights; those are copied by ORT, as with OC_FILES_PAGED_COPY */
    OC_MODEL_PIPE   /* a thread feeds it while ORT parses */
} oc_model_way;

typedef struct oc_load_facts {
    bool in_place;        /* the runtime can use the buffers of files in place */
    const char *ep;       /* NULL: the CPU EP */
    bool prepacking;      /* ORT packs weights anew while it creates the session */
    bool lazy;            /* asked for */
    bool aligned;         /* every external tensor begins at a multiple of its element size */
    bool plain_types;     /* of all external tensors, those that every runtime makes values of */
    bool relocated;       /* the model must be rewritten for ORT to find the files in memory */
    bool pages;           /* memory filled when touched is to be had */
    bool proc;            /* a pipe has a path */
    bool fits;            /* model and files together stay below 2 GiB */
    uint64_t model_len;   /* bytes */
    bool files;           /* there are external files, perhaps empty ones */
    uint64_t files_len;
    uint64_t largest_len; /* of the external tensors */
    uint64_t largest_embedded_len;
    uint64_t lifted_len;  /* of the embedded tensors that can be given by name instead */
    uint64_t blobs_len;   /* EPContext data outside the model, decrypted into the EP's buffers */
} oc_load_facts;

typedef struct oc_load_ways {
    oc_file_way files;
    const char *files_why; /* constant */
    oc_model_way model;
    const char *model_why; /* constant */
    size_t window_len;     /* of the files, bytes, at first */
    uint64_t peak_len;     /* bytes that loading is expected to need at most at a time, ORT's included, an EP's own not */
} oc_load_ways;

/* Bytes of a tensor from which its end is worth knowing, because its pieces are its own, and from which it is taken out of a model. */
#define OC_TENSOR_LARGE_LEN ((uint64_t)1 << 20)

/* From 1.31 on ORT can use the buffers of files in place; before, it copies and does not know the entry. */
#define OC_DIRECT_ENTRY "session.use_external_initializer_file_buffers_directly"
#define OC_COPY_WINDOW_LEN ((size_t)2 << 20) /* bytes that stay behind a reader that copies from begin to end */

/* Bytes decrypted ahead of a reader of so many: few beside what ORT holds. */
size_t oc_load_ahead(uint64_t len);
void oc_load_decide(oc_load_ways *out, const oc_load_facts *facts);
const char *oc_file_way_text(oc_file_way way);
const char *oc_model_way_text(oc_model_way way);
/* Constant: what several sessions of one open bundle have in common, or why nothing. */
const char *oc_file_way_sharing(oc_file_way way);
/* Our copy of the files stays in memory while the session lives. */
bool oc_file_way_resident(oc_file_way way);

#endif
