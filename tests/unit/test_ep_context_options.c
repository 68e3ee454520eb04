/* The typed session options, on runtimes of all three eras, and contexts opened from a configuration alone. */
#include "test_ep_context_rig.h"

typedef struct entry {
    const char *key;
    const char *value;
} entry;

/* A context with these entries set; the options are gone when it is used. */
static ortcrypt_ep_context *open_with(const entry *entries_set, size_t count)
{
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context *context = NULL;
    ok(api->CreateSessionOptions(&options));
    for (size_t i = 0; i < count; i++) {
        ok(api->AddSessionConfigEntry(options, entries_set[i].key, entries_set[i].value));
    }
    ok(ortcrypt_ep_context_open(&context, base, options));
    api->ReleaseSessionOptions(options);
    return context;
}

static void expect_flag(ortcrypt_ep_context_flag flag, bool present, bool value)
{
    assert_int_equal(flag.present, present);
    assert_int_equal(flag.value, value);
}

static void test_absent(void **state)
{
    (void)state;
    ortcrypt_ep_context_options found;
    memset(&found, 0x5a, sizeof(found));
    ortcrypt_ep_context *const context = open_with(NULL, 0);
    ok(ortcrypt_ep_context_get_options(context, &found));
    expect_flag(found.enable, false, false);
    expect_flag(found.embed_mode, false, false);
    expect_flag(found.share, false, false);
    expect_flag(found.stop_share, false, false);
    expect_flag(found.weightless, false, false);
    assert_null(found.file_path);
    assert_null(found.node_name_prefix);
    assert_null(found.source_model_path);
    refused(ortcrypt_ep_context_get_options(context, NULL), "session options");
    ortcrypt_ep_context_close(context);
}

static void test_all(void **state)
{
    (void)state;
    const entry set[] = {
        {"ep.context_enable", "1"},
        {"ep.context_embed_mode", "0"},
        {"ep.context_file_path", "../out/m_ctx.onnx"},
        {"ep.context_node_name_prefix", "left/\xe2\x82\xac"},
        {"ep.share_ep_contexts", "1"},
        {"ep.stop_share_ep_contexts", "1"},
        {"ep.enable_weightless", "1"},
        {"ep.context_source_model_path", "/models/m.onnx"},
    };
    ortcrypt_ep_context_options found;
    ortcrypt_ep_context *const context = open_with(set, sizeof(set) / sizeof(set[0]));
    ok(ortcrypt_ep_context_get_options(context, &found));
    expect_flag(found.enable, true, true);
    expect_flag(found.embed_mode, true, false);
    expect_flag(found.share, true, true);
    expect_flag(found.stop_share, true, true);
    expect_flag(found.weightless, true, true);
    assert_string_equal(found.file_path, set[2].value);
    assert_string_equal(found.node_name_prefix, set[3].value);
    assert_string_equal(found.source_model_path, set[7].value);
    ortcrypt_ep_context_close(context);
}

