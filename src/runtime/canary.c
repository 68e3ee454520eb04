/* What the canary's report proves. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/canary.h"
#include "runtime/private.h"
#include "runtime/probe.h"

#define TIMEOUT_MS 120000u /* a simulated NPU took under 10 s */

/* The EP takes at least one of them whole, or is refused; in the order in which EPs are most likely to. */
static const char *const MODELS[] = {"matmul", "conv", "cnn", "mul"};

typedef struct oc_canary_kept {
    char *key;
    oc_canary_verdict verdict;
    struct oc_canary_kept *next;
} oc_canary_kept;

static void refuse(oc_canary_verdict *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(oc_canary_verdict *out, const char *format, ...)
{
    va_list list;

    out->proven = false;
    va_start(list, format);
    (void)vsnprintf(out->why, sizeof(out->why), format, list);
    va_end(list);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* True when it said how it ended: tries to write, time, crash. What it compiled does not matter then. */
static bool ended_badly(oc_canary_verdict *out, const oc_probe_result *result)
{
    const oc_watch_result *const watch = &result->watch;
    const char *const stage = text_of(result->report, "stage");

    if (watch->try_count != 0) {
        refuse(out, "with the callbacks set, it tried to %s %.300s%s", watch->tries[0].what,
               watch->tries[0].path != NULL ? watch->tries[0].path : "a file",
               strcmp(watch->tries[0].what, "open") == 0 ? " for writing" : "");
        return true;
    }
    if (watch->end == OC_WATCH_TIMED_OUT) {
        refuse(out, "it did not come to an end (step %s) within the time allowed", stage);
        return true;
    }
    if (watch->end == OC_WATCH_SIGNALLED) {
        refuse(out, "it crashed (%s, step %s)", oc_probe_signal(watch->code), stage);
        return true;
    }
    if (watch->code > 0 || strcmp(stage, "done") != 0) { /* -1: not known, and "done" is said last */
        refuse(out, "it ended the process (exit code %d, step %s)", watch->code, stage);
        return true;
    }
    if (watch->level == OC_WATCH_NOTHING) { /* whatever is reported then, nobody looked */
        refuse(out, "the program that tries it out was not held");
        return true;
    }
    return false;
}

/* Every blob that a node names was written, none of them empty. */
static bool all_written(const json_t *report)
{
    const json_t *named = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(report, "named"), i, named) {
        const json_t *written = NULL;
        size_t k = 0;
        bool found = false;
        json_array_foreach(json_object_get(report, "written"), k, written) {
            found = found || (json_string_value(named) != NULL && strcmp(text_of(written, "name"), json_string_value(named)) == 0 &&
                              json_integer_value(json_object_get(written, "len")) > 0);
        }
        if (!found) {
            return false;
        }
    }
    return json_array_size(json_object_get(report, "named")) != 0;
}

/* True: the EP did not take this model whole, and another one may serve. */
static bool judge(oc_canary_verdict *out, const oc_probe_result *result)
{
    const json_t *const report = result->report;
    const json_t *const error = json_object_get(report, "error");
    const char *const stage = text_of(error, "stage");
    const json_int_t nodes = json_integer_value(json_object_get(report, "nodes"));
    const json_int_t contexts = json_integer_value(json_object_get(report, "contexts"));
    const size_t written = json_array_size(json_object_get(report, "written"));
    const double difference = json_real_value(json_object_get(report, "difference"));

    if (ended_badly(out, result)) {
        return false;
    }
    if (strcmp(stage, "compile") == 0 && strstr(text_of(error, "words"), "does not support the registered EPContext") != NULL) {
        refuse(out, "it does not advertise the EPContext callbacks, which ONNX Runtime 1.31 and newer ask for");
    } else if (strcmp(stage, "open") == 0 || strcmp(stage, "register") == 0) {
        refuse(out, "it could not be tried out: %.400s", text_of(error, "words"));
    } else if (strcmp(stage, "compile") == 0) {
        refuse(out, "it does not compile the canary: %.400s", text_of(error, "words"));
    } else if (contexts == 0 || nodes != contexts) {
        refuse(out, "it does not take the canary whole (%d of %d nodes are EPContext nodes)", (int)contexts, (int)nodes);
        return true;
    } else if (written == 0) {
        refuse(out, "it compiled the canary without calling the write callback");
    } else if (!all_written(report)) {
        refuse(out, "it took the write callback and did not give it all of its EPContext data");
    } else if (json_array_size(json_object_get(report, "read")) == 0) {
        refuse(out, "it took the read callback and did not use it");
    } else if (json_is_object(error)) {
        refuse(out, "it does not load what it compiled: %.400s", text_of(error, "words"));
    } else if (!(difference <= OC_PROBE_DIFFERENCE_MAX)) {
        refuse(out, "its outputs are wrong: they differ by %g of their range from the CPU's", difference);
    } else {
        out->proven = true;
        (void)snprintf(out->why, sizeof(out->why),
                       "proved with the canary: its EPContext data went through the callbacks, both ways, and %s",
                       result->watch.level == OC_WATCH_SECCOMP ? "it tried to open no file for writing" : "it could write no file");
    }
    return false;
}

/* Where an EP's library is: as it was registered, else as its devices say. */
static const char *find_library(ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice *device)
{
    (void)pthread_mutex_lock(&runtime->lock);
    const oc_registered_ep *const registered = oc_registered_find(runtime, ep);
    const char *const library = registered != NULL ? registered->library : NULL; /* valid until close */
    (void)pthread_mutex_unlock(&runtime->lock);
    return library != NULL ? library : oc_device_library(runtime, device);
}

/* Which of the EP's devices it is: the program finds them in the same order. */
static ortcrypt_status find_index(size_t *index, const OrtEpDevice **first, ortcrypt_runtime *runtime, const char *ep,
                                  const OrtEpDevice *device, ortcrypt_error *err)
{
    const OrtEpDevice **devices = NULL;
    size_t count = 0;

    const ortcrypt_status st = oc_runtime_devices(runtime, ep, &devices, &count, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    *first = devices[0];
    *index = 0;
    for (size_t i = 0; i < count; i++) {
        *index = devices[i] == device ? i : *index;
    }
    free(devices);
    return ORTCRYPT_OK;
}

/* Everything but the model. */
static ortcrypt_status make_job(json_t **out, ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice *first, size_t index,
                                const char *const *keys, const char *const *values, size_t count, ortcrypt_error *err)
{
    char ort[PATH_MAX];
    void *address = NULL;
    Dl_info info;

    const char *const library = find_library(runtime, ep, first);
    memcpy(&address, &runtime->base->GetApi, sizeof(address)); /* ISO C has no cast from a function pointer */
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, ort) == NULL || library == NULL) {
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s cannot be tried out: the library of %s is not known", ep,
                       library == NULL ? "the execution provider" : "ONNX Runtime");
    }
    json_t *const options = json_object();
    for (size_t i = 0; i < count; i++) {
        (void)json_object_set_new(options, keys[i], json_string(values[i]));
    }
    *out = json_pack("{s:s, s:s?, s:s, s:s, s:s, s:I, s:o, s:b, s:s, s:s, s:b}", "ort", ort, "bridge", runtime->bridge, "library",
                     library, "registration", ep, "ep", ep, "device", (json_int_t)index, "options", options, "callbacks", 1, "write",
                     "give", "read", "give", "watched", 1);
    return *out != NULL && json_object_size(options) == count ? ORTCRYPT_OK : oc_fail(err, ORTCRYPT_E_INVALID, "an option of %s is no text", ep);
}

