/*
 * Encrypting with weights moved out of the model: what is stored where, that the original comes back byte for byte, and what
 * happens when it would not. oc_recipe_make is wrapped by the linker, so that a recipe can be spoilt.
 */
#include <fcntl.h>

#include "bundle/bundle.h"
#include "bundle/encrypt_plan.h"
#include "bundle/split.h"
#include "format/recipe.h"
#include "unit/bundle_models.h"

static enum { AS_IT_IS, NO_RECORD, OTHER_BYTE } spoil; /* of the recipe: nothing, its first record's kind, a literal's first byte */

typedef struct spoiler {
    oc_push_fn push;
    void *state;
    bool literal; /* the next push is a literal's bytes */
    bool done;
} spoiler;

static ortcrypt_status spoil_push(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    spoiler *const s = state;
    uint8_t copy[4096];

    assert_true(len <= sizeof copy);
    memcpy(copy, data, len);
    if (!s->done && (spoil == NO_RECORD || s->literal)) {
        s->done = true;
        copy[0] ^= 1;
    }
    s->literal = data != NULL && *(const char *)data == OC_RECIPE_LITERAL;
    return s->push(s->state, copy, len, err);
}

ortcrypt_status __real_oc_recipe_make(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                                      size_t edit_count, oc_push_fn push, void *push_state, ortcrypt_error *err);
ortcrypt_status __wrap_oc_recipe_make(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                                      size_t edit_count, oc_push_fn push, void *push_state, ortcrypt_error *err);
ortcrypt_status __wrap_oc_recipe_make(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                                      size_t edit_count, oc_push_fn push, void *push_state, ortcrypt_error *err)
{
    spoiler s = {push, push_state, false, false};

    return spoil == AS_IT_IS ? __real_oc_recipe_make(model, source, edits, edit_count, push, push_state, err)
                      : __real_oc_recipe_make(model, source, edits, edit_count, spoil_push, &s, err);
}

/* An embedded uint8 tensor's fields, its data (len bytes) to follow. */
static void put_head(pb *t, const char *name, uint64_t len)
{
    pb_int(t, 1, len);
    pb_int(t, 2, 2); /* UINT8 */
    pb_text(t, 8, name);
    pb_varint(t, 9 << 3 | 2);
    pb_varint(t, len);
}

static uint64_t varint_len(uint64_t value)
{
    uint64_t len = 1;

    for (; value > 0x7f; value >>= 7) {
        len++;
    }
    return len;
}

typedef struct weight {
    const char *name;
    uint64_t len;
} weight;

/* The content of the field that begins at data[*at]; *at moves behind its length. */
static uint64_t field_len(const uint8_t *data, size_t *at)
{
    uint64_t len = 0;
    unsigned shift = 0;

    for (++*at; (data[*at] & 0x80) != 0; ++*at, shift += 7) {
        len |= (uint64_t)(data[*at] & 0x7f) << shift;
    }
    return len | (uint64_t)data[(*at)++] << shift;
}

static void write_all(int fd, const void *data, size_t len)
{
    assert_int_equal(write(fd, data, len), len);
}

static void write_weight(int fd, const weight *w, const pb *head, uint64_t seed, bool holes)
{
    static uint8_t block[65536];
    pb prefix = {.len = 0};

    pb_varint(&prefix, 5 << 3 | 2);
    pb_varint(&prefix, head->len + w->len);
    write_all(fd, prefix.data, prefix.len);
    write_all(fd, head->data, head->len);
    for (uint64_t done = 0; !holes && done < w->len; done += sizeof block) {
        const uint64_t left = w->len - done;
        oc_test_fill(block, sizeof block, seed + done);
        write_all(fd, block, left < sizeof block ? (size_t)left : sizeof block);
    }
    assert_true(!holes || lseek(fd, (off_t)w->len, SEEK_CUR) >= 0);
}

enum { WEIGHTS_MAX = 8 };

