/*
 * What the runs show. A fault is named in the one row it belongs to; what cannot be seen because of it is "unseen" there, so that an EP with
 * one fault has one failing row.
 */
#include "conform/check_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DETAIL_SIZE 640

typedef enum outcome { HOLDS, FAILS, UNSEEN } outcome;

static const char *text_of(const json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key) { return json_integer_value(json_object_get(object, key)); }

static json_t *text_json(const char *text)
{
    json_t *const value = json_string(text);

    return value != NULL ? value : json_string("?");
}

static void row(oc_check *check, const char *name, const char *what, outcome out, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void row(oc_check *check, const char *name, const char *what, outcome out, const char *format, ...)
{
    static const char *const words[] = {"holds", "fails", "unseen"};
    char detail[DETAIL_SIZE];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(detail, sizeof(detail), format, list);
    va_end(list);
    check->failed += out == FAILS ? 1 : 0;
    (void)json_array_append_new(check->rows, json_pack("{s:s, s:s, s:s, s:o}", "name", name, "what", what, "verdict", words[out], "detail",
                                                       text_json(detail)));
}

/* ---- What one run shows. ---- */

static bool took_place(const oc_probe_result *run) { return run->report != NULL || run->watch.code != 0 || run->watch.end != OC_WATCH_EXITED; }

/* Why a run did not come to its end: a sentence part; false: it did. */
static bool broke(const oc_probe_result *run, char detail[DETAIL_SIZE])
{
    const char *const stage = text_of(run->report, "stage");

    if (run->watch.end == OC_WATCH_TIMED_OUT) {
        (void)snprintf(detail, DETAIL_SIZE, "no end within the time allowed (step %s)", stage);
        return true;
    }
    if (run->watch.end == OC_WATCH_SIGNALLED) {
        (void)snprintf(detail, DETAIL_SIZE, "crashes (%s, step %s)", oc_probe_signal(run->watch.code), stage);
        return true;
    }
    if (run->watch.code != 0 || strcmp(stage, "done") != 0) {
        (void)snprintf(detail, DETAIL_SIZE, "ends the process (exit code %d, step %s)", run->watch.code, stage);
        return true;
    }
    return false;
}

static const char *error_stage(const oc_probe_result *run) { return text_of(json_object_get(run->report, "error"), "stage"); }
static const char *error_words(const oc_probe_result *run) { return text_of(json_object_get(run->report, "error"), "words"); }

/* ORT's refusal of an EP that does not say it uses them. */
static bool not_advertised(const oc_probe_result *run)
{
    return strstr(error_words(run), "does not support the registered EPContext") != NULL;
}

static json_int_t written_len(const oc_probe_result *run)
{
    const json_t *one = NULL;
    json_int_t len = 0;
    size_t i = 0;

    json_array_foreach(json_object_get(run->report, "written"), i, one) {
        len += number_of(one, "len");
    }
    return len;
}

/* Names that nodes say and nobody wrote. */
static size_t unwritten_count(const oc_probe_result *run)
{
    const json_t *named = NULL;
    size_t missing = 0;
    size_t i = 0;

    json_array_foreach(json_object_get(run->report, "named"), i, named) {
        const json_t *written = NULL;
        size_t k = 0;
        bool found = false;
        json_array_foreach(json_object_get(run->report, "written"), k, written) {
            found = found || strcmp(text_of(written, "name"), json_string_value(named) != NULL ? json_string_value(named) : "") == 0;
        }
        missing += found ? 0 : 1;
    }
    return missing;
}

/* ---- The models. ---- */

/* A blob of a quarter of the weights is an EP's own compression; much less cannot hold them: they are elsewhere. */
static const char *model_verdict(const oc_probe_result *run, const oc_model *model, char detail[DETAIL_SIZE])
{
    const json_int_t nodes = number_of(run->report, "nodes");
    const json_int_t contexts = number_of(run->report, "contexts");
    const json_int_t len = written_len(run);

    detail[0] = '\0';
    if (broke(run, detail)) {
        return "error";
    }
    if (strcmp(error_stage(run), "compile") == 0) {
        (void)snprintf(detail, DETAIL_SIZE, "%.600s", error_words(run));
        return "error";
    }
    (void)snprintf(detail, DETAIL_SIZE, "%lld of %lld nodes are EPContext nodes, %lld bytes of data", (long long)contexts, (long long)nodes,
                   (long long)len);
    if (contexts == 0) {
        return "none";
    }
    if (contexts != nodes) {
        return "part";
    }
    return len != 0 && (size_t)len < model->weight_len / 4 ? "small" : "whole";
}

void oc_check_models(oc_check *check)
{
    char detail[DETAIL_SIZE];

    for (size_t i = 0; i < OC_MODEL_COUNT; i++) {
        const char *const verdict = model_verdict(&check->runs[OC_RUN_PLAIN + i], &OC_MODELS[i], detail);
        if (check->model == OC_MODEL_COUNT && strcmp(verdict, "whole") == 0) {
            check->model = i;
        }
        (void)json_array_append_new(check->models, json_pack("{s:s, s:s, s:s, s:o}", "name", OC_MODELS[i].name, "what", OC_MODELS[i].what,
                                                             "verdict", verdict, "detail", text_json(detail)));
    }
}

/* ---- The rows. ---- */

static const oc_probe_result *plain(const oc_check *check)
{
    return &check->runs[OC_RUN_PLAIN + (check->model < OC_MODEL_COUNT ? check->model : 0)];
}

/* Over all models: it comes to an end, and makes no file. True when one of them failed. */
static bool ends_and_files(oc_check *check)
{
    const size_t failed = check->failed;
    char detail[DETAIL_SIZE] = "";
    const oc_watch_try *tried = NULL;
    bool told = true;
    bool broken = false;

    for (size_t i = 0; i < OC_MODEL_COUNT; i++) {
        const oc_probe_result *const run = &check->runs[OC_RUN_PLAIN + i];
        broken = broken || broke(run, detail);
        tried = tried == NULL && run->watch.try_count != 0 ? &run->watch.tries[0] : tried;
        told = told && run->watch.level == OC_WATCH_SECCOMP;
    }
    row(check, "ends", "neither crashes nor hangs", broken ? FAILS : HOLDS, "%s", detail);
    if (tried != NULL) {
        row(check, "no_file", "makes no file when a callback is set", FAILS, "tried to %s %.500s", tried->what,
            tried->path != NULL ? tried->path : "a file");
    } else {
        row(check, "no_file", "makes no file when a callback is set", broken || !told ? UNSEEN : HOLDS, "%s",
            told ? "" : "this kernel refuses files, and cannot tell");
    }
    return check->failed != failed;
}

static void advertises(oc_check *check)
{
    const oc_probe_result *const run = plain(check);
    const bool asked = strcmp(text_of(run->report, "era"), "stable") == 0;
    bool refused = false;

    for (size_t i = 0; i < OC_MODEL_COUNT; i++) {
        refused = refused || not_advertised(&check->runs[OC_RUN_PLAIN + i]);
    }
    row(check, "advertises", "says that it uses the callbacks", refused ? FAILS : asked && check->model < OC_MODEL_COUNT ? HOLDS : UNSEEN, "%s",
        refused ? "ONNX Runtime refuses the callbacks: OrtEp::GetEpContextDataCallbackSupport is missing or says less"
        : asked ? ""
                : "asked for by ONNX Runtime 1.31 and newer");
}

static void takes(oc_check *check, bool faulty)
{
    const bool whole = check->model < OC_MODEL_COUNT;

    row(check, "emits", "compiles a model whole into EPContext nodes", whole ? HOLDS : faulty ? UNSEEN : FAILS, "%s%s",
        whole ? "checked with the model " : faulty ? "" : "none of the models was taken whole", whole ? OC_MODELS[check->model].name : "");
}

static void callbacks_used(oc_check *check)
{
    const oc_probe_result *const run = plain(check);
    const bool whole = check->model < OC_MODEL_COUNT;
    const size_t written = json_array_size(json_object_get(run->report, "written"));
    const size_t reads = json_array_size(json_object_get(run->report, "read"));
    const bool all = whole && written != 0 && unwritten_count(run) == 0;
    const double difference = json_real_value(json_object_get(run->report, "difference"));
    const bool loaded = json_object_get(run->report, "difference") != NULL;

    row(check, "write", "uses the write callback", !whole ? UNSEEN : all ? HOLDS : FAILS, "%s",
        !whole || all ? "" : written == 0 ? "never called it" : "a node names data that it was not given");
    row(check, "read", "uses the read callback", !whole ? UNSEEN : reads != 0 ? HOLDS : all ? FAILS : UNSEEN, "%s",
        all && reads == 0 ? "never called it" : "");
    if (loaded) {
        const bool right = difference <= OC_PROBE_DIFFERENCE_MAX;
        row(check, "outputs", "gives the CPU's outputs after loading", right ? HOLDS : FAILS, "largest difference %.2g of their range", difference);
    } else {
        row(check, "outputs", "gives the CPU's outputs after loading", all && reads != 0 && !not_advertised(run) ? FAILS : UNSEEN, "%.500s",
            all ? error_words(run) : "");
    }
}

/* A callback's error must come out, in its own words. `stage` is where. */
static void error_passed(oc_check *check, oc_run which, const char *name, const char *what, const char *stage)
{
    const oc_probe_result *const run = &check->runs[which];
    char detail[DETAIL_SIZE] = "";

    if (!took_place(run)) {
        row(check, name, what, UNSEEN, "%s", "");
    } else if (json_array_size(json_object_get(run->report, which == OC_RUN_WRITE_FAILS ? "written" : "read")) == 0) {
        row(check, name, what, UNSEEN, "the callback was not called");
    } else if (broke(run, detail)) {
        row(check, name, what, FAILS, "%s", detail);
    } else if (strcmp(error_stage(run), stage) != 0) {
        row(check, name, what, FAILS, "goes on as if nothing had happened");
    } else if (strstr(error_words(run), OC_DRIVE_REFUSAL) == NULL) {
        row(check, name, what, FAILS, "fails with other words than the callback's: %.400s", error_words(run));
    } else {
        row(check, name, what, HOLDS, "%s", "");
    }
}

static void no_fallback(oc_check *check)
{
    static const char *const after[] = {"an error of the write callback", "an error of the read callback", "empty data", "cut data", "foreign data"};
    const char *const what = "makes no file after an error";

    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        const oc_watch_result *const watch = &check->runs[OC_RUN_WRITE_FAILS + i].watch;
        if (watch->try_count != 0) {
            row(check, "no_fallback", what, FAILS, "after %s it tried to %s %.400s", after[i], watch->tries[0].what,
                watch->tries[0].path != NULL ? watch->tries[0].path : "a file");
            return;
        }
    }
    const bool seen = took_place(&check->runs[OC_RUN_WRITE_FAILS]) && check->runs[OC_RUN_WRITE_FAILS].watch.level == OC_WATCH_SECCOMP;
    row(check, "no_fallback", what, seen ? HOLDS : UNSEEN, "%s", "");
}

