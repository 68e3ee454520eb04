/*
 * OrtGraph -> ModelProto, with the weights in it. Fields (onnx.proto): ModelProto ir_version 1, producer_name 2, graph 7,
 * opset_import 8; OperatorSetIdProto domain 1, version 2.
 * The model's own name, producer and metadata stay out: a runtime with telemetry would write them to a file.
 */
#include <stdlib.h>
#include <string.h>

#include "graph_proto.h"
#include "names.h"
#include "weightless.h"

/* From version 4 on an initializer need not be an input, and is a constant then. */
enum { IR_VERSION_MIN = 4 };

typedef struct model {
    const OrtApi *api;
    const oc_ref_ep *ep;
    oc_ref_bytes *bytes;
    oc_ref_bytes *rows; /* names of weights that stay out */
    oc_ref_nodes nodes;
    oc_ref_values inputs; /* of the fused node */
    oc_ref_values outputs;
    oc_ref_names made;      /* inputs and outputs of nodes: all that needs no initializer */
    oc_ref_names constants; /* names of `weights` */
    const OrtValue **weights;
    const OrtValueInfo **weight_infos;
    const char **weight_names;
    size_t weight_count;
} model;

static OrtStatus *no_memory(const OrtApi *api)
{
    return oc_ref_status(api, ORT_FAIL, "no memory for an engine");
}

static OrtStatus *add_names(model *w, const oc_ref_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        const char *name = NULL;
        OrtStatus *const status = oc_ref_value_name(w->api, values->items[i], &name);
        if (status != NULL) {
            return status;
        }
        if (name[0] != '\0' && oc_ref_names_add(&w->made, name) < 0) {
            return no_memory(w->api);
        }
    }
    return NULL;
}

/* Everything that comes in or is computed. */
static OrtStatus *collect_made(model *w)
{
    OrtStatus *status = add_names(w, &w->inputs);
    for (size_t i = 0; i < w->nodes.count && status == NULL; i++) {
        oc_ref_values outputs = {NULL, 0};
        status = oc_ref_node_outputs(w->api, w->nodes.items[i], &outputs);
        if (status == NULL) {
            status = add_names(w, &outputs);
        }
        free(outputs.items);
    }
    return status;
}

/* Remembers the weight behind `value` unless it is computed, comes in, or is known already. */
static OrtStatus *add_weight(model *w, const OrtValueInfo *value)
{
    const char *name = NULL;
    const OrtValue *weight = NULL;
    OrtStatus *status = oc_ref_value_name(w->api, value, &name);
    if (status != NULL || name[0] == '\0' || oc_ref_names_has(&w->made, name)) {
        return status;
    }
    const int added = oc_ref_names_add(&w->constants, name);
    if (added <= 0) {
        return added == 0 ? NULL : no_memory(w->api);
    }
    status = w->api->ValueInfo_GetInitializerValue(value, &weight);
    if (status == NULL && weight == NULL) {
        status = oc_ref_status(w->api, ORT_FAIL, "the value \"%.200s\" is neither computed nor an input nor a constant",
                               name);
    }
    if (status != NULL) {
        return status;
    }
    if ((w->weight_count & (w->weight_count - 1)) == 0) { /* doubles at every power of two */
        const size_t room = w->weight_count != 0 ? w->weight_count * 2 : 1;
        const OrtValue **const weights = realloc(w->weights, room * sizeof(*weights));
        w->weights = weights != NULL ? weights : w->weights;
        const char **const names = realloc(w->weight_names, room * sizeof(*names));
        w->weight_names = names != NULL ? names : w->weight_names;
        const OrtValueInfo **const infos = realloc(w->weight_infos, room * sizeof(*infos));
        w->weight_infos = infos != NULL ? infos : w->weight_infos;
        if (weights == NULL || names == NULL || infos == NULL) {
            return no_memory(w->api);
        }
    }
    w->weights[w->weight_count] = weight;
    w->weight_infos[w->weight_count] = value;
    w->weight_names[w->weight_count++] = name;
    return NULL;
}

