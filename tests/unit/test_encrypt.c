/* Encrypting models with external data: what is stored, what is rewritten, that the original comes back. */
#include "bundle/bundle.h"
#include "bundle/encrypt_plan.h"
#include "bundle/inputs_files.h"
#include "unit/bundle_models.h"

static void encrypt_ok(const bench *b, const char *model, const char *bundle, const ortcrypt_encrypt_options *options)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(ortcrypt_encrypt(at(b, model), at(b, bundle), b->writer, options, NULL, &err), &err);
}

static void decrypt_ok(const bench *b, const char *bundle, const char *out)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *const open = open_bundle(b, bundle);
    oc_test_ok(ortcrypt_bundle_decrypt(open, at(b, out), NULL, &err), &err);
    close_bundle(open);
}

static const oc_variant *source_of(ortcrypt_bundle *bundle)
{
    const oc_variant *const variant = oc_manifest_find_variant(oc_bundle_manifest(bundle), "source");
    assert_non_null(variant);
    assert_string_equal(variant->kind, "source");
    return variant;
}

/* The part's plaintext, with a final NUL that *len does not count. */
static uint8_t *read_part(ortcrypt_bundle *bundle, oc_role role, const char *name, size_t *len)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const oc_part *const part = oc_variant_find_part(source_of(bundle), role, name);
    assert_non_null(part);
    const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(bundle), part->asset);
    assert_non_null(asset);
    uint8_t *const data = calloc((size_t)asset->size + 1, 1);
    assert_non_null(data);
    oc_test_ok(oc_bundle_read(bundle, asset, data, NULL, &err), &err);
    *len = (size_t)asset->size;
    return data;
}

static void test_locations(void **state)
{
    static const struct {
        const char *location;
        const char *name; /* NULL: refused */
    } cases[] = {
        {"w.bin", "w.bin"},       {"./w.bin", "w.bin"},  {"a/b/w.bin", "a/b/w.bin"}, {"a/../w.bin", "w.bin"},
        {"a/b/../w", "a/w"},      {"a//b", "a/b"},       {"a/./b", "a/b"},           {"././w", "w"},
        {"w/", "w"},              {"...", "..."},        {"..a/b", "..a/b"},         {"a/b/c/../../d", "a/d"},
        {"", NULL},               {"/w.bin", NULL},      {"..", NULL},               {"../w.bin", NULL},
        {"a/../../w.bin", NULL},  {".", NULL},           {"a/..", NULL},             {"./", NULL},
        {"a/../..", NULL},        {"//w", NULL},         {"a/../../a/w.bin", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        char *name = NULL;
        oc_test_ok(oc_location_normalise(&name, cases[i].location, &err), &err);
        if (cases[i].name == NULL) {
            assert_null(name);
        } else {
            assert_non_null(name);
            assert_string_equal(name, cases[i].name);
        }
        free(name);
    }
}

static void test_plain_model(void **state)
{
    bench *const b = *state;
    const char *const keys[] = {"licence", "product"};
    const char *const values[] = {"internal", "caf\xc3\xa9"};
    const ortcrypt_encrypt_options options = {
        .struct_size = sizeof options, .label_keys = keys, .label_values = values, .label_count = 2};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;

    put_model(b, "net.onnx", NULL, 0, NULL, 0);
    oc_test_ok(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), b->writer, &options, &info, &err), &err);
    assert_int_equal(info.sequence, 1);
    assert_int_equal(info.asset_count, 1);
    assert_int_equal(info.variant_count, 1);

    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_variant *const variant = source_of(bundle);
    assert_string_equal(oc_pair_get(manifest->labels, manifest->label_count, "product"), "caf\xc3\xa9");
    assert_string_equal(oc_pair_get(variant->extensions, variant->extension_count, "x-file-name"), "\"net.onnx\"");
    assert_null(oc_pair_get(variant->extensions, variant->extension_count, "x-original"));
    assert_int_equal(variant->part_count, 1);
    assert_int_equal(variant->tensor_count, 0);
    close_bundle(bundle);

    decrypt_ok(b, "bundle", "out");
    same_files(b, "net.onnx", "out/net.onnx");
}

