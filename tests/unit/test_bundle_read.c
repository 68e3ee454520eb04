/* Reading a bundle: sizes at every border, demands of the caller, damage, links, FIFOs, monitors, streams, random access. */
#include <fcntl.h>
#include <pthread.h>

#include "bundle_fixture.h"

#define CHUNK ((size_t)OC_STREAM_CHUNK_LEN)
#define PIECE ((size_t)OC_PIECE_PLAIN_LEN)

static const size_t border_sizes[] = {0,         1,         CHUNK - 1, CHUNK,         CHUNK + 1, PIECE - 1,
                                      PIECE,     PIECE + 1, PIECE + CHUNK, 5 * PIECE - 1, 5 * PIECE, 5 * PIECE + 12345};
#define BORDER_COUNT (sizeof border_sizes / sizeof border_sizes[0])

typedef struct collected {
    uint8_t *data;
    size_t len;
    size_t longest;
    size_t fail_at; /* calls after which push refuses; 0: never */
    size_t calls;
    pthread_t thread;
} collected;

static ortcrypt_status collect(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    collected *const c = state;
    c->calls++;
    assert_true(pthread_equal(c->thread, pthread_self()));
    if (c->fail_at != 0 && c->calls == c->fail_at) {
        return oc_fail(err, ORTCRYPT_E_CANCELLED, "enough");
    }
    memcpy(c->data + c->len, data, len);
    c->len += len;
    c->longest = len > c->longest ? len : c->longest;
    return ORTCRYPT_OK;
}

static void check_reader(fixture *f, ortcrypt_bundle *bundle, const oc_asset *asset, const uint8_t *plain)
{
    static const size_t steps[] = {1, 4096, 300000};
    oc_asset_reader *reader = NULL;
    uint8_t *const got = malloc(PIECE);
    oc_test_ok(oc_asset_reader_open(&reader, bundle, asset, &f->err), &f->err);
    const oc_source source = oc_asset_reader_source(reader);
    assert_int_equal(source.size, asset->size);
    for (size_t i = 0; i < 3; i++) {
        for (uint64_t at = 0; at < asset->size; at += PIECE / 3) {
            const size_t len = asset->size - at < steps[i] ? (size_t)(asset->size - at) : steps[i];
            oc_test_ok(source.read(source.state, at, got, len, &f->err), &f->err);
            assert_memory_equal(got, plain + at, len);
        }
    }
    oc_test_ok(source.read(source.state, asset->size, got, 0, &f->err), &f->err);
    oc_test_status(source.read(source.state, asset->size, got, 1, &f->err), ORTCRYPT_E_INPUT, &f->err);
    oc_test_status(source.read(source.state, UINT64_MAX, got, 2, &f->err), ORTCRYPT_E_INPUT, &f->err);
    oc_asset_reader_close(reader);
    free(got);
}

static void every_border_size(void **state)
{
    fixture *const f = *state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        oc_txn *txn = NULL;
        oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
        oc_txn_set_threads(txn, threads);
        oc_variant *const variant = fixture_variant(f, txn, "source", "source");
        fixture_put(f, txn, variant, "", 10, 0);
        for (size_t i = 0; i < BORDER_COUNT; i++) {
            char name[32];
            snprintf(name, sizeof name, "%zu", border_sizes[i]);
            fixture_put(f, txn, variant, name, border_sizes[i], 100 + i);
        }
        oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
        oc_txn_end(txn);
        const ortcrypt_open_options options = {.struct_size = sizeof options, .threads = threads};
        ortcrypt_bundle *const bundle = fixture_open(f, &options);
        for (size_t i = 0; i < BORDER_COUNT; i++) {
            const size_t size = border_sizes[i];
            char name[32];
            snprintf(name, sizeof name, "%zu", size);
            uint8_t *const plain = fixture_bytes(size, 100 + i);
            uint8_t *const got = malloc(size + 1);
            const oc_asset *const asset = fixture_asset(bundle, "source", OC_ROLE_EXTRA, name);
            got[size] = 0x5a;
            oc_test_ok(oc_bundle_read(bundle, asset, size == 0 ? NULL : got, NULL, &f->err), &f->err);
            assert_memory_equal(got, plain, size);
            assert_int_equal(got[size], 0x5a);
            collected c = {.data = got, .thread = pthread_self()};
            memset(got, 0, size);
            oc_test_ok(oc_bundle_stream(bundle, asset, collect, &c, NULL, &f->err), &f->err);
            assert_int_equal(c.len, size);
            assert_true(c.longest <= PIECE);
            assert_memory_equal(got, plain, size);
            check_reader(f, bundle, asset, plain);
            void *extra = NULL;
            uint64_t extra_len = 1;
            oc_test_ok(ortcrypt_bundle_read_extra(bundle, name, &extra, &extra_len, &f->err), &f->err);
            assert_int_equal(extra_len, size);
            assert_true((extra == NULL) == (size == 0));
            assert_memory_equal(extra == NULL ? got : extra, plain, size);
            ortcrypt_free(extra, extra_len);
            free(got);
            free(plain);
        }
        fixture_close(f, bundle);
        oc_test_rm_rf(f->path);
    }
}

