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

typedef OrtStatus *(ORT_API_CALL *count_function)(const OrtNode *node, size_t *count);
typedef OrtStatus *(ORT_API_CALL *fetch_function)(const OrtNode *node, const OrtValueInfo **items, size_t count);

static OrtStatus *fetch_values(const OrtApi *api, const OrtNode *node, count_function count_of, fetch_function fetch,
                               oc_ref_values *out)
{
    size_t count = 0;
    OrtStatus *status = count_of(node, &count);
    if (status != NULL) {
        return status;
    }
    const OrtValueInfo **const items = calloc(count + 1, sizeof(*items));
    if (items == NULL) {
        return no_memory(api);
    }
    status = fetch(node, items, count);
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
    return fetch_values(api, node, api->Node_GetNumInputs, api->Node_GetInputs, out);
}

OrtStatus *oc_ref_node_outputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out)
{
    return fetch_values(api, node, api->Node_GetNumOutputs, api->Node_GetOutputs, out);
}

OrtStatus *oc_ref_value_name(const OrtApi *api, const OrtValueInfo *value, const char **name)
{
    *name = "";
    return value == NULL ? NULL : api->GetValueInfoName(value, name);
}
