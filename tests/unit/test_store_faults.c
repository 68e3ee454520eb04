/*
 * Every system call of a commit fails once: the n-th of them all, for every n until none is left. The calls below take the
 * place of libc's in this program. After each failure the bundle is the old or the new one, whole, and nothing is left over.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "bundle_fixture.h"

static struct {
    bool armed;
    unsigned calls;
    unsigned fail_at; /* 0: never */
    const char *failed;
    unsigned fsyncs;              /* since arm */
    unsigned fsyncs_at_manifest;  /* when the manifest was renamed */
} faults;

static bool fault(const char *name, int cause)
{
    if (!faults.armed || ++faults.calls != faults.fail_at) {
        return false;
    }
    faults.failed = name;
    errno = cause;
    return true;
}

int fsync(int fd)
{
    (void)fd; /* nothing here outlives the test: only the order of calls counts, and waiting for the disk takes a minute */
    faults.fsyncs++;
    return fault("fsync", EIO) ? -1 : 0;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    if (fault("pwrite", ENOSPC)) {
        return -1;
    }
    /* short writes are legal: every other call writes a part */
    return syscall(SYS_pwrite64, fd, data, faults.armed && len > 1 && faults.calls % 2 == 0 ? len / 2 : len, offset);
}

ssize_t pread(int fd, void *data, size_t len, off_t offset)
{
    return fault("pread", EIO) ? -1 : syscall(SYS_pread64, fd, data, len, offset);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (strcmp(to, "manifest") == 0) {
        faults.fsyncs_at_manifest = faults.fsyncs;
    }
    return fault("renameat", EIO) ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return fault("renameat2", EROFS) ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    return fault("mkdirat", ENOSPC) ? -1 : (int)syscall(SYS_mkdirat, dir, name, mode);
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(args, unsigned) : 0;
    va_end(args);
    return fault("openat", EMFILE) ? -1 : (int)syscall(SYS_openat, dir, name, flags, mode);
}

static void disarm(void)
{
    faults.armed = false;
}

static void arm(unsigned fail_at)
{
    faults.calls = 0;
    faults.failed = NULL;
    faults.fail_at = fail_at;
    faults.fsyncs = faults.fsyncs_at_manifest = 0;
    faults.armed = true;
}

static ortcrypt_status add_and_commit(oc_txn *txn, const char *variant_id, ortcrypt_error *err)
{
    uint8_t id[OC_ASSET_ID_LEN];
    oc_variant *variant = NULL;
    uint8_t *const data = calloc(1, 2 * OC_PIECE_PLAIN_LEN);
    ortcrypt_status st = oc_txn_put(txn, OC_SPAN(data, 2 * OC_PIECE_PLAIN_LEN), id, err);
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_add_variant(oc_txn_manifest(txn), variant_id, "source", &variant, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_variant_add_part(variant, OC_ROLE_MODEL, "", id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_txn_commit(txn, NULL, err);
    }
    free(data);
    return st;
}

static void expect_io(const fixture *f, ortcrypt_status st)
{
    if (st != ORTCRYPT_E_IO || f->err.sys_errno == 0) {
        fail_msg("call %u (%s): %s \"%s\"", faults.fail_at, faults.failed, ortcrypt_status_name(st), f->err.message);
    }
}

/* After the commit, old files are deleted as far as that goes: opening a folder for it is the one call that may fail unheard. */
static bool only_cleaning_failed(void)
{
    return faults.failed == NULL || strcmp(faults.failed, "openat") == 0;
}

static void a_new_bundle(void **state)
{
    fixture *const f = *state;
    unsigned failures = 0;
    for (unsigned n = 1;; n++) {
        oc_txn *txn = NULL;
        arm(n);
        ortcrypt_status st = oc_txn_create(&txn, f->path, f->keyring, &f->err);
        st = st == ORTCRYPT_OK ? add_and_commit(txn, "source", &f->err) : st;
        oc_txn_end(txn);
        disarm();
        if (st == ORTCRYPT_OK) {
            assert_true(only_cleaning_failed());
            fixture_close(f, fixture_open(f, NULL));
            oc_test_rm_rf(f->path);
        } else {
            expect_io(f, st);
            failures++;
            if (rmdir(f->folder) != 0) {
                fail_msg("call %u (%s) left something behind", n, faults.failed);
            }
            assert_int_equal(mkdir(f->folder, 0700), 0);
        }
        if (faults.failed == NULL) {
            break;
        }
    }
    assert_true(failures > 25); /* folders, FORMAT, objects, key file, manifest, fsyncs */
}

static void an_existing_bundle(void **state)
{
    fixture *const f = *state;
    char variant[32];
    unsigned failures = 0;
    ortcrypt_bundle_info info;
    fixture_make(f, 10);
    for (unsigned n = 1;; n++) {
        oc_txn *txn = NULL;
        ortcrypt_bundle *bundle = fixture_open(f, NULL);
        ortcrypt_bundle_get_info(bundle, &info);
        fixture_close(f, bundle);
        const uint64_t before = info.sequence;
        const size_t files = fixture_count_files(f->folder);
        snprintf(variant, sizeof variant, "v%u", n);
        arm(n);
        ortcrypt_status st = oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err);
        st = st == ORTCRYPT_OK ? add_and_commit(txn, variant, &f->err) : st;
        oc_txn_end(txn);
        disarm();
        bundle = fixture_open(f, NULL);
        ortcrypt_bundle_get_info(bundle, &info);
        assert_true(st != ORTCRYPT_OK || only_cleaning_failed());
        if (st != ORTCRYPT_OK) {
            failures++;
            if (st != ORTCRYPT_E_FORMAT) { /* what cannot be opened may be no bundle */
                expect_io(f, st);
            }
        }
        if (info.sequence == before) {
            assert_int_not_equal(st, ORTCRYPT_OK);
            if (fixture_count_files(f->folder) != files) {
                fail_msg("call %u (%s) left something behind", n, faults.failed);
            }
        } else { /* the last fsync failed, or a deletion of old files: the new bundle is there and whole */
            uint8_t *const got = malloc(2 * OC_PIECE_PLAIN_LEN);
            oc_test_ok(oc_bundle_read(bundle, fixture_asset(bundle, variant, OC_ROLE_MODEL, ""), got, NULL, &f->err), &f->err);
            free(got);
        }
        fixture_close(f, bundle);
        if (faults.failed == NULL) {
            break;
        }
    }
    assert_true(failures > 20);
    assert_int_equal(fixture_count_below(f, "tmp"), 0);
    assert_int_equal(fixture_count_below(f, "keys"), 1);
}

