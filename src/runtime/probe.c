/* Finding and running ortcrypt-probe. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/private.h"
#include "runtime/probe.h"

#define TELEMETRY "ORT_DISABLE_TELEMETRY="
#define MODEL_CONFIG "ORT_LOAD_CONFIG_FROM_MODEL="

/* Beside it: a build folder, or a program that has the library inside. Then an installation's library folder, or program folder. */
static const char *const PLACES[] = {"", "../", "ortcrypt/", "../libexec/ortcrypt/", "../../libexec/ortcrypt/"};

ortcrypt_status oc_probe_find(char **out, const char *named, ortcrypt_error *err)
{
    if (named != NULL) {
        return access(named, X_OK) == 0 ? oc_strdup(out, named, err) : oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "%s", named);
    }
    const ortcrypt_status st = oc_find_beside(out, PLACES, sizeof(PLACES) / sizeof(PLACES[0]), OC_PROBE_PROGRAM, X_OK, err);
    if (st != ORTCRYPT_OK || *out != NULL) {
        return st;
    }
    (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the program %s is not here, which tries out execution providers", OC_PROBE_PROGRAM);
    oc_hint(err, "an installation has it in libexec/ortcrypt; ortcrypt_runtime_options.probe may name it");
    return ORTCRYPT_E_UNSUPPORTED;
}

/* The caller's environment with telemetry off. The texts stay the environment's; the list is heap. */
static const char **make_environment(void)
{
    size_t count = 0;
    size_t at = 0;

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    const char **const list = calloc(count + 2, sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        if (strncmp(environ[i], TELEMETRY, sizeof(TELEMETRY) - 1) != 0 && strncmp(environ[i], MODEL_CONFIG, sizeof(MODEL_CONFIG) - 1) != 0) {
            list[at++] = environ[i];
        }
    }
    if (list != NULL) {
        list[at] = TELEMETRY "1";
    }
    return list;
}

/* The last whole line that is JSON. */
static json_t *last_report(const oc_buf *output)
{
    const char *const text = (const char *)output->data;
    size_t end = output->len;

    while (end > 0) {
        while (end > 0 && text[end - 1] != '\n') {
            end--;
        }
        if (end == 0) {
            break;
        }
        size_t begin = end - 1;
        while (begin > 0 && text[begin - 1] != '\n') {
            begin--;
        }
        json_t *const report = json_loadb(text + begin, end - 1 - begin, 0, NULL);
        if (report != NULL) {
            return report;
        }
        end = begin;
    }
    return NULL;
}

static ortcrypt_status check_version(const json_t *report, ortcrypt_error *err)
{
    const char *const version = json_string_value(json_object_get(report, "version"));

    if (report == NULL || (version != NULL && strcmp(version, ORTCRYPT_VERSION) == 0)) {
        return ORTCRYPT_OK;
    }
    return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s is of version %.40s, and this is %s", OC_PROBE_PROGRAM, version != NULL ? version : "?",
                   ORTCRYPT_VERSION);
}

ortcrypt_status oc_probe_run(oc_probe_result *out, const char *program, const json_t *job, const char *folder, unsigned timeout_ms,
                             ortcrypt_error *err)
{
    char *const text = json_dumps(job, JSON_COMPACT);
    const char **const environment = make_environment();

    memset(out, 0, sizeof(*out));
    ortcrypt_status st = text == NULL || environment == NULL ? oc_fail_memory(err, 4096, "a job for " OC_PROBE_PROGRAM) : ORTCRYPT_OK;
    if (st == ORTCRYPT_OK) {
        const oc_watch_options options = {.program = program,
                                          .env = environment,
                                          .folder = folder != NULL ? folder : "/",
                                          .input = OC_SPAN(text, strlen(text)),
                                          .output_max = OC_PROBE_REPORT_MAX,
                                          .timeout_ms = timeout_ms,
                                          .writes_allowed = json_is_false(json_object_get(job, "watched"))};
        st = oc_watch_run(&out->watch, &options, err);
    }
    free(text);
    free(environment);
    if (st == ORTCRYPT_OK) {
        out->report = last_report(&out->watch.output);
        st = check_version(out->report, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_probe_result_free(out);
    }
    return st;
}

void oc_probe_result_free(oc_probe_result *result)
{
    oc_watch_result_free(&result->watch);
    json_decref(result->report);
    result->report = NULL;
}

const char *oc_probe_signal(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGABRT:
        return "SIGABRT";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    case SIGKILL:
        return "SIGKILL";
    default:
        return "a signal";
    }
}
