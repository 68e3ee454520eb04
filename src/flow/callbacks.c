/* The three callbacks ORT and EPs write through while a model is compiled: convert, call the transaction, convert. */
#include <stdlib.h>
#include <string.h>

#include "crypto/hash.h"
#include "flow/output.h"

OrtStatus *oc_output_refuse(ortcrypt_output *output, ortcrypt_status st, const ortcrypt_error *err)
{
    (void)pthread_mutex_lock(&output->lock);
    if (!output->failed) {
        output->failed = true;
        output->failure = *err;
        output->failure.status = st;
    }
    (void)pthread_mutex_unlock(&output->lock);
    return oc_ort_status(ortcrypt_runtime_api(output->runtime), st, err);
}

/* Whatever comes after the commit would be in no variant: the compilation that still writes must hear of it. */
static ortcrypt_status check_open(ortcrypt_output *output, ortcrypt_error *err)
{
    (void)pthread_mutex_lock(&output->lock);
    const bool committed = output->committed;
    (void)pthread_mutex_unlock(&output->lock);
    return committed ? oc_fail(err, ORTCRYPT_E_INVALID, "the compiled variant was committed before everything was written") : ORTCRYPT_OK;
}

/* The blob of a name, made when new. */
static ortcrypt_status find_blob(oc_blob **out, ortcrypt_output *output, const char *name, ortcrypt_error *err)
{
    oc_blob *blob = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    (void)pthread_mutex_lock(&output->lock);
    for (blob = output->blobs; blob != NULL && strcmp(blob->name, name) != 0; blob = blob->next) {
    }
    if (blob == NULL) {
        blob = calloc(1, sizeof(*blob));
        st = blob == NULL ? oc_fail_memory(err, sizeof(*blob), "EPContext data") : oc_strdup(&blob->name, name, err);
        if (st == ORTCRYPT_OK) {
            (void)pthread_mutex_init(&blob->lock, NULL);
            blob->next = output->blobs;
            output->blobs = blob;
            output->blob_count++;
        } else {
            free(blob);
        }
    }
    (void)pthread_mutex_unlock(&output->lock);
    if (st == ORTCRYPT_OK) {
        *out = blob;
    }
    return st;
}

/* One write is one asset; a second one must bring the same bytes. */
static ortcrypt_status write_same(ortcrypt_output *output, oc_blob *blob, oc_span data, ortcrypt_error *err)
{
    uint8_t digest[OC_DIGEST_LEN];

    ortcrypt_status st = oc_sha256(digest, data, err);
    if (st == ORTCRYPT_OK && blob->finished) {
        if (blob->len != data.len || memcmp(blob->digest, digest, sizeof(digest)) != 0) {
            st = oc_fail(err, ORTCRYPT_E_INPUT, "the execution provider wrote EPContext data '%s' twice, with different bytes", blob->name);
            oc_hint(err, "if it documents chunks or later versions, compile with rewrite set to append or replace");
        }
        return st;
    }
    if (st == ORTCRYPT_OK) {
        st = oc_txn_put(output->txn, data, blob->id, err);
    }
    if (st == ORTCRYPT_OK) {
        memcpy(blob->digest, digest, sizeof(digest));
        blob->len = data.len;
        blob->finished = true;
    }
    return st;
}

static ortcrypt_status write_again(ortcrypt_output *output, oc_blob *blob, oc_span data, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    if (output->options.rewrite == ORTCRYPT_REWRITE_REPLACE && blob->writer != NULL) {
        oc_asset_writer_close(blob->writer); /* not finished: it is removed */
        blob->writer = NULL;
        blob->len = 0;
    }
    if (blob->writer == NULL) {
        st = oc_asset_writer_open(&blob->writer, output->txn, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_asset_writer_push(blob->writer, data.data, data.len, err);
    }
    if (st == ORTCRYPT_OK) {
        blob->len += data.len;
    }
    return st;
}

OrtStatus *oc_output_write_named(ortcrypt_output *output, const char *name, const void *buffer, size_t buffer_num_bytes)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_blob *blob = NULL;

    ortcrypt_status st = check_open(output, &err);
    if (st == ORTCRYPT_OK && (name == NULL || !oc_name_valid(name, strlen(name)) || (buffer == NULL && buffer_num_bytes != 0))) {
        st = oc_fail(&err, ORTCRYPT_E_INPUT, "the execution provider writes EPContext data without a usable name or without bytes");
    }
    if (st == ORTCRYPT_OK) {
        st = find_blob(&blob, output, name, &err);
    }
    if (st == ORTCRYPT_OK) {
        (void)pthread_mutex_lock(&blob->lock);
        st = output->options.rewrite == ORTCRYPT_REWRITE_SAME
                 ? write_same(output, blob, OC_SPAN(buffer, buffer_num_bytes), &err)
                 : write_again(output, blob, OC_SPAN(buffer, buffer_num_bytes), &err);
        (void)pthread_mutex_unlock(&blob->lock);
    }
    return st == ORTCRYPT_OK ? NULL : oc_output_refuse(output, st, &err);
}

