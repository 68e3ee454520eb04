/*
 * bundle/encrypt_store.c: plaintext files -> assets of the transaction. The model goes in as it is, rewritten, or split.
 * Peak memory does not grow with the model: pieces of 1 MiB, one a thread.
 */
#include "bundle/encrypt_store.h"

#include <stdlib.h>
#include <string.h>

#include "bundle/split.h"
#include "format/recipe.h"

#define COMPARE_LEN (256u * 1024u)

static ortcrypt_status store_input(oc_encryption *run, oc_input *input, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    ortcrypt_status status = oc_input_open(input, err);
    if (status == ORTCRYPT_OK) {
        const oc_source source = oc_input_source(input);
        status = oc_txn_put_source(run->txn, &source, run->sum.step, &run->sum.monitor, id, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_input_same(input, err);
    }
    oc_input_close(input);
    if (status == ORTCRYPT_OK) {
        status = oc_progress_sum_add(&run->sum, input->size, err);
    }
    return status;
}

typedef struct rewrite_push {
    oc_asset_writer *writer;
    oc_progress_sum *sum;
} rewrite_push;

static ortcrypt_status push_rewritten(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    const rewrite_push *const push = state;

    const ortcrypt_status status = oc_asset_writer_push(push->writer, data, len, err);
    return status == ORTCRYPT_OK ? oc_progress_sum_add(push->sum, len, err) : status;
}

/* What the plan's edits make of the original, sealed while it is made: the recipe of a split model, or the model itself. */
static ortcrypt_status store_edited(oc_encryption *run, bool recipe, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    const oc_encrypt_plan *const plan = run->plan;
    const oc_source source = oc_input_source(&run->plan->model);
    oc_asset_writer *writer = NULL;

    ortcrypt_status status = oc_asset_writer_open(&writer, run->txn, err);
    if (status == ORTCRYPT_OK) {
        rewrite_push push = {writer, &run->sum};
        status = recipe ? oc_recipe_make(plan->onnx, &source, plan->edits, plan->edit_count, push_rewritten, &push, err)
                        : oc_onnx_rewrite(plan->onnx, &source, plan->edits, plan->edit_count, push_rewritten, &push, NULL, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_asset_writer_finish(writer, id, err);
    }
    oc_asset_writer_close(writer);
    return status;
}

/* The model that ONNX Runtime will get, spliced from the original and the data files. */
static ortcrypt_status store_rewritten(oc_encryption *run, ortcrypt_error *err)
{
    oc_encrypt_plan *const plan = run->plan;
    const ortcrypt_status status = store_edited(run, false, run->model_id, err);

    if (plan->lazy_open != NULL) {
        oc_input_close(&plan->lazy_open->input);
        plan->lazy_open = NULL;
    }
    return status;
}

typedef struct comparison {
    oc_source original;
    oc_progress_sum *sum;
    uint64_t pos;
    uint8_t *buffer; /* of `room` bytes */
    size_t room;
    bool differs;
} comparison;

static ortcrypt_status compare_pushed(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    comparison *const c = state;

    for (size_t done = 0; done < len;) {
        const size_t part = len - done < c->room ? len - done : c->room;
        ortcrypt_status status = c->original.read(c->original.state, c->pos, c->buffer, part, err);
        if (status == ORTCRYPT_OK && memcmp(c->buffer, (const uint8_t *)data + done, part) != 0) {
            c->differs = true;
            status = oc_fail(err, ORTCRYPT_E_INPUT, "the split model does not give the original back");
        }
        if (status != ORTCRYPT_OK) {
            return status;
        }
        c->pos += part;
        done += part;
    }
    return oc_progress_sum_add(c->sum, len, err);
}

/* Restores the original from what was stored just now, as decrypt will, and compares every byte with the file. */
static ortcrypt_status prove_split(oc_encryption *run, bool *proven, ortcrypt_error *err)
{
    const oc_manifest *const manifest = oc_txn_manifest(run->txn);
    const oc_split split = {.weights = oc_manifest_find_asset(manifest, run->weights_id),
                            .recipe = oc_manifest_find_asset(manifest, run->recipe_id),
                            .size = run->plan->model.size};
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;
    comparison c = {.original = oc_input_source(&run->plan->model), .sum = &run->sum, .room = COMPARE_LEN};

    c.buffer = malloc(COMPARE_LEN);
    if (c.buffer == NULL) {
        return oc_fail_memory(err, COMPARE_LEN, "comparing the model");
    }
    ortcrypt_status status = oc_split_restore(oc_txn_view(run->txn), oc_manifest_find_asset(manifest, run->model_id), &split,
                                              compare_pushed, &c, run->sha256, &reason);
    *proven = status == ORTCRYPT_OK;
    if (c.differs || (status == ORTCRYPT_E_NOT_AUTHENTIC && reason.asset[0] == '\0')) { /* the latter: a recipe that cannot be followed */
        status = ORTCRYPT_OK;
    } else if (status != ORTCRYPT_OK && err != NULL) {
        *err = reason;
    }
    oc_wipe(c.buffer, COMPARE_LEN);
    free(c.buffer);
    return status;
}

/* Weights, split model and recipe; all of them go again when they do not give the original back. */
static ortcrypt_status store_split(oc_encryption *run, ortcrypt_error *err)
{
    oc_encrypt_plan *const plan = run->plan;
    const oc_source weights = oc_encrypt_plan_weights(plan);
    bool proven = false;

    ortcrypt_status status =
        oc_txn_put_source(run->txn, &weights, run->sum.step, &run->sum.monitor, run->weights_id, err);
    if (status == ORTCRYPT_OK) {
        status = oc_progress_sum_add(&run->sum, plan->weights_len, err);
    }
    if (status == ORTCRYPT_OK) {
        status = store_rewritten(run, err);
    }
    if (status == ORTCRYPT_OK) {
        status = store_edited(run, true, run->recipe_id, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_input_same(&plan->model, err);
    }
    if (status == ORTCRYPT_OK) {
        status = prove_split(run, &proven, err);
    }
    if (status != ORTCRYPT_OK || proven) {
        return status;
    }
    oc_notice(run->sum.user, "model %s is not split: put together again it was not the same file", plan->model.path);
    const uint8_t *const dropped[] = {run->weights_id, run->model_id, run->recipe_id};
    for (size_t i = 0; status == ORTCRYPT_OK && i < sizeof dropped / sizeof dropped[0]; i++) {
        status = oc_txn_drop_asset(run->txn, dropped[i], err);
    }
    oc_encrypt_plan_unsplit(plan);
    return status == ORTCRYPT_OK ? oc_encrypt_plan_edits(plan, err) : status;
}

/* The model as it is, or split, or rewritten with its original bytes beside it. */
static ortcrypt_status store_model(oc_encryption *run, ortcrypt_error *err)
{
    oc_encrypt_plan *const plan = run->plan;
    ortcrypt_status status = ORTCRYPT_OK;

    if (plan->moved_count != 0) {
        status = store_split(run, err);
    }
    if (status != ORTCRYPT_OK || plan->moved_count != 0) {
        return status;
    }
    if (plan->edit_count != 0) {
        status = store_rewritten(run, err);
    }
    return status == ORTCRYPT_OK ? store_input(run, &plan->model, plan->edit_count != 0 ? run->original_id : run->model_id, err)
                                 : status;
}

ortcrypt_status oc_encrypt_store(oc_encryption *run, ortcrypt_error *err)
{
    oc_encrypt_plan *const plan = run->plan;
    ortcrypt_status status = store_model(run, err);

    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->file_count; i++) {
        status = store_input(run, &plan->files[i].input, run->file_ids[i], err);
    }
    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->extra_count; i++) {
        status = store_input(run, &plan->extras[i].input, run->extra_ids[i], err);
    }
    return status == ORTCRYPT_OK ? oc_progress_sum_end(&run->sum, err) : status;
}
