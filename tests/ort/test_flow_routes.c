/*
 * The ways of large weights into ONNX Runtime: right for folded weights at every optimization level on every era, the reason when they
 * are altered, the plan's words; and the same where userfaultfd is denied, as in a container.
 */
#include "test_flow_ways.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* aligned: used in place where the runtime can. */
static const rig_model aligned = {.external = true, .sequence = true, .pad = LARGE_LEN, .pad_external = true};
static const rig_model misaligned = {
    .external = true, .sequence = true, .pad = LARGE_LEN, .pad_external = true, .location = "./w.bin", .gap = 3};
static const rig_model embedded = {.sequence = true, .pad = LARGE_LEN, .pad_external = true};

static bool direct(const char *version) { return strcmp(version, "1.31.1") >= 0; }

#define DIRECT "files-in-memory, used directly"
#define COPIED "initializers, decrypted as read"
#define INSIDE "inside the model"

static void folded_weights_are_right(void **state)
{
    static const expected in_place = {DIRECT ", decrypted as read", DIRECT, DIRECT ", lazy", "array"};
    static const expected copied = {COPIED, COPIED, COPIED, "array"};

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        check_all_levels(versions[i], &aligned, direct(versions[i]) ? &in_place : &copied);
        check_all_levels(versions[i], &misaligned, &copied);
    }
}

static void embedded_weights_are_right(void **state)
{
    static const expected want = {NULL, NULL, NULL, LIFTED};

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        check_all_levels(versions[i], &embedded, &want);
    }
}

/* Bytes of this process that are of no file. */
static long long resident_len(void)
{
    long long resident = 0;
    long long of_files = 0;
    FILE *const file = fopen("/proc/self/statm", "re");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %lld %lld", &resident, &of_files), 2);
    (void)fclose(file);
    return (resident - of_files) * sysconf(_SC_PAGESIZE);
}

/* Used in place without prepacking: the second session has the first one's copy, and keeps it when the first one goes. */
static void sessions_of_one_bundle_share_weights(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session_options run = {.struct_size = sizeof(run)};
    ortcrypt_session *sessions[2] = {NULL, NULL};
    long long resident[3] = {0};
    OrtSessionOptions *base = NULL;
    char *plan = NULL;
    bed b;

    (void)state;
    bed_open(&b, "1.32.0", &aligned);
    const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
    assert_null(api->CreateSessionOptions(&base));
    assert_null(api->AddSessionConfigEntry(base, "session.disable_prepacking", "1"));
    assert_null(api->SetSessionGraphOptimizationLevel(base, ORT_DISABLE_ALL)); /* nothing folded, so nothing large of ORT's */
    run.base = base;
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    float *const plain = rig_plain(b.runtime, b.model, base);
    resident[0] = resident_len();
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(ortcrypt_session_open(&sessions[i], b.runtime, bundle, &run, &err), &err);
        resident[i + 1] = resident_len();
    }
    assert_true(resident[1] - resident[0] > (long long)LARGE_LEN / 4 * 3);
    assert_true(resident[2] - resident[1] < (long long)LARGE_LEN / 4);
    assert_ok(ortcrypt_session_plan(sessions[1], &plan, &err), &err);
    assert_non_null(strstr(plan, "one copy for all sessions"));
    ortcrypt_free(plan, 0);
    ortcrypt_session_close(sessions[0]);
    float *const y = rig_run(api, ortcrypt_session_ort(sessions[1]));
    rig_assert_close(y, plain, 2 * MODEL_OUT, "shared");
    ortcrypt_session_close(sessions[1]);
    free(plain);
    free(y);
    api->ReleaseSessionOptions(base);
    close_bundle(bundle);
    bed_close(&b);
}

static void altered_weights_open_no_session(void **state)
{
    static const rig_model *const specs[] = {&aligned, &misaligned, &embedded};

    (void)state;
    for (size_t i = 0; i < VERSION_COUNT * 3; i++) {
        const char *const version = versions[i / 3];
        char path[1024];
        bed b;
        if (!rig_runtime_path(path, version)) {
            continue;
        }
        bed_open(&b, version, specs[i % 3]);
        damage(&b, i % 2 == 0 ? 1 : 5, i % 2 == 0 ? 2 : 8); /* in the middle, and further on */
        assert_altered(&b);
        bed_close(&b);
    }
}

