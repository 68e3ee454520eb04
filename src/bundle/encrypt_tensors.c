/*
 * External tensors of an input model: where each one's bytes are, checked against the files beside the model. Each refusal
 * names model, tensor and data file: what stands in a model is somebody else's, and may name any file of this machine.
 * The scan has refused names and locations that are no UTF-8, locations ORT takes for memory addresses, and lengths that type and
 * shape do not give.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/encrypt_plan.h"
#include "bundle/internal.h"

static const char *tensor_text(const oc_onnx_tensor *tensor)
{
    return tensor->name != NULL && tensor->name[0] != '\0' ? tensor->name : "(unnamed)";
}

static ortcrypt_status plan_tensor(oc_encrypt_plan *plan, size_t index, ortcrypt_error *err)
{
    const oc_onnx_tensor *const tensor = &plan->onnx->tensors[index];
    oc_plan_tensor *const item = &plan->tensors[plan->tensor_count];

    const ortcrypt_status status = oc_location_normalise(&item->name, tensor->location, err);
    if (status != ORTCRYPT_OK) {
        return status;
    }
    if (item->name == NULL) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "model %s: the data file '%s' of tensor '%s' is outside the model's folder",
                       plan->model.path, tensor->location, tensor_text(tensor));
    }
    if (strcmp(item->name, oc_path_last(plan->model.path)) == 0) {
        free(item->name);
        item->name = NULL;
        return oc_fail(err, ORTCRYPT_E_INPUT, "model %s: the data file of tensor '%s' is the model itself",
                       plan->model.path, tensor_text(tensor));
    }
    item->tensor = index;
    item->offset = tensor->offset;
    item->length = tensor->length;
    plan->tensor_count++;
    return ORTCRYPT_OK;
}

static int by_file_and_offset(const void *a, const void *b)
{
    const oc_plan_tensor *const x = a;
    const oc_plan_tensor *const y = b;
    const int names = strcmp(x->name, y->name);

    if (names != 0) {
        return names;
    }
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    if (x->length != y->length) {
        return x->length < y->length ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* `before` is the last range of this file that is not empty, or NULL. Identical ranges are shared weights. */
static ortcrypt_status check_range(const oc_encrypt_plan *plan, const oc_plan_file *file, const oc_plan_tensor *before,
                                   const oc_plan_tensor *item, ortcrypt_error *err)
{
    const char *const name = tensor_text(&plan->onnx->tensors[item->tensor]);
    uint64_t end = 0;

    if (!oc_add_u64(item->offset, item->length, &end) || end > file->input.size) {
        return oc_fail(err, ORTCRYPT_E_INPUT,
                       "model %s: tensor '%s' needs %" PRIu64 " bytes from byte %" PRIu64
                       " of data file %s, which has only %" PRIu64,
                       plan->model.path, name, item->length, item->offset, file->path, file->input.size);
    }
    if (before == NULL || item->length == 0 || item->offset >= before->offset + before->length ||
        (item->offset == before->offset && item->length == before->length)) {
        return ORTCRYPT_OK;
    }
    return oc_fail(err, ORTCRYPT_E_INPUT, "model %s: tensors '%s' and '%s' overlap in data file %s", plan->model.path,
                   tensor_text(&plan->onnx->tensors[before->tensor]), name, file->path);
}

static ortcrypt_status lazy_read(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    oc_plan_file *const file = state;
    oc_encrypt_plan *const plan = file->plan;

    if (plan->lazy_open != file) {
        if (plan->lazy_open != NULL) {
            oc_input_close(&plan->lazy_open->input);
            plan->lazy_open = NULL;
        }
        const ortcrypt_status status = oc_input_open(&file->input, err);
        if (status != ORTCRYPT_OK) {
            return status;
        }
        plan->lazy_open = file;
    }
    const oc_source source = oc_input_source(&file->input);
    return source.read(source.state, offset, buffer, len, err);
}

/* Looks at the file of tensors[first] and takes its name over. */
static ortcrypt_status plan_file(oc_encrypt_plan *plan, oc_plan_tensor *first, ortcrypt_error *err)
{
    oc_plan_file *const file = &plan->files[plan->file_count++];

    *file = (oc_plan_file){.input = OC_INPUT(NULL), .name = first->name, .plan = plan};
    first->name = NULL;
    file->path = oc_path_beside(plan->model.path, file->name);
    if (file->path == NULL) {
        return oc_fail_memory(err, strlen(plan->model.path), "the path of a data file");
    }
    file->input.path = file->path;
    const ortcrypt_status status = oc_input_look(&file->input, "data file", err);
    if (status != ORTCRYPT_OK) {
        char what[256];
        (void)snprintf(what, sizeof what, "tensor '%.200s'", tensor_text(&plan->onnx->tensors[first->tensor]));
        (void)oc_fail_in(status, what, err);
        return oc_fail_in(status, plan->model.path, err);
    }
    oc_input_close(&file->input);
    file->lazy = (oc_source){.read = lazy_read, .state = file, .size = file->input.size};
    return oc_add_u64(plan->total_len, file->input.size, &plan->total_len)
               ? ORTCRYPT_OK
               : oc_fail(err, ORTCRYPT_E_LIMIT, "model %s: its data files are too large", plan->model.path);
}

/* tensors are sorted: each run of one name is one file. */
static ortcrypt_status plan_files(oc_encrypt_plan *plan, ortcrypt_error *err)
{
    const oc_plan_tensor *before = NULL;
    ortcrypt_status status = ORTCRYPT_OK;

    for (size_t i = 0; status == ORTCRYPT_OK && i < plan->tensor_count; i++) {
        oc_plan_tensor *const item = &plan->tensors[i];
        if (plan->file_count == 0 || strcmp(plan->files[plan->file_count - 1].name, item->name) != 0) {
            before = NULL;
            status = plan_file(plan, item, err);
        }
        if (status == ORTCRYPT_OK) {
            item->file = plan->file_count - 1;
            status = check_range(plan, &plan->files[item->file], before, item, err);
        }
        if (item->length != 0) {
            before = item;
        }
    }
    return status;
}

ortcrypt_status oc_encrypt_plan_tensors(oc_encrypt_plan *plan, ortcrypt_error *err)
{
    const oc_onnx_model *const onnx = plan->onnx;
    ortcrypt_status status = ORTCRYPT_OK;
    size_t external = 0;

    for (size_t i = 0; i < onnx->tensor_count; i++) {
        external += onnx->tensors[i].external;
    }
    plan->tensors = oc_plan_alloc(external, sizeof *plan->tensors, "the list of external tensors", &status, err);
    plan->files = oc_plan_alloc(external, sizeof *plan->files, "the list of data files", &status, err);
    for (size_t i = 0; status == ORTCRYPT_OK && i < onnx->tensor_count; i++) {
        if (onnx->tensors[i].external) {
            status = plan_tensor(plan, i, err);
        }
    }
    if (status == ORTCRYPT_OK && plan->tensor_count != 0) {
        qsort(plan->tensors, plan->tensor_count, sizeof *plan->tensors, by_file_and_offset);
        status = plan_files(plan, err);
    }
    return status;
}