static ortcrypt_status try_out(oc_canary_verdict *out, ortcrypt_runtime *runtime, json_t *job, ortcrypt_error *err)
{
    oc_probe_result result;
    char *program = NULL;
    bool again = true;

    ortcrypt_status st = oc_probe_find(&program, runtime->probe, err);
    for (size_t i = 0; i < sizeof(MODELS) / sizeof(MODELS[0]) && again && st == ORTCRYPT_OK; i++) {
        (void)json_object_set_new(job, "model", json_string(MODELS[i]));
        st = oc_probe_run(&result, program, job, NULL, runtime->probe_timeout_ms != 0 ? runtime->probe_timeout_ms : TIMEOUT_MS, err);
        if (st == ORTCRYPT_OK) {
            again = judge(out, &result);
            oc_probe_result_free(&result);
        }
    }
    free(program);
    return st;
}

/* The EP, its device and its options as one text. */
static ortcrypt_status make_key(oc_buf *key, const char *ep, size_t index, const char *const *keys, const char *const *values,
                                size_t count, ortcrypt_error *err)
{
    char number[24];
    ortcrypt_status st = oc_buf_append_str(key, ep, err);

    (void)snprintf(number, sizeof(number), "\n%zu", index);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append_str(key, number, err);
    }
    for (size_t i = 0; i < count && st == ORTCRYPT_OK; i++) {
        st = oc_buf_append(key, "\n", 1, err);
        if (st == ORTCRYPT_OK) {
            st = oc_buf_append_str(key, keys[i], err);
        }
        if (st == ORTCRYPT_OK) {
            st = oc_buf_append(key, "=", 1, err);
        }
        if (st == ORTCRYPT_OK) {
            st = oc_buf_append_str(key, values[i], err);
        }
    }
    return st == ORTCRYPT_OK ? oc_buf_append(key, "", 1, err) : st;
}

