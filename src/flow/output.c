/* Beginning, publishing and dropping a compiled variant. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/local.h"
#include "flow/live.h"
#include "flow/output.h"
#include "flow/weightless.h"

static bool variant_id_valid(const char *id)
{
    const size_t len = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return len >= 1 && len <= 64 && id[len] == '\0';
}

/* The caller's id, or "<ep in lower case>-<n>" with the lowest n that is free. */
static ortcrypt_status name_variant(ortcrypt_output *output, const char *wanted, ortcrypt_error *err)
{
    const oc_manifest *const manifest = oc_txn_manifest(output->txn);
    char id[65];
    size_t len = 0;

    if (wanted != NULL && !variant_id_valid(wanted)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a variant's id is 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'");
    }
    if (wanted != NULL && oc_manifest_find_variant(manifest, wanted) != NULL) {
        return oc_fail(err, ORTCRYPT_E_EXISTS, "the bundle has a variant %s already", wanted);
    }
    if (wanted != NULL) {
        return oc_strdup(&output->variant_id, wanted, err);
    }
    for (const char *p = output->ep; *p != '\0' && len < 48; p++) {
        const unsigned char c = (unsigned char)*p;
        id[len++] = c < 0x80 && isalnum(c) ? (char)tolower(c) : '-';
    }
    for (size_t n = 1;; n++) {
        (void)snprintf(id + len, sizeof(id) - len, "-%zu", n);
        if (oc_manifest_find_variant(manifest, id) == NULL) {
            return oc_strdup(&output->variant_id, id, err);
        }
    }
}

