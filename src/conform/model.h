/*
 * conform/model.h: the four models that execution providers are driven with. They are no secret, are made here from nothing, have
 * fixed shapes, and are small enough for every EP to take whole.
 */
#ifndef OC_CONFORM_MODEL_H
#define OC_CONFORM_MODEL_H

#include "base/bytes.h"

#define OC_MODEL_MAX_INPUTS 2
#define OC_MODEL_MAX_RANK 4

typedef struct oc_model_input {
    const char *name;
    int64_t shape[OC_MODEL_MAX_RANK];
    size_t rank;
} oc_model_input;

/* All tensors are float; the one output is "y". */
typedef struct oc_model {
    const char *name;
    const char *what; /* its operators, for people */
    oc_model_input inputs[OC_MODEL_MAX_INPUTS];
    size_t input_count;
    size_t weight_len; /* bytes of weights: a compiled blob much smaller than that cannot hold the model */
    ortcrypt_status (*build)(oc_buf *onnx, ortcrypt_error *err);
} oc_model;

#define OC_MODEL_COUNT 4
extern const oc_model OC_MODELS[OC_MODEL_COUNT];

/* NULL for another name. */
const oc_model *oc_model_find(const char *name);

/* `count` floats of the sequence `seed`, between -0.5 and 0.5; inputs are made with it too. */
void oc_model_fill(float *values, size_t count, unsigned seed);

#endif
