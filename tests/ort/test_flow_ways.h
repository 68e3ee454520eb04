/*
 * What the tests of the ways into ONNX Runtime share: a bundle loaded at every optimization level with prepacking on and off, its outputs
 * and its plan compared; damage; userfaultfd denied.
 */
#ifndef TEST_FLOW_WAYS_H
#define TEST_FLOW_WAYS_H

#include <errno.h>
#include <jansson.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "test_flow_bed.h"

#include "bundle/bundle.h"
#include "os/os.h"

#define LARGE_LEN ((size_t)17 << 20) /* above the sizes from which routes change */
#define LIFTED "array, its weights as initializers, decrypted as read"

static const char *const versions[] = {"1.24.4", "1.30.0", "1.31.1", "1.32.0"};
#define VERSION_COUNT (sizeof(versions) / sizeof(versions[0]))

/* The route of the first asset of that role. */
static char *route_of(const char *plan_text, const char *role)
{
    json_error_t where;
    json_t *const plan = json_loads(plan_text, 0, &where);
    json_t *asset = NULL;
    size_t index = 0;
    char *route = NULL;

    assert_non_null(plan);
    json_array_foreach(json_object_get(plan, "assets"), index, asset) {
        if (route == NULL && strcmp(json_string_value(json_object_get(asset, "role")), role) == 0) {
            route = oc_test_format("%s", json_string_value(json_object_get(asset, "route")));
        }
    }
    assert_non_null(route);
    json_decref(plan);
    return route;
}

static void assert_route(const char *plan, const char *role, const char *expected)
{
    char *const route = route_of(plan, role);
    assert_string_equal(route, expected);
    free(route);
}

typedef struct expected { /* routes of files: prepacking on, off; of the model */
    const char *packed;
    const char *unpacked;
    const char *lazy;
    const char *model;
} expected;

static void check_level(const bed *b, GraphOptimizationLevel level, bool prepacking, bool lazy, const expected *want, const char *what)
{
    const OrtApi *const api = ortcrypt_runtime_api(b->runtime);
    ortcrypt_session_options run = {.struct_size = sizeof(run), .lazy = lazy};
    OrtSessionOptions *base = NULL;
    char *plan = NULL;

    assert_null(api->CreateSessionOptions(&base));
    assert_null(api->SetSessionGraphOptimizationLevel(base, level));
    assert_null(api->AddSessionConfigEntry(base, "session.disable_prepacking", prepacking ? "0" : "1"));
    run.base = base;
    float *const plain = rig_plain(b->runtime, b->model, base);
    float *const y = bed_run(b, &run, &plan);
    rig_assert_close(y, plain, 2 * MODEL_OUT, what);
    if (want->packed != NULL) {
        assert_route(plan, "external", prepacking ? want->packed : lazy ? want->lazy : want->unpacked);
    }
    assert_route(plan, "model", want->model);
    ortcrypt_free(plan, 0);
    free(plain);
    free(y);
    api->ReleaseSessionOptions(base);
}

/* The bundle of an open bed. */
static void check_levels(const bed *b, const expected *want)
{
    static const GraphOptimizationLevel levels[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL};

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        check_level(b, levels[i], true, false, want, b->version);
        check_level(b, levels[i], false, false, want, b->version);
        if (want->lazy != NULL && strcmp(want->lazy, want->unpacked) != 0) {
            check_level(b, levels[i], true, true, want, b->version);
            check_level(b, levels[i], false, true, want, b->version);
        }
    }
}

RIG_UNUSED static void check_all_levels(const char *version, const rig_model *spec, const expected *want)
{
    char path[1024];
    bed b;

    if (!rig_runtime_path(path, version)) {
        return;
    }
    bed_open(&b, version, spec);
    check_levels(&b, want);
    bed_close(&b);
}

RIG_UNUSED static void need_pages(void)
{
    if (!oc_paged_available()) {
        print_message("userfaultfd is denied here: its routes are not tested\n");
        skip();
    }
}

/* Flips one byte of the largest object, at a fraction of its length. */
RIG_UNUSED static void damage(const bed *b, size_t numerator, size_t denominator)
{
    size_t len = 0;
    size_t longest = 0;
    ortcrypt_bundle *const bundle = bed_bundle(b);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    char object[2 * OC_LEAF_LEN + 1] = "";

    for (size_t i = 0; i < manifest->asset_count; i++) {
        if (manifest->assets[i].size > longest) {
            longest = manifest->assets[i].size;
            oc_hex_encode(object, manifest->assets[i].object, OC_LEAF_LEN);
        }
    }
    close_bundle(bundle);
    char *const path = oc_test_format("%s/objects/%.2s/%s", b->bundle, object, object);
    uint8_t *const bytes = oc_test_read_file(path, &len);
    bytes[len / denominator * numerator] ^= 0x10;
    assert_int_equal(remove(path), 0);
    oc_test_write_file(path, bytes, len);
    free(bytes);
    free(path);
}

/* No session, the reason, and nothing left that holds the bundle. */
static void assert_altered(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    ortcrypt_bundle *const bundle = bed_bundle(b);

    assert_st(ortcrypt_session_open(&session, b->runtime, bundle, NULL, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
    assert_non_null(strstr(err.message, "altered"));
    assert_null(session);
    close_bundle(bundle);
}

/* As Docker's default profile does. For good: the tests that need it come last. */
RIG_UNUSED static int deny_userfaultfd(void **state)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    (void)state;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ||
           oc_paged_available();
}

#endif
