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
#include "reference_ep.h"

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

static OrtStatus *is_taken(const OrtApi *api, const OrtNode *node, bool *taken)
{
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
    if (status != NULL || !own_domain(domain) || subgraphs != 0 || strcmp(op_type, "EPContext") == 0) {
        return status;
    }
    bool known = false;
    status = oc_ref_attributes_known(api, node, &known);
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

static OrtStatus *take_runs(const oc_ref_ep *self, const oc_ref_nodes *nodes, OrtEpGraphSupportInfo *info)
{
    const oc_ref_factory *const factory = self->factory;
    OrtStatus *status = NULL;
    size_t start = 0;
    size_t len = 0;
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        bool taken = false;
        status = is_taken(factory->api, nodes->items[i], &taken);
        if (status == NULL && taken) {
            start = len == 0 ? i : start;
            len++;
        }
        const bool full = len != 0 && len == self->options.max_nodes;
        if (status == NULL && len != 0 && (!taken || full || i + 1 == nodes->count)) {
            status = fuse(factory, info, nodes->items + start, len, true);
            len = 0;
        }
    }
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
