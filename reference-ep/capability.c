/*
 * OrtEp::GetCapability: which nodes become engines.
 *
 * Nodes come in topological order, so that a run of neighbours can always be fused: no path leaves it and comes back. A run ends
 * at a node this EP does not take (one with a subgraph, or with values that are no tensors) and at max_nodes_per_engine.
 * A model that holds EPContext nodes of this EP is compiled already: those are taken, each alone, and the rest is left.
 */
#include <stdlib.h>
#include <string.h>

#include "lists.h"
#include "names.h"
#include "reference_ep.h"

enum {
    CARRIED_MAX = 127, /* bytes: larger initializers are kept outside the protobuf by ORT */
    BODIES_MINOR = 30  /* the first runtime on which engines with bodies were seen to work; 1.24 is known not to */
};

static bool own_domain(const char *domain)
{
    return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0 || strcmp(domain, "ai.onnx.ml") == 0 ||
           strcmp(domain, "com.microsoft") == 0;
}

OrtStatus *oc_ref_is_own_context(const OrtApi *api, const OrtNode *node, bool *own)
{
    const char *op_type = NULL;
    const char *domain = NULL;
    char *source = NULL;
    size_t len = 0;
    *own = false;
    OrtStatus *status = api->Node_GetOperatorType(node, &op_type);
    if (status == NULL) {
        status = api->Node_GetDomain(node, &domain);
    }
    if (status != NULL || strcmp(op_type, "EPContext") != 0 || strcmp(domain, "com.microsoft") != 0) {
        return status;
    }
    status = oc_ref_node_text(api, node, "source", &source, &len);
    if (status == NULL && source != NULL) {
        *own = strcmp(source, OC_REF_NAME) == 0;
    }
    free(source);
    return status;
}

/* Missing optional values count as tensors. */
static OrtStatus *all_tensors(const OrtApi *api, const oc_ref_values *values, bool *all)
{
    *all = true;
    for (size_t i = 0; i < values->count && *all; i++) {
        const char *name = NULL;
        const OrtTypeInfo *type = NULL;
        const OrtTensorTypeAndShapeInfo *tensor = NULL;
        ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
        OrtStatus *status = oc_ref_value_name(api, values->items[i], &name);
        if (status == NULL && name[0] == '\0') {
            continue;
        }
        if (status == NULL) {
            status = api->GetValueInfoTypeInfo(values->items[i], &type);
        }
        if (status == NULL && type != NULL) {
            status = api->CastTypeInfoToTensorInfo(type, &tensor); /* NULL for other types */
        }
        if (status == NULL && tensor != NULL) {
            status = api->GetTensorElementType(tensor, &element);
        }
        if (status != NULL) {
            return status;
        }
        *all = tensor != NULL && oc_ref_onnx_type(element) != 0;
    }
    return NULL;
}

static OrtStatus *values_fit(const OrtApi *api, const OrtNode *node, bool *fit)
{
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values outputs = {NULL, 0};
    OrtStatus *status = oc_ref_node_inputs(api, node, &inputs);
    if (status == NULL) {
        status = all_tensors(api, &inputs, fit);
    }
    if (status == NULL && *fit) {
        status = oc_ref_node_outputs(api, node, &outputs);
    }
    if (status == NULL && *fit) {
        status = all_tensors(api, &outputs, fit);
    }
    free(inputs.items);
    free(outputs.items);
    return status;
}

/* An engine can hold everything in a node's bodies, and *heavy: ORT could not write them (see is_taken). */
static OrtStatus *bodies_fit(const OrtApi *api, const OrtNode *node, bool *fit, bool *heavy);

static OrtStatus *weighs_much(const OrtApi *api, const OrtGraph *graph, bool *heavy)
{
    oc_ref_values initializers = {NULL, 0};
    OrtStatus *status = oc_ref_graph_initializers(api, graph, &initializers);
    for (size_t i = 0; i < initializers.count && status == NULL && !*heavy; i++) {
        const OrtValue *value = NULL;
        size_t len = 0;
        status = api->ValueInfo_GetInitializerValue(initializers.items[i], &value);
        if (status == NULL && value != NULL) {
            status = oc_ref_tensor_size(api, value, &len);
        }
        *heavy = *heavy || len > CARRIED_MAX;
    }
    free(initializers.items);
    return status;
}

