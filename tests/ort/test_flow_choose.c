/*
 * Which variant a session gets: ORT's own judgement first, then the newest; never another one because one is damaged. And the
 * cover check on manifests that disagree with their model, made by hand.
 */
#include "test_flow_rig.h"

#include <unistd.h>

#include "bundle/bundle.h"
#include "flow/supply.h"
#include "test_flow_model.h"

#define EP "OrtcryptReference"
#define VERSION "1.32.0"

typedef struct bed {
    ortcrypt_runtime *runtime;
    ortcrypt_keyring *keyring;
    char *dir;
    char *bundle;
    char library[1024];
} bed;

static void bed_open(bed *b, const rig_model *spec, size_t compiled)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    *b = (bed){.runtime = rig_runtime(VERSION), .keyring = rig_keyring(), .dir = oc_test_tmpdir()};
    char *const model = oc_test_format("%s/model.onnx", b->dir);
    b->bundle = oc_test_format("%s/model.ortc", b->dir);
    rig_reference_path(b->library);
    rig_model_write(b->dir, spec);
    assert_ok(ortcrypt_encrypt(model, b->bundle, b->keyring, NULL, NULL, &err), &err);
    for (size_t i = 0; i < compiled; i++) {
        const ortcrypt_compile_options options = {.struct_size = sizeof(options), .ep = EP, .ep_library = b->library, .embed = true};
        assert_ok(ortcrypt_compile(b->runtime, b->bundle, b->keyring, &options, NULL, &err), &err);
    }
    free(model);
}

static void bed_close(bed *b)
{
    oc_test_rm_rf(b->dir);
    free(b->dir);
    free(b->bundle);
    ortcrypt_keyring_free(b->keyring);
    rig_runtime_close(b->runtime);
}

/* Changes the manifest as another holder of the key could. */
typedef void (*edit_fn)(oc_manifest *manifest, const char *text);

static void edit(const bed *b, edit_fn fn, const char *text)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;

    assert_ok(oc_txn_begin(&txn, b->bundle, NULL, b->keyring, NULL, &err), &err);
    fn(oc_txn_manifest(txn), text);
    assert_ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

static void set_compatibility(oc_variant *variant, const char *text)
{
    free(variant->compatibility);
    variant->compatibility = strdup(text);
    assert_non_null(variant->compatibility);
}

static void newest_compatibility(oc_manifest *manifest, const char *text)
{
    set_compatibility(&manifest->variants[manifest->variant_count - 1], text);
}

static void all_compatibility(oc_manifest *manifest, const char *text)
{
    for (size_t i = 1; i < manifest->variant_count; i++) {
        set_compatibility(&manifest->variants[i], text);
    }
}

static char notices[1024];

static void keep_notice(void *state, const char *sentence)
{
    (void)state;
    (void)snprintf(notices, sizeof(notices), "%s", sentence);
}

static const ortcrypt_monitor monitor = {keep_notice, NULL, NULL};

/* The id of the variant a session for the EP gets; "" and *err otherwise. */
static void chosen(char id[128], const bed *b, const char *variant, const char *ep, ortcrypt_error *err)
{
    const ortcrypt_session_options run = {
        .struct_size = sizeof(run), .variant = variant, .ep = ep, .ep_library = b->library, .monitor = &monitor};
    ortcrypt_error ignored = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_session *session = NULL;
    char *plan = NULL;

    notices[0] = '\0';
    id[0] = '\0';
    assert_ok(ortcrypt_bundle_open(&bundle, b->bundle, b->keyring, NULL, err), err);
    if (ortcrypt_session_open(&session, b->runtime, bundle, &run, err) == ORTCRYPT_OK) {
        assert_ok(ortcrypt_session_plan(session, &plan, err), err);
        assert_int_equal(sscanf(plan, "{\"variant\":\"%64[^\"]\"", id), 1);
        ortcrypt_free(plan, 0);
        ortcrypt_session_close(session);
    }
    assert_ok(ortcrypt_bundle_close(bundle, &ignored), &ignored);
}

