/*
 * format/onnx_scan.c: the walk over a ModelProto. See onnx.h for what is found, onnx_scan.h for who owns it.
 *
 * This is a security check: a model must not be able to show ORT a tensor that is not in the list. So whatever can hold a tensor
 * is entered (graphs, training graphs, functions, attributes of any declared type), and what readers could understand
 * differently is refused (proto.h).
 */
#include "format/onnx_scan.h"

#include <stdlib.h>
#include <string.h>

#define RULE_COUNT(rules) (sizeof(rules) / sizeof((rules)[0]))

static ortcrypt_status scan_graph(oc_scan *s, const oc_field *at, bool main, ortcrypt_error *err);

ortcrypt_status oc_scan_room(oc_scan *s, void **list, size_t count, size_t *cap, size_t size, const char *what,
                             ortcrypt_error *err)
{
    if (count >= OC_SCAN_COUNT_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%s has more than %u %s", s->in.what, OC_SCAN_COUNT_MAX, what);
    }
    if (count == *cap) {
        const size_t more = *cap == 0 ? 16 : *cap * 2;
        void *grown = realloc(*list, more * size);
        if (grown == NULL) {
            return oc_fail_memory(err, more * size, what);
        }
        *list = grown;
        *cap = more;
    }
    memset((char *)*list + count * size, 0, size);
    return ORTCRYPT_OK;
}

/* Goes into the message `at`; every enter is followed by one leave unless the scan ends. */
static ortcrypt_status enter(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    if (++s->depth > OC_SCAN_DEPTH_MAX) {
        return oc_proto_refuse(&s->in, at->tag_off, err, "it is nested deeper than %d messages", OC_SCAN_DEPTH_MAX);
    }
    s->in.pos = at->off;
    return ORTCRYPT_OK;
}

static void leave(oc_scan *s, const oc_field *at)
{
    s->in.pos = at->off + at->len;
    s->depth--;
}

static ortcrypt_status next(oc_scan *s, const oc_field *at, const char *message, const oc_rule *rules, size_t rule_count,
                            uint32_t *seen, oc_field *field, const oc_rule **rule, ortcrypt_error *err)
{
    ortcrypt_status st = oc_proto_next(&s->in, at->off + at->len, field, err);
    if (st == ORTCRYPT_OK) {
        st = oc_proto_rule(&s->in, field, message, rules, rule_count, seen, rule, err);
    }
    return st;
}

static ortcrypt_status scan_sparse(oc_scan *s, const oc_field *at, oc_tensor_place values_place, ortcrypt_error *err)
{
    static const oc_rule rules[] = {{1, OC_WIRE_LEN, OC_ONCE, "values"}, {2, OC_WIRE_LEN, OC_ONCE, "indices"}};
    uint32_t seen = 0;
    ortcrypt_status st = enter(s, at, err);

    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "SparseTensorProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st == ORTCRYPT_OK && rule != NULL) {
            st = oc_scan_tensor(s, &f, f.number == 1 ? values_place : OC_PLACE_ATTRIBUTE, err);
        }
    }
    leave(s, at);
    return st;
}

static ortcrypt_status scan_attribute(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    static const oc_rule rules[] = {
        {1, OC_WIRE_LEN, OC_ONCE, "name"},      {20, OC_WIRE_VARINT, OC_ONCE, "type"},
        {5, OC_WIRE_LEN, OC_ONCE, "t"},         {6, OC_WIRE_LEN, OC_ONCE, "g"},
        {22, OC_WIRE_LEN, OC_ONCE, "sparse_tensor"}, {10, OC_WIRE_LEN, OC_MANY, "tensors"},
        {11, OC_WIRE_LEN, OC_MANY, "graphs"},   {23, OC_WIRE_LEN, OC_MANY, "sparse_tensors"},
    };
    uint32_t seen = 0;
    ortcrypt_status st = enter(s, at, err);

    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "AttributeProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st != ORTCRYPT_OK || rule == NULL) {
            continue;
        }
        if (f.number == 5 || f.number == 10) {
            st = oc_scan_tensor(s, &f, OC_PLACE_ATTRIBUTE, err);
        } else if (f.number == 6 || f.number == 11) {
            st = scan_graph(s, &f, false, err);
        } else if (f.number == 22 || f.number == 23) {
            st = scan_sparse(s, &f, OC_PLACE_ATTRIBUTE, err);
        }
    }
    leave(s, at);
    return st;
}

