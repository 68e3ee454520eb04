/*
 * OrtGraph -> ModelProto, with the weights in it.
 *
 * Fields (onnx.proto): ModelProto ir_version 1, producer_name 2, graph 7, opset_import 8; GraphProto node 1, name 2,
 * initializer 5, input 11, output 12, value_info 13; NodeProto input 1, output 2, name 3, op_type 4, attribute 5, domain 7; ValueInfoProto
 * name 1, type 2; TypeProto tensor_type 1; its elem_type 1, shape 2; TensorShapeProto dim 1; its dim_value 1, dim_param 2;
 * OperatorSetIdProto domain 1, version 2.
 * The model's own name, producer and metadata stay out: a runtime with telemetry would write them to a file.
 */
#include <stdlib.h>
#include <string.h>

#include "lists.h"
#include "names.h"
#include "reference_ep.h"

/* From version 4 on an initializer need not be an input, and is a constant then. */
enum { IR_VERSION_MIN = 4 };

typedef struct writer {
    const OrtApi *api;
    bool knows_scalars; /* the runtime can tell a scalar from a value without a shape (1.24) */
    oc_ref_bytes *bytes;
    oc_ref_nodes nodes;
    oc_ref_values inputs; /* of the fused node */
    oc_ref_values outputs;
    oc_ref_names made;     /* inputs and outputs of nodes: all that needs no initializer */
    oc_ref_names constants; /* names of `weights` */
    const OrtValue **weights;
    const char **weight_names;
    size_t weight_count;
} writer;

static OrtStatus *no_memory(const OrtApi *api)
{
    return oc_ref_status(api, ORT_FAIL, "no memory for an engine");
}

static OrtStatus *add_names(writer *w, const oc_ref_values *values)
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
static OrtStatus *collect_made(writer *w)
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
static OrtStatus *add_weight(writer *w, const OrtValueInfo *value)
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
        status = oc_ref_status(w->api, ORT_FAIL, "the value \"%.200s\" is neither computed nor an input nor a constant", name);
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
        if (weights == NULL || names == NULL) {
            return no_memory(w->api);
        }
    }
    w->weights[w->weight_count] = weight;
    w->weight_names[w->weight_count++] = name;
    return NULL;
}

/* Weights are what nodes read and nobody makes: also constants of an outer scope, which Graph_GetInitializers leaves out. */
static OrtStatus *collect_weights(writer *w)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < w->nodes.count && status == NULL; i++) {
        oc_ref_values inputs = {NULL, 0};
        status = oc_ref_node_inputs(w->api, w->nodes.items[i], &inputs);
        for (size_t k = 0; k < inputs.count && status == NULL; k++) {
            status = add_weight(w, inputs.items[k]);
        }
        free(inputs.items);
    }
    return status;
}

/* So that the buffer is allocated once, not grown through many copies. */
static OrtStatus *reserve(writer *w)
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

static OrtStatus *put_dimensions(writer *w, const OrtTensorTypeAndShapeInfo *info)
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

static OrtStatus *put_value_info(writer *w, unsigned field, const OrtValueInfo *value, const char *name)
{
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    OrtStatus *status = w->api->GetValueInfoTypeInfo(value, &type);
    if (status == NULL && type != NULL) {
        status = w->api->CastTypeInfoToTensorInfo(type, &info);
    }
    if (status == NULL && info == NULL) {
        status = oc_ref_status(w->api, ORT_FAIL, "the value \"%.200s\" is no tensor", name);
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

static OrtStatus *put_value_infos(writer *w, unsigned field, const oc_ref_values *values)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < values->count && status == NULL; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(w->api, values->items[i], &name);
        if (status == NULL) {
            status = put_value_info(w, field, values->items[i], name);
        }
    }
    return status;
}

