/* Reading a bundle: sizes at every border, demands of the caller, options of other versions, monitors, streams, random access. */
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
        cmocka_unit_test_setup_teardown(monitors, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
