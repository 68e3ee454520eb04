/* Reading what was damaged, forged or replaced: what each refusal says, and that no plaintext is left. */
#include <fcntl.h>

#include "bundle_fixture.h"

#define CHUNK ((size_t)OC_STREAM_CHUNK_LEN)
#define PIECE ((size_t)OC_PIECE_PLAIN_LEN)

typedef struct collected {
    uint8_t *data;
    size_t len;
} collected;

static ortcrypt_status collect(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    collected *const c = state;
    (void)err;
    memcpy(c->data + c->len, data, len);
    c->len += len;
    return ORTCRYPT_OK;
}

static void flip(const char *path, uint64_t at)
{
    uint8_t byte;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x80;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* Refused by both ways of reading; nothing of the plaintext is left, nothing after the damage was pushed. */
static void expect_damage(fixture *f, const ortcrypt_open_options *options, size_t size, const char *says, uint64_t offset)
{
    ortcrypt_bundle *const bundle = fixture_open(f, options);
    const oc_asset *const asset = fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data");
    uint8_t *const plain = fixture_bytes(size, 2);
    uint8_t *const got = malloc(size + 1);
    char id[33];
    memset(got, 0xee, size);
    oc_hex_encode(id, asset->id, sizeof asset->id);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_string_equal(f->err.asset, id);
    if (strstr(f->err.message, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", f->err.message, says);
    }
    assert_true(offset == ORTCRYPT_NO_OFFSET || f->err.offset == offset);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(got[i], 0);
    }
    collected c = {got, 0};
    oc_test_status(oc_bundle_stream(bundle, asset, collect, &c, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_memory_equal(got, plain, c.len);
    assert_true(offset == ORTCRYPT_NO_OFFSET ? c.len == 0 : c.len <= offset);
    free(got);
    free(plain);
    fixture_close(f, bundle);
}

static void damage_is_found_and_wiped(void **state)
{
    fixture *const f = *state;
    const size_t size = 4 * PIECE + 100;
    fixture_make(f, size);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    char *const object = fixture_object(f, fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data"));
    fixture_close(f, bundle);
    static const struct {
        uint64_t at;
        const char *says;
        uint64_t offset;
    } flips[] = {
        {0, "header", ORTCRYPT_NO_OFFSET},
        {55, "header", ORTCRYPT_NO_OFFSET},
        {56, "chunk 0", 56},
        {56 + 16400 - 1, "chunk 0", 56},
        {56 + 16400, "chunk 1", 56 + 16400},
        {56 + 64 * 16400, "chunk 64", 56 + 64 * 16400},
        {56 + 256 * 16400 - 1, "chunk 255", 56 + 255 * 16400},
    };
    for (size_t i = 0; i < sizeof flips / sizeof flips[0]; i++) {
        flip(object, flips[i].at);
        expect_damage(f, NULL, size, flips[i].says, flips[i].offset);
        flip(object, flips[i].at);
    }
    /* the end is looked at before anything is handed over */
    const uint64_t sealed = 56 + size + 16 * (size / CHUNK + 1);
    flip(object, sealed - 1);
    expect_damage(f, NULL, size, "chunk 256", ORTCRYPT_NO_OFFSET);
    assert_int_equal(f->err.offset, 56 + 256 * 16400);
    flip(object, sealed - 1);
    assert_int_equal(truncate(object, (off_t)sealed - 1), 0);
    expect_damage(f, NULL, size, "cut", ORTCRYPT_NO_OFFSET);
    assert_int_equal(truncate(object, (off_t)sealed + 1), 0);
    expect_damage(f, NULL, size, "lengthened", ORTCRYPT_NO_OFFSET);
    free(object);
}

/* A manifest that is authentic and contradicts itself: what its writer got wrong is found before an object is looked at. */
static void objects_and_leaves_that_do_not_fit(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    ortcrypt_bundle *bundle = NULL;
    fixture_make(f, 10);
    oc_test_ok(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), &f->err);
    oc_txn_manifest(txn)->assets[0].pieces[0][31] ^= 1;
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_int_equal(strlen(f->err.asset), 32);
    assert_non_null(strstr(f->err.message, "do not fit together"));
}

/* A holder of the key re-seals other bytes under the same header: tags and length are right, only the leaf is wrong. */
static void forge(fixture *f, ortcrypt_bundle *bundle, const oc_asset *asset)
{
    uint8_t header[OC_STREAM_HEADER_LEN];
    uint8_t context[OC_CONTEXT_MAX];
    uint8_t plain[OC_STREAM_CHUNK_LEN] = {1, 2, 3};
    uint8_t sealed[OC_STREAM_SEALED_CHUNK_LEN];
    oc_stream *stream = NULL;
    oc_stream_lane *lane = NULL;
    char *const object = fixture_object(f, asset);
    const int fd = open(object, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, header, sizeof header, 0), sizeof header);
    oc_test_ok(oc_stream_open_new(&stream, bundle->key.data, oc_asset_context(context, bundle->manifest->bundle_id, asset->id), header,
                                  &f->err),
               &f->err);
    oc_test_ok(oc_stream_lane_new(&lane, stream, true, &f->err), &f->err);
    oc_test_ok(oc_stream_seal_chunk(lane, 65, false, plain, sizeof plain, sealed, &f->err), &f->err);
    assert_int_equal(pwrite(fd, sealed, sizeof sealed, 56 + 65 * 16400), sizeof sealed);
    oc_stream_lane_free(lane);
    oc_stream_free(stream);
    close(fd);
    free(object);
}

static void a_pin_makes_leaves_count(void **state)
{
    fixture *const f = *state;
    const size_t size = 2 * PIECE;
    ortcrypt_bundle_info info;
    fixture_make(f, size);
    ortcrypt_bundle *bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &info);
    const oc_asset *asset = fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data");
    uint8_t *const got = malloc(size);
    oc_asset_reader *reader = NULL;
    oc_test_ok(oc_asset_reader_open(&reader, bundle, asset, &f->err), &f->err);
    forge(f, bundle, asset);
    oc_test_ok(oc_bundle_read(bundle, asset, got, NULL, &f->err), &f->err); /* tags suffice without a pin */
    assert_int_equal(got[65 * CHUNK + 2], 3);
    oc_bundle_require_leaves(bundle);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    const oc_source open_before = oc_asset_reader_source(reader);
    oc_test_ok(open_before.read(open_before.state, 0, got, PIECE, &f->err), &f->err);
    oc_test_status(open_before.read(open_before.state, PIECE, got, 1, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    oc_asset_reader_close(reader);
    fixture_close(f, bundle);
    const ortcrypt_open_options options = {.struct_size = sizeof options, .pin = info.manifest_id};
    expect_damage(f, &options, size, "piece 1", oc_piece_offset(1));
    free(got);
}

/* What it jumps over is not decrypted, so it does not stop it; with a pin, pieces are hashed whole, so it does. */
static void a_reader_that_jumps(void **state)
{
    fixture *const f = *state;
    uint8_t got[2] = {0};
    fixture_make(f, 2 * PIECE);
    uint8_t *const plain = fixture_bytes(2 * PIECE, 2);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    const oc_asset *const asset = fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data");
    char *const object = fixture_object(f, asset);
    flip(object, 56 + 3 * 16400);
    for (int hashed = 0; hashed < 2; hashed++) {
        oc_asset_reader *reader = NULL;
        oc_test_ok(oc_asset_reader_open(&reader, bundle, asset, &f->err), &f->err);
        const oc_source source = oc_asset_reader_source(reader);
        const ortcrypt_status st = source.read(source.state, 3 * CHUNK - 2, got, 2, &f->err);
        oc_test_status(st, hashed ? ORTCRYPT_E_NOT_AUTHENTIC : ORTCRYPT_OK, &f->err);
        oc_test_status(source.read(source.state, 4 * CHUNK, got, 2, &f->err), st, &f->err);
        assert_true(hashed || memcmp(got, plain + 4 * CHUNK, 2) == 0);
        oc_test_status(source.read(source.state, 4 * CHUNK - 1, got, 2, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
        oc_asset_reader_close(reader);
        oc_bundle_require_leaves(bundle);
    }
    fixture_close(f, bundle);
    free(object);
    free(plain);
}

static void what_stands_for_an_object(void **state)
{
    fixture *const f = *state;
    const size_t size = PIECE + 5;
    fixture_make(f, size);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    const oc_asset *const asset = fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data");
    char *const object = fixture_object(f, asset);
    char *const away = oc_test_format("%s/away", f->folder);
    uint8_t *const got = malloc(size);
    uint8_t *const plain = fixture_bytes(size, 2);
    assert_int_equal(rename(object, away), 0);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_non_null(strstr(f->err.message, object));
    assert_int_equal(symlink(away, object), 0);
    oc_test_ok(oc_bundle_read(bundle, asset, got, NULL, &f->err), &f->err);
    assert_memory_equal(got, plain, size);
    assert_int_equal(unlink(object), 0);
    assert_int_equal(mkfifo(object, 0600), 0);
    alarm(60); /* a hang is a failure */
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_non_null(strstr(f->err.message, "FIFO"));
    alarm(0);
    assert_int_equal(unlink(object), 0);
    assert_int_equal(mkdir(object, 0700), 0);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_int_equal(rmdir(object), 0);
    assert_int_equal(symlink("/dev/zero", object), 0);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_int_equal(unlink(object), 0);
    assert_int_equal(symlink(object, object), 0);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    free(plain);
    free(got);
    free(away);
    free(object);
    fixture_close(f, bundle);
}

static void what_is_no_bundle(void **state)
{
    static const struct {
        const char *format;
        ortcrypt_status status;
    } cases[] = {
        {"", ORTCRYPT_E_FORMAT},
        {"ortcrypt/1", ORTCRYPT_E_FORMAT},
        {"ortcrypt/2\n", ORTCRYPT_E_UNSUPPORTED},
        {"hello\n", ORTCRYPT_E_FORMAT},
        {"ortcrypt/1\nortcrypt/1\nortcrypt/1\nortcrypt/1\nortcrypt/1\nortcrypt/1\nortcrypt/1\n", ORTCRYPT_E_FORMAT},
    };
    fixture *const f = *state;
    ortcrypt_bundle *bundle = NULL;
    char *const format = oc_test_format("%s/FORMAT", f->path);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    oc_test_write_file(f->path, "a file", 6);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_FORMAT, &f->err);
    assert_int_equal(unlink(f->path), 0);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->folder, f->keyring, NULL, &f->err), ORTCRYPT_E_FORMAT, &f->err);
    fixture_make(f, 10);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        oc_test_write_file(format, cases[i].format, strlen(cases[i].format));
        oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), cases[i].status, &f->err);
        assert_int_equal(ortcrypt_status_exit_code(f->err.status), 5);
    }
    free(format);
}

