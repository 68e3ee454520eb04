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

/* What `check` says of the model that `write` makes, on every runtime. */
static void on_every_runtime(void (*write)(bed *), void (*check)(const bed *, const expected *), const expected *want)
{
    need_pages();
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        bed b;
        if (open_bed(&b, versions[i])) {
            write(&b);
            check(&b, want);
            bed_close(&b);
        }
    }
}

static void write_kinds_alone(bed *b) { write_kinds(b, false); }
static void write_kinds_beside(bed *b) { write_kinds(b, true); }

/* A large weight and one that nothing reads. */
static void write_idle(bed *b, const rig_model *place)
{
    sum s;
    begin(&s);
    add_large(&s, place, "large", 1, 4, LARGE_LEN);
    use_last(&s, "large", LARGE_LEN / 4 / COLUMNS);
    add_large(&s, place, "idle", 1, 4, TENSOR_LEN);
    finish(&s, b);
}

static void write_idle_outside(bed *b) { write_idle(b, &outside); }

static void weights_of_every_size_are_right(void **state)
{
    static const expected want = {NULL, NULL, NULL, LIFTED};
    (void)state;
    on_every_runtime(write_kinds_alone, check_levels, &want);
}

static void beside_external_weights(void **state)
{
    static const expected want = {"initializers, decrypted as read", "initializers, decrypted as read", NULL, LIFTED};
    (void)state;
    on_every_runtime(write_kinds_beside, check_levels, &want);
}

static void tensors_that_stay(void **state)
{
    static const expected want = {NULL, NULL, NULL, LIFTED};
    (void)state;
    on_every_runtime(write_odd, check_ends, &want);
}

/* Weights that nothing reads, in a file: ONNX Runtime has no place for them when it is given tensors by name. */
static void idle_external_weights(void **state)
{
    static const expected want = {"initializers, decrypted as read", "initializers, decrypted as read", NULL, "array"};
    (void)state;
    on_every_runtime(write_idle_outside, check_ends, &want);
}

static void small_tensors_are_parsed(void **state)
{
    static const expected want = {NULL, NULL, NULL, PAGED};
    (void)state;
    on_every_runtime(write_scattered, check_ends, &want);
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

static void altered_weights_open_no_session(void **state)
{
    static void (*const writers[])(bed *) = {write_odd, write_scattered};

    (void)state;
    for (size_t i = 0; i < VERSION_COUNT * 2; i++) {
        bed b;
        if (!open_bed(&b, versions[i / 2])) {
            continue;
        }
        writers[i % 2](&b);
        damage(&b, 1, 2);
        assert_altered(&b);
        bed_close(&b);
    }
}

/* Weights that nothing reads are nevertheless checked. */
static void altered_idle_weights(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        bed b;
        bed_open(&b, rig_versions[i], NULL);
        write_idle(&b, &inside);
        damage(&b, 10, 11); /* 19 of 21 MiB */
        assert_altered(&b);
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
