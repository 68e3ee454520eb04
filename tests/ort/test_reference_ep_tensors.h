/* Tensors for the tests of the reference EP: inputs made from a seed, runs, comparison; and a small reader of models. */
#ifndef TEST_REFERENCE_EP_TENSORS_H
#define TEST_REFERENCE_EP_TENSORS_H

#include <math.h>

#include "test_reference_ep_rig.h"

enum { RIG_TENSORS_MAX = 8, RIG_RANK_MAX = 8 };

typedef struct rig_outputs {
    OrtValue *values[RIG_TENSORS_MAX];
    size_t count;
} rig_outputs;

typedef struct rig_input {
    const char *name;
    ONNXTensorElementDataType type;
    size_t rank;
    int64_t dims[RIG_RANK_MAX];
    int64_t low; /* values: low, or low + i for scalars and int64; floats are pseudo-random in 0..1 */
    int64_t high;
} rig_input;

/* xorshift: the same numbers everywhere. */
static inline uint64_t rig_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline OrtValue *rig_tensor(const rig *r, const rig_input *input, uint64_t seed)
{
    OrtAllocator *allocator = NULL;
    OrtValue *value = NULL;
    void *data = NULL;
    size_t count = 1;
    for (size_t i = 0; i < input->rank; i++) {
        count *= (size_t)input->dims[i];
    }
    rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
    rig_ok(r, r->api->CreateTensorAsOrtValue(allocator, input->dims, input->rank, input->type, &value));
    rig_ok(r, r->api->GetTensorMutableData(value, &data));
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    const uint64_t range = (uint64_t)(input->high - input->low) + 1;
    for (size_t i = 0; i < count; i++) {
        const uint64_t random = rig_random(&state);
        const int64_t whole = input->low + (int64_t)(random % range);
        switch (input->type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
            ((float *)data)[i] = input->high == 0 ? 0 : (float)(random >> 40) / (float)(1 << 24);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
            ((int64_t *)data)[i] = whole;
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
            ((int32_t *)data)[i] = (int32_t)whole;
            break;
        default:
            fail_msg("the rig makes no tensors of type %d", (int)input->type);
        }
    }
    return value;
}

static inline rig_outputs rig_run_values(const rig *r, OrtSession *session, const char *const *names,
                                         const OrtValue *const *values, size_t count)
{
    rig_outputs outputs = {{NULL}, 0};
    OrtAllocator *allocator = NULL;
    char *output_names[RIG_TENSORS_MAX] = {NULL};
    rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
    rig_ok(r, r->api->SessionGetOutputCount(session, &outputs.count));
    assert_true(outputs.count <= RIG_TENSORS_MAX);
    for (size_t i = 0; i < outputs.count; i++) {
        rig_ok(r, r->api->SessionGetOutputName(session, i, allocator, &output_names[i]));
    }
    rig_ok(r, r->api->Run(session, NULL, names, values, count, (const char *const *)output_names, outputs.count,
                          outputs.values));
    for (size_t i = 0; i < outputs.count; i++) {
        allocator->Free(allocator, output_names[i]);
    }
    return outputs;
}

static inline rig_outputs rig_run(const rig *r, OrtSession *session, const rig_input *inputs, size_t count,
                                  uint64_t seed)
{
    const char *names[RIG_TENSORS_MAX];
    OrtValue *values[RIG_TENSORS_MAX] = {NULL};
    assert_true(count <= RIG_TENSORS_MAX);
    for (size_t i = 0; i < count; i++) {
        names[i] = inputs[i].name;
        values[i] = rig_tensor(r, &inputs[i], seed + i);
    }
    const rig_outputs outputs = rig_run_values(r, session, names, (const OrtValue *const *)values, count);
    for (size_t i = 0; i < count; i++) {
        r->api->ReleaseValue(values[i]);
    }
    return outputs;
}

static inline void rig_outputs_free(const rig *r, rig_outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        r->api->ReleaseValue(outputs->values[i]);
    }
    outputs->count = 0;
}

static inline void rig_same_shape(const rig *r, const OrtValue *a, const OrtValue *b, size_t *count)
{
    const OrtValue *const both[2] = {a, b};
    int64_t dims[2][RIG_RANK_MAX] = {{0}};
    size_t rank[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        OrtTensorTypeAndShapeInfo *info = NULL;
        rig_ok(r, r->api->GetTensorTypeAndShape(both[i], &info));
        rig_ok(r, r->api->GetDimensionsCount(info, &rank[i]));
        assert_true(rank[i] <= RIG_RANK_MAX);
        rig_ok(r, r->api->GetDimensions(info, dims[i], rank[i]));
        rig_ok(r, r->api->GetTensorShapeElementCount(info, count));
        r->api->ReleaseTensorTypeAndShapeInfo(info);
    }
    assert_int_equal(rank[0], rank[1]);
    assert_memory_equal(dims[0], dims[1], sizeof(dims[0]));
}

