/*
 * The tampering sweep through real sessions: a real model, compiled by the reference EP into external EPContext data, every
 * kind of damage on both runtimes; each must be refused before a session exists. Fewer places than the in-process sweep of
 * tests/unit/test_tamper.c, which covers every border: here each try is a whole ORT session.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/tamper.h"
#include "test_flow_rig.h"

struct world {
    char *folder;
    char bundle[512];
    char other[512];
    char ep[1024];
    ortcrypt_keyring *keyring;
    ortcrypt_runtime *runtime;
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
};

static void make_bundle(const struct world *w, const char *path)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char model[1024];
    ortcrypt_compile_options options = {.struct_size = sizeof options, .ep = "OrtcryptReference", .ep_library = w->ep};
    (void)snprintf(model, sizeof model, "%s/models/ppocr_cls.onnx", oc_test_env("ORTCRYPT_DEPS"));
    assert_ok(ortcrypt_encrypt(model, path, w->keyring, NULL, NULL, &err), &err);
    assert_ok(ortcrypt_compile(w->runtime, path, w->keyring, &options, NULL, &err), &err);
}

static struct world *world_of(const char *version)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char identity[ORTCRYPT_IDENTITY_SIZE];
    struct world *const w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->folder = oc_test_tmpdir();
    (void)snprintf(w->bundle, sizeof w->bundle, "%s/a.ortc", w->folder);
    (void)snprintf(w->other, sizeof w->other, "%s/b.ortc", w->folder);
    rig_reference_path(w->ep);
    w->runtime = rig_runtime(version);
    assert_ok(ortcrypt_identity_generate(identity, w->recipient, &err), &err);
    assert_ok(ortcrypt_keyring_new(&w->keyring, &err), &err);
    assert_ok(ortcrypt_keyring_add_recipient(w->keyring, w->recipient, &err), &err);
    assert_ok(ortcrypt_keyring_add_identity(w->keyring, identity, strlen(identity), &err), &err);
    make_bundle(w, w->bundle);
    make_bundle(w, w->other);
    return w;
}

static void world_end(struct world *w)
{
    rig_runtime_close(w->runtime);
    ortcrypt_keyring_free(w->keyring);
    oc_test_rm_rf(w->folder);
    free(w->folder);
    free(w);
}

/* Both variants, so that every object of the bundle is used. */
static ortcrypt_status open_sessions(void *state, const char *path, ortcrypt_error *err)
{
    const struct world *const w = state;
    ortcrypt_error ignored = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_session *session = NULL;
    const ortcrypt_session_options source = {.struct_size = sizeof source, .variant = "source"};
    const ortcrypt_session_options compiled = {.struct_size = sizeof compiled, .ep = "OrtcryptReference"};

    ortcrypt_status st = ortcrypt_bundle_open(&bundle, path, w->keyring, NULL, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = ortcrypt_session_open(&session, w->runtime, bundle, &source, err);
    assert_true((st == ORTCRYPT_OK) == (session != NULL));
    ortcrypt_session_close(session);
    session = NULL;
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_session_open(&session, w->runtime, bundle, &compiled, err);
        assert_true((st == ORTCRYPT_OK) == (session != NULL));
        ortcrypt_session_close(session);
    }
    assert_ok(ortcrypt_bundle_close(bundle, &ignored), &ignored);
    return st;
}

static void sweep(const char *version)
{
    struct world *const w = world_of(version);
    oc_tamper t = {.bundle = w->bundle, .open = open_sessions, .state = w, .flips = 8, .cut_step = 16};

    oc_tamper_flip(&t);
    oc_tamper_cut(&t);
    oc_tamper_lengthen(&t);
    oc_tamper_delete(&t);
    oc_tamper_replace_by_directory(&t);
    oc_tamper_replace_by_fifo(&t);
    oc_tamper_replace_by_wrong_link(&t);
    oc_tamper_swap_objects(&t);
    oc_tamper_swap_between(&t, w->other);
    oc_tamper_right_link(&t);
    print_message("%s: %zu damages refused\n", version, t.tried);
    assert_true(t.tried > 100);
    world_end(w);
}

static void test_sweep_experimental(void **state)
{
    (void)state;
    sweep("1.30.0");
}

static void test_sweep_stable(void **state)
{
    (void)state;
    sweep("1.32.0");
}

/* Damage of the compiled variant never makes the source be chosen in its place. */
static void test_no_fallback(void **state)
{
    (void)state;
    struct world *const w = world_of("1.32.0");
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_session *session = NULL;
    ortcrypt_variant_info info;
    const ortcrypt_session_options compiled = {.struct_size = sizeof compiled, .ep = "OrtcryptReference"};
    const ortcrypt_session_options source = {.struct_size = sizeof source, .variant = "source"};
    char command[1200];

    /* the smallest object is the compiled model: its weights are in the blob; the source stays whole */
    assert_ok(ortcrypt_bundle_open(&bundle, w->bundle, w->keyring, NULL, &err), &err);
    assert_ok(ortcrypt_bundle_get_variant(bundle, 1, &info, &err), &err);
    assert_string_equal(info.kind, "compiled");
    assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
    (void)snprintf(command, sizeof command,
                   "for f in $(find %s/objects -type f | xargs ls -S | tail -n 1); do printf XXXX | dd of=$f bs=1 seek=2000 "
                   "conv=notrunc status=none; done",
                   w->bundle);
    assert_int_equal(system(command), 0); /* NOLINT: a fixed command over our own scratch folder */
    assert_ok(ortcrypt_bundle_open(&bundle, w->bundle, w->keyring, NULL, &err), &err);
    assert_st(ortcrypt_session_open(&session, w->runtime, bundle, &compiled, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
    assert_null(session);
    assert_ok(ortcrypt_session_open(&session, w->runtime, bundle, &source, &err), &err);
    ortcrypt_session_close(session);
    assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_experimental),
        cmocka_unit_test(test_sweep_stable),
        cmocka_unit_test(test_no_fallback),
    };
    alarm(550); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
