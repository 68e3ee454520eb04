/* The folder that decrypt fills: which names may become paths, and that nothing leaves it. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "bundle/decrypt_outdir.h"
#include "unit/bundle_models.h"

/* Stands before libc's: a kernel without openat2 is one that answers ENOSYS. */
static bool no_openat2;
static unsigned openat2_refused;

long syscall(long number, ...)
{
    long arguments[6];
    va_list list;

    va_start(list, number);
    for (size_t i = 0; i < 6; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    if (no_openat2 && number == SYS_openat2) {
        openat2_refused++;
        errno = ENOSYS;
        return -1;
    }
    long (*real)(long, ...) = NULL;
    void *const symbol = dlsym(RTLD_NEXT, "syscall");
    memcpy(&real, &symbol, sizeof real);
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

static void test_plain_names(void **state)
{
    static const char *const plain[] = {"a", "a/b", "a.b/c-d", "...", "..a", "a..", ".hidden", "caf\xc3\xa9/x", "-", "a b"};
    static const char *const not_plain[] = {"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "../a", "a/..", "a/../b", "a/./b",
                                            "a\nb", "x/\033[2J", "a\x7f"};
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

/* A link that another process puts in the way is not followed: neither as a folder nor as the file itself. */
static void test_links(void **state)
{
    static const char *const names[] = {"link/file", "a/link/file", "link", "a/link", "a/dangling"};
    bench *const b = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_outdir *folder = NULL;
    int fd = -1;

    assert_int_equal(mkdir(at(b, "target"), 0700), 0);
    oc_test_ok(oc_outdir_create(&folder, at(b, "out"), &err), &err);
    oc_test_ok(oc_outdir_file(folder, "a/file", &fd, &err), &err);
    oc_test_ok(oc_outdir_file_close(fd, "a/file", &err), &err);
    fd = -1;

    DIR *const stream = opendir(b->dir);
    char tmp[300] = "";
    assert_non_null(stream);
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (strncmp(entry->d_name, "out.tmp-", 8) == 0) {
            (void)snprintf(tmp, sizeof tmp, "%s", entry->d_name);
        }
    }
    const int dir = openat(dirfd(stream), tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_int_equal(symlinkat(at(b, "target"), dir, "link"), 0);
    assert_int_equal(symlinkat(at(b, "target"), dir, "a/link"), 0);
    assert_int_equal(symlinkat(at(b, "target/file"), dir, "a/dangling"), 0);
    close(dir);
    closedir(stream);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        oc_test_status(oc_outdir_file(folder, names[i], &fd, &err), ORTCRYPT_E_EXISTS, &err);
        assert_int_equal(fd, -1);
    }
    assert_false(there(b, "target/file"));
    oc_outdir_end(folder);
}

static int setup_without_openat2(void **state)
{
    no_openat2 = true;
    openat2_refused = 0;
    return bench_setup(state);
}

static int teardown_without_openat2(void **state)
{
    no_openat2 = false;
    return bench_teardown(state) != 0 || openat2_refused == 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_names),
        cmocka_unit_test_setup_teardown(test_folder, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_links, bench_setup, bench_teardown),
        {"test_folder_without_openat2", test_folder, setup_without_openat2, teardown_without_openat2, NULL},
        {"test_links_without_openat2", test_links, setup_without_openat2, teardown_without_openat2, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
