/*
 * Reading and writing EPContext data: the application's callback when it set one, else a file.
 *
 * Read: callback or file -> a buffer of the allocator -> ortcrypt_ep_context_data (the EP's). Write: the EP's bytes are
 * only borrowed.
 */
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

void ortcrypt_ep_context_data_release(ortcrypt_ep_context_data *data)
{
    if (data == NULL) {
        return;
    }
    if (data->memory != NULL) {
        data->allocator->Free(data->allocator, data->memory);
    }
    const ortcrypt_ep_context_data empty = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    *data = empty;
}

/* A path up to and with its last slash; "./" without one. Heap, or NULL when there is no memory. */
static char *folder_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? strdup("./") : strndup(path, (size_t)(slash - path) + 1);
}

/*
 * The folder that a model's names are relative to. A model from a buffer has none but what ep.context_file_path says: without
 * it the working folder would be meant, where anybody may have planted a file, so that is refused.
 */
static OrtStatus *model_folder(const ortcrypt_ep_context *context, const OrtGraph *graph, bool writing, char **folder)
{
    const char *graph_path = NULL;
    OrtStatus *const status = context->api->Graph_GetModelPath(graph, &graph_path);
    if (status != NULL) {
        return status;
    }
    if (graph_path != NULL && graph_path[0] == '\0') {
        graph_path = NULL;
    }
    const char *context_path = context->entries[OC_EP_FILE_PATH];
    if (context_path != NULL && context_path[0] == '\0') {
        context_path = NULL;
    }
    const char *path = writing ? context_path : graph_path;
    if (path == NULL) {
        path = writing ? graph_path : context_path;
    }
    if (path == NULL) {
        return oc_ep_status(
            context->api, ORT_INVALID_ARGUMENT,
            "EPContext data can be neither read nor written: the application set no callback for it, and "
            "the model has no folder (session option ep.context_file_path would name one)");
    }
    *folder = folder_of(path);
    return *folder != NULL ? NULL : oc_ep_status(context->api, ORT_FAIL, "no memory for a path");
}

/* The callback's answer, checked. Whatever it allocated is freed once when it is not taken. */
static OrtStatus *read_callback(const ortcrypt_ep_context *context, const char *name, OrtAllocator *allocator,
                                size_t max_len, ortcrypt_ep_context_data *out)
{
    void *buffer = NULL;
    size_t size = 0;
    OrtStatus *status = context->read(context->read_state, name, allocator, &buffer, &size);
    if (status == NULL && buffer == NULL && size != 0) {
        status =
            oc_ep_status(context->api, ORT_FAIL,
                         "the application's read callback gave %zu bytes without a buffer for \"%.200s\"", size, name);
    }
    if (status == NULL && max_len != 0 && size > max_len) {
        status = oc_ep_status(context->api, ORT_FAIL,
                              "the EPContext data \"%.200s\" has %zu bytes, and at most %zu are accepted", name, size,
                              max_len);
    }
    if (status != NULL) {
        if (buffer != NULL) {
            allocator->Free(allocator, buffer);
        }
        return status;
    }
    out->data = buffer;
    out->size = size;
    out->allocator = allocator;
    out->memory = buffer;
    return NULL;
}

OrtStatus *ortcrypt_ep_context_read(const ortcrypt_ep_context *context, const char *name, const OrtGraph *graph,
                                    OrtAllocator *allocator, size_t max_len, ortcrypt_ep_context_data *out)
{
    if (name == NULL || out == NULL || out->memory != NULL) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT,
                            "reading EPContext data needs a name and an empty place for the result");
    }
    OrtStatus *status = NULL;
    if (allocator == NULL) {
        status = context->api->GetAllocatorWithDefaultOptions(&allocator);
    }
    if (status != NULL) {
        return status;
    }
    if (context->read != NULL) {
        return read_callback(context, name, allocator, max_len, out);
    }
    char *folder = NULL;
    if (graph != NULL) {
        status = model_folder(context, graph, false, &folder);
    }
    if (status == NULL) {
        const oc_ep_where where = {folder, OC_EP_WALK_ALWAYS};
        status = oc_ep_file_read(context->api, where, name, allocator, max_len, out);
    }
    free(folder);
    return status;
}

OrtStatus *ortcrypt_ep_context_write(const ortcrypt_ep_context *context, const char *name, const char *fallback_name,
                                     const OrtGraph *graph, const void *data, size_t len)
{
    if (name == NULL || (data == NULL && len != 0)) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "writing EPContext data needs a name and the bytes");
    }
    if (context->write != NULL) {
        return context->write(context->write_state, name, data, len);
    }
    char *folder = NULL;
    OrtStatus *status = graph != NULL ? model_folder(context, graph, true, &folder) : NULL;
    if (status == NULL) {
        const oc_ep_where where = {folder, OC_EP_WALK_ALWAYS};
        status = oc_ep_file_write(context->api, where, fallback_name != NULL ? fallback_name : name, data, len);
    }
    free(folder);
    return status;
}
