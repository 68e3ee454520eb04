/*
 * What must be rewritten in an input model. ONNX Runtime takes external data from memory only for initializers of the main
 * graph, found by their plain location: everything else would make it open a file. So external tensors of subgraphs,
 * functions, attributes and sparse tensors move into the model, and other spellings of a location become the plain one.
 * Embedded weights that move out of the model (bundle/encrypt_split.c) are edits too.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/encrypt_plan.h"

#define MODEL_MAX INT32_MAX /* bytes; protobuf's own limit */

/* One "./" in front is the same to ONNX Runtime's lookup; every other spelling is not. */
static bool must_relocate(const oc_onnx_tensor *tensor, const char *name)
{
    const char *const location = tensor->location;

    return !oc_onnx_location_plain(location) || strcmp(strncmp(location, "./", 2) == 0 ? location + 2 : location, name) != 0;
}

/* The scan lists tensors in the order of the file. */
static int by_place(const void *a, const void *b)
{
    const oc_onnx_edit *const x = a;
    const oc_onnx_edit *const y = b;

    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static ortcrypt_status check_size(const oc_encrypt_plan *plan, uint64_t inlined_len, const oc_onnx_tensor *first,
                                  size_t inlined_count, ortcrypt_error *err)
{
    uint64_t len = 0;

    if (oc_add_u64(plan->model.size - plan->moved_len, inlined_len, &len) && len <= MODEL_MAX) {
        return ORTCRYPT_OK;
    }
    return oc_fail(err, ORTCRYPT_E_INPUT,
                   "model %s: %zu external tensors are not initializers of the main graph (the first is '%s'); they must move "
                   "into the model, which would make it 2 GiB or more",
                   plan->model.path, inlined_count, first->name != NULL ? first->name : "");
}

/* Sizes of what the edits put into the model. */
typedef struct inlined {
    const oc_onnx_tensor *first;
    uint64_t len;
    size_t count;
} inlined;

static void add_external(oc_encrypt_plan *plan, const oc_plan_tensor *item, inlined *sum)
{
    const oc_onnx_tensor *const tensor = &plan->onnx->tensors[item->tensor];
    const oc_plan_file *const file = &plan->files[item->file];

    if (tensor->main_graph && !must_relocate(tensor, file->name)) {
        return;
    }
    plan->edits[plan->edit_count++] = (oc_onnx_edit){
        .tensor = item->tensor,
        .kind = tensor->main_graph ? OC_EDIT_RELOCATE : OC_EDIT_INLINE,
        .source = &file->lazy,
        .location = file->name,
        .offset = item->offset,
        .length = item->length,
    };
    if (!tensor->main_graph) {
        sum->first = sum->count++ == 0 ? tensor : sum->first;
        if (!oc_add_u64(sum->len, item->length, &sum->len)) {
            sum->len = UINT64_MAX;
        }
    }
}

ortcrypt_status oc_encrypt_plan_edits(oc_encrypt_plan *plan, ortcrypt_error *err)
{
    inlined sum = {0};
    ortcrypt_status status = ORTCRYPT_OK;

    free(plan->edits);
    plan->edit_count = 0;
    plan->edits =
        oc_plan_alloc(plan->tensor_count + plan->moved_count, sizeof *plan->edits, "the list of edits", &status, err);
    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->tensor_count; i++) {
        add_external(plan, &plan->tensors[i], &sum);
    }
    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->moved_count; i++) {
        plan->edits[plan->edit_count++] = (oc_onnx_edit){.tensor = plan->moved[i].tensor,
                                                         .kind = OC_EDIT_RELOCATE,
                                                         .location = plan->weights_name,
                                                         .offset = plan->moved[i].offset,
                                                         .length = plan->onnx->tensors[plan->moved[i].tensor].raw_len};
    }
    if (status != ORTCRYPT_OK || plan->edit_count == 0) {
        return status;
    }
    qsort(plan->edits, plan->edit_count, sizeof *plan->edits, by_place);
    if (sum.count != 0) {
        status = check_size(plan, sum.len, sum.first, sum.count, err);
    }
    if (!oc_add_u64(plan->total_len, plan->model.size, &plan->total_len) ||
        !oc_add_u64(plan->total_len, sum.len, &plan->total_len)) {
        plan->total_len = 0; /* not known */
    }
    return status;
}
