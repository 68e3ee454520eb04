/* What killed writers left beside a new bundle's place: removed by the next one; everything else there stays. */
#include <sys/file.h>

#include "bundle_fixture.h"
#include "store/internal.h"

static char *beside(const fixture *f, const char *suffix)
{
    char *const path = oc_test_format("%s%s", f->path, suffix);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void put(const char *folder, const char *name)
{
    char *const path = oc_test_format("%s/%s", folder, name);
    oc_test_write_file(path, "x", 1);
    free(path);
}

static void make_bundle(fixture *f)
{
    oc_store *store = NULL;
    oc_test_ok(oc_store_create(&store, f->path, &f->err), &f->err);
    oc_test_ok(oc_store_publish_manifest(store, OC_SPAN_STR("manifest"), &f->err), &f->err);
    oc_store_close(store);
}

static void expect_there(const fixture *f, bool there, char *path)
{
    if ((access(path, F_OK) == 0) != there) {
        fail_msg("%s %s", path + strlen(f->folder), there ? "was removed" : "is still there");
    }
    free(path);
}

static void dead_ones_go(void **state)
{
    static const char *const folders[] = {"tmp", "keys", "objects", "objects/ab"};
    fixture *const f = *state;
    char *const whole = beside(f, ".tmp-00000001");
    char *const half = beside(f, ".tmp-00000002"); /* a removal that was interrupted: the lock is gone */
    char *const empty = beside(f, ".tmp-00000003");
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char *const folder = oc_test_format("%s/%s", whole, folders[i]);
        assert_int_equal(mkdir(folder, 0700), 0);
        put(folder, "file");
        free(folder);
    }
    put(whole, "lock");
    put(whole, "FORMAT");
    put(half, "manifest");
    make_bundle(f);
    expect_there(f, false, whole);
    expect_there(f, false, half);
    expect_there(f, false, empty);
    expect_there(f, true, oc_test_format("%s/manifest", f->path));
}

static void others_stay(void **state)
{
    static const char *const suffixes[] = {".tmp-0000000",    ".tmp-000000010", ".tmp-0000000G", ".tmp-0000000A", ".tmp-",
                                           "2.tmp-00000001", ".bak-00000001"};
    fixture *const f = *state;
    char *names[sizeof suffixes / sizeof suffixes[0]];
    char *const foreign = beside(f, ".tmp-00000001");
    char *const file = oc_test_format("%s.tmp-00000002", f->path);
    char *const link = oc_test_format("%s.tmp-00000003", f->path);
    char *const target = oc_test_format("%s/elsewhere", f->folder);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        names[i] = beside(f, suffixes[i]);
    }
    put(foreign, "lock");
    put(foreign, "thesis.txt");
    oc_test_write_file(file, "x", 1);
    assert_int_equal(mkdir(target, 0700), 0);
    put(target, "manifest");
    assert_int_equal(symlink(target, link), 0);
    make_bundle(f);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        expect_there(f, true, names[i]);
    }
    expect_there(f, true, oc_test_format("%s/thesis.txt", foreign));
    expect_there(f, true, foreign);
    expect_there(f, true, file);
    expect_there(f, true, link);
    expect_there(f, true, oc_test_format("%s/manifest", target));
    free(target);
}

static void a_live_one_stays(void **state)
{
    fixture *const f = *state;
    oc_store *slow = NULL;
    oc_test_ok(oc_store_create(&slow, f->path, &f->err), &f->err);
    make_bundle(f); /* who is first has the name */
    assert_true(oc_build_is_mine(slow));
    oc_test_status(oc_store_publish_manifest(slow, OC_SPAN_STR("late"), &f->err), ORTCRYPT_E_EXISTS, &f->err);
    oc_store_close(slow);
    oc_test_rm_rf(f->path);
    assert_int_equal(rmdir(f->folder), 0); /* nothing else was there */
    assert_int_equal(mkdir(f->folder, 0700), 0);
}

/* A writer between its mkdir and its lock: the other one renames the folder first, and that is noticed. */
static void one_that_was_taken_for_dead(void **state)
{
    fixture *const f = *state;
    oc_store *store = NULL;
    oc_test_ok(oc_store_create(&store, f->path, &f->err), &f->err);
    assert_true(oc_build_is_mine(store));
    assert_int_equal(flock(store->lock, LOCK_UN), 0);
    oc_stale_remove(store);
    assert_false(oc_build_is_mine(store));
    oc_store_close(store);
    assert_int_equal(rmdir(f->folder), 0); /* nothing is left */
    assert_int_equal(mkdir(f->folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dead_ones_go, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(others_stay, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_live_one_stays, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(one_that_was_taken_for_dead, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