static void what_is_wrong_with_manifest_and_key(void **state)
{
    fixture *const f = *state;
    ortcrypt_bundle_info info;
    ortcrypt_bundle *bundle = NULL;
    fixture_make(f, 10);
    bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &info);
    fixture_close(f, bundle);
    char *const manifest = oc_test_format("%s/manifest", f->path);
    char *const key = oc_test_format("%s/keys/%s.age", f->path, info.manifest_id);
    char *const away = oc_test_format("%s/away", f->folder);
    flip(manifest, 60);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_non_null(strstr(f->err.message, "do not belong together"));
    flip(manifest, 60);
    assert_int_equal(rename(manifest, away), 0);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_IO, &f->err);
    assert_int_equal(rename(away, manifest), 0);
    assert_int_equal(rename(key, away), 0);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_NO_KEY, &f->err);
    assert_non_null(strstr(f->err.message, "no key file"));
    assert_int_equal(symlink(away, key), 0);
    bundle = fixture_open(f, NULL);
    fixture_close(f, bundle);
    assert_int_equal(unlink(key), 0);
    assert_int_equal(mkfifo(key, 0600), 0);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_FORMAT, &f->err);
    assert_int_equal(unlink(key), 0);
    assert_int_equal(rename(away, key), 0);
    assert_int_equal(truncate(manifest, 64 * 1024 * 1024 + 100000), 0);
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    free(away);
    free(key);
    free(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damage_is_found_and_wiped, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_reader_that_jumps, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(objects_and_leaves_that_do_not_fit, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_pin_makes_leaves_count, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(what_stands_for_an_object, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(what_is_no_bundle, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(what_is_wrong_with_manifest_and_key, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