static OrtStatus *add_weights(model *w, const oc_ref_values *values)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < values->count && status == NULL; i++) {
        status = add_weight(w, values->items[i]);
    }
    return status;
}

/* Weights are what nodes and their bodies read and nobody makes: also constants that Graph_GetInitializers leaves out. */
static OrtStatus *collect_weights(model *w)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < w->nodes.count && status == NULL; i++) {
        oc_ref_values inputs = {NULL, 0};
        oc_ref_values implicit = {NULL, 0};
        status = oc_ref_node_inputs(w->api, w->nodes.items[i], &inputs);
        if (status == NULL) {
            status = add_weights(w, &inputs);
        }
        if (status == NULL) {
            status = oc_ref_node_implicit_inputs(w->api, w->nodes.items[i], &implicit);
        }
        if (status == NULL) {
            status = add_weights(w, &implicit);
        }
        free(inputs.items);
        free(implicit.items);
    }
    return status;
}

/* So that the buffer is allocated once, not grown through many copies. */
static OrtStatus *reserve(model *w)
{
    size_t total = w->bytes->len + 4096;
    OrtStatus *status = NULL;
    for (size_t i = 0; i < w->weight_count && status == NULL; i++) {
        size_t len = 0;
        status = oc_ref_tensor_size(w->api, w->weights[i], &len);
        total += len + strlen(w->weight_names[i]) + 128;
    }
    total += w->nodes.count * 256;
    if (status == NULL && total > INT32_MAX) {
        return oc_ref_status(w->api, ORT_NOT_IMPLEMENTED,
                             "an engine of about %zu bytes would be above protobuf's limit of 2 GiB: the option "
                             "max_nodes_per_engine makes smaller ones",
                             total);
    }
    oc_ref_reserve(w->bytes, total);
    return status;
}

static OrtStatus *put_weight(model *w, size_t index)
{
    const char *const name = w->weight_names[index];
    const OrtValue *const value = w->weights[index];
    bool offered = false;
    OrtStatus *const status = w->rows != NULL ? oc_ref_source_offers(w->ep, name, w->weight_infos[index], value, &offered) : NULL;
    if (status != NULL || !offered) {
        return status != NULL ? status : oc_ref_put_tensor(w->api, w->bytes, OC_REF_GRAPH_INITIALIZER, name, value);
    }
    oc_ref_rows_add(w->rows, name);
    return NULL;
}

static OrtStatus *put_graph(model *w, bool knows_scalars)
{
    const oc_ref_writer writer = {w->api, knows_scalars, w->bytes};
    const size_t mark = oc_ref_begin(w->bytes, 7);
    OrtStatus *status = oc_ref_put_nodes(&writer, &w->nodes);
    oc_ref_put_text(w->bytes, OC_REF_GRAPH_NAME, "engine");
    for (size_t i = 0; i < w->weight_count && status == NULL; i++) {
        status = put_weight(w, i);
    }
    if (status == NULL) {
        status = oc_ref_put_value_infos(&writer, OC_REF_GRAPH_INPUT, &w->inputs);
    }
    if (status == NULL) {
        status = oc_ref_put_value_infos(&writer, OC_REF_GRAPH_OUTPUT, &w->outputs);
    }
    if (status == NULL) {
        status = oc_ref_put_inner_value_infos(&writer, &w->nodes, &w->outputs);
    }
    oc_ref_end(w->bytes, mark);
    return status;
}

/* Domains that nodes use, those of their bodies included. */
static OrtStatus *add_domains(const OrtApi *api, const oc_ref_nodes *nodes, oc_ref_names *domains)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        const char *domain = NULL;
        oc_ref_bodies bodies = {NULL, NULL, 0};
        status = api->Node_GetDomain(nodes->items[i], &domain);
        if (status == NULL && oc_ref_names_add(domains, domain) < 0) {
            status = no_memory(api);
        }
        if (status == NULL) {
            status = oc_ref_node_bodies(api, nodes->items[i], &bodies);
        }
        for (size_t k = 0; k < bodies.count && status == NULL; k++) {
            oc_ref_nodes inner = {NULL, 0};
            status = oc_ref_graph_nodes(api, bodies.items[k], &inner);
            if (status == NULL) {
                status = add_domains(api, &inner, domains);
            }
            free(inner.items);
        }
        oc_ref_bodies_free(&bodies);
    }
    return status;
}

