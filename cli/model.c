/* cli/model.c: what an OrtSession takes and gives. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static ortcrypt_status read_tensor_info(const OrtApi *api, const OrtTensorTypeAndShapeInfo *info, cli_value_info *value,
                                        ortcrypt_error *err)
{
    const char *dims[CLI_RANK_MAX] = {NULL};
    ortcrypt_status st = cli_ort_check(api, api->GetTensorElementType(info, &value->type), err, "reading the type of '%s'", value->name);
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->GetDimensionsCount(info, &value->rank), err, "reading the shape of '%s'", value->name);
    }
    if (st == ORTCRYPT_OK && value->rank > CLI_RANK_MAX) {
        st = cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "'%s' has %zu dimensions; at most %d are supported", value->name, value->rank,
                      CLI_RANK_MAX);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->GetDimensions(info, value->shape, value->rank), err, "reading the shape of '%s'", value->name);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->GetSymbolicDimensions(info, dims, value->rank), err, "reading the shape of '%s'", value->name);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < value->rank; i++) {
        if (dims[i] != NULL && dims[i][0] != 0) {
            value->dims[i] = strdup(dims[i]);
            st = value->dims[i] != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
        }
    }
    return st;
}

static ortcrypt_status read_value_info(const OrtApi *api, OrtTypeInfo *type, cli_value_info *value, ortcrypt_error *err)
{
    enum ONNXType kind = ONNX_TYPE_UNKNOWN;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    ortcrypt_status st = cli_ort_check(api, api->GetOnnxTypeFromTypeInfo(type, &kind), err, "reading the type of '%s'", value->name);
    value->is_tensor = kind == ONNX_TYPE_TENSOR;
    if (st == ORTCRYPT_OK && value->is_tensor) {
        st = cli_ort_check(api, api->CastTypeInfoToTensorInfo(type, &info), err, "reading the type of '%s'", value->name);
    }
    if (st == ORTCRYPT_OK && info != NULL) {
        st = read_tensor_info(api, info, value, err);
    }
    return st;
}

/* All inputs (or all outputs) of the session. */
static ortcrypt_status read_side(const cli_model *model, bool outputs, cli_value_info **values, size_t *count, ortcrypt_error *err)
{
    const OrtApi *api = model->api;
    const OrtSession *session = model->session;
    OrtAllocator *allocator = NULL;
    size_t total = 0;
    ortcrypt_status st = cli_ort_check(api, api->GetAllocatorWithDefaultOptions(&allocator), err, "asking for the allocator");
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, outputs ? api->SessionGetOutputCount(session, &total) : api->SessionGetInputCount(session, &total), err,
                           "counting inputs and outputs");
    }
    if (st == ORTCRYPT_OK) {
        *values = calloc(total + 1, sizeof **values);
        st = *values != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < total; i++) {
        cli_value_info *value = &(*values)[i];
        OrtTypeInfo *type = NULL;
        char *name = NULL;
        *count = i + 1;
        st = cli_ort_check(api, outputs ? api->SessionGetOutputName(session, i, allocator, &name)
                                        : api->SessionGetInputName(session, i, allocator, &name),
                           err, "reading a name");
        if (st == ORTCRYPT_OK) {
            value->name = strdup(name);
            OrtStatus *ignored = api->AllocatorFree(allocator, name);
            api->ReleaseStatus(ignored);
            st = value->name != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
        }
        if (st == ORTCRYPT_OK) {
            st = cli_ort_check(api, outputs ? api->SessionGetOutputTypeInfo(session, i, &type)
                                            : api->SessionGetInputTypeInfo(session, i, &type),
                               err, "reading the type of '%s'", value->name);
        }
        if (st == ORTCRYPT_OK) {
            st = read_value_info(api, type, value, err);
        }
        api->ReleaseTypeInfo(type);
    }
    return st;
}

ortcrypt_status cli_model_open(cli_model *model, const OrtApi *api, OrtSession *session, ortcrypt_error *err)
{
    *model = (cli_model){.api = api, .session = session};
    ortcrypt_status st = read_side(model, false, &model->inputs, &model->input_count, err);
    if (st == ORTCRYPT_OK) {
        st = read_side(model, true, &model->outputs, &model->output_count, err);
    }
    if (st != ORTCRYPT_OK) {
        cli_model_close(model);
    }
    return st;
}

static void free_side(cli_value_info *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(values[i].name);
        for (size_t axis = 0; axis < CLI_RANK_MAX; axis++) {
            free(values[i].dims[axis]);
        }
    }
    free(values);
}

void cli_model_close(cli_model *model)
{
    free_side(model->inputs, model->input_count);
    free_side(model->outputs, model->output_count);
    *model = (cli_model){0};
}

void cli_value_text(char *out, size_t out_size, const cli_value_info *value)
{
    if (value->is_tensor) {
        cli_shape_text(out, out_size, value->type, value->shape, value->rank, (const char *const *)value->dims);
    } else {
        (void)snprintf(out, out_size, "no tensor");
    }
}

