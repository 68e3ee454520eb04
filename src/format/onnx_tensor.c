/*
 * format/onnx_tensor.c: one TensorProto. What decides whether ORT opens a file is data_location alone (its HasExternalData);
 * which bytes it takes is external_data. Both must be readable in one way only.
 */
#include <stdlib.h>
#include <string.h>

#include "format/manifest.h"
#include "format/onnx_scan.h"

enum { DIMS = 1, DATA_TYPE = 2, NAME = 8, RAW_DATA = 9, EXTERNAL_DATA = 13, DATA_LOCATION = 14 };

static const oc_rule tensor_rules[] = {
    {DIMS, OC_WIRE_VARINT, OC_PACKED, "dims"},
    {DATA_TYPE, OC_WIRE_VARINT, OC_ONCE, "data_type"},
    {3, OC_WIRE_LEN, OC_ONCE, "segment"},
    {4, OC_WIRE_FIXED32, OC_PACKED, "float_data"},
    {5, OC_WIRE_VARINT, OC_PACKED, "int32_data"},
    {6, OC_WIRE_LEN, OC_MANY, "string_data"},
    {7, OC_WIRE_VARINT, OC_PACKED, "int64_data"},
    {NAME, OC_WIRE_LEN, OC_ONCE, "name"},
    {RAW_DATA, OC_WIRE_LEN, OC_ONCE, "raw_data"},
    {10, OC_WIRE_FIXED64, OC_PACKED, "double_data"},
    {11, OC_WIRE_VARINT, OC_PACKED, "uint64_data"},
    {EXTERNAL_DATA, OC_WIRE_LEN, OC_MANY, "external_data"},
    {DATA_LOCATION, OC_WIRE_VARINT, OC_ONCE, "data_location"},
};

/* A TensorProto while it is read. */
typedef struct pending {
    oc_onnx_tensor t;
    size_t shape_cap;
    char *offset;
    char *length;
    char *checksum;
    char *bad_key; /* the first key of external_data that ORT does not know */
    bool embedded; /* has data bytes of its own */
    bool typed;    /* some of them elsewhere than in raw_data, or in segments */
} pending;

static void pending_free(pending *p)
{
    free(p->t.name);
    free(p->t.shape);
    free(p->t.location);
    free(p->offset);
    free(p->length);
    free(p->checksum);
    free(p->bad_key);
}

static const char *shown(const pending *p)
{
    return p->t.name != NULL && p->t.name[0] != '\0' ? p->t.name : "without a name";
}

static ortcrypt_status add_dim(oc_scan *s, pending *p, const oc_field *f, uint64_t dim, ortcrypt_error *err)
{
    if (dim > INT64_MAX) {
        return oc_proto_refuse(&s->in, f->tag_off, err, "tensor %s has a negative dimension", shown(p));
    }
    if (p->t.rank == OC_RANK_MAX) {
        return oc_proto_refuse(&s->in, f->tag_off, err, "tensor %s has more than %d dimensions", shown(p), OC_RANK_MAX);
    }
    if (p->t.rank == p->shape_cap) {
        const size_t cap = p->shape_cap == 0 ? 4 : p->shape_cap * 2;
        uint64_t *grown = realloc(p->t.shape, cap * sizeof *grown);
        if (grown == NULL) {
            return oc_fail_memory(err, cap * sizeof *grown, "a tensor's shape");
        }
        p->t.shape = grown;
        p->shape_cap = cap;
    }
    p->t.shape[p->t.rank++] = dim;
    return ORTCRYPT_OK;
}

static ortcrypt_status read_dims(oc_scan *s, pending *p, const oc_field *f, ortcrypt_error *err)
{
    const uint64_t end = f->off + f->len;
    ortcrypt_status st = ORTCRYPT_OK;

    if (f->wire == OC_WIRE_VARINT) {
        return add_dim(s, p, f, f->value, err);
    }
    s->in.pos = f->off;
    while (st == ORTCRYPT_OK && s->in.pos < end) {
        uint64_t dim = 0;
        st = oc_proto_varint(&s->in, end, &dim, err);
        if (st == ORTCRYPT_OK) {
            st = add_dim(s, p, f, dim, err);
        }
    }
    return st;
}

