/*
 * Models whose large embedded weights ONNX Runtime is given by name: every kind of element at odd addresses, beside external weights, with
 * tensors that must stay where they are; and models of which nothing is taken out.
 */
#include "test_flow_lifted.h"

#include "bundle/local.h"

#define PAGED "array, decrypted as read"
/* false: that runtime is not here. */
static bool open_bed(bed *b, const char *version)
{
    char path[1024];

    if (!rig_runtime_path(path, version)) {
        return false;
    }
    bed_open(b, version, NULL);
    return true;
}

/* Less than check_levels, where folding is not the matter. */
static void check_ends(const bed *b, const expected *want)
{
    check_level(b, ORT_DISABLE_ALL, false, false, want, b->version);
    check_level(b, ORT_ENABLE_ALL, true, false, want, b->version);
}

static void weights_of_every_size_are_right(void **state)
{
    static const expected want = {NULL, NULL, NULL, LIFTED};
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (open_bed(&b, versions[i])) {
            write_kinds(&b, false);
            check_levels(&b, &want);
            bed_close(&b);
        }
    }
}

static void beside_external_weights(void **state)
{
    static const expected want = {"initializers, decrypted as read", "initializers, decrypted as read", NULL, LIFTED};
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (open_bed(&b, versions[i])) {
            write_kinds(&b, true);
            check_levels(&b, &want);
            bed_close(&b);
        }
    }
}

static void tensors_that_stay(void **state)
{
    static const expected want = {NULL, NULL, NULL, LIFTED};
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (open_bed(&b, versions[i])) {
            write_odd(&b);
            check_ends(&b, &want);
            bed_close(&b);
        }
    }
}

/* Weights that nothing reads, in a file: ONNX Runtime has no place for them when it is given tensors by name. */
static void idle_external_weights(void **state)
{
    static const expected want = {"initializers, decrypted as read", "initializers, decrypted as read", NULL, "array"};
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (open_bed(&b, versions[i])) {
            sum s;
            begin(&s);
            add_large(&s, &outside, "large", 1, 4, LARGE_LEN);
            use_last(&s, "large", LARGE_LEN / 4 / COLUMNS);
            add_large(&s, &outside, "idle", 1, 4, TENSOR_LEN);
            finish(&s, &b);
            check_ends(&b, &want);
            bed_close(&b);
        }
    }
}

static void small_tensors_are_parsed(void **state)
{
    static const expected want = {NULL, NULL, NULL, PAGED};
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (open_bed(&b, versions[i])) {
            write_scattered(&b);
            check_ends(&b, &want);
            bed_close(&b);
        }
    }
}

/* The caller's entry, which would make ONNX Runtime use buffers of files in place for as long as the session lives. */
static void with_the_callers_entry(void **state)
{
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (!open_bed(&b, versions[i])) {
            continue;
        }
        OrtSessionOptions *base = NULL;
        const OrtApi *const api = ortcrypt_runtime_api(b.runtime);
        write_kinds(&b, false);
        assert_null(api->CreateSessionOptions(&base));
        assert_null(api->AddSessionConfigEntry(base, "session.use_external_initializer_file_buffers_directly", "1"));
        assert_null(api->AddSessionConfigEntry(base, "session.disable_prepacking", "1"));
        assert_null(api->SetSessionGraphOptimizationLevel(base, ORT_DISABLE_ALL));
        const ortcrypt_session_options run = {.struct_size = sizeof(run), .base = base};
        assert_same_output(&b, &run, "with the caller's entry");
        api->ReleaseSessionOptions(base);
        bed_close(&b);
    }
}

/* An execution provider that compiles the source in memory, because nothing can be kept: it sees the weights. */
static void another_execution_provider(void **state)
{
    static const uint8_t key[OC_MACHINE_KEY_LEN] = {1};
    bed b;

    (void)state;
    need_pages();
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        char *plan = NULL;
        bed_open(&b, rig_versions[i], NULL);
        write_kinds(&b, false);
        char *const cache = oc_test_format("%s/below", b.model); /* a file is no folder */
        const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP, .ep_library = b.library, .cache = cache,
                                              .machine_key = key, .machine_key_len = sizeof(key)};
        float *const plain = rig_plain(b.runtime, b.model, NULL);
        float *const y = bed_run(&b, &run, &plan);
        rig_assert_close(y, plain, 2 * MODEL_OUT, "with the reference EP");
        assert_non_null(strstr(plan, "\"kind\":\"source\",\"from\":\"bundle\",\"ep\":\"" EP));
        assert_route(plan, "model", LIFTED);
        ortcrypt_free(plan, 0);
        free(cache);
        free(plain);
        free(y);
        bed_close(&b);
    }
}

/* No session, the reason, and nothing left that holds the bundle. */
static void altered_weights_open_no_session(void **state)
{
    static void (*const writers[])(bed *) = {write_odd, write_scattered};

    (void)state;
    for (size_t i = 0; i < VERSION_COUNT * 2; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_session *session = NULL;
        bed b;
        if (!open_bed(&b, versions[i / 2])) {
            continue;
        }
        writers[i % 2](&b);
        damage(&b, 1, 2);
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, NULL, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
        assert_non_null(strstr(err.message, "altered"));
        assert_null(session);
        close_bundle(bundle);
        bed_close(&b);
    }
}

/* Weights that nothing reads are nevertheless checked. */
static void altered_idle_weights(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_session *session = NULL;
        bed b;
        sum s;
        bed_open(&b, rig_versions[i], NULL);
        begin(&s);
        add_large(&s, &inside, "large", 1, 4, LARGE_LEN);
        use_last(&s, "large", LARGE_LEN / 4 / COLUMNS);
        add_large(&s, &inside, "idle", 1, 4, TENSOR_LEN);
        finish(&s, &b);
        damage(&b, 10, 11); /* 19 of 21 MiB */
        ortcrypt_bundle *const bundle = bed_bundle(&b);
        assert_st(ortcrypt_session_open(&session, b.runtime, bundle, NULL, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
        close_bundle(bundle);
        bed_close(&b);
    }
}

static void denied_weights_are_right(void **state)
{
    static const expected want = {NULL, NULL, NULL, "pipe"};
    static void (*const writers[])(bed *) = {write_odd, write_scattered};
    bed b;

    (void)state;
    for (size_t i = 0; i < VERSION_COUNT * 2; i++) {
        if (open_bed(&b, versions[i / 2])) {
            writers[i % 2](&b);
            check_ends(&b, &want);
            bed_close(&b);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_every_size_are_right),
        cmocka_unit_test(beside_external_weights),
        cmocka_unit_test(tensors_that_stay),
        cmocka_unit_test(idle_external_weights),
        cmocka_unit_test(small_tensors_are_parsed),
        cmocka_unit_test(with_the_callers_entry),
        cmocka_unit_test(another_execution_provider),
        cmocka_unit_test(altered_weights_open_no_session),
        cmocka_unit_test(altered_idle_weights),
    };
    const struct CMUnitTest denied[] = {
        cmocka_unit_test(denied_weights_are_right),
        cmocka_unit_test(altered_weights_open_no_session),
    };
    const int failed = cmocka_run_group_tests_name("lifted", tests, NULL, NULL);
    return cmocka_run_group_tests_name("lifted, without userfaultfd", denied, deny_userfaultfd, NULL) + failed;
}
