/* ORT's arrays, fetched. */
#include "lists.h"

#include <stdlib.h>

static OrtStatus *no_memory(const OrtApi *api)
{
    return oc_ref_status(api, ORT_FAIL, "no memory for a list of a graph");
}

OrtStatus *oc_ref_graph_nodes(const OrtApi *api, const OrtGraph *graph, oc_ref_nodes *out)
{
    size_t count = 0;
    OrtStatus *status = api->Graph_GetNumNodes(graph, &count);
    if (status != NULL) {
        return status;
    }
    const OrtNode **const items = calloc(count + 1, sizeof(*items));
    if (items == NULL) {
        return no_memory(api);
    }
    status = api->Graph_GetNodes(graph, items, count);
    if (status != NULL) {
        free(items);
        return status;
    }
    out->items = items;
    out->count = count;
    return NULL;
}

typedef OrtStatus *(ORT_API_CALL *node_fetch)(const OrtNode *node, const OrtValueInfo **items, size_t count);
typedef OrtStatus *(ORT_API_CALL *graph_fetch)(const OrtGraph *graph, const OrtValueInfo **items, size_t count);

/* `count` is there already, with what became of fetching it. Of node and graph one is NULL, and so is its function. */
static OrtStatus *fetch_values(const OrtApi *api, OrtStatus *counted, size_t count, const OrtNode *node,
                               node_fetch of_node, const OrtGraph *graph, graph_fetch of_graph, oc_ref_values *out)
{
    OrtStatus *status = counted;
    if (status != NULL) {
        return status;
    }
    const OrtValueInfo **const items = calloc(count + 1, sizeof(*items));
    if (items == NULL) {
        return no_memory(api);
    }
    status = node != NULL ? of_node(node, items, count) : of_graph(graph, items, count);
    if (status != NULL) {
        free(items);
        return status;
    }
    out->items = items;
    out->count = count;
    return NULL;
}

OrtStatus *oc_ref_node_inputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *const counted = api->Node_GetNumInputs(node, &count);
    return fetch_values(api, counted, count, node, api->Node_GetInputs, NULL, NULL, out);
}

OrtStatus *oc_ref_node_outputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *const counted = api->Node_GetNumOutputs(node, &count);
    return fetch_values(api, counted, count, node, api->Node_GetOutputs, NULL, NULL, out);
}

OrtStatus *oc_ref_node_implicit_inputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *const counted = api->Node_GetNumImplicitInputs(node, &count);
    return fetch_values(api, counted, count, node, api->Node_GetImplicitInputs, NULL, NULL, out);
}

OrtStatus *oc_ref_graph_inputs(const OrtApi *api, const OrtGraph *graph, oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *const counted = api->Graph_GetNumInputs(graph, &count);
    return fetch_values(api, counted, count, NULL, NULL, graph, api->Graph_GetInputs, out);
}

OrtStatus *oc_ref_graph_outputs(const OrtApi *api, const OrtGraph *graph, oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *const counted = api->Graph_GetNumOutputs(graph, &count);
    return fetch_values(api, counted, count, NULL, NULL, graph, api->Graph_GetOutputs, out);
}

OrtStatus *oc_ref_graph_initializers(const OrtApi *api, const OrtGraph *graph, oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *const counted = api->Graph_GetNumInitializers(graph, &count);
    return fetch_values(api, counted, count, NULL, NULL, graph, api->Graph_GetInitializers, out);
}

OrtStatus *oc_ref_node_bodies(const OrtApi *api, const OrtNode *node, oc_ref_bodies *out)
{
    oc_ref_bodies found = {NULL, NULL, 0};
    OrtStatus *status = api->Node_GetNumSubgraphs(node, &found.count);
    if (status != NULL || found.count == 0) {
        *out = found;
        return status;
    }
    found.items = calloc(found.count, sizeof(*found.items));
    found.names = calloc(found.count, sizeof(*found.names));
    status = found.items == NULL || found.names == NULL
                 ? no_memory(api)
                 : api->Node_GetSubgraphs(node, found.items, found.count, found.names);
    if (status != NULL) {
        oc_ref_bodies_free(&found);
    }
    *out = found;
    return status;
}

void oc_ref_bodies_free(oc_ref_bodies *bodies)
{
    const oc_ref_bodies none = {NULL, NULL, 0};
    free(bodies->items);
    free(bodies->names);
    *bodies = none;
}

OrtStatus *oc_ref_value_name(const OrtApi *api, const OrtValueInfo *value, const char **name)
{
    *name = "";
    return value == NULL ? NULL : api->GetValueInfoName(value, name);
}