static void best_then_newest(void **state)
{
    const rig_model spec = {.external = false};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char id[128];
    bed b;

    (void)state;
    bed_open(&b, &spec, 2);
    chosen(id, &b, NULL, EP, &err);
    assert_string_equal(id, "ortcryptreference-2");
    assert_string_equal(notices, "");
    chosen(id, &b, NULL, NULL, &err);
    assert_string_equal(id, "source");
    chosen(id, &b, NULL, "CPUExecutionProvider", &err);
    assert_string_equal(id, "source");
    chosen(id, &b, "ortcryptreference-1", NULL, &err); /* its own EP is used */
    assert_string_equal(id, "ortcryptreference-1");
    /* of another runtime: usable, but an optimal older one is better */
    edit(&b, newest_compatibility, EP ";engine=1;ep=0.0.1;ort=1.99.0");
    chosen(id, &b, NULL, EP, &err);
    assert_string_equal(id, "ortcryptreference-1");
    chosen(id, &b, "ortcryptreference-2", NULL, &err);
    assert_string_equal(id, "ortcryptreference-2");
    assert_non_null(strstr(notices, "compiled again"));
    /* not of this EP's engine format at all */
    edit(&b, newest_compatibility, EP ";engine=999;ep=9;ort=9");
    chosen(id, &b, NULL, EP, &err);
    assert_string_equal(id, "ortcryptreference-1");
    chosen(id, &b, "ortcryptreference-2", NULL, &err);
    assert_string_equal(id, "");
    assert_int_equal(err.status, ORTCRYPT_E_UNSUPPORTED);
    edit(&b, all_compatibility, EP ";engine=999;ep=9;ort=9");
    chosen(id, &b, NULL, EP, &err);
    assert_string_equal(id, "");
    assert_int_equal(err.status, ORTCRYPT_E_NOT_FOUND);
    assert_non_null(strstr(notices, "left out"));
    chosen(id, &b, "ortcryptreference-1", "CPUExecutionProvider", &err);
    assert_int_equal(err.status, ORTCRYPT_E_INVALID);
    bed_close(&b);
}

static void swap_models(oc_manifest *manifest, const char *text)
{
    (void)text; /* the newest variant gets the model part of the source: no EPContext there, still a model */
    oc_variant *const newest = &manifest->variants[manifest->variant_count - 1];
    memcpy(newest->parts[0].asset, manifest->variants[0].parts[0].asset, OC_ASSET_ID_LEN);
}

static void drop_tensor(oc_manifest *manifest, const char *text)
{
    (void)text;
    oc_variant *const source = &manifest->variants[0];
    free(source->tensors[0].name);
    source->tensors[0].name = strdup("another");
    assert_non_null(source->tensors[0].name);
}

static void rename_part(oc_manifest *manifest, const char *text)
{
    oc_variant *const source = &manifest->variants[0];
    for (size_t i = 0; i < source->part_count; i++) {
        if (source->parts[i].role == OC_ROLE_EXTERNAL) {
            free(source->parts[i].name);
            source->parts[i].name = strdup(text);
            assert_non_null(source->parts[i].name);
        }
    }
}

static void shift_tensor(oc_manifest *manifest, const char *text)
{
    (void)text;
    manifest->variants[0].tensors[0].offset += 4;
}

static void tables_that_disagree_are_refused(void **state)
{
    static const edit_fn edits[] = {drop_tensor, rename_part, shift_tensor};
    const rig_model spec = {.external = true, .gap = 4096};

    (void)state;
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        char id[128];
        bed b;
        bed_open(&b, &spec, 0);
        edit(&b, edits[i], "v.bin");
        chosen(id, &b, NULL, NULL, &err);
        assert_string_equal(id, "");
        assert_int_equal(err.status, ORTCRYPT_E_NOT_AUTHENTIC);
        bed_close(&b);
    }
    const rig_model embedded = {.external = false};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char id[128];
    bed b;
    bed_open(&b, &embedded, 1);
    edit(&b, swap_models, "");
    chosen(id, &b, NULL, EP, &err); /* no cover is missing: it is a valid variant, and it runs */
    assert_string_equal(id, "ortcryptreference-1");
    bed_close(&b);
}

