/* Inputs that encrypt must refuse: each with a sentence that names the file and says why, and nothing left behind. */

#include "unit/bundle_models.h"

/* Encrypting net.onnx must fail with `status` and a sentence that has every one of the words. */
static void refused(const bench *b, const ortcrypt_encrypt_options *options, ortcrypt_status status, const char *words[4])
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    oc_test_status(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), b->writer, options, NULL, &err), status, &err);
    for (size_t i = 0; i < 4 && words[i] != NULL; i++) {
        if (strstr(err.message, words[i]) == NULL) {
            fail_msg("\"%s\" is not in: %s", words[i], err.message);
        }
    }
    assert_int_equal(count_names(b, "bundle"), 0);
}

#define REFUSED(b, options, status, ...) refused((b), (options), (status), (const char *[4]){__VA_ARGS__})

static void test_data_files(void **state)
{
    static const struct {
        ext tensor;
        const char *words[4];
        bool io; /* the system does not open it */
    } cases[] = {
        {{"w", "missing.bin", 0, 4}, {"net.onnx", "'w'", "missing.bin", "No such file"}, true},
        {{"w", "../w.bin", 0, 4}, {"net.onnx", "'w'", "../w.bin", "outside the model's folder"}, false},
        {{"w", "a/../../w.bin", 0, 4}, {"net.onnx", "'w'", "outside the model's folder"}, false},
        {{"w", "/etc/hostname", 0, 4}, {"net.onnx", "'w'", "/etc/hostname", "outside the model's folder"}, false},
        {{"w", ".", 0, 4}, {"net.onnx", "'w'", "outside the model's folder"}, false},
        {{"w", "w.bin", 0, 101}, {"net.onnx", "'w'", "w.bin", "has only 100"}, false},
        {{"w", "w.bin", 101, 0}, {"net.onnx", "'w'", "w.bin", "has only 100"}, false},
        {{"w", "w.bin", INT64_MAX - 4, 4}, {"net.onnx", "'w'", "w.bin", "has only 100"}, false},
        {{"w", "folder", 0, 4}, {"net.onnx", "'w'", "folder", "is a directory"}, false},
        {{"w", "folder/x.bin", 0, 4}, {"net.onnx", "'w'", "folder/x.bin", "No such file"}, true},
        {{"w", "w.bin/x", 0, 4}, {"net.onnx", "'w'", "w.bin/x", "Not a directory"}, true},
        {{"w", "fifo", 0, 4}, {"net.onnx", "'w'", "fifo", "not a regular file"}, false},
        {{"w", "dangling", 0, 4}, {"net.onnx", "'w'", "dangling", "No such file"}, true},
        {{"w", "lfs.bin", 0, 4}, {"net.onnx", "'w'", "lfs.bin", "is a Git LFS pointer, not the data"}, false},
        {{"w", "net.onnx", 0, 4}, {"net.onnx", "'w'", "is the model itself"}, false},
        {{"w", "./net.onnx", 0, 4}, {"net.onnx", "'w'", "is the model itself"}, false},
        {{"w", "*/_ORT_MEM_ADDR_/*", 0, 4}, {"net.onnx", "tensor w", "memory address"}, false},
        {{"w", "\xff.bin", 0, 4}, {"net.onnx", "UTF-8"}, false},
        {{"\xff", "w.bin", 0, 4}, {"net.onnx", "UTF-8"}, false},
    };
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\n"
                              "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    bench *const b = *state;

    put_file(b, "w.bin", 100, 1);
    oc_test_write_file(at(b, "lfs.bin"), lfs, sizeof lfs - 1);
    assert_int_equal(mkdir(at(b, "folder"), 0700), 0);
    assert_int_equal(mkfifo(at(b, "fifo"), 0600), 0);
    assert_int_equal(symlink("nowhere", at(b, "dangling")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* in the main graph and in a subgraph alike */
        const ortcrypt_status wanted = cases[i].io ? ORTCRYPT_E_IO : ORTCRYPT_E_INPUT;
        put_model(b, "net.onnx", &cases[i].tensor, 1, NULL, 0);
        refused(b, NULL, wanted, (const char **)(uintptr_t)cases[i].words);
        put_model(b, "net.onnx", NULL, 0, &cases[i].tensor, 1);
        refused(b, NULL, wanted, (const char **)(uintptr_t)cases[i].words);
    }
}

static void test_overlap(void **state)
{
    static const ext touching[] = {{"v", "w.bin", 0, 50}, {"w", "w.bin", 50, 50}};
    static const ext around_empty[] = {{"v", "w.bin", 0, 20}, {"e", "w.bin", 10, 0}, {"w", "w.bin", 15, 5}};
    static const ext cases[][2] = {
        {{"v", "w.bin", 0, 51}, {"w", "w.bin", 50, 50}}, /* by one byte */
        {{"v", "w.bin", 0, 100}, {"w", "./w.bin", 10, 5}}, /* inside, other spelling */
        {{"v", "w.bin", 0, 10}, {"w", "w.bin", 0, 20}},  /* same start */
        {{"v", "w.bin", 10, 10}, {"w", "x/../w.bin", 0, 20}}, /* same end */
    };
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    put_file(b, "w.bin", 100, 1);
    for (size_t i = 0; i < 4; i++) {
        put_model(b, "net.onnx", cases[i], 2, NULL, 0);
        REFUSED(b, NULL, ORTCRYPT_E_INPUT, "'v'", "'w'", "overlap", "w.bin");
        put_model(b, "net.onnx", &cases[i][0], 1, &cases[i][1], 1);
        REFUSED(b, NULL, ORTCRYPT_E_INPUT, "'v'", "'w'", "overlap", "w.bin");
    }
    put_model(b, "net.onnx", around_empty, 3, NULL, 0);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "'v'", "'w'", "overlap", "w.bin");
    put_model(b, "net.onnx", touching, 2, NULL, 0);
    oc_test_ok(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), b->writer, NULL, NULL, &err), &err);
}