/* And the standard one, which bodies of functions may need. */
static OrtStatus *used_domains(model *w, oc_ref_names *domains)
{
    return oc_ref_names_add(domains, "") < 0 ? no_memory(w->api) : add_domains(w->api, &w->nodes, domains);
}

/* Other domains stay out: an older runtime, which could load the rest, may not know them in that version. */
static OrtStatus *put_operator_sets(model *w, const OrtGraph *graph)
{
    size_t count = 0;
    const char **domains = NULL;
    int64_t *versions = NULL;
    oc_ref_names used = {NULL, 0, 0};
    OrtStatus *status = w->api->Graph_GetNumOperatorSets(graph, &count);
    if (status == NULL) {
        domains = calloc(count + 1, sizeof(*domains));
        versions = calloc(count + 1, sizeof(*versions));
        status = domains == NULL || versions == NULL ? no_memory(w->api)
                                                     : w->api->Graph_GetOperatorSets(graph, domains, versions, count);
    }
    if (status == NULL) {
        status = used_domains(w, &used);
    }
    for (size_t i = 0; i < count && status == NULL; i++) {
        if (oc_ref_names_has(&used, domains[i])) {
            const size_t mark = oc_ref_begin(w->bytes, 8);
            oc_ref_put_text(w->bytes, 1, domains[i]);
            oc_ref_put_int(w->bytes, 2, versions[i]);
            oc_ref_end(w->bytes, mark);
        }
    }
    oc_ref_names_free(&used);
    free(domains);
    free(versions);
    return status;
}

static OrtStatus *collect(model *w, const OrtGraph *graph, const OrtNode *fused)
{
    OrtStatus *status = oc_ref_graph_nodes(w->api, graph, &w->nodes);
    if (status == NULL) {
        status = oc_ref_node_inputs(w->api, fused, &w->inputs);
    }
    if (status == NULL) {
        status = oc_ref_node_outputs(w->api, fused, &w->outputs);
    }
    if (status == NULL) {
        status = collect_made(w);
    }
    return status == NULL ? collect_weights(w) : status;
}

OrtStatus *oc_ref_put_model(const oc_ref_ep *ep, oc_ref_bytes *bytes, const OrtGraph *graph, const OrtNode *fused,
                            oc_ref_bytes *rows)
{
    const OrtApi *const api = ep->factory->api;
    model w;
    int64_t ir_version = 0;
    memset(&w, 0, sizeof(w));
    w.api = api;
    w.ep = ep;
    w.bytes = bytes;
    w.rows = rows;
    OrtStatus *status = collect(&w, graph, fused);
    if (status == NULL) {
        status = reserve(&w);
    }
    if (status == NULL) {
        status = api->Graph_GetOnnxIRVersion(graph, &ir_version);
    }
    if (status == NULL) {
        oc_ref_put_int(bytes, 1, ir_version > IR_VERSION_MIN ? ir_version : IR_VERSION_MIN);
        oc_ref_put_text(bytes, 2, "ortcrypt");
        status = put_operator_sets(&w, graph);
    }
    if (status == NULL) {
        status = put_graph(&w, ep->factory->struct_version >= 24);
    }
    if (status == NULL && bytes->failed) {
        status = no_memory(api);
    }
    oc_ref_names_free(&w.made);
    oc_ref_names_free(&w.constants);
    free(w.nodes.items);
    free(w.inputs.items);
    free(w.outputs.items);
    free(w.weights);
    free(w.weight_infos);
    free(w.weight_names);
    return status;
}