/* Exit codes of the child below: 0 as expected, 77 not possible here, else which check failed. */
static int on_a_full_disk(const char *folder)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_keyring *keyring = NULL;
    oc_txn *txn = NULL;
    uint8_t id[OC_ASSET_ID_LEN];
    char path[4096];
    const size_t len = 8u * 1024 * 1024;
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("tmpfs", folder, "tmpfs", 0, "size=2m") != 0) {
        return 77;
    }
    uint8_t *const data = calloc(1, len);
    snprintf(path, sizeof path, "%s/b", folder);
    if (data == NULL || ortcrypt_keyring_new(&keyring, &err) != ORTCRYPT_OK ||
        ortcrypt_keyring_add_recipient(keyring, "age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z", &err) != ORTCRYPT_OK ||
        oc_txn_create(&txn, path, keyring, &err) != ORTCRYPT_OK) {
        return 1;
    }
    if (oc_txn_put(txn, OC_SPAN(data, len), id, &err) != ORTCRYPT_E_IO || err.sys_errno != ENOSPC ||
        strstr(err.message, "No space left") == NULL || strstr(err.message, path) == NULL) {
        return 2;
    }
    oc_txn_end(txn);
    return rmdir(folder) == 0 || errno == EBUSY ? (fixture_count_files(folder) == 0 ? 0 : 3) : 4;
}

static int in_a_read_only_folder(const char *folder, const char *bundle, const char *identity, ortcrypt_keyring *keyring)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;
    ortcrypt_bundle *opened = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/new", folder);
    if (geteuid() == 0 && seteuid(65534) != 0) {
        return 77;
    }
    /* secret memory is empty in a forked child */
    if (ortcrypt_keyring_add_identity(keyring, identity, strlen(identity), &err) != ORTCRYPT_OK) {
        return 4;
    }
    if (oc_txn_create(&txn, path, keyring, &err) != ORTCRYPT_E_IO || err.sys_errno != EACCES || strstr(err.message, path) == NULL) {
        return 1;
    }
    if (ortcrypt_bundle_open(&opened, bundle, keyring, NULL, &err) != ORTCRYPT_OK || ortcrypt_bundle_close(opened, &err) != ORTCRYPT_OK) {
        return 2;
    }
    return oc_txn_begin(&txn, bundle, NULL, keyring, NULL, &err) == ORTCRYPT_E_IO && err.sys_errno == EACCES ? 0 : 3;
}

static void expect_child(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_full_disk(void **state)
{
    fixture *const f = *state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(on_a_full_disk(f->folder));
    }
    expect_child(child);
}

static void a_read_only_folder(void **state)
{
    fixture *const f = *state;
    const mode_t mask = umask(022);
    fixture_make(f, 10);
    umask(mask);
    assert_int_equal(chmod(f->folder, 0555), 0);
    assert_int_equal(chmod(f->path, 0555), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(in_a_read_only_folder(f->folder, f->path, f->identity, f->keyring));
    }
    const size_t files = fixture_count_files(f->folder);
    assert_int_equal(chmod(f->path, 0755), 0);
    assert_int_equal(chmod(f->folder, 0755), 0);
    expect_child(child);
    assert_int_equal(files, 6);
}

/* A power cut must not leave a manifest that names what is not on the disk. */
static void everything_is_on_the_disk_first(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    arm(0);
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    oc_test_ok(add_and_commit(txn, "source", &f->err), &f->err);
    oc_txn_end(txn);
    /* before: FORMAT, object, key file, manifest; objects/xx, objects, keys, the bundle. After: the bundle, its parent. */
    assert_int_equal(faults.fsyncs_at_manifest, 8);
    assert_int_equal(faults.fsyncs, 10);
    arm(0);
    oc_test_ok(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), &f->err);
    oc_test_ok(add_and_commit(txn, "second", &f->err), &f->err);
    oc_txn_end(txn);
    disarm();
    /* before: object, key file, manifest; objects/xx, objects, keys. After: the bundle. */
    assert_int_equal(faults.fsyncs_at_manifest, 6);
    assert_int_equal(faults.fsyncs, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_is_on_the_disk_first, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_new_bundle, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(an_existing_bundle, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_full_disk, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_read_only_folder, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
