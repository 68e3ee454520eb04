/* The loading half: our read callback, and whether the outputs are those of the CPU execution provider. */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "conform/drive.h"

static const oc_drive_blob *find_blob(const oc_drive *drive, const char *name)
{
    const oc_drive_blob *blob = drive->blobs;

    while (blob != NULL && strcmp(blob->name, name) != 0) {
        blob = blob->next;
    }
    return blob;
}

static size_t given_len(const oc_drive *drive, const oc_drive_blob *blob)
{
    switch (drive->read) {
    case OC_DRIVE_EMPTY:
        return 0;
    case OC_DRIVE_CUT:
        return blob->len / 2;
    default:
        return blob->len;
    }
}

static void note_read(oc_drive *drive, const char *name, size_t len, const OrtAllocator *allocator)
{
    json_t *const text = json_string(name);

    (void)json_array_append_new(json_object_get(drive->report, "read"),
                                json_pack("{s:o, s:I, s:s}", "name", text != NULL ? text : json_null(), "len", (json_int_t)len, "allocator",
                                          allocator == NULL                                                      ? "none"
                                          : drive->witness == NULL || allocator != drive->witness->allocator ? "its own"
                                                                                                                 : "default"));
}

/* Exchanges a function pointer that may be in memory which cannot be written: a plain store would end the program. */
static bool put_in_place(void(ORT_API_CALL **place)(OrtAllocator *, void *), void(ORT_API_CALL *replacement)(OrtAllocator *, void *),
                         void(ORT_API_CALL **original)(OrtAllocator *, void *))
{
    const struct iovec from = {&replacement, sizeof(replacement)};
    const struct iovec to = {place, sizeof(*place)};

    *original = *place;
    return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)sizeof(replacement);
}

/*
 * So that the witness sees it freed. In an allocator of the EP's own, the witness takes the place of its Free; where that memory cannot be
 * written, what becomes of the buffer is not seen.
 */
static void watch_buffer(oc_drive *drive, OrtAllocator *allocator, void *data)
{
    oc_witness *const witness = drive->witness;
    bool watched = witness != NULL && allocator == witness->allocator;

    if (witness != NULL && !watched && (witness->own == NULL || witness->own == allocator)) {
        watched = witness->own == allocator || put_in_place(&allocator->Free, witness->free_own, &witness->own_free);
        witness->own = watched ? allocator : NULL;
    }
    if (watched) {
        (void)atomic_fetch_add(&witness->buffers_given, 1);
        for (size_t i = 0; i < OC_WITNESS_BUFFERS; i++) {
            void *expected = NULL;
            if (atomic_compare_exchange_strong(&drive->witness->buffers[i], &expected, data)) {
                break;
            }
        }
    }
}

/* OrtReadNamedBufferFunc. */
static OrtStatus *ORT_API_CALL read_named(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *len)
{
    oc_drive *const drive = state;
    OrtStatus *refused = NULL;
    void *data = NULL;

    (void)pthread_mutex_lock(&drive->lock);
    const oc_drive_blob *const blob = find_blob(drive, name);
    const size_t size = blob != NULL ? given_len(drive, blob) : 0;
    note_read(drive, name, size, allocator);
    if (drive->read == OC_DRIVE_FAIL) {
        refused = drive->api->CreateStatus(ORT_FAIL, OC_DRIVE_REFUSAL);
    } else if (blob == NULL) {
        refused = drive->api->CreateStatus(ORT_FAIL, "the canary has no EPContext data of that name");
    } else if (allocator == NULL) {
        refused = drive->api->CreateStatus(ORT_FAIL, "no allocator was given to the canary's callback");
    } else if (size != 0) {
        refused = drive->api->AllocatorAlloc(allocator, size, &data);
        if (refused == NULL) {
            watch_buffer(drive, allocator, data);
        }
    }
    if (refused == NULL && size != 0 && drive->read == OC_DRIVE_FOREIGN) {
        for (size_t i = 0; i < size; i++) { /* of nobody: a fixed sequence of bytes */
            ((uint8_t *)data)[i] = (uint8_t)((i * 167 + 13) >> (i % 5));
        }
    } else if (refused == NULL && size != 0) {
        memcpy(data, blob->data, size);
    }
    (void)pthread_mutex_unlock(&drive->lock);
    if (refused == NULL) {
        *buffer = data;
        *len = size;
    }
    return refused;
}

ortcrypt_status oc_drive_load(oc_drive *drive, OrtSession **session, ortcrypt_error *err)
{
    const OrtApi *const api = drive->api;
    const ortcrypt_ep_context_api *const f = oc_runtime_ep_context(drive->runtime);
    OrtEnv *const env = ortcrypt_runtime_env(drive->runtime);
    OrtSessionOptions *options = NULL;

    ortcrypt_status st = oc_drive_options(drive, &options, err);
    if (st == ORTCRYPT_OK && !drive->callbacks) {
        st = oc_ort_check(drive->runtime, api->CreateSession(env, OC_DRIVE_FILE, options, session), err, "loading");
    } else if (st == ORTCRYPT_OK) {
        st = oc_drive_name(drive, options, read_named, NULL, err);
        if (st == ORTCRYPT_OK && oc_runtime_takes_callbacks(drive->runtime, api->EpDevice_EpName(drive->device))) {
            st = oc_ort_check(drive->runtime, f->SessionOptions_SetEpContextDataReadFunc(options, read_named, drive), err, "session options");
        }
        if (st == ORTCRYPT_OK) {
            st = oc_ort_check(drive->runtime, api->CreateSessionFromArray(env, drive->compiled.data, drive->compiled.len, options, session),
                              err, "loading");
        }
    }
    if (options != NULL) {
        api->ReleaseSessionOptions(options);
    }
    return st;
}

