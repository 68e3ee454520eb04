/* Commits: what is there afterwards, what is left when there was none, copies, planted links, leftovers. */
#include <errno.h>

#include "bundle_fixture.h"

#define PIECE ((size_t)OC_PIECE_PLAIN_LEN)

static void begin(fixture *f, oc_txn **txn, const char *out_path)
{
    oc_test_ok(oc_txn_begin(txn, f->path, out_path, f->keyring, NULL, &f->err), &f->err);
}

/* A compiled variant `id` with a model of its own, and in the way of a real one, shared assets. */
static void add_compiled(fixture *f, oc_txn *txn, const char *id, size_t len, uint64_t seed)
{
    oc_variant *const variant = fixture_variant(f, txn, id, "compiled");
    fixture_put(f, txn, variant, "", len, seed);
}

static void expect_part(fixture *f, ortcrypt_bundle *bundle, const char *variant, oc_role role, const char *name, size_t len,
                        uint64_t seed)
{
    uint8_t *const plain = fixture_bytes(len, seed);
    uint8_t *const got = malloc(len + 1);
    const oc_asset *const asset = fixture_asset(bundle, variant, role, name);
    assert_int_equal(asset->size, len);
    oc_test_ok(oc_bundle_read(bundle, asset, got, NULL, &f->err), &f->err);
    assert_memory_equal(got, plain, len);
    free(got);
    free(plain);
}

static void a_second_commit(void **state)
{
    fixture *const f = *state;
    ortcrypt_bundle_info before;
    ortcrypt_bundle_info after;
    oc_txn *txn = NULL;
    fixture_make(f, 100);
    ortcrypt_bundle *bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &before);
    fixture_close(f, bundle);
    begin(f, &txn, NULL);
    add_compiled(f, txn, "cpu", PIECE + 7, 9);
    /* readable before it is published */
    expect_part(f, oc_txn_view(txn), "cpu", OC_ROLE_MODEL, "", PIECE + 7, 9);
    expect_part(f, oc_txn_view(txn), "source", OC_ROLE_EXTRA, "data", 100, 2);
    oc_test_ok(oc_txn_commit(txn, &after, &f->err), &f->err);
    oc_test_status(oc_txn_commit(txn, &after, &f->err), ORTCRYPT_E_INVALID, &f->err);
    oc_txn_end(txn);
    assert_string_equal(before.bundle_id, after.bundle_id);
    assert_string_not_equal(before.manifest_id, after.manifest_id);
    assert_int_equal(after.sequence, 2);
    assert_int_equal(after.asset_count, 3);
    assert_int_equal(after.variant_count, 2);
    bundle = fixture_open(f, NULL);
    expect_part(f, bundle, "source", OC_ROLE_EXTRA, "data", 100, 2);
    expect_part(f, bundle, "cpu", OC_ROLE_MODEL, "", PIECE + 7, 9);
    fixture_close(f, bundle);
    /* the old manifest's key file went, the new one is the same bytes under the new name */
    assert_int_equal(fixture_count_below(f, "keys"), 1);
    assert_int_equal(fixture_count_below(f, "objects"), 3);
    assert_int_equal(fixture_count_below(f, "tmp"), 0);
    assert_int_equal(fixture_count_files(f->folder), 3 + 1 + 3); /* FORMAT, lock, manifest; key; objects */
}

static void nothing_without_a_commit(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    oc_asset_writer *writer = NULL;
    ortcrypt_bundle_info info;
    ortcrypt_bundle_info again;
    uint8_t *const data = fixture_bytes(3 * PIECE, 1);
    /* a new bundle */
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    add_compiled(f, txn, "cpu", 100, 1);
    oc_test_ok(oc_asset_writer_open(&writer, txn, &f->err), &f->err);
    oc_test_ok(oc_asset_writer_push(writer, data, 3 * PIECE, &f->err), &f->err);
    assert_true(fixture_count_files(f->folder) > 0);
    oc_asset_writer_close(writer);
    oc_txn_end(txn);
    assert_int_equal(fixture_count_files(f->folder), 0);
    assert_int_equal(rmdir(f->folder), 0); /* not even an empty folder is left */
    assert_int_equal(mkdir(f->folder, 0700), 0);
    /* an existing one */
    fixture_make(f, 100);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &info);
    fixture_close(f, bundle);
    const size_t files = fixture_count_files(f->folder);
    begin(f, &txn, NULL);
    add_compiled(f, txn, "cpu", 100, 1);
    oc_test_ok(oc_asset_writer_open(&writer, txn, &f->err), &f->err);
    oc_test_ok(oc_asset_writer_push(writer, data, 3 * PIECE, &f->err), &f->err);
    assert_true(fixture_count_files(f->folder) > files);
    oc_asset_writer_close(writer);
    oc_txn_end(txn);
    assert_int_equal(fixture_count_files(f->folder), files);
    ortcrypt_bundle *const same = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(same, &again);
    fixture_close(f, same);
    assert_string_equal(info.manifest_id, again.manifest_id);
    free(data);
}

