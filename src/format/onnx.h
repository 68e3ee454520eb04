/*
 * format/onnx.h: a streaming scanner and splicer for ONNX protobuf files. Reads field headers only; tensor data is skipped,
 * never copied. Source: onnx.proto (ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto, FunctionProto).
 *
 * Call order: oc_onnx_scan -> use the lists -> oc_onnx_model_free. Pure: bytes come through oc_source.
 */
#ifndef OC_FORMAT_ONNX_H
#define OC_FORMAT_ONNX_H

#include "base/bytes.h"

/* Random access to bytes (a file, an encrypted asset, memory). read fills exactly len bytes. */
typedef struct oc_source {
    ortcrypt_status (*read)(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err);
    void *state;
    uint64_t size;
} oc_source;

oc_source oc_source_memory(const oc_span *span); /* the span must outlive the source */

typedef struct oc_onnx_tensor {
    char *name; /* "" for an anonymous attribute tensor */
    int dtype;
    uint64_t *shape;
    size_t rank;
    bool external;   /* data_location == EXTERNAL */
    bool main_graph; /* an initializer of ModelProto.graph; false: in a subgraph, function, attribute or sparse tensor */
    char *location;  /* external only */
    uint64_t offset; /* external_data "offset", 0 when absent */
    uint64_t length; /* external_data "length"; computed from dtype and shape when absent */
    bool has_length;
    uint64_t body_off; /* position and length of the TensorProto's bytes in the file (without its tag and length prefix) */
    uint64_t body_len;
    uint64_t raw_off; /* embedded raw_data: position and length; 0, 0 when none */
    uint64_t raw_len;
    bool movable; /* a named initializer of the main graph, embedded, whose raw_data is all its data and what type and shape give */
    bool read_main;  /* of the main graph: its name is an input of a node there, or an output of the graph */
    bool read_below; /* of the main graph: its name is an input of a node in a subgraph, where it may be another value's */
} oc_onnx_tensor;

typedef struct oc_onnx_ep_context { /* a node EPContext of domain com.microsoft, anywhere in the model */
    char *name;
    char *source;           /* attribute "source" or "" */
    char *partition;        /* "partition_name" or "" */
    int64_t main_context;   /* default 1 */
    int64_t embed_mode;     /* default 1, as ORT's schema has it */
    char *cache_context;    /* embed_mode 0: the name; embed_mode 1: NULL */
    uint64_t cache_len;     /* bytes of ep_cache_context */
} oc_onnx_ep_context;

typedef struct oc_onnx_model {
    int64_t ir_version;
    char *producer;
    size_t node_count; /* main graph */
    oc_onnx_tensor *tensors; /* every external tensor anywhere, and every embedded one that is an initializer (any graph) */
    size_t tensor_count;
    oc_onnx_ep_context *ep_contexts;
    size_t ep_context_count;
    char **subgraph_names; /* names of initializers defined in subgraphs (embedded or external) */
    size_t subgraph_name_count;
} oc_onnx_model;

/*
 * Scans a whole ModelProto. ORTCRYPT_E_INPUT with a sentence for anything that is no ONNX model (gzip, .ort flatbuffer, JSON, a
 * Git LFS pointer, an HTML page are named as such), nested deeper than 64, or cut off. `what` names the file in sentences.
 */
ortcrypt_status oc_onnx_scan(oc_onnx_model **out, const oc_source *source, const char *what, ortcrypt_error *err);
void oc_onnx_model_free(oc_onnx_model *model);

/* Tensors of the main graph whose name another one has too are not movable any more: what finds tensors by name would find either. */
ortcrypt_status oc_onnx_keep_namesakes(oc_onnx_model *model, ortcrypt_error *err);

/* Bytes of one element times the shape, rounded up for 4-bit and 2-bit types; false: unknown or string type, or overflow. */
bool oc_onnx_tensor_len(int dtype, const uint64_t *shape, size_t rank, uint64_t *len);

/*
 * Rewrites a model while streaming it to `push`: each edit replaces one tensor's data. All enclosing length prefixes are
 * recomputed. The result must stay below 2 GiB (ORTCRYPT_E_INPUT). *new_len (may be NULL) receives its length; with `push` NULL
 * that is all, and no edit's source is read.
 * OC_EDIT_INLINE: data_location/external_data are dropped, raw_data = `length` bytes of edit.source from edit.offset.
 * OC_EDIT_RELOCATE: location, offset and length are replaced by edit.location/offset/length; an embedded tensor becomes an external one.
 */
typedef enum oc_onnx_edit_kind { OC_EDIT_INLINE, OC_EDIT_RELOCATE } oc_onnx_edit_kind;
typedef struct oc_onnx_edit {
    size_t tensor; /* index into model->tensors; edits are given in ascending body_off */
    oc_onnx_edit_kind kind;
    const oc_source *source;
    const char *location;
    uint64_t offset;
    uint64_t length;
} oc_onnx_edit;
typedef ortcrypt_status (*oc_push_fn)(void *state, const void *data, size_t len, ortcrypt_error *err);
ortcrypt_status oc_onnx_rewrite(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                                size_t edit_count, oc_push_fn push, void *push_state, uint64_t *new_len,
                                ortcrypt_error *err);

/* A location as ORT's in-memory lookup matches it: relative, no "..", no "." inside, no "//"; leading "./" allowed. */
bool oc_onnx_location_plain(const char *location);

#endif
