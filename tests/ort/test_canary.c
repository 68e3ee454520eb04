/* The canary's verdicts: an EP that keeps the contract, one for each way of breaking it, and what makes trying impossible. */
#include "test_flow_rig.h"

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/canary.h"

#define EP "OrtcryptTried"

/* A runtime of `version` with this EP library; each try may take that long. */
static ortcrypt_runtime *open_with(const char *version, const char *library, const char *probe, unsigned timeout_ms)
{
    const ortcrypt_runtime_options options = {.struct_size = sizeof(options), .probe = probe, .probe_timeout_ms = timeout_ms};
    ortcrypt_runtime *runtime = NULL;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/ort/%s/libonnxruntime.so.%s", oc_test_env("ORTCRYPT_DEPS"), version, version);
    assert_ok(ortcrypt_runtime_open(&runtime, path, &options, &err), &err);
    (void)snprintf(path, sizeof(path), "%s/%s", oc_test_env("ORTCRYPT_BUILD"), library);
    assert_ok(ortcrypt_runtime_register_ep(runtime, EP, path, &err), &err);
    return runtime;
}

static oc_canary_verdict prove(ortcrypt_runtime *runtime)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_canary_verdict verdict;

    assert_ok(oc_canary_prove(&verdict, runtime, EP, NULL, NULL, NULL, 0, &err), &err);
    return verdict;
}

static void test_proven(void **state)
{
    static const char *const versions[] = {"1.30.0", "1.32.0"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ortcrypt_runtime *const runtime = open_with(versions[i], "broken/libortcrypt_broken_none.so", NULL, 0);
        oc_canary_verdict verdict = prove(runtime);
        assert_true(verdict.proven);
        assert_false(verdict.known);
        verdict = prove(runtime); /* not tried again */
        assert_true(verdict.proven);
        assert_true(verdict.known);
        rig_runtime_close(runtime);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *library, *why;
        unsigned timeout_ms;
    } cases[] = {
        {"broken/libortcrypt_broken_file.so", "it tried to open /", 0},
        {"broken/libortcrypt_broken_silent.so", "without calling the write callback", 0},
        {"broken/libortcrypt_broken_deaf.so", "it took the read callback and did not use it", 0},
        {"broken/libortcrypt_broken_mute.so", "it does not advertise the EPContext callbacks", 0},
        {"broken/libortcrypt_broken_crash.so", "it crashed (SIGABRT, step compile)", 0},
        {"broken/libortcrypt_broken_hang.so", "it did not come to an end (step compile)", 3000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ortcrypt_runtime *const runtime = open_with("1.32.0", cases[i].library, NULL, cases[i].timeout_ms);
        const oc_canary_verdict verdict = prove(runtime);
        assert_false(verdict.proven);
        if (strstr(verdict.why, cases[i].why) == NULL) {
            fail_msg("%s: %s", cases[i].library, verdict.why);
        }
        rig_runtime_close(runtime);
    }
}

/* What cannot be tried is refused as well: without the program, with another program, for an EP that is not there. */
static void test_not_tried(void **state)
{
    static const char *const probes[] = {"/nowhere/ortcrypt-probe", "/bin/false"};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_canary_verdict verdict;

    (void)state;
    ortcrypt_runtime *runtime = open_with("1.32.0", "broken/libortcrypt_broken_none.so", probes[0], 0);
    oc_test_status(oc_canary_prove(&verdict, runtime, EP, NULL, NULL, NULL, 0, &err), ORTCRYPT_E_UNSUPPORTED, &err);
    assert_non_null(strstr(err.message, probes[0]));
    oc_test_status(oc_canary_prove(&verdict, runtime, "Nobody", NULL, NULL, NULL, 0, &err), ORTCRYPT_E_NOT_FOUND, &err);
    rig_runtime_close(runtime);
    runtime = open_with("1.32.0", "broken/libortcrypt_broken_none.so", probes[1], 0);
    verdict = prove(runtime);
    assert_false(verdict.proven);
    rig_runtime_close(runtime);
}

/* A probe that says `report` on its output (descriptor 4), @ being our version, and ends well. */
static char *make_probe(const char *folder, const char *report)
{
    char *const path = oc_test_format("%s/probe", folder);
    char *const script = oc_test_format("#!/bin/sh\n{ %s; } | sed 's/@/%s/' >&4\n", report, ortcrypt_version());

    oc_test_write_file(path, script, strlen(script));
    assert_int_equal(chmod(path, 0700), 0);
    free(script);
    return path;
}

/* The report comes from a process that an EP ran in: none of these proves anything. */
static void test_hostile_reports(void **state)
{
    static const struct {
        const char *report;
        ortcrypt_status status; /* of trying */
    } cases[] = {
        {"printf ''", ORTCRYPT_OK},
        {"printf '\\000\\377\\n\\n{\\n'", ORTCRYPT_OK},
        {"head -c 100000 /dev/zero | tr '\\0' '['", ORTCRYPT_OK},
        {"echo '{\"version\":\"0.0.0\",\"stage\":\"done\"}'", ORTCRYPT_E_UNSUPPORTED},
        {"echo '{\"version\":7,\"stage\":\"done\"}'", ORTCRYPT_E_UNSUPPORTED},
        {"echo '[]'", ORTCRYPT_E_UNSUPPORTED},
        {"echo '{\"version\":\"@\",\"stage\":\"done\"}'", ORTCRYPT_OK},
        {"echo '{\"version\":\"@\",\"stage\":\"done\",\"error\":3,\"nodes\":\"1\",\"contexts\":[],"
         "\"named\":{},\"written\":5,\"read\":null,\"difference\":\"0\"}'",
         ORTCRYPT_OK},
        {"echo '{\"version\":\"@\",\"stage\":\"done\",\"error\":null,\"nodes\":1,\"contexts\":1,\"named\":[\"a\"],"
         "\"written\":[{\"name\":\"a\",\"len\":9}],\"read\":[{\"name\":\"a\"}],\"difference\":0.0}'",
         ORTCRYPT_OK}, /* all that is asked for, by one that was not held */
    };
    char *const folder = oc_test_tmpdir();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_canary_verdict verdict;
        char *const probe = make_probe(folder, cases[i].report);
        ortcrypt_runtime *const runtime = open_with("1.32.0", "broken/libortcrypt_broken_none.so", probe, 0);
        oc_test_status(oc_canary_prove(&verdict, runtime, EP, NULL, NULL, NULL, 0, &err), cases[i].status, &err);
        assert_false(verdict.proven);
        rig_runtime_close(runtime);
        free(probe);
    }
    oc_test_rm_rf(folder);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proven),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_tried),
        cmocka_unit_test(test_hostile_reports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
