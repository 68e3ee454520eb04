/* The runs of a check: which job each is, and where its files may go. */
#include "conform/check_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define TIMEOUT_MS 120000u

typedef struct paths {
    char *program;
    char *witness;
    char *ort;
    char *library;
} paths;

/* The witness lies beside the program. */
static ortcrypt_status find_witness(paths *p, ortcrypt_error *err)
{
    const char *const slash = strrchr(p->program, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - p->program) + 1 : 0;
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.*s%s", (int)folder, p->program, OC_WITNESS_LIBRARY);
    p->witness = realpath(path, NULL);
    return p->witness != NULL ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "%s", path);
}

/* The program has another working folder: what is a path is made absolute here. */
static ortcrypt_status find_paths(paths *p, const oc_check_options *options, ortcrypt_error *err)
{
    ortcrypt_status st = oc_probe_find(&p->program, NULL, err);

    if (st == ORTCRYPT_OK) {
        st = find_witness(p, err);
    }
    if (st == ORTCRYPT_OK) {
        p->library = realpath(options->library, NULL);
        st = p->library != NULL ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the EP library %s", options->library);
    }
    if (st == ORTCRYPT_OK && options->ort != NULL && strchr(options->ort, '/') != NULL) {
        p->ort = realpath(options->ort, NULL);
        st = p->ort != NULL ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", options->ort);
    } else if (st == ORTCRYPT_OK && options->ort != NULL) {
        st = oc_strdup(&p->ort, options->ort, err);
    }
    return st;
}

static void paths_free(paths *p)
{
    free(p->program);
    free(p->witness);
    free(p->ort);
    free(p->library);
}

/* EPs that take the name they are registered under for their own, and must then have the right one. */
static const char *registration_name(const oc_check_options *options)
{
    static const char *const known[][2] = {{"providers_qnn", "QNNExecutionProvider"}, {"openvino", "OpenVINOExecutionProvider"}};
    const char *const slash = strrchr(options->library, '/');
    const char *const file = slash != NULL ? slash + 1 : options->library;

    for (size_t i = 0; options->ep == NULL && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strstr(file, known[i][0]) != NULL) {
            return known[i][1];
        }
    }
    return options->ep != NULL ? options->ep : "check_ep";
}

static json_t *make_job(const paths *p, const oc_check_options *options, const char *model, oc_run run)
{
    static const char *const reads[OC_RUN_COUNT] = {
        [OC_RUN_READ_FAILS] = "fail", [OC_RUN_EMPTY] = "empty", [OC_RUN_CUT] = "cut", [OC_RUN_FOREIGN] = "foreign"};
    const bool callbacks = run != OC_RUN_WITHOUT;
    json_t *const given = json_object();

    for (size_t i = 0; i < options->count; i++) {
        (void)json_object_set_new(given, options->keys[i], json_string(options->values[i]));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:b, s:s, s:s, s:b}", "ort", p->ort != NULL ? p->ort : "", "library", p->library,
                     "witness", p->witness, "registration", registration_name(options), "ep", "", "options", given, "model", model, "callbacks", callbacks,
                     "write", run == OC_RUN_WRITE_FAILS ? "fail" : "give", "read", reads[run] != NULL ? reads[run] : "give", "watched",
                     callbacks);
}

static void remove_folder(const char *folder)
{
    const char *const args[] = {"/bin/rm", "-rf", "--", folder, NULL};
    const char *const env[] = {NULL};
    const oc_watch_options options = {
        .program = args[0], .args = &args[1], .env = env, .output_max = 1, .timeout_ms = 10000, .writes_allowed = true};
    oc_watch_result result;

    if (oc_watch_run(&result, &options, NULL) == ORTCRYPT_OK) {
        oc_watch_result_free(&result);
    }
}

