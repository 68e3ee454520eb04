/*
 * OrtOpAttr -> AttributeProto. Fields: name 1, f 2, i 3, s 4, t 5, floats 7, ints 8, strings 9, type 20; types FLOAT 1, INT 2,
 * STRING 3, TENSOR 4, FLOATS 6, INTS 7, STRINGS 8 (onnx.proto).
 */
#include <stdlib.h>
#include <string.h>

#include "reference_ep.h"

enum { FIELD_NODE_ATTRIBUTE = 5 };
enum {
    FIELD_NAME = 1,
    FIELD_F = 2,
    FIELD_I = 3,
    FIELD_S = 4,
    FIELD_T = 5,
    FIELD_FLOATS = 7,
    FIELD_INTS = 8,
    FIELD_STRINGS = 9,
    FIELD_TYPE = 20
};

/* AttributeProto.type of ORT's, or 0 for what an engine cannot hold. */
static int onnx_attribute_type(OrtOpAttrType type)
{
    switch (type) {
    case ORT_OP_ATTR_FLOAT:
        return 1;
    case ORT_OP_ATTR_INT:
        return 2;
    case ORT_OP_ATTR_STRING:
        return 3;
    case ORT_OP_ATTR_TENSOR:
        return 4;
    case ORT_OP_ATTR_FLOATS:
        return 6;
    case ORT_OP_ATTR_INTS:
        return 7;
    case ORT_OP_ATTR_STRINGS:
        return 8;
    default:
        return 0;
    }
}

/* All attributes of a node; *list is heap. */
static OrtStatus *attributes_of(const OrtApi *api, const OrtNode *node, const OrtOpAttr ***list, size_t *count)
{
    OrtStatus *status = api->Node_GetNumAttributes(node, count);
    if (status != NULL) {
        return status;
    }
    const OrtOpAttr **const found = calloc(*count + 1, sizeof(*found));
    if (found == NULL) {
        return oc_ref_status(api, ORT_FAIL, "no memory for attributes");
    }
    status = *count != 0 ? api->Node_GetAttributes(node, found, *count) : NULL;
    if (status != NULL) {
        free(found);
        return status;
    }
    *list = found;
    return NULL;
}

OrtStatus *oc_ref_attributes_known(const OrtApi *api, const OrtNode *node, bool *known)
{
    const OrtOpAttr **list = NULL;
    size_t count = 0;
    OrtStatus *status = attributes_of(api, node, &list, &count);
    bool all = true;
    for (size_t i = 0; i < count && status == NULL && all; i++) {
        OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
        OrtStatus *const unknown = api->OpAttr_GetType(list[i], &type); /* an error for types ORT has no number for */
        if (unknown != NULL) {
            api->ReleaseStatus(unknown);
        }
        all = unknown == NULL && (onnx_attribute_type(type) != 0 || type == ORT_OP_ATTR_GRAPH);
    }
    free(list);
    if (status == NULL) {
        *known = all;
    }
    return status;
}

/* Content of a list or string attribute; *data is heap, a NUL follows it; *len in bytes as ReadOpAttr counts. */
static OrtStatus *read_content(const OrtApi *api, const OrtOpAttr *attribute, OrtOpAttrType type, void **data,
                               size_t *len)
{
    size_t need = 0;
    char none = 0;
    OrtStatus *const too_small = api->ReadOpAttr(attribute, type, &none, 0, &need); /* tells how much it needs */
    if (too_small != NULL) {
        api->ReleaseStatus(too_small);
    }
    char *const content = calloc(1, need + 1);
    if (content == NULL) {
        return oc_ref_status(api, ORT_FAIL, "no memory for an attribute of %zu bytes", need);
    }
    size_t got = 0;
    if (need != 0) {
        OrtStatus *const status = api->ReadOpAttr(attribute, type, content, need, &got);
        if (status != NULL) {
            free(content);
            return status;
        }
    }
    *data = content;
    *len = got;
    return NULL;
}

