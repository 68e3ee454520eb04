/*
 * Several compiled variants in one bundle: each gets its own blobs though their names are equal; one that another execution
 * provider or runtime made is named, and used only where it can be.
 */
#include "test_flow_bed.h"

#include "bundle/bundle.h"

static char notices[4096];

static void keep_notice(void *state, const char *sentence)
{
    const size_t len = strlen(notices);

    (void)state;
    (void)snprintf(notices + len, sizeof(notices) - len, "%s\n", sentence);
}

static const ortcrypt_monitor monitor = {keep_notice, NULL, NULL};

static void compile_as(const bed *b, const char *id, const char *max_nodes)
{
    static const char *const keys[] = {"max_nodes_per_engine"};
    ortcrypt_compile_options options = compile_options(b);

    options.variant = id;
    options.ep_option_keys = keys;
    options.ep_option_values = &max_nodes;
    options.ep_option_count = max_nodes != NULL ? 1 : 0;
    bed_compile(b, &options, NULL);
}

static ortcrypt_session_options run_options(const bed *b, const char *variant)
{
    return (ortcrypt_session_options){
        .struct_size = sizeof(ortcrypt_session_options), .variant = variant, .ep = EP, .ep_library = b->library, .monitor = &monitor};
}

static const oc_part *blob_of(const oc_manifest *manifest, const char *variant, const char *name)
{
    return oc_variant_find_part(oc_manifest_find_variant(manifest, variant), OC_ROLE_EP_CONTEXT, name);
}

static const oc_part *first_blob(const oc_manifest *manifest, const char *variant)
{
    const oc_variant *const v = oc_manifest_find_variant(manifest, variant);

    for (size_t i = 0; i < v->part_count; i++) {
        if (v->parts[i].role == OC_ROLE_EP_CONTEXT && strstr(v->parts[i].name, "_0.bin") != NULL) {
            return &v->parts[i];
        }
    }
    fail_msg("%s has no first blob", variant);
    return NULL;
}

/* The sizes that a session's plan has for `name` must be those of this variant's asset. */
static void assert_blob_is_of(const bed *b, const char *variant, const char *name)
{
    const ortcrypt_session_options run = run_options(b, variant);
    ortcrypt_bundle *const bundle = bed_bundle(b);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_asset *const asset = oc_manifest_find_asset(manifest, blob_of(manifest, variant, name)->asset);
    char *plan = NULL;
    char *const wanted = oc_test_format("\"name\":\"%s\",\"bytes\":%llu", name, (unsigned long long)asset->size);
    float *const y = bed_run(b, &run, &plan);
    float *const plain = rig_plain(b->runtime, b->model, NULL);

    assert_non_null(strstr(plan, wanted));
    rig_assert_close(y, plain, 2 * MODEL_OUT, variant);
    free(y);
    free(plain);
    free(wanted);
    ortcrypt_free(plan, 0);
    close_bundle(bundle);
}

static void damage(const bed *b, const oc_asset *asset)
{
    char name[2 * OC_LEAF_LEN + 1];
    uint8_t byte = 0;

    oc_hex_encode(name, asset->object, OC_LEAF_LEN);
    char *const path = oc_test_format("%s/objects/%.2s/%s", b->bundle, name, name);
    FILE *const file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    assert_int_equal(fread(&byte, 1, 1, file), 1);
    byte ^= 1;
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static void equal_names(const char *version)
{
    const rig_model spec = {.external = true, .sequence = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    bed b;

    bed_open(&b, version, &spec);
    compile_as(&b, "whole", NULL);
    compile_as(&b, "small", "1");
    ortcrypt_bundle *bundle = bed_bundle(&b);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_part *const whole = first_blob(manifest, "whole");
    const oc_part *const small = first_blob(manifest, "small");
    char *const name = oc_test_format("%s", whole->name);
    const oc_asset *const of_small = oc_manifest_find_asset(manifest, small->asset);
    assert_string_equal(whole->name, small->name);
    assert_memory_not_equal(whole->asset, small->asset, OC_ASSET_ID_LEN);
    assert_int_not_equal(oc_manifest_find_asset(manifest, whole->asset)->size, of_small->size);
    assert_blob_is_of(&b, "whole", name);
    assert_blob_is_of(&b, "small", name);
    /* damage of one variant's blob is an error there, never a reason to take the other's, and the other still runs */
    damage(&b, of_small);
    const ortcrypt_session_options newest = run_options(&b, NULL);
    const ortcrypt_status st = ortcrypt_session_open(&session, b.runtime, bundle, &newest, &err);
    assert_st(st, &err, ORTCRYPT_E_NOT_AUTHENTIC);
    assert_blob_is_of(&b, "whole", name);
    close_bundle(bundle);
    free(name);
    bed_close(&b);
}

static void two_variants_with_equal_blob_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        equal_names(rig_versions[i]);
    }
}