static ortcrypt_status scan_node(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    static const oc_rule rules[] = {
        {3, OC_WIRE_LEN, OC_ONCE, "name"},      {4, OC_WIRE_LEN, OC_ONCE, "op_type"},  {7, OC_WIRE_LEN, OC_ONCE, "domain"},
        {5, OC_WIRE_LEN, OC_MANY, "attribute"}, {8, OC_WIRE_LEN, OC_ONCE, "overload"}, {1, OC_WIRE_LEN, OC_MANY, "input"},
    };
    uint32_t seen = 0;
    bool op = false;
    bool domain = false;
    ortcrypt_status st = enter(s, at, err);

    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "NodeProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st != ORTCRYPT_OK || rule == NULL) {
            continue;
        }
        if (f.number == 1) {
            st = oc_scan_read(s, &f, err);
        } else if (f.number == 5) {
            st = scan_attribute(s, &f, err);
        } else if (f.number == 4) {
            st = oc_proto_equals(&s->in, &f, "EPContext", &op, err);
        } else if (f.number == 7) {
            st = oc_proto_equals(&s->in, &f, "com.microsoft", &domain, err);
        }
    }
    if (st == ORTCRYPT_OK && op && domain) {
        st = oc_scan_ep_context(s, at, err);
    }
    leave(s, at);
    return st;
}

static ortcrypt_status scan_function(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    static const oc_rule rules[] = {{7, OC_WIRE_LEN, OC_MANY, "node"}, {11, OC_WIRE_LEN, OC_MANY, "attribute_proto"}};
    uint32_t seen = 0;
    ortcrypt_status st = enter(s, at, err);

    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "FunctionProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st == ORTCRYPT_OK && rule != NULL) {
            st = f.number == 7 ? scan_node(s, &f, err) : scan_attribute(s, &f, err);
        }
    }
    leave(s, at);
    return st;
}

static ortcrypt_status scan_training(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    static const oc_rule rules[] = {{1, OC_WIRE_LEN, OC_ONCE, "initialization"}, {2, OC_WIRE_LEN, OC_ONCE, "algorithm"}};
    uint32_t seen = 0;
    ortcrypt_status st = enter(s, at, err);

    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "TrainingInfoProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st == ORTCRYPT_OK && rule != NULL) {
            st = scan_graph(s, &f, false, err);
        }
    }
    leave(s, at);
    return st;
}

/* A ValueInfoProto among the main graph's outputs. */
static ortcrypt_status scan_output(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    static const oc_rule rules[] = {{1, OC_WIRE_LEN, OC_ONCE, "name"}};
    uint32_t seen = 0;
    ortcrypt_status st = enter(s, at, err);

    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "ValueInfoProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st == ORTCRYPT_OK && rule != NULL) {
            st = oc_scan_read(s, &f, err);
        }
    }
    leave(s, at);
    return st;
}

static ortcrypt_status scan_graph(oc_scan *s, const oc_field *at, bool main, ortcrypt_error *err)
{
    static const oc_rule rules[] = {
        {1, OC_WIRE_LEN, OC_MANY, "node"},
        {5, OC_WIRE_LEN, OC_MANY, "initializer"},
        {12, OC_WIRE_LEN, OC_MANY, "output"},
        {15, OC_WIRE_LEN, OC_MANY, "sparse_initializer"},
    };
    const oc_scan_scope outside = s->scope;
    uint32_t seen = 0;
    ortcrypt_status st = enter(s, at, err);

    s->scope = main ? OC_SCOPE_MAIN : outside == OC_SCOPE_ELSEWHERE ? OC_SCOPE_ELSEWHERE : OC_SCOPE_BELOW;
    while (st == ORTCRYPT_OK && s->in.pos < at->off + at->len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, at, "GraphProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st != ORTCRYPT_OK || rule == NULL) {
            continue;
        }
        if (f.number == 1) {
            s->model->node_count += main ? 1 : 0;
            st = scan_node(s, &f, err);
        } else if (f.number == 5) {
            st = oc_scan_tensor(s, &f, main ? OC_PLACE_MAIN : OC_PLACE_SUBGRAPH, err);
        } else if (f.number == 12) {
            st = main ? scan_output(s, &f, err) : ORTCRYPT_OK;
        } else {
            st = scan_sparse(s, &f, main ? OC_PLACE_ATTRIBUTE : OC_PLACE_SUBGRAPH_SPARSE, err);
        }
    }
    s->scope = outside;
    leave(s, at);
    return st;
}

/*
 * ORT takes session options out of a model's metadata when the environment says so (ORT_LOAD_CONFIG_FROM_MODEL), profiling to
 * a file among them, and they win over the application's.
 */