static void demands(void **state)
{
    fixture *const f = *state;
    ortcrypt_bundle_info info;
    ortcrypt_bundle *bundle = NULL;
    fixture_make(f, 3 * PIECE);
    bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &info);
    assert_int_equal(info.sequence, 1);
    assert_int_equal(info.asset_count, 2);
    assert_int_equal(info.variant_count, 1);
    assert_int_equal(info.plain_len, 3 * PIECE + 100);
    fixture_close(f, bundle);
    ortcrypt_open_options options = {.struct_size = sizeof options, .pin = info.manifest_id, .bundle_id = info.bundle_id, .min_sequence = 1};
    bundle = fixture_open(f, &options);
    uint8_t *const got = malloc(3 * PIECE);
    oc_test_ok(oc_bundle_read(bundle, fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data"), got, NULL, &f->err), &f->err);
    fixture_close(f, bundle);
    options.min_sequence = 2;
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &options, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_null(bundle);
    assert_non_null(strstr(f->err.message, "rolled back"));
    options.min_sequence = 0;
    options.pin = "0000000000000000000000000000000000000000000000000000000000000000";
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &options, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_non_null(strstr(f->err.message, info.manifest_id));
    options.pin = "00";
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &options, &f->err), ORTCRYPT_E_INVALID, &f->err);
    options.pin = NULL;
    options.bundle_id = "00000000000000000000000000000000";
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &options, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    options.bundle_id = NULL;
    options.max_asset_len = 3 * PIECE - 1;
    bundle = fixture_open(f, &options);
    oc_test_status(oc_bundle_read(bundle, fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data"), got, NULL, &f->err), ORTCRYPT_E_LIMIT,
                   &f->err);
    fixture_close(f, bundle);
    free(got);
}

static void options_of_other_versions(void **state)
{
    fixture *const f = *state;
    ortcrypt_bundle *bundle = NULL;
    struct {
        ortcrypt_open_options known;
        uint64_t later;
    } wide;
    fixture_make(f, 10);
    memset(&wide, 0, sizeof wide);
    wide.known.struct_size = 0;
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &wide.known, &f->err), ORTCRYPT_E_INVALID, &f->err);
    wide.known.struct_size = 1u << 20;
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &wide.known, &f->err), ORTCRYPT_E_INVALID, &f->err);
    wide.known.struct_size = sizeof wide;
    bundle = fixture_open(f, &wide.known);
    fixture_close(f, bundle);
    wide.later = 1;
    oc_test_status(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &wide.known, &f->err), ORTCRYPT_E_UNSUPPORTED, &f->err);
    /* an older, shorter struct: what it does not have is not read */
    wide.known.struct_size = offsetof(ortcrypt_open_options, min_sequence);
    wide.known.min_sequence = 1000;
    bundle = fixture_open(f, &wide.known);
    fixture_close(f, bundle);
}

