/*
 * OrtEp::GetCapability: which nodes become engines.
 *
 * Nodes come in topological order, so that a run of neighbours can always be fused: no path leaves it and comes back. A run ends
 * at a node this EP does not take (one with a subgraph, or with values that are no tensors) and at max_nodes_per_engine.
 * A model that holds EPContext nodes of this EP is compiled already: those are taken, each alone, and the rest is left.
 */
#include <stdlib.h>
#include <string.h>

#include "node_fit.h"

enum { TYPED_MINOR = 32 }; /* see collect_read_by_bodies */

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

/* drop_constants: an engine that is made now holds the weights; one that was made before has them as inputs if they turned up since. */
static OrtStatus *fuse(const oc_ref_factory *factory, OrtEpGraphSupportInfo *info, const OrtNode *const *nodes,
                       size_t count, bool drop_constants)
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
    bool fed;          /* reads a value that changes from run to run: an EPContext node needs an input */
    oc_ref_names made; /* what its nodes compute */
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

/*
 * What the bodies of nodes that stay with the CPU EP read. Before 1.32 ORT does not know the type of such a value when an
 * EPContext node makes it, so the nodes that make them stay too.
 */
static OrtStatus *collect_read_by_bodies(const oc_ref_ep *self, const oc_ref_nodes *nodes, oc_ref_names *names)
{
    const OrtApi *const api = self->factory->api;
    const bool wanted = self->options.make_context && self->factory->minor < TYPED_MINOR;
    const oc_ref_names none = {NULL, 0, 0};
    OrtStatus *status = NULL;
    for (size_t i = 0; wanted && i < nodes->count && status == NULL; i++) {
        size_t bodies = 0;
        bool taken = true;
        oc_ref_values read = {NULL, 0};
        status = api->Node_GetNumSubgraphs(nodes->items[i], &bodies);
        if (status == NULL && bodies != 0) {
            status = oc_ref_node_taken(self, nodes->items[i], &none, &taken);
        }
        if (status == NULL && !taken) {
            status = oc_ref_node_implicit_inputs(api, nodes->items[i], &read);
        }
        for (size_t k = 0; k < read.count && status == NULL; k++) {
            const char *name = NULL;
            status = oc_ref_value_name(api, read.items[k], &name);
            if (status == NULL && oc_ref_names_add(names, name) < 0) {
                status = no_memory(api);
            }
        }
        free(read.items);
    }
    return status;
}

static OrtStatus *take_runs(const oc_ref_ep *self, const oc_ref_nodes *nodes, OrtEpGraphSupportInfo *info)
{
    const OrtApi *const api = self->factory->api;
    const size_t limit = self->options.max_nodes != 0 ? self->options.max_nodes : SIZE_MAX;
    run current = {0, 0, false, {NULL, 0, 0}};
    oc_ref_names read_by_bodies = {NULL, 0, 0};
    OrtStatus *status = collect_read_by_bodies(self, nodes, &read_by_bodies);
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        bool taken = false;
        status = oc_ref_node_taken(self, nodes->items[i], &read_by_bodies, &taken);
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
    oc_ref_names_free(&read_by_bodies);
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
