/*
 * OrtEp::Compile: a fused graph becomes an engine, or an EPContext node gives one back; either becomes an inner session.
 *
 * One engine is in memory at a time. Its bytes are freed when the inner session exists. All of an engine's I/O goes through
 * ortcrypt_ep_context: the application's callback, else a file.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lists.h"
#include "reference_ep.h"
#include "weightless.h"

enum {
    STEM_MAX = 100, /* bytes of a model's name that go into an engine's */
    FEW_ENGINES = 4 /* up to here each inner session has ORT's default threads */
};

/* protobuf's limit and the header; checked before anything is parsed */
static const size_t ENGINE_MAX = (size_t)INT32_MAX + OC_REF_ENGINE_HEADER_LEN;

/* The last part of a path without ".onnx" and "_ctx", made fit for a file name; "engine" when nothing is left. */
static void stem_of(const char *path, char stem[STEM_MAX + 1])
{
    const char *const slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *const last = slash != NULL ? slash + 1 : path != NULL ? path : "";
    size_t len = strlen(last);
    len -= len > 5 && strcmp(last + len - 5, ".onnx") == 0 ? 5 : 0;
    len -= len > 4 && strncmp(last + len - 4, "_ctx", 4) == 0 ? 4 : 0;
    len = len < STEM_MAX ? len : STEM_MAX;
    for (size_t i = 0; i < len; i++) {
        const unsigned char byte = (unsigned char)last[i];
        stem[i] = isalnum(byte) || byte == '-' || byte == '.' || byte == '_' ? last[i] : '_';
    }
    stem[len] = '\0';
    if (len == 0 || stem[0] == '.') {
        (void)snprintf(stem, STEM_MAX + 1, "engine");
    }
}

/* "<stem>_[<prefix>]OrtcryptReference_<n>.bin": unique among the engines of a model, and without a folder. */
static OrtStatus *engine_name(const oc_ref_ep *self, const OrtGraph *graph, size_t number, char *name, size_t room)
{
    char stem[STEM_MAX + 1];
    char prefix[STEM_MAX + 1] = "";
    const char *path = self->options.context_path;
    if (path == NULL) {
        OrtStatus *const status = self->factory->api->Graph_GetModelPath(graph, &path);
        if (status != NULL) {
            return status;
        }
    }
    stem_of(path, stem);
    if (self->options.prefix != NULL) {
        stem_of(self->options.prefix, prefix);
    }
    (void)snprintf(name, room, "%s_%s" OC_REF_NAME "_%zu.bin", stem, prefix, number);
    return NULL;
}

/* weightless: weights that the source model has stay out. */
static OrtStatus *make_bytes(const oc_ref_ep *self, const OrtGraph *graph, const OrtNode *fused, bool weightless,
                             oc_ref_bytes *bytes)
{
    const OrtApi *const api = self->factory->api;
    oc_ref_bytes rows = {NULL, 0, 0, false};
    oc_ref_engine_begin(bytes);
    OrtStatus *status = oc_ref_put_model(self, bytes, graph, fused, weightless ? &rows : NULL);
    if (status == NULL && bytes->len > ENGINE_MAX) {
        status = oc_ref_status(api, ORT_NOT_IMPLEMENTED, "an engine of %zu bytes is above protobuf's limit of 2 GiB",
                               bytes->len);
    }
    if (status == NULL) {
        oc_ref_engine_end(bytes, self->factory, &rows);
        status = bytes->failed ? oc_ref_status(api, ORT_FAIL, "no memory for an engine") : NULL;
    }
    oc_ref_free(&rows);
    return status;
}

/* The EPContext node; with embed mode 0 the engine is handed over first. */
static OrtStatus *make_context(const oc_ref_ep *self, const OrtGraph *graph, const OrtNode *fused, const char *name,
                               const oc_ref_bytes *bytes, OrtNode **node)
{
    if (self->options.embed) {
        return oc_ref_context_node(self, fused, bytes->data, bytes->len, node);
    }
    OrtStatus *const status = ortcrypt_ep_context_write(self->io, name, NULL, graph, bytes->data, bytes->len);
    return status != NULL ? status : oc_ref_context_node(self, fused, name, strlen(name), node);
}