static void an_output_that_exists(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    char *const nowhere = oc_test_format("%s/no/folder", f->folder);
    char *const slash = oc_test_format("%s///", f->path);
    char *const up = oc_test_format("%s/..", f->folder);
    char *const dangling = oc_test_format("%s/dangling", f->folder);
    assert_int_equal(mkdir(f->path, 0700), 0);
    oc_test_status(oc_txn_create(&txn, f->path, f->keyring, &f->err), ORTCRYPT_E_EXISTS, &f->err);
    assert_null(txn);
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(symlink("nothing", dangling), 0);
    oc_test_status(oc_txn_create(&txn, dangling, f->keyring, &f->err), ORTCRYPT_E_EXISTS, &f->err);
    oc_test_status(oc_txn_create(&txn, nowhere, f->keyring, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_int_equal(f->err.sys_errno, ENOENT);
    oc_test_status(oc_txn_create(&txn, up, f->keyring, &f->err), ORTCRYPT_E_INVALID, &f->err);
    oc_test_status(oc_txn_create(&txn, "", f->keyring, &f->err), ORTCRYPT_E_INVALID, &f->err);
    /* it appears while we write */
    oc_test_ok(oc_txn_create(&txn, slash, f->keyring, &f->err), &f->err);
    add_compiled(f, txn, "cpu", 10, 1);
    oc_test_write_file(f->path, "mine", 4);
    oc_test_status(oc_txn_commit(txn, NULL, &f->err), ORTCRYPT_E_EXISTS, &f->err);
    oc_txn_end(txn);
    size_t len = 0;
    uint8_t *const mine = oc_test_read_file(f->path, &len);
    assert_memory_equal(mine, "mine", 4);
    assert_int_equal(fixture_count_files(f->folder), 2);
    free(mine);
    free(dangling);
    free(up);
    free(slash);
    free(nowhere);
}

static void keyring_without_recipient(void **state)
{
    fixture *const f = *state;
    ortcrypt_keyring *empty = NULL;
    oc_txn *txn = NULL;
    oc_test_ok(ortcrypt_keyring_new(&empty, &f->err), &f->err);
    oc_test_status(oc_txn_create(&txn, f->path, empty, &f->err), ORTCRYPT_E_NO_KEY, &f->err);
    assert_int_equal(rmdir(f->folder), 0);
    assert_int_equal(mkdir(f->folder, 0700), 0);
    ortcrypt_keyring_free(empty);
}

static void a_manifest_that_names_nothing(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    fixture_make(f, 10);
    begin(f, &txn, NULL);
    const uint8_t unknown[OC_ASSET_ID_LEN] = {1};
    oc_variant *const variant = fixture_variant(f, txn, "cpu", "compiled");
    oc_test_ok(oc_variant_add_part(variant, OC_ROLE_MODEL, "", unknown, &f->err), &f->err);
    oc_test_status(oc_txn_commit(txn, NULL, &f->err), ORTCRYPT_E_INVALID, &f->err);
    oc_txn_end(txn);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    fixture_close(f, bundle);
}

static void signed_bundles_are_not_changed(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    ortcrypt_bundle_info info;
    fixture_make(f, 10);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &info);
    fixture_close(f, bundle);
    char *const folder = oc_test_format("%s/sig", f->path);
    char *const sig = oc_test_format("%s/%s.sig", folder, info.manifest_id);
    char *const copy = oc_test_format("%s/copy.ortc", f->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    oc_test_write_file(sig, "signature", 9);
    oc_test_status(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), ORTCRYPT_E_UNSUPPORTED, &f->err);
    assert_null(txn);
    begin(f, &txn, copy);
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
    free(copy);
    free(sig);
    free(folder);
}

static void a_copy_elsewhere(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    ortcrypt_bundle_info info;
    ortcrypt_bundle_info old;
    char *const copy = oc_test_format("%s/copy.ortc", f->folder);
    fixture_make(f, PIECE + 1);
    ortcrypt_bundle *bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &old);
    /* a linked object is copied, not linked: what it points to is somebody else's */
    char *const object = fixture_object(f, fixture_asset(bundle, "source", OC_ROLE_MODEL, ""));
    char *const away = oc_test_format("%s/away", f->folder);
    assert_int_equal(rename(object, away), 0);
    assert_int_equal(symlink(away, object), 0);
    fixture_close(f, bundle);
    const size_t before = fixture_count_below(f, "");
    begin(f, &txn, copy);
    add_compiled(f, txn, "cpu", 77, 5);
    oc_test_ok(oc_txn_commit(txn, &info, &f->err), &f->err);
    oc_txn_end(txn);
    assert_string_equal(info.bundle_id, old.bundle_id);
    assert_int_equal(info.sequence, 2);
    assert_int_equal(fixture_count_below(f, ""), before);
    bundle = fixture_open(f, NULL); /* as it was */
    ortcrypt_bundle_get_info(bundle, &info);
    assert_string_equal(info.manifest_id, old.manifest_id);
    fixture_close(f, bundle);
    oc_test_rm_rf(f->path);
    assert_int_equal(unlink(away), 0);
    assert_int_equal(rename(copy, f->path), 0);
    bundle = fixture_open(f, NULL);
    expect_part(f, bundle, "source", OC_ROLE_EXTRA, "data", PIECE + 1, 2);
    expect_part(f, bundle, "source", OC_ROLE_MODEL, "", 100, 1);
    expect_part(f, bundle, "cpu", OC_ROLE_MODEL, "", 77, 5);
    fixture_close(f, bundle);
    free(away);
    free(object);
    free(copy);
}