/* Stores the value under its key; the key and the value are the callee's. */
static ortcrypt_status keep_entry(oc_scan *s, pending *p, const oc_field *at, char **key, char **value, ortcrypt_error *err)
{
    char **slot = NULL;

    if (strcmp(*key, "location") == 0) {
        slot = &p->t.location;
    } else if (strcmp(*key, "offset") == 0) {
        slot = &p->offset;
    } else if (strcmp(*key, "length") == 0) {
        slot = &p->length;
    } else if (strcmp(*key, "checksum") == 0) {
        slot = &p->checksum;
    } else {
        slot = &p->bad_key;
        if (*slot == NULL) {
            *slot = *key;
            *key = NULL;
        }
        return ORTCRYPT_OK;
    }
    if (*slot != NULL) {
        return oc_proto_refuse(&s->in, at->tag_off, err, "tensor %s has two external_data entries \"%s\"", shown(p), *key);
    }
    *slot = *value;
    *value = NULL;
    return ORTCRYPT_OK;
}

static ortcrypt_status read_entry(oc_scan *s, pending *p, const oc_field *at, ortcrypt_error *err)
{
    static const oc_rule rules[] = {{1, OC_WIRE_LEN, OC_ONCE, "key"}, {2, OC_WIRE_LEN, OC_ONCE, "value"}};
    const uint64_t end = at->off + at->len;
    uint32_t seen = 0;
    char *key = NULL;
    char *value = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    s->in.pos = at->off;
    while (st == ORTCRYPT_OK && s->in.pos < end) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = oc_proto_next(&s->in, end, &f, err);
        if (st == ORTCRYPT_OK) {
            st = oc_proto_rule(&s->in, &f, "StringStringEntryProto", rules, 2, &seen, &rule, err);
        }
        if (st == ORTCRYPT_OK && rule != NULL) {
            st = oc_proto_text(&s->in, &f, f.number == 1 ? "an external_data key" : "an external_data value",
                               f.number == 1 ? &key : &value, err);
        }
    }
    if (st == ORTCRYPT_OK && (key == NULL || value == NULL)) {
        st = oc_proto_refuse(&s->in, at->tag_off, err, "an external_data entry of tensor %s has no key or no value", shown(p));
    }
    if (st == ORTCRYPT_OK) {
        st = keep_entry(s, p, at, &key, &value, err);
    }
    free(key);
    free(value);
    return st;
}

static ortcrypt_status read_field(oc_scan *s, pending *p, const oc_field *f, ortcrypt_error *err)
{
    switch (f->number) {
    case DIMS:
        return read_dims(s, p, f, err);
    case DATA_TYPE:
        if (f->value > INT32_MAX) {
            return oc_proto_refuse(&s->in, f->tag_off, err, "tensor %s has no element type of ONNX", shown(p));
        }
        p->t.dtype = (int)f->value;
        return ORTCRYPT_OK;
    case NAME:
        return oc_proto_text(&s->in, f, "a tensor's name", &p->t.name, err);
    case EXTERNAL_DATA:
        return read_entry(s, p, f, err);
    case DATA_LOCATION:
        if (f->value > 1) {
            return oc_proto_refuse(&s->in, f->tag_off, err, "tensor %s has a data_location that is neither DEFAULT nor EXTERNAL",
                                   shown(p));
        }
        p->t.external = f->value == 1;
        return ORTCRYPT_OK;
    case RAW_DATA:
        p->t.raw_off = f->len != 0 ? f->off : 0;
        p->t.raw_len = f->len;
        break;
    default: /* the typed data fields and segment */
        p->typed = true;
        break;
    }
    p->embedded = p->embedded || f->len != 0;
    return ORTCRYPT_OK;
}

/* Plain decimal digits up to INT64_MAX: ORT's number parser would also take signs and spaces. Absent or empty: *value as it was. */
static bool read_number(const char *text, uint64_t *value)
{
    uint64_t number = 0;

    if (text == NULL) {
        return true;
    }
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] < '0' || text[i] > '9' || i == 19) { /* 19 digits stay below UINT64_MAX */
            return false;
        }
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    if (text[0] == '\0' || number > INT64_MAX) {
        return false;
    }
    *value = number;
    return true;
}

/* The sentence about what is wrong with an external tensor, NULL when nothing is. */
static const char *external_fault(pending *p)
{
    oc_onnx_tensor *const t = &p->t;
    uint64_t computed = 0;
    uint64_t end = 0;

    if (t->location == NULL || t->location[0] == '\0') {
        return "is external and has no location";
    }
    /* ORT's own tags for addresses in its memory: from a file they would make it read any address */
    if (strncmp(t->location, "*/_ORT_", 7) == 0) {
        return "has a location that ORT takes for a memory address";
    }
    if (p->bad_key != NULL) {
        return "has an external_data entry that is none of location, offset, length and checksum";
    }
    if (p->embedded) {
        return "is external and has embedded data too";
    }
    if (!read_number(p->offset, &t->offset)) {
        return "has an external_data offset that is no decimal number below 2^63";
    }
    if (!read_number(p->length, &t->length)) {
        return "has an external_data length that is no decimal number below 2^63";
    }
    if (!oc_onnx_tensor_len(t->dtype, t->shape, t->rank, &computed)) {
        return "is external and has an element type or a shape without a fixed size";
    }
    t->has_length = p->length != NULL && t->length != 0; /* ORT takes 0 for absent */
    if (t->has_length && t->length != computed) {
        return "has an external_data length that its type and shape do not give";
    }
    t->length = computed;
    if (!oc_add_u64(t->offset, t->length, &end) || end > INT64_MAX) {
        return "has external data beyond any file's end";
    }
    return NULL;
}

