/*
 * The source model's constants, found in its bytes: initializers, and nodes Constant, of which ORT makes initializers.
 * Fields (onnx.proto): ModelProto graph 7; GraphProto node 1, initializer 5; NodeProto output 2, op_type 4, attribute 5;
 * AttributeProto name 1, t 5; TensorProto dims 1, data_type 2, name 8, data_location 14 (1: EXTERNAL).
 */
#include "weightless.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD_GRAPH = 7, FIELD_INITIALIZER = 5, FIELD_DIMS = 1, FIELD_TYPE = 2, FIELD_NAME = 8, FIELD_LOCATION = 14 };
enum { FIELD_NODE = 1, NODE_OUTPUT = 2, NODE_OP_TYPE = 4, NODE_ATTRIBUTE = 5, ATTRIBUTE_NAME = 1, ATTRIBUTE_TENSOR = 5 };
enum { RANK_MAX = 64, NAME_MAX_LEN = 4096, FIRST_MINOR = 29, GUESS_MIN_LEN = 128 };

typedef struct weight {
    const char *name; /* in the source's bytes, without a NUL */
    size_t name_len;
    const uint8_t *tensor; /* the whole TensorProto */
    size_t tensor_len;
    int64_t type;
    int64_t dims[RANK_MAX];
    size_t rank;
    bool external;
} weight;

struct oc_ref_source {
    weight *items; /* by name */
    size_t count;
};

/* A field of a message. Length-delimited ones have data and len, varints have value. */
typedef struct field {
    unsigned number;
    unsigned type;
    const uint8_t *data;
    size_t len;
    uint64_t value;
} field;

typedef struct cursor {
    const uint8_t *at;
    const uint8_t *end;
} cursor;

