/*
 * The compute side of one engine: an inner session of ORT's CPU EP.
 *
 * ONNX bytes -> inner session (copies what it needs) -> OrtNodeComputeInfo, which ORT hands back to oc_ref_release_infos.
 * The inner session lives in the process's one OrtEnv, which the outer session keeps alive longer than this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lists.h"
#include "reference_ep.h"

typedef struct compute {
    OrtNodeComputeInfo ort; /* first: ORT's pointer is ours */
    const OrtApi *api;
    OrtSession *session;
    char **input_names; /* heap, and so is each */
    size_t input_count;
    char **output_names;
    size_t output_count;
} compute;

static OrtStatus *ORT_API_CALL create_state(OrtNodeComputeInfo *info, OrtNodeComputeContext *context, void **state)
{
    (void)context;
    *state = info;
    return NULL;
}

static void ORT_API_CALL release_state(OrtNodeComputeInfo *info, void *state)
{
    (void)info;
    (void)state; /* is the info itself */
}

static OrtStatus *ORT_API_CALL run_engine(OrtNodeComputeInfo *info, void *state, OrtKernelContext *context)
{
    (void)state;
    const compute *const self = (const compute *)info;
    if (self->session == NULL) {
        return oc_ref_status(self->api, ORT_FAIL, "this session was made for compiling only");
    }
    return oc_ref_run(self->api, self->session, (const char *const *)self->input_names, self->input_count,
                      (const char *const *)self->output_names, self->output_count, context);
}

typedef OrtStatus *(ORT_API_CALL *count_function)(const OrtSession *session, size_t *count);
typedef OrtStatus *(ORT_API_CALL *name_function)(const OrtSession *session, size_t index, OrtAllocator *allocator,
                                                 char **name);
typedef OrtStatus *(*values_function)(const OrtApi *api, const OrtNode *node, oc_ref_values *out);

/* One side of an engine: inputs or outputs. */
typedef struct side {
    const char *what;
    count_function count_of;
    name_function name_of;
    values_function values_of;
    bool all; /* each of the engine's must be connected */
} side;

/* Where `name` is among the values of the engine's node; node_values->count when it is not. */
static OrtStatus *position_of(const OrtApi *api, const oc_ref_values *values, const char *name, size_t *position)
{
    OrtStatus *status = NULL;
    for (*position = 0; *position < values->count && status == NULL; (*position)++) {
        const char *candidate = NULL;
        status = oc_ref_value_name(api, values->items[*position], &candidate);
        if (status == NULL && strcmp(candidate, name) == 0) {
            break;
        }
    }
    return status;
}

/* The session's name at `position`, copied to the heap. */
static OrtStatus *copy_name(const OrtApi *api, const OrtSession *session, const side *of, size_t position, char **copy)
{
    OrtAllocator *allocator = NULL;
    char *name = NULL;
    OrtStatus *status = api->GetAllocatorWithDefaultOptions(&allocator);
    if (status == NULL) {
        status = of->name_of(session, position, allocator, &name);
    }
    if (status == NULL) {
        *copy = strdup(name);
        allocator->Free(allocator, name);
        status = *copy == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for names") : NULL;
    }
    return status;
}

/*
 * The engine's names in the order in which the kernel has its values. ORT may order a node's values anew when it fuses it, so
 * they are matched by name with the engine's node, and by position with the engine.
 */
static OrtStatus *match_names(const OrtApi *api, const OrtSession *session, const oc_ref_engine *engine, const side *of,
                              char ***names, size_t *count)
{
    oc_ref_values own = {NULL, 0};
    oc_ref_values kernel = {NULL, 0};
    size_t total = 0;
    OrtStatus *status = of->count_of(session, &total);
    if (status == NULL) {
        status = of->values_of(api, engine->node, &own);
    }
    if (status == NULL) {
        status = of->values_of(api, engine->fused, &kernel);
    }
    if (status == NULL && (own.count != total || (of->all ? kernel.count != total : kernel.count > total))) {
        status = oc_ref_status(api, ORT_INVALID_GRAPH, "it has %zu %ss, and its node %zu", total, of->what,
                               own.count != total ? own.count : kernel.count);
    }
    if (status == NULL) {
        *names = calloc(kernel.count + 1, sizeof(**names));
        status = *names == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for names") : NULL;
    }
    for (*count = 0; status == NULL && *count < kernel.count; (*count)++) {
        const char *name = NULL;
        size_t position = 0;
        status = oc_ref_value_name(api, kernel.items[*count], &name);
        if (status == NULL) {
            status = position_of(api, &own, name, &position);
        }
        if (status == NULL && position == own.count) {
            status = oc_ref_status(api, ORT_INVALID_GRAPH, "its node has no %s \"%.200s\"", of->what, name);
        }
        if (status == NULL) {
            status = copy_name(api, session, of, position, &(*names)[*count]);
        }
    }
    free(own.items);
    free(kernel.items);
    return status;
}

