/* Decrypting into a folder: hostile names, collisions, links planted meanwhile, failures that must leave nothing. */
#include <signal.h>
#include <sys/resource.h>

#include "bundle/bundle.h"
#include "unit/bundle_models.h"

/* A part of a bundle that is written by hand: as a publisher with other manners would. */
typedef struct piece {
    oc_role role;
    const char *name;
    const char *content;
} piece;

/*
 * A bundle with these parts in one variant. Extensions: NULL-terminated pairs; %s in a value stands for the id of the last
 * part's asset.
 */
static void make_bundle(const bench *b, const char *name, const char *kind, const piece *pieces, size_t count,
                        const char *const *extensions)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;
    oc_variant *variant = NULL;
    uint8_t id[OC_ASSET_ID_LEN];

    oc_test_ok(oc_txn_create(&txn, at(b, name), b->writer, &err), &err);
    oc_test_ok(oc_manifest_add_variant(oc_txn_manifest(txn), "v", kind, &variant, &err), &err);
    for (size_t i = 0; i < count; i++) {
        oc_test_ok(oc_txn_put(txn, OC_SPAN(pieces[i].content, strlen(pieces[i].content)), id, &err), &err);
        oc_test_ok(oc_variant_add_part(variant, pieces[i].role, pieces[i].name, id, &err), &err);
    }
    for (size_t i = 0; extensions != NULL && extensions[i] != NULL; i += 2) {
        char hex[2 * OC_ASSET_ID_LEN + 1];
        const char *const value = extensions[i + 1];
        const char *const id_at = strstr(value, "%s");
        oc_hex_encode(hex, id, OC_ASSET_ID_LEN);
        char *const text = id_at == NULL ? oc_test_format("%s", value)
                                         : oc_test_format("%.*s%s%s", (int)(id_at - value), value, hex, id_at + 2);
        oc_test_ok(oc_pair_add(&variant->extensions, &variant->extension_count, extensions[i], text, &err), &err);
        free(text);
    }
    oc_test_ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

static int (*watch)(void *, const char *, uint64_t, uint64_t); /* progress of decrypt(), or NULL */

static ortcrypt_status decrypt(bench *b, const char *bundle, const char *out, ortcrypt_error *err)
{
    const ortcrypt_monitor monitor = {.notice = bench_notice, .progress = watch, .state = b};
    ortcrypt_bundle *const open = open_bundle(b, bundle);
    const ortcrypt_status status = ortcrypt_bundle_decrypt(open, at(b, out), &monitor, err);

    close_bundle(open);
    return status;
}

static void has(const bench *b, const char *name, const char *content)
{
    size_t len = 0;
    uint8_t *const data = oc_test_read_file(at(b, name), &len);

    assert_string_equal((const char *)data, content);
    free(data);
}

static void test_hostile_names(void **state)
{
    bench *const b = *state;
    char *const absolute = oc_test_format("%s/abs", b->dir);
    const char *const names[] = {"../x", absolute, "a/../../b", ".", "..", "a//b", "a/", "./c", "a/../../../etc/passwd"};
    enum { COUNT = sizeof names / sizeof names[0] };
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    piece pieces[2 * COUNT + 1] = {{OC_ROLE_MODEL, "", "model"}};
    size_t files = 0;

    for (size_t i = 0; i < COUNT; i++) {
        pieces[1 + 2 * i] = (piece){OC_ROLE_EXTERNAL, names[i], "data"};
        pieces[2 + 2 * i] = (piece){OC_ROLE_EXTRA, names[i], "extra"};
    }
    make_bundle(b, "bundle", "source", pieces, 2 * COUNT + 1, (const char *const[]){"x-file-name", "\"../../evil\"", NULL});
    oc_test_status(decrypt(b, "bundle", "in/out", &err), ORTCRYPT_E_IO, &err); /* no parent */
    assert_int_equal(mkdir(at(b, "in"), 0700), 0);
    oc_test_ok(decrypt(b, "bundle", "in/out", &err), &err);
    assert_int_equal(b->notice_count, 2 * COUNT + 1);
    assert_non_null(strstr(b->notices, "'../../evil'"));

    DIR *const folder = opendir(at(b, "in/out"));
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            assert_int_equal(strncmp(entry->d_name, "asset-", 6), 0);
            assert_int_equal(strlen(entry->d_name), strlen("asset-.bin") + 32);
            files++;
        }
    }
    closedir(folder);
    assert_int_equal(files, 2 * COUNT + 1);
    assert_false(there(b, "abs") || there(b, "x") || there(b, "b") || there(b, "in/x") || there(b, "in/b") || there(b, "evil"));
    free(absolute);
}