/* Folding reads the altered weight while the session is created: still an error. */
static void altered_lazy_weights_that_are_read_at_once(void **state)
{
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .lazy = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    char path[1024];
    bed b;

    (void)state;
    need_pages();
    if (!rig_runtime_path(path, "1.32.0")) {
        skip();
    }
    bed_open(&b, "1.32.0", &aligned);
    damage(&b, 1, 2);
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
    close_bundle(bundle);
    bed_close(&b);
}

/* In a child, because that is what ends; it makes its own keys, which no fork inherits. 1: no session; 2: it gave a result. */
static void run_altered_lazily(bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session_options run = {.struct_size = sizeof(run), .lazy = true};
    ortcrypt_session *session = NULL;
    OrtSessionOptions *base = NULL;

    signal(SIGBUS, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    b->keyring = rig_keyring();
    bed_encrypt(b, b->model);
    damage(b, 1, 2);
    ortcrypt_runtime *const runtime = rig_runtime(b->version);
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    if (api->CreateSessionOptions(&base) != NULL || api->SetSessionGraphOptimizationLevel(base, ORT_DISABLE_ALL) != NULL) {
        _exit(3);
    }
    run.base = base;
    if (ortcrypt_session_open(&session, runtime, bed_bundle(b), &run, &err) != ORTCRYPT_OK) {
        _exit(1);
    }
    free(rig_run(api, ortcrypt_session_ort(session)));
    _exit(2);
}

/* Nothing read it when the session was opened: the first Run that does gives no result. */
static void altered_lazy_weights_end_the_process(void **state)
{
    char path[1024];
    int status = 0;

    (void)state;
    need_pages();
    if (!rig_runtime_path(path, "1.32.0")) {
        skip();
    }
    bed b = {.version = "1.32.0", .dir = oc_test_tmpdir()};
    b.model = oc_test_format("%s/model.onnx", b.dir);
    b.bundle = oc_test_format("%s/model.ortc", b.dir);
    rig_model_write(b.dir, &aligned);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run_altered_lazily(&b);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGSEGV));
    oc_test_rm_rf(b.dir);
    free(b.dir);
    free(b.model);
    free(b.bundle);
}

static void denied_weights_are_right(void **state)
{
    static const expected copied = {INSIDE, INSIDE, INSIDE, "pipe"};
    static const expected parsed = {NULL, NULL, NULL, "pipe"};

    (void)state;
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (!direct(versions[i])) {
            check_all_levels(versions[i], &aligned, &copied);
        }
        check_all_levels(versions[i], &misaligned, &copied);
        check_all_levels(versions[i], &embedded, &parsed);
    }
}

static void denied_weights_used_in_place_are_right(void **state)
{
    static const expected packed = {INSIDE, NULL, NULL, "pipe"};
    static const expected unpacked = {DIRECT, DIRECT, DIRECT, "array"};

    (void)state;
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        char path[1024];
        bed b;
        if (!direct(versions[i]) || !rig_runtime_path(path, versions[i])) {
            continue;
        }
        bed_open(&b, versions[i], &aligned);
        for (int level = ORT_DISABLE_ALL; level <= ORT_ENABLE_EXTENDED; level++) {
            check_level(&b, (GraphOptimizationLevel)level, true, false, &packed, versions[i]);
            check_level(&b, (GraphOptimizationLevel)level, false, true, &unpacked, versions[i]);
        }
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(altered_lazy_weights_end_the_process), /* first: it forks */
        cmocka_unit_test(sessions_of_one_bundle_share_weights),
        cmocka_unit_test(folded_weights_are_right),
        cmocka_unit_test(embedded_weights_are_right),
        cmocka_unit_test(altered_weights_open_no_session),
        cmocka_unit_test(altered_lazy_weights_that_are_read_at_once),
    };
    const struct CMUnitTest denied[] = {
        cmocka_unit_test(denied_weights_are_right),
        cmocka_unit_test(denied_weights_used_in_place_are_right),
        cmocka_unit_test(altered_weights_open_no_session),
    };
    const int failed = cmocka_run_group_tests_name("routes", tests, NULL, NULL);
    return cmocka_run_group_tests_name("routes without userfaultfd", denied, deny_userfaultfd, NULL) + failed;
}
