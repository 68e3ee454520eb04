/* The ONNX scanner: what it finds. What it refuses: test_onnx_refuse.c. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/onnx_build.h"

static oc_onnx_model *scan(const pb *m)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;

    oc_test_ok(pb_scan(m, &found, &err), &err);
    return found;
}

static void finds_initializers(void **state)
{
    (void)state;
    const pb external = pb_external("w", "w.bin");
    const pb embedded = pb_embedded("b");
    pb g = {.len = 0};
    pb node = {.len = 0};

    pb_text(&node, 4, "Relu");
    pb_message(&g, 5, &external);
    pb_message(&g, 1, &node);
    pb_message(&g, 5, &embedded);
    pb_message(&g, 1, &node);
    const pb m = pb_model(&g);
    oc_onnx_model *found = scan(&m);
    assert_int_equal(found->ir_version, 8);
    assert_string_equal(found->producer, "by hand");
    assert_int_equal(found->node_count, 2);
    assert_int_equal(found->tensor_count, 2);
    assert_int_equal(found->ep_context_count, 0);
    assert_int_equal(found->subgraph_name_count, 0);

    const oc_onnx_tensor *t = &found->tensors[0];
    assert_string_equal(t->name, "w");
    assert_int_equal(t->dtype, 1);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 3);
    assert_true(t->external && t->main_graph && t->has_length);
    assert_string_equal(t->location, "w.bin");
    assert_int_equal(t->offset, 8);
    assert_int_equal(t->length, 24);
    assert_int_equal(t->raw_off, 0);
    assert_int_equal(t->body_len, external.len);
    assert_memory_equal(m.data + t->body_off, external.data, external.len);

    t = &found->tensors[1];
    assert_false(t->external);
    assert_true(t->main_graph);
    assert_null(t->location);
    assert_int_equal(t->raw_len, 4);
    assert_memory_equal(m.data + t->raw_off, "\1\2\3\4", 4);
    oc_onnx_model_free(found);
}

static void computes_what_is_absent(void **state)
{
    (void)state;
    static const char *const lengths[] = {NULL, "0"}; /* ORT takes 0 for absent */

    for (int i = 0; i < 2; i++) {
        pb t = {.len = 0};
        pb_bytes(&t, 1, "\5\3", 2); /* packed dims */
        pb_number(&t, 2, 22);       /* int4 */
        pb_text(&t, 8, "w");
        pb_number(&t, 14, 1);
        pb_entry(&t, "location", "w.bin");
        if (lengths[i] != NULL) {
            pb_entry(&t, "length", lengths[i]);
        }
        const pb m = pb_model_of(&t);
        oc_onnx_model *found = scan(&m);
        assert_int_equal(found->tensors[0].rank, 2);
        assert_int_equal(found->tensors[0].offset, 0);
        assert_int_equal(found->tensors[0].length, 8); /* 15 halves of a byte */
        assert_false(found->tensors[0].has_length);
        oc_onnx_model_free(found);
    }
}

static void tensor_lengths(void **state)
{
    (void)state;
    const uint64_t shape[] = {3, 5};
    const uint64_t huge[] = {UINT64_C(1) << 62, UINT64_C(1) << 62, 0};
    static const struct {
        int dtype;
        uint64_t len;
    } cases[] = {{1, 60}, {2, 15}, {3, 15}, {4, 30}, {5, 30}, {6, 60}, {7, 120}, {9, 15}, {10, 30}, {11, 120}, {12, 60},
                 {13, 120}, {14, 120}, {15, 240}, {16, 30}, {17, 15}, {18, 15}, {19, 15}, {20, 15}, {21, 8}, {22, 8}, {23, 8},
                 {24, 15}, {25, 4}, {26, 4}};
    uint64_t len = 77;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(oc_onnx_tensor_len(cases[i].dtype, shape, 2, &len));
        assert_int_equal(len, cases[i].len);
    }
    assert_true(oc_onnx_tensor_len(1, NULL, 0, &len));
    assert_int_equal(len, 4);
    assert_true(oc_onnx_tensor_len(1, huge, 3, &len));
    assert_int_equal(len, 0);
    len = 77;
    assert_false(oc_onnx_tensor_len(1, huge, 2, &len));
    assert_false(oc_onnx_tensor_len(1, huge, 1, &len));
    assert_false(oc_onnx_tensor_len(0, shape, 2, &len));
    assert_false(oc_onnx_tensor_len(8, shape, 2, &len));
    assert_false(oc_onnx_tensor_len(99, shape, 2, &len));
    assert_false(oc_onnx_tensor_len(-1, shape, 2, &len));
    assert_int_equal(len, 77);
}

