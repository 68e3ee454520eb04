/*
 * ortcrypt_encrypt: plaintext files -> plan (checked) -> transaction (sealed as they are read) -> commit.
 * The plan owns paths, scan and handles; the transaction owns everything written. Peak memory does not grow with the model.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/encrypt_store.h"
#include "bundle/split.h"

#define SOURCE_ID "source"
#define LABEL_MAX 256 /* bytes */

static bool label_valid(const char *text)
{
    const size_t len = text == NULL ? 0 : strlen(text);

    return len >= 1 && len <= LABEL_MAX && oc_utf8_valid(text, len);
}

static ortcrypt_status check_options(const char *model_path, const char *bundle_path, const ortcrypt_keyring *keyring,
                                     const ortcrypt_encrypt_options *options, ortcrypt_error *err)
{
    if (model_path == NULL || bundle_path == NULL || keyring == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_encrypt needs a model path, a bundle path and a keyring");
    }
    if ((options->extra_count != 0 && options->extra_files == NULL) ||
        (options->label_count != 0 && (options->label_keys == NULL || options->label_values == NULL))) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the encrypt options count files or labels that they do not point to");
    }
    if (options->split > ORTCRYPT_SPLIT_NEVER) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the encrypt options have no known value for split");
    }
    for (size_t i = 0; i < options->label_count; i++) {
        if (!label_valid(options->label_keys[i]) || !label_valid(options->label_values[i])) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "key and value of label %zu must be 1 to %d bytes of UTF-8", i, LABEL_MAX);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(options->label_keys[k], options->label_keys[i]) == 0) {
                return oc_fail(err, ORTCRYPT_E_INVALID, "label '%s' is given twice", options->label_keys[i]);
            }
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status add_split(const oc_encryption *run, oc_variant *variant, ortcrypt_error *err)
{
    char *text = NULL;

    ortcrypt_status status = oc_split_print(&text, run->weights_id, run->recipe_id, run->plan->model.size, run->sha256, err);
    if (status == ORTCRYPT_OK) {
        status = oc_pair_add(&variant->extensions, &variant->extension_count, OC_SPLIT_MEMBER, text, err);
    }
    free(text);
    return status;
}

static ortcrypt_status add_extensions(const oc_encryption *run, oc_variant *variant, ortcrypt_error *err)
{
    json_t *const name = json_string(oc_path_last(run->plan->model.path));
    char *const text = name == NULL ? NULL : json_dumps(name, JSON_ENCODE_ANY | JSON_COMPACT);
    char original[64];
    char hex[2 * OC_ASSET_ID_LEN + 1];

    json_decref(name);
    if (text == NULL) {
        return oc_fail_memory(err, sizeof original, "the model's file name");
    }
    ortcrypt_status status =
        oc_pair_add(&variant->extensions, &variant->extension_count, "x-file-name", text, err);
    free(text);
    if (status == ORTCRYPT_OK && run->plan->moved_count != 0) {
        status = add_split(run, variant, err);
    } else if (status == ORTCRYPT_OK && run->plan->edit_count != 0) {
        oc_hex_encode(hex, run->original_id, OC_ASSET_ID_LEN);
        (void)snprintf(original, sizeof original, "{\"asset\":\"%s\"}", hex);
        status = oc_pair_add(&variant->extensions, &variant->extension_count, "x-original", original, err);
    }
    return status;
}

static ortcrypt_status add_parts(const oc_encryption *run, oc_variant *variant, ortcrypt_error *err)
{
    const oc_encrypt_plan *const plan = run->plan;
    ortcrypt_status status = oc_variant_add_part(variant, OC_ROLE_MODEL, "", run->model_id, err);

    if (status == ORTCRYPT_OK && plan->moved_count != 0) {
        status = oc_variant_add_part(variant, OC_ROLE_EXTERNAL, plan->weights_name, run->weights_id, err);
    }
    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->file_count; i++) {
        status = oc_variant_add_part(variant, OC_ROLE_EXTERNAL, plan->files[i].name, run->file_ids[i], err);
    }
    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->extra_count; i++) {
        status = oc_variant_add_part(variant, OC_ROLE_EXTRA, plan->extras[i].name, run->extra_ids[i], err);
    }
    return status;
}

