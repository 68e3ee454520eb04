/*
 * The tampering sweep, in process: bundles with assets of every border size, every damage of tests/support/tamper.h, each
 * refused with the right kind of status, and no plaintext in the caller's buffer afterwards.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bundle/bundle.h"
#include "support/support.h"
#include "support/tamper.h"

/* Empty, short, exactly one chunk, just above, one piece, just above, several pieces. */
static const size_t sizes[] = {0, 100, 16384, 16385, 1048576, 1048577, 3 * 1048576 + 5};
#define ASSET_COUNT (sizeof sizes / sizeof sizes[0])

struct world {
    char *folder;
    char bundle[512];
    char other[512];
    ortcrypt_keyring *keyring;
    uint8_t *plain[ASSET_COUNT];
};

static uint8_t *pattern(size_t len, uint32_t seed)
{
    uint8_t *const data = malloc(len + 1);
    assert_non_null(data);
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (uint8_t)(x >> 24);
    }
    return data;
}

static void ok(ortcrypt_status st, const ortcrypt_error *err)
{
    if (st != ORTCRYPT_OK) {
        fail_msg("%s: %s", ortcrypt_status_name(st), err->message);
    }
}

static void make_bundle(const struct world *w, const char *path)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;
    oc_variant *variant = NULL;
    ok(oc_txn_create(&txn, path, w->keyring, &err), &err);
    ok(oc_manifest_add_variant(oc_txn_manifest(txn), "source", "source", &variant, &err), &err);
    for (size_t i = 0; i < ASSET_COUNT; i++) {
        uint8_t id[OC_ASSET_ID_LEN];
        char name[16];
        snprintf(name, sizeof name, "blob%zu", i);
        ok(oc_txn_put(txn, OC_SPAN(w->plain[i], sizes[i]), id, &err), &err);
        ok(oc_variant_add_part(variant, OC_ROLE_EXTRA, name, id, &err), &err);
    }
    ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

static int make_world(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    struct world *const w = calloc(1, sizeof *w);
    assert_non_null(w);
    alarm(500); /* a hang is a failure */
    w->folder = oc_test_tmpdir();
    snprintf(w->bundle, sizeof w->bundle, "%s/a.ortc", w->folder);
    snprintf(w->other, sizeof w->other, "%s/b.ortc", w->folder);
    ok(ortcrypt_identity_generate(identity, recipient, &err), &err);
    ok(ortcrypt_keyring_new(&w->keyring, &err), &err);
    ok(ortcrypt_keyring_add_recipient(w->keyring, recipient, &err), &err);
    ok(ortcrypt_keyring_add_identity(w->keyring, identity, strlen(identity), &err), &err);
    for (size_t i = 0; i < ASSET_COUNT; i++) {
        w->plain[i] = pattern(sizes[i], (uint32_t)i + 7);
    }
    make_bundle(w, w->bundle);
    make_bundle(w, w->other);
    *state = w;
    return 0;
}

static int end_world(void **state)
{
    struct world *const w = *state;
    for (size_t i = 0; i < ASSET_COUNT; i++) {
        free(w->plain[i]);
    }
    ortcrypt_keyring_free(w->keyring);
    oc_test_rm_rf(w->folder);
    free(w->folder);
    free(w);
    return 0;
}

/* After a refusal no 64-byte block of the plaintext may stand where it would have been written. */
static void expect_wiped(const uint8_t *got, const uint8_t *plain, size_t len)
{
    for (size_t at = 0; at + 64 <= len; at += 64) {
        if (memcmp(got + at, plain + at, 64) == 0) {
            fail_msg("plaintext is visible at %zu after a refusal", at);
        }
    }
}

