/*
 * Variants compiled just in time: made once, outside the bundle, bound to this machine and this state of the bundle; whatever is
 * wrong with an entry costs a compilation, never an answer.
 */
#include "test_flow_cache_bed.h"

static void once(const char *version)
{
    static const char *const keys[] = {"max_nodes_per_engine"};
    static const char *const values[] = {"1"};
    place p;

    place_open(&p, version);
    run_cached(&p);
    assert_string_equal(notices, "");
    assert_entry(&p, key_a, 1, 1);
    run_cached(&p);
    assert_entry(&p, key_a, 1, 1);
    p.run.ep_option_keys = keys; /* other options are another variant, beside the first */
    p.run.ep_option_values = values;
    p.run.ep_option_count = 1;
    run_cached(&p);
    assert_entry(&p, key_a, 2, 2);
    run_cached(&p);
    p.run.ep_option_count = 0;
    run_cached(&p);
    assert_entry(&p, key_a, 2, 2);
    assert_string_equal(notices, "");
    char *const path = entry_of(&p);
    char *const keys_folder = oc_test_format("%s/keys", path);
    assert_int_equal(count_names(keys_folder, 64 + 4), 0); /* no key lies beside what it opens */
    free(keys_folder);
    free(path);
    place_close(&p);
}

static void compiled_once_and_loaded_from_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        once(rig_versions[i]);
    }
}

/* A variant of the bundle comes first; one that the EP would rather have again gives way, and without a cache it does not. */
static void bundle_first(void **state)
{
    place p;

    (void)state;
    place_open(&p, "1.30.0");
    const ortcrypt_compile_options options = compile_options(&p.b);
    bed_compile(&p.b, &options, NULL);
    run_from(&p, "bundle", "compiled");
    assert_int_equal(access(p.cache, F_OK), -1);
    rig_runtime_close(p.b.runtime);
    p.b.runtime = rig_runtime("1.32.0");
    run_cached(&p);
    assert_non_null(strstr(notices, "compiled again"));
    p.run.variant = "source"; /* named with the EP: in memory */
    run_from(&p, "bundle", "source");
    place_close(&p);
}

static void flip(const char *path)
{
    uint8_t byte = 0;
    const int fd = open(path, O_RDWR);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, 90), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 90), 1);
    assert_int_equal(close(fd), 0);
}

/* Replaces the entry as `how` says. */
static void spoil(const char *entry, int how)
{
    char *const manifest = oc_test_format("%s/manifest", entry);
    char *const format = oc_test_format("%s/FORMAT", entry);
    char *const object = how < 6 ? first_object(entry) : NULL;

    switch (how) {
    case 0: flip(manifest); break;
    case 1: flip(object); break;
    case 2: assert_int_equal(truncate(object, 100), 0); break;
    case 3: assert_int_equal(unlink(object), 0); break;
    case 4: assert_int_equal(unlink(manifest), 0); break;
    case 5: assert_int_equal(truncate(format, 3), 0); break;
    default:
        oc_test_rm_rf(entry);
        assert_int_equal(close(open(entry, O_CREAT | O_EXCL | O_WRONLY, 0600)), 0);
    }
    free(manifest);
    free(format);
    free(object);
}

static void damage_costs_a_compilation(void **state)
{
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    run_cached(&p);
    char *const entry = entry_of(&p);
    for (int how = 0; how < 7; how++) {
        spoil(entry, how);
        notices[0] = '\0';
        run_cached(&p);
        if (strstr(notices, "is ignored, and compiled again") == NULL) {
            fail_msg("damage %d is not told: %s", how, notices);
        }
        notices[0] = '\0';
        run_cached(&p);
        assert_string_equal(notices, "");
        assert_entry(&p, key_a, 1, 1);
    }
    free(entry);
    place_close(&p);
}

/* Whoever holds the bundle key, but not this machine's, cannot plant a variant. */
static void planted_by_another_machine(void **state)
{
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    p.run.machine_key = key_b;
    run_cached(&p);
    assert_entry(&p, key_b, 1, 1);
    p.run.machine_key = key_a;
    run_cached(&p);
    assert_non_null(strstr(notices, "is ignored, and compiled again"));
    assert_entry(&p, key_a, 1, 1);
    place_close(&p);
}

