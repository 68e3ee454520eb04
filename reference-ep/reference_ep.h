/*
 * reference_ep.h: the execution provider OrtcryptReference.
 *
 * It takes runs of nodes, turns each run and its weights into an ONNX model (the "engine"), keeps the engine in an EPContext
 * node (embedded, or under a name that goes through the application's callbacks) and executes it with an inner CPU session.
 *
 * Flow of one engine: OrtGraph -> graph.c (ONNX bytes) -> engine.c (header) -> compile.c (EPContext node, ep_context helper)
 * -> compute.c (inner session). The bytes belong to compile.c and are freed as soon as the inner session exists.
 * Threads: ORT calls one OrtEp from one thread, except Compute, which is thread-safe.
 */
#ifndef OC_REFERENCE_EP_H
#define OC_REFERENCE_EP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ortcrypt/ep_context.h"

#define OC_REF_NAME "OrtcryptReference"
#define OC_REF_VENDOR "ortcrypt"
/* Session option entries of this EP; ORT puts provider options there. */
#define OC_REF_OPTION "ep.ortcryptreference."

typedef struct oc_ref_factory {
    OrtEpFactory ort; /* first: ORT's pointer is ours */
    const OrtApiBase *base;
    const OrtApi *api;
    const OrtEpApi *ep_api;
    const OrtModelEditorApi *editor;
    unsigned minor;          /* of the runtime */
    unsigned struct_version; /* highest version of ORT's structs that both sides know */
    char compatibility[160];
} oc_ref_factory;

/* What the session options say; read once in CreateEp. */
typedef struct oc_ref_options {
    bool make_context;  /* ep.context_enable */
    bool embed;         /* ep.context_embed_mode */
    bool compile_only;  /* session.compile_only, which CompileModel sets: nothing will be run */
    char *context_path; /* ep.context_file_path; NULL: not set */
    char *prefix;       /* ep.context_node_name_prefix; NULL: not set */
    size_t max_nodes;   /* nodes per engine; 0: no limit */
    int threads;        /* of an inner session; 0: ORT's default for few engines, 1 for many */
    bool enable_weightless;          /* ep.enable_weightless, which CompileModel sets when asked to */
    OrtWeightlessSupport weightless; /* option weightless: none, external or all (the default) */
} oc_ref_options;

typedef struct oc_ref_ep {
    union {
        OrtEp ort; /* first: ORT's pointer is ours */
        char room[ORTCRYPT_EP_ROOM];
    } base;
    const oc_ref_factory *factory;
    ortcrypt_ep_context *io;
    oc_ref_options options;
    size_t engine_count; /* made so far: numbers their names */
    struct oc_ref_source *source; /* the source model's weights, or NULL (weightless.h) */
} oc_ref_ep;

/* A new OrtStatus with one sentence. */
OrtStatus *oc_ref_status(const OrtApi *api, OrtErrorCode code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "<what>: <ORT's words>", with ORT's code; releases `status`. */
OrtStatus *oc_ref_explain(const OrtApi *api, OrtStatus *status, const char *what);

/* options.c */
OrtStatus *oc_ref_options_read(const OrtApi *api, const OrtSessionOptions *from, oc_ref_options *out);
void oc_ref_options_free(oc_ref_options *options);

/* capability.c: OrtEp::GetCapability. */
OrtStatus *ORT_API_CALL oc_ref_get_capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info);
/* True for an EPContext node that this EP made. */
OrtStatus *oc_ref_is_own_context(const OrtApi *api, const OrtNode *node, bool *own);

/* A growing buffer. After a failed allocation `failed` stays set and further calls do nothing. */
typedef struct oc_ref_bytes {
    uint8_t *data;
    size_t len;
    size_t capacity;
    bool failed;
} oc_ref_bytes;

/* protobuf.c: writing protobuf messages. Lengths of nested messages are five-byte varints, filled in at the end. */
uint8_t *oc_ref_append(oc_ref_bytes *bytes, size_t len); /* room for len more bytes; NULL: no memory */
void oc_ref_reserve(oc_ref_bytes *bytes, size_t capacity);
void oc_ref_free(oc_ref_bytes *bytes);
void oc_ref_put_int(oc_ref_bytes *bytes, unsigned field, int64_t value);
void oc_ref_put_float(oc_ref_bytes *bytes, unsigned field, float value);
void oc_ref_put_data(oc_ref_bytes *bytes, unsigned field, const void *data, size_t len);
void oc_ref_put_text(oc_ref_bytes *bytes, unsigned field, const char *text);
size_t oc_ref_begin(oc_ref_bytes *bytes, unsigned field); /* a nested message; its mark is for oc_ref_end */
void oc_ref_end(oc_ref_bytes *bytes, size_t mark);

