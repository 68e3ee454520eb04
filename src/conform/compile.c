/* The compiling half: our write callbacks, and what the compiled model says. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conform/drive.h"
#include "flow/flow.h"
#include "format/onnx.h"

/* OrtWriteBufferFunc: the compiled model. */
static OrtStatus *ORT_API_CALL write_model(void *state, const void *data, size_t len)
{
    oc_drive *const drive = state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    const ortcrypt_status st = oc_buf_append(&drive->compiled, data, len, &err);
    return st == ORTCRYPT_OK ? NULL : oc_ort_status(drive->api, st, &err);
}

static void keep(oc_drive *drive, const char *name, const void *data, size_t len)
{
    oc_drive_blob *const blob = calloc(1, sizeof(*blob));

    if (blob == NULL) {
        return; /* the read callback will not find it */
    }
    blob->name = strdup(name);
    blob->data = malloc(len + 1);
    if (blob->name == NULL || blob->data == NULL) {
        free(blob->name);
        free(blob->data);
        free(blob);
        return;
    }
    memcpy(blob->data, data, len);
    blob->len = len;
    blob->next = drive->blobs; /* the newest first: a second write of a name replaces */
    drive->blobs = blob;
}

/* OrtWriteNamedBufferFunc. */
static OrtStatus *ORT_API_CALL write_named(void *state, const char *name, const void *data, size_t len)
{
    oc_drive *const drive = state;

    (void)pthread_mutex_lock(&drive->lock);
    json_t *const text = json_string(name); /* NULL: no UTF-8 */
    (void)json_array_append_new(json_object_get(drive->report, "written"),
                                json_pack("{s:o, s:I}", "name", text != NULL ? text : json_null(), "len", (json_int_t)len));
    if (drive->write == OC_DRIVE_GIVE) {
        keep(drive, name, data, len);
    }
    (void)pthread_mutex_unlock(&drive->lock);
    return drive->write == OC_DRIVE_GIVE ? NULL : drive->api->CreateStatus(ORT_FAIL, OC_DRIVE_REFUSAL);
}

ortcrypt_status oc_drive_options(oc_drive *drive, OrtSessionOptions **out, ortcrypt_error *err)
{
    const OrtApi *const api = drive->api;
    json_t *const given = json_object_get(drive->job, "options");
    const size_t count = json_object_size(given);
    const char **const keys = calloc(count + 1, sizeof(*keys));
    const char **const values = calloc(count + 1, sizeof(*values));
    OrtSessionOptions *options = NULL;
    const char *key = NULL;
    json_t *value = NULL;
    size_t at = 0;

    ortcrypt_status st = keys == NULL || values == NULL ? oc_fail_memory(err, (count + 1) * sizeof(*keys), "EP options")
                                                        : oc_ort_check(drive->runtime, api->CreateSessionOptions(&options), err,
                                                                       "session options");
    if (st == ORTCRYPT_OK) {
        json_object_foreach(given, key, value) {
            keys[at] = key;
            values[at++] = json_string_value(value);
        }
        st = oc_ort_check(drive->runtime,
                          api->SessionOptionsAppendExecutionProvider_V2(options, ortcrypt_runtime_env(drive->runtime), &drive->device,
                                                                        1, keys, values, count),
                          err, "the execution provider");
    }
    free(keys);
    free(values);
    if (st != ORTCRYPT_OK && options != NULL) {
        api->ReleaseSessionOptions(options);
        options = NULL;
    }
    *out = options;
    return st;
}

ortcrypt_status oc_drive_name(oc_drive *drive, OrtSessionOptions *options, OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write,
                              ortcrypt_error *err)
{
    oc_registration_end(drive->registration);
    drive->registration = NULL;
    return drive->callbacks ? oc_callbacks_name(&drive->registration, drive->runtime, drive->api->EpDevice_EpName(drive->device), options,
                                                read, write, drive, err)
                            : ORTCRYPT_OK;
}

/* From memory, as with a bundle; without callbacks from a file, so that an EP knows the folder that its own file belongs to. */
static ortcrypt_status set_input(oc_drive *drive, OrtModelCompilationOptions *compile, ortcrypt_error *err)
{
    const OrtCompileApi *const c = oc_runtime_compile_api(drive->runtime);

    if (drive->callbacks) {
        return oc_ort_check(drive->runtime, c->ModelCompilationOptions_SetInputModelFromBuffer(compile, drive->onnx.data, drive->onnx.len),
                            err, "compile options");
    }
    FILE *const file = fopen(OC_DRIVE_INPUT, "wb");
    const bool written = file != NULL && fwrite(drive->onnx.data, 1, drive->onnx.len, file) == drive->onnx.len;
    if (file == NULL || fclose(file) != 0 || !written) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", OC_DRIVE_INPUT);
    }
    return oc_ort_check(drive->runtime, c->ModelCompilationOptions_SetInputModelPath(compile, OC_DRIVE_INPUT), err, "compile options");
}

