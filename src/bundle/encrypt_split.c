/*
 * Embedded weights that move out of the model, because ONNX Runtime copies and parses what stands in it and borrows what does not.
 * They become one external file of the bundle, in the model's order, each at a multiple of OC_SPLIT_ALIGN: a page
 * never belongs to two of them. Nothing is copied here: the file is a view of the model's own bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/encrypt_plan.h"

#define SPLIT_FROM (64u * 1024u * 1024u) /* bytes of embedded weights above which a model is split unless told otherwise */
#define TENSOR_FROM 4096u                /* bytes; smaller tensors stay: shapes, scales, what the optimizer looks at */
#define WEIGHTS_NAME "ortcrypt.weights"
#define NAME_SIZE 64

static bool moves(const oc_onnx_tensor *tensor)
{
    return tensor->movable && tensor->raw_len >= TENSOR_FROM;
}

static bool name_taken(const oc_encrypt_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->file_count; i++) {
        if (strcmp(plan->files[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static ortcrypt_status choose_name(oc_encrypt_plan *plan, ortcrypt_error *err)
{
    char name[NAME_SIZE] = WEIGHTS_NAME;

    for (size_t i = 2; name_taken(plan, name); i++) {
        (void)snprintf(name, sizeof name, WEIGHTS_NAME ".%zu", i);
    }
    return oc_strdup(&plan->weights_name, name, err);
}

static void place_tensors(oc_encrypt_plan *plan)
{
    const oc_onnx_model *const onnx = plan->onnx;
    uint64_t end = 0;

    for (size_t i = 0; i < onnx->tensor_count; i++) {
        if (moves(&onnx->tensors[i])) { /* sums of lengths inside one model stay far below 2^64 */
            const uint64_t offset = (end + OC_SPLIT_ALIGN - 1) / OC_SPLIT_ALIGN * OC_SPLIT_ALIGN;
            plan->moved[plan->moved_count++] = (oc_plan_moved){.tensor = i, .offset = offset};
            plan->moved_len += onnx->tensors[i].raw_len;
            end = offset + onnx->tensors[i].raw_len;
        }
    }
    plan->weights_len = end;
}

ortcrypt_status oc_encrypt_plan_split(oc_encrypt_plan *plan, const ortcrypt_encrypt_options *options, ortcrypt_error *err)
{
    uint64_t len = 0;
    size_t count = 0;

    if (options->split == ORTCRYPT_SPLIT_NEVER) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status status = oc_onnx_keep_namesakes(plan->onnx, err);
    for (size_t i = 0; i < plan->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &plan->onnx->tensors[i];
        len += moves(tensor) ? tensor->raw_len : 0;
        count += moves(tensor);
    }
    if (status != ORTCRYPT_OK || count == 0 || (options->split == ORTCRYPT_SPLIT_LARGE && len <= SPLIT_FROM)) {
        if (status == ORTCRYPT_OK && options->split == ORTCRYPT_SPLIT_ALWAYS) {
            oc_notice(options->monitor, "the model has no embedded weights of %u bytes or more in its main graph, so nothing is split",
                      TENSOR_FROM);
        }
        return status;
    }
    plan->moved = oc_plan_alloc(count, sizeof *plan->moved, "the list of embedded weights", &status, err);
    if (status == ORTCRYPT_OK) {
        status = choose_name(plan, err);
    }
    if (status == ORTCRYPT_OK) {
        place_tensors(plan);
    }
    return status;
}

void oc_encrypt_plan_unsplit(oc_encrypt_plan *plan)
{
    free(plan->moved);
    free(plan->weights_name);
    plan->moved = NULL;
    plan->weights_name = NULL;
    plan->moved_count = 0;
    plan->moved_len = 0;
    plan->weights_len = 0;
}

/* The last moved tensor that begins at or before `offset` of the weights. The first begins at 0. */
static size_t find_moved(const oc_encrypt_plan *plan, uint64_t offset)
{
    size_t low = 0;
    size_t high = plan->moved_count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (plan->moved[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static ortcrypt_status read_weights(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    oc_encrypt_plan *const plan = state;
    const oc_source model = oc_input_source(&plan->model);
    uint8_t *to = buffer;
    ortcrypt_status status = ORTCRYPT_OK;

    for (size_t i = find_moved(plan, offset); status == ORTCRYPT_OK && len != 0; i++) {
        const oc_onnx_tensor *const tensor = &plan->onnx->tensors[plan->moved[i].tensor];
        const uint64_t from = offset - plan->moved[i].offset;
        const uint64_t next = i + 1 < plan->moved_count ? plan->moved[i + 1].offset : plan->weights_len;
        const size_t room = next - offset < len ? (size_t)(next - offset) : len;
        const uint64_t left = from < tensor->raw_len ? tensor->raw_len - from : 0;
        const size_t data = left < room ? (size_t)left : room;
        if (data != 0) {
            status = model.read(model.state, tensor->raw_off + from, to, data, err);
        }
        memset(to + data, 0, room - data); /* up to the next page */
        to += room;
        offset += room;
        len -= room;
    }
    return status;
}

oc_source oc_encrypt_plan_weights(oc_encrypt_plan *plan)
{
    return (oc_source){.read = read_weights, .state = plan, .size = plan->weights_len};
}
