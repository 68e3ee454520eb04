/* bench_run.c: see bench_run.h. Memory is left to the end of the process. */
#include "bench_run.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANK_MAX = 8 };

_Noreturn void bench_stop(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

void bench_check(const OrtApi *ort, OrtStatus *status, const char *what)
{
    if (status != NULL) {
        bench_stop(what, ort->GetErrorMessage(status));
    }
}

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

long long bench_memory(const char *field)
{
    char line[256];
    long long kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = atoll(line + strlen(field));
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return kib * 1024;
}

void bench_append_ep(const OrtApi *ort, OrtEnv *env, OrtSessionOptions *options)
{
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;
    bench_check(ort, ort->GetEpDevices(env, &devices, &count), BENCH_EP_NAME);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ort->EpDevice_EpName(devices[i]), BENCH_EP_NAME) == 0) {
            bench_check(ort, ort->SessionOptionsAppendExecutionProvider_V2(options, env, &devices[i], 1, NULL, NULL, 0), BENCH_EP_NAME);
            return;
        }
    }
    bench_stop(BENCH_EP_NAME, "has no device here");
}

typedef struct wanted {
    ONNXTensorElementDataType type;
    size_t rank;
    int64_t dims[RANK_MAX];
    int64_t value; /* of every element; -1: in turn */
} wanted;

/* "2x3", ":16000" */
static void read_spec(wanted *want, const char *spec)
{
    want->rank = 0;
    for (const char *at = spec; *at != 0 && *at != ':';) {
        char *end = NULL;
        if (want->rank == RANK_MAX) {
            bench_stop(spec, "too many dimensions");
        }
        want->dims[want->rank++] = strtoll(at, &end, 10);
        if (end == at || (*end != 'x' && *end != ':' && *end != 0)) {
            bench_stop(spec, "no shape");
        }
        at = *end == 'x' ? end + 1 : end;
    }
    const char *const value = strchr(spec, ':');
    want->value = value != NULL ? strtoll(value + 1, NULL, 10) : -1;
}

static void find_wanted(wanted *want, const OrtApi *ort, const OrtSession *session, size_t index, const char *name, char *const *specs,
                        size_t spec_count)
{
    OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    bench_check(ort, ort->SessionGetInputTypeInfo(session, index, &type), name);
    bench_check(ort, ort->CastTypeInfoToTensorInfo(type, &info), name);
    if (info == NULL) {
        bench_stop(name, "is no tensor");
    }
    *want = (wanted){.value = -1};
    bench_check(ort, ort->GetTensorElementType(info, &want->type), name);
    bench_check(ort, ort->GetDimensionsCount(info, &want->rank), name);
    if (want->rank > RANK_MAX) {
        bench_stop(name, "has too many dimensions");
    }
    bench_check(ort, ort->GetDimensions(info, want->dims, want->rank), name);
    ort->ReleaseTypeInfo(type);
    for (size_t i = 0; i < want->rank; i++) {
        want->dims[i] = want->dims[i] < 0 ? 1 : want->dims[i];
    }
    for (size_t i = 0; i < spec_count; i++) {
        const size_t len = strcspn(specs[i], "=");
        if (strlen(name) == len && strncmp(specs[i], name, len) == 0 && specs[i][len] == '=') {
            read_spec(want, specs[i] + len + 1);
        }
    }
}

static void fill(void *data, const wanted *want, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t number = want->value >= 0 ? want->value : (int64_t)(i % 2);
        switch (want->type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
            ((float *)data)[i] = want->value >= 0 ? (float)want->value : (float)(i % 7) - 3.0f;
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
            ((int64_t *)data)[i] = number;
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
            ((int32_t *)data)[i] = (int32_t)number;
            break;
        default:
            bench_stop(name, "is of a type that is not filled here");
        }
    }
}

static OrtValue *make_input(const OrtApi *ort, const wanted *want, const char *name)
{
    OrtAllocator *allocator = NULL;
    OrtValue *value = NULL;
    void *data = NULL;
    size_t count = 1;
    for (size_t i = 0; i < want->rank; i++) {
        count *= (size_t)want->dims[i];
    }
    bench_check(ort, ort->GetAllocatorWithDefaultOptions(&allocator), name);
    bench_check(ort, ort->CreateTensorAsOrtValue(allocator, want->dims, want->rank, want->type, &value), name);
    bench_check(ort, ort->GetTensorMutableData(value, &data), name);
    fill(data, want, count, name);
    return value;
}

void bench_inputs_make(bench_values *values, const OrtApi *ort, const OrtSession *session, char *const *specs, size_t spec_count)
{
    OrtAllocator *allocator = NULL;
    *values = (bench_values){0};
    bench_check(ort, ort->GetAllocatorWithDefaultOptions(&allocator), "allocator");
    bench_check(ort, ort->SessionGetInputCount(session, &values->input_count), "inputs");
    bench_check(ort, ort->SessionGetOutputCount(session, &values->output_count), "outputs");
    if (values->input_count > BENCH_VALUES_MAX || values->output_count > BENCH_VALUES_MAX) {
        bench_stop("model", "has too many inputs or outputs");
    }
    for (size_t i = 0; i < values->input_count; i++) {
        wanted want;
        bench_check(ort, ort->SessionGetInputName(session, i, allocator, &values->input_names[i]), "inputs");
        find_wanted(&want, ort, session, i, values->input_names[i], specs, spec_count);
        values->inputs[i] = make_input(ort, &want, values->input_names[i]);
    }
    for (size_t i = 0; i < values->output_count; i++) {
        bench_check(ort, ort->SessionGetOutputName(session, i, allocator, &values->output_names[i]), "outputs");
    }
}

uint64_t bench_run(const bench_values *values, const OrtApi *ort, OrtSession *session)
{
    OrtValue *outputs[BENCH_VALUES_MAX] = {NULL};
    uint64_t hash = 0xcbf29ce484222325u;
    bench_check(ort, ort->Run(session, NULL, (const char *const *)values->input_names, (const OrtValue *const *)values->inputs,
                              values->input_count, (const char *const *)values->output_names, values->output_count, outputs),
                "run");
    for (size_t i = 0; i < values->output_count; i++) {
        const void *data = NULL;
        size_t len = 0;
        bench_check(ort, ort->GetTensorSizeInBytes(outputs[i], &len), values->output_names[i]);
        bench_check(ort, ort->GetTensorData(outputs[i], &data), values->output_names[i]);
        for (size_t k = 0; k < len; k++) {
            hash = (hash ^ ((const unsigned char *)data)[k]) * 0x100000001b3u;
        }
        ort->ReleaseValue(outputs[i]);
    }
    return hash;
}
