/*
 * format/onnx_ep_context.c: the attributes of an EPContext node. Source of names and defaults: ORT's schema of
 * com.microsoft.EPContext (embed_mode and main_context default to 1).
 */
#include <stdlib.h>
#include <string.h>

#include "format/onnx_scan.h"

enum { TYPE_INT = 2, TYPE_STRING = 3 }; /* onnx.AttributeProto.AttributeType */

typedef struct attribute {
    oc_field name;
    oc_field text;
    uint64_t type;
    uint64_t number;
    bool has_name;
    bool reference; /* ref_attr_name: the value stands elsewhere */
} attribute;

static const struct known {
    const char *name;
    uint64_t type;
} known[] = {
    {"main_context", TYPE_INT},   {"embed_mode", TYPE_INT},        {"ep_cache_context", TYPE_STRING},
    {"source", TYPE_STRING}, {"partition_name", TYPE_STRING},
};
#define KNOWN_COUNT (sizeof known / sizeof known[0])

static ortcrypt_status read_attribute(oc_scan *s, const oc_field *at, attribute *a, ortcrypt_error *err)
{
    static const oc_rule rules[] = {
        {1, OC_WIRE_LEN, OC_ONCE, "name"}, {21, OC_WIRE_LEN, OC_ONCE, "ref_attr_name"}, {20, OC_WIRE_VARINT, OC_ONCE, "type"},
        {3, OC_WIRE_VARINT, OC_ONCE, "i"}, {4, OC_WIRE_LEN, OC_ONCE, "s"},
    };
    const uint64_t end = at->off + at->len;
    uint32_t seen = 0;
    ortcrypt_status st = ORTCRYPT_OK;

    s->in.pos = at->off;
    while (st == ORTCRYPT_OK && s->in.pos < end) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = oc_proto_next(&s->in, end, &f, err);
        if (st == ORTCRYPT_OK) {
            st = oc_proto_rule(&s->in, &f, "AttributeProto", rules, sizeof rules / sizeof rules[0], &seen, &rule, err);
        }
        if (st != ORTCRYPT_OK || rule == NULL) {
            continue;
        }
        switch (f.number) {
        case 1:
            a->name = f;
            a->has_name = true;
            break;
        case 21:
            a->reference = f.len != 0;
            break;
        case 20:
            a->type = f.value;
            break;
        case 3:
            a->number = f.value;
            break;
        default:
            a->text = f;
            break;
        }
    }
    return st;
}

/* Index into `known`, KNOWN_COUNT for another attribute. */
static ortcrypt_status find_known(oc_scan *s, const attribute *a, size_t *index, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    bool equal = false;
    size_t i = 0;

    while (a->has_name && st == ORTCRYPT_OK && i < KNOWN_COUNT) {
        st = oc_proto_equals(&s->in, &a->name, known[i].name, &equal, err);
        if (equal) {
            break;
        }
        i++;
    }
    *index = a->has_name ? i : KNOWN_COUNT;
    return st;
}

/* One attribute into the node's entry. `cache` keeps ep_cache_context's place until embed_mode is known. */
static ortcrypt_status take_attribute(oc_scan *s, const oc_field *at, oc_onnx_ep_context *node, oc_field *cache,
                                      uint32_t *taken, ortcrypt_error *err)
{
    attribute a = {0};
    size_t i = KNOWN_COUNT;

    ortcrypt_status st = read_attribute(s, at, &a, err);
    if (st == ORTCRYPT_OK) {
        st = find_known(s, &a, &i, err);
    }
    if (st != ORTCRYPT_OK || i == KNOWN_COUNT) {
        return st;
    }
    if (a.reference || a.type != known[i].type || (*taken & 1u << i) != 0) {
        return oc_proto_refuse(&s->in, at->tag_off, err, "attribute %s of an EPContext node %s", known[i].name,
                               (*taken & 1u << i) != 0 ? "is there twice"
                               : a.reference           ? "refers to an attribute of a function"
                                                       : "has the wrong type");
    }
    *taken |= 1u << i;
    if (known[i].type == TYPE_INT && a.number > 1) {
        return oc_proto_refuse(&s->in, at->tag_off, err, "attribute %s of an EPContext node is neither 0 nor 1", known[i].name);
    }
    switch (i) {
    case 0:
        node->main_context = (int64_t)a.number;
        return ORTCRYPT_OK;
    case 1:
        node->embed_mode = (int64_t)a.number;
        return ORTCRYPT_OK;
    case 2:
        *cache = a.text;
        return ORTCRYPT_OK;
    default:
        return oc_proto_text(&s->in, &a.text, known[i].name, i == 3 ? &node->source : &node->partition, err);
    }
}

static ortcrypt_status read_node(oc_scan *s, const oc_field *at, oc_onnx_ep_context *node, ortcrypt_error *err)
{
    const uint64_t end = at->off + at->len;
    oc_field cache = {.off = at->off};
    uint32_t taken = 0;
    ortcrypt_status st = ORTCRYPT_OK;

    s->in.pos = at->off;
    while (st == ORTCRYPT_OK && s->in.pos < end) {
        oc_field f;
        st = oc_proto_next(&s->in, end, &f, err);
        if (st != ORTCRYPT_OK) {
            break;
        }
        if (f.number == 3) {
            st = oc_proto_text(&s->in, &f, "a node's name", &node->name, err);
        } else if (f.number == 5) {
            st = take_attribute(s, &f, node, &cache, &taken, err);
            s->in.pos = f.off + f.len;
        }
    }
    node->cache_len = cache.len;
    if (st == ORTCRYPT_OK && node->embed_mode == 0) {
        st = oc_proto_text(&s->in, &cache, "ep_cache_context", &node->cache_context, err);
    }
    return st;
}

ortcrypt_status oc_scan_ep_context(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    oc_onnx_model *const m = s->model;
    void *list = m->ep_contexts;

    ortcrypt_status st = oc_scan_room(s, &list, m->ep_context_count, &s->ep_context_cap, sizeof *m->ep_contexts,
                                      "EPContext nodes", err);
    m->ep_contexts = list;
    if (st != ORTCRYPT_OK) {
        return st;
    }
    oc_onnx_ep_context *const node = &m->ep_contexts[m->ep_context_count++];
    node->main_context = 1;
    node->embed_mode = 1;
    st = read_node(s, at, node, err);
    if (st == ORTCRYPT_OK && node->name == NULL) {
        st = oc_strdup(&node->name, "", err);
    }
    if (st == ORTCRYPT_OK && node->source == NULL) {
        st = oc_strdup(&node->source, "", err);
    }
    if (st == ORTCRYPT_OK && node->partition == NULL) {
        st = oc_strdup(&node->partition, "", err);
    }
    return st;
}
