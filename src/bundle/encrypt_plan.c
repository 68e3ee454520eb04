/* The plan of an encryption: model and extra files here, tensors and edits beside it. */
#include "bundle/encrypt_plan.h"

#include <stdlib.h>
#include <string.h>

void *oc_plan_alloc(size_t count, size_t size, const char *what, ortcrypt_status *status, ortcrypt_error *err)
{
    void *const array = calloc(count == 0 ? 1 : count, size);

    if (array == NULL) {
        *status = oc_fail_memory(err, (uint64_t)count * size, what);
    }
    return array;
}

static ortcrypt_status check_file_name(const char *name, const char *role, const char *path, ortcrypt_error *err)
{
    if (!oc_name_valid(name, strlen(name))) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "%s %s: its name is not 1 to %d bytes of UTF-8", role, path, OC_NAME_MAX);
    }
    return ORTCRYPT_OK;
}

/* A second file of that name could not be given back by decrypt. */
static ortcrypt_status check_name_free(const oc_encrypt_plan *plan, size_t extra, ortcrypt_error *err)
{
    const oc_plan_file *const file = &plan->extras[extra];

    for (size_t i = 0; i < extra; i++) {
        if (strcmp(plan->extras[i].name, file->name) == 0) {
            return oc_fail(err, ORTCRYPT_E_INPUT, "extra files %s and %s have the same name %s", plan->extras[i].path,
                           file->path, file->name);
        }
    }
    for (size_t i = 0; i < plan->file_count; i++) {
        if (strcmp(plan->files[i].name, file->name) == 0) {
            return oc_fail(err, ORTCRYPT_E_INPUT, "extra file %s has the name of an external data file of model %s",
                           file->path, plan->model.path);
        }
    }
    if (strcmp(oc_path_last(plan->model.path), file->name) == 0) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "extra file %s has the name of the model %s", file->path, plan->model.path);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status plan_extras(oc_encrypt_plan *plan, const ortcrypt_encrypt_options *options, ortcrypt_error *err)
{
    ortcrypt_status status = ORTCRYPT_OK;

    plan->extras = oc_plan_alloc(options->extra_count, sizeof *plan->extras, "the list of extra files", &status, err);
    for (size_t i = 0; status == ORTCRYPT_OK && i < options->extra_count; i++) {
        oc_plan_file *const file = &plan->extras[i];
        *file = (oc_plan_file){.input = OC_INPUT(NULL)};
        plan->extra_count++;
        if (options->extra_files[i] == NULL) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "extra file %zu of the options is NULL", i);
        }
        status = oc_strdup(&file->path, options->extra_files[i], err);
        if (status == ORTCRYPT_OK) {
            status = oc_strdup(&file->name, oc_path_last(file->path), err);
        }
        if (status == ORTCRYPT_OK) {
            file->input.path = file->path;
            status = oc_input_look(&file->input, "extra file", err);
        }
        if (status == ORTCRYPT_OK) {
            oc_input_close(&file->input); /* opened again when its turn comes: there may be more of them than descriptors */
            status = check_file_name(file->name, "extra file", file->path, err);
        }
        if (status == ORTCRYPT_OK) {
            status = check_name_free(plan, i, err);
        }
        plan->total_len += file->input.size;
    }
    return status;
}

/* Its engine would be left behind in the clear: it is a file beside the model that no tensor names. */
static ortcrypt_status refuse_compiled(const oc_onnx_model *onnx, const char *model_path, ortcrypt_error *err)
{
    if (onnx->ep_context_count == 0) {
        return ORTCRYPT_OK;
    }
    (void)oc_fail(err, ORTCRYPT_E_INPUT, "model %s is compiled already (EPContext nodes of %s)", model_path,
                  onnx->ep_contexts[0].source[0] != '\0' ? onnx->ep_contexts[0].source : "an execution provider");
    oc_hint(err, "encrypt the original model, then compile the bundle");
    return ORTCRYPT_E_INPUT;
}

ortcrypt_status oc_encrypt_plan_make(oc_encrypt_plan **out, const char *model_path,
                                     const ortcrypt_encrypt_options *options, ortcrypt_error *err)
{
    ortcrypt_status status = ORTCRYPT_OK;

    *out = NULL;
    oc_encrypt_plan *const plan = oc_plan_alloc(1, sizeof *plan, "the encryption plan", &status, err);
    if (plan == NULL) {
        return status;
    }
    plan->model = OC_INPUT(model_path);
    status = oc_input_look(&plan->model, "model", err);
    if (status == ORTCRYPT_OK) {
        status = check_file_name(oc_path_last(model_path), "model", model_path, err);
    }
    if (status == ORTCRYPT_OK) {
        const oc_source source = oc_input_source(&plan->model);
        plan->total_len = plan->model.size;
        status = oc_onnx_scan(&plan->onnx, &source, model_path, err);
    }
    if (status == ORTCRYPT_OK) {
        status = refuse_compiled(plan->onnx, model_path, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_encrypt_plan_tensors(plan, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_encrypt_plan_split(plan, options, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_encrypt_plan_edits(plan, err);
    }
    if (status == ORTCRYPT_OK) {
        status = plan_extras(plan, options, err);
    }
    if (status != ORTCRYPT_OK) {
        oc_encrypt_plan_free(plan);
        return status;
    }
    *out = plan;
    return ORTCRYPT_OK;
}

static void free_files(oc_plan_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        oc_input_close(&files[i].input);
        free(files[i].path);
        free(files[i].name);
    }
    free(files);
}

void oc_encrypt_plan_free(oc_encrypt_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; plan->tensors != NULL && i < plan->tensor_count; i++) {
        free(plan->tensors[i].name);
    }
    free(plan->tensors);
    oc_encrypt_plan_unsplit(plan);
    free(plan->edits);
    free_files(plan->files, plan->file_count);
    free_files(plan->extras, plan->extra_count);
    oc_onnx_model_free(plan->onnx);
    oc_input_close(&plan->model);
    free(plan);
}
