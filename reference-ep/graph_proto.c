/*
 * The parts of a GraphProto. Fields (onnx.proto): NodeProto input 1, output 2, name 3, op_type 4, attribute 5, domain 7;
 * AttributeProto name 1, g 6, type 20 (GRAPH 5); ValueInfoProto name 1, type 2; TypeProto tensor_type 1; its elem_type 1,
 * shape 2; TensorShapeProto dim 1; its dim_value 1, dim_param 2.
 */
#include "graph_proto.h"

#include <stdlib.h>

#include "names.h"

enum { ATTRIBUTE_TYPE_GRAPH = 5 };

static OrtStatus *no_memory(const OrtApi *api)
{
    return oc_ref_status(api, ORT_FAIL, "no memory for an engine");
}

static OrtStatus *put_dimensions(const oc_ref_writer *w, const OrtTensorTypeAndShapeInfo *info)
{
    size_t rank = 0;
    OrtStatus *status = w->api->GetDimensionsCount(info, &rank);
    if (status != NULL || (rank == 0 && !(w->knows_scalars && w->api->TensorTypeAndShape_HasShape(info)))) {
        return status;
    }
    int64_t *const dims = calloc(rank + 1, sizeof(*dims));
    const char **const symbols = calloc(rank + 1, sizeof(*symbols));
    status = dims == NULL || symbols == NULL ? no_memory(w->api) : w->api->GetDimensions(info, dims, rank);
    if (status == NULL) {
        status = w->api->GetSymbolicDimensions(info, symbols, rank);
    }
    if (status == NULL) {
        const size_t shape = oc_ref_begin(w->bytes, 2);
        for (size_t i = 0; i < rank; i++) {
            const size_t dim = oc_ref_begin(w->bytes, 1);
            if (dims[i] >= 0) {
                oc_ref_put_int(w->bytes, 1, dims[i]);
            } else if (symbols[i] != NULL && symbols[i][0] != '\0') {
                oc_ref_put_text(w->bytes, 2, symbols[i]);
            }
            oc_ref_end(w->bytes, dim);
        }
        oc_ref_end(w->bytes, shape);
    }
    free(dims);
    free(symbols);
    return status;
}

/* A value that is no tensor is left out, or refused when it is required. */
static OrtStatus *put_value_info(const oc_ref_writer *w, unsigned field, const OrtValueInfo *value, const char *name,
                                 bool required)
{
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    OrtStatus *status = w->api->GetValueInfoTypeInfo(value, &type);
    if (status == NULL && type != NULL) {
        status = w->api->CastTypeInfoToTensorInfo(type, &info);
    }
    if (status == NULL && info == NULL) {
        return required ? oc_ref_status(w->api, ORT_FAIL, "the value \"%.200s\" is no tensor", name) : NULL;
    }
    if (status == NULL) {
        status = w->api->GetTensorElementType(info, &element);
    }
    if (status != NULL) {
        return status;
    }
    const size_t mark = oc_ref_begin(w->bytes, field);
    oc_ref_put_text(w->bytes, 1, name);
    const size_t type_mark = oc_ref_begin(w->bytes, 2);
    const size_t tensor_mark = oc_ref_begin(w->bytes, 1);
    oc_ref_put_int(w->bytes, 1, oc_ref_onnx_type(element));
    status = put_dimensions(w, info);
    oc_ref_end(w->bytes, tensor_mark);
    oc_ref_end(w->bytes, type_mark);
    oc_ref_end(w->bytes, mark);
    return status;
}

OrtStatus *oc_ref_put_value_infos(const oc_ref_writer *w, unsigned field, const oc_ref_values *values)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < values->count && status == NULL; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(w->api, values->items[i], &name);
        if (status == NULL) {
            status = put_value_info(w, field, values->items[i], name, true);
        }
    }
    return status;
}

/* Those of `values` that `told` does not hold yet. */
static OrtStatus *put_new_value_infos(const oc_ref_writer *w, const oc_ref_values *values, oc_ref_names *told)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < values->count && status == NULL; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(w->api, values->items[i], &name);
        const int added = status == NULL && name[0] != '\0' ? oc_ref_names_add(told, name) : 0;
        if (added < 0) {
            status = no_memory(w->api);
        } else if (added > 0) {
            status = put_value_info(w, OC_REF_GRAPH_VALUE_INFO, values->items[i], name, false);
        }
    }
    return status;
}

OrtStatus *oc_ref_put_inner_value_infos(const oc_ref_writer *w, const oc_ref_nodes *nodes, const oc_ref_values *outputs)
{
    oc_ref_names told = {NULL, 0, 0};
    OrtStatus *status = NULL;
    for (size_t i = 0; i < outputs->count && status == NULL; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(w->api, outputs->items[i], &name);
        if (status == NULL && oc_ref_names_add(&told, name) < 0) {
            status = no_memory(w->api);
        }
    }
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        oc_ref_values made = {NULL, 0};
        status = oc_ref_node_outputs(w->api, nodes->items[i], &made);
        if (status == NULL) {
            status = put_new_value_infos(w, &made, &told);
        }
        free(made.items);
    }
    oc_ref_names_free(&told);
    return status;
}