/* Largest difference of float outputs, as a part of the range of `a`; 0 means equal bytes. */
static inline double rig_difference(const rig *r, const rig_outputs *a, const rig_outputs *b)
{
    double worst = 0;
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const void *data[2] = {NULL, NULL};
        size_t count = 0;
        size_t len = 0;
        rig_same_shape(r, a->values[i], b->values[i], &count);
        rig_ok(r, r->api->GetTensorData(a->values[i], &data[0]));
        rig_ok(r, r->api->GetTensorData(b->values[i], &data[1]));
        rig_ok(r, r->api->GetTensorSizeInBytes(a->values[i], &len));
        if (len == 0 || memcmp(data[0], data[1], len) == 0) {
            continue;
        }
        assert_int_equal(len, count * sizeof(float));
        const float *const x = data[0];
        const float *const y = data[1];
        double low = INFINITY;
        double high = -INFINITY;
        double most = 0;
        for (size_t k = 0; k < count; k++) {
            low = fmin(low, (double)x[k]);
            high = fmax(high, (double)x[k]);
            most = fmax(most, fabs((double)x[k] - (double)y[k]));
            assert_false(isnan(y[k]));
        }
        const double part = most / fmax(high - low, 1e-30);
        worst = fmax(worst, fmax(part, 1e-300)); /* never 0 when bytes differ */
    }
    return worst;
}

/* ---- a reader of models: nodes of the main graph ---- */

typedef struct rig_nodes {
    size_t all;
    size_t contexts; /* EPContext */
    size_t ifs;
    char first_name[256]; /* ep_cache_context of the first EPContext node, when short enough */
} rig_nodes;

static inline uint64_t rig_varint(const char **at, const char *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        assert_true(*at < end);
        const unsigned char byte = (unsigned char)*(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    fail_msg("a varint of more than ten bytes");
    return 0;
}

/* The next field; *data is NULL for one that is not length-delimited. */
static inline unsigned rig_field(const char **at, const char *end, const char **data, size_t *len)
{
    const uint64_t tag = rig_varint(at, end);
    *data = NULL;
    *len = 0;
    switch (tag & 7) {
    case 0:
        (void)rig_varint(at, end);
        break;
    case 1:
        *at += 8;
        break;
    case 5:
        *at += 4;
        break;
    default:
        *len = (size_t)rig_varint(at, end);
        assert_true(*len <= (size_t)(end - *at));
        *data = *at;
        *at += *len;
    }
    return (unsigned)(tag >> 3);
}

static inline void rig_cache_name(const char *attribute, size_t attribute_len, rig_nodes *nodes)
{
    const char *const end = attribute + attribute_len;
    const char *data = NULL;
    size_t len = 0;
    bool right = false;
    while (attribute < end) {
        const unsigned field = rig_field(&attribute, end, &data, &len);
        right = right || (field == 1 && len == 16 && memcmp(data, "ep_cache_context", 16) == 0);
        if (field == 4 && right && nodes->first_name[0] == '\0' && len < sizeof(nodes->first_name)) {
            memcpy(nodes->first_name, data, len);
            nodes->first_name[len] = '\0';
        }
    }
}

static inline void rig_count_node(const char *node, size_t node_len, rig_nodes *nodes)
{
    const char *const end = node + node_len;
    const char *data = NULL;
    size_t len = 0;
    nodes->all++;
    while (node < end) {
        const unsigned field = rig_field(&node, end, &data, &len);
        nodes->contexts += field == 4 && len == 9 && memcmp(data, "EPContext", 9) == 0 ? 1 : 0;
        nodes->ifs += field == 4 && len == 2 && memcmp(data, "If", 2) == 0 ? 1 : 0;
        if (field == 5) {
            rig_cache_name(data, len, nodes);
        }
    }
}

static inline rig_nodes rig_count(rig_bytes model)
{
    rig_nodes nodes = {0, 0, 0, ""};
    const char *at = model.data;
    const char *const end = at + model.len;
    const char *graph = NULL;
    size_t graph_len = 0;
    while (at < end) {
        if (rig_field(&at, end, &graph, &graph_len) == 7) {
            const char *node = graph;
            const char *data = NULL;
            size_t len = 0;
            while (node < graph + graph_len) {
                if (rig_field(&node, graph + graph_len, &data, &len) == 1) {
                    rig_count_node(data, len, &nodes);
                }
            }
        }
    }
    return nodes;
}

#endif