/* Every message that can hold a tensor, wrapped around one external tensor; returns the model. */
enum { IN_T, IN_TENSORS, IN_G, IN_GRAPHS, IN_SPARSE_ATTR, IN_SPARSE_ATTRS, IN_SPARSE_VALUES, IN_SPARSE_INDICES, IN_FUNCTION,
       IN_FUNCTION_DEFAULT, IN_TRAINING, IN_TRAINING_INIT, WRAP_COUNT };

static pb wrap(int how)
{
    const pb t = pb_external("deep", "deep.bin");
    pb g = {.len = 0}, sub = {.len = 0}, node = {.len = 0}, attribute = {.len = 0}, sparse = {.len = 0}, outer = {.len = 0};

    pb_message(&sparse, how == IN_SPARSE_INDICES ? 2 : 1, &t);
    pb_message(&sub, 5, &t);
    switch (how) {
    case IN_T:
        pb_message(&attribute, 5, &t);
        break;
    case IN_G:
        pb_message(&attribute, 6, &sub);
        break;
    case IN_GRAPHS:
        pb_message(&attribute, 11, &sub);
        break;
    case IN_SPARSE_ATTR:
        pb_message(&attribute, 22, &sparse);
        break;
    case IN_SPARSE_ATTRS:
        pb_message(&attribute, 23, &sparse);
        break;
    default:
        pb_message(&attribute, 10, &t);
        break;
    }
    pb_message(&node, 5, &attribute);
    if (how == IN_SPARSE_VALUES || how == IN_SPARSE_INDICES) {
        pb_message(&g, 15, &sparse);
    } else if (how < IN_FUNCTION) {
        pb_message(&g, 1, &node);
    }
    pb m = pb_model(&g);
    if (how == IN_FUNCTION || how == IN_FUNCTION_DEFAULT) {
        pb_message(&outer, how == IN_FUNCTION ? 7 : 11, how == IN_FUNCTION ? &node : &attribute);
        pb_message(&m, 25, &outer);
    } else if (how >= IN_TRAINING) {
        pb_message(&outer, how == IN_TRAINING ? 2 : 1, &sub);
        pb_message(&m, 20, &outer);
    }
    return m;
}

static void finds_tensors_everywhere(void **state)
{
    (void)state;
    for (int how = 0; how < WRAP_COUNT; how++) {
        const pb m = wrap(how);
        oc_onnx_model *found = scan(&m);
        if (found->tensor_count != 1) {
            fail_msg("place %d: %zu tensors", how, found->tensor_count);
        }
        assert_string_equal(found->tensors[0].location, "deep.bin");
        assert_false(found->tensors[0].main_graph);
        const bool subgraph = how == IN_G || how == IN_GRAPHS || how >= IN_TRAINING;
        assert_int_equal(found->subgraph_name_count, subgraph ? 1 : 0);
        if (subgraph) {
            assert_string_equal(found->subgraph_names[0], "deep");
        }
        oc_onnx_model_free(found);
    }
}

static void names_initializers_of_subgraphs(void **state)
{
    (void)state;
    const pb embedded = pb_embedded("inner");
    pb sub = {.len = 0}, attribute = {.len = 0}, node = {.len = 0}, g = {.len = 0}, sparse = {.len = 0};

    pb_message(&sparse, 1, &embedded);
    pb_message(&sub, 5, &embedded);
    pb_message(&sub, 15, &sparse);
    pb_message(&attribute, 6, &sub);
    pb_message(&node, 5, &attribute);
    pb_message(&g, 1, &node);
    const pb m = pb_model(&g);
    oc_onnx_model *found = scan(&m);
    assert_int_equal(found->subgraph_name_count, 2);
    assert_int_equal(found->tensor_count, 1); /* sparse values are no dense initializer */
    assert_false(found->tensors[0].external);
    assert_false(found->tensors[0].main_graph);
    assert_int_equal(found->node_count, 1);
    oc_onnx_model_free(found);
}

/* A node that reads `input`, and has `sub` as an attribute unless that is NULL. */
static pb reading_node(const char *input, const pb *sub)
{
    pb node = {.len = 0}, attribute = {.len = 0};

    pb_text(&node, 1, input);
    if (sub != NULL) {
        pb_message(&attribute, 6, sub);
        pb_message(&node, 5, &attribute);
    }
    return node;
}