/* A model with these embedded weights (holes in the file, when they are large), and external ones in main graph and If body. */
static void put_weights(const bench *b, const char *name, const weight *weights, size_t count, const ext *main, size_t main_count,
                        const ext *inner, size_t inner_count, bool holes)
{
    pb base, front = {.len = 0}, heads[WEIGHTS_MAX] = {{.len = 0}};
    size_t graph_at = 2; /* behind ir_version */

    make_model(&base, main, main_count, inner, inner_count);
    const uint64_t graph_len = field_len(base.data, &graph_at);
    uint64_t new_len = graph_len;
    for (size_t i = 0; i < count; i++) {
        put_head(&heads[i], weights[i].name, weights[i].len);
        const uint64_t tensor_len = heads[i].len + weights[i].len;
        new_len += 1 + varint_len(tensor_len) + tensor_len;
    }
    const int fd = open(at(b, name), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    pb_int(&front, 1, 9);
    pb_varint(&front, 7 << 3 | 2);
    pb_varint(&front, new_len);
    write_all(fd, front.data, front.len);
    write_all(fd, base.data + graph_at, (size_t)graph_len);
    for (size_t i = 0; i < count; i++) {
        write_weight(fd, &weights[i], &heads[i], i * UINT64_C(1000003), holes);
    }
    write_all(fd, base.data + graph_at + graph_len, base.len - graph_at - (size_t)graph_len);
    assert_int_equal(close(fd), 0);
}

static ortcrypt_status encrypt(bench *b, const char *model, const char *bundle, ortcrypt_split split, ortcrypt_bundle_info *info,
                               ortcrypt_error *err)
{
    const ortcrypt_monitor monitor = {.notice = bench_notice, .state = b};
    const ortcrypt_encrypt_options options = {.struct_size = sizeof options, .monitor = &monitor, .split = split};

    return ortcrypt_encrypt(at(b, model), at(b, bundle), b->writer, &options, info, err);
}

static void comes_back(const bench *b, const char *bundle, const char *out, const char *model)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char back[64];
    ortcrypt_bundle *const open = open_bundle(b, bundle);

    oc_test_ok(ortcrypt_bundle_decrypt(open, at(b, out), NULL, &err), &err);
    close_bundle(open);
    (void)snprintf(back, sizeof back, "%s/%s", out, model);
    same_files(b, model, back);
    oc_test_ok(ortcrypt_bundle_verify(at(b, bundle), b->reader, NULL, NULL, &err), &err);
}

static const oc_variant *source_of(ortcrypt_bundle *bundle)
{
    return oc_manifest_find_variant(oc_bundle_manifest(bundle), "source");
}

static bool is_split(ortcrypt_bundle *bundle)
{
    const oc_variant *const variant = source_of(bundle);

    return oc_pair_get(variant->extensions, variant->extension_count, OC_SPLIT_MEMBER) != NULL;
}

static const weight some[] = {{"a", 4096}, {"small", 4095}, {"b", 100001}, {"twice", 5000}, {"twice", 5000}, {"c", 3000000}};

static void moves_what_can_move(void **state)
{
    static const char *const moved[] = {"a", "b", "c"};
    static const uint64_t offsets[] = {0, 4096, 4096 + 102400}; /* multiples of 4096, in the order of the model */
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;

    put_weights(b, "net.onnx", some, 6, NULL, 0, NULL, 0, false);
    oc_test_ok(encrypt(b, "net.onnx", "bundle", ORTCRYPT_SPLIT_ALWAYS, &info, &err), &err);
    assert_int_equal(info.asset_count, 3); /* model, weights, recipe */
    assert_int_equal(b->notice_count, 0);

    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_variant *const variant = source_of(bundle);
    oc_split split;
    oc_test_ok(oc_split_read(&split, manifest, variant, &err), &err);
    assert_non_null(split.weights);
    assert_int_equal(split.weights->size, 4096 + 102400 + 3000000);
    assert_true(split.recipe->size < 600);
    const oc_asset *const model = oc_manifest_find_asset(manifest, oc_variant_find_part(variant, OC_ROLE_MODEL, "")->asset);
    assert_true(model->size < 16000); /* what stayed, and no copy of the original anywhere */
    assert_int_equal(variant->part_count, 2);
    assert_int_equal(variant->tensor_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(variant->tensors[i].name, moved[i]);
        assert_int_equal(variant->tensors[i].offset, offsets[i]);
        assert_memory_equal(variant->tensors[i].asset, split.weights->id, OC_ASSET_ID_LEN);
    }
    close_bundle(bundle);
    comes_back(b, "bundle", "out", "net.onnx");
    assert_int_equal(count_names(b, "out"), 1);
    assert_false(there(b, "out/ortcrypt.weights"));
}

