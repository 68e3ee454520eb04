/* Several at once: two writers, writers beside readers, collection, asset writers on threads, sources that break. */
#include <pthread.h>
#include <sched.h>

#include "bundle_fixture.h"

#define PIECE ((size_t)OC_PIECE_PLAIN_LEN)

static void begin(fixture *f, oc_txn **txn, const char *out_path)
{
    oc_test_ok(oc_txn_begin(txn, f->path, out_path, f->keyring, NULL, &f->err), &f->err);
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

static void one_writer_at_a_time(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    oc_store *second = NULL;
    fixture_make(f, 10);
    begin(f, &txn, NULL);
    oc_test_ok(oc_store_open(&second, f->path, &f->err), &f->err);
    oc_test_status(oc_store_lock(second, 0, &f->err), ORTCRYPT_E_BUSY, &f->err);
    oc_store_close(second);
    oc_txn_end(txn);
    oc_test_ok(oc_store_open(&second, f->path, &f->err), &f->err);
    oc_test_ok(oc_store_lock(second, 0, &f->err), &f->err);
    oc_store_close(second);
}

typedef struct contender {
    fixture *f;
    oc_txn *txn; /* one for all, or NULL: its own */
    const char *id;
    ortcrypt_error err;
    ortcrypt_status status;
} contender;

static void *contend(void *state)
{
    contender *const c = state;
    oc_txn *txn = NULL;
    oc_variant *variant = NULL;
    uint8_t id[OC_ASSET_ID_LEN];
    c->status = oc_txn_begin(&txn, c->f->path, NULL, c->f->keyring, NULL, &c->err);
    if (c->status == ORTCRYPT_OK) {
        c->status = oc_txn_put(txn, OC_SPAN_STR("compiled"), id, &c->err);
    }
    if (c->status == ORTCRYPT_OK) {
        c->status = oc_manifest_add_variant(oc_txn_manifest(txn), c->id, "compiled", &variant, &c->err);
    }
    if (c->status == ORTCRYPT_OK) {
        c->status = oc_variant_add_part(variant, OC_ROLE_MODEL, "", id, &c->err);
    }
    if (c->status == ORTCRYPT_OK) {
        c->status = oc_txn_commit(txn, NULL, &c->err);
    }
    oc_txn_end(txn);
    return NULL;
}

static void two_writers_lose_nothing(void **state)
{
    fixture *const f = *state;
    pthread_t threads[3];
    contender contenders[3] = {{.f = f, .id = "a"}, {.f = f, .id = "b"}, {.f = f, .id = "c"}};
    ortcrypt_bundle_info info;
    fixture_make(f, 10);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &contenders[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        oc_test_ok(contenders[i].status, &contenders[i].err);
    }
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    ortcrypt_bundle_get_info(bundle, &info);
    assert_int_equal(info.sequence, 4);
    assert_int_equal(info.variant_count, 4);
    fixture_close(f, bundle);
}

/* Replaces everything: no part of the old manifest is named by the new one. */
static void replace_all(fixture *f)
{
    oc_txn *txn = NULL;
    begin(f, &txn, NULL);
    oc_manifest *const manifest = oc_txn_manifest(txn);
    oc_variant *const variant = &manifest->variants[0];
    uint8_t old[OC_ASSET_ID_LEN];
    memcpy(old, variant->parts[1].asset, sizeof old);
    oc_test_ok(oc_txn_put(txn, OC_SPAN_STR("new data"), variant->parts[1].asset, &f->err), &f->err);
    oc_test_ok(oc_txn_drop_asset(txn, old, &f->err), &f->err);
    oc_test_status(oc_txn_drop_asset(txn, old, &f->err), ORTCRYPT_E_NOT_FOUND, &f->err);
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
}

static void a_reader_keeps_its_bundle(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    fixture_make(f, 2 * PIECE);
    ortcrypt_bundle *const reader = fixture_open(f, NULL);
    replace_all(f);
    expect_part(f, reader, "source", OC_ROLE_EXTRA, "data", 2 * PIECE, 2);
    assert_int_equal(fixture_count_below(f, "objects"), 3);
    assert_int_equal(fixture_count_below(f, "keys"), 2);
    fixture_close(f, reader);
    /* nobody reads: the next commit takes both old generations away */
    begin(f, &txn, NULL);
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
    assert_int_equal(fixture_count_below(f, "objects"), 2);
    assert_int_equal(fixture_count_below(f, "keys"), 1);
    ortcrypt_bundle *const bundle = fixture_open(f, NULL);
    void *data = NULL;
    uint64_t len = 0;
    oc_test_ok(ortcrypt_bundle_read_extra(bundle, "data", &data, &len, &f->err), &f->err);
    assert_int_equal(len, 8);
    assert_memory_equal(data, "new data", 8);
    ortcrypt_free(data, len);
    fixture_close(f, bundle);
}

static void *write_one(void *state)
{
    contender *const c = state;
    oc_asset_writer *writer = NULL;
    uint8_t *const data = fixture_bytes(2 * PIECE + 100, strlen(c->id));
    uint8_t id[OC_ASSET_ID_LEN];
    c->status = oc_asset_writer_open(&writer, c->txn, &c->err);
    for (size_t at = 0; c->status == ORTCRYPT_OK && at < 2 * PIECE + 100;) {
        const size_t step = 2 * PIECE + 100 - at < 70001 ? 2 * PIECE + 100 - at : 70001;
        c->status = oc_asset_writer_push(writer, data + at, step, &c->err);
        at += step;
    }
    if (c->status == ORTCRYPT_OK) {
        c->status = oc_asset_writer_finish(writer, id, &c->err);
    }
    if (c->status == ORTCRYPT_OK && oc_asset_writer_push(writer, data, 1, NULL) != ORTCRYPT_E_INVALID) {
        c->status = ORTCRYPT_E_ORT; /* a finished writer takes nothing more */
    }
    oc_asset_writer_close(writer);
    free(data);
    return NULL;
}

static void writers_on_several_threads(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    pthread_t threads[4];
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    contender contenders[4] = {{.txn = txn, .id = "1"}, {.txn = txn, .id = "22"}, {.txn = txn, .id = "333"}, {.txn = txn, .id = "4444"}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_one, &contenders[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        oc_test_ok(contenders[i].status, &contenders[i].err);
    }
    oc_manifest *const manifest = oc_txn_manifest(txn);
    assert_int_equal(manifest->asset_count, 4);
    unsigned seen = 0;
    uint8_t *const got = malloc(2 * PIECE + 100);
    for (size_t i = 0; i < 4; i++) {
        oc_test_ok(oc_bundle_read(oc_txn_view(txn), &manifest->assets[i], got, NULL, &f->err), &f->err);
        for (uint64_t seed = 1; seed <= 4; seed++) {
            uint8_t *const plain = fixture_bytes(2 * PIECE + 100, seed);
            seen |= memcmp(plain, got, 2 * PIECE + 100) == 0 ? 1u << seed : 0;
            free(plain);
        }
    }
    assert_int_equal(seen, 0x1e);
    free(got);
    oc_txn_end(txn);
}

typedef struct test_source {
    uint64_t limit; /* bytes from which reading fails */
    atomic_int readers;
    bool crowded; /* two threads were in read at once */
} test_source;

static ortcrypt_status read_source(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    test_source *const source = state;
    source->crowded = source->crowded || atomic_fetch_add(&source->readers, 1) != 0;
    memset(buffer, 7, len);
    sched_yield();
    atomic_fetch_sub(&source->readers, 1);
    return offset >= source->limit ? oc_fail(err, ORTCRYPT_E_INPUT, "the file shrank") : ORTCRYPT_OK;
}

static void a_source_that_breaks(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    test_source inner = {.limit = 5 * PIECE};
    uint8_t id[OC_ASSET_ID_LEN];
    const oc_source source = {read_source, &inner, 40 * PIECE};
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    oc_txn_set_threads(txn, 4);
    oc_test_status(oc_txn_put_source(txn, &source, "encrypting", NULL, id, &f->err), ORTCRYPT_E_INPUT, &f->err);
    assert_string_equal(f->err.message, "the file shrank");
    assert_int_equal(oc_txn_manifest(txn)->asset_count, 0);
    inner.limit = UINT64_MAX;
    oc_test_ok(oc_txn_put_source(txn, &source, "encrypting", NULL, id, &f->err), &f->err);
    assert_false(inner.crowded);
    oc_txn_end(txn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_writer_at_a_time, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(two_writers_lose_nothing, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_reader_keeps_its_bundle, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(writers_on_several_threads, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_source_that_breaks, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