static ortcrypt_status scan_metadata(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    static const char forbidden[] = "ort_config";
    const uint64_t end = at->off + at->len;
    ortcrypt_status st = ORTCRYPT_OK;

    s->in.pos = at->off;
    while (st == ORTCRYPT_OK && s->in.pos < end) {
        oc_field f;
        char *key = NULL;
        st = oc_proto_next(&s->in, end, &f, err);
        if (st != ORTCRYPT_OK || f.number != 1 || f.wire != OC_WIRE_LEN || f.len != sizeof forbidden - 1) {
            continue;
        }
        st = oc_proto_text(&s->in, &f, "a metadata key", &key, err);
        if (st == ORTCRYPT_OK && strcmp(key, forbidden) == 0) {
            st = oc_fail(err, ORTCRYPT_E_INPUT, "%s brings session options of its own (metadata %s), which could make ONNX Runtime write files about it",
                         s->in.what, forbidden);
            oc_hint(err, "remove that metadata entry from the model");
        }
        free(key);
    }
    return st;
}

static ortcrypt_status scan_model(oc_scan *s, ortcrypt_error *err)
{
    static const oc_rule rules[] = {
        {1, OC_WIRE_VARINT, OC_ONCE, "ir_version"}, {2, OC_WIRE_LEN, OC_ONCE, "producer_name"},
        {7, OC_WIRE_LEN, OC_ONCE, "graph"},         {14, OC_WIRE_LEN, OC_MANY, "metadata_props"},
        {20, OC_WIRE_LEN, OC_MANY, "training_info"},
        {25, OC_WIRE_LEN, OC_MANY, "functions"},
    };
    const oc_field all = {.len = s->in.source->size};
    uint32_t seen = 0;
    ortcrypt_status st = ORTCRYPT_OK;

    while (st == ORTCRYPT_OK && s->in.pos < all.len) {
        oc_field f;
        const oc_rule *rule = NULL;
        st = next(s, &all, "ModelProto", rules, RULE_COUNT(rules), &seen, &f, &rule, err);
        if (st != ORTCRYPT_OK || rule == NULL) {
            continue;
        }
        if (f.number == 1) {
            s->model->ir_version = f.value > INT64_MAX ? -1 : (int64_t)f.value;
        } else if (f.number == 2) {
            st = oc_proto_text(&s->in, &f, "producer_name", &s->model->producer, err);
        } else if (f.number == 7) {
            st = scan_graph(s, &f, true, err);
        } else if (f.number == 14) {
            st = scan_metadata(s, &f, err);
        } else {
            st = f.number == 20 ? scan_training(s, &f, err) : scan_function(s, &f, err);
        }
    }
    if (st == ORTCRYPT_OK && (seen & 1u << 2) == 0) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX model: it has no graph", s->in.what);
    }
    if (st == ORTCRYPT_OK && s->model->ir_version < 1) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX model: it has no ir_version", s->in.what);
    }
    return st;
}

/* A refusal says what the file is, when its first bytes tell. */
static ortcrypt_status explain(const oc_source *source, const char *what, ortcrypt_error *err)
{
    ortcrypt_error better = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = oc_onnx_refuse_kind(source, what, &better);

    if (st != ORTCRYPT_OK && err != NULL) {
        *err = better;
    }
    return st == ORTCRYPT_OK ? ORTCRYPT_E_INPUT : st;
}

ortcrypt_status oc_onnx_scan(oc_onnx_model **out, const oc_source *source, const char *what, ortcrypt_error *err)
{
    oc_scan s = {0};
    ortcrypt_status st = ORTCRYPT_OK;

    if (source->size > OC_PROTO_MAX) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX model: it has %llu bytes, and a model must stay below 2 GiB", what,
                       (unsigned long long)source->size);
    }
    st = oc_onnx_refuse_ort_format(source, what, err);
    if (st == ORTCRYPT_OK) {
        st = oc_proto_open(&s.in, source, what, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    s.model = calloc(1, sizeof *s.model);
    if (s.model == NULL) {
        st = oc_fail_memory(err, sizeof *s.model, "the list of a model's tensors");
        goto out;
    }
    st = scan_model(&s, err);
    if (st == ORTCRYPT_OK && s.model->producer == NULL) {
        st = oc_strdup(&s.model->producer, "", err);
    }
    if (st == ORTCRYPT_OK) {
        oc_scan_mark_reads(&s);
    } else if (st == ORTCRYPT_E_INPUT) {
        st = explain(source, what, err);
    }
out:
    oc_scan_reads_free(&s);
    oc_proto_close(&s.in);
    if (st != ORTCRYPT_OK) {
        oc_onnx_model_free(s.model);
        return st;
    }
    *out = s.model;
    return ORTCRYPT_OK;
}