static void test_external(void **state)
{
    static const ext main[] = {{"w", "data/w.bin", 0, 100},
                               {"v", "./data/w.bin", 128, 2000000},
                               {"shared", "data/w.bin", 128, 2000000},
                               {"none", "data/w.bin", 2000128, 0},
                               {"u", "u.bin", 7, 3}};
    bench *const b = *state;

    assert_int_equal(mkdir(at(b, "data"), 0700), 0);
    put_file(b, "data/w.bin", 2000128, 1);
    put_file(b, "u.bin", 10, 2);
    put_model(b, "net.onnx", main, 5, NULL, 0);
    encrypt_ok(b, "net.onnx", "bundle", NULL);

    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    const oc_variant *const variant = source_of(bundle);
    assert_int_equal(variant->part_count, 3);
    assert_int_equal(variant->tensor_count, 5);
    assert_null(oc_pair_get(variant->extensions, variant->extension_count, "x-original"));
    const oc_part *const w = oc_variant_find_part(variant, OC_ROLE_EXTERNAL, "data/w.bin");
    const oc_part *const u = oc_variant_find_part(variant, OC_ROLE_EXTERNAL, "u.bin");
    assert_non_null(w);
    assert_non_null(u);
    for (size_t i = 0; i < variant->tensor_count; i++) {
        const oc_tensor *const tensor = &variant->tensors[i];
        size_t k = 0;
        while (strcmp(main[k].name, tensor->name) != 0) {
            assert_true(++k < 5);
        }
        assert_int_equal(tensor->dtype, 2);
        assert_int_equal(tensor->rank, 1);
        assert_int_equal(tensor->shape[0], main[k].length);
        assert_int_equal(tensor->offset, main[k].offset);
        assert_int_equal(tensor->length, main[k].length);
        assert_memory_equal(tensor->asset, k == 4 ? u->asset : w->asset, OC_ASSET_ID_LEN);
    }
    close_bundle(bundle);

    decrypt_ok(b, "bundle", "out");
    same_files(b, "net.onnx", "out/net.onnx");
    same_files(b, "data/w.bin", "out/data/w.bin");
    same_files(b, "u.bin", "out/u.bin");
}

