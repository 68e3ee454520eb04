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

/* Graphs in attributes of a node (If, Loop, Scan): `names` are the attributes'. */
typedef struct oc_ref_bodies {
    const OrtGraph **items;
    const char **names;
    size_t count;
} oc_ref_bodies;

OrtStatus *oc_ref_graph_nodes(const OrtApi *api, const OrtGraph *graph, oc_ref_nodes *out);
OrtStatus *oc_ref_graph_inputs(const OrtApi *api, const OrtGraph *graph, oc_ref_values *out);
OrtStatus *oc_ref_graph_outputs(const OrtApi *api, const OrtGraph *graph, oc_ref_values *out);
OrtStatus *oc_ref_graph_initializers(const OrtApi *api, const OrtGraph *graph, oc_ref_values *out);
OrtStatus *oc_ref_node_inputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out);
OrtStatus *oc_ref_node_outputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out);
/* Values of outer graphs that the node's bodies read. */
OrtStatus *oc_ref_node_implicit_inputs(const OrtApi *api, const OrtNode *node, oc_ref_values *out);
OrtStatus *oc_ref_node_bodies(const OrtApi *api, const OrtNode *node, oc_ref_bodies *out);
void oc_ref_bodies_free(oc_ref_bodies *bodies);
OrtStatus *oc_ref_value_name(const OrtApi *api, const OrtValueInfo *value, const char **name);

#endif
