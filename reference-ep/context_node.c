/*
 * EPContext nodes (domain com.microsoft). Attributes as ORT's schema has them: main_context, ep_cache_context, embed_mode,
 * ep_sdk_version, hardware_architecture, partition_name, source, notes.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lists.h"
#include "reference_ep.h"

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "unknown"
#endif

enum { ATTRIBUTES_MAX = 8 };

typedef struct attributes {
    OrtOpAttr *items[ATTRIBUTES_MAX];
    size_t count;
} attributes;

static OrtStatus *add(const OrtApi *api, attributes *list, const char *name, const void *data, size_t len,
                      OrtOpAttrType type)
{
    if (len > INT_MAX) {
        return oc_ref_status(api, ORT_NOT_IMPLEMENTED,
                             "an engine of %zu bytes cannot be embedded (embed mode 1): an attribute is below 2 GiB",
                             len);
    }
    OrtStatus *const status = api->CreateOpAttr(name, data, (int)len, type, &list->items[list->count]);
    list->count += status == NULL ? 1 : 0;
    return status;
}

static OrtStatus *add_int(const OrtApi *api, attributes *list, const char *name, int64_t value)
{
    return add(api, list, name, &value, 1, ORT_OP_ATTR_INT);
}

static OrtStatus *add_text(const OrtApi *api, attributes *list, const char *name, const char *text)
{
    return add(api, list, name, text, strlen(text), ORT_OP_ATTR_STRING);
}

static OrtStatus *add_all(const oc_ref_ep *ep, attributes *list, const char *partition, const void *data, size_t len)
{
    const OrtApi *const api = ep->factory->api;
    OrtStatus *status = add_int(api, list, "main_context", 1); /* each engine stands alone */
    if (status == NULL) {
        status = add(api, list, "ep_cache_context", data, len, ORT_OP_ATTR_STRING);
    }
    if (status == NULL) {
        status = add_int(api, list, "embed_mode", ep->options.embed ? 1 : 0);
    }
    if (status == NULL) {
        status = add_text(api, list, "ep_sdk_version", ORTCRYPT_VERSION);
    }
    if (status == NULL) {
        status = add_text(api, list, "hardware_architecture", ARCHITECTURE);
    }
    if (status == NULL) {
        status = add_text(api, list, "partition_name", partition);
    }
    if (status == NULL) {
        status = add_text(api, list, "source", OC_REF_NAME);
    }
    return status == NULL ? add_text(api, list, "notes", ep->factory->compatibility) : status;
}

/* *names is heap; the texts are ORT's. */
static OrtStatus *names_of(const OrtApi *api, const oc_ref_values *values, const char ***names)
{
    const char **const list = calloc(values->count + 1, sizeof(*list));
    OrtStatus *status = list == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for names") : NULL;
    for (size_t i = 0; i < values->count && status == NULL; i++) {
        status = oc_ref_value_name(api, values->items[i], &list[i]);
    }
    if (status != NULL) {
        free(list);
        return status;
    }
    *names = list;
    return NULL;
}

OrtStatus *oc_ref_context_node(const oc_ref_ep *ep, const OrtNode *fused, const void *data, size_t len, OrtNode **node)
{
    const OrtApi *const api = ep->factory->api;
    attributes list = {{NULL}, 0};
    oc_ref_values inputs = {NULL, 0};
    oc_ref_values outputs = {NULL, 0};
    const char **input_names = NULL;
    const char **output_names = NULL;
    const char *name = NULL; /* the fused node's: ORT matches the two by it */
    OrtStatus *status = oc_ref_node_inputs(api, fused, &inputs);
    if (status == NULL) {
        status = names_of(api, &inputs, &input_names);
    }
    if (status == NULL) {
        status = oc_ref_node_outputs(api, fused, &outputs);
    }
    if (status == NULL) {
        status = names_of(api, &outputs, &output_names);
    }
    if (status == NULL) {
        status = api->Node_GetName(fused, &name);
    }
    if (status == NULL) {
        status = add_all(ep, &list, name, data, len);
    }
    if (status == NULL) {
        status =
            ep->factory->editor->CreateNode("EPContext", "com.microsoft", name, input_names, inputs.count, output_names,
                                            outputs.count, list.items, list.count, node); /* copies them */
    }
    for (size_t i = 0; i < list.count; i++) {
        api->ReleaseOpAttr(list.items[i]);
    }
    free(input_names);
    free(output_names);
    free(inputs.items);
    free(outputs.items);
    return status;
}
