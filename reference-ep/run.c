/*
 * One run: the kernel's inputs are lent to the inner session; its outputs, whose shapes are known only afterwards, are copied
 * into the kernel's. A model may declare a wrong output shape (ORT only warns), so nothing is bound beforehand.
 */
#include <stdlib.h>
#include <string.h>

#include "reference_ep.h"

/* Text may hold NULs, so each element is fetched with its length. */
static OrtStatus *copy_strings(const OrtApi *api, const OrtValue *from, OrtValue *to, size_t count)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        size_t len = 0;
        char *place = NULL;
        status = api->GetStringTensorElementLength(from, i, &len);
        if (status == NULL) {
            status = api->GetResizedStringTensorElementBuffer(to, i, len, &place);
        }
        if (status == NULL && len != 0) {
            status = api->GetStringTensorElement(from, len, i, place);
        }
    }
    return status;
}

static OrtStatus *copy_bytes(const OrtApi *api, const OrtValue *from, OrtValue *to)
{
    size_t len = 0;
    size_t room = 0;
    const void *source = NULL;
    void *target = NULL;
    OrtStatus *status = api->GetTensorSizeInBytes(from, &len);
    if (status == NULL) {
        status = api->GetTensorSizeInBytes(to, &room);
    }
    if (status == NULL && len != room) {
        status = oc_ref_status(api, ORT_FAIL, "an engine's output has %zu bytes where %zu were expected", len, room);
    }
    if (status == NULL) {
        status = api->GetTensorData(from, &source);
    }
    if (status == NULL) {
        status = api->GetTensorMutableData(to, &target);
    }
    if (status == NULL && len != 0) {
        memcpy(target, source, len);
    }
    return status;
}

static OrtStatus *give_output(const OrtApi *api, OrtKernelContext *context, size_t index, const OrtValue *value)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    int64_t *dims = NULL;
    size_t rank = 0;
    size_t count = 0;
    OrtValue *output = NULL; /* the kernel's */
    OrtStatus *status = api->GetTensorTypeAndShape(value, &info);
    if (status == NULL) {
        status = api->GetTensorElementType(info, &type);
    }
    if (status == NULL) {
        status = api->GetDimensionsCount(info, &rank);
    }
    if (status == NULL) {
        status = api->GetTensorShapeElementCount(info, &count);
    }
    if (status == NULL) {
        dims = calloc(rank + 1, sizeof(*dims));
        status =
            dims == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for a shape") : api->GetDimensions(info, dims, rank);
    }
    if (status == NULL) {
        status = api->KernelContext_GetOutput(context, index, dims, rank, &output);
    }
    if (status == NULL && output != NULL) { /* NULL: nobody wants it */
        status = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ? copy_strings(api, value, output, count)
                                                              : copy_bytes(api, value, output);
    }
    if (info != NULL) {
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    free(dims);
    return status;
}

/* The engine and the node around it must agree, which a model put together by hand need not. */
static OrtStatus *check_counts(const OrtApi *api, const OrtKernelContext *context, size_t input_count,
                               size_t output_count)
{
    size_t inputs = 0;
    size_t outputs = 0;
    OrtStatus *status = api->KernelContext_GetInputCount(context, &inputs);
    if (status == NULL) {
        status = api->KernelContext_GetOutputCount(context, &outputs);
    }
    if (status == NULL && (inputs != input_count || outputs != output_count)) {
        status = oc_ref_status(api, ORT_INVALID_GRAPH,
                               "the engine has %zu inputs and %zu outputs, its EPContext node %zu and %zu", input_count,
                               output_count, inputs, outputs);
    }
    return status;
}

OrtStatus *oc_ref_run(const OrtApi *api, OrtSession *session, const char *const *input_names, size_t input_count,
                      const char *const *output_names, size_t output_count, OrtKernelContext *context)
{
    OrtStatus *status = check_counts(api, context, input_count, output_count);
    if (status != NULL) {
        return status;
    }
    const OrtValue **const inputs = calloc(input_count + 1, sizeof(*inputs)); /* lent */
    OrtValue **const outputs = calloc(output_count + 1, sizeof(*outputs));    /* ours */
    if (inputs == NULL || outputs == NULL) {
        status = oc_ref_status(api, ORT_FAIL, "no memory for a run");
    }
    for (size_t i = 0; i < input_count && status == NULL; i++) {
        status = api->KernelContext_GetInput(context, i, &inputs[i]);
    }
    if (status == NULL) {
        status = api->Run(session, NULL, input_names, inputs, input_count, output_names, output_count, outputs);
    }
    for (size_t i = 0; i < output_count && status == NULL; i++) {
        status = give_output(api, context, i, outputs[i]);
        api->ReleaseValue(outputs[i]); /* early: only one is there twice */
        outputs[i] = NULL;
    }
    for (size_t i = 0; outputs != NULL && i < output_count; i++) {
        if (outputs[i] != NULL) {
            api->ReleaseValue(outputs[i]);
        }
    }
    free(inputs);
    free(outputs);
    return status;
}