static OrtStatus *body_fits(const OrtApi *api, const OrtGraph *graph, bool *fit, bool *heavy)
{
    oc_ref_nodes nodes = {NULL, 0};
    OrtStatus *status = weighs_much(api, graph, heavy);
    if (status == NULL) {
        status = oc_ref_graph_nodes(api, graph, &nodes);
    }
    for (size_t i = 0; i < nodes.count && status == NULL && *fit; i++) {
        const char *domain = NULL;
        status = api->Node_GetDomain(nodes.items[i], &domain);
        if (status == NULL) {
            status = oc_ref_attributes_known(api, nodes.items[i], fit);
        }
        *fit = *fit && status == NULL && own_domain(domain);
        if (status == NULL && *fit) {
            status = bodies_fit(api, nodes.items[i], fit, heavy);
        }
    }
    free(nodes.items);
    return status;
}

static OrtStatus *bodies_fit(const OrtApi *api, const OrtNode *node, bool *fit, bool *heavy)
{
    oc_ref_bodies bodies = {NULL, NULL, 0};
    OrtStatus *status = oc_ref_node_bodies(api, node, &bodies);
    for (size_t i = 0; i < bodies.count && status == NULL && *fit; i++) {
        status = body_fits(api, bodies.items[i], fit, heavy);
    }
    oc_ref_bodies_free(&bodies);
    return status;
}

/*
 * Nodes with bodies (If, Loop, Scan) stay with the CPU EP, with one exception: up to 1.32.0 ORT cannot write a compiled model
 * in which such a node stays and has a weight of more than 127 bytes in a body (it stumbles over its own in-memory mark), so
 * when a compiled model is made, those go into an engine. Not on old runtimes: 1.24 does not tell a fused node what bodies read.
 */
static OrtStatus *body_owner_taken(const oc_ref_ep *self, const OrtNode *node, bool *taken)
{
    const bool wanted = self->options.make_context && self->factory->minor >= BODIES_MINOR;
    bool fit = true;
    bool heavy = false;
    *taken = false;
    OrtStatus *const status = wanted ? bodies_fit(self->factory->api, node, &fit, &heavy) : NULL;
    *taken = status == NULL && fit && heavy;
    return status;
}

static OrtStatus *is_taken(const oc_ref_ep *self, const OrtNode *node, bool *taken)
{
    const OrtApi *const api = self->factory->api;
    const char *op_type = NULL;
    const char *domain = NULL;
    size_t subgraphs = 0;
    *taken = false;
    OrtStatus *status = api->Node_GetDomain(node, &domain);
    if (status == NULL) {
        status = api->Node_GetOperatorType(node, &op_type);
    }
    if (status == NULL) {
        status = api->Node_GetNumSubgraphs(node, &subgraphs);
    }
    if (status != NULL || !own_domain(domain) || strcmp(op_type, "EPContext") == 0) {
        return status;
    }
    bool known = true;
    if (subgraphs != 0) {
        status = body_owner_taken(self, node, &known);
    }
    if (status == NULL && known) {
        status = oc_ref_attributes_known(api, node, &known);
    }
    return status == NULL && known ? values_fit(api, node, taken) : status;
}

/* drop_constants: an engine that is made now holds the weights; one that was made before has them as inputs if they turned up since. */
static OrtStatus *fuse(const oc_ref_factory *factory, OrtEpGraphSupportInfo *info, const OrtNode *const *nodes, size_t count,
                       bool drop_constants)
{
    OrtNodeFusionOptions options;
    memset(&options, 0, sizeof(options));
    options.ort_version_supported = factory->struct_version;
    options.drop_constant_initializers = drop_constants;
    return factory->ep_api->EpGraphSupportInfo_AddNodesToFuse(info, nodes, count, &options);
}

/* *compiled: the graph has EPContext nodes of this EP, and they are taken. */
static OrtStatus *take_contexts(const oc_ref_factory *factory, const oc_ref_nodes *nodes, OrtEpGraphSupportInfo *info,
                                bool *compiled)
{
    OrtStatus *status = NULL;
    *compiled = false;
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        bool own = false;
        status = oc_ref_is_own_context(factory->api, nodes->items[i], &own);
        if (status == NULL && own) {
            *compiled = true;
            status = fuse(factory, info, &nodes->items[i], 1, false);
        }
    }
    return status;
}

/* Neighbours that will be one engine. */
typedef struct run {
    size_t start;
    size_t len;
    bool fed;           /* reads a value that changes from run to run: an EPContext node needs an input */
    oc_ref_names made;  /* what its nodes compute */
} run;