OrtStatus *oc_output_write_model(ortcrypt_output *output, const void *buffer, size_t buffer_num_bytes)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    ortcrypt_status st = check_open(output, &err);
    if (st == ORTCRYPT_OK && buffer == NULL && buffer_num_bytes != 0) {
        st = oc_fail(&err, ORTCRYPT_E_INVALID, "bytes of the compiled model without an address");
    }
    if (st != ORTCRYPT_OK) {
        return oc_output_refuse(output, st, &err);
    }
    (void)pthread_mutex_lock(&output->lock);
    if (output->model == NULL) {
        st = oc_asset_writer_open(&output->model, output->txn, &err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_asset_writer_push(output->model, buffer, buffer_num_bytes, &err);
    }
    if (st == ORTCRYPT_OK) {
        output->model_len += buffer_num_bytes;
    }
    (void)pthread_mutex_unlock(&output->lock);
    return st == ORTCRYPT_OK ? NULL : oc_output_refuse(output, st, &err);
}

/* A name that some subgraph defines cannot be supplied from outside: ORT resolves external data in the main graph only. */
static bool in_subgraph(const ortcrypt_output *output, const char *name)
{
    const oc_onnx_model *const onnx = output->source != NULL ? output->source->onnx : NULL;

    for (size_t i = 0; onnx != NULL && i < onnx->subgraph_name_count; i++) {
        if (strcmp(onnx->subgraph_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Type and shape of a value on the CPU, and its bytes; *worth false: it stays in the model. */
static ortcrypt_status look_at(oc_tensor *tensor, oc_span *data, bool *worth, ortcrypt_output *output, const OrtValue *value,
                               ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(output->runtime);
    const size_t min_len = output->options.initializer_min_len;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    OrtTensorTypeAndShapeInfo *info = NULL;
    int64_t dims[OC_RANK_MAX];
    uint64_t natural = 0;
    size_t len = 0;
    const void *bytes = NULL;

    *worth = false;
    ortcrypt_status st = oc_ort_check(output->runtime, api->GetTensorTypeAndShape(value, &info), err, "an initializer");
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime, api->GetTensorElementType(info, &type), err, "an initializer");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime, api->GetDimensionsCount(info, &tensor->rank), err, "an initializer");
    }
    if (st == ORTCRYPT_OK && tensor->rank <= OC_RANK_MAX && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        st = oc_ort_check(output->runtime, api->GetDimensions(info, dims, tensor->rank), err, "an initializer");
        for (size_t i = 0; i < tensor->rank && st == ORTCRYPT_OK; i++) {
            tensor->shape[i] = (uint64_t)dims[i];
        }
        tensor->dtype = (int)type; /* ORT's element types have the numbers of onnx.TensorProto.DataType */
        if (st == ORTCRYPT_OK && oc_onnx_tensor_len(tensor->dtype, tensor->shape, tensor->rank, &natural) && natural >= min_len) {
            st = oc_ort_check(output->runtime, api->GetTensorSizeInBytes(value, &len), err, "an initializer");
            if (st == ORTCRYPT_OK) {
                st = oc_ort_check(output->runtime, api->GetTensorData(value, &bytes), err, "an initializer");
            }
            *worth = st == ORTCRYPT_OK && len == natural && bytes != NULL;
        }
    }
    if (info != NULL) {
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    *data = OC_SPAN(bytes, len);
    tensor->length = len;
    return st;
}

/* Takes the tensor's strings over. */
static ortcrypt_status add_init(ortcrypt_output *output, oc_tensor *tensor, char **location, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    (void)pthread_mutex_lock(&output->lock);
    oc_init *const grown = realloc(output->inits, (output->init_count + 1) * sizeof(*output->inits));
    if (grown == NULL) {
        st = oc_fail_memory(err, (output->init_count + 1) * sizeof(*output->inits), "the tensor table");
    } else {
        output->inits = grown;
        output->inits[output->init_count++] = (oc_init){*tensor, *location};
        *tensor = (oc_tensor){0};
        *location = NULL;
    }
    (void)pthread_mutex_unlock(&output->lock);
    return st;
}

static bool known_init(ortcrypt_output *output, const char *name)
{
    bool known = false;

    (void)pthread_mutex_lock(&output->lock);
    for (size_t i = 0; i < output->init_count && !known; i++) {
        known = strcmp(output->inits[i].tensor.name, name) == 0;
    }
    (void)pthread_mutex_unlock(&output->lock);
    return known;
}

/* Stores the bytes and names their place: "ortc-init-" and the asset id, a name that is no path and nobody's file. */
static ortcrypt_status store_init(OrtExternalInitializerInfo **place, ortcrypt_output *output, const char *name,
                                  oc_tensor *tensor, oc_span data, ortcrypt_error *err)
{
    char text[sizeof("ortc-init-") + 2 * OC_ASSET_ID_LEN] = "ortc-init-";
    char *location = NULL;
    OrtExternalInitializerInfo *made = NULL;

    ortcrypt_status st = oc_strdup(&tensor->name, name, err);
    if (st == ORTCRYPT_OK) {
        st = oc_txn_put(output->txn, data, tensor->asset, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_hex_encode(text + sizeof("ortc-init-") - 1, tensor->asset, OC_ASSET_ID_LEN);
        st = oc_strdup(&location, text, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime,
                          ortcrypt_runtime_api(output->runtime)->CreateExternalInitializerInfo(location, 0, data.len, &made),
                          err, "an initializer");
    }
    if (st == ORTCRYPT_OK) {
        st = add_init(output, tensor, &location, err);
    }
    if (st == ORTCRYPT_OK) {
        *place = made; /* ORT's now */
    } else if (made != NULL) {
        ortcrypt_runtime_api(output->runtime)->ReleaseExternalInitializerInfo(made);
    }
    free(location);
    return st;
}

OrtStatus *oc_output_location(ortcrypt_output *output, const char *initializer_name, const OrtValue *initializer_value,
                              const OrtExternalInitializerInfo *external_info, OrtExternalInitializerInfo **new_external_info)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    uint64_t shape[OC_RANK_MAX];
    oc_tensor tensor = {.shape = shape};
    oc_span data = {NULL, 0};
    bool worth = false;
    ortcrypt_status st = ORTCRYPT_OK;

    (void)external_info; /* where it was before says nothing about where it goes */
    *new_external_info = NULL; /* stays in the model */
    if (initializer_name == NULL || !oc_name_valid(initializer_name, strlen(initializer_name)) ||
        in_subgraph(output, initializer_name) || known_init(output, initializer_name)) {
        return NULL;
    }
    st = check_open(output, &err);
    if (st == ORTCRYPT_OK) {
        st = look_at(&tensor, &data, &worth, output, initializer_value, &err);
    }
    if (st == ORTCRYPT_OK && worth) {
        tensor.shape = calloc(tensor.rank + 1, sizeof(*tensor.shape));
        if (tensor.shape == NULL) {
            st = oc_fail_memory(&err, (tensor.rank + 1) * sizeof(*tensor.shape), "a shape");
        } else {
            memcpy(tensor.shape, shape, tensor.rank * sizeof(*tensor.shape));
            st = store_init(new_external_info, output, initializer_name, &tensor, data, &err);
            free(tensor.shape); /* NULL when the table has it */
        }
        free(tensor.name);
    }
    return st == ORTCRYPT_OK ? NULL : oc_output_refuse(output, st, &err);
}