static void variants_and_names(void **state)
{
    fixture *const f = *state;
    ortcrypt_variant_info variant;
    void *data = NULL;
    uint64_t len = 0;
    fixture_make(f, 50);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    oc_test_ok(ortcrypt_bundle_get_variant(bundle, 0, &variant, &f->err), &f->err);
    assert_string_equal(variant.id, "source");
    assert_string_equal(variant.ep, "");
    assert_int_equal(variant.embed, -1);
    assert_int_equal(variant.part_count, 2);
    assert_int_equal(variant.plain_len, 150);
    oc_test_status(ortcrypt_bundle_get_variant(bundle, 1, &variant, &f->err), ORTCRYPT_E_NOT_FOUND, &f->err);
    oc_test_status(ortcrypt_bundle_read_extra(bundle, "nothing", &data, &len, &f->err), ORTCRYPT_E_NOT_FOUND, &f->err);
    oc_bundle_hold(bundle);
    oc_test_status(ortcrypt_bundle_close(bundle, &f->err), ORTCRYPT_E_BUSY, &f->err);
    oc_bundle_release(bundle);
    fixture_close(f, bundle);
    oc_test_ok(ortcrypt_bundle_close(NULL, &f->err), &f->err);
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

/* Refused by all three ways of reading; nothing of the plaintext is left, nothing after the damage was pushed. */
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
    collected c = {.data = got, .thread = pthread_self()};
    oc_test_status(oc_bundle_stream(bundle, asset, collect, &c, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    assert_memory_equal(got, plain, c.len);
    assert_true(offset == ORTCRYPT_NO_OFFSET || c.len <= offset);
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
    expect_damage(f, NULL, size, "chunk 256", 56 + 256 * 16400);
    flip(object, sealed - 1);
    assert_int_equal(truncate(object, (off_t)sealed - 1), 0);
    expect_damage(f, NULL, size, "cut", ORTCRYPT_NO_OFFSET);
    assert_int_equal(truncate(object, (off_t)sealed + 1), 0);
    expect_damage(f, NULL, size, "lengthened", ORTCRYPT_NO_OFFSET);
    free(object);
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
    forge(f, bundle, asset);
    oc_test_ok(oc_bundle_read(bundle, asset, got, NULL, &f->err), &f->err); /* tags suffice without a pin */
    assert_int_equal(got[65 * CHUNK + 2], 3);
    oc_bundle_require_leaves(bundle);
    oc_test_status(oc_bundle_read(bundle, asset, got, NULL, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    fixture_close(f, bundle);
    const ortcrypt_open_options options = {.struct_size = sizeof options, .pin = info.manifest_id};
    expect_damage(f, &options, size, "piece 1", oc_piece_offset(1));
    free(got);
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

typedef struct watcher {
    pthread_t thread;
    uint64_t last;
    uint64_t total;
    size_t calls;
    size_t cancel_at; /* call that cancels; 0: none */
} watcher;

static int watch(void *state, const char *step, uint64_t done, uint64_t total)
{
    watcher *const w = state;
    assert_true(pthread_equal(w->thread, pthread_self()));
    assert_string_equal(step, "decrypting");
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    return ++w->calls == w->cancel_at;
}

static void monitors(void **state)
{
    fixture *const f = *state;
    const size_t size = 8 * PIECE;
    fixture_make(f, size);
    const ortcrypt_open_options options = {.struct_size = sizeof options, .threads = 3};
    ortcrypt_bundle *const bundle = fixture_open(f, &options);
    const oc_asset *const asset = fixture_asset(bundle, "source", OC_ROLE_EXTRA, "data");
    uint8_t *const got = malloc(size);
    for (int way = 0; way < 2; way++) {
        watcher w = {.thread = pthread_self()};
        const ortcrypt_monitor monitor = {.progress = watch, .state = &w};
        collected c = {.data = got, .thread = pthread_self()};
        oc_test_ok(way == 0 ? oc_bundle_read(bundle, asset, got, &monitor, &f->err)
                            : oc_bundle_stream(bundle, asset, collect, &c, &monitor, &f->err),
                   &f->err);
        assert_int_equal(w.last, size);
        assert_int_equal(w.total, size);
        w = (watcher){.thread = pthread_self(), .cancel_at = 1};
        c.len = 0;
        oc_test_status(way == 0 ? oc_bundle_read(bundle, asset, got, &monitor, &f->err)
                                : oc_bundle_stream(bundle, asset, collect, &c, &monitor, &f->err),
                       ORTCRYPT_E_CANCELLED, &f->err);
        assert_int_equal(w.calls, 1);
        for (size_t i = 0; way == 0 && i < size; i++) {
            assert_int_equal(got[i], 0);
        }
    }
    /* the receiver of a stream gives up, at every piece */
    for (size_t at = 1; at <= 8; at++) {
        collected c = {.data = got, .thread = pthread_self(), .fail_at = at};
        oc_test_status(oc_bundle_stream(bundle, asset, collect, &c, NULL, &f->err), ORTCRYPT_E_CANCELLED, &f->err);
        assert_string_equal(f->err.message, "enough");
        assert_int_equal(c.len, (at - 1) * PIECE);
    }
    free(got);
    fixture_close(f, bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_border_size, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(demands, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(options_of_other_versions, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(variants_and_names, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(damage_is_found_and_wiped, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_pin_makes_leaves_count, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(what_stands_for_an_object, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(what_is_no_bundle, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(what_is_wrong_with_manifest_and_key, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(monitors, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