static OrtStatus *no_memory(const OrtApi *api)
{
    return oc_ref_status(api, ORT_FAIL, "no memory for names");
}

static OrtStatus *note_values(const OrtApi *api, const oc_ref_values *values, run *of)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < values->count && status == NULL && !of->fed; i++) {
        const char *name = NULL;
        bool constant = true;
        status = oc_ref_value_name(api, values->items[i], &name);
        if (status == NULL && name[0] != '\0' && !oc_ref_names_has(&of->made, name)) {
            status = api->ValueInfo_IsConstantInitializer(values->items[i], &constant);
            of->fed = !constant;
        }
    }
    return status;
}

static OrtStatus *note_inputs(const OrtApi *api, const OrtNode *node, run *of)
{
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values implicit = {NULL, 0};
    OrtStatus *status = of->fed ? NULL : oc_ref_node_inputs(api, node, &inputs);
    if (status == NULL) {
        status = note_values(api, &inputs, of);
    }
    if (status == NULL && !of->fed) {
        status = oc_ref_node_implicit_inputs(api, node, &implicit);
    }
    if (status == NULL) {
        status = note_values(api, &implicit, of);
    }
    free(inputs.items);
    free(implicit.items);
    return status;
}

static OrtStatus *note_outputs(const OrtApi *api, const OrtNode *node, run *of)
{
    oc_ref_values outputs = {NULL, 0};
    OrtStatus *status = of->fed ? NULL : oc_ref_node_outputs(api, node, &outputs);
    for (size_t i = 0; i < outputs.count && status == NULL; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(api, outputs.items[i], &name);
        if (status == NULL && oc_ref_names_add(&of->made, name) < 0) {
            status = no_memory(api);
        }
    }
    free(outputs.items);
    return status;
}

static OrtStatus *extend(const OrtApi *api, const oc_ref_nodes *nodes, size_t index, run *of)
{
    of->start = of->len == 0 ? index : of->start;
    of->len++;
    OrtStatus *const status = note_inputs(api, nodes->items[index], of);
    return status != NULL ? status : note_outputs(api, nodes->items[index], of);
}

/* A run that nothing feeds is constant, and left to the CPU EP. */
static OrtStatus *finish(const oc_ref_factory *factory, const oc_ref_nodes *nodes, OrtEpGraphSupportInfo *info, run *of)
{
    OrtStatus *const status = of->fed ? fuse(factory, info, nodes->items + of->start, of->len, true) : NULL;
    of->len = 0;
    of->fed = false;
    oc_ref_names_free(&of->made);
    return status;
}

static OrtStatus *take_runs(const oc_ref_ep *self, const oc_ref_nodes *nodes, OrtEpGraphSupportInfo *info)
{
    const OrtApi *const api = self->factory->api;
    const size_t limit = self->options.max_nodes != 0 ? self->options.max_nodes : SIZE_MAX;
    run current = {0, 0, false, {NULL, 0, 0}};
    OrtStatus *status = NULL;
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        bool taken = false;
        status = is_taken(self, nodes->items[i], &taken);
        if (status == NULL && !taken) {
            status = finish(self->factory, nodes, info, &current);
        }
        if (status == NULL && taken) {
            status = extend(api, nodes, i, &current);
        }
        if (status == NULL && current.fed && current.len >= limit) {
            status = finish(self->factory, nodes, info, &current);
        }
    }
    if (status == NULL) {
        status = finish(self->factory, nodes, info, &current);
    }
    oc_ref_names_free(&current.made);
    return status;
}

OrtStatus *ORT_API_CALL oc_ref_get_capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info)
{
    const oc_ref_ep *const self = (const oc_ref_ep *)ep;
    const OrtNode *parent = NULL;
    oc_ref_nodes nodes = {NULL, 0};
    bool compiled = false;
    OrtStatus *status = self->factory->api->Graph_GetParentNode(graph, &parent);
    if (status != NULL || parent != NULL) {
        return status; /* bodies of If, Loop and Scan stay with the CPU EP, as their nodes do */
    }
    status = oc_ref_graph_nodes(self->factory->api, graph, &nodes);
    if (status == NULL) {
        status = take_contexts(self->factory, &nodes, info, &compiled);
    }
    if (status == NULL && !compiled) {
        status = take_runs(self, &nodes, info);
    }
    free(nodes.items);
    return status;
}