static bool find_kept(oc_canary_verdict *out, ortcrypt_runtime *runtime, const char *key)
{
    const oc_canary_kept *kept = NULL;

    (void)pthread_mutex_lock(&runtime->lock);
    for (kept = runtime->canaries; kept != NULL && strcmp(kept->key, key) != 0; kept = kept->next) {
    }
    if (kept != NULL) {
        *out = kept->verdict;
        out->known = true;
    }
    (void)pthread_mutex_unlock(&runtime->lock);
    return kept != NULL;
}

/* Best effort: without memory it is tried again next time. Takes the key over. */
static void keep(ortcrypt_runtime *runtime, char *key, const oc_canary_verdict *verdict)
{
    oc_canary_kept *const kept = calloc(1, sizeof(*kept));

    if (kept == NULL) {
        free(key);
        return;
    }
    kept->key = key;
    kept->verdict = *verdict;
    (void)pthread_mutex_lock(&runtime->lock);
    kept->next = runtime->canaries;
    runtime->canaries = kept;
    (void)pthread_mutex_unlock(&runtime->lock);
}

ortcrypt_status oc_canary_prove(oc_canary_verdict *out, ortcrypt_runtime *runtime, const char *ep, const OrtEpDevice *device,
                                const char *const *keys, const char *const *values, size_t count, ortcrypt_error *err)
{
    oc_buf key = OC_BUF(64u * 1024u);
    const OrtEpDevice *first = NULL;
    json_t *job = NULL;
    size_t index = 0;

    memset(out, 0, sizeof(*out));
    ortcrypt_status st = find_index(&index, &first, runtime, ep, device, err);
    if (st == ORTCRYPT_OK) {
        st = make_key(&key, ep, index, keys, values, count, err);
    }
    if (st != ORTCRYPT_OK || find_kept(out, runtime, (const char *)key.data)) {
        oc_buf_free(&key);
        return st;
    }
    st = make_job(&job, runtime, ep, first, index, keys, values, count, err);
    if (st == ORTCRYPT_OK) {
        st = try_out(out, runtime, job, err);
    }
    json_decref(job);
    if (st == ORTCRYPT_OK) {
        keep(runtime, (char *)key.data, out);
    } else {
        oc_buf_free(&key);
    }
    return st;
}

void oc_canary_forget(ortcrypt_runtime *runtime)
{
    while (runtime->canaries != NULL) {
        oc_canary_kept *const kept = runtime->canaries;
        runtime->canaries = kept->next;
        free(kept->key);
        free(kept);
    }
}
