/* The folder that decrypt fills: which names may become paths, and that nothing leaves it. */
#include "bundle/decrypt_outdir.h"
#include "unit/bundle_models.h"

static void test_plain_names(void **state)
{
    static const char *const plain[] = {"a", "a/b", "a.b/c-d", "...", "..a", "a..", ".hidden", "caf\xc3\xa9/x", "-", "a b", "a\nb"};
    static const char *const not_plain[] = {"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "../a", "a/..", "a/../b", "a/./b"};
    char name[600];
    (void)state;

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        assert_true(oc_outdir_name_plain(plain[i]));
    }
    for (size_t i = 0; i < sizeof not_plain / sizeof not_plain[0]; i++) {
        assert_false(oc_outdir_name_plain(not_plain[i]));
    }
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    assert_true(oc_outdir_name_plain(name));
    name[255] = 'n';
    name[256] = '\0';
    assert_false(oc_outdir_name_plain(name));
    for (size_t i = 0; i < 65; i++) {
        name[2 * i] = 'd';
        name[2 * i + 1] = '/';
    }
    name[127] = '\0'; /* 64 components */
    assert_true(oc_outdir_name_plain(name));
    name[127] = '/';
    name[129] = '\0';
    assert_false(oc_outdir_name_plain(name));
}

/* The folder refuses what it was promised not to get, and goes away with what is in it. */
static void test_folder(void **state)
{
    static const char *const names[] = {"../escaped", "in/../../escaped", "/escaped", ".."};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_outdir *folder = NULL;
    int fd = -1;

    oc_test_ok(oc_outdir_create(&folder, at(b, "out"), &err), &err);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_not_equal(oc_outdir_file(folder, names[i], &fd, &err), ORTCRYPT_OK);
        assert_int_equal(fd, -1);
    }
    assert_false(there(b, "escaped"));
    oc_test_ok(oc_outdir_file(folder, "a/b/c", &fd, &err), &err);
    oc_test_ok(oc_outdir_file_close(fd, "a/b/c", &err), &err);
    oc_test_status(oc_outdir_file(folder, "a/b/c", &fd, &err), ORTCRYPT_E_EXISTS, &err);
    oc_test_status(oc_outdir_file(folder, "a/b/c/d", &fd, &err), ORTCRYPT_E_EXISTS, &err);
    oc_test_status(oc_outdir_file(folder, "a/b", &fd, &err), ORTCRYPT_E_EXISTS, &err);
    oc_outdir_end(folder);
    assert_int_equal(count_names(b, "out"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_names),
        cmocka_unit_test_setup_teardown(test_folder, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