static void test_models(void **state)
{
    bench *const b = *state;

    REFUSED(b, NULL, ORTCRYPT_E_IO, "net.onnx", "No such file");
    oc_test_write_file(at(b, "net.onnx"), "<!DOCTYPE html><html>", 21);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx");
    oc_test_write_file(at(b, "net.onnx"), "", 0);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx");
    oc_test_write_file(at(b, "net.onnx"), "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", 64);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx", "Git LFS pointer");
    assert_int_equal(unlink(at(b, "net.onnx")), 0);
    assert_int_equal(mkdir(at(b, "net.onnx"), 0700), 0);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx", "is a directory");
    assert_int_equal(rmdir(at(b, "net.onnx")), 0);
    assert_int_equal(mkfifo(at(b, "net.onnx"), 0600), 0);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx", "not a regular file");
    assert_int_equal(unlink(at(b, "net.onnx")), 0);
    assert_int_equal(symlink("net.onnx", at(b, "net.onnx")), 0);
    REFUSED(b, NULL, ORTCRYPT_E_IO, "net.onnx");
}

/* ModelProto {ir_version 8, graph {node {op_type EPContext, domain com.microsoft, attributes embed_mode 0, ep_cache_context x.bin}}} */
static void test_compiled_model(void **state)
{
    static const char model[] = "\x08\x08\x3a\x4d\x0a\x4b\x22\x09" "EPContext"
                                "\x2a\x11\x0a\x0a" "embed_mode" "\x18\x00\xa0\x01\x02"
                                "\x2a\x1c\x0a\x10" "ep_cache_context" "\x22\x05" "x.bin" "\xa0\x01\x03"
                                "\x3a\x0d" "com.microsoft";
    bench *const b = *state;

    oc_test_write_file(at(b, "net.onnx"), model, sizeof model - 1);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx", "compiled already");
    assert_int_equal(unlink(at(b, "net.onnx")), 0);
}

static void test_model_name(void **state)
{
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    put_model(b, "\xc3.onnx", NULL, 0, NULL, 0);
    oc_test_status(ortcrypt_encrypt(at(b, "\xc3.onnx"), at(b, "bundle"), b->writer, NULL, NULL, &err), ORTCRYPT_E_INPUT, &err);
    assert_non_null(strstr(err.message, "UTF-8"));
    assert_int_equal(count_names(b, "bundle"), 0);
}

static void test_inlining_too_much(void **state)
{
    static const ext inner[] = {{"huge", "w.bin", 0, INT32_MAX - 100}};
    bench *const b = *state;

    oc_test_write_file(at(b, "w.bin"), "", 0);
    assert_int_equal(truncate(at(b, "w.bin"), INT32_MAX), 0);
    put_model(b, "net.onnx", NULL, 0, inner, 1);
    REFUSED(b, NULL, ORTCRYPT_E_INPUT, "net.onnx", "'huge'", "2 GiB");
}

