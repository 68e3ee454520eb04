/* The order of steps, and the report. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform/drive.h"
#include "runtime/probe.h"

static bool mode_from(oc_drive_mode *out, const json_t *job, const char *key)
{
    static const char *const words[] = {"give", "fail", "empty", "cut", "foreign"};
    const char *const word = json_string_value(json_object_get(job, key));

    for (size_t i = 0; word != NULL && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0) {
            *out = (oc_drive_mode)i;
            return true;
        }
    }
    return false;
}

bool oc_drive_begin(oc_drive *drive, const char *job, int out)
{
    const char *model = NULL;

    memset(drive, 0, sizeof(*drive));
    drive->out = out;
    drive->onnx = OC_BUF(1u << 20);
    drive->compiled = OC_BUF(64u << 20);
    (void)pthread_mutex_init(&drive->lock, NULL);
    drive->job = json_loads(job, 0, NULL);
    model = json_string_value(json_object_get(drive->job, "model"));
    drive->model = model != NULL ? oc_model_find(model) : NULL;
    drive->callbacks = json_is_true(json_object_get(drive->job, "callbacks"));
    drive->report = json_pack("{s:s, s:s, s:n, s:[], s:[], s:[]}", "version", ORTCRYPT_VERSION, "stage", "begin", "error", "named",
                              "written", "read");
    return drive->report != NULL && drive->model != NULL && mode_from(&drive->write, drive->job, "write") &&
           mode_from(&drive->read, drive->job, "read");
}

/* A line that cannot be written ends the program: its parent would not understand the rest. */
static void tell(oc_drive *drive)
{
    char *const text = json_dumps(drive->report, JSON_COMPACT);
    const size_t len = text != NULL ? strlen(text) : 0;
    size_t at = 0;

    if (text == NULL) {
        _exit(1);
    }
    text[len] = '\n'; /* in place of the NUL: the length is known */
    while (at < len + 1) {
        const ssize_t done = write(drive->out, text + at, len + 1 - at);
        if (done <= 0) {
            _exit(1);
        }
        at += (size_t)done;
    }
    free(text);
}

void oc_drive_stage(oc_drive *drive, const char *stage)
{
    (void)pthread_mutex_lock(&drive->lock);
    (void)json_object_set_new(drive->report, "stage", json_string(stage));
    tell(drive);
    (void)pthread_mutex_unlock(&drive->lock);
}

static const char *text_of(const oc_drive *drive, const char *key)
{
    const char *const text = json_string_value(json_object_get(drive->job, key));

    return text != NULL ? text : "";
}

static ortcrypt_status open_runtime(oc_drive *drive, ortcrypt_error *err)
{
    oc_drive_stage(drive, "open");
    const char *const ort = text_of(drive, "ort");
    const ortcrypt_runtime_options options = {.struct_size = sizeof(options),
                                              .bridge = json_string_value(json_object_get(drive->job, "bridge"))};
    ortcrypt_status st = ortcrypt_runtime_open(&drive->runtime, ort[0] != '\0' ? ort : NULL, &options, err);
    if (st == ORTCRYPT_OK) {
        static const char *const eras[] = {"none", "experimental", "stable"};
        (void)json_object_set_new(drive->report, "runtime", json_string(ortcrypt_runtime_version(drive->runtime)));
        (void)json_object_set_new(drive->report, "era", json_string(eras[oc_runtime_ep_context(drive->runtime)->era]));
        drive->api = ortcrypt_runtime_api(drive->runtime);
        st = drive->model->build(&drive->onnx, err);
    }
    return st == ORTCRYPT_OK ? oc_drive_expect(drive, err) : st;
}

/* The witness stands in the EP library's place; its handle keeps the counts until the program ends. */
static ortcrypt_status call_witness(oc_drive *drive, const char **library, ortcrypt_error *err)
{
    const char *const path = text_of(drive, "witness");
    void *const handle = path[0] != '\0' ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *const symbol = handle != NULL ? dlsym(handle, OC_WITNESS_SYMBOL) : NULL;
    oc_witness_function function = NULL;

    if (path[0] == '\0') {
        return ORTCRYPT_OK;
    }
    if (symbol == NULL) {
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s does not load", path);
    }
    memcpy(&function, &symbol, sizeof(function)); /* ISO C has no cast to a function pointer */
    drive->witness = function();
    drive->witness->library = *library;
    *library = path;
    return ORTCRYPT_OK;
}

static void know_device(oc_drive *drive, const OrtEpDevice *device)
{
    json_t *const name = json_string(drive->api->EpDevice_EpName(device));

    drive->device = device;
    (void)snprintf(drive->ep, sizeof(drive->ep), "%s", drive->api->EpDevice_EpName(device));
    (void)json_object_set_new(drive->report, "ep", name != NULL ? name : json_null());
    const char *const version = drive->api->GetKeyValue(drive->api->EpDevice_EpMetadata(device), "version");
    json_t *const text = version != NULL ? json_string(version) : NULL;
    (void)json_object_set_new(drive->report, "ep_version", text != NULL ? text : json_null());
}