/* A location that ORT's in-memory lookup would not find becomes plain in the model that ORT gets. */
static void test_relocated(void **state)
{
    static const ext main[] = {{"w", "sub/../w.bin", 4, 6}, {"v", "w.bin", 10, 6}};
    bench *const b = *state;
    size_t len = 0;

    put_file(b, "w.bin", 16, 3);
    put_model(b, "net.onnx", main, 2, NULL, 0);
    encrypt_ok(b, "net.onnx", "bundle", NULL);

    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    assert_int_equal(source_of(bundle)->part_count, 2);
    assert_int_equal(source_of(bundle)->tensor_count, 2);
    uint8_t *const model = read_part(bundle, OC_ROLE_MODEL, "", &len);
    const oc_span span = OC_SPAN(model, len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *onnx = NULL;
    oc_test_ok(oc_onnx_scan(&onnx, &source, "the stored model", &err), &err);
    assert_int_equal(onnx->tensor_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(onnx->tensors[i].external);
        assert_string_equal(onnx->tensors[i].location, "w.bin");
        assert_int_equal(onnx->tensors[i].offset, main[i].offset);
        assert_int_equal(onnx->tensors[i].length, 6);
    }
    oc_onnx_model_free(onnx);
    free(model);
    close_bundle(bundle);

    decrypt_ok(b, "bundle", "out");
    same_files(b, "net.onnx", "out/net.onnx");
    same_files(b, "w.bin", "out/w.bin");
}

/* Initializers of subgraphs cannot be given to ORT from memory: their bytes move into the model. */
static void test_inlined(void **state)
{
    static const ext main[] = {{"w", "w.bin", 0, 10}};
    static const ext inner[] = {{"i", "inner.bin", 5, 20}, {"j", "w.bin", 10, 6}, {"empty", "w.bin", 0, 0}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    size_t len = 0;
    size_t inner_len = 0;

    put_file(b, "w.bin", 16, 4);
    put_file(b, "inner.bin", 25, 5);
    put_model(b, "net.onnx", main, 1, inner, 3);
    encrypt_ok(b, "net.onnx", "bundle", NULL);

    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    const oc_variant *const variant = source_of(bundle);
    assert_int_equal(variant->part_count, 3); /* the model and both data files */
    assert_int_equal(variant->tensor_count, 1);
    assert_string_equal(variant->tensors[0].name, "w");
    assert_non_null(oc_pair_get(variant->extensions, variant->extension_count, "x-original"));
    uint8_t *const model = read_part(bundle, OC_ROLE_MODEL, "", &len);
    uint8_t *const bytes = read_part(bundle, OC_ROLE_EXTERNAL, "inner.bin", &inner_len);
    const oc_span span = OC_SPAN(model, len);
    const oc_source source = oc_source_memory(&span);
    oc_onnx_model *onnx = NULL;
    oc_test_ok(oc_onnx_scan(&onnx, &source, "the stored model", &err), &err);
    for (size_t i = 0; i < onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &onnx->tensors[i];
        assert_int_equal(tensor->external, tensor->main_graph);
        if (strcmp(tensor->name, "i") == 0) {
            assert_int_equal(tensor->raw_len, 20);
            assert_memory_equal(model + tensor->raw_off, bytes + 5, 20);
        }
    }
    oc_onnx_model_free(onnx);
    free(model);
    free(bytes);
    close_bundle(bundle);

    decrypt_ok(b, "bundle", "out");
    same_files(b, "net.onnx", "out/net.onnx");
    same_files(b, "w.bin", "out/w.bin");
    same_files(b, "inner.bin", "out/inner.bin");
}

/* A hub cache: names are links to blobs elsewhere; data files are looked for beside the link, not beside the blob. */
static void test_links(void **state)
{
    static const ext main[] = {{"w", "net.onnx.data", 0, 100}};
    bench *const b = *state;

    assert_int_equal(mkdir(at(b, "blobs"), 0700), 0);
    assert_int_equal(mkdir(at(b, "snapshot"), 0700), 0);
    put_file(b, "blobs/0123", 100, 6);
    put_model(b, "blobs/4567", main, 1, NULL, 0);
    put_file(b, "blobs/89ab", 50, 7);
    assert_int_equal(symlink("../blobs/4567", at(b, "snapshot/net.onnx")), 0);
    assert_int_equal(symlink("../blobs/0123", at(b, "snapshot/net.onnx.data")), 0);
    assert_int_equal(symlink("../blobs/89ab", at(b, "snapshot/tokenizer.json")), 0);

    const char *const extra[] = {at(b, "snapshot/tokenizer.json")};
    const ortcrypt_encrypt_options options = {.struct_size = sizeof options, .extra_files = extra, .extra_count = 1};
    encrypt_ok(b, "snapshot/net.onnx", "bundle", &options);
    decrypt_ok(b, "bundle", "out");
    same_files(b, "blobs/4567", "out/net.onnx");
    same_files(b, "blobs/0123", "out/net.onnx.data");
    same_files(b, "blobs/89ab", "out/tokenizer.json");
}

/* An input that was looked at and is another file when its turn comes. */
static void test_input_again(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    put_file(b, "w.bin", 100, 1);
    put_file(b, "other", 100, 2);
    oc_input input = OC_INPUT(at(b, "w.bin"));
    oc_test_ok(oc_input_look(&input, "data file", &err), &err);
    assert_int_equal(input.size, 100);
    oc_input_close(&input);
    oc_test_ok(oc_input_open(&input, &err), &err);
    oc_test_ok(oc_input_same(&input, &err), &err);
    oc_input_close(&input);
    assert_int_equal(rename(at(b, "other"), at(b, "w.bin")), 0);
    oc_test_status(oc_input_open(&input, &err), ORTCRYPT_E_INPUT, &err);
    assert_int_equal(input.fd, -1);
}

/* Offsets and sizes beyond 4 GiB, in a file of holes: only the plan is made. */
static void test_large_offsets(void **state)
{
    static const ext main[] = {{"low", "w.bin", 16, 100}, {"high", "w.bin", UINT64_C(6) << 30, 4096}};
    bench *const b = *state;
    const ortcrypt_encrypt_options options = {.struct_size = sizeof options};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_encrypt_plan *plan = NULL;

    oc_test_write_file(at(b, "w.bin"), "", 0);
    assert_int_equal(truncate(at(b, "w.bin"), (off_t)((INT64_C(6) << 30) + 4096)), 0);
    put_model(b, "net.onnx", main, 2, NULL, 0);
    oc_test_ok(oc_encrypt_plan_make(&plan, at(b, "net.onnx"), &options, &err), &err);
    assert_int_equal(plan->file_count, 1);
    assert_int_equal(plan->files[0].input.size, (UINT64_C(6) << 30) + 4096);
    assert_int_equal(plan->tensors[1].offset, UINT64_C(6) << 30);
    assert_int_equal(plan->edit_count, 0);
    oc_encrypt_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locations),
        cmocka_unit_test_setup_teardown(test_plain_model, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_external, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_relocated, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_inlined, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_links, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_input_again, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_large_offsets, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
