/*
 * Which nodes this EP takes: those of the standard domains whose values are tensors that an EPContext node may have.
 */
#include "node_fit.h"

#include <stdlib.h>
#include <string.h>

enum {
    CARRIED_MAX = 127,  /* bytes: larger initializers are kept outside the protobuf by ORT */
    CARRIED_MINOR = 32, /* before, ORT cannot carry a body's initializers into a compiled model at all */
    BODIES_MINOR = 30   /* the first runtime on which engines with bodies were seen to work; 1.24 is known not to */
};

static bool own_domain(const char *domain)
{
    return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0 || strcmp(domain, "ai.onnx.ml") == 0 ||
           strcmp(domain, "com.microsoft") == 0;
}

/* Types that ORT's schema allows for inputs and outputs of an EPContext node: no strings, nothing below 8 bits. */
static bool context_type(ONNXTensorElementDataType type)
{
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        return true;
    default:
        return false;
    }
}

static OrtStatus *value_fits(const OrtApi *api, const OrtValueInfo *value, bool make_context, bool *fits)
{
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    bool constant = false;
    *fits = false;
    OrtStatus *status = api->GetValueInfoTypeInfo(value, &type);
    if (status == NULL && type != NULL) {
        status = api->CastTypeInfoToTensorInfo(type, &tensor); /* NULL for other types */
    }
    if (status == NULL && tensor != NULL) {
        status = api->GetTensorElementType(tensor, &element);
    }
    if (status == NULL) {
        status = api->ValueInfo_IsConstantInitializer(value, &constant); /* those stay inside */
    }
    if (status == NULL) {
        *fits = make_context && !constant ? context_type(element) : oc_ref_onnx_type(element) != 0;
    }
    return status;
}

/* Missing optional values fit. */
static OrtStatus *all_fit(const OrtApi *api, const oc_ref_values *values, bool make_context, bool *all)
{
    OrtStatus *status = NULL;
    *all = true;
    for (size_t i = 0; i < values->count && status == NULL && *all; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(api, values->items[i], &name);
        if (status == NULL && name[0] != '\0') {
            status = value_fits(api, values->items[i], make_context, all);
        }
    }
    return status;
}

static OrtStatus *has_any(const OrtApi *api, const oc_ref_values *values, const oc_ref_names *names, bool *found)
{
    OrtStatus *status = NULL;
    *found = false;
    for (size_t i = 0; i < values->count && status == NULL && !*found; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(api, values->items[i], &name);
        *found = status == NULL && oc_ref_names_has(names, name);
    }
    return status;
}

/* read_by_bodies: values that a node of this EP must not make. */
static OrtStatus *values_fit(const OrtApi *api, const OrtNode *node, bool make_context,
                             const oc_ref_names *read_by_bodies, bool *fit)
{
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values outputs = {NULL, 0};
    bool needed = false;
    OrtStatus *status = oc_ref_node_inputs(api, node, &inputs);
    if (status == NULL) {
        status = all_fit(api, &inputs, make_context, fit);
    }
    if (status == NULL && *fit) {
        status = oc_ref_node_outputs(api, node, &outputs);
    }
    if (status == NULL && *fit) {
        status = all_fit(api, &outputs, make_context, fit);
    }
    if (status == NULL && *fit) {
        status = has_any(api, &outputs, read_by_bodies, &needed);
        *fit = !needed;
    }
    free(inputs.items);
    free(outputs.items);
    return status;
}

/* An engine can hold everything in a node's bodies, and *heavy: ORT could not write them (see body_owner_taken). */
static OrtStatus *bodies_fit(const OrtApi *api, const OrtNode *node, size_t carried, bool *fit, bool *heavy);

/* Larger than `carried` bytes: *heavy; it is never reset. */
static OrtStatus *weighs_much(const OrtApi *api, const OrtGraph *graph, size_t carried, bool *heavy)
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
        *heavy = *heavy || len > carried;
    }
    free(initializers.items);
    return status;
}

static OrtStatus *body_fits(const OrtApi *api, const OrtGraph *graph, size_t carried, bool *fit, bool *heavy)
{
    oc_ref_nodes nodes = {NULL, 0};
    OrtStatus *status = weighs_much(api, graph, carried, heavy);
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
            status = bodies_fit(api, nodes.items[i], carried, fit, heavy);
        }
    }
    free(nodes.items);
    return status;
}

static OrtStatus *bodies_fit(const OrtApi *api, const OrtNode *node, size_t carried, bool *fit, bool *heavy)
{
    oc_ref_bodies bodies = {NULL, NULL, 0};
    OrtStatus *status = oc_ref_node_bodies(api, node, &bodies);
    for (size_t i = 0; i < bodies.count && status == NULL && *fit; i++) {
        status = body_fits(api, bodies.items[i], carried, fit, heavy);
    }
    oc_ref_bodies_free(&bodies);
    return status;
}

/*
 * Nodes with bodies (If, Loop, Scan) stay with the CPU EP, with one exception: ORT cannot write a compiled model in which such
 * a node stays and has a weight of more than 127 bytes in a body (up to 1.32.0; it stumbles over its own in-memory mark), or,
 * before 1.32, any weight. So when a compiled model is made, those go into an engine. Not on old runtimes: 1.24 does not tell
 * a fused node what bodies read.
 */
static OrtStatus *body_owner_taken(const oc_ref_ep *self, const OrtNode *node, bool *taken)
{
    const bool wanted = self->options.make_context && self->factory->minor >= BODIES_MINOR;
    const size_t carried = self->factory->minor < CARRIED_MINOR ? 0 : CARRIED_MAX;
    bool fit = true;
    bool heavy = false;
    *taken = false;
    OrtStatus *const status = wanted ? bodies_fit(self->factory->api, node, carried, &fit, &heavy) : NULL;
    *taken = status == NULL && fit && heavy;
    return status;
}

OrtStatus *oc_ref_node_taken(const oc_ref_ep *self, const OrtNode *node, const oc_ref_names *read_by_bodies,
                             bool *taken)
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
    return status == NULL && known ? values_fit(api, node, self->options.make_context, read_by_bodies, taken) : status;
}