/* The old key counts with context_enable only, and not against the new one. */
static void test_weightless(void **state)
{
    (void)state;
    const struct {
        const char *now;
        const char *old;
        const char *enable;
        bool present;
        bool value;
    } cases[] = {
        {NULL, "1", "1", true, true}, {NULL, "1", NULL, true, false}, {NULL, "0", "1", true, false},
        {"0", "1", "1", true, false}, {"1", "0", NULL, true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        entry set[3];
        size_t count = 0;
        if (cases[i].now != NULL) {
            set[count++] = (entry){"ep.enable_weightless", cases[i].now};
        }
        if (cases[i].old != NULL) {
            set[count++] = (entry){"ep.enable_weightless_ep_context_nodes", cases[i].old};
        }
        if (cases[i].enable != NULL) {
            set[count++] = (entry){"ep.context_enable", cases[i].enable};
        }
        ortcrypt_ep_context_options found;
        ortcrypt_ep_context *const context = open_with(set, count);
        ok(ortcrypt_ep_context_get_options(context, &found));
        expect_flag(found.weightless, cases[i].present, cases[i].value);
        ortcrypt_ep_context_close(context);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const char *const flags[] = {"ep.context_enable",         "ep.context_embed_mode", "ep.share_ep_contexts",
                                 "ep.stop_share_ep_contexts", "ep.enable_weightless",  "ep.enable_weightless_ep_context_nodes"};
    const char *const bad_flags[] = {"", "2", "true", "01", "1 ", " 1", "-1"};
    const char *const paths[] = {"ep.context_file_path", "ep.context_source_model_path"};
    const char *const bad_paths[][2] = {
        {"folder/", "names a folder"}, {"..", "names a folder"}, {"a/.", "names a folder"}, {"a\xff", "is not UTF-8"}};
    ortcrypt_ep_context_options before;
    ortcrypt_ep_context_options found;
    char sentence[128];
    memset(&before, 0x5a, sizeof(before));
    memset(&found, 0x5a, sizeof(found));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        for (size_t k = 0; k < sizeof(bad_flags) / sizeof(bad_flags[0]); k++) {
            const entry set = {flags[i], bad_flags[k]};
            ortcrypt_ep_context *const context = open_with(&set, 1); /* no trouble for an EP that does not ask */
            (void)snprintf(sentence, sizeof(sentence), "%s is 0 or 1, not \"%s\"", flags[i], bad_flags[k]);
            refused(ortcrypt_ep_context_get_options(context, &found), sentence);
            assert_memory_equal(&found, &before, sizeof(found));
            ortcrypt_ep_context_close(context);
        }
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        for (size_t k = 0; k < sizeof(bad_paths) / sizeof(bad_paths[0]); k++) {
            const entry set = {paths[i], bad_paths[k][0]};
            ortcrypt_ep_context *const context = open_with(&set, 1);
            refused(ortcrypt_ep_context_get_options(context, &found), bad_paths[k][1]);
            assert_memory_equal(&found, &before, sizeof(found));
            ortcrypt_ep_context_close(context);
        }
        const entry empty = {paths[i], ""};
        ortcrypt_ep_context *const context = open_with(&empty, 1);
        ortcrypt_ep_context_options none;
        ok(ortcrypt_ep_context_get_options(context, &none)); /* empty is absent */
        assert_null(none.file_path);
        assert_null(none.source_model_path);
        ortcrypt_ep_context_close(context);
    }
    const entry prefix = {"ep.context_node_name_prefix", "\xc0\xaf"};
    ortcrypt_ep_context *const context = open_with(&prefix, 1);
    refused(ortcrypt_ep_context_get_options(context, &found), "ep.context_node_name_prefix is not UTF-8");
    ortcrypt_ep_context_close(context);
}

/* ORT itself limits a value to less; a longer one is only met in a runtime that does not. */
static void test_long_value(void **state)
{
    (void)state;
    static char text[OC_EP_NAME_MAX + 2];
    ortcrypt_ep_context_options found;
    ortcrypt_ep_context *const context = open_with(NULL, 0);
    memset(text, 'p', sizeof(text) - 1);
    context->entries[OC_EP_NAME_PREFIX] = strdup(text);
    refused(ortcrypt_ep_context_get_options(context, &found), "is longer than 4096 bytes");
    context->entries[OC_EP_NAME_PREFIX][OC_EP_NAME_MAX] = '\0';
    ok(ortcrypt_ep_context_get_options(context, &found));
    ortcrypt_ep_context_close(context);
}

static OrtStatus *ORT_API_CALL read_nothing(void *state, const char *name, OrtAllocator *allocator, void **buffer,
                                            size_t *size)
{
    (void)state, (void)name, (void)allocator;
    *buffer = NULL;
    *size = 0;
    return NULL;
}

static void test_open_config(void **state)
{
    (void)state;
    ortcrypt_ep_context_api six;
    ortcrypt_ep_context_options found;
    ortcrypt_ep_context *context = NULL;
    ok(ortcrypt_ep_context_api_get(base, &six));
    refused(ortcrypt_ep_context_open_config(NULL, base, NULL), "a place for the result");
    ok(ortcrypt_ep_context_open_config(&context, base, NULL));
    assert_int_equal(ortcrypt_ep_context_callbacks(context), 0);
    refused(ortcrypt_ep_context_get_options(context, &found), "opened with session options");
    ortcrypt_ep_context_close(context);
    if (six.era == ORTCRYPT_ERA_NONE) {
        ortcrypt_ep_context *none = NULL;
        refused(ortcrypt_ep_context_open_config(&none, base, (const OrtEpContextConfig *)&six), "no EPContext");
        assert_null(none);
        return;
    }
    OrtSessionOptions *options = NULL;
    OrtEpContextConfig *config = NULL;
    ok(api->CreateSessionOptions(&options));
    ok(six.SessionOptions_SetEpContextDataReadFunc(options, read_nothing, NULL));
    ok(six.SessionOptions_GetEpContextConfig(options, &config));
    api->ReleaseSessionOptions(options);
    ok(ortcrypt_ep_context_open_config(&context, base, config));
    six.ReleaseEpContextConfig(config); /* borrowed during the call only */
    assert_int_equal(ortcrypt_ep_context_callbacks(context), ORTCRYPT_EP_CONTEXT_READS);
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ok(ortcrypt_ep_context_read(context, "x", NULL, NULL, 0, &data));
    ortcrypt_ep_context_close(context);
    assert_int_equal(ortcrypt_ep_context_callbacks(NULL), 0);
}

static OrtEnv *env; /* ORT logs a changed entry, for which it needs one */

static int setup_on(const char *version)
{
    base = load(version);
    api = base->GetApi(23);
    return api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "test", &env) == NULL ? 0 : -1;
}

static int setup_124(void **state)
{
    (void)state;
    return setup_on("1.24.4");
}

static int setup_130(void **state)
{
    (void)state;
    return setup_on("1.30.0");
}

static int setup_132(void **state)
{
    (void)state;
    return setup_on("1.32.0");
}

static int release_env(void **state)
{
    (void)state;
    api->ReleaseEnv(env);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent),  cmocka_unit_test(test_all),        cmocka_unit_test(test_weightless),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_long_value), cmocka_unit_test(test_open_config),
    };
    int failed = cmocka_run_group_tests_name("options, ORT 1.24.4", tests, setup_124, release_env);
    failed += cmocka_run_group_tests_name("options, ORT 1.30.0", tests, setup_130, release_env);
    failed += cmocka_run_group_tests_name("options, ORT 1.32.0", tests, setup_132, release_env);
    return failed;
}