/* `whole`: the engine's model and, behind it, the weights that the source model has. */
static OrtStatus *with_weights(const oc_ref_ep *self, oc_ref_engine *engine, const oc_ref_parts *parts, oc_ref_bytes *whole)
{
    uint8_t *const at = oc_ref_append(whole, parts->onnx_len);
    if (at == NULL) {
        return oc_ref_status(self->factory->api, ORT_FAIL, "no memory for the engine \"%.200s\"", engine->name);
    }
    memcpy(at, parts->onnx, parts->onnx_len);
    OrtStatus *const status = oc_ref_source_fill(self, parts->rows, parts->rows_len, engine->name, whole);
    if (status == NULL && whole->len > (size_t)INT32_MAX) {
        return oc_ref_status(self->factory->api, ORT_NOT_IMPLEMENTED,
                             "the engine \"%.200s\" and its weights are above protobuf's limit of 2 GiB", engine->name);
    }
    engine->onnx = whole->data;
    engine->onnx_len = whole->len;
    return status;
}

/* An inner session of an engine's bytes. */
static OrtStatus *run_bytes(const oc_ref_ep *self, const void *data, size_t len, oc_ref_engine *engine, OrtNodeComputeInfo **info)
{
    oc_ref_parts parts = {NULL, 0, NULL, 0};
    oc_ref_bytes whole = {NULL, 0, 0, false};
    OrtStatus *status = oc_ref_engine_open(self->factory->api, data, len, engine->name, &parts);
    engine->onnx = parts.onnx;
    engine->onnx_len = parts.onnx_len;
    if (status == NULL && parts.rows_len != 0) {
        status = with_weights(self, engine, &parts, &whole);
    }
    if (status == NULL) {
        status = oc_ref_compute_new(self->factory, engine, info);
    }
    oc_ref_free(&whole);
    return status;
}

static OrtStatus *compile_graph(oc_ref_ep *self, const OrtGraph *graph, const OrtNode *fused, int threads,
                                OrtNodeComputeInfo **info, OrtNode **node)
{
    char name[3 * STEM_MAX];
    oc_ref_bytes bytes = {NULL, 0, 0, false};
    const bool weightless = self->options.make_context && self->options.enable_weightless;
    OrtStatus *status = engine_name(self, graph, self->engine_count, name, sizeof(name));
    if (status == NULL) {
        status = make_bytes(self, graph, fused, weightless, &bytes);
    }
    if (status == NULL && self->options.make_context) {
        status = make_context(self, graph, fused, name, &bytes, node);
    }
    self->engine_count += status == NULL ? 1 : 0;
    if (status == NULL && weightless && !self->options.compile_only) { /* what runs now has the weights at hand */
        oc_ref_free(&bytes);
        status = make_bytes(self, graph, fused, false, &bytes);
    }
    if (status == NULL && self->options.compile_only) {
        status = oc_ref_compute_none(self->factory, info);
    } else if (status == NULL) {
        oc_ref_engine engine = {.name = name, .node = fused, .fused = fused, .threads = threads};
        status = run_bytes(self, bytes.data, bytes.len, &engine, info);
    }
    oc_ref_free(&bytes);
    return status;
}

/* `content` is the attribute ep_cache_context, the engine itself or its name; `engine` says what is known of it so far. */
static OrtStatus *load_content(const oc_ref_ep *self, const OrtGraph *graph, const char *content, size_t len,
                               int64_t embed_mode, oc_ref_engine *engine, OrtNodeComputeInfo **info)
{
    const OrtApi *const api = self->factory->api;
    ortcrypt_ep_context_data read = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    const void *data = content;
    OrtStatus *status = NULL;
    if (embed_mode != 0 && embed_mode != 1) {
        return oc_ref_status(api, ORT_INVALID_GRAPH,
                             "the EPContext node \"%.200s\" has the embed mode %lld, and 0 and 1 are known",
                             engine->name, (long long)embed_mode);
    }
    if (embed_mode == 0 && strlen(content) != len) {
        return oc_ref_status(api, ORT_INVALID_GRAPH,
                             "the EPContext node \"%.200s\" names its engine with a NUL in the name", engine->name);
    }
    if (embed_mode == 0) {
        engine->name = content;
        status = ortcrypt_ep_context_read(self->io, content, graph, NULL, ENGINE_MAX, &read);
        data = read.data;
        len = read.size;
    }
    if (status == NULL) {
        status = run_bytes(self, data, len, engine, info);
    }
    ortcrypt_ep_context_data_release(&read);
    return status;
}

