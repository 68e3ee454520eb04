/* Recipes: what a rewrite leaves out comes back, byte for byte, whatever the model's spelling; one refusal for each rule. */
#include "support/support.h"

#include <glob.h>
#include <stdlib.h>

#include "format/recipe.h"
#include "unit/onnx_build.h"

static ortcrypt_status append(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    return oc_buf_append(state, data, len, err);
}

/* Moves every movable tensor out, one after the other in `weights`; external ones move in. */
static size_t plan(const oc_onnx_model *found, const oc_span *model, oc_onnx_edit *edits, oc_buf *weights, const oc_source *zeros)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    size_t count = 0;

    for (size_t i = 0; i < found->tensor_count; i++) {
        const oc_onnx_tensor *const t = &found->tensors[i];
        if (t->movable) {
            edits[count++] = (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_RELOCATE, .location = "moved", .offset = weights->len, .length = t->raw_len};
            oc_test_ok(oc_buf_append(weights, model->data + t->raw_off, (size_t)t->raw_len, &err), &err);
        } else if (t->external && t->length <= zeros->size) {
            edits[count++] = (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_INLINE, .source = zeros, .length = t->length};
        }
    }
    return count;
}

/* Splits a model that scans, follows the recipe, and compares. Returns how many tensors moved or were inlined. */
static size_t comes_back(const uint8_t *data, size_t len)
{
    static const uint8_t zero[4096];
    const oc_span zero_span = OC_SPAN(zero, sizeof zero), span = OC_SPAN(data, len);
    const oc_source zeros = oc_source_memory(&zero_span), source = oc_source_memory(&span);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf weights = OC_BUF(1u << 30), model = OC_BUF(1u << 30), recipe = OC_BUF(1u << 30), back = OC_BUF(1u << 30);
    oc_onnx_model *found = NULL, *again = NULL;

    oc_test_ok(oc_onnx_scan(&found, &source, "m.onnx", &err), &err);
    oc_onnx_edit *const edits = calloc(found->tensor_count + 1, sizeof *edits);
    const size_t count = plan(found, &span, edits, &weights, &zeros);
    oc_test_ok(oc_onnx_rewrite(found, &source, edits, count, append, &model, NULL, &err), &err);
    oc_test_ok(oc_recipe_make(found, &source, edits, count, append, &recipe, &err), &err);
    const oc_span spans[] = {OC_SPAN(recipe.data, recipe.len), OC_SPAN(model.data, model.len), OC_SPAN(weights.data, weights.len)};
    const oc_source in[] = {oc_source_memory(&spans[0]), oc_source_memory(&spans[1]), oc_source_memory(&spans[2])};
    oc_test_ok(oc_recipe_apply(&in[0], &in[1], &in[2], len, append, &back, &err), &err);
    assert_int_equal(back.len, len);
    assert_memory_equal(back.data, data, len);

    /* and the split model is a good one: what can move out of it is what moved in */
    oc_test_ok(oc_onnx_scan(&again, &in[1], "split.onnx", &err), &err);
    size_t left = 0, moved_in = 0;
    for (size_t i = 0; i < again->tensor_count; i++) {
        left += again->tensors[i].movable;
    }
    for (size_t i = 0; i < count; i++) {
        moved_in += edits[i].kind == OC_EDIT_INLINE && found->tensors[edits[i].tensor].main_graph && edits[i].length != 0;
    }
    assert_int_equal(left, moved_in);
    oc_onnx_model_free(again);
    oc_onnx_model_free(found);
    free(edits);
    oc_buf_free(&weights);
    oc_buf_free(&model);
    oc_buf_free(&recipe);
    oc_buf_free(&back);
    return count;
}