/* As if another version of the EP had made it. */
static void set_maker(const bed *b, const char *id, const char *ep_version, const char *compatibility)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;

    assert_ok(oc_txn_begin(&txn, b->bundle, NULL, b->keyring, NULL, &err), &err);
    oc_manifest *const manifest = oc_txn_manifest(txn);
    for (size_t i = 0; i < manifest->variant_count; i++) {
        oc_variant *const variant = &manifest->variants[i];
        if (strcmp(variant->id, id) == 0) {
            free(variant->ep_version);
            free(variant->compatibility);
            variant->ep_version = strdup(ep_version);
            variant->compatibility = strdup(compatibility);
        }
    }
    assert_ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

static void stale_ones_are_named(void **state)
{
    const rig_model spec = {.external = false};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    char *plan = NULL;
    bed b;

    (void)state;
    bed_open(&b, "1.32.0", &spec);
    compile_as(&b, "good", NULL);
    compile_as(&b, "stale", NULL);
    set_maker(&b, "stale", "7.7.7", EP ";engine=99;ep=7.7.7;ort=1.32.0");
    const ortcrypt_session_options run = run_options(&b, NULL);
    const ortcrypt_session_options named = run_options(&b, "stale");
    notices[0] = '\0';
    float *y = bed_run(&b, &run, &plan);
    assert_non_null(strstr(plan, "\"variant\":\"good\""));
    assert_non_null(strstr(notices, "variant stale, made by " EP " 7.7.7 on ONNX Runtime 1.32.0, is left out"));
    free(y);
    ortcrypt_free(plan, 0);
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    ortcrypt_status st = ortcrypt_session_open(&session, b.runtime, bundle, &named, &err);
    assert_st(st, &err, ORTCRYPT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "variant stale"));
    close_bundle(bundle);
    bed_close(&b);
}

/* What 1.32 compiles is beyond what 1.30 reads (IR 14): said as such, with what to do. The other way round it runs. */
static void of_another_runtime(void **state)
{
    const rig_model spec = {.external = false};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    char *plan = NULL;
    bed b;

    (void)state;
    bed_open(&b, "1.30.0", &spec);
    compile_as(&b, "of-old", NULL);
    rig_runtime_close(b.runtime);
    b.runtime = rig_runtime("1.32.0");
    const ortcrypt_session_options old = run_options(&b, NULL);
    notices[0] = '\0';
    float *const y = bed_run(&b, &old, &plan);
    assert_non_null(strstr(notices, "variant of-old works, but " EP " would rather have it compiled again"));
    free(y);
    ortcrypt_free(plan, 0);
    compile_as(&b, "of-new", NULL);
    rig_runtime_close(b.runtime);
    b.runtime = rig_runtime("1.30.0");
    ortcrypt_bundle *const bundle = bed_bundle(&b);
    const ortcrypt_session_options named = run_options(&b, "of-new");
    const ortcrypt_status st = ortcrypt_session_open(&session, b.runtime, bundle, &named, &err);
    assert_st(st, &err, ORTCRYPT_E_ORT);
    assert_non_null(strstr(err.hint, "variant of-new was made by " EP));
    assert_non_null(strstr(err.hint, "ONNX Runtime 1.32.0, and this is 1.30.0: compile the model again here"));
    close_bundle(bundle);
    float *const again = bed_run(&b, &old, &plan); /* among the rest the optimal one is chosen */
    assert_non_null(strstr(plan, "\"variant\":\"of-old\""));
    free(again);
    ortcrypt_free(plan, 0);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_variants_with_equal_blob_names),
        cmocka_unit_test(stale_ones_are_named),
        cmocka_unit_test(of_another_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