/* The device that the job's EP has, else (no name: whatever the library brought) the newest one. */
static ortcrypt_status find_device(oc_drive *drive, size_t before, ortcrypt_error *err)
{
    const OrtEpDevice *const *all = NULL;
    const OrtEpDevice **devices = NULL;
    const size_t index = (size_t)json_integer_value(json_object_get(drive->job, "device"));
    size_t count = 0;

    if (text_of(drive, "ep")[0] != '\0') {
        const ortcrypt_status st = oc_runtime_devices(drive->runtime, text_of(drive, "ep"), &devices, &count, err);
        if (st == ORTCRYPT_OK) {
            know_device(drive, devices[index < count ? index : 0]);
            free(devices);
        }
        return st;
    }
    const ortcrypt_status st = oc_ort_check(
        drive->runtime, drive->api->GetEpDevices(ortcrypt_runtime_env(drive->runtime), &all, &count), err, "EP devices");
    if (st == ORTCRYPT_OK && count <= before) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the library offers no device of an execution provider on this machine");
    }
    if (st == ORTCRYPT_OK) {
        know_device(drive, all[before]);
    }
    return st;
}

static ortcrypt_status register_ep(oc_drive *drive, ortcrypt_error *err)
{
    const char *library = text_of(drive, "library");
    const OrtEpDevice *const *all = NULL;
    size_t before = 0;

    oc_drive_stage(drive, "register");
    ortcrypt_status st = oc_ort_check(
        drive->runtime, drive->api->GetEpDevices(ortcrypt_runtime_env(drive->runtime), &all, &before), err, "EP devices");
    if (st == ORTCRYPT_OK) {
        st = call_witness(drive, &library, err);
    }
    if (st == ORTCRYPT_OK && drive->witness != NULL) { /* the EP itself is looked at: without the bridge, and without ids */
        st = oc_ort_check(drive->runtime,
                          drive->api->RegisterExecutionProviderLibrary(ortcrypt_runtime_env(drive->runtime), text_of(drive, "registration"),
                                                                       library),
                          err, "EP library");
    } else if (st == ORTCRYPT_OK) {
        st = ortcrypt_runtime_register_ep(drive->runtime, text_of(drive, "registration"), library, err);
    }
    return st == ORTCRYPT_OK ? find_device(drive, before, err) : st;
}

static void tell_witness(oc_drive *drive)
{
    const oc_witness *const w = drive->witness;

    if (w != NULL) {
        (void)json_object_set_new(drive->report, "witness",
                                  json_pack("{s:i, s:i, s:i, s:i}", "configs_got", (int)atomic_load(&w->configs_got), "configs_released",
                                            (int)atomic_load(&w->configs_released), "given", (int)atomic_load(&w->buffers_given),
                                            "freed", (int)atomic_load(&w->buffers_freed)));
    }
}

void oc_drive_run(oc_drive *drive)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    OrtSession *session = NULL;

    ortcrypt_status st = open_runtime(drive, &err);
    if (st == ORTCRYPT_OK) {
        st = register_ep(drive, &err);
    }
    if (st == ORTCRYPT_OK) {
        oc_drive_stage(drive, "compile");
        st = oc_drive_compile(drive, &err);
    }
    if (st == ORTCRYPT_OK) {
        oc_drive_stage(drive, "load");
        st = oc_drive_load(drive, &session, &err);
    }
    if (st == ORTCRYPT_OK) {
        oc_drive_stage(drive, "run");
        st = oc_drive_compare(drive, session, &err);
    }
    if (st != ORTCRYPT_OK) {
        json_t *const stage = json_object_get(drive->report, "stage");
        (void)json_object_set_new(drive->report, "error", json_pack("{s:O, s:s}", "stage", stage, "words", err.message));
    }
    oc_drive_stage(drive, "close");
    if (session != NULL) {
        drive->api->ReleaseSession(session);
    }
    oc_registration_end(drive->registration);
    drive->registration = NULL;
    if (ortcrypt_runtime_close(drive->runtime, NULL) == ORTCRYPT_OK) { /* nothing counts itself in it: the session is ORT's own */
        drive->runtime = NULL;
    }
    tell_witness(drive);
    oc_drive_stage(drive, "done");
}

void oc_drive_end(oc_drive *drive)
{
    while (drive->blobs != NULL) {
        oc_drive_blob *const blob = drive->blobs;
        drive->blobs = blob->next;
        free(blob->name);
        free(blob->data);
        free(blob);
    }
    free(drive->expected);
    oc_buf_free(&drive->onnx);
    oc_buf_free(&drive->compiled);
    json_decref(drive->job);
    json_decref(drive->report);
    (void)pthread_mutex_destroy(&drive->lock);
}