static void every_spelling(void **state)
{
    (void)state;
    static const uint8_t long_length[] = {9 << 3 | 2, 0x84, 0x80, 0x80, 0x00}; /* raw_data, length 4 in four bytes */
    const pb inside = pb_external("inside", "w.bin");
    pb g = {.len = 0}, sub = {.len = 0}, a = {.len = 0}, node = {.len = 0};

    for (int spelling = 0; spelling < 6; spelling++) {
        pb t = {.len = 0};
        if (spelling == 1) { /* data first */
            pb_bytes(&t, 9, "\1\2\3\4", 4);
        }
        if (spelling == 2) {
            pb_number(&t, 14, 0); /* data_location DEFAULT, before the data; as loaders of external data leave it */
        }
        pb_number(&t, 1, 4);
        pb_number(&t, 2, 3);
        if (spelling == 3) {
            pb_raw(&t, long_length, sizeof long_length);
            pb_raw(&t, "\1\2\3\4", 4);
        } else if (spelling != 1) {
            pb_bytes(&t, 9, "\1\2\3\4", 4);
        }
        pb_text(&t, 8, (const char[]){(char)('a' + spelling), 0});
        pb_text(&t, 12, "documentation behind it");
        if (spelling == 4) {
            pb_number(&t, 14, 0);
        }
        if (spelling == 5) {
            pb_entry(&t, "location", "left over");
        }
        pb_text(&t, 99, "unknown");
        pb_message(&g, 5, &t);
    }
    pb_message(&sub, 5, &inside);
    pb_message(&a, 6, &sub);
    pb_text(&a, 1, "then_branch");
    pb_message(&node, 5, &a);
    pb_message(&g, 1, &node);
    pb m = pb_model(&g);
    pb_text(&m, 6, "text behind");
    assert_int_equal(comes_back(m.data, m.len), 7);
}

/* float_data, a wrong length, no name, a subgraph: what cannot move is not movable. */
static void what_cannot_move_stays(void **state)
{
    (void)state;
    for (int fault = 0; fault < 7; fault++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *found = NULL;
        pb t = {.len = 0}, g = {.len = 0}, sub = {.len = 0}, a = {.len = 0}, node = {.len = 0};
        pb_number(&t, 1, fault == 1 ? 5 : 4);
        pb_number(&t, 2, fault == 2 ? 8 : 3); /* 8: string */
        if (fault != 3) {
            pb_text(&t, 8, "t");
        }
        pb_bytes(&t, 9, "\1\2\3\4", fault == 4 ? 0 : 4);
        if (fault == 5) {
            pb_number(&t, 5, 7); /* int32_data */
        }
        pb_message(fault == 6 ? &sub : &g, 5, &t);
        if (fault == 6) {
            pb_message(&a, 6, &sub);
            pb_message(&node, 5, &a);
            pb_message(&g, 1, &node);
        }
        const pb m = pb_model(&g);
        oc_test_ok(pb_scan(&m, &found, &err), &err);
        assert_int_equal(found->tensor_count, 1);
        assert_int_equal(found->tensors[0].movable, fault == 0);
        oc_onnx_model_free(found);
    }
}

/* The exact bytes of the example in docs/format.md. */
static void the_documented_example(void **state)
{
    (void)state;
    static const char wanted[] = "4d000000000000000c" "530000000000000001" "4c00000000000000010f" "4d0000000000000001" "530000000000000001"
                                 "4c00000000000000010d" "4d0000000000000007" "4c00000000000000024a04" "5700000000000010000000000000000004"
                                 "53000000000000002e";
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const pb t = pb_embedded("b");
    const pb m = pb_model_of(&t);
    const oc_span span = OC_SPAN(m.data, m.len);
    const oc_source source = oc_source_memory(&span);
    const oc_onnx_edit edit = {.tensor = 0, .kind = OC_EDIT_RELOCATE, .location = "w", .offset = 4096, .length = 4};
    oc_buf recipe = OC_BUF(4096);
    oc_onnx_model *found = NULL;
    size_t len = 0;
    uint8_t *const bytes = oc_test_unhex(wanted, &len);

    oc_test_ok(oc_onnx_scan(&found, &source, "m.onnx", &err), &err);
    oc_test_ok(oc_recipe_make(found, &source, &edit, 1, append, &recipe, &err), &err);
    assert_int_equal(recipe.len, len);
    assert_memory_equal(recipe.data, bytes, len);
    oc_buf_free(&recipe);
    oc_onnx_model_free(found);
    free(bytes);
}