static ortcrypt_status copy_options(ortcrypt_output *output, const ortcrypt_compile_options *options, ortcrypt_error *err)
{
    ortcrypt_status st = oc_strdup(&output->ep, options->ep, err);

    output->options = *options;
    if (output->options.initializer_min_len == 0) {
        output->options.initializer_min_len = OC_INITIALIZER_MIN_LEN;
    }
    for (size_t i = 0; i < options->ep_option_count && st == ORTCRYPT_OK; i++) {
        st = oc_pair_add(&output->ep_options, &output->ep_option_count, options->ep_option_keys[i],
                         options->ep_option_values[i], err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    output->option_keys = calloc(output->ep_option_count + 1, sizeof(*output->option_keys));
    output->option_values = calloc(output->ep_option_count + 1, sizeof(*output->option_values));
    if (output->option_keys == NULL || output->option_values == NULL) {
        return oc_fail_memory(err, (output->ep_option_count + 1) * sizeof(*output->option_keys), "EP options");
    }
    for (size_t i = 0; i < output->ep_option_count; i++) {
        output->option_keys[i] = output->ep_options[i].key;
        output->option_values[i] = output->ep_options[i].value;
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status find_source(ortcrypt_output *output, ortcrypt_error *err)
{
    const oc_manifest *const manifest = oc_bundle_manifest(output->origin);

    for (size_t i = 0; i < manifest->variant_count; i++) {
        if (strcmp(manifest->variants[i].kind, "source") == 0) {
            return oc_supply_open(&output->source, output->origin, &manifest->variants[i], err);
        }
    }
    return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the bundle has no source variant to compile");
}

/* What is asked of the runtime and the EP before anything is locked. */
static ortcrypt_status prepare(ortcrypt_output *output, const ortcrypt_compile_options *options, ortcrypt_error *err)
{
    ortcrypt_status st = copy_options(output, options, err);

    if (st == ORTCRYPT_OK && options->ep_library != NULL) {
        st = ortcrypt_runtime_register_ep(output->runtime, options->ep, options->ep_library, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_route_check(output->runtime, options->ep, options->embed, output->option_keys, output->option_values,
                            output->ep_option_count, options->monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_choose_device(&output->device, output->runtime, options->ep, err);
    }
    if (st == ORTCRYPT_OK && options->weightless) {
        st = oc_weightless_check(output->runtime, err);
    }
    return st;
}

static ortcrypt_status output_new(ortcrypt_output **out, ortcrypt_runtime *runtime, ortcrypt_error *err)
{
    ortcrypt_output *const made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return oc_fail_memory(err, sizeof(*made), "compiling");
    }
    const ortcrypt_status st = oc_live_begin(made, OC_LIVE_OUTPUT, ortcrypt_runtime_api(runtime), err);
    if (st != ORTCRYPT_OK) {
        free(made);
        return st;
    }
    (void)pthread_mutex_init(&made->lock, NULL);
    made->runtime = runtime;
    oc_runtime_hold(runtime);
    *out = made;
    return ORTCRYPT_OK;
}

/* The variant's name and the source; hands *made over on success and closes it otherwise. */
static ortcrypt_status finish_opening(ortcrypt_output **output, ortcrypt_output *made, ortcrypt_status st, ortcrypt_error *err)
{
    if (st == ORTCRYPT_OK) {
        st = name_variant(made, made->options.variant, err);
    }
    if (st == ORTCRYPT_OK) {
        st = find_source(made, err);
    }
    if (st != ORTCRYPT_OK) {
        ortcrypt_output_close(made);
        return st;
    }
    *output = made;
    return ORTCRYPT_OK;
}

/* The application's own CompileModel: its EP finds our callbacks in its session options, or where it registers them itself. */
static ortcrypt_status prepare_own(ortcrypt_output *output, OrtSessionOptions *session_options, ortcrypt_error *err)
{
    if (session_options != NULL) {
        const ortcrypt_status st = oc_options_guard(output->runtime, session_options, err);
        return st != ORTCRYPT_OK ? st
                                 : oc_callbacks_name(&output->registration, output->runtime, output->ep, session_options, NULL,
                                                     ortcrypt_write_named, output, err);
    }
    if (oc_runtime_ep_context(output->runtime)->era == ORTCRYPT_ERA_NONE && !output->options.embed) {
        (void)oc_fail(err, ORTCRYPT_E_INVALID, "ONNX Runtime %s has no EPContext callbacks: ortcrypt's are named in the application's session options",
                      ortcrypt_runtime_version(output->runtime));
        oc_hint(err, "name them in ortcrypt_compile_options.session_options, or compile with embed mode");
        return ORTCRYPT_E_INVALID;
    }
    return ORTCRYPT_OK;
}

ortcrypt_status ortcrypt_output_open(ortcrypt_output **output, ortcrypt_runtime *runtime, const char *bundle_path,
                                     const ortcrypt_keyring *keyring, const ortcrypt_compile_options *options,
                                     ortcrypt_error *err)
{
    return oc_output_open(output, runtime, bundle_path, keyring, options, true, err);
}

ortcrypt_status oc_output_open(ortcrypt_output **output, ortcrypt_runtime *runtime, const char *bundle_path,
                               const ortcrypt_keyring *keyring, const ortcrypt_compile_options *options, bool own,
                               ortcrypt_error *err)
{
    ortcrypt_compile_options o;

    if (output == NULL || runtime == NULL || bundle_path == NULL || keyring == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "compiling needs a runtime, a bundle and a keyring");
    }
    *output = NULL;
    ortcrypt_status st = oc_compile_options_read(&o, options, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    ortcrypt_output *made = NULL;
    st = output_new(&made, runtime, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = prepare(made, &o, err);
    if (st == ORTCRYPT_OK && own) {
        st = prepare_own(made, o.session_options, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_txn_begin(&made->txn, bundle_path, o.out_path, keyring, o.open, err);
    }
    if (st == ORTCRYPT_OK) {
        made->origin = oc_txn_view(made->txn);
    }
    return finish_opening(output, made, st, err);
}

ortcrypt_status oc_output_open_local(ortcrypt_output **output, ortcrypt_runtime *runtime, ortcrypt_bundle *origin, const char *path,
                                     const uint8_t *machine_key, const ortcrypt_compile_options *options, ortcrypt_error *err)
{
    ortcrypt_output *made = NULL;

    ortcrypt_status st = output_new(&made, runtime, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    made->origin = origin;
    st = prepare(made, options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_local_begin(&made->txn, path, origin, machine_key, err);
    }
    return finish_opening(output, made, st, err);
}

ortcrypt_status oc_output_failure(ortcrypt_output *output, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    (void)pthread_mutex_lock(&output->lock);
    if (output->failed) {
        st = output->failure.status;
        if (err != NULL) {
            *err = output->failure;
        }
    }
    (void)pthread_mutex_unlock(&output->lock);
    return st;
}

ortcrypt_status ortcrypt_output_commit(ortcrypt_output *output, ortcrypt_compile_result *result, ortcrypt_error *err)
{
    if (output == NULL || output->committed) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "an output is committed once");
    }
    (void)pthread_mutex_lock(&output->lock);
    output->committed = true;
    (void)pthread_mutex_unlock(&output->lock);
    ortcrypt_status st = oc_output_failure(output, err);
    if (st == ORTCRYPT_OK) {
        st = oc_output_record(output, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_output_check(output, err);
    }
    /* a caller who asked to stop while the EP compiled, or while the result loaded, is heard before anything is visible */
    if (st == ORTCRYPT_OK) {
        st = oc_progress(output->options.monitor, "checking", 0, 0, err);
    }
    if (st == ORTCRYPT_OK && !output->options.no_load_check) {
        st = oc_output_load(output, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_progress(output->options.monitor, "committing", 0, 0, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_txn_commit(output->txn, &output->result.bundle, err);
    }
    if (st == ORTCRYPT_OK && result != NULL) {
        *result = output->result;
    }
    return st;
}

static void free_blobs(oc_blob *blob)
{
    while (blob != NULL) {
        oc_blob *const next = blob->next;
        oc_asset_writer_close(blob->writer);
        (void)pthread_mutex_destroy(&blob->lock);
        free(blob->name);
        free(blob);
        blob = next;
    }
}

static void free_pairs(oc_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].key);
        free(pairs[i].value);
    }
    free(pairs);
}

void ortcrypt_output_close(ortcrypt_output *output)
{
    if (output == NULL) {
        return;
    }
    oc_registration_end(output->registration); /* first: no callback runs on what follows */
    oc_live_end(output);
    free_blobs(output->blobs);
    oc_asset_writer_close(output->model);
    oc_supply_free(output->source);
    oc_txn_end(output->txn);
    for (size_t i = 0; i < output->init_count; i++) {
        free(output->inits[i].tensor.name);
        free(output->inits[i].tensor.shape);
        free(output->inits[i].location);
    }
    free(output->inits);
    free_pairs(output->ep_options, output->ep_option_count);
    free(output->option_keys);
    free(output->option_values);
    free(output->variant_id);
    free(output->ep);
    (void)pthread_mutex_destroy(&output->lock);
    oc_runtime_release(output->runtime);
    free(output);
}