static bool varint(cursor *c, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

/* 1: a field; 0: the end; -1: no protobuf. */
static int next_field(cursor *c, field *f)
{
    uint64_t tag = 0;
    if (c->at == c->end) {
        return 0;
    }
    if (!varint(c, &tag) || tag >> 3 == 0 || tag >> 32 != 0) {
        return -1;
    }
    f->number = (unsigned)(tag >> 3);
    f->type = (unsigned)(tag & 7);
    f->data = c->at;
    f->len = 0;
    f->value = 0;
    if (f->type == 0) {
        return varint(c, &f->value) ? 1 : -1;
    }
    if (f->type == 2) {
        if (!varint(c, &f->value) || f->value > (uint64_t)(c->end - c->at)) {
            return -1;
        }
        f->data = c->at;
        f->len = (size_t)f->value;
    } else if (f->type == 1 || f->type == 5) {
        f->len = f->type == 1 ? 8 : 4;
        if ((size_t)(c->end - c->at) < f->len) {
            return -1;
        }
    } else {
        return -1;
    }
    c->at += f->len;
    return 1;
}

/* dims: one by one, or packed. */
static bool add_dims(weight *w, const field *f)
{
    cursor packed = {f->data, f->data + f->len};
    uint64_t value = f->value;
    bool more = f->type == 0 || packed.at < packed.end;
    while (more) {
        if ((f->type != 0 && !varint(&packed, &value)) || w->rank == RANK_MAX) {
            return false;
        }
        w->dims[w->rank++] = (int64_t)value;
        more = f->type != 0 && packed.at < packed.end;
    }
    return true;
}

static bool read_tensor(weight *w, const field *tensor)
{
    cursor c = {tensor->data, tensor->data + tensor->len};
    field f;
    int found = 0;
    w->tensor = tensor->data;
    w->tensor_len = tensor->len;
    while ((found = next_field(&c, &f)) > 0) {
        if (f.number == FIELD_DIMS && (f.type == 0 || f.type == 2)) {
            if (!add_dims(w, &f)) {
                return false;
            }
        } else if (f.number == FIELD_TYPE && f.type == 0) {
            w->type = (int64_t)f.value;
        } else if (f.number == FIELD_NAME && f.type == 2) {
            w->name = (const char *)f.data;
            w->name_len = f.len;
        } else if (f.number == FIELD_LOCATION && f.type == 0) {
            w->external = f.value == 1;
        }
    }
    return found == 0;
}

/* name NULL: the tensor's own. */
static bool add_weight(oc_ref_source *source, const field *tensor, const field *name)
{
    if ((source->count & (source->count - 1)) == 0) { /* doubles at every power of two */
        const size_t room = source->count != 0 ? source->count * 2 : 1;
        weight *const grown = realloc(source->items, room * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        source->items = grown;
    }
    weight *const w = &source->items[source->count];
    memset(w, 0, sizeof(*w));
    if (!read_tensor(w, tensor)) {
        return false;
    }
    if (name != NULL) {
        w->name = (const char *)name->data;
        w->name_len = name->len;
    }
    source->count += w->name_len != 0 ? 1 : 0;
    return true;
}

static bool is_text(const field *f, const char *text)
{
    return f->type == 2 && f->len == strlen(text) && memcmp(f->data, text, f->len) == 0;
}

/* The attribute "value" with a tensor; *tensor stays as it is otherwise. */
static bool read_attribute(const field *attribute, field *tensor)
{
    cursor c = {attribute->data, attribute->data + attribute->len};
    field f;
    field t = {0};
    bool value = false;
    int found = 0;
    while ((found = next_field(&c, &f)) > 0) {
        value = value || (f.number == ATTRIBUTE_NAME && is_text(&f, "value"));
        t = f.number == ATTRIBUTE_TENSOR && f.type == 2 ? f : t;
    }
    if (value && t.data != NULL) {
        *tensor = t;
    }
    return found == 0;
}

static bool read_node(oc_ref_source *source, const field *node)
{
    cursor c = {node->data, node->data + node->len};
    field f;
    field output = {0};
    field tensor = {0};
    bool constant = false;
    int found = 0;
    while ((found = next_field(&c, &f)) > 0) {
        constant = constant || (f.number == NODE_OP_TYPE && is_text(&f, "Constant"));
        output = f.number == NODE_OUTPUT && f.type == 2 ? f : output;
        if (f.number == NODE_ATTRIBUTE && f.type == 2 && !read_attribute(&f, &tensor)) {
            return false;
        }
    }
    return found == 0 && (!constant || output.data == NULL || tensor.data == NULL || add_weight(source, &tensor, &output));
}

static bool read_graph(oc_ref_source *source, const field *graph)
{
    cursor c = {graph->data, graph->data + graph->len};
    field f;
    int found = 0;
    while ((found = next_field(&c, &f)) > 0) {
        if (f.number == FIELD_INITIALIZER && f.type == 2 && !add_weight(source, &f, NULL)) {
            return false;
        }
        if (f.number == FIELD_NODE && f.type == 2 && !read_node(source, &f)) {
            return false;
        }
    }
    return found == 0;
}

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    const int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order != 0 ? order : a_len < b_len ? -1 : a_len > b_len;
}

static int by_name(const void *a, const void *b)
{
    const weight *const x = a;
    const weight *const y = b;
    return compare_names(x->name, x->name_len, y->name, y->name_len);
}

static bool read_model(oc_ref_source *source, const void *data, size_t len)
{
    cursor c = {data, (const uint8_t *)data + len};
    field f;
    int found = 0;
    while ((found = next_field(&c, &f)) > 0) {
        if (f.number == FIELD_GRAPH && f.type == 2 && !read_graph(source, &f)) {
            return false;
        }
    }
    if (source->count != 0) {
        qsort(source->items, source->count, sizeof(*source->items), by_name);
    }
    return found == 0;
}

OrtStatus *oc_ref_source_open(const oc_ref_factory *factory, const OrtSessionOptions *options, oc_ref_source **source)
{
    const void *data = NULL;
    size_t len = 0;
    *source = NULL;
    if (factory->minor < FIRST_MINOR) {
        return NULL;
    }
    OrtStatus *const status = factory->ep_api->SessionOptionsGetWeightlessSourceModelBuffer(options, &data, &len);
    if (status != NULL || data == NULL || len == 0) {
        return status;
    }
    oc_ref_source *const made = calloc(1, sizeof(*made));
    if (made == NULL || !read_model(made, data, len)) {
        oc_ref_source_free(made);
        return oc_ref_status(factory->api, ORT_INVALID_ARGUMENT, "the source model for weightless engines cannot be read");
    }
    *source = made;
    return NULL;
}

void oc_ref_source_free(oc_ref_source *source)
{
    if (source != NULL) {
        free(source->items);
        free(source);
    }
}

static const weight *find(const oc_ref_source *source, const char *name, size_t name_len)
{
    const weight wanted = {.name = name, .name_len = name_len};
    return source == NULL || source->count == 0
               ? NULL
               : bsearch(&wanted, source->items, source->count, sizeof(*source->items), by_name);
}

static OrtStatus *same_shape(const OrtApi *api, const weight *w, const OrtValue *value, bool *same)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    int64_t dims[RANK_MAX];
    size_t rank = 0;
    OrtStatus *status = api->GetTensorTypeAndShape(value, &info);
    if (status == NULL) {
        status = api->GetTensorElementType(info, &type);
    }
    if (status == NULL) {
        status = api->GetDimensionsCount(info, &rank);
    }
    *same = status == NULL && rank == w->rank && oc_ref_onnx_type(type) == w->type;
    if (*same) {
        status = api->GetDimensions(info, dims, rank);
        *same = status == NULL && (rank == 0 || memcmp(dims, w->dims, rank * sizeof(*dims)) == 0);
    }
    if (info != NULL) {
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    return status;
}

/* From memory, ORT 1.30 calls no weight external: with the option external all of them stay in the engine there. */
static OrtStatus *guess(const oc_ref_ep *ep, const OrtValueInfo *info, const OrtValue *value, bool *offers)
{
    const OrtApi *const api = ep->factory->api;
    OrtExternalInitializerInfo *external = NULL;
    size_t len = 0;
    OrtStatus *status = api->ValueInfo_GetExternalInitializerInfo(info, &external);
    if (status == NULL) {
        status = oc_ref_tensor_size(api, value, &len);
    }
    *offers = status == NULL && (external != NULL || (ep->options.weightless == OrtWeightlessSupport_ALL && len >= GUESS_MIN_LEN));
    if (external != NULL) {
        api->ReleaseExternalInitializerInfo(external);
    }
    return status;
}

OrtStatus *oc_ref_source_offers(const oc_ref_ep *ep, const char *name, const OrtValueInfo *info, const OrtValue *value,
                                bool *offers)
{
    if (ep->source == NULL && ep->options.enable_weightless && ep->options.weightless != OrtWeightlessSupport_NONE) {
        return guess(ep, info, value, offers);
    }
    const weight *const w = ep->options.enable_weightless ? find(ep->source, name, strlen(name)) : NULL;
    *offers = false;
    if (w == NULL || w->name_len > NAME_MAX_LEN || ep->options.weightless == OrtWeightlessSupport_NONE ||
        (ep->options.weightless == OrtWeightlessSupport_EXTERNAL_ONLY && !w->external)) {
        return NULL;
    }
    return same_shape(ep->factory->api, w, value, offers);
}

void oc_ref_rows_add(oc_ref_bytes *rows, const char *name)
{
    const size_t len = strlen(name);
    uint8_t *const at = oc_ref_append(rows, 4 + len);
    if (at != NULL) {
        for (size_t i = 0; i < 4; i++) {
            at[i] = (uint8_t)(len >> (8 * i));
        }
        memcpy(at + 4, name, len);
    }
}

OrtStatus *oc_ref_source_fill(const oc_ref_ep *ep, const void *rows, size_t rows_len, const char *engine,
                              oc_ref_bytes *model)
{
    const OrtApi *const api = ep->factory->api;
    const uint8_t *at = rows;
    const uint8_t *const end = at + rows_len;
    if (ep->source == NULL) {
        return oc_ref_status(api, ORT_INVALID_ARGUMENT,
                             "the engine \"%.200s\" is weightless, and the session options bring no source model", engine);
    }
    const size_t mark = oc_ref_begin(model, FIELD_GRAPH);
    while (at < end) {
        size_t len = 0;
        for (size_t i = 0; i < 4 && (size_t)(end - at) >= 4; i++) {
            len |= (size_t)at[i] << (8 * i);
        }
        if (end - at < 4 || len > (size_t)(end - at) - 4 || len > NAME_MAX_LEN) {
            return oc_ref_status(api, ORT_INVALID_GRAPH, "the engine \"%.200s\" has a broken list of weights", engine);
        }
        const weight *const w = find(ep->source, (const char *)at + 4, len);
        if (w == NULL || w->external) {
            return oc_ref_status(api, ORT_INVALID_ARGUMENT, "the source model has no data of \"%.*s\", which the engine \"%.200s\" needs",
                                 (int)(len < 200 ? len : 200), (const char *)at + 4, engine);
        }
        const size_t tensor = oc_ref_begin(model, FIELD_INITIALIZER);
        uint8_t *const bytes = oc_ref_append(model, w->tensor_len);
        if (bytes != NULL) {
            memcpy(bytes, w->tensor, w->tensor_len);
        }
        oc_ref_put_data(model, FIELD_NAME, w->name, w->name_len); /* of two, the last counts: a Constant's tensor has another */
        oc_ref_end(model, tensor);
        at += 4 + len;
    }
    oc_ref_end(model, mark);
    return model->failed ? oc_ref_status(api, ORT_FAIL, "no memory for the weights of \"%.200s\"", engine) : NULL;
}

OrtStatus *ORT_API_CALL oc_ref_weightless_support(const OrtEp *ep, OrtWeightlessSupport *support)
{
    *support = ((const oc_ref_ep *)ep)->options.weightless;
    return NULL;
}