/* The check alone, for what cannot be written through the public calls. */
typedef struct cover {
    oc_onnx_tensor tensor;
    oc_onnx_ep_context context;
    oc_onnx_model onnx;
    oc_tensor row;
    oc_part parts[2];
    oc_asset asset;
    oc_variant variant;
    oc_manifest manifest;
    uint64_t shape[1];
    char location[64];
} cover;

static void cover_new(cover *c)
{
    static char tensor_name[] = "w";
    static char context_name[] = "blob";
    static char empty[] = "";
    static char id[] = "v";
    static char kind[] = "compiled";

    *c = (cover){.shape = {8}, .location = "w.bin"};
    c->tensor = (oc_onnx_tensor){.name = tensor_name, .dtype = 1, .shape = c->shape, .rank = 1, .external = true,
                                 .main_graph = true, .location = c->location, .offset = 16, .length = 32, .has_length = true};
    c->context = (oc_onnx_ep_context){.name = empty, .source = empty, .partition = empty, .main_context = 1, .embed_mode = 0,
                                      .cache_context = context_name, .cache_len = 4};
    c->row = (oc_tensor){.name = tensor_name, .dtype = 1, .shape = c->shape, .rank = 1, .offset = 16, .length = 32};
    c->parts[0] = (oc_part){.role = OC_ROLE_EXTERNAL};
    c->parts[1] = (oc_part){.role = OC_ROLE_EP_CONTEXT, .name = context_name};
    c->asset = (oc_asset){.size = 48};
    c->variant = (oc_variant){.id = id, .kind = kind, .parts = c->parts, .part_count = 2, .tensors = &c->row, .tensor_count = 1};
    c->manifest = (oc_manifest){.assets = &c->asset, .asset_count = 1, .variants = &c->variant, .variant_count = 1};
    c->onnx = (oc_onnx_model){.tensors = &c->tensor, .tensor_count = 1, .ep_contexts = &c->context, .ep_context_count = 1};
}

static ortcrypt_status judge(cover *c)
{
    static char part_name[] = "w.bin";
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    if (c->parts[0].name == NULL) {
        c->parts[0].name = part_name;
    }
    return oc_cover_check(&c->onnx, &c->manifest, &c->variant, &err);
}

static void cover_is_complete_or_refused(void **state)
{
    static char marker[] = "*/_ORT_MEM_ADDR_/*";
    cover c;

    (void)state;
    cover_new(&c);
    assert_int_equal(judge(&c), ORTCRYPT_OK);
    (void)strcpy(c.location, "./w.bin");
    assert_int_equal(judge(&c), ORTCRYPT_OK);
    cover_new(&c);
    c.tensor.main_graph = false; /* in the body of an If */
    assert_int_equal(judge(&c), ORTCRYPT_E_INPUT);
    static const char *const unplain[] = {"../w.bin", "/w.bin", "a/../w.bin", "a//w.bin", "a/./w.bin", ""};
    for (size_t i = 0; i < sizeof(unplain) / sizeof(unplain[0]); i++) {
        cover_new(&c);
        (void)strcpy(c.location, unplain[i]);
        c.parts[0].name = c.location;
        assert_int_equal(judge(&c), ORTCRYPT_E_INPUT);
    }
    cover_new(&c);
    c.tensor.location = marker; /* even with a part of that name */
    c.parts[0].name = marker;
    assert_int_equal(judge(&c), ORTCRYPT_E_INPUT);
    cover_new(&c);
    c.parts[0].role = OC_ROLE_EXTRA;
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.row.asset[3] = 1;
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.tensor.offset = c.row.offset = 20; /* 20 + 32 > 48 */
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.tensor.offset = c.row.offset = UINT64_MAX - 8;
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.tensor.length = c.row.length = 28; /* not what type and shape say */
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.tensor.dtype = 6;
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.parts[1].role = OC_ROLE_EXTRA; /* the blob is not there */
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    cover_new(&c);
    c.context.cache_context = NULL;
    assert_int_equal(judge(&c), ORTCRYPT_E_NOT_AUTHENTIC);
    c.context.main_context = 0; /* refers to another node's */
    assert_int_equal(judge(&c), ORTCRYPT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_then_newest),
        cmocka_unit_test(tables_that_disagree_are_refused),
        cmocka_unit_test(cover_is_complete_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