/* Other rewriting beside it: a location becomes plain, an If's data moves in. One recipe for all; a name that is taken is left. */
static void together_with_other_edits(void **state)
{
    static const ext main[] = {{"w", "sub/../ortcrypt.weights", 4, 6}};
    static const ext inner[] = {{"i", "inner.bin", 5, 20}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;

    put_file(b, "ortcrypt.weights", 16, 3);
    put_file(b, "inner.bin", 25, 5);
    put_weights(b, "net.onnx", some, 6, main, 1, inner, 1, false);
    oc_test_ok(encrypt(b, "net.onnx", "bundle", ORTCRYPT_SPLIT_ALWAYS, &info, &err), &err);
    assert_int_equal(info.asset_count, 5);
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    assert_int_equal(source_of(bundle)->tensor_count, 4);
    assert_non_null(oc_variant_find_part(source_of(bundle), OC_ROLE_EXTERNAL, "ortcrypt.weights"));
    assert_non_null(oc_variant_find_part(source_of(bundle), OC_ROLE_EXTERNAL, "ortcrypt.weights.2"));
    close_bundle(bundle);
    comes_back(b, "bundle", "out", "net.onnx");
    same_files(b, "ortcrypt.weights", "out/ortcrypt.weights");
    same_files(b, "inner.bin", "out/inner.bin");
    assert_false(there(b, "out/ortcrypt.weights.2"));
}

static void only_when_told_or_large(void **state)
{
    static const weight limit[] = {{"a", 64u << 20}}, beyond[] = {{"a", 64u << 20}, {"b", 4096}};
    static const weight small[] = {{"a", 4095}, {"b", 4095}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    put_weights(b, "limit.onnx", limit, 1, NULL, 0, NULL, 0, true);
    put_weights(b, "beyond.onnx", beyond, 2, NULL, 0, NULL, 0, true);
    put_weights(b, "small.onnx", small, 2, NULL, 0, NULL, 0, false);
    const struct {
        const char *model, *bundle;
        ortcrypt_split split;
        bool splits;
        size_t notices;
    } cases[] = {
        {"limit.onnx", "b0", ORTCRYPT_SPLIT_LARGE, false, 0}, {"limit.onnx", "b1", ORTCRYPT_SPLIT_ALWAYS, true, 0},
        {"beyond.onnx", "b2", ORTCRYPT_SPLIT_LARGE, true, 0}, {"beyond.onnx", "b3", ORTCRYPT_SPLIT_NEVER, false, 0},
        {"small.onnx", "b4", ORTCRYPT_SPLIT_ALWAYS, false, 1}, {"small.onnx", "b5", ORTCRYPT_SPLIT_LARGE, false, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        oc_test_ok(encrypt(b, cases[i].model, cases[i].bundle, cases[i].split, NULL, &err), &err);
        ortcrypt_bundle *const bundle = open_bundle(b, cases[i].bundle);
        assert_int_equal(is_split(bundle), cases[i].splits);
        close_bundle(bundle);
        assert_int_equal(b->notice_count, cases[i].notices);
    }
    comes_back(b, "b2", "out", "beyond.onnx");
    const ortcrypt_encrypt_options unknown = {.struct_size = sizeof unknown, .split = (ortcrypt_split)3};
    oc_test_status(ortcrypt_encrypt(at(b, "small.onnx"), at(b, "b6"), b->writer, &unknown, NULL, &err), ORTCRYPT_E_INVALID, &err);
}

/* A recipe that does not give the original back is never relied on: the model is stored unsplit, and that is said. */
static void not_split_without_proof(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;

    put_weights(b, "net.onnx", some, 6, NULL, 0, NULL, 0, false);
    for (int how = NO_RECORD; how <= OTHER_BYTE; how++) {
        const char *const name = how == NO_RECORD ? "b0" : "b1";
        spoil = how == NO_RECORD ? NO_RECORD : OTHER_BYTE;
        b->notices[0] = '\0';
        oc_test_ok(encrypt(b, "net.onnx", name, ORTCRYPT_SPLIT_ALWAYS, &info, &err), &err);
        spoil = AS_IT_IS;
        assert_non_null(strstr(b->notices, "not split"));
        assert_int_equal(info.asset_count, 1);
        ortcrypt_bundle *const bundle = open_bundle(b, name);
        assert_false(is_split(bundle));
        assert_int_equal(source_of(bundle)->tensor_count, 0);
        assert_int_equal(source_of(bundle)->part_count, 1);
        close_bundle(bundle);
        comes_back(b, name, how == NO_RECORD ? "out0" : "out1", "net.onnx");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moves_what_can_move, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(together_with_other_edits, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(only_when_told_or_large, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(not_split_without_proof, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
