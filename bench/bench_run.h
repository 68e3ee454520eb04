/* bench_run.h: one inference of any model with tensor inputs of numbers. Call order: bench_inputs_make -> bench_run -> exit. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "ortcrypt/runtime.h"

#define BENCH_EP_NAME "OrtcryptReference"

enum { BENCH_VALUES_MAX = 16 };

/* Inputs and output names of a session; the process keeps them until it ends. */
typedef struct bench_values {
    size_t input_count;
    size_t output_count;
    char *input_names[BENCH_VALUES_MAX];
    char *output_names[BENCH_VALUES_MAX];
    OrtValue *inputs[BENCH_VALUES_MAX];
} bench_values;

/*
 * Fills every input: floats with -3 to 3, integers with 0 and 1, in turn. Dimensions the model leaves open are 1. `specs`
 * (spec_count) say otherwise: "NAME=2x3" a shape, "NAME=:16000" a scalar's value. Ends the process on an error.
 */
void bench_inputs_make(bench_values *values, const OrtApi *ort, const OrtSession *session, char *const *specs, size_t spec_count);

/* Runs once; a hash (FNV-1a) of the bytes of all outputs. Ends the process on an error. */
uint64_t bench_run(const bench_values *values, const OrtApi *ort, OrtSession *session);

double bench_now(void); /* seconds of a clock that only runs forward */
/* Bytes of "VmHWM:" or "VmRSS:" in /proc/self/status. */
long long bench_memory(const char *field);
/* The first device of BENCH_EP_NAME, which is registered, to the options. */
void bench_append_ep(const OrtApi *ort, OrtEnv *env, OrtSessionOptions *options);

/* "bench: what: why" on standard error, and exit code 1. */
_Noreturn void bench_stop(const char *what, const char *why);
/* The same with ORT's words when `status` is one. */
void bench_check(const OrtApi *ort, OrtStatus *status, const char *what);

#endif
