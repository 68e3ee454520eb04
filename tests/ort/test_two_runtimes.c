/* Several ONNX Runtimes in one process: which ones are one and the same, what each may share, and which one is meant without a name. */
#include "test_flow_bed.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include "runtime/runtime.h"

#define CPP_NAME "OrtcryptCpp"

static const char *const pairs[][2] = {{"1.24.4", "1.32.0"}, {"1.30.0", "1.32.0"}, {"1.32.0", "1.30.0"}};
#define PAIR_COUNT (sizeof(pairs) / sizeof(pairs[0]))

static void cpp_path(char path[1024])
{
    (void)snprintf(path, 1024, "%s/libortcrypt_ep_cpp.so", oc_test_env("ORTCRYPT_BUILD"));
}

static ortcrypt_session *open_session(const bed *b, ortcrypt_bundle *bundle)
{
    const ortcrypt_session_options options = {.struct_size = sizeof options, .ep = EP};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;

    assert_ok(ortcrypt_session_open(&session, b->runtime, bundle, &options, &err), &err);
    return session;
}

static void check_session(const bed *b, ortcrypt_session *session, const float *plain)
{
    float *const y = rig_run(ortcrypt_runtime_api(b->runtime), ortcrypt_session_ort(session));
    rig_assert_close(y, plain, 2 * 256, b->version);
    free(y);
}

/* Both open, one EP library in both, sessions of both at once, closed in the order they were opened. */
static void both_work_at_once(const char *const versions[2])
{
    const rig_model spec = {.external = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundles[2];
    ortcrypt_session *sessions[2];
    float *plain[2];
    bed beds[2];

    for (size_t i = 0; i < 2; i++) {
        bed_open(&beds[i], versions[i], &spec);
        assert_ok(ortcrypt_runtime_register_ep(beds[i].runtime, EP, beds[i].library, &err), &err);
    }
    for (size_t i = 0; i < 2; i++) {
        ortcrypt_compile_options options = compile_options(&beds[i]);
        options.embed = oc_runtime_ep_context(beds[i].runtime)->era == ORTCRYPT_ERA_NONE;
        bed_compile(&beds[i], &options, NULL);
        plain[i] = rig_plain(beds[i].runtime, beds[i].model, NULL);
        bundles[i] = bed_bundle(&beds[i]);
        sessions[i] = open_session(&beds[i], bundles[i]);
        check_session(&beds[0], sessions[0], plain[0]);
    }
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = i; j < 2; j++) {
            check_session(&beds[j], sessions[j], plain[j]);
        }
        ortcrypt_session_close(sessions[i]);
        close_bundle(bundles[i]);
        free(plain[i]);
        bed_close(&beds[i]);
    }
}

static void two_runtimes_share_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAIR_COUNT; i++) {
        both_work_at_once(pairs[i]);
    }
}

static ortcrypt_runtime *open_path(const char *path)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    assert_ok(ortcrypt_runtime_open(&runtime, path, NULL, &err), &err);
    return runtime;
}

static void copy_file(const char *from, const char *to)
{
    size_t len = 0;
    uint8_t *const bytes = oc_test_read_file(from, &len);
    oc_test_write_file(to, bytes, len);
    free(bytes);
}

/* One file is one runtime, by whatever path; a copy of it is another. */
static void one_library_by_several_paths(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const OrtEpDevice **devices = NULL;
    char library[1024];
    char path[1024];
    size_t count = 0;

    (void)state;
    rig_reference_path(library);
    assert_true(rig_runtime_path(path, "1.30.0"));
    char *const dir = oc_test_tmpdir();
    char *const link = oc_test_format("%s/link.so", dir);
    char *const copy = oc_test_format("%s/copy.so", dir);
    assert_int_equal(symlink(path, link), 0);
    copy_file(path, copy);
    ortcrypt_runtime *const a = open_path(path);
    ortcrypt_runtime *const b = open_path(link);
    ortcrypt_runtime *const c = open_path(copy);
    assert_ptr_equal(ortcrypt_runtime_api(a), ortcrypt_runtime_api(b));
    assert_ptr_equal(ortcrypt_runtime_env(a), ortcrypt_runtime_env(b));
    assert_ptr_not_equal(ortcrypt_runtime_api(a), ortcrypt_runtime_api(c));
    assert_ptr_not_equal(ortcrypt_runtime_env(a), ortcrypt_runtime_env(c));

    /* what one registered the other has, and keeps when the first is closed */
    assert_ok(ortcrypt_runtime_register_ep(a, EP, library, &err), &err);
    assert_ok(ortcrypt_runtime_register_ep(b, EP, library, &err), &err);
    assert_st(oc_runtime_devices(c, EP, &devices, &count, &err), &err, ORTCRYPT_E_NOT_FOUND);
    rig_runtime_close(a);
    assert_ok(oc_runtime_devices(b, EP, &devices, &count, &err), &err);
    assert_int_equal(count, 1);
    free(devices);
    rig_runtime_close(b);
    rig_runtime_close(c);
    oc_test_rm_rf(dir);
    free(link);
    free(copy);
    free(dir);
}

