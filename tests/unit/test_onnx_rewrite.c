/* The ONNX rewriter: exact bytes for hand-made models, lengths whose own size changes, refusals, a source that changes. */
#include "support/support.h"

#include <stdlib.h>

#include "unit/onnx_build.h"

typedef struct sink {
    uint8_t *data;
    size_t len;
    size_t max;
    int fail_after; /* pushes; < 0: never */
} sink;

static ortcrypt_status take(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    sink *const s = state;

    if (s->fail_after-- == 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, 28, "the output");
    }
    assert_true(len <= s->max - s->len);
    memcpy(s->data + s->len, data, len);
    s->len += len;
    return ORTCRYPT_OK;
}

static sink sink_of(size_t max)
{
    return (sink){malloc(max), 0, max, -1};
}

static oc_onnx_model *scan_source(const oc_source *source)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;

    oc_test_ok(oc_onnx_scan(&found, source, "m.onnx", &err), &err);
    return found;
}

/* The float [2, 3] of pb_external with its data inside, as the rewriter lays it out: other fields first, raw_data last. */
static pb inlined(const char *name, const void *data)
{
    pb t = {.len = 0};

    pb_number(&t, 1, 2);
    pb_number(&t, 1, 3);
    pb_number(&t, 2, 1);
    pb_text(&t, 8, name);
    pb_bytes(&t, 9, data, 24);
    return t;
}

static void rewrites_to(const pb *before, const oc_onnx_edit *edits, size_t count, const pb *after)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const oc_span span = OC_SPAN(before->data, before->len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *found = scan_source(&source);
    sink out = sink_of(sizeof after->data);
    uint64_t len = 0;

    oc_test_ok(oc_onnx_rewrite(found, &source, edits, count, take, &out, &len, &err), &err);
    assert_int_equal(out.len, after->len);
    assert_int_equal(len, after->len);
    assert_memory_equal(out.data, after->data, after->len);
    free(out.data);
    oc_onnx_model_free(found);
}

static const char weights[] = "........ABCDEFGHIJKLMNOPQRSTUVWX";

static void inlines_in_every_place(void **state)
{
    (void)state;
    const oc_span data = OC_SPAN(weights, 32);
    const oc_source source = oc_source_memory(&data);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &source, .offset = 8, .length = 24};
    const pb from = pb_external("w", "w.bin");
    const pb to = inlined("w", weights + 8);

    /* 0: initializer, 1: attribute tensor, 2: subgraph, 3: sparse values, 4: function */
    for (int place = 0; place < 5; place++) {
        pb model[2];
        for (int i = 0; i < 2; i++) {
            const pb *const t = i == 0 ? &from : &to;
            pb g = {.len = 0}, sub = {.len = 0}, a = {.len = 0}, node = {.len = 0}, sparse = {.len = 0}, function = {.len = 0};
            pb_message(&sub, 5, t);
            pb_message(&sparse, 1, t);
            pb_message(&a, place == 2 ? 6 : 5, place == 2 ? &sub : t);
            pb_text(&a, 1, "behind");
            pb_message(&node, 5, &a);
            pb_text(&node, 3, "name behind");
            pb_message(&function, 7, &node);
            pb_text(&g, 2, "name before");
            if (place == 0) {
                pb_message(&g, 5, t);
            } else if (place == 3) {
                pb_message(&g, 15, &sparse);
            } else if (place != 4) {
                pb_message(&g, 1, &node);
            }
            pb_text(&g, 10, "text behind");
            model[i] = pb_model(&g);
            if (place == 4) {
                pb_message(&model[i], 25, &function);
            }
            pb_text(&model[i], 6, "text behind");
        }
        rewrites_to(&model[0], &edit, 1, &model[1]);
    }
}

static void edits_some_of_many(void **state)
{
    (void)state;
    const oc_span data = OC_SPAN(weights, 32);
    const oc_source source = oc_source_memory(&data);
    const oc_onnx_edit edits[] = {
        {.tensor = 0, .kind = OC_EDIT_INLINE, .source = &source, .offset = 0, .length = 24},
        {.tensor = 2, .kind = OC_EDIT_RELOCATE, .location = "objects/7", .offset = 4096, .length = 24},
        {.tensor = 3, .kind = OC_EDIT_RELOCATE, .location = "e", .offset = 0, .length = 4}, /* it was embedded */
    };
    const pb a = pb_external("a", "w.bin"), b = pb_external("b", "w.bin"), c = pb_external("c", "w.bin"), d = pb_embedded("d");
    const pb a2 = inlined("a", weights);
    pb c2 = {.len = 0}, d2 = {.len = 0}, before = {.len = 0}, after = {.len = 0};

    pb_number(&c2, 1, 2);
    pb_number(&c2, 1, 3);
    pb_number(&c2, 2, 1);
    pb_text(&c2, 8, "c");
    pb_entry(&c2, "location", "objects/7");
    pb_entry(&c2, "offset", "4096");
    pb_entry(&c2, "length", "24");
    pb_number(&c2, 14, 1);
    pb_number(&d2, 1, 4);
    pb_number(&d2, 2, 3);
    pb_text(&d2, 8, "d");
    pb_entry(&d2, "location", "e");
    pb_entry(&d2, "offset", "0");
    pb_entry(&d2, "length", "4");
    pb_number(&d2, 14, 1);
    pb_message(&before, 5, &a);
    pb_message(&before, 5, &b);
    pb_message(&before, 5, &c);
    pb_message(&before, 5, &d);
    pb_message(&after, 5, &a2);
    pb_message(&after, 5, &b);
    pb_message(&after, 5, &c2);
    pb_message(&after, 5, &d2);
    const pb from = pb_model(&before), to = pb_model(&after);
    rewrites_to(&from, edits, 3, &to);
    rewrites_to(&from, NULL, 0, &from);
}

