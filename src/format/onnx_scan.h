/*
 * format/onnx_scan.h: what the scanner's files share. Private to src/format.
 * Bytes of the model -> oc_proto -> one function per message -> oc_onnx_model, which the scan owns until it succeeds.
 */
#ifndef OC_FORMAT_ONNX_SCAN_H
#define OC_FORMAT_ONNX_SCAN_H

#include "format/proto.h"

#define OC_SCAN_DEPTH_MAX 64
#define OC_SCAN_COUNT_MAX (1u << 20) /* tensors, EPContext nodes, names: each */

/* Whose nodes are being read: what they read is noted for the main graph's tensors. */
typedef enum oc_scan_scope { OC_SCOPE_ELSEWHERE, OC_SCOPE_MAIN, OC_SCOPE_BELOW } oc_scan_scope;

typedef struct oc_scan_reads { /* hashes of names; sorted at the end */
    uint64_t *items;
    size_t count;
    size_t cap;
} oc_scan_reads;

typedef struct oc_scan {
    oc_proto in;
    oc_onnx_model *model;
    size_t tensor_cap;
    size_t ep_context_cap;
    size_t name_cap;
    unsigned depth; /* messages around the current one */
    oc_scan_scope scope;
    oc_scan_reads reads[OC_SCOPE_BELOW + 1];
} oc_scan;

/* Where a TensorProto stands: what the lists want to know about it. */
typedef enum oc_tensor_place {
    OC_PLACE_MAIN,      /* initializer of the model's graph */
    OC_PLACE_SUBGRAPH,  /* initializer of another graph */
    OC_PLACE_ATTRIBUTE, /* value of an attribute, or part of a sparse tensor */
    OC_PLACE_SUBGRAPH_SPARSE /* values of a sparse initializer of another graph: its name counts */
} oc_tensor_place;

/* One more element (zeroed) at the end of a list of `size`-byte elements; *count is not raised. ORTCRYPT_E_LIMIT. */
ortcrypt_status oc_scan_room(oc_scan *s, void **list, size_t count, size_t *cap, size_t size, const char *what,
                             ortcrypt_error *err);

/* `at` is the TensorProto's, the NodeProto's field. */
ortcrypt_status oc_scan_tensor(oc_scan *s, const oc_field *at, oc_tensor_place place, ortcrypt_error *err);
/* `at` is the name of a value that a node of the current scope, or the main graph as its output, reads. */
ortcrypt_status oc_scan_read(oc_scan *s, const oc_field *at, ortcrypt_error *err);
void oc_scan_mark_reads(oc_scan *s); /* at the end, once */
void oc_scan_reads_free(oc_scan *s);
ortcrypt_status oc_scan_ep_context(oc_scan *s, const oc_field *at, ortcrypt_error *err);

/*
 * ORTCRYPT_E_INPUT, naming the kind of file, when the first bytes are those of something else. Only used to explain a refusal:
 * the bytes may stand in a good model by chance.
 */
ortcrypt_status oc_onnx_refuse_kind(const oc_source *source, const char *what, ortcrypt_error *err);
/* Always checked: ORT takes any buffer with "ORTM" at byte 4 for its own format and never reads it as protobuf. */
ortcrypt_status oc_onnx_refuse_ort_format(const oc_source *source, const char *what, ortcrypt_error *err);

#endif
