/*
 * The cases of the mechanism's appendix: embed mode 0 and 1, weights inside the model and beside it, each with the weights in the
 * engines and weightless, where they come from the source variant at load.
 */
#include "test_flow_bed.h"

#include "bundle/bundle.h"

static uint64_t blob_len(const oc_manifest *manifest, const oc_variant *variant)
{
    uint64_t len = 0;

    for (size_t i = 0; i < variant->part_count; i++) {
        const oc_role role = variant->parts[i].role;
        if (role == OC_ROLE_EP_CONTEXT || role == OC_ROLE_MODEL) { /* embedded engines are in the model */
            len += oc_manifest_find_asset(manifest, variant->parts[i].asset)->size;
        }
    }
    return len;
}

typedef struct wanted {
    const char *mode; /* option weightless of the EP; NULL: not weightless */
    bool embed;
    bool external; /* weights beside the model */
    bool holds;    /* the engines hold the weights */
} wanted;

static void compile_one(const bed *b, const wanted *w, const char *id)
{
    static const char *const keys[] = {"weightless"};
    ortcrypt_compile_options options = compile_options(b);

    options.variant = id;
    options.embed = w->embed;
    options.weightless = w->mode != NULL;
    options.ep_option_keys = keys;
    options.ep_option_values = &w->mode;
    options.ep_option_count = w->mode != NULL ? 1 : 0;
    bed_compile(b, &options, NULL);
}

static void one_case(const char *version, const wanted *w)
{
    const bool blind = strcmp(version, "1.30.0") == 0 && w->mode != NULL && strcmp(w->mode, "external") == 0;
    const rig_model spec = {.external = w->external, .sequence = true};
    char *plan = NULL;
    bed b;

    bed_open(&b, version, &spec);
    compile_one(&b, w, "one");
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_variant *const variant = oc_manifest_find_variant(manifest, "one");
    const uint64_t len = blob_len(manifest, variant);
    /* w, q, d and b: 131072 + 65536 + 256 + 1024 bytes at least */
    if (w->holds || blind ? len < 197000 : len > 40000) {
        fail_msg("%s, %s, embed %d, external %d: the engines have %llu bytes", version, w->mode != NULL ? w->mode : "-", w->embed,
                 w->external, (unsigned long long)len);
    }
    assert_int_equal(variant->embed, w->embed ? 1 : 0);
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP, .ep_library = b.library, .variant = "one"};
    float *const plain = rig_plain(b.runtime, b.model, NULL);
    float *const y = bed_run(&b, &run, &plan);
    rig_assert_close(y, plain, 2 * MODEL_OUT, "weightless");
    const char *const source = strstr(plan, "\"source model buffer\"");
    assert_int_equal(source != NULL, w->mode != NULL);
    if (source != NULL) {
        const char *const resident = strstr(source, "\"resident\":");
        assert_non_null(resident);
        assert_int_equal(strncmp(resident, "\"resident\":true", 15), 0);
    }
    free(plain);
    free(y);
    ortcrypt_free(plan, 0);
    close_bundle(bundle);
    bed_close(&b);
}

static void on_both(const wanted *w)
{
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        one_case(rig_versions[i], w);
    }
}

#define CASE(name, ...)                             \
    static void name(void **state)                  \
    {                                               \
        const wanted w = {__VA_ARGS__};             \
        (void)state;                                \
        on_both(&w);                                \
    }

CASE(embed_1_internal, NULL, true, false, true)
CASE(embed_1_external, NULL, true, true, true)
CASE(embed_0_internal, NULL, false, false, true)
CASE(embed_0_external, NULL, false, true, true)
CASE(embed_1_internal_weightless, "all", true, false, false)
CASE(embed_1_external_weightless, "all", true, true, false)
CASE(embed_0_internal_weightless, "all", false, false, false)
CASE(embed_0_external_weightless, "all", false, true, false)
/*
 * An EP that leaves external weights only: those inside the model go into the engines. On 1.30 all do: that runtime neither hands
 * the source on while compiling nor calls weights external that come from memory.
 */
CASE(embed_1_internal_external_only, "external", true, false, true)
CASE(embed_1_external_external_only, "external", true, true, false)
CASE(embed_0_internal_external_only, "external", false, false, true)
CASE(embed_0_external_external_only, "external", false, true, false)