static OrtStatus *put_names(const oc_ref_writer *w, unsigned field, const oc_ref_values *values)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < values->count && status == NULL; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(w->api, values->items[i], &name);
        if (status == NULL) {
            oc_ref_put_text(w->bytes, field, name); /* "" keeps the place of a missing optional one */
        }
    }
    return status;
}

static OrtStatus *put_initializers(const oc_ref_writer *w, const oc_ref_values *initializers)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < initializers->count && status == NULL; i++) {
        const char *name = NULL;
        const OrtValue *value = NULL;
        status = oc_ref_value_name(w->api, initializers->items[i], &name);
        if (status == NULL) {
            status = w->api->ValueInfo_GetInitializerValue(initializers->items[i], &value);
        }
        if (status == NULL && value == NULL) {
            status = oc_ref_status(w->api, ORT_FAIL, "the initializer \"%.200s\" has no value", name);
        }
        if (status == NULL) {
            status = oc_ref_put_tensor(w->api, w->bytes, OC_REF_GRAPH_INITIALIZER, name, value);
        }
    }
    return status;
}

/* The graph of an attribute, whole: values of outer graphs stay names. */
static OrtStatus *put_body(const oc_ref_writer *w, const OrtGraph *graph)
{
    oc_ref_nodes nodes = {NULL, 0};
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values outputs = {NULL, 0};
    oc_ref_values initializers = {NULL, 0};
    const size_t mark = oc_ref_begin(w->bytes, 6);
    OrtStatus *status = oc_ref_graph_nodes(w->api, graph, &nodes);
    if (status == NULL) {
        status = oc_ref_graph_inputs(w->api, graph, &inputs);
    }
    if (status == NULL) {
        status = oc_ref_graph_outputs(w->api, graph, &outputs);
    }
    if (status == NULL) {
        status = oc_ref_graph_initializers(w->api, graph, &initializers);
    }
    if (status == NULL) {
        status = oc_ref_put_nodes(w, &nodes);
    }
    if (status == NULL) {
        oc_ref_put_text(w->bytes, OC_REF_GRAPH_NAME, "body");
        status = put_initializers(w, &initializers);
    }
    if (status == NULL) {
        status = oc_ref_put_value_infos(w, OC_REF_GRAPH_INPUT, &inputs);
    }
    if (status == NULL) {
        status = oc_ref_put_value_infos(w, OC_REF_GRAPH_OUTPUT, &outputs);
    }
    if (status == NULL) {
        status = oc_ref_put_inner_value_infos(w, &nodes, &outputs);
    }
    oc_ref_end(w->bytes, mark);
    free(nodes.items);
    free(inputs.items);
    free(outputs.items);
    free(initializers.items);
    return status;
}

static OrtStatus *put_bodies(const oc_ref_writer *w, const OrtNode *node)
{
    oc_ref_bodies bodies = {NULL, NULL, 0};
    OrtStatus *status = oc_ref_node_bodies(w->api, node, &bodies);
    for (size_t i = 0; i < bodies.count && status == NULL; i++) {
        const size_t mark = oc_ref_begin(w->bytes, 5);
        oc_ref_put_text(w->bytes, 1, bodies.names[i]);
        oc_ref_put_int(w->bytes, 20, ATTRIBUTE_TYPE_GRAPH);
        status = put_body(w, bodies.items[i]);
        oc_ref_end(w->bytes, mark);
    }
    oc_ref_bodies_free(&bodies);
    return status;
}

/* Names of operator, domain and node. */
static OrtStatus *put_identity(const oc_ref_writer *w, const OrtNode *node)
{
    const char *name = NULL;
    const char *op_type = NULL;
    const char *domain = NULL;
    OrtStatus *status = w->api->Node_GetName(node, &name);
    if (status == NULL) {
        status = w->api->Node_GetOperatorType(node, &op_type);
    }
    if (status == NULL) {
        status = w->api->Node_GetDomain(node, &domain);
    }
    if (status == NULL) {
        oc_ref_put_text(w->bytes, 3, name);
        oc_ref_put_text(w->bytes, 4, op_type);
        oc_ref_put_text(w->bytes, 7, domain);
    }
    return status;
}

static OrtStatus *put_node(const oc_ref_writer *w, const OrtNode *node)
{
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values outputs = {NULL, 0};
    const size_t mark = oc_ref_begin(w->bytes, OC_REF_GRAPH_NODE);
    OrtStatus *status = oc_ref_node_inputs(w->api, node, &inputs);
    if (status == NULL) {
        status = put_names(w, 1, &inputs);
    }
    if (status == NULL) {
        status = oc_ref_node_outputs(w->api, node, &outputs);
    }
    if (status == NULL) {
        status = put_names(w, 2, &outputs);
    }
    if (status == NULL) {
        status = put_identity(w, node);
    }
    if (status == NULL) {
        status = oc_ref_put_attributes(w->api, w->bytes, node);
    }
    if (status == NULL) {
        status = put_bodies(w, node);
    }
    oc_ref_end(w->bytes, mark);
    free(inputs.items);
    free(outputs.items);
    return status;
}

OrtStatus *oc_ref_put_nodes(const oc_ref_writer *w, const oc_ref_nodes *nodes)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < nodes->count && status == NULL; i++) {
        status = put_node(w, nodes->items[i]);
    }
    return status;
}