/* Data fields of every kind go, in any order and spelling; what is not known stays. */
static void drops_every_data_field(void **state)
{
    (void)state;
    const oc_span data = OC_SPAN(weights, 32);
    const oc_source source = oc_source_memory(&data);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &source, .offset = 8, .length = 24};
    pb t = {.len = 0}, u = {.len = 0};

    pb_varint(&t, 4 << 3 | 5); /* float_data, not packed */
    pb_raw(&t, "1234", 4);
    pb_number(&t, 1, 6);
    pb_bytes(&t, 10, "12345678", 8);
    pb_number(&t, 7, 5);
    pb_number(&t, 2, 1);
    pb_number(&t, 14, 0);
    pb_text(&t, 12, "doc");
    pb_bytes(&t, 5, "\1\2", 2);
    pb_text(&t, 6, "s");
    pb_number(&t, 11, 5);
    pb_text(&t, 8, "w");
    pb_text(&t, 900, "later");
    pb_entry(&t, "location", "x");
    pb_number(&u, 1, 6);
    pb_number(&u, 2, 1);
    pb_text(&u, 12, "doc");
    pb_text(&u, 8, "w");
    pb_text(&u, 900, "later");
    pb_bytes(&u, 9, weights + 8, 24);
    const pb from = pb_model_of(&t), to = pb_model_of(&u);
    rewrites_to(&from, &edit, 1, &to);
}

/* Every enclosing length grows from one or two bytes to four, and the copy is longer than any buffer inside. */
static void inlines_a_large_tensor(void **state)
{
    (void)state;
    enum { DATA_LEN = 3 * 1024 * 1024 };
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t *data = malloc(DATA_LEN);
    const oc_span data_span = OC_SPAN(data, DATA_LEN);
    const oc_source data_source = oc_source_memory(&data_span);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &data_source, .offset = 0, .length = DATA_LEN};
    pb t = {.len = 0}, sub = {.len = 0}, a = {.len = 0}, node = {.len = 0}, g = {.len = 0};
    sink out = sink_of(DATA_LEN + 1000);
    uint64_t len = 0;

    oc_test_fill(data, DATA_LEN, 5);
    pb_number(&t, 1, DATA_LEN);
    pb_number(&t, 2, 2);
    pb_text(&t, 8, "w");
    pb_entry(&t, "location", "w.bin");
    pb_number(&t, 14, 1);
    pb_message(&sub, 5, &t);
    pb_message(&a, 6, &sub);
    pb_message(&node, 5, &a);
    pb_message(&g, 1, &node);
    pb m = pb_model(&g);
    pb_text(&m, 6, "behind");
    const oc_span span = OC_SPAN(m.data, m.len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *found = scan_source(&source);
    oc_test_ok(oc_onnx_rewrite(found, &source, &edit, 1, take, &out, &len, &err), &err);
    assert_int_equal(out.len, len);
    oc_onnx_model_free(found);

    const oc_span out_span = OC_SPAN(out.data, out.len);
    const oc_source out_source = oc_source_memory(&out_span);
    found = scan_source(&out_source);
    assert_int_equal(found->tensor_count, 1);
    assert_false(found->tensors[0].external);
    assert_int_equal(found->tensors[0].raw_len, DATA_LEN);
    assert_memory_equal(out.data + found->tensors[0].raw_off, data, DATA_LEN);
    assert_memory_equal(out.data + out.len - 6, "behind", 6);
    oc_onnx_model_free(found);
    free(out.data);
    free(data);
}

static ortcrypt_status read_zeros(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    (void)state;
    (void)offset;
    (void)err;
    memset(buffer, 0, len);
    return ORTCRYPT_OK;
}

