/* Assets as memory that is decrypted when it is touched, while the list they were taken from moves. */
#include "bundle_fixture.h"
#include "os/os.h"

#define PIECE ((size_t)OC_PIECE_PLAIN_LEN)
#define DATA_LEN (3 * PIECE + 12345u)
#define ADDED 200u /* assets: enough to make their list move in memory more than once, and every entry in it */

/* The extra part's bytes are right after others were added to the transaction, at the front of the list and at its end. */
static void pages_outlive_writes(fixture *f, oc_txn *txn, bool leaves_later)
{
    ortcrypt_bundle *const view = oc_txn_view(txn);
    const oc_asset *const assets[2] = {fixture_asset(view, "source", OC_ROLE_MODEL, ""),
                                       fixture_asset(view, "source", OC_ROLE_EXTRA, "data")};
    const oc_pages_options options = {.window_len = 0};
    uint8_t *const model = fixture_bytes(100, 1);
    uint8_t *const data = fixture_bytes(DATA_LEN, 2);
    oc_asset_pages *pages = NULL;
    oc_test_ok(oc_asset_pages_open(&pages, view, assets, 2, &options, &f->err), &f->err);
    if (leaves_later) { /* as a signature that is checked meanwhile does */
        oc_bundle_require_leaves(view);
    }
    for (unsigned i = 0; i < ADDED; i++) {
        uint8_t id[OC_ASSET_ID_LEN];
        oc_test_ok(oc_txn_put(txn, OC_SPAN(data, i), id, &f->err), &f->err);
        if (i == ADDED / 2) { /* one thread has the file open by now, others have not */
            assert_memory_equal(oc_asset_pages_data(pages, 1), data, PIECE);
        }
    }
    assert_memory_equal(oc_asset_pages_data(pages, 0), model, 100);
    assert_memory_equal(oc_asset_pages_data(pages, 1), data, DATA_LEN);
    oc_test_ok(oc_asset_pages_settle(pages, true, &f->err), &f->err);
    oc_asset_pages_close(pages);
    free(data);
    free(model);
}

static void with_a_transaction(fixture *f, bool leaves, bool leaves_later)
{
    oc_txn *txn = NULL;
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
    fixture_make(f, DATA_LEN);
    oc_test_ok(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), &f->err);
    if (leaves) {
        oc_bundle_require_leaves(oc_txn_view(txn));
    }
    pages_outlive_writes(f, txn, leaves_later);
    oc_txn_end(txn);
}

static void pages_of_a_view_outlive_writes(void **state) { with_a_transaction(*state, false, false); }
static void so_do_those_of_a_pinned_bundle(void **state) { with_a_transaction(*state, true, false); }
static void so_do_those_of_one_that_counts_leaves_later(void **state) { with_a_transaction(*state, false, true); }

/* Assets beside each other whose lengths are at the edges of chunks, slices and pieces, read backwards; the second time leaves count. */
static void lengths_at_edges(void **state)
{
    enum { LENGTHS = 10 };
    static const size_t lens[LENGTHS] = {1,         16383,         16384, 16385,     PIECE / 4 - 1,
                                         PIECE / 4, PIECE / 4 + 1, PIECE, PIECE + 1, 2 * PIECE};
    fixture *const f = *state;
    const oc_pages_options options = {.window_len = PIECE / 2, .ahead_len = PIECE};
    const oc_asset *assets[LENGTHS];
    uint8_t ids[LENGTHS][OC_ASSET_ID_LEN];
    uint8_t *const data = fixture_bytes(2 * PIECE + LENGTHS, 3);
    oc_txn *txn = NULL;
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: nothing is tested\n");
        skip();
    }
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    for (size_t i = 0; i < LENGTHS; i++) { /* each begins one byte further on */
        oc_test_ok(oc_txn_put(txn, OC_SPAN(data + i, lens[i]), ids[i], &f->err), &f->err);
    }
    for (size_t i = 0; i < LENGTHS; i++) {
        assets[i] = oc_manifest_find_asset(oc_txn_manifest(txn), ids[i]);
        assert_non_null(assets[i]);
    }
    for (unsigned round = 0; round < 2; round++) {
        oc_asset_pages *pages = NULL;
        oc_test_ok(oc_asset_pages_open(&pages, oc_txn_view(txn), assets, LENGTHS, &options, &f->err), &f->err);
        for (size_t i = LENGTHS; i-- > 0;) {
            for (size_t at = lens[i]; at-- > 0;) {
                assert_true(((const volatile uint8_t *)oc_asset_pages_data(pages, i))[at] == data[i + at]);
            }
        }
        oc_test_ok(oc_asset_pages_settle(pages, true, &f->err), &f->err);
        oc_asset_pages_close(pages);
        oc_bundle_require_leaves(oc_txn_view(txn));
    }
    oc_txn_end(txn);
    free(data);
}

static void a_shared_asset_outlives_writes(void **state)
{
    fixture *const f = *state;
    oc_txn *txn = NULL;
    oc_shared_asset *first = NULL;
    oc_shared_asset *second = NULL;
    fixture_make(f, 1000);
    oc_test_ok(oc_txn_begin(&txn, f->path, NULL, f->keyring, NULL, &f->err), &f->err);
    ortcrypt_bundle *const view = oc_txn_view(txn);
    oc_test_ok(oc_bundle_share(&first, view, fixture_asset(view, "source", OC_ROLE_EXTRA, "data"), NULL, &f->err), &f->err);
    for (unsigned i = 0; i < ADDED; i++) {
        uint8_t id[OC_ASSET_ID_LEN];
        oc_test_ok(oc_txn_put(txn, OC_SPAN_STR("new"), id, &f->err), &f->err);
    }
    oc_test_ok(oc_bundle_share(&second, view, fixture_asset(view, "source", OC_ROLE_EXTRA, "data"), NULL, &f->err), &f->err);
    assert_ptr_equal(first, second);
    oc_bundle_unshare(view, first);
    oc_bundle_unshare(view, second);
    oc_txn_end(txn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_of_a_view_outlive_writes, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(so_do_those_of_a_pinned_bundle, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(so_do_those_of_one_that_counts_leaves_later, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(lengths_at_edges, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_shared_asset_outlives_writes, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