static OrtStatus *load_context(const oc_ref_ep *self, const OrtGraph *graph, const OrtNode *node, const OrtNode *fused,
                               int threads, OrtNodeComputeInfo **info)
{
    const OrtApi *const api = self->factory->api;
    const char *name = NULL;
    char *content = NULL;
    size_t len = 0;
    int64_t main_context = 1;
    int64_t embed_mode = 1; /* both as ORT's schema has them */
    OrtStatus *status = api->Node_GetName(node, &name);
    if (status == NULL && self->options.make_context) {
        status = oc_ref_status(api, ORT_INVALID_ARGUMENT,
                               "the model is compiled already: it has the EPContext node \"%.200s\"", name);
    }
    if (status == NULL) {
        status = oc_ref_node_int(api, node, "main_context", 1, &main_context);
    }
    if (status == NULL) {
        status = oc_ref_node_int(api, node, "embed_mode", 1, &embed_mode);
    }
    if (status == NULL && main_context != 1) {
        status = oc_ref_status(api, ORT_INVALID_GRAPH,
                               "the EPContext node \"%.200s\" has no engine of its own (main_context %lld)", name,
                               (long long)main_context);
    }
    if (status == NULL) {
        status = oc_ref_node_text(api, node, "ep_cache_context", &content, &len);
    }
    if (status == NULL && content == NULL) {
        status = oc_ref_status(api, ORT_INVALID_GRAPH, "the EPContext node \"%.200s\" has no ep_cache_context", name);
    }
    if (status == NULL) {
        oc_ref_engine engine = {.name = name, .node = node, .fused = fused, .threads = threads};
        status = load_content(self, graph, content, len, embed_mode, &engine, info);
    }
    free(content);
    return status;
}

static OrtStatus *compile_one(oc_ref_ep *self, const OrtGraph *graph, const OrtNode *fused, int threads,
                              OrtNodeComputeInfo **info, OrtNode **node)
{
    oc_ref_nodes nodes = {NULL, 0};
    bool context = false;
    OrtStatus *status = oc_ref_graph_nodes(self->factory->api, graph, &nodes);
    if (status == NULL && nodes.count == 1) {
        status = oc_ref_is_own_context(self->factory->api, nodes.items[0], &context);
    }
    if (status == NULL) {
        status = context ? load_context(self, graph, nodes.items[0], fused, threads, info)
                         : compile_graph(self, graph, fused, threads, info, node);
    }
    free(nodes.items);
    return status;
}

OrtStatus *ORT_API_CALL oc_ref_compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused_nodes, size_t count,
                                       OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    oc_ref_ep *const self = (oc_ref_ep *)ep;
    const int by_count = count > FEW_ENGINES ? 1 : 0; /* many pools of threads would only stand in each other's way */
    const int threads = self->options.threads != 0 ? self->options.threads : by_count;
    OrtStatus *status = NULL;
    size_t done = 0;
    for (; done < count && status == NULL; done++) {
        OrtNode *node = NULL;
        infos[done] = NULL;
        status = compile_one(self, graphs[done], fused_nodes[done], threads, &infos[done], &node);
        if (node != NULL) {
            context_nodes[done] = node;
        }
    }
    if (status != NULL) {
        for (size_t i = 0; i < done; i++) {
            oc_ref_compute_free(infos[i]);
            infos[i] = NULL;
            if (self->options.make_context && context_nodes[i] != NULL) {
                self->factory->api->ReleaseNode(context_nodes[i]);
                context_nodes[i] = NULL;
            }
        }
    }
    return status;
}

void ORT_API_CALL oc_ref_release_infos(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count)
{
    (void)ep;
    for (size_t i = 0; i < count; i++) {
        oc_ref_compute_free(infos[i]);
    }
}