static void replayed_for_another_state(void **state)
{
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    run_cached(&p);
    char *const old = entry_of(&p);
    next_state(&p);
    char *const now = entry_of(&p);
    assert_string_not_equal(old, now);
    assert_int_equal(rename(old, now), 0);
    run_cached(&p);
    assert_non_null(strstr(notices, "another state of the bundle"));
    free(old);
    free(now);
    place_close(&p);
}

static void foreign_of_another_bundle(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle_info info;
    place p;
    place other;

    (void)state;
    place_open(&p, "1.32.0");
    place_open(&other, "1.32.0");
    run_cached(&other);
    ortcrypt_bundle *const bundle = bed_bundle(&p.b);
    ortcrypt_bundle_get_info(bundle, &info);
    close_bundle(bundle);
    char *const from = entry_of(&other);
    char *const to = entry_of(&p);
    char *const folder = oc_test_format("%s/%s", p.cache, info.bundle_id);
    assert_ok(oc_folders_make(folder, &err), &err);
    assert_int_equal(rename(from, to), 0);
    run_cached(&p);
    assert_non_null(strstr(notices, "is ignored, and compiled again"));
    free(from);
    free(to);
    free(folder);
    place_close(&other);
    place_close(&p);
}

/* By docs/format.md, section 11, alone: key, context and the member that names M. */
static void format_of_an_entry(void **state)
{
    static const char label[] = "ortcrypt/1 local key";
    static const char context_label[] = "ortcrypt/1 local";
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint8_t info[sizeof(label) + OC_BUNDLE_ID_LEN];
    uint8_t context[sizeof(context_label) + OC_BUNDLE_ID_LEN];
    uint8_t key[32];
    ortcrypt_bundle_info origin_info;
    oc_buf sealed = OC_BUF(1u << 20);
    oc_buf json = OC_BUF(1u << 20);
    oc_store *store = NULL;
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    run_cached(&p);
    ortcrypt_bundle *const origin = bed_bundle(&p.b);
    ortcrypt_bundle_get_info(origin, &origin_info);
    memcpy(info, label, sizeof(label));
    memcpy(info + sizeof(label), origin->manifest->bundle_id, OC_BUNDLE_ID_LEN);
    memcpy(context, context_label, sizeof(context_label));
    memcpy(context + sizeof(context_label), origin->manifest->bundle_id, OC_BUNDLE_ID_LEN);
    assert_ok(oc_hkdf(key, sizeof(key), OC_HASH_SHA512, OC_SPAN(origin->key.data, 32), OC_SPAN(key_a, sizeof(key_a)),
                      OC_SPAN(info, sizeof(info)), &err), &err);
    char *const entry = entry_of(&p);
    assert_ok(oc_store_open(&store, entry, &err), &err);
    assert_ok(oc_store_read_small(store, "manifest", sealed.max, &sealed, &err), &err);
    assert_ok(oc_stream_open_all(key, OC_SPAN(context, sizeof(context)), OC_SPAN(sealed.data, sealed.len), &json, &err), &err);
    assert_ok(oc_buf_append(&json, "", 1, &err), &err);
    char *const wanted = oc_test_format("\"x-source\":\"%s\"", origin_info.manifest_id);
    assert_non_null(strstr((const char *)json.data, wanted));
    oc_store_close(store);
    oc_buf_free(&sealed);
    oc_buf_free(&json);
    free(wanted);
    free(entry);
    close_bundle(origin);
    place_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_once_and_loaded_from_there),
        cmocka_unit_test(bundle_first),
        cmocka_unit_test(damage_costs_a_compilation),
        cmocka_unit_test(planted_by_another_machine),
        cmocka_unit_test(replayed_for_another_state),
        cmocka_unit_test(foreign_of_another_bundle),
        cmocka_unit_test(format_of_an_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
