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
        cmocka_unit_test_setup_teardown(a_shared_asset_outlives_writes, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
