/*
 * cli/model.h: an OrtSession seen as named inputs and outputs.
 *
 * Call order: cli_model_open -> cli_model_run ... -> cli_model_close (before the session is released).
 */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "tensor.h"

/* One input or output. */
typedef struct cli_value_info {
    char *name;
    bool is_tensor; /* false: a sequence, map or optional value */
    ONNXTensorElementDataType type;
    int64_t shape[CLI_RANK_MAX]; /* -1: dynamic */
    char *dims[CLI_RANK_MAX];    /* names of dynamic dimensions, or NULL */
    size_t rank;
} cli_value_info;

typedef struct cli_model {
    const OrtApi *api;
    OrtSession *session; /* borrowed */
    cli_value_info *inputs;
    size_t input_count;
    cli_value_info *outputs;
    size_t output_count;
} cli_model;

ortcrypt_status cli_model_open(cli_model *model, const OrtApi *api, OrtSession *session, ortcrypt_error *err);
void cli_model_close(cli_model *model);
/* "float32[batch, 3, ?, 320]" */
void cli_value_text(char *out, size_t out_size, const cli_value_info *value);

/* Tensors as ORT sees them. ORT borrows the elements of numbers; strings are copied. Release each with api->ReleaseValue. */
ortcrypt_status cli_value_make(OrtValue **out, const OrtApi *api, const cli_tensor *tensor, ortcrypt_error *err);
ortcrypt_status cli_value_copy(cli_tensor *out, const OrtApi *api, const OrtValue *value, ortcrypt_error *err);

/* Runs once. inputs[input_count] in the model's order; outputs[output_count] are new values. */
ortcrypt_status cli_model_run(const cli_model *model, const OrtValue *const *inputs, OrtValue **outputs, ortcrypt_error *err);

#endif