static void bad_data(oc_check *check)
{
    static const char *const given[] = {"empty data", "data cut in half", "foreign data"};
    const char *const what = "survives empty, cut and foreign data";
    const bool reads = json_array_size(json_object_get(plain(check)->report, "read")) != 0;
    char detail[DETAIL_SIZE] = "";

    if (!reads || !took_place(&check->runs[OC_RUN_EMPTY])) {
        row(check, "bad_data", what, UNSEEN, "%s", "");
        return;
    }
    for (int i = 0; i < 3; i++) {
        const oc_probe_result *const run = &check->runs[OC_RUN_EMPTY + i];
        if (broke(run, detail)) {
            row(check, "bad_data", what, FAILS, "%s: %s", given[i], detail);
            return;
        }
        if (!json_is_object(json_object_get(run->report, "error"))) {
            row(check, "bad_data", what, FAILS, "%s is accepted, without an error", given[i]);
            return;
        }
    }
    row(check, "bad_data", what, HOLDS, "%s", "");
}

static void memory(oc_check *check)
{
    const char *const what = "takes the data through the allocator given, and frees it there";
    const json_t *const report = plain(check)->report;
    const json_t *const witness = json_object_get(report, "witness");
    const json_int_t got = number_of(witness, "configs_got");
    const json_int_t released = number_of(witness, "configs_released");
    const json_int_t given = number_of(witness, "given");
    const json_int_t freed = number_of(witness, "freed");
    json_int_t none = 0;
    const json_t *one = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(report, "read"), i, one) {
        none += strcmp(text_of(one, "allocator"), "none") == 0 ? 1 : 0;
    }
    if (none != 0) {
        row(check, "allocator", what, FAILS, "gives the read callback no allocator");
    } else if (given != 0) {
        row(check, "allocator", what, freed == given ? HOLDS : FAILS, "%lld of %lld buffers were freed through the allocator they came from",
            (long long)freed, (long long)given);
    } else {
        row(check, "allocator", what, UNSEEN, "%s", "");
    }
    row(check, "config", "releases the configuration it asked for",
        check->model == OC_MODEL_COUNT || got == 0 ? UNSEEN
        : got == released                          ? HOLDS
                                                   : FAILS,
        "%lld asked for, %lld released", (long long)got, (long long)released);
}