static void test_extras(void **state)
{
    static const ext main[] = {{"w", "w.bin", 0, 100}};
    bench *const b = *state;

    put_file(b, "w.bin", 100, 1);
    put_model(b, "net.onnx", main, 1, NULL, 0);
    assert_int_equal(mkdir(at(b, "a"), 0700), 0);
    put_file(b, "a/tok.json", 5, 2);
    put_file(b, "tok.json", 5, 3);
    put_file(b, "a/w.bin", 5, 4);
    put_file(b, "a/net.onnx", 5, 5);
    put_file(b, "\xfe", 5, 6);
    char *const names[] = {oc_test_format("%s/tok.json", b->dir), oc_test_format("%s/a/tok.json", b->dir),
                           oc_test_format("%s/a/w.bin", b->dir),  oc_test_format("%s/a/net.onnx", b->dir),
                           oc_test_format("%s/gone", b->dir),     oc_test_format("%s/a", b->dir),
                           oc_test_format("%s/\xfe", b->dir),     oc_test_format("%s/tok.json/", b->dir)};
    const struct {
        size_t from;
        size_t count;
        const char *word;
        bool io; /* the system does not open it */
    } cases[] = {{0, 2, "same name tok.json", false},  {2, 1, "name of an external data file", false},
                 {3, 1, "name of the model", false},   {4, 1, "No such file", true},
                 {5, 1, "is a directory", false},      {6, 1, "UTF-8", false},
                 {7, 1, "Not a directory", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ortcrypt_encrypt_options options = {.struct_size = sizeof options,
                                                  .extra_files = (const char *const *)names + cases[i].from,
                                                  .extra_count = cases[i].count};
        REFUSED(b, &options, cases[i].io ? ORTCRYPT_E_IO : ORTCRYPT_E_INPUT, "extra file", cases[i].word);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        free(names[i]);
    }
}

static void test_calls(void **state)
{
    bench *const b = *state;
    const char *const key[] = {"k", "k"};
    const char *const empty[] = {""};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_keyring *nobody = NULL;
    ortcrypt_encrypt_options options = {.struct_size = sizeof options, .label_count = 1};

    put_model(b, "net.onnx", NULL, 0, NULL, 0);
    REFUSED(b, &options, ORTCRYPT_E_INVALID, "label");
    options.label_keys = empty;
    options.label_values = key;
    REFUSED(b, &options, ORTCRYPT_E_INVALID, "label");
    options.label_keys = key;
    options.label_count = 2;
    REFUSED(b, &options, ORTCRYPT_E_INVALID, "twice");
    options = (ortcrypt_encrypt_options){.struct_size = 3};
    REFUSED(b, &options, ORTCRYPT_E_INVALID, "struct_size");

    oc_test_ok(ortcrypt_keyring_new(&nobody, &err), &err);
    oc_test_status(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), nobody, NULL, NULL, &err), ORTCRYPT_E_NO_KEY, &err);
    assert_int_equal(count_names(b, "bundle"), 0);
    ortcrypt_keyring_free(nobody);

    oc_test_write_file(at(b, "bundle"), "mine", 4);
    oc_test_status(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), b->writer, NULL, NULL, &err), ORTCRYPT_E_EXISTS, &err);
    assert_int_equal(count_names(b, "bundle"), 1);
    oc_test_status(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "no/bundle"), b->writer, NULL, NULL, &err), ORTCRYPT_E_IO, &err);
}

typedef struct change {
    const bench *bench;
    const char *name; /* file that is changed at the first progress report behind `from` bytes; NULL: cancel */
    uint64_t from;
} change;

static int change_input(void *state, const char *step, uint64_t done, uint64_t total)
{
    change *const c = state;

    assert_string_equal(step, "encrypting");
    assert_true(done <= total);
    if (done < c->from) {
        return 0;
    }
    if (c->name == NULL) {
        return 1;
    }
    FILE *const file = fopen(at(c->bench, c->name), "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(fputc('x', file), 'x');
    assert_int_equal(fclose(file), 0);
    return 0;
}

static void test_changing_input(void **state)
{
    static const ext main[] = {{"w", "w.bin", 0, 3000000}};
    bench *const b = *state;
    const struct {
        change change;
        ortcrypt_status status;
        const char *word;
    } cases[] = {{{b, "w.bin", 0}, ORTCRYPT_E_INPUT, "w.bin changed"}, /* between the look and the reading */
                 {{b, "net.onnx", 0}, ORTCRYPT_E_INPUT, "net.onnx changed"},
                 {{b, "w.bin", 1500000}, ORTCRYPT_E_INPUT, "w.bin changed"}, /* while it is read */
                 {{b, NULL, 0}, ORTCRYPT_E_CANCELLED, ""},
                 {{b, NULL, 1500000}, ORTCRYPT_E_CANCELLED, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        change changing = cases[i].change;
        const ortcrypt_monitor monitor = {.progress = change_input, .state = &changing};
        const ortcrypt_encrypt_options options = {.struct_size = sizeof options, .monitor = &monitor};
        put_file(b, "w.bin", 3000000, 1);
        put_model(b, "net.onnx", main, 1, NULL, 0);
        REFUSED(b, &options, cases[i].status, cases[i].word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_data_files, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_overlap, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_models, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_compiled_model, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_model_name, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_inlining_too_much, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_extras, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_calls, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_changing_input, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