static ortcrypt_status read_all(void *state, const char *path, ortcrypt_error *err)
{
    const struct world *const w = state;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_error ignored = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = ortcrypt_bundle_open(&bundle, path, w->keyring, NULL, err);
    if (st != ORTCRYPT_OK) {
        assert_null(bundle);
        return st;
    }
    const oc_variant *const variant = oc_manifest_find_variant(oc_bundle_manifest(bundle), "source");
    assert_non_null(variant);
    for (size_t i = 0; i < ASSET_COUNT && st == ORTCRYPT_OK; i++) {
        const oc_asset *const asset =
            oc_manifest_find_asset(oc_bundle_manifest(bundle), variant->parts[i].asset);
        uint8_t *const got = calloc(1, sizes[i] + 1);
        assert_non_null(asset);
        assert_non_null(got);
        st = oc_bundle_read(bundle, asset, got, NULL, err);
        if (st == ORTCRYPT_OK) {
            assert_memory_equal(got, w->plain[i], sizes[i]);
        } else {
            expect_wiped(got, w->plain[i], sizes[i]);
        }
        free(got);
    }
    ok(ortcrypt_bundle_close(bundle, &ignored), &ignored);
    return st;
}

static oc_tamper sweep_of(struct world *w)
{
    return (oc_tamper){.bundle = w->bundle, .open = read_all, .state = w, .flips = 200, .cut_step = 1};
}

static void test_intact(void **state)
{
    struct world *const w = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ok(read_all(w, w->bundle, &err), &err);
    ok(read_all(w, w->other, &err), &err);
}

#define SWEEP(name, minimum)                                        \
    static void test_##name(void **state)                           \
    {                                                               \
        oc_tamper t = sweep_of(*state);                             \
        oc_tamper_##name(&t);                                       \
        print_message("%s: %zu damages refused\n", #name, t.tried); \
        assert_true(t.tried >= (minimum));                          \
    }

SWEEP(flip, 1600) /* 8 files of 200, one of 72 bytes and FORMAT */
SWEEP(cut, 3 * 300)
SWEEP(lengthen, 40)
SWEEP(delete, 10)
SWEEP(replace_by_directory, 10)
SWEEP(replace_by_fifo, 10)
SWEEP(replace_by_wrong_link, 10)
SWEEP(swap_objects, 21)
static void test_right_link(void **state)
{
    oc_tamper t = sweep_of(*state);
    oc_tamper_right_link(&t);
}

static void test_swap_between(void **state)
{
    struct world *const w = *state;
    oc_tamper t = sweep_of(w);
    oc_tamper_swap_between(&t, w->other);
    assert_true(t.tried >= 49 + 2);
}

/* Another whole bundle in place is caught by the id the application expects, an older state by the pin or the sequence. */
static void test_whole_bundle_replaced(void **state)
{
    struct world *const w = *state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_bundle_info mine;
    ok(ortcrypt_bundle_open(&bundle, w->bundle, w->keyring, NULL, &err), &err);
    ortcrypt_bundle_get_info(bundle, &mine);
    ok(ortcrypt_bundle_close(bundle, &err), &err);
    ortcrypt_open_options by_id = {.struct_size = sizeof by_id, .bundle_id = mine.bundle_id};
    ortcrypt_open_options by_pin = {.struct_size = sizeof by_pin, .pin = mine.manifest_id};
    ortcrypt_open_options by_sequence = {.struct_size = sizeof by_sequence, .min_sequence = mine.sequence + 1};
    assert_int_equal(ortcrypt_bundle_open(&bundle, w->other, w->keyring, &by_id, &err), ORTCRYPT_E_NOT_AUTHENTIC);
    assert_int_equal(ortcrypt_bundle_open(&bundle, w->other, w->keyring, &by_pin, &err), ORTCRYPT_E_NOT_AUTHENTIC);
    assert_int_equal(ortcrypt_bundle_open(&bundle, w->bundle, w->keyring, &by_sequence, &err), ORTCRYPT_E_NOT_AUTHENTIC);
    ok(ortcrypt_bundle_open(&bundle, w->bundle, w->keyring, &by_pin, &err), &err);
    ok(ortcrypt_bundle_close(bundle, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intact),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_lengthen),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_replace_by_directory),
        cmocka_unit_test(test_replace_by_fifo),
        cmocka_unit_test(test_replace_by_wrong_link),
        cmocka_unit_test(test_swap_objects),
        cmocka_unit_test(test_swap_between),
        cmocka_unit_test(test_right_link),
        cmocka_unit_test(test_whole_bundle_replaced),
    };
    return cmocka_run_group_tests(tests, make_world, end_world);
}
