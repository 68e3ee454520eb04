/*
 * What an OrtSession needs besides the model: initializers from memory and the EPContext read callback. Used by sessions
 * of ours and, through ortcrypt_inputs_*, by applications that create their own.
 */
#include <stdlib.h>
#include <string.h>

#include "flow/live.h"
#include "flow/weightless.h"

static bool has_blobs(const oc_variant *variant)
{
    for (size_t i = 0; i < variant->part_count; i++) {
        if (variant->parts[i].role == OC_ROLE_EP_CONTEXT) {
            return true;
        }
    }
    return false;
}

/* Only where there is something to read: from 1.31 on ORT refuses EPs that do not advertise support when it is set. */
static ortcrypt_status set_read_callback(ortcrypt_inputs *inputs, OrtSessionOptions *options, ortcrypt_error *err)
{
    const ortcrypt_ep_context_api *const f = oc_runtime_ep_context(inputs->runtime);
    const char *const ep = inputs->variant->ep != NULL ? inputs->variant->ep : OC_EP_CPU_NAME;

    if (!has_blobs(inputs->variant)) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = oc_callbacks_name(&inputs->registration, inputs->runtime, ep, options, ortcrypt_read_named, NULL, inputs, err);
    if (st == ORTCRYPT_OK && oc_runtime_takes_callbacks(inputs->runtime, ep)) {
        st = oc_ort_check(inputs->runtime, f->SessionOptions_SetEpContextDataReadFunc(options, ortcrypt_read_named, inputs), err,
                          "the read callback");
    } else if (st == ORTCRYPT_OK && inputs->registration == NULL) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "variant %s keeps EPContext data outside the model, and ONNX Runtime %s has no callback for it",
                      inputs->variant->id, ortcrypt_runtime_version(inputs->runtime));
        oc_hint(err, "use ONNX Runtime 1.28 or newer, or compile with embed mode");
        st = ORTCRYPT_E_UNSUPPORTED;
    }
    return st;
}