/* What is known of the values in between: some of the optimizer's fusions ask for their shapes. */
static OrtStatus *put_inner_value_infos(writer *w)
{
    oc_ref_names told = {NULL, 0, 0};
    OrtStatus *status = NULL;
    int added = 0;
    for (size_t i = 0; i < w->outputs.count && status == NULL && added >= 0; i++) {
        const char *name = NULL;
        status = oc_ref_value_name(w->api, w->outputs.items[i], &name);
        added = status == NULL ? oc_ref_names_add(&told, name) : 0;
    }
    for (size_t i = 0; i < w->nodes.count && status == NULL && added >= 0; i++) {
        oc_ref_values outputs = {NULL, 0};
        status = oc_ref_node_outputs(w->api, w->nodes.items[i], &outputs);
        for (size_t k = 0; k < outputs.count && status == NULL && added >= 0; k++) {
            const char *name = NULL;
            status = oc_ref_value_name(w->api, outputs.items[k], &name);
            if (status == NULL && name[0] != '\0') {
                added = oc_ref_names_add(&told, name);
                status = added == 1 ? put_value_info(w, 13, outputs.items[k], name) : NULL;
            }
        }
        free(outputs.items);
    }
    oc_ref_names_free(&told);
    return status == NULL && added < 0 ? no_memory(w->api) : status;
}

static OrtStatus *put_names(writer *w, unsigned field, const oc_ref_values *values)
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

static OrtStatus *put_node(writer *w, const OrtNode *node)
{
    const char *name = NULL;
    const char *op_type = NULL;
    const char *domain = NULL;
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values outputs = {NULL, 0};
    const size_t mark = oc_ref_begin(w->bytes, 1);
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
        status = w->api->Node_GetName(node, &name);
    }
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
        status = oc_ref_put_attributes(w->api, w->bytes, node);
    }
    oc_ref_end(w->bytes, mark);
    free(inputs.items);
    free(outputs.items);
    return status;
}

static OrtStatus *put_graph(writer *w)
{
    OrtStatus *status = NULL;
    const size_t mark = oc_ref_begin(w->bytes, 7);
    for (size_t i = 0; i < w->nodes.count && status == NULL; i++) {
        status = put_node(w, w->nodes.items[i]);
    }
    oc_ref_put_text(w->bytes, 2, "engine");
    for (size_t i = 0; i < w->weight_count && status == NULL; i++) {
        status = oc_ref_put_tensor(w->api, w->bytes, 5, w->weight_names[i], w->weights[i]);
    }
    if (status == NULL) {
        status = put_value_infos(w, 11, &w->inputs);
    }
    if (status == NULL) {
        status = put_value_infos(w, 12, &w->outputs);
    }
    if (status == NULL) {
        status = put_inner_value_infos(w);
    }
    oc_ref_end(w->bytes, mark);
    return status;
}

/* Domains that nodes use, and the standard one, which bodies of functions may need. */
static OrtStatus *used_domains(writer *w, oc_ref_names *domains)
{
    OrtStatus *status = NULL;
    int added = oc_ref_names_add(domains, "");
    for (size_t i = 0; i < w->nodes.count && status == NULL && added >= 0; i++) {
        const char *domain = NULL;
        status = w->api->Node_GetDomain(w->nodes.items[i], &domain);
        if (status == NULL) {
            added = oc_ref_names_add(domains, domain);
        }
    }
    return status == NULL && added < 0 ? no_memory(w->api) : status;
}

/* Other domains stay out: an older runtime, which could load the rest, may not know them in that version. */
static OrtStatus *put_operator_sets(writer *w, const OrtGraph *graph)
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

static OrtStatus *collect(writer *w, const OrtGraph *graph, const OrtNode *fused)
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

OrtStatus *oc_ref_put_model(const oc_ref_factory *factory, oc_ref_bytes *bytes, const OrtGraph *graph,
                            const OrtNode *fused)
{
    const OrtApi *const api = factory->api;
    writer w;
    int64_t ir_version = 0;
    memset(&w, 0, sizeof(w));
    w.api = api;
    w.knows_scalars = factory->struct_version >= 24;
    w.bytes = bytes;
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
        status = put_graph(&w);
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
    free(w.weight_names);
    return status;
}
