/*
 * cli/run.h: the pieces of `ortcrypt run`.
 *
 * Call order: cli_inputs_make -> cli_model_run ... -> cli_outputs_copy -> cli_compare, cli_outputs_write -> free.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "model.h"

/* The inputs of a model in its order; values[i] borrows the elements of tensors[i]. */
typedef struct cli_inputs {
    const OrtApi *api;
    cli_tensor *tensors;
    OrtValue **values;
    size_t count;
} cli_inputs;

/*
 * From --input, --random and --dim. Every input of the model must come from one of the first two; type and shape are checked
 * here, so that the sentence can name the input, what is wanted and what was given.
 */
ortcrypt_status cli_inputs_make(cli_inputs *inputs, const cli_model *model, const cli_args *args, ortcrypt_error *err);
void cli_inputs_free(cli_inputs *inputs);

/* The outputs of one run in the model's order; a value that is no tensor, or of a type we do not handle, stays {0}. */
typedef struct cli_outputs {
    cli_tensor *tensors;
    size_t count;
} cli_outputs;

/* Runs once and copies. `seconds` (may be NULL): the time of Run alone. */
ortcrypt_status cli_outputs_run(cli_outputs *outputs, const cli_model *model, const cli_inputs *inputs, double *seconds,
                                ortcrypt_error *err);
void cli_outputs_free(cli_outputs *outputs);

/* --output: a new folder with one <name>.npy each, complete or not there. files[i] (heap, NULL when not written) of count. */
ortcrypt_status cli_outputs_write(const cli_outputs *outputs, const cli_model *model, const char *folder, char **files,
                                  ortcrypt_error *err);
/* ORTCRYPT_E_EXISTS when there is anything at `path`. */
ortcrypt_status cli_check_absent(const char *path, ortcrypt_error *err);

/* One output against the plaintext model's. */
typedef struct cli_difference {
    bool same_bytes;
    bool compared;    /* false: no tensors of numbers with the same shape */
    double max_abs;   /* infinite where one side is NaN and the other is not */
    double range;     /* see --compare in table.c */
    bool within;      /* max_abs <= 1e-5 * range */
} cli_difference;

#define CLI_TOLERANCE 1e-5
cli_difference cli_compare(const cli_tensor *ours, const cli_tensor *plain);

/*
 * Runs the plaintext model at `path` on the CPU execution provider with the same inputs; *differences is an array in the order of
 * model->outputs. ORTCRYPT_E_INPUT when its inputs and outputs are not those of `model`.
 */
ortcrypt_status cli_compare_model(cli_difference **differences, const cli_model *model, const cli_inputs *inputs,
                                  const cli_outputs *outputs, OrtEnv *env, const char *path, ortcrypt_error *err);

#endif