ortcrypt_status oc_inputs_new(ortcrypt_inputs **out, ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                              const oc_variant *variant, const oc_load_wish *wish, OrtSessionOptions *options,
                              const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    ortcrypt_inputs *inputs = calloc(1, sizeof(*inputs));

    if (inputs == NULL) {
        return oc_fail_memory(err, sizeof(*inputs), "loading");
    }
    (void)pthread_mutex_init(&inputs->lock, NULL);
    inputs->runtime = runtime;
    inputs->bundle = bundle;
    inputs->variant = variant;
    oc_runtime_hold(runtime);
    oc_bundle_hold(bundle);
    ortcrypt_status st = oc_live_begin(inputs, OC_LIVE_INPUTS, ortcrypt_runtime_api(runtime), err);
    if (st == ORTCRYPT_OK) {
        st = oc_supply_open(&inputs->supply, bundle, variant, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_load_files(inputs, wish, options, monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        st = set_read_callback(inputs, options, err);
    }
    if (st == ORTCRYPT_OK && oc_weightless_variant(variant)) {
        st = oc_weightless_load(&inputs->source, &inputs->source_len, runtime, bundle, options, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_load_plan_parts(inputs, err);
    }
    if (st == ORTCRYPT_OK) {
        *out = inputs;
        inputs = NULL;
    }
    ortcrypt_inputs_close(inputs);
    return st;
}

ortcrypt_status oc_inputs_read_model(ortcrypt_inputs *inputs, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    const ortcrypt_status st =
        oc_model_bytes_make(&inputs->model, inputs->supply, inputs->ways.model == OC_MODEL_PAGED, monitor, err);

    return st == ORTCRYPT_OK ? oc_load_plan_model(inputs, inputs->model.len, err) : st;
}

ortcrypt_status oc_inputs_settle(ortcrypt_inputs *inputs, bool created, ortcrypt_error *err)
{
    ortcrypt_status st = oc_supply_settle(inputs->supply, created && inputs->ways.files != OC_FILES_LAZY_DIRECT, err);

    if (st == ORTCRYPT_OK) {
        st = oc_model_bytes_settle(&inputs->model, created, err);
    }
    oc_model_bytes_drop(&inputs->model); /* ORT parsed it into its own structures */
    if (!oc_file_way_resident(inputs->ways.files)) {
        oc_supply_drop_files(inputs->supply);
    }
    oc_supply_drop_put_back(inputs->supply);
    return st;
}

ortcrypt_status oc_inputs_failure(ortcrypt_inputs *inputs, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    (void)pthread_mutex_lock(&inputs->lock);
    if (inputs->failed) {
        st = inputs->failure.status;
        if (err != NULL) {
            *err = inputs->failure;
        }
    }
    (void)pthread_mutex_unlock(&inputs->lock);
    return st;
}

ortcrypt_status ortcrypt_inputs_open(ortcrypt_inputs **inputs, ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                                     OrtSessionOptions *session_options, const ortcrypt_session_options *options,
                                     ortcrypt_error *err)
{
    ortcrypt_session_options o;
    const oc_load_wish wish = {.own = true};
    ortcrypt_inputs *made = NULL;
    oc_choice choice;

    if (inputs == NULL || runtime == NULL || bundle == NULL || session_options == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_inputs_open needs a runtime, a bundle and session options");
    }
    *inputs = NULL;
    ortcrypt_status st = oc_session_options_read(&o, options, err);
    if (st == ORTCRYPT_OK && o.cache != NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a cache is for ortcrypt_session_open: inputs come from the bundle");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_choose(&choice, runtime, bundle, &o, err);
    }
    if (st == ORTCRYPT_OK && oc_weightless_variant(choice.variant)) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "variant %s is weightless: its weights must stay in memory as long as the session, and nobody tells when an application's own one ends",
                      choice.variant->id);
        oc_hint(err, "open it with ortcrypt_session_open");
        return ORTCRYPT_E_UNSUPPORTED;
    }
    if (st == ORTCRYPT_OK) {
        st = oc_options_guard(runtime, session_options, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_inputs_new(&made, runtime, bundle, choice.variant, &wish, session_options, o.monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_inputs_read_model(made, o.monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_supply_drop_put_back(made->supply);
        *inputs = made;
        made = NULL;
    }
    ortcrypt_inputs_close(made);
    return st;
}

void ortcrypt_inputs_model(const ortcrypt_inputs *inputs, const void **model, size_t *model_len)
{
    *model = inputs->model.data;
    *model_len = inputs->model.len;
}

void ortcrypt_inputs_close(ortcrypt_inputs *inputs)
{
    if (inputs == NULL) {
        return;
    }
    oc_registration_end(inputs->registration); /* first: no callback runs on what follows */
    oc_live_end(inputs);
    oc_model_bytes_drop(&inputs->model);
    oc_region_free(&inputs->source);
    oc_supply_free(inputs->supply);
    oc_load_plan_free(&inputs->plan);
    (void)pthread_mutex_destroy(&inputs->lock);
    oc_bundle_release(inputs->bundle);
    oc_runtime_release(inputs->runtime);
    free(inputs);
}

/* Keeps the first failure: the status that ORT makes of it has words only. */
static OrtStatus *refuse(ortcrypt_inputs *inputs, ortcrypt_status st, const ortcrypt_error *err)
{
    (void)pthread_mutex_lock(&inputs->lock);
    if (!inputs->failed) {
        inputs->failed = true;
        inputs->failure = *err;
        inputs->failure.status = st;
    }
    (void)pthread_mutex_unlock(&inputs->lock);
    return oc_ort_status(ortcrypt_runtime_api(inputs->runtime), st, err);
}

static ortcrypt_status find_blob(const oc_asset **asset, size_t *len, const ortcrypt_inputs *inputs, const char *name,
                                 ortcrypt_error *err)
{
    const oc_part *const part = name != NULL ? oc_variant_find_part(inputs->variant, OC_ROLE_EP_CONTEXT, name) : NULL;

    *asset = part != NULL ? oc_manifest_find_asset(oc_bundle_manifest(inputs->bundle), part->asset) : NULL;
    if (*asset == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the execution provider asks for EPContext data '%s', which is not in variant %s",
                       name != NULL ? name : "", inputs->variant->id);
    }
    return oc_len((*asset)->size, SIZE_MAX / 2, "EPContext data", len, err);
}

/* ORT owns *buffer only after we return NULL; until then the plaintext is ours to wipe and free. */
OrtStatus *oc_inputs_read_named(ortcrypt_inputs *inputs, const char *name, OrtAllocator *allocator, void **buffer, size_t *data_size)
{
    const OrtApi *const api = ortcrypt_runtime_api(inputs->runtime);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    OrtStatus *refused = NULL; /* ORT's own complaint, passed on unchanged */
    const oc_asset *asset = NULL;
    void *plain = NULL;
    size_t plain_len = 0;

    ortcrypt_status st = find_blob(&asset, &plain_len, inputs, name, &err);
    if (st == ORTCRYPT_OK && plain_len != 0) {
        refused = api->AllocatorAlloc(allocator, plain_len, &plain);
        if (refused == NULL && plain == NULL) {
            st = oc_fail_memory(&err, plain_len, "EPContext data");
        }
    }
    if (st == ORTCRYPT_OK && refused == NULL) {
        /* also when empty: the end of the stream must still be authentic */
        st = oc_bundle_read(inputs->bundle, asset, plain, NULL, &err);
    }
    if (st != ORTCRYPT_OK || refused != NULL) {
        if (plain != NULL) {
            oc_wipe(plain, plain_len);
            api->ReleaseStatus(api->AllocatorFree(allocator, plain));
        }
        return refused != NULL ? refused : refuse(inputs, st, &err);
    }
    *buffer = plain; /* the EP's now */
    *data_size = plain_len;
    return NULL;
}
