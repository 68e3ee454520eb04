/*
 * lists.h: what ORT's graph API gives in two calls (a count, then an array), in one. The arrays are heap (free), the items ORT's.
 * A missing optional input is NULL, or has an empty name: oc_ref_value_name gives "" for both.
 */
#ifndef OC_REFERENCE_EP_LISTS_H
#define OC_REFERENCE_EP_LISTS_H

#include "reference_ep.h"

typedef struct oc_ref_values {
    const OrtValueInfo **items;
    size_t count;
} oc_ref_values;

typedef struct oc_ref_nodes {
    const OrtNode **items;
    size_t count;
} oc_ref_nodes;

OrtStatus *oc_ref_graph_nodes(const OrtApi *api, const OrtGraph *graph, oc_ref_nodes *out);
OrtStatus *oc_ref_node_inputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out);
OrtStatus *oc_ref_node_outputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out);
OrtStatus *oc_ref_value_name(const OrtApi *api, const OrtValueInfo *value, const char **name);

#endif