static ortcrypt_status set_output(oc_drive *drive, OrtModelCompilationOptions *compile, ortcrypt_error *err)
{
    const OrtCompileApi *const c = oc_runtime_compile_api(drive->runtime);
    const ortcrypt_ep_context_api *const f = oc_runtime_ep_context(drive->runtime);

    ortcrypt_status st = oc_ort_check(drive->runtime, c->ModelCompilationOptions_SetEpContextEmbedMode(compile, false), err,
                                      "compile options");
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (!drive->callbacks) {
        return oc_ort_check(drive->runtime, c->ModelCompilationOptions_SetOutputModelPath(compile, OC_DRIVE_FILE), err, "compile options");
    }
    st = oc_ort_check(drive->runtime, c->ModelCompilationOptions_SetOutputModelWriteFunc(compile, write_model, drive), err,
                      "compile options");
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime, c->ModelCompilationOptions_SetEpContextBinaryInformation(compile, "./", "canary.onnx"), err,
                          "compile options");
    }
    if (st == ORTCRYPT_OK && oc_runtime_takes_callbacks(drive->runtime, drive->api->EpDevice_EpName(drive->device))) {
        st = oc_ort_check(drive->runtime, f->ModelCompilationOptions_SetEpContextDataWriteFunc(compile, write_named, drive), err,
                          "compile options");
    }
    return st;
}

/* The nodes of the compiled model, into the report. */
static ortcrypt_status describe(oc_drive *drive, ortcrypt_error *err)
{
    const oc_span bytes = {drive->compiled.data, drive->compiled.len};
    const oc_source source = oc_source_memory(&bytes);
    oc_onnx_model *onnx = NULL;

    const ortcrypt_status st = oc_onnx_scan(&onnx, &source, "the compiled canary", err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    (void)json_object_set_new(drive->report, "nodes", json_integer((json_int_t)onnx->node_count));
    (void)json_object_set_new(drive->report, "contexts", json_integer((json_int_t)onnx->ep_context_count));
    for (size_t i = 0; i < onnx->ep_context_count; i++) {
        const oc_onnx_ep_context *const node = &onnx->ep_contexts[i];
        if (node->embed_mode == 0 && node->cache_context != NULL) {
            (void)json_array_append_new(json_object_get(drive->report, "named"), json_string(node->cache_context));
        }
    }
    oc_onnx_model_free(onnx);
    return ORTCRYPT_OK;
}

/* Files in the working folder beside the compiled model: what an EP without callbacks wrote. */
static void count_files(oc_drive *drive)
{
    DIR *const folder = opendir(".");
    const struct dirent *entry = NULL;
    struct stat info;
    json_int_t count = 0;
    json_int_t len = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, OC_DRIVE_FILE) != 0 && strcmp(entry->d_name, OC_DRIVE_INPUT) != 0 && stat(entry->d_name, &info) == 0 && S_ISREG(info.st_mode)) {
            count++;
            len += (json_int_t)info.st_size;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    (void)json_object_set_new(drive->report, "file_count", json_integer(count));
    (void)json_object_set_new(drive->report, "file_len", json_integer(len));
}

ortcrypt_status oc_drive_compile(oc_drive *drive, ortcrypt_error *err)
{
    const OrtCompileApi *const c = oc_runtime_compile_api(drive->runtime);
    OrtEnv *const env = ortcrypt_runtime_env(drive->runtime);
    OrtModelCompilationOptions *compile = NULL;
    OrtSessionOptions *options = NULL;

    ortcrypt_status st = oc_drive_options(drive, &options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_drive_name(drive, options, NULL, write_named, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime, c->CreateModelCompilationOptionsFromSessionOptions(env, options, &compile), err, "compile options");
    }
    if (st == ORTCRYPT_OK) {
        st = set_input(drive, compile, err);
    }
    if (st == ORTCRYPT_OK) {
        st = set_output(drive, compile, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime, c->CompileModel(env, compile), err, "compiling");
    }
    if (compile != NULL) {
        c->ReleaseModelCompilationOptions(compile);
    }
    if (options != NULL) {
        drive->api->ReleaseSessionOptions(options);
    }
    if (st == ORTCRYPT_OK && drive->callbacks) {
        st = describe(drive, err);
    } else if (st == ORTCRYPT_OK) {
        count_files(drive);
    }
    return st;
}