static void refuses_bad_edits(void **state)
{
    (void)state;
    const oc_span data = OC_SPAN(weights, 32);
    const oc_source source = oc_source_memory(&data);
    const oc_onnx_edit good = {.kind = OC_EDIT_INLINE, .source = &source, .offset = 8, .length = 24};
    const oc_onnx_edit relocate = {.kind = OC_EDIT_RELOCATE, .location = "a", .length = 24};
    oc_onnx_edit edits[7][2] = {{good, good}, {good, good}, {good, good}, {good, good}, {good, good}, {relocate, good}, {relocate, good}};
    const pb t = pb_external("w", "w.bin");
    pb g = {.len = 0};

    edits[0][0].tensor = 2;         /* none */
    edits[1][0].tensor = 1;         /* then 0: not ascending */
    edits[2][0].offset = 9;         /* ends outside its source */
    edits[3][0].length = 23;        /* not the tensor's */
    edits[4][0].source = NULL;
    edits[5][0].location = "";
    edits[6][0].location = NULL;
    pb_message(&g, 5, &t);
    pb_message(&g, 5, &t);
    const pb m = pb_model(&g);
    const oc_span span = OC_SPAN(m.data, m.len);
    const oc_source model_source = oc_source_memory(&span);
    oc_onnx_model *found = scan_source(&model_source);
    for (int i = 0; i < 7; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        sink out = sink_of(1000);
        uint64_t len = 77;
        oc_test_status(oc_onnx_rewrite(found, &model_source, edits[i], 2, take, &out, &len, &err), ORTCRYPT_E_INVALID, &err);
        assert_int_equal(out.len, 0);
        assert_int_equal(len, 77);
        free(out.data);
    }
    oc_onnx_model_free(found);
}

static void refuses_two_gib(void **state)
{
    (void)state;
    const oc_source zeros = {read_zeros, NULL, UINT64_C(1) << 32};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    sink out = sink_of(1000);
    pb t = {.len = 0};

    pb_number(&t, 1, 0x7fffffff);
    pb_number(&t, 2, 2);
    pb_text(&t, 8, "w");
    pb_entry(&t, "location", "w.bin");
    pb_number(&t, 14, 1);
    const pb m = pb_model_of(&t);
    const oc_span span = OC_SPAN(m.data, m.len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *found = scan_source(&source);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &zeros, .offset = 0, .length = 0x7fffffff};
    oc_test_status(oc_onnx_rewrite(found, &source, &edit, 1, take, &out, NULL, &err), ORTCRYPT_E_INPUT, &err);
    assert_non_null(strstr(err.message, "2 GiB"));
    assert_int_equal(out.len, 0);
    oc_onnx_model_free(found);
    free(out.data);
}

static void notices_another_model(void **state)
{
    (void)state;
    const oc_span data = OC_SPAN(weights, 32);
    const oc_source weight_source = oc_source_memory(&data);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &weight_source, .offset = 8, .length = 24};
    const pb t = pb_external("w", "w.bin");
    const pb m = pb_model_of(&t);
    const oc_span span = OC_SPAN(m.data, m.len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *found = scan_source(&source);

    /* any byte may have changed between scan and rewrite: refused or some bytes, never a crash */
    for (size_t i = 0; i < m.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            ortcrypt_error err = ORTCRYPT_ERROR_INIT;
            sink out = sink_of(1000);
            pb changed = m;
            changed.data[i] ^= (uint8_t)(1 << bit);
            const oc_span other = OC_SPAN(changed.data, changed.len);
            const oc_source other_source = oc_source_memory(&other);
            const ortcrypt_status st = oc_onnx_rewrite(found, &other_source, &edit, 1, take, &out, NULL, &err);
            assert_true(st == ORTCRYPT_OK || st == ORTCRYPT_E_INPUT);
            free(out.data);
        }
    }
    oc_onnx_model_free(found);
}

static void passes_errors_on(void **state)
{
    (void)state;
    const oc_span data = OC_SPAN(weights, 32);
    const oc_source weight_source = oc_source_memory(&data);
    const oc_onnx_edit edit = {.kind = OC_EDIT_INLINE, .source = &weight_source, .offset = 8, .length = 24};
    const pb t = pb_external("w", "w.bin");
    const pb m = pb_model_of(&t);
    const oc_span span = OC_SPAN(m.data, m.len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *found = scan_source(&source);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    sink out = sink_of(1000);
    uint64_t len = 77;

    out.fail_after = 0;
    oc_test_status(oc_onnx_rewrite(found, &source, &edit, 1, take, &out, &len, &err), ORTCRYPT_E_IO, &err);
    assert_int_equal(err.sys_errno, 28);
    assert_int_equal(len, 77);
    free(out.data);
    oc_onnx_model_free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inlines_in_every_place), cmocka_unit_test(edits_some_of_many),    cmocka_unit_test(drops_every_data_field),
        cmocka_unit_test(inlines_a_large_tensor), cmocka_unit_test(refuses_bad_edits),     cmocka_unit_test(refuses_two_gib),
        cmocka_unit_test(notices_another_model),  cmocka_unit_test(passes_errors_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