static void real_models(void **state)
{
    (void)state;
    char *const pattern = oc_test_format("%s/models/*.onnx", oc_test_env("ORTCRYPT_DEPS"));
    char *const more = oc_test_format("%s/testmodels/*/*.onnx", oc_test_env("ORTCRYPT_DEPS"));
    size_t moved = 0;
    glob_t found;

    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(glob(more, GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *model = NULL;
        size_t len = 0;
        uint8_t *const data = oc_test_read_file(found.gl_pathv[i], &len);
        const oc_span span = OC_SPAN(data, len);
        const oc_source source = oc_source_memory(&span);
        if (oc_onnx_scan(&model, &source, "m", &err) == ORTCRYPT_OK) {
            moved += comes_back(data, len);
            oc_onnx_model_free(model);
        }
        free(data);
    }
    assert_true(moved > 100);
    globfree(&found);
    free(pattern);
    free(more);
}

static uint64_t dice_state;

static uint64_t dice(uint64_t sides) /* SplitMix64 */
{
    uint64_t z = dice_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % sides;
}

/* Models that were broken at random and still scan come back too. */
static void broken_models(void **state)
{
    (void)state;
    const pb b = pb_embedded("b"), c = pb_embedded("c"), w = pb_external("w", "w.bin");
    pb g = {.len = 0};
    size_t accepted = 0, moved = 0;

    pb_message(&g, 5, &b);
    pb_message(&g, 5, &w);
    pb_message(&g, 5, &c);
    const pb whole = pb_model(&g);
    dice_state = 20261130;
    for (int round = 0; round < 20000; round++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *found = NULL;
        pb m = whole;
        for (uint64_t n = 1 + dice(3); n != 0; n--) {
            m.data[dice(m.len)] = (uint8_t)(dice(2) != 0 ? dice(256) : dice(128));
        }
        if (pb_scan(&m, &found, &err) == ORTCRYPT_OK) {
            accepted++;
            moved += comes_back(m.data, m.len);
            oc_onnx_model_free(found);
        }
    }
    assert_true(accepted > 1000 && moved > accepted);
}

typedef struct step {
    char kind;
    uint64_t a, b;
    const char *bytes;
} step;

static void put_steps(oc_buf *recipe, const step *steps, size_t count)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    for (size_t i = 0; i < count; i++) {
        uint8_t number[8];
        oc_test_ok(oc_buf_append(recipe, &steps[i].kind, 1, &err), &err);
        if (steps[i].kind == 'W') {
            oc_store_be64(number, steps[i].b);
            oc_test_ok(oc_buf_append(recipe, number, 8, &err), &err);
        }
        oc_store_be64(number, steps[i].a);
        oc_test_ok(oc_buf_append(recipe, number, 8, &err), &err);
        if (steps[i].bytes != NULL) {
            oc_test_ok(oc_buf_append_str(recipe, steps[i].bytes, &err), &err);
        }
    }
}