static ortcrypt_status run_one(oc_check *check, const paths *p, oc_run run, const char *model, ortcrypt_error *err)
{
    const unsigned timeout_ms = check->options->timeout_ms != 0 ? check->options->timeout_ms : TIMEOUT_MS;
    const char *const temporary = getenv("TMPDIR");
    char folder[PATH_MAX] = "";

    ortcrypt_status st = oc_progress(check->options->monitor, "trying out", (uint64_t)run, OC_RUN_COUNT, err);
    json_t *const job = make_job(p, check->options, model, run);
    if (st == ORTCRYPT_OK && job == NULL) {
        st = oc_fail(err, ORTCRYPT_E_INVALID, "an option of the execution provider is no text");
    }
    if (st == ORTCRYPT_OK && run == OC_RUN_WITHOUT) {
        (void)snprintf(folder, sizeof(folder), "%s/ortcrypt-check-XXXXXX", temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp");
        if (mkdtemp(folder) == NULL) {
            st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", folder);
            folder[0] = '\0';
        }
    }
    if (st == ORTCRYPT_OK) {
        st = oc_probe_run(&check->runs[run], p->program, job, folder[0] != '\0' ? folder : NULL, timeout_ms, err);
    }
    if (folder[0] != '\0') {
        remove_folder(folder);
    }
    json_decref(job);
    return st;
}

/* A run that ended before there was an EP says nothing about it. */
static ortcrypt_status refuse_early(const oc_check *check, ortcrypt_error *err)
{
    const json_t *const error = json_object_get(check->runs[OC_RUN_PLAIN].report, "error");
    const char *const stage = json_string_value(json_object_get(error, "stage"));
    const char *const words = json_string_value(json_object_get(error, "words"));
    const char *const era = json_string_value(json_object_get(check->runs[OC_RUN_PLAIN].report, "era"));

    if (stage != NULL && words != NULL && (strcmp(stage, "open") == 0 || strcmp(stage, "register") == 0)) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "%s", words);
    }
    if (era != NULL && strcmp(era, "none") == 0) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "this ONNX Runtime has no EPContext callbacks: there is nothing to check an execution provider against");
        oc_hint(err, "use 1.28 or newer");
        return ORTCRYPT_E_UNSUPPORTED;
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status run_all(oc_check *check, const paths *p, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    for (size_t i = 0; i < OC_MODEL_COUNT && st == ORTCRYPT_OK; i++) {
        st = run_one(check, p, (oc_run)(OC_RUN_PLAIN + i), OC_MODELS[i].name, err);
        if (st == ORTCRYPT_OK && i == 0) {
            st = refuse_early(check, err);
        }
    }
    if (st == ORTCRYPT_OK) {
        oc_check_models(check);
    }
    for (int run = OC_RUN_WRITE_FAILS; run < OC_RUN_COUNT && st == ORTCRYPT_OK && check->model < OC_MODEL_COUNT; run++) {
        st = run_one(check, p, (oc_run)run, OC_MODELS[check->model].name, err);
    }
    return st;
}

ortcrypt_status oc_check_ep(json_t **out, const oc_check_options *options, ortcrypt_error *err)
{
    oc_check check = {.options = options, .model = OC_MODEL_COUNT, .models = json_array(), .rows = json_array()};
    paths p = {0};

    ortcrypt_status st = find_paths(&p, options, err);
    if (st == ORTCRYPT_OK) {
        st = run_all(&check, &p, err);
    }
    if (st == ORTCRYPT_OK) {
        json_t *const report = check.runs[OC_RUN_PLAIN].report;
        oc_check_rows(&check);
        *out = json_pack("{s:s, s:O?, s:O?, s:O?, s:O, s:O, s:b}", "library", options->library, "ep", json_object_get(report, "ep"),
                         "ep_version", json_object_get(report, "ep_version"), "runtime", json_object_get(report, "runtime"), "models",
                         check.models, "rows", check.rows, "holds", check.failed == 0);
        if (*out == NULL) {
            st = oc_fail_memory(err, 4096, "the report of a check");
        }
    }
    for (size_t i = 0; i < OC_RUN_COUNT; i++) {
        oc_probe_result_free(&check.runs[i]);
    }
    json_decref(check.models);
    json_decref(check.rows);
    paths_free(&p);
    return st;
}
