/* graph_proto.h: the parts of a GraphProto, written. Everything is borrowed. */
#ifndef OC_REFERENCE_EP_GRAPH_PROTO_H
#define OC_REFERENCE_EP_GRAPH_PROTO_H

#include "lists.h"
#include "reference_ep.h"

typedef struct oc_ref_writer {
    const OrtApi *api;
    bool knows_scalars; /* the runtime can tell a scalar from a value without a shape (1.24) */
    oc_ref_bytes *bytes;
} oc_ref_writer;

/* Fields of GraphProto (onnx.proto). */
enum {
    OC_REF_GRAPH_NODE = 1,
    OC_REF_GRAPH_NAME = 2,
    OC_REF_GRAPH_INITIALIZER = 5,
    OC_REF_GRAPH_INPUT = 11,
    OC_REF_GRAPH_OUTPUT = 12,
    OC_REF_GRAPH_VALUE_INFO = 13
};

/* Nodes with their attributes, bodies (If, Loop, Scan) included. */
OrtStatus *oc_ref_put_nodes(const oc_ref_writer *w, const oc_ref_nodes *nodes);
/* Names, types and shapes; each must be a tensor. */
OrtStatus *oc_ref_put_value_infos(const oc_ref_writer *w, unsigned field, const oc_ref_values *values);
/* What is known of the nodes' outputs that are not among `outputs`: some of the optimizer's fusions ask for their shapes. */
OrtStatus *oc_ref_put_inner_value_infos(const oc_ref_writer *w, const oc_ref_nodes *nodes,
                                        const oc_ref_values *outputs);

#endif