static void without(oc_check *check)
{
    const char *const what = "makes and loads files when no callback is set";
    const oc_probe_result *const run = &check->runs[OC_RUN_WITHOUT];
    const double difference = json_real_value(json_object_get(run->report, "difference"));
    char detail[DETAIL_SIZE] = "";

    if (!took_place(run)) {
        row(check, "without", what, UNSEEN, "%s", "");
    } else if (broke(run, detail)) {
        row(check, "without", what, FAILS, "%s", detail);
    } else if (json_is_object(json_object_get(run->report, "error"))) {
        row(check, "without", what, FAILS, "%.500s", error_words(run));
    } else if (number_of(run->report, "file_count") == 0 || number_of(run->report, "file_len") < written_len(plain(check)) / 2) {
        row(check, "without", what, FAILS, "%lld files with %lld bytes", (long long)number_of(run->report, "file_count"),
            (long long)number_of(run->report, "file_len"));
    } else if (!(difference <= OC_PROBE_DIFFERENCE_MAX)) {
        row(check, "without", what, FAILS, "outputs differ by %.2g of their range", difference);
    } else {
        row(check, "without", what, HOLDS, "%s", "");
    }
}

void oc_check_rows(oc_check *check)
{
    const bool faulty = ends_and_files(check);
    const size_t failed = check->failed;

    advertises(check);
    takes(check, faulty || check->failed != failed);
    callbacks_used(check);
    error_passed(check, OC_RUN_WRITE_FAILS, "write_error", "passes an error of the write callback on", "compile");
    error_passed(check, OC_RUN_READ_FAILS, "read_error", "passes an error of the read callback on", "load");
    no_fallback(check);
    memory(check);
    bad_data(check);
    without(check);
}