static void refused_library(ortcrypt_runtime *runtime, const char *library)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_st(ortcrypt_runtime_register_ep(runtime, CPP_NAME, library, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "serves ONNX Runtime 1.30.0 in this process"));
    assert_non_null(strstr(err.hint, "a copy of the file"));
}

/* An EP that keeps its OrtApi in a variable would take it from the first runtime: it crashed so with 1.32.0 and 1.24.4. */
static void an_ep_library_serves_one_runtime(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char cpp[1024];

    (void)state;
    cpp_path(cpp);
    char *const dir = oc_test_tmpdir();
    char *const link = oc_test_format("%s/link.so", dir);
    char *const copy = oc_test_format("%s/copy.so", dir);
    assert_int_equal(symlink(cpp, link), 0);
    copy_file(cpp, copy);
    ortcrypt_runtime *const a = rig_runtime("1.30.0");
    ortcrypt_runtime *const same = rig_runtime("1.30.0");
    ortcrypt_runtime *const b = rig_runtime("1.32.0");
    assert_ok(ortcrypt_runtime_register_ep(a, CPP_NAME, cpp, &err), &err);
    assert_ok(ortcrypt_runtime_register_ep(a, CPP_NAME, cpp, &err), &err);
    refused_library(b, cpp);
    refused_library(b, link);
    rig_runtime_close(a);
    refused_library(b, cpp); /* `same` keeps the OrtEnv, and the library in it */
    assert_ok(ortcrypt_runtime_register_ep(b, CPP_NAME, copy, &err), &err);
    rig_runtime_close(same);
    rig_runtime_close(b);
    ortcrypt_runtime *const later = rig_runtime("1.32.0");
    assert_ok(ortcrypt_runtime_register_ep(later, CPP_NAME, cpp, &err), &err);
    rig_runtime_close(later);
    oc_test_rm_rf(dir);
    free(link);
    free(copy);
    free(dir);
}

/* A registration that did not come about claims nothing. */
static void a_refused_library_is_free(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char path[1024];

    (void)state;
    assert_true(rig_runtime_path(path, "1.24.4")); /* loads, and is no EP */
    ortcrypt_runtime *const a = rig_runtime("1.30.0");
    ortcrypt_runtime *const b = rig_runtime("1.32.0");
    assert_st(ortcrypt_runtime_register_ep(a, "None", path, &err), &err, ORTCRYPT_E_ORT);
    assert_st(ortcrypt_runtime_register_ep(b, "None", path, &err), &err, ORTCRYPT_E_ORT);
    rig_runtime_close(a);
    rig_runtime_close(b);
}