/* Data files keep their names (the model finds them by name); whoever comes second gets another one. */
static void test_collisions(void **state)
{
    static const piece pieces[] = {{OC_ROLE_MODEL, "", "model"},        {OC_ROLE_EXTRA, "data", "extra"},
                                   {OC_ROLE_EXTRA, "w.bin", "extra w"}, {OC_ROLE_EXTERNAL, "data/w.bin", "data"},
                                   {OC_ROLE_EXTERNAL, "net", "weights"}, {OC_ROLE_EXTRA, "net/x", "below a file"},
                                   {OC_ROLE_INITIALIZER, "w.bin", "tensor"}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    size_t found = 0;

    make_bundle(b, "bundle", "source", pieces, 7, (const char *const[]){"x-file-name", "\"net\"", NULL});
    oc_test_ok(decrypt(b, "bundle", "out", &err), &err);
    has(b, "out/data/w.bin", "data");
    has(b, "out/net", "weights");
    has(b, "out/w.bin", "tensor");
    assert_int_equal(b->notice_count, 4); /* the model, data, w.bin, net/x */
    DIR *const folder = opendir(at(b, "out"));
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        found += strncmp(entry->d_name, "asset-", 6) == 0;
    }
    closedir(folder);
    assert_int_equal(found, 4);
}

