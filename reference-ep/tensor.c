/* OrtValue -> TensorProto. Fields: dims 1, data_type 2, string_data 6, name 8, raw_data 9 (onnx.proto). */
#include <stdlib.h>
#include <string.h>

#include "reference_ep.h"

enum { FIELD_DIMS = 1, FIELD_DATA_TYPE = 2, FIELD_STRING_DATA = 6, FIELD_NAME = 8, FIELD_RAW_DATA = 9 };

int oc_ref_onnx_type(ONNXTensorElementDataType type)
{
    const int number = (int)type;
    if (number >= 1 && number <= 23) {
        return number; /* the same numbers up to FLOAT4E2M1 */
    }
    switch (number) {
    case 24: /* ORT's UINT2 */
        return 25;
    case 25: /* INT2 */
        return 26;
    case 26: /* FLOAT8E8M0 */
        return 24;
    default:
        return 0;
    }
}

/* Shape and type of a tensor; *dims is heap. */
static OrtStatus *describe(const OrtApi *api, const OrtValue *value, ONNXTensorElementDataType *type, int64_t **dims,
                           size_t *rank, size_t *count)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    int64_t *shape = NULL;
    OrtStatus *status = api->GetTensorTypeAndShape(value, &info);
    if (status == NULL) {
        status = api->GetTensorElementType(info, type);
    }
    if (status == NULL) {
        status = api->GetDimensionsCount(info, rank);
    }
    if (status == NULL) {
        status = api->GetTensorShapeElementCount(info, count);
    }
    if (status == NULL) {
        shape = calloc(*rank + 1, sizeof(*shape));
        status = shape == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for a shape")
                               : api->GetDimensions(info, shape, *rank);
    }
    if (info != NULL) {
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    if (status != NULL) {
        free(shape);
        return status;
    }
    *dims = shape;
    return NULL;
}

OrtStatus *oc_ref_tensor_size(const OrtApi *api, const OrtValue *value, size_t *len)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    OrtStatus *status = api->GetTensorTypeAndShape(value, &info);
    if (status == NULL) {
        status = api->GetTensorElementType(info, &type);
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    if (status != NULL) {
        return status;
    }
    return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ? api->GetStringTensorDataLength(value, len)
                                                        : api->GetTensorSizeInBytes(value, len);
}

static OrtStatus *put_strings(const OrtApi *api, oc_ref_bytes *bytes, const OrtValue *value, size_t count)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        size_t len = 0;
        char *text = NULL;
        status = api->GetStringTensorElementLength(value, i, &len);
        if (status == NULL) {
            text = malloc(len + 1);
            status = text == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for a string")
                                  : api->GetStringTensorElement(value, len, i, text);
        }
        if (status == NULL) {
            oc_ref_put_data(bytes, FIELD_STRING_DATA, text, len);
        }
        free(text);
    }
    return status;
}

static OrtStatus *put_raw(const OrtApi *api, oc_ref_bytes *bytes, const OrtValue *value)
{
    const void *data = NULL;
    size_t len = 0;
    OrtStatus *status = api->GetTensorSizeInBytes(value, &len);
    if (status == NULL) {
        status = api->GetTensorData(value, &data);
    }
    if (status == NULL) {
        oc_ref_put_data(bytes, FIELD_RAW_DATA, data, len);
    }
    return status;
}

OrtStatus *oc_ref_put_tensor(const OrtApi *api, oc_ref_bytes *bytes, unsigned field, const char *name,
                             const OrtValue *value)
{
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    int64_t *dims = NULL;
    size_t rank = 0;
    size_t count = 0;
    OrtStatus *status = describe(api, value, &type, &dims, &rank, &count);
    if (status != NULL) {
        return status;
    }
    const int onnx_type = oc_ref_onnx_type(type);
    if (onnx_type == 0) {
        status =
            oc_ref_status(api, ORT_NOT_IMPLEMENTED, "tensor \"%.200s\" has the element type %d, which is not known",
                          name != NULL ? name : "", (int)type);
        goto out;
    }
    const size_t mark = oc_ref_begin(bytes, field);
    for (size_t i = 0; i < rank; i++) {
        oc_ref_put_int(bytes, FIELD_DIMS, dims[i]);
    }
    oc_ref_put_int(bytes, FIELD_DATA_TYPE, onnx_type);
    if (name != NULL) {
        oc_ref_put_text(bytes, FIELD_NAME, name);
    }
    status = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ? put_strings(api, bytes, value, count)
                                                          : put_raw(api, bytes, value);
    oc_ref_end(bytes, mark);
out:
    free(dims);
    return status;
}