static ortcrypt_status follow(const oc_buf *recipe, size_t recipe_len, uint64_t size, oc_buf *out, ortcrypt_error *err)
{
    const oc_span spans[] = {OC_SPAN(recipe->data, recipe_len), OC_SPAN_STR("0123456789"), OC_SPAN_STR("abcdef")};
    const oc_source in[] = {oc_source_memory(&spans[0]), oc_source_memory(&spans[1]), oc_source_memory(&spans[2])};

    return oc_recipe_apply(&in[0], &in[1], &in[2], size, append, out, err);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        step steps[4];
        size_t count;
        uint64_t size;
        const char *sentence; /* NULL: "0123xycdef89" */
    } cases[] = {
        {{{'M', 4, 0, NULL}, {'S', 4, 0, NULL}, {'L', 2, 0, "xy"}, {'W', 4, 2, NULL}}, 4, 10, "leaves some of the model over"},
        {{{'M', 4, 0, NULL}, {'S', 6, 0, NULL}, {'L', 2, 0, "xy"}, {'W', 4, 2, NULL}}, 4, 10, NULL},
        {{{'M', 11, 0, NULL}}, 1, 11, "beyond the model"},
        {{{'M', UINT64_MAX, 0, NULL}}, 1, 10, "beyond the model"},
        {{{'M', 4, 0, NULL}, {'S', 7, 0, NULL}}, 2, 4, "beyond the model"},
        {{{'M', 10, 0, NULL}, {'W', 5, 2, NULL}}, 2, 15, "beyond the weights"},
        {{{'M', 10, 0, NULL}, {'W', 1, UINT64_MAX, NULL}}, 2, 11, "beyond the weights"},
        {{{'M', 10, 0, NULL}, {'W', UINT64_MAX, 1, NULL}}, 2, 11, "beyond the weights"},
        {{{'M', 10, 0, NULL}, {'W', 0, 1, NULL}}, 2, 10, "empty record"},
        {{{'M', 0, 0, NULL}, {'M', 10, 0, NULL}}, 2, 10, "empty record"},
        {{{'L', 0, 0, ""}, {'M', 10, 0, NULL}}, 2, 10, "empty record"},
        {{{'S', 0, 0, NULL}, {'M', 10, 0, NULL}}, 2, 10, "empty record"},
        {{{'M', 10, 0, NULL}, {'L', 3, 0, "xy"}}, 2, 13, "is cut"},
        {{{'M', 10, 0, NULL}, {'X', 1, 0, NULL}}, 2, 10, "unknown record"},
        {{{'M', 10, 0, NULL}}, 1, 9, "more than the original's size"},
        {{{'M', 10, 0, NULL}}, 1, 11, "less than the original's size"},
        {{{'M', 10, 0, NULL}, {'W', 1, 1, NULL}}, 2, 10, "more than the original's size"},
        {{{0}}, 0, 0, "leaves some of the model over"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_buf recipe = OC_BUF(4096), out = OC_BUF(4096);
        put_steps(&recipe, cases[i].steps, cases[i].count);
        const ortcrypt_status st = follow(&recipe, recipe.len, cases[i].size, &out, &err);
        if (cases[i].sentence == NULL) {
            oc_test_ok(st, &err);
            assert_memory_equal(out.data, "0123xycdef", 10);
            for (size_t len = 0; len < recipe.len; len++) { /* cut anywhere: never the original */
                oc_test_status(follow(&recipe, len, cases[i].size, &out, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
            }
        } else {
            oc_test_status(st, ORTCRYPT_E_NOT_AUTHENTIC, &err);
            assert_non_null(strstr(err.message, cases[i].sentence));
            assert_true(out.len <= cases[i].size);
        }
        oc_buf_free(&recipe);
        oc_buf_free(&out);
    }
}

/* Whatever stands in a recipe: an answer, in bounds, and never more than the size. */
static void broken_recipes(void **state)
{
    (void)state;
    static const char kinds[] = "MSLWX";

    dice_state = 7;
    for (int round = 0; round < 20000; round++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_buf recipe = OC_BUF(65536), out = OC_BUF(4096);
        for (uint64_t n = dice(6); n != 0; n--) {
            const step s = {kinds[dice(5)], dice(3) == 0 ? dice_state : dice(8), dice(8), dice(2) != 0 ? "xyz" : NULL};
            put_steps(&recipe, &s, 1);
        }
        const uint64_t size = dice(24);
        const ortcrypt_status st = follow(&recipe, recipe.len, size, &out, &err);
        assert_true(st == ORTCRYPT_OK ? out.len == size : st == ORTCRYPT_E_NOT_AUTHENTIC && out.len <= size);
        oc_buf_free(&recipe);
        oc_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling), cmocka_unit_test(what_cannot_move_stays), cmocka_unit_test(the_documented_example),
        cmocka_unit_test(real_models),    cmocka_unit_test(broken_models),          cmocka_unit_test(refusals),
        cmocka_unit_test(broken_recipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