static void test_modes(void **state)
{
    static const piece pieces[] = {{OC_ROLE_MODEL, "", "model"}, {OC_ROLE_EXTERNAL, "d/e/f", "data"}, {OC_ROLE_EXTRA, "none", ""}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct stat st;

    make_bundle(b, "bundle", "source", pieces, 3, NULL);
    oc_test_ok(decrypt(b, "bundle", "out//", &err), &err); /* slashes at the end are no part of the name */
    has(b, "out/model.onnx", "model"); /* without x-file-name */
    has(b, "out/none", "");
    assert_int_equal(stat(at(b, "out/d/e/f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(at(b, "out"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(b->notice_count, 0);
}

static void test_extensions(void **state)
{
    static const piece pieces[] = {{OC_ROLE_MODEL, "", "model"}};
    static const char *const bad[][3] = {
        {"x-file-name", "7", NULL},
        {"x-file-name", "\"\"", NULL},
        {"x-file-name", "[\"a\"]", NULL},
        {"x-original", "\"00112233445566778899aabbccddeeff\"", NULL},
        {"x-original", "{}", NULL},
        {"x-original", "{\"asset\":\"00112233445566778899aabbccddeeff\"}", NULL}, /* no such asset */
        {"x-original", "{\"asset\":\"00112233445566778899AABBCCDDEEFF\"}", NULL},
        {"x-original", "{\"asset\":1}", NULL},
        {"x-original", "{\"asset\":\"%s\",\"more\":1}", NULL},
        {"x-original", "[\"%s\"]", NULL},
    };
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char name[16];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(name, sizeof name, "bundle%zu", i);
        make_bundle(b, name, "source", pieces, 1, bad[i]);
        oc_test_status(decrypt(b, name, "out", &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
        assert_non_null(strstr(err.message, bad[i][0]));
        assert_int_equal(count_names(b, "out"), 0);
    }
    make_bundle(b, "file", "source", pieces, 1, (const char *const[]){"x-file-name", "\"a/b\"", "x-other", "[1,{}]", NULL});
    oc_test_ok(decrypt(b, "file", "out", &err), &err); /* not one component: another name */
    assert_int_equal(b->notice_count, 1);
    assert_false(there(b, "out/a"));

    static const piece both[] = {{OC_ROLE_MODEL, "", "rewritten"}, {OC_ROLE_EXTRA, "e", "the original"}};
    make_bundle(b, "rewritten", "source", both, 2, (const char *const[]){"x-original", "{\"asset\":\"%s\"}", NULL});
    oc_test_ok(decrypt(b, "rewritten", "out2", &err), &err);
    has(b, "out2/model.onnx", "the original");
}

static void test_no_source(void **state)
{
    static const piece pieces[] = {{OC_ROLE_MODEL, "", "model"}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b, "bundle", "compiled", pieces, 1, NULL);
    oc_test_status(decrypt(b, "bundle", "out", &err), ORTCRYPT_E_NOT_FOUND, &err);
    assert_int_equal(count_names(b, "out"), 0);
}

static int never(void *state, const char *step, uint64_t done, uint64_t total)
{
    (void)state;
    (void)done;
    (void)total;
    fail_msg("%s began", step);
    return 1;
}

static void test_existing(void **state)
{
    static const piece pieces[] = {{OC_ROLE_MODEL, "", "model"}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b, "bundle", "source", pieces, 1, NULL);
    assert_int_equal(mkdir(at(b, "out"), 0700), 0);
    watch = never; /* known before anything is decrypted */
    oc_test_status(decrypt(b, "bundle", "out", &err), ORTCRYPT_E_EXISTS, &err);
    assert_int_equal(rmdir(at(b, "out")), 0); /* still empty */
    assert_int_equal(symlink("elsewhere", at(b, "out")), 0); /* dangling: the name is taken all the same */
    oc_test_status(decrypt(b, "bundle", "out", &err), ORTCRYPT_E_EXISTS, &err);
    assert_false(there(b, "elsewhere"));
    assert_int_equal(count_names(b, "out"), 1);
    oc_test_status(decrypt(b, "bundle", "", &err), ORTCRYPT_E_EXISTS, &err); /* the test's folder itself, with a slash */
    watch = NULL;
}

typedef struct planter {
    bench *bench;
    bool done;
} planter;

/* While the first file is written, somebody puts links where the next ones belong. */
static int plant_links(void *state, const char *step, uint64_t done, uint64_t total)
{
    planter *const p = state;
    (void)step;
    (void)total;
    if (p->done || done == 0) {
        return 0;
    }
    DIR *const folder = opendir(p->bench->dir);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strncmp(entry->d_name, "out.tmp-", 8) == 0) {
            char *const tmp = oc_test_format("%s/%s", p->bench->dir, entry->d_name);
            char *const one = oc_test_format("%s/sub", tmp);
            char *const two = oc_test_format("%s/second", tmp);
            assert_int_equal(symlink("../victim", one), 0);
            assert_int_equal(symlink("../victim/file", two), 0);
            free(one);
            free(two);
            free(tmp);
            p->done = true;
        }
    }
    closedir(folder);
    return 0;
}

static void test_planted_links(void **state)
{
    static const piece pieces[] = {{OC_ROLE_MODEL, "", "model"}, {OC_ROLE_EXTERNAL, "first", "1"},
                                   {OC_ROLE_EXTERNAL, "second", "2"}, {OC_ROLE_EXTERNAL, "sub/third", "3"}};
    bench *const b = *state;
    planter p = {b, false};
    const ortcrypt_monitor monitor = {.progress = plant_links, .state = &p};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    make_bundle(b, "bundle", "source", pieces, 4, NULL);
    assert_int_equal(mkdir(at(b, "victim"), 0700), 0);
    oc_test_write_file(at(b, "victim/file"), "untouched", 9);
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");
    oc_test_ok(ortcrypt_bundle_decrypt(bundle, at(b, "out"), &monitor, &err), &err);
    close_bundle(bundle);
    assert_true(p.done);
    has(b, "victim/file", "untouched");
    assert_false(there(b, "victim/third"));
    has(b, "out/first", "1"); /* the others were written under names of ours */
}

static int cancel(void *state, const char *step, uint64_t done, uint64_t total)
{
    (void)step;
    (void)total;
    return done >= *(const uint64_t *)state;
}

static void test_failures_leave_nothing(void **state)
{
    static const ext main[] = {{"w", "w.bin", 0, 3000000}};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct rlimit limit;
    uint64_t when = 0;
    ortcrypt_monitor monitor = {.progress = cancel, .state = &when};

    put_file(b, "w.bin", 3000000, 1);
    put_model(b, "net.onnx", main, 1, NULL, 0);
    oc_test_ok(ortcrypt_encrypt(at(b, "net.onnx"), at(b, "bundle"), b->writer, NULL, NULL, &err), &err);
    ortcrypt_bundle *const bundle = open_bundle(b, "bundle");

    oc_test_status(ortcrypt_bundle_decrypt(bundle, at(b, "out"), &monitor, &err), ORTCRYPT_E_CANCELLED, &err);
    assert_int_equal(count_names(b, "out"), 0);
    when = 1500000;
    oc_test_status(ortcrypt_bundle_decrypt(bundle, at(b, "out"), &monitor, &err), ORTCRYPT_E_CANCELLED, &err);
    assert_int_equal(count_names(b, "out"), 0);

    /* a disk that takes no more: write(2) gives EFBIG above the limit */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit small = {2000000, limit.rlim_max};
    void (*const before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const ortcrypt_status full = ortcrypt_bundle_decrypt(bundle, at(b, "out"), NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    (void)signal(SIGXFSZ, before);
    oc_test_status(full, ORTCRYPT_E_IO, &err);
    assert_non_null(strstr(err.message, "w.bin"));
    assert_int_equal(count_names(b, "out"), 0);

    /* a byte of the data file's object flipped, after opening */
    const oc_variant *const variant = oc_manifest_find_variant(oc_bundle_manifest(bundle), "source");
    const oc_asset *const asset =
        oc_manifest_find_asset(oc_bundle_manifest(bundle), oc_variant_find_part(variant, OC_ROLE_EXTERNAL, "w.bin")->asset);
    char hex[65];
    oc_hex_encode(hex, asset->object, OC_LEAF_LEN);
    char *const object = oc_test_format("%s/bundle/objects/%.2s/%s", b->dir, hex, hex);
    size_t len = 0;
    uint8_t *const data = oc_test_read_file(object, &len);
    data[len / 2] ^= 1;
    oc_test_write_file(object, data, len);
    free(data);
    free(object);
    oc_test_status(ortcrypt_bundle_decrypt(bundle, at(b, "out"), NULL, &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
    assert_string_equal(err.asset[0] == '\0' ? "none" : "an asset", "an asset");
    assert_int_equal(count_names(b, "out"), 0);
    close_bundle(bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hostile_names, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_collisions, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_modes, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_extensions, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_no_source, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_existing, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_planted_links, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_failures_leave_nothing, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