/* The model's fixed inputs. */
static ortcrypt_status make_inputs(oc_drive *drive, OrtValue *inputs[OC_MODEL_MAX_INPUTS], ortcrypt_error *err)
{
    const OrtApi *const api = drive->api;
    OrtAllocator *allocator = NULL;
    void *data = NULL;

    ortcrypt_status st = oc_ort_check(drive->runtime, api->GetAllocatorWithDefaultOptions(&allocator), err, "running");
    for (size_t i = 0; i < drive->model->input_count && st == ORTCRYPT_OK; i++) {
        const oc_model_input *const input = &drive->model->inputs[i];
        size_t count = 1;
        for (size_t k = 0; k < input->rank; k++) {
            count *= (size_t)input->shape[k];
        }
        st = oc_ort_check(drive->runtime,
                          api->CreateTensorAsOrtValue(allocator, input->shape, input->rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &inputs[i]),
                          err, "running");
        if (st == ORTCRYPT_OK) {
            st = oc_ort_check(drive->runtime, api->GetTensorMutableData(inputs[i], &data), err, "running");
        }
        if (st == ORTCRYPT_OK) {
            oc_model_fill(data, count, 100 + (unsigned)i);
        }
    }
    return st;
}

/* A copy of a tensor's floats; *out is heap. */
static ortcrypt_status copy_output(oc_drive *drive, OrtValue *output, float **out, size_t *out_count, ortcrypt_error *err)
{
    const OrtApi *const api = drive->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    void *data = NULL;
    size_t count = 0;

    ortcrypt_status st = oc_ort_check(drive->runtime, api->GetTensorTypeAndShape(output, &info), err, "running");
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime, api->GetTensorShapeElementCount(info, &count), err, "running");
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime, api->GetTensorMutableData(output, &data), err, "running");
    }
    if (st == ORTCRYPT_OK) {
        float *const copy = malloc((count + 1) * sizeof(*copy));
        if (copy == NULL) {
            return oc_fail_memory(err, count * sizeof(*copy), "outputs");
        }
        memcpy(copy, data, count * sizeof(*copy));
        *out = copy;
        *out_count = count;
    }
    return st;
}

/* Runs a session on the model's fixed inputs. *out is heap. */
static ortcrypt_status run(oc_drive *drive, OrtSession *session, float **out, size_t *out_count, ortcrypt_error *err)
{
    static const char *const output_names[] = {"y"};
    const OrtApi *const api = drive->api;
    const char *names[OC_MODEL_MAX_INPUTS] = {NULL};
    OrtValue *inputs[OC_MODEL_MAX_INPUTS] = {NULL};
    OrtValue *output = NULL;

    for (size_t i = 0; i < drive->model->input_count; i++) {
        names[i] = drive->model->inputs[i].name;
    }
    ortcrypt_status st = make_inputs(drive, inputs, err);
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime,
                          api->Run(session, NULL, names, (const OrtValue *const *)inputs, drive->model->input_count, output_names, 1, &output),
                          err, "running");
    }
    if (st == ORTCRYPT_OK) {
        st = copy_output(drive, output, out, out_count, err);
    }
    api->ReleaseValue(output);
    for (size_t i = 0; i < OC_MODEL_MAX_INPUTS; i++) {
        api->ReleaseValue(inputs[i]);
    }
    return st;
}

ortcrypt_status oc_drive_expect(oc_drive *drive, ortcrypt_error *err)
{
    const OrtApi *const api = drive->api;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;

    ortcrypt_status st = oc_ort_check(drive->runtime, api->CreateSessionOptions(&options), err, "session options");
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(drive->runtime,
                          api->CreateSessionFromArray(ortcrypt_runtime_env(drive->runtime), drive->onnx.data, drive->onnx.len, options, &session),
                          err, "the canary on the CPU");
    }
    if (st == ORTCRYPT_OK) {
        st = run(drive, session, &drive->expected, &drive->expected_count, err);
    }
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    return st;
}

ortcrypt_status oc_drive_compare(oc_drive *drive, OrtSession *session, ortcrypt_error *err)
{
    float *got = NULL;
    size_t count = 0;
    float least = drive->expected[0];
    float greatest = drive->expected[0];
    float difference = 0;

    const ortcrypt_status st = run(drive, session, &got, &count, err);
    if (st != ORTCRYPT_OK) {
        free(got);
        return st;
    }
    for (size_t i = 0; i < drive->expected_count; i++) {
        const float value = drive->expected[i];
        const float away = i < count ? (got[i] > value ? got[i] - value : value - got[i]) : greatest - least;
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
        difference = !(away <= difference) ? away : difference; /* a NaN stays */
    }
    free(got);
    const double fraction = (double)difference / (double)(greatest - least);
    (void)json_object_set_new(drive->report, "difference", json_real(fraction == fraction && count == drive->expected_count ? fraction : 1e9));
    return ORTCRYPT_OK;
}