static ortcrypt_status add_subgraph_name(oc_scan *s, const char *name, ortcrypt_error *err)
{
    oc_onnx_model *const m = s->model;
    void *list = m->subgraph_names;

    ortcrypt_status st = oc_scan_room(s, &list, m->subgraph_name_count, &s->name_cap, sizeof *m->subgraph_names,
                                      "initializers in subgraphs", err);
    m->subgraph_names = list;
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&m->subgraph_names[m->subgraph_name_count], name, err);
    }
    if (st == ORTCRYPT_OK) {
        m->subgraph_name_count++;
    }
    return st;
}

/* Puts a tensor that was read into the lists that want it. */
static ortcrypt_status keep(oc_scan *s, pending *p, const oc_field *at, oc_tensor_place place, ortcrypt_error *err)
{
    oc_onnx_model *const m = s->model;
    const bool initializer = place == OC_PLACE_MAIN || place == OC_PLACE_SUBGRAPH;
    void *list = m->tensors;
    ortcrypt_status st = ORTCRYPT_OK;

    if (p->t.name == NULL) {
        st = oc_strdup(&p->t.name, "", err);
    }
    if (st == ORTCRYPT_OK && (place == OC_PLACE_SUBGRAPH || place == OC_PLACE_SUBGRAPH_SPARSE)) {
        st = add_subgraph_name(s, p->t.name, err);
    }
    if (st != ORTCRYPT_OK || (!p->t.external && !initializer)) {
        return st;
    }
    st = oc_scan_room(s, &list, m->tensor_count, &s->tensor_cap, sizeof *m->tensors, "tensors", err);
    m->tensors = list;
    if (st == ORTCRYPT_OK) {
        p->t.main_graph = place == OC_PLACE_MAIN;
        p->t.body_off = at->off;
        p->t.body_len = at->len;
        m->tensors[m->tensor_count++] = p->t;
        p->t.name = NULL;
        p->t.shape = NULL;
        p->t.location = NULL;
    }
    return st;
}

static ortcrypt_status judge(oc_scan *s, pending *p, const oc_field *at, oc_tensor_place place, ortcrypt_error *err)
{
    const bool named = p->t.name != NULL && p->t.name[0] != '\0';

    if (!p->t.external) {
        uint64_t len = 0;
        free(p->t.location);
        p->t.location = NULL;
        p->t.movable = place == OC_PLACE_MAIN && named && !p->typed && p->t.raw_len != 0 &&
                       oc_onnx_tensor_len(p->t.dtype, p->t.shape, p->t.rank, &len) && len == p->t.raw_len;
        return ORTCRYPT_OK;
    }
    if (!named && (place == OC_PLACE_MAIN || place == OC_PLACE_SUBGRAPH)) {
        return oc_proto_refuse(&s->in, at->tag_off, err, "an external initializer has no name");
    }
    const char *fault = external_fault(p);
    if (fault != NULL) {
        return oc_proto_refuse(&s->in, at->tag_off, err, "tensor %s %s", shown(p), fault);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_scan_tensor(oc_scan *s, const oc_field *at, oc_tensor_place place, ortcrypt_error *err)
{
    const uint64_t end = at->off + at->len;
    uint32_t seen = 0;
    pending p = {0};
    ortcrypt_status st = ORTCRYPT_OK;

    s->in.pos = at->off;
    while (st == ORTCRYPT_OK && s->in.pos < end) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = oc_proto_next(&s->in, end, &f, err);
        if (st == ORTCRYPT_OK) {
            st = oc_proto_rule(&s->in, &f, "TensorProto", tensor_rules, sizeof tensor_rules / sizeof tensor_rules[0], &seen,
                               &rule, err);
        }
        if (st == ORTCRYPT_OK && rule != NULL) {
            st = read_field(s, &p, &f, err);
            s->in.pos = f.off + f.len;
        }
    }
    if (st == ORTCRYPT_OK) {
        st = judge(s, &p, at, place, err);
    }
    if (st == ORTCRYPT_OK) {
        st = keep(s, &p, at, place, err);
    }
    pending_free(&p);
    return st;
}