ortcrypt_status cli_value_make(OrtValue **out, const OrtApi *api, const cli_tensor *tensor, ortcrypt_error *err)
{
    OrtMemoryInfo *memory = NULL;
    OrtAllocator *allocator = NULL;
    OrtValue *value = NULL;
    ortcrypt_status st = ORTCRYPT_OK;
    if (tensor->strings != NULL) {
        st = cli_ort_check(api, api->GetAllocatorWithDefaultOptions(&allocator), err, "asking for the allocator");
        if (st == ORTCRYPT_OK) {
            st = cli_ort_check(api, api->CreateTensorAsOrtValue(allocator, tensor->shape, tensor->rank, tensor->type, &value), err,
                               "making a tensor of strings");
        }
        if (st == ORTCRYPT_OK) {
            st = cli_ort_check(api, api->FillStringTensor(value, (const char *const *)tensor->strings, tensor->count), err,
                               "filling a tensor of strings");
        }
    } else {
        st = cli_ort_check(api, api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory), err, "describing memory");
        if (st == ORTCRYPT_OK) {
            st = cli_ort_check(api, api->CreateTensorWithDataAsOrtValue(memory, tensor->data, tensor->len, tensor->shape, tensor->rank,
                                                                        tensor->type, &value),
                               err, "making a tensor");
        }
        api->ReleaseMemoryInfo(memory);
    }
    if (st != ORTCRYPT_OK) {
        api->ReleaseValue(value);
        return st;
    }
    *out = value;
    return ORTCRYPT_OK;
}

static ortcrypt_status copy_elements(cli_tensor *out, const OrtApi *api, const OrtValue *value, ortcrypt_error *err)
{
    const void *data = NULL;
    for (size_t i = 0; out->strings != NULL && i < out->count; i++) {
        size_t len = 0;
        ortcrypt_status st = cli_ort_check(api, api->GetStringTensorElementLength(value, i, &len), err, "reading a string");
        char *text = st == ORTCRYPT_OK ? calloc(len + 1, 1) : NULL;
        char *clean = text != NULL ? calloc(len + 1, 1) : NULL;
        if (st == ORTCRYPT_OK && clean == NULL) {
            st = cli_fail_memory(err);
        }
        if (st == ORTCRYPT_OK) {
            st = cli_ort_check(api, api->GetStringTensorElement(value, len, i, text), err, "reading a string");
        }
        if (st == ORTCRYPT_OK) {
            cli_text_clean(clean, len + 1, text);
        }
        free(text);
        out->strings[i] = clean;
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    if (out->strings != NULL || out->len == 0) {
        return ORTCRYPT_OK;
    }
    const ortcrypt_status st = cli_ort_check(api, api->GetTensorData(value, &data), err, "reading a tensor");
    if (st == ORTCRYPT_OK) {
        memcpy(out->data, data, out->len);
    }
    return st;
}

ortcrypt_status cli_value_copy(cli_tensor *out, const OrtApi *api, const OrtValue *value, ortcrypt_error *err)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    int64_t shape[CLI_RANK_MAX];
    size_t rank = 0;
    *out = (cli_tensor){0};
    ortcrypt_status st = cli_ort_check(api, api->GetTensorTypeAndShape(value, &info), err, "reading a tensor's shape");
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->GetTensorElementType(info, &type), err, "reading a tensor's type");
    }
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->GetDimensionsCount(info, &rank), err, "reading a tensor's shape");
    }
    if (st == ORTCRYPT_OK && rank > CLI_RANK_MAX) {
        st = cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "a tensor with %zu dimensions; at most %d are supported", rank, CLI_RANK_MAX);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->GetDimensions(info, shape, rank), err, "reading a tensor's shape");
    }
    api->ReleaseTensorTypeAndShapeInfo(info);
    if (st == ORTCRYPT_OK) {
        st = cli_tensor_new(out, type, shape, rank, err);
    }
    if (st == ORTCRYPT_OK) {
        st = copy_elements(out, api, value, err);
    }
    if (st != ORTCRYPT_OK) {
        cli_tensor_free(out);
    }
    return st;
}

ortcrypt_status cli_model_run(const cli_model *model, const OrtValue *const *inputs, OrtValue **outputs, ortcrypt_error *err)
{
    const char **names = calloc(model->input_count + model->output_count + 1, sizeof *names);
    if (names == NULL) {
        return cli_fail_memory(err);
    }
    for (size_t i = 0; i < model->input_count; i++) {
        names[i] = model->inputs[i].name;
    }
    for (size_t i = 0; i < model->output_count; i++) {
        names[model->input_count + i] = model->outputs[i].name;
        outputs[i] = NULL;
    }
    const ortcrypt_status st = cli_ort_check(model->api,
                                             model->api->Run(model->session, NULL, names, inputs, model->input_count,
                                                             names + model->input_count, model->output_count, outputs),
                                             err, "running the model");
    free(names);
    return st;
}