static OrtStatus *session_options(const OrtApi *api, int threads, OrtSessionOptions **out)
{
    OrtStatus *status = api->CreateSessionOptions(out);
    if (status == NULL) {
        status = api->SetSessionGraphOptimizationLevel(*out, ORT_ENABLE_ALL);
    }
    if (status == NULL) {
        status = api->SetSessionLogSeverityLevel(*out, ORT_LOGGING_LEVEL_ERROR);
    }
    if (status == NULL && threads > 0) {
        status = api->SetIntraOpNumThreads(*out, threads);
    }
    return status;
}

static OrtStatus *create_session(const OrtApi *api, const oc_ref_engine *engine, OrtSession **session)
{
    OrtEnv *env = NULL;
    OrtSessionOptions *options = NULL;
    /* gives the process's one OrtEnv, with its settings: these are not used */
    OrtStatus *status = api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, OC_REF_NAME, &env);
    if (status == NULL) {
        status = session_options(api, engine->threads, &options);
    }
    if (status == NULL) {
        status = api->CreateSessionFromArray(env, engine->onnx, engine->onnx_len, options, session);
    }
    if (options != NULL) {
        api->ReleaseSessionOptions(options);
    }
    if (env != NULL) {
        /* not kept: a reference of ours would keep the env, and with it this library, for ever */
        api->ReleaseEnv(env);
    }
    return status;
}

static OrtStatus *start(compute *self, const oc_ref_engine *engine)
{
    const OrtApi *const api = self->api;
    const side inputs = {"input", api->SessionGetInputCount, api->SessionGetInputName, oc_ref_node_inputs, true};
    const side outputs = {"output", api->SessionGetOutputCount, api->SessionGetOutputName, oc_ref_node_outputs, false};
    OrtStatus *status = create_session(api, engine, &self->session);
    if (status == NULL) {
        status = match_names(api, self->session, engine, &inputs, &self->input_names, &self->input_count);
    }
    if (status == NULL) {
        status = match_names(api, self->session, engine, &outputs, &self->output_names, &self->output_count);
    }
    return status;
}

OrtStatus *oc_ref_compute_none(const oc_ref_factory *factory, OrtNodeComputeInfo **out)
{
    compute *const self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return oc_ref_status(factory->api, ORT_FAIL, "no memory for an engine");
    }
    self->ort.ort_version_supported = factory->struct_version;
    self->ort.CreateState = create_state;
    self->ort.Compute = run_engine;
    self->ort.ReleaseState = release_state;
    self->api = factory->api;
    *out = &self->ort;
    return NULL;
}

OrtStatus *oc_ref_compute_new(const oc_ref_factory *factory, const oc_ref_engine *engine, OrtNodeComputeInfo **out)
{
    OrtNodeComputeInfo *info = NULL;
    OrtStatus *status = oc_ref_compute_none(factory, &info);
    if (status == NULL) {
        status = start((compute *)info, engine);
    }
    if (status != NULL) {
        char what[300];
        (void)snprintf(what, sizeof(what), "the engine \"%.200s\" does not load", engine->name);
        oc_ref_compute_free(info);
        return oc_ref_explain(factory->api, status, what);
    }
    *out = info;
    return NULL;
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

void oc_ref_compute_free(OrtNodeComputeInfo *info)
{
    compute *const self = (compute *)info;
    if (self == NULL) {
        return;
    }
    if (self->session != NULL) {
        self->api->ReleaseSession(self->session);
    }
    free_names(self->input_names, self->input_count);
    free_names(self->output_names, self->output_count);
    free(self);
}