static ortcrypt_status add_tensors(const oc_encryption *run, oc_variant *variant, ortcrypt_error *err)
{
    ortcrypt_status status = ORTCRYPT_OK;

    for (size_t i = 0; status == ORTCRYPT_OK && i < run->plan->tensor_count; i++) {
        const oc_plan_tensor *const item = &run->plan->tensors[i];
        const oc_onnx_tensor *const from = &run->plan->onnx->tensors[item->tensor];
        if (!from->main_graph) {
            continue; /* moved into the model */
        }
        oc_tensor tensor = {.name = from->name, .dtype = from->dtype, .shape = from->shape, .rank = from->rank,
                            .offset = item->offset, .length = item->length};
        memcpy(tensor.asset, run->file_ids[item->file], OC_ASSET_ID_LEN);
        status = oc_variant_add_tensor(variant, &tensor, err);
    }
    for (size_t i = 0; status == ORTCRYPT_OK && i < run->plan->moved_count; i++) {
        const oc_onnx_tensor *const from = &run->plan->onnx->tensors[run->plan->moved[i].tensor];
        oc_tensor tensor = {.name = from->name, .dtype = from->dtype, .shape = from->shape, .rank = from->rank,
                            .offset = run->plan->moved[i].offset, .length = from->raw_len};
        memcpy(tensor.asset, run->weights_id, OC_ASSET_ID_LEN);
        status = oc_variant_add_tensor(variant, &tensor, err);
    }
    return status;
}

static ortcrypt_status describe_source(const oc_encryption *run, const ortcrypt_encrypt_options *options, ortcrypt_error *err)
{
    oc_manifest *const manifest = oc_txn_manifest(run->txn);
    oc_variant *variant = NULL;
    ortcrypt_status status = ORTCRYPT_OK;

    for (size_t i = 0; status == ORTCRYPT_OK && i < options->label_count; i++) {
        status = oc_pair_add(&manifest->labels, &manifest->label_count, options->label_keys[i], options->label_values[i], err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_manifest_add_variant(manifest, SOURCE_ID, "source", &variant, err);
    }
    if (status == ORTCRYPT_OK) {
        status = add_parts(run, variant, err);
    }
    if (status == ORTCRYPT_OK) {
        status = add_tensors(run, variant, err);
    }
    return status == ORTCRYPT_OK ? add_extensions(run, variant, err) : status;
}

ortcrypt_status ortcrypt_encrypt(const char *model_path, const char *bundle_path, const ortcrypt_keyring *keyring,
                                 const ortcrypt_encrypt_options *given, ortcrypt_bundle_info *info, ortcrypt_error *err)
{
    ortcrypt_encrypt_options options;
    oc_encryption run = {0};
    ortcrypt_bundle_info made;

    ortcrypt_status status = oc_options_copy(&options, sizeof options, given, "ortcrypt_encrypt_options", err);
    if (status == ORTCRYPT_OK) {
        status = check_options(model_path, bundle_path, keyring, &options, err);
    }
    if (status != ORTCRYPT_OK) {
        return status;
    }
    status = oc_encrypt_plan_make(&run.plan, model_path, &options, err);
    if (status != ORTCRYPT_OK) {
        goto out;
    }
    run.file_ids = oc_plan_alloc(run.plan->file_count, OC_ASSET_ID_LEN, "asset ids", &status, err);
    run.extra_ids = oc_plan_alloc(run.plan->extra_count, OC_ASSET_ID_LEN, "asset ids", &status, err);
    if (status == ORTCRYPT_OK) {
        status = oc_txn_create(&run.txn, bundle_path, keyring, err);
    }
    if (status == ORTCRYPT_OK) {
        oc_txn_set_threads(run.txn, options.threads);
        status = oc_progress_sum_start(&run.sum, options.monitor, "encrypting", run.plan->total_len, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_encrypt_store(&run, err);
    }
    if (status == ORTCRYPT_OK) {
        status = describe_source(&run, &options, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_txn_commit(run.txn, &made, err);
    }
    if (status == ORTCRYPT_OK && info != NULL) {
        *info = made;
    }
out:
    oc_txn_end(run.txn);
    oc_encrypt_plan_free(run.plan);
    free(run.file_ids);
    free(run.extra_ids);
    return status;
}