/* Nothing is left behind where the EP, or the runtime, cannot. */
static void refused(const char *version, const char *mode, ortcrypt_status wanted_status, const char *words)
{
    static const char *const keys[] = {"weightless"};
    const rig_model spec = {.external = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    bed b;

    bed_open(&b, version, &spec);
    ortcrypt_compile_options options = compile_options(&b);
    options.weightless = true;
    options.embed = true; /* works on runtimes without callbacks too */
    options.ep_option_keys = keys;
    options.ep_option_values = &mode;
    options.ep_option_count = 1;
    assert_st(ortcrypt_compile(b.runtime, b.bundle, b.keyring, &options, NULL, &err), &err, wanted_status);
    assert_non_null(strstr(err.message, words));
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    assert_int_equal(oc_bundle_manifest(bundle)->variant_count, 1);
    close_bundle(bundle);
    bed_close(&b);
}

static void none_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        refused(rig_versions[i], "none", ORTCRYPT_E_ORT, "does not support");
        refused(rig_versions[i], "some", ORTCRYPT_E_ORT, "none, external or all");
    }
}

static void old_runtimes_are_refused(void **state)
{
    char path[1024];

    (void)state;
    if (!rig_runtime_path(path, "1.24.4")) {
        skip();
    }
    refused("1.24.4", "all", ORTCRYPT_E_UNSUPPORTED, "has no weightless mode");
}

/* A damaged source is damage of the weightless variant too. */
static void source_is_authenticated(void **state)
{
    static const wanted w = {"all", false, true, false};
    const rig_model spec = {.external = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    char name[2 * OC_LEAF_LEN + 1];
    uint8_t *bytes = NULL;
    size_t len = 0;
    bed b;

    (void)state;
    bed_open(&b, "1.32.0", &spec);
    compile_one(&b, &w, "one");
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_part *const part = oc_variant_find_part(&manifest->variants[0], OC_ROLE_EXTERNAL, "w.bin");
    assert_non_null(part);
    oc_hex_encode(name, oc_manifest_find_asset(manifest, part->asset)->object, OC_LEAF_LEN);
    char *const path = oc_test_format("%s/objects/%.2s/%s", b.bundle, name, name);
    bytes = oc_test_read_file(path, &len);
    bytes[len / 2] ^= 1;
    oc_test_write_file(path, bytes, len);
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP, .ep_library = b.library, .variant = "one"};
    assert_st(ortcrypt_session_open(&session, b.runtime, bundle, &run, &err), &err, ORTCRYPT_E_NOT_AUTHENTIC);
    assert_null(session);
    free(bytes);
    free(path);
    close_bundle(bundle);
    bed_close(&b);
}

/* Nobody tells when an application's own session ends, and its weights would have to stay until then. */
static void own_session_is_refused(void **state)
{
    static const wanted w = {"all", false, true, false};
    const rig_model spec = {.external = true};
    const ortcrypt_session_options run = {.struct_size = sizeof(run), .ep = EP, .variant = "one"};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_inputs *inputs = NULL;
    OrtSessionOptions *options = NULL;
    bed b;

    (void)state;
    bed_open(&b, "1.32.0", &spec);
    compile_one(&b, &w, "one");
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    assert_null(ortcrypt_runtime_api(b.runtime)->CreateSessionOptions(&options));
    assert_st(ortcrypt_inputs_open(&inputs, b.runtime, bundle, options, &run, &err), &err, ORTCRYPT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "variant one is weightless"));
    assert_null(inputs);
    ortcrypt_runtime_api(b.runtime)->ReleaseSessionOptions(options);
    close_bundle(bundle);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embed_1_internal),
        cmocka_unit_test(embed_1_external),
        cmocka_unit_test(embed_0_internal),
        cmocka_unit_test(embed_0_external),
        cmocka_unit_test(embed_1_internal_weightless),
        cmocka_unit_test(embed_1_external_weightless),
        cmocka_unit_test(embed_0_internal_weightless),
        cmocka_unit_test(embed_0_external_weightless),
        cmocka_unit_test(embed_1_internal_external_only),
        cmocka_unit_test(embed_1_external_external_only),
        cmocka_unit_test(embed_0_internal_external_only),
        cmocka_unit_test(embed_0_external_external_only),
        cmocka_unit_test(none_is_refused),
        cmocka_unit_test(old_runtimes_are_refused),
        cmocka_unit_test(source_is_authenticated),
        cmocka_unit_test(own_session_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