static void knows_what_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool main;
        bool below;
    } tensors[] = {{"by-node", true, false}, {"by-output", true, false}, {"below", false, true}, {"both", true, true},
                   {"in-function", false, false}, {"idle", false, false}, {"by-nod", false, false}};
    pb sub = {.len = 0}, g = {.len = 0}, output = {.len = 0}, function = {.len = 0};

    const pb below[] = {reading_node("below", NULL), reading_node("both", NULL)};
    pb_message(&sub, 1, &below[0]);
    pb_message(&sub, 1, &below[1]);
    pb_text(&output, 1, "idle"); /* the subgraph's own */
    pb_message(&sub, 12, &output);
    const pb nodes[] = {reading_node("by-node", &sub), reading_node("both", NULL)};
    pb_message(&g, 1, &nodes[0]);
    pb_message(&g, 1, &nodes[1]);
    output.len = 0;
    pb_text(&output, 1, "by-output");
    pb_message(&g, 12, &output);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const pb t = pb_embedded(tensors[i].name);
        pb_message(&g, 5, &t);
    }
    pb m = pb_model(&g);
    const pb inner = reading_node("in-function", NULL);
    pb_message(&function, 7, &inner);
    pb_message(&m, 25, &function);
    oc_onnx_model *found = scan(&m);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        assert_string_equal(found->tensors[i].name, tensors[i].name);
        assert_int_equal(found->tensors[i].read_main, tensors[i].main);
        assert_int_equal(found->tensors[i].read_below, tensors[i].below);
    }
    oc_onnx_model_free(found);
}

/* Data beside DEFAULT is embedded whatever external_data says, as in ORT's HasExternalData. */
static void location_alone_decides(void **state)
{
    (void)state;
    pb t = pb_embedded("w");
    pb_entry(&t, "location", "w.bin");
    pb_entry(&t, "unknown", "1");
    pb_number(&t, 14, 0);
    const pb m = pb_model_of(&t);
    oc_onnx_model *found = scan(&m);
    assert_int_equal(found->tensor_count, 1);
    assert_false(found->tensors[0].external);
    assert_null(found->tensors[0].location);
    oc_onnx_model_free(found);
}

static void skips_what_it_does_not_know(void **state)
{
    (void)state;
    pb t = pb_external("w", "w.bin");
    pb_text(&t, 999, "later version");
    pb_number(&t, 1000, UINT64_MAX);
    pb_varint(&t, 1001 << 3 | 1);
    pb_raw(&t, "12345678", 8);
    pb_varint(&t, 1002 << 3 | 5);
    pb_raw(&t, "1234", 4);
    const pb m = pb_model_of(&t);
    oc_onnx_model *found = scan(&m);
    assert_int_equal(found->tensor_count, 1);
    oc_onnx_model_free(found);
}

static void every_cut_is_refused_or_smaller(void **state)
{
    (void)state;
    const pb whole = wrap(IN_G);

    for (size_t len = 0; len < whole.len; len++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *found = NULL;
        pb m = whole;
        m.len = len;
        oc_test_status(pb_scan(&m, &found, &err), ORTCRYPT_E_INPUT, &err); /* the graph is the last field */
        assert_null(found);
    }
}

static ortcrypt_status broken_read(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    int *const left = state;

    memset(buffer, 0, len);
    (void)offset;
    return --*left < 0 ? oc_fail_errno(err, ORTCRYPT_E_IO, 5, "m.onnx") : ORTCRYPT_OK;
}

static void passes_read_errors_on(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *found = NULL;
        int left = good;
        const oc_source source = {broken_read, &left, 100};
        oc_test_status(oc_onnx_scan(&found, &source, "m.onnx", &err), ORTCRYPT_E_IO, &err);
        assert_int_equal(err.sys_errno, 5);
    }
    int left = 0;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;
    const oc_source big = {broken_read, &left, UINT64_C(1) << 31};
    oc_test_status(oc_onnx_scan(&found, &big, "m.onnx", &err), ORTCRYPT_E_INPUT, &err);
    assert_non_null(strstr(err.message, "2 GiB"));
}

static void plain_locations(void **state)
{
    (void)state;
    static const char *const plain[] = {"w", "w.bin", "./w.bin", "a/b/w.bin", "./a/b", "...", "a/...", "..a", ".a", "a/.b", "a\\b", " "};
    static const char *const odd[] = {"", ".", "..", "./", "././w", "/w", "//w", "a//w", "a/", "../w", "a/../w", "a/./w", "a/..", "a/.", ".//w"};

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        assert_true(oc_onnx_location_plain(plain[i]));
    }
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        assert_false(oc_onnx_location_plain(odd[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_initializers),
        cmocka_unit_test(computes_what_is_absent),
        cmocka_unit_test(tensor_lengths),
        cmocka_unit_test(finds_tensors_everywhere),
        cmocka_unit_test(names_initializers_of_subgraphs),
        cmocka_unit_test(knows_what_is_read),
        cmocka_unit_test(location_alone_decides),
        cmocka_unit_test(skips_what_it_does_not_know),
        cmocka_unit_test(every_cut_is_refused_or_smaller),
        cmocka_unit_test(passes_read_errors_on),
        cmocka_unit_test(plain_locations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
