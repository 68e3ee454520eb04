/* node_fit.h: which nodes the EP takes. */
#ifndef OC_REFERENCE_EP_NODE_FIT_H
#define OC_REFERENCE_EP_NODE_FIT_H

#include "lists.h"
#include "names.h"
#include "reference_ep.h"

/* *taken: `node` can be part of an engine. read_by_bodies: values that nodes of this EP must not make. */
OrtStatus *oc_ref_node_taken(const oc_ref_ep *self, const OrtNode *node, const oc_ref_names *read_by_bodies,
                             bool *taken);

#endif