/* tensor.c */
/* Size of a tensor's data, about, in bytes (strings: their text). */
OrtStatus *oc_ref_tensor_size(const OrtApi *api, const OrtValue *value, size_t *len);
/* Appends `value` as the TensorProto `field`, called `name` (NULL: none). */
OrtStatus *oc_ref_put_tensor(const OrtApi *api, oc_ref_bytes *bytes, unsigned field, const char *name,
                             const OrtValue *value);
/* Number of ONNX's TensorProto.DataType for ORT's element type; 0: none. */
int oc_ref_onnx_type(ONNXTensorElementDataType type);

/* attribute.c */
/* True when all attributes can be written into an engine (no types, no sparse tensors, no lists of tensors or graphs). */
OrtStatus *oc_ref_attributes_known(const OrtApi *api, const OrtNode *node, bool *known);
/* All but graphs, which graph_proto.c writes. */
OrtStatus *oc_ref_put_attributes(const OrtApi *api, oc_ref_bytes *bytes, const OrtNode *node);
/* *text is heap with a final NUL, *len without it; NULL and 0 when the attribute is absent. */
OrtStatus *oc_ref_node_text(const OrtApi *api, const OrtNode *node, const char *name, char **text, size_t *len);
OrtStatus *oc_ref_node_int(const OrtApi *api, const OrtNode *node, const char *name, int64_t absent, int64_t *value);

/*
 * graph.c: appends the fused graph and its weights as a ModelProto; inputs and outputs are those of `fused`, in their order.
 * Names of weights that the source model will bring go to `rows` instead (weightless.h); NULL: there are none.
 */
OrtStatus *oc_ref_put_model(const oc_ref_ep *ep, oc_ref_bytes *bytes, const OrtGraph *graph, const OrtNode *fused,
                            oc_ref_bytes *rows);

/* engine.c: the header before the ONNX bytes. */
enum { OC_REF_ENGINE_HEADER_LEN = 64, OC_REF_ENGINE_VERSION = 1, OC_REF_ENGINE_WEIGHTLESS = 2 };
void oc_ref_engine_begin(oc_ref_bytes *bytes);                              /* room for the header */
/* Fills it in, and appends the rows of a weightless engine. */
void oc_ref_engine_end(oc_ref_bytes *bytes, const oc_ref_factory *factory, const oc_ref_bytes *rows);
/* An engine's two parts, in its bytes. */
typedef struct oc_ref_parts {
    const void *onnx;
    size_t onnx_len;
    const void *rows; /* weightless.h */
    size_t rows_len;  /* 0: the weights are in it */
} oc_ref_parts;
/* Checks that all of `data` is one engine of this EP; `name` is for the sentence. */
OrtStatus *oc_ref_engine_open(const OrtApi *api, const void *data, size_t len, const char *name, oc_ref_parts *parts);

/* compile.c: OrtEp::Compile and OrtEp::ReleaseNodeComputeInfos. */
OrtStatus *ORT_API_CALL oc_ref_compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused_nodes, size_t count,
                                       OrtNodeComputeInfo **infos, OrtNode **context_nodes);
void ORT_API_CALL oc_ref_release_infos(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count);

/* context_node.c: the EPContext node of an engine. embed: `data` are the engine's bytes, else its name. */
OrtStatus *oc_ref_context_node(const oc_ref_ep *ep, const OrtNode *fused, const void *data, size_t len, OrtNode **node);

/*
 * compute.c: an inner CPU session on the ONNX bytes, which are not needed afterwards.
 * node: whose inputs and outputs the engine's are, in order (the fused node of the compilation, or the EPContext node);
 * fused: the node ORT runs, whose order the kernel has; `name` is for sentences.
 */
typedef struct oc_ref_engine {
    const void *onnx;
    size_t onnx_len;
    const char *name;
    const OrtNode *node;
    const OrtNode *fused;
    int threads; /* 0: ORT's default */
} oc_ref_engine;
OrtStatus *oc_ref_compute_new(const oc_ref_factory *factory, const oc_ref_engine *engine, OrtNodeComputeInfo **out);
/* What stands in for an engine that will not be run: CompileModel makes a session only to throw it away. */
OrtStatus *oc_ref_compute_none(const oc_ref_factory *factory, OrtNodeComputeInfo **out);
void oc_ref_compute_free(OrtNodeComputeInfo *info); /* NULL is allowed */

/* run.c: Compute's work: inputs of the kernel -> inner session -> outputs of the kernel; the names are in the kernel's order. */
OrtStatus *oc_ref_run(const OrtApi *api, OrtSession *session, const char *const *input_names, size_t input_count,
                      const char *const *output_names, size_t output_count, OrtKernelContext *context);

#endif