static void a_damaged_bundle_is_not_copied(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    char *const copy = oc_test_format("%s/copy.ortc", f->folder);
    fixture_make(f, PIECE + 1);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    char *const object = fixture_object(f, fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data"));
    fixture_close(f, bundle);
    size_t len = 0;
    uint8_t *const bytes = oc_test_read_file(object, &len);
    bytes[len - 1] ^= 1;
    oc_test_write_file(object, bytes, len);
    const size_t files = fixture_count_files(f->folder);
    oc_test_status(oc_txn_begin(&txn, f->path, copy, f->keyring, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_int_equal(strlen(f->err.asset), 32);
    assert_int_equal(fixture_count_files(f->folder), files);
    free(bytes);
    free(object);
    free(copy);
}

/* Folders that were replaced by links must not turn a deletion or a write elsewhere. */
static void planted_links_are_not_followed(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    char *const tmp = oc_test_format("%s/tmp", f->path);
    char *const lock = oc_test_format("%s/lock", f->path);
    char *const keys = oc_test_format("%s/keys", f->path);
    char *const away = oc_test_format("%s/away", f->folder);
    char *const precious = oc_test_format("%s/precious", away);
    fixture_make(f, 10);
    assert_int_equal(mkdir(away, 0700), 0);
    oc_test_write_file(precious, "x", 1);
    assert_int_equal(rmdir(tmp), 0);
    assert_int_equal(symlink(away, tmp), 0);
    oc_test_status(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_int_equal(access(precious, F_OK), 0);
    assert_int_equal(unlink(tmp), 0); /* git and archives lose empty folders: made again */
    char *const moved = oc_test_format("%s/moved", away);
    assert_int_equal(rename(keys, moved), 0);
    assert_int_equal(symlink(moved, keys), 0);
    begin(f, &txn, NULL); /* reading through it is fine */
    oc_test_status(oc_txn_commit(txn, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    oc_txn_end(txn);
    assert_int_equal(fixture_count_files(moved), 1);
    assert_int_equal(unlink(keys), 0);
    assert_int_equal(rename(moved, keys), 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink(precious, lock), 0);
    oc_test_status(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), ORTCRYPT_E_UNSUPPORTED, &f->err);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    fixture_close(f, bundle);
    free(moved);
    free(precious);
    free(away);
    free(keys);
    free(lock);
    free(tmp);
}

static void leftovers_of_a_crash(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    char *const half = oc_test_format("%s/tmp/0123456789abcdef", f->path);
    char *const stray = oc_test_format("%s/objects/ab", f->path);
    char *const object = oc_test_format("%s/ab23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", stray);
    char *const note = oc_test_format("%s/keys/README", f->path);
    fixture_make(f, 10);
    oc_test_write_file(half, "half", 4);
    assert_true(mkdir(stray, 0700) == 0 || errno == EEXIST);
    oc_test_write_file(object, "x", 1);
    oc_test_write_file(note, "not ours", 8);
    begin(f, &txn, NULL);
    assert_int_not_equal(access(half, F_OK), 0);
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
    assert_int_not_equal(access(object, F_OK), 0);
    assert_int_equal(access(note, F_OK), 0);
    free(note);
    free(object);
    free(stray);
    free(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_second_commit, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(nothing_without_a_commit, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(an_output_that_exists, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(keyring_without_recipient, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_manifest_that_names_nothing, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(signed_bundles_are_not_changed, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_copy_elsewhere, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_damaged_bundle_is_not_copied, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(planted_links_are_not_followed, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(leftovers_of_a_crash, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
