/* EPContext nodes: defaults, values, where they are found, and attributes that could be understood differently. */
#include "support/support.h"

#include <stdlib.h>

#include "unit/onnx_build.h"

enum { INT = 2, STRING = 3 };

static void attribute(pb *node, const char *name, int type, uint64_t number, const char *text)
{
    pb a = {.len = 0};

    pb_text(&a, 1, name);
    if (type == INT) {
        pb_number(&a, 3, number);
    } else {
        pb_text(&a, 4, text);
    }
    pb_number(&a, 20, (uint64_t)type);
    pb_message(node, 5, &a);
}

static void finish(pb *node)
{
    /* last, as protobuf writes by number: attributes are read before the domain is known */
    pb_text(node, 7, "com.microsoft");
}

static pb begin(const char *name)
{
    pb node = {.len = 0};

    pb_text(&node, 1, "x");
    pb_text(&node, 3, name);
    pb_text(&node, 4, "EPContext");
    return node;
}

static pb model_of(const pb *node)
{
    pb g = {.len = 0};

    pb_message(&g, 1, node);
    return pb_model(&g);
}

static oc_onnx_model *scan(const pb *node)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;
    const pb m = model_of(node);

    oc_test_ok(pb_scan(&m, &found, &err), &err);
    return found;
}

static void has_the_schema_s_defaults(void **state)
{
    (void)state;
    pb node = {.len = 0};

    pb_text(&node, 4, "EPContext");
    attribute(&node, "ep_cache_context", STRING, 0, "blob bytes");
    finish(&node);
    oc_onnx_model *found = scan(&node);
    assert_int_equal(found->ep_context_count, 1);
    const oc_onnx_ep_context *c = &found->ep_contexts[0];
    assert_string_equal(c->name, "");
    assert_string_equal(c->source, "");
    assert_string_equal(c->partition, "");
    assert_int_equal(c->main_context, 1);
    assert_int_equal(c->embed_mode, 1);
    assert_null(c->cache_context);
    assert_int_equal(c->cache_len, 10);
    oc_onnx_model_free(found);
}

static void reads_the_attributes(void **state)
{
    (void)state;
    pb node = begin("part_0");

    attribute(&node, "other", STRING, 0, "ignored");
    attribute(&node, "ep_cache_context", STRING, 0, "ctx/part_0.bin");
    attribute(&node, "embed_mode", INT, 0, NULL);
    attribute(&node, "main_context", INT, 0, NULL);
    attribute(&node, "source", STRING, 0, "OrtcryptReference");
    attribute(&node, "partition_name", STRING, 0, "p0");
    finish(&node);
    oc_onnx_model *found = scan(&node);
    const oc_onnx_ep_context *c = &found->ep_contexts[0];
    assert_string_equal(c->name, "part_0");
    assert_string_equal(c->source, "OrtcryptReference");
    assert_string_equal(c->partition, "p0");
    assert_int_equal(c->main_context, 0);
    assert_int_equal(c->embed_mode, 0);
    assert_string_equal(c->cache_context, "ctx/part_0.bin");
    assert_int_equal(c->cache_len, 14);
    oc_onnx_model_free(found);
}

static void a_secondary_node_may_have_no_name(void **state)
{
    (void)state;
    pb node = begin("n");

    attribute(&node, "embed_mode", INT, 0, NULL);
    attribute(&node, "main_context", INT, 0, NULL);
    finish(&node);
    oc_onnx_model *found = scan(&node);
    assert_string_equal(found->ep_contexts[0].cache_context, "");
    assert_int_equal(found->ep_contexts[0].cache_len, 0);
    oc_onnx_model_free(found);
}

static void embedded_bytes_are_no_text(void **state)
{
    (void)state;
    pb node = begin("n");
    pb a = {.len = 0};

    pb_text(&a, 1, "ep_cache_context");
    pb_bytes(&a, 4, "\0\xff\0", 3);
    pb_number(&a, 20, STRING);
    pb_message(&node, 5, &a);
    finish(&node);
    oc_onnx_model *found = scan(&node);
    assert_int_equal(found->ep_contexts[0].cache_len, 3);
    oc_onnx_model_free(found);
}

static void other_domains_are_other_nodes(void **state)
{
    (void)state;
    pb node = begin("n");

    attribute(&node, "embed_mode", INT, 7, NULL);
    pb_text(&node, 7, "com.example");
    oc_onnx_model *found = scan(&node);
    assert_int_equal(found->ep_context_count, 0);
    oc_onnx_model_free(found);
}

static void finds_nodes_in_subgraphs(void **state)
{
    (void)state;
    pb inner = begin("inner");
    pb sub = {.len = 0}, a = {.len = 0}, node = {.len = 0};

    finish(&inner);
    pb_message(&sub, 1, &inner);
    pb_text(&a, 1, "then_branch");
    pb_message(&a, 6, &sub);
    pb_text(&node, 4, "If");
    pb_message(&node, 5, &a);
    oc_onnx_model *found = scan(&node);
    assert_int_equal(found->ep_context_count, 1);
    assert_string_equal(found->ep_contexts[0].name, "inner");
    assert_int_equal(found->node_count, 1);
    oc_onnx_model_free(found);
}

static void refused(pb *node, const char *says)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;

    finish(node);
    const pb m = model_of(node);
    const ortcrypt_status st = pb_scan(&m, &found, &err);
    if (st != ORTCRYPT_E_INPUT || strstr(err.message, says) == NULL) {
        fail_msg("status %d, \"%s\" instead of \"%s\"", (int)st, err.message, says);
    }
}

static void refuses_doubtful_attributes(void **state)
{
    (void)state;
    pb node = begin("n");

    attribute(&node, "embed_mode", INT, 1, NULL);
    attribute(&node, "embed_mode", INT, 0, NULL);
    refused(&node, "embed_mode of an EPContext node is there twice");
    node = begin("n");
    attribute(&node, "embed_mode", INT, 2, NULL);
    refused(&node, "embed_mode of an EPContext node is neither 0 nor 1");
    node = begin("n");
    attribute(&node, "main_context", INT, UINT64_MAX, NULL);
    refused(&node, "main_context of an EPContext node is neither 0 nor 1");
    node = begin("n");
    attribute(&node, "embed_mode", STRING, 0, "0");
    refused(&node, "embed_mode of an EPContext node has the wrong type");
    node = begin("n");
    attribute(&node, "ep_cache_context", INT, 0, NULL);
    refused(&node, "ep_cache_context of an EPContext node has the wrong type");
    node = begin("n");
    pb a = {.len = 0};
    pb_text(&a, 1, "ep_cache_context");
    pb_text(&a, 21, "from_caller");
    pb_number(&a, 20, STRING);
    pb_message(&node, 5, &a);
    refused(&node, "refers to an attribute of a function");
    node = begin("n");
    attribute(&node, "embed_mode", INT, 0, NULL);
    attribute(&node, "ep_cache_context", STRING, 0, "a\xff");
    refused(&node, "ep_cache_context is not UTF-8");
    node = begin("n");
    pb_text(&node, 7, "com.example");
    refused(&node, "two fields domain"); /* finish adds the second */
    node = begin("n");
    pb_text(&node, 4, "Relu");
    refused(&node, "two fields op_type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_schema_s_defaults),  cmocka_unit_test(reads_the_attributes),
        cmocka_unit_test(a_secondary_node_may_have_no_name), cmocka_unit_test(embedded_bytes_are_no_text),
        cmocka_unit_test(other_domains_are_other_nodes), cmocka_unit_test(finds_nodes_in_subgraphs),
        cmocka_unit_test(refuses_doubtful_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
