/*
 * What must hold of a compiled variant before anybody can see it: every EPContext node has its data, every external tensor
 * is covered, something was compiled, and the whole loads again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flow/output.h"

static oc_blob *find_blob(const ortcrypt_output *output, const char *name)
{
    oc_blob *blob = output->blobs;

    while (blob != NULL && strcmp(blob->name, name) != 0) {
        blob = blob->next;
    }
    return blob;
}

/* Data that nobody gave us is somewhere else. ORT and EPs resolve its name against the working folder, or take it as a path. */
static ortcrypt_status refuse_unwritten(const ortcrypt_output *output, const char *name, ortcrypt_error *err)
{
    char folder[512];
    const bool absolute = name[0] == '/';
    const bool known = !absolute && getcwd(folder, sizeof(folder)) != NULL;

    (void)oc_fail(err, ORTCRYPT_E_INPUT,
                  "the compiled model refers to EPContext data '%s' that was never written through the callback: plaintext of the model "
                  "may have reached the disk", name);
    oc_hint(err, "%s may have written it to a file: look for %s%s%s, and for files of %s below the temporary folder", output->ep,
            known ? folder : absolute ? "" : "(the working folder)", absolute ? "" : "/", name, output->ep);
    return ORTCRYPT_E_INPUT;
}

/* One node. A main context brings its data; any other refers to a main one. */
static ortcrypt_status check_node(const ortcrypt_output *output, const oc_onnx_ep_context *node, size_t main_count,
                                  ortcrypt_error *err)
{
    const bool named = node->embed_mode == 0 && node->cache_context != NULL && node->cache_context[0] != '\0';
    oc_blob *const blob = named ? find_blob(output, node->cache_context) : NULL;

    if (blob != NULL) {
        blob->referenced = true;
        return ORTCRYPT_OK;
    }
    if (named) {
        return refuse_unwritten(output, node->cache_context, err);
    }
    if (node->main_context != 0 && (node->embed_mode == 0 || node->cache_len == 0)) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "an EPContext node of the compiled model has no data");
    }
    if (node->main_context == 0 && main_count == 0) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "an EPContext node of the compiled model refers to a main context that is not there");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_output_none_compiled(const ortcrypt_output *output, ortcrypt_error *err)
{
    (void)oc_fail(err, ORTCRYPT_E_INPUT, "%s compiled no node of this model", output->ep);
    oc_hint(err, "the source variant runs without it; a result that nothing was compiled in must be asked for");
    return ORTCRYPT_E_INPUT;
}

static ortcrypt_status check_nodes(ortcrypt_output *output, const oc_onnx_model *onnx, ortcrypt_error *err)
{
    size_t main_count = 0;
    ortcrypt_status st = ORTCRYPT_OK;

    for (size_t i = 0; i < onnx->ep_context_count; i++) {
        main_count += onnx->ep_contexts[i].main_context != 0 ? 1 : 0;
    }
    if (onnx->ep_context_count == 0 && !output->options.allow_none_compiled) {
        return oc_output_none_compiled(output, err);
    }
    for (size_t i = 0; i < onnx->ep_context_count && st == ORTCRYPT_OK; i++) {
        st = check_node(output, &onnx->ep_contexts[i], main_count, err);
    }
    for (const oc_blob *blob = output->blobs; blob != NULL && st == ORTCRYPT_OK; blob = blob->next) {
        if (!blob->referenced) {
            oc_notice(output->options.monitor, "no node of the compiled model refers to EPContext data '%s'", blob->name);
        }
    }
    return st;
}

static void count(ortcrypt_output *output, const oc_onnx_model *onnx)
{
    ortcrypt_compile_result *const result = &output->result;

    result->node_count = onnx->node_count;
    result->ep_context_count = onnx->ep_context_count;
    result->initializer_count = output->init_count;
    result->blob_count = output->blob_count;
    for (const oc_blob *blob = output->blobs; blob != NULL; blob = blob->next) {
        result->blob_len += blob->len;
    }
    (void)snprintf(result->variant, sizeof(result->variant), "%s", output->variant_id);
}

/* The EP's own compatibility string: ORT writes it into the model's metadata. */
static ortcrypt_status record_compatibility(ortcrypt_output *output, const oc_supply *compiled, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(output->runtime);
    OrtAllocator *allocator = NULL;
    oc_region model = {0};
    size_t model_len = 0;
    char *text = NULL;

    if (!oc_runtime_has(output->runtime, "GetCompatibilityInfoFromModelBytes")) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = oc_supply_model(compiled, &model, &model_len, output->options.monitor, err);
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime, api->GetAllocatorWithDefaultOptions(&allocator), err, "compatibility information");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime,
                          api->GetCompatibilityInfoFromModelBytes(model.data, model_len, output->ep, allocator, &text), err,
                          "compatibility information");
    }
    oc_region_free(&model);
    if (text != NULL) {
        st = oc_strdup(&output->variant->compatibility, text, err);
        api->ReleaseStatus(api->AllocatorFree(allocator, text));
    }
    return st;
}

ortcrypt_status oc_output_check(ortcrypt_output *output, ortcrypt_error *err)
{
    oc_asset_reader *reader = NULL;
    oc_supply *compiled = NULL;
    oc_onnx_model *onnx = NULL;
    ortcrypt_bundle *const view = oc_txn_view(output->txn);
    const oc_asset *const model = oc_manifest_find_asset(oc_bundle_manifest(view), output->model_id);

    /* the nodes first: their sentences say more than the cover check's */
    ortcrypt_status st = oc_asset_reader_open(&reader, view, model, err);
    if (st == ORTCRYPT_OK) {
        const oc_source source = oc_asset_reader_source(reader);
        st = oc_onnx_scan(&onnx, &source, "the compiled model", err);
        oc_asset_reader_close(reader);
    }
    if (st == ORTCRYPT_OK) {
        count(output, onnx);
        st = check_nodes(output, onnx, err);
        oc_onnx_model_free(onnx);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_supply_open(&compiled, view, output->variant, err);
    }
    if (st == ORTCRYPT_OK) {
        st = record_compatibility(output, compiled, err);
    }
    oc_supply_free(compiled);
    return st;
}

ortcrypt_status oc_output_load(ortcrypt_output *output, ortcrypt_error *err)
{
    const ortcrypt_session_options options = {
        .struct_size = sizeof(options),
        .variant = output->variant_id,
        .ep = output->ep,
        .ep_option_keys = output->option_keys,
        .ep_option_values = output->option_values,
        .ep_option_count = output->ep_option_count,
        .base = output->options.base,
        .monitor = output->options.monitor,
    };
    ortcrypt_session *session = NULL;
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;

    const ortcrypt_status st = ortcrypt_session_open(&session, output->runtime, oc_txn_view(output->txn), &options, &reason);
    if (st != ORTCRYPT_OK) {
        (void)oc_fail(err, st, "the compiled model does not load: %s", reason.message);
        oc_hint(err, "%s", reason.hint[0] != '\0' ? reason.hint : "if its device is not here, leave the load check out");
        return st;
    }
    ortcrypt_session_close(session);
    output->variant->verified = 1;
    output->result.verified = true;
    return ORTCRYPT_OK;
}