static const OrtApiBase *load_base(const char *version, int mode)
{
    const OrtApiBase *(*get)(void) = NULL;
    char path[1024];

    assert_true(rig_runtime_path(path, version));
    void *const handle = dlopen(path, RTLD_NOW | mode);
    assert_non_null(handle);
    void *const symbol = dlsym(handle, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

/* The application has its runtime, its OrtEnv and its EP already; another runtime is open beside it. */
static void adopted_with_env_and_ep(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const OrtEpDevice **devices = NULL;
    const OrtEpDevice *const *seen = NULL;
    ortcrypt_runtime *adopted = NULL;
    OrtEnv *env = NULL;
    char cpp[1024];
    size_t count = 0;

    (void)state;
    cpp_path(cpp);
    ortcrypt_runtime *const other = rig_runtime("1.32.0");
    const OrtApiBase *const base = load_base("1.30.0", RTLD_LOCAL);
    const OrtApi *const api = base->GetApi(23);
    assert_null(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "application", &env));
    assert_null(api->RegisterExecutionProviderLibrary(env, "theirs", cpp));
    assert_ok(ortcrypt_runtime_adopt(&adopted, base, env, NULL, &err), &err);
    assert_ptr_equal(ortcrypt_runtime_env(adopted), env);
    assert_ok(ortcrypt_runtime_register_ep(adopted, CPP_NAME, cpp, &err), &err); /* is there under another name: nothing to do */
    assert_ok(oc_runtime_devices(adopted, CPP_NAME, &devices, &count, &err), &err);
    assert_int_equal(count, 1);
    free(devices);
    refused_library(other, cpp);
    rig_runtime_close(adopted);
    refused_library(other, cpp); /* it is still in the application's environment */
    assert_null(api->GetEpDevices(env, &seen, &count));
    assert_int_equal(count, 2);
    assert_null(api->UnregisterExecutionProviderLibrary(env, "theirs"));
    api->ReleaseEnv(env);
    rig_runtime_close(other);
}

/* ---- Without a name: each case in a process of its own, which this program starts as `PROGRAM case`. ---- */

static void without_a_name(const char *expected)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    assert_ok(ortcrypt_runtime_open(&runtime, NULL, NULL, &err), &err);
    assert_string_equal(ortcrypt_runtime_version(runtime), expected);
    rig_runtime_close(runtime);
}

static void case_local(void **state)
{
    (void)state;
    (void)load_base("1.30.0", RTLD_LOCAL);
    without_a_name("1.30.0");
    rig_runtime_close(rig_runtime("1.30.0")); /* by name it is the same one */
    without_a_name("1.30.0");
}

static void case_global(void **state)
{
    (void)state;
    (void)load_base("1.32.0", RTLD_LOCAL);
    (void)load_base("1.30.0", RTLD_GLOBAL);
    (void)load_base("1.24.4", RTLD_LOCAL);
    without_a_name("1.30.0");
}

static void case_several(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    (void)state;
    (void)load_base("1.30.0", RTLD_LOCAL);
    ortcrypt_runtime *const named = rig_runtime("1.32.0");
    assert_st(ortcrypt_runtime_open(&runtime, NULL, NULL, &err), &err, ORTCRYPT_E_INVALID);
    assert_null(runtime);
    assert_non_null(strstr(err.message, "several ONNX Runtimes"));
    assert_non_null(strstr(err.message, "libonnxruntime.so.1.30.0"));
    assert_non_null(strstr(err.message, "libonnxruntime.so.1.32.0"));
    rig_runtime_close(named);
}

static void case_none(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;

    (void)state;
    const ortcrypt_status st = ortcrypt_runtime_open(&runtime, NULL, NULL, &err);
    if (st == ORTCRYPT_OK) {
        rig_runtime_close(runtime); /* this machine has one installed */
        return;
    }
    assert_non_null(strstr(err.message, "libonnxruntime.so"));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(case_local),
    cmocka_unit_test(case_global),
    cmocka_unit_test(case_several),
    cmocka_unit_test(case_none),
};

static int run_case(const char *name)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            return _cmocka_run_group_tests(name, &cases[i], 1, NULL, NULL);
        }
    }
    return 99;
}

static void the_one_in_the_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            (void)execl("/proc/self/exe", "test_two_runtimes", cases[i].name, (char *)NULL);
            _exit(98);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fail_msg("%s ended with status %d", cases[i].name, status);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_runtimes_share_nothing),
        cmocka_unit_test(one_library_by_several_paths),
        cmocka_unit_test(an_ep_library_serves_one_runtime),
        cmocka_unit_test(a_refused_library_is_free),
        cmocka_unit_test(adopted_with_env_and_ep),
        cmocka_unit_test(the_one_in_the_process),
    };
    return argc > 1 ? run_case(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