static OrtStatus *put_list(const OrtApi *api, oc_ref_bytes *bytes, const OrtOpAttr *attribute, OrtOpAttrType type)
{
    void *content = NULL;
    size_t len = 0;
    OrtStatus *const status = read_content(api, attribute, type, &content, &len);
    if (status != NULL) {
        return status;
    }
    const char *const at = content;
    switch (type) {
    case ORT_OP_ATTR_STRING:
        oc_ref_put_data(bytes, FIELD_S, at, len);
        break;
    case ORT_OP_ATTR_STRINGS: /* one after the other, each with a final NUL */
        for (size_t done = 0; done < len; done += strlen(at + done) + 1) {
            oc_ref_put_text(bytes, FIELD_STRINGS, at + done);
        }
        break;
    case ORT_OP_ATTR_FLOATS:
        for (size_t done = 0; done + sizeof(float) <= len; done += sizeof(float)) {
            float value = 0;
            memcpy(&value, at + done, sizeof(value));
            oc_ref_put_float(bytes, FIELD_FLOATS, value);
        }
        break;
    default: /* INTS */
        for (size_t done = 0; done + sizeof(int64_t) <= len; done += sizeof(int64_t)) {
            int64_t value = 0;
            memcpy(&value, at + done, sizeof(value));
            oc_ref_put_int(bytes, FIELD_INTS, value);
        }
        break;
    }
    free(content);
    return NULL;
}

static OrtStatus *put_value(const OrtApi *api, oc_ref_bytes *bytes, const OrtOpAttr *attribute, OrtOpAttrType type)
{
    OrtStatus *status = NULL;
    size_t len = 0;
    int64_t number = 0;
    float real = 0;
    OrtValue *tensor = NULL;
    switch (type) {
    case ORT_OP_ATTR_INT:
        status = api->ReadOpAttr(attribute, type, &number, sizeof(number), &len);
        oc_ref_put_int(bytes, FIELD_I, number);
        return status;
    case ORT_OP_ATTR_FLOAT:
        status = api->ReadOpAttr(attribute, type, &real, sizeof(real), &len);
        oc_ref_put_float(bytes, FIELD_F, real);
        return status;
    case ORT_OP_ATTR_TENSOR:
        status = api->OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor);
        if (status == NULL) {
            status = oc_ref_put_tensor(api, bytes, FIELD_T, NULL, tensor);
        }
        if (tensor != NULL) {
            api->ReleaseValue(tensor);
        }
        return status;
    default:
        return put_list(api, bytes, attribute, type);
    }
}

OrtStatus *oc_ref_put_attributes(const OrtApi *api, oc_ref_bytes *bytes, const OrtNode *node)
{
    const OrtOpAttr **list = NULL;
    size_t count = 0;
    OrtStatus *status = attributes_of(api, node, &list, &count);
    for (size_t i = 0; i < count && status == NULL; i++) {
        OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
        const char *name = NULL;
        status = api->OpAttr_GetType(list[i], &type);
        if (status == NULL) {
            status = api->OpAttr_GetName(list[i], &name);
        }
        if (status == NULL && type != ORT_OP_ATTR_GRAPH) {
            const size_t mark = oc_ref_begin(bytes, FIELD_NODE_ATTRIBUTE);
            oc_ref_put_text(bytes, FIELD_NAME, name);
            oc_ref_put_int(bytes, FIELD_TYPE, onnx_attribute_type(type));
            status = put_value(api, bytes, list[i], type);
            oc_ref_end(bytes, mark);
        }
    }
    free(list);
    return status;
}

/* *found is NULL when the node has no such attribute (some runtimes call that an error). */
static void find(const OrtApi *api, const OrtNode *node, const char *name, const OrtOpAttr **found)
{
    *found = NULL;
    OrtStatus *const absent = api->Node_GetAttributeByName(node, name, found);
    if (absent != NULL) {
        api->ReleaseStatus(absent);
        *found = NULL;
    }
}

OrtStatus *oc_ref_node_text(const OrtApi *api, const OrtNode *node, const char *name, char **text, size_t *len)
{
    const OrtOpAttr *attribute = NULL;
    *text = NULL;
    *len = 0;
    find(api, node, name, &attribute);
    if (attribute == NULL) {
        return NULL;
    }
    void *content = NULL;
    OrtStatus *const status = read_content(api, attribute, ORT_OP_ATTR_STRING, &content, len);
    if (status != NULL) {
        return status;
    }
    *text = content;
    return NULL;
}

OrtStatus *oc_ref_node_int(const OrtApi *api, const OrtNode *node, const char *name, int64_t absent, int64_t *value)
{
    const OrtOpAttr *attribute = NULL;
    size_t len = 0;
    *value = absent;
    find(api, node, name, &attribute);
    return attribute == NULL ? NULL : api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, value, sizeof(*value), &len);
}
