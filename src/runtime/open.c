/*
 * Finding an ONNX Runtime, checking that it is one this library knows how to speak to, and letting go of it.
 * Call order: ortcrypt_runtime_open / _adopt -> ... -> ortcrypt_runtime_close.
 */
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"
#include "runtime/canary.h"
#include "runtime/functions.h"
#include "runtime/private.h"

/* ORT's log lines name nodes and files of models; errors reach the caller as OrtStatus, so nothing is lost here. */
static void ORT_API_CALL drop_log(void *param, OrtLoggingLevel severity, const char *category, const char *logid,
                                  const char *code_location, const char *message)
{
    (void)param;
    (void)severity;
    (void)category;
    (void)logid;
    (void)code_location;
    (void)message;
}

/* GetApi prints to stderr when asked for more than there is, so the version is read first. */
static ortcrypt_status read_version(ortcrypt_runtime *runtime, ortcrypt_error *err)
{
    const char *const version = runtime->base->GetVersionString();
    unsigned major = 0;
    unsigned minor = 0;
    size_t i = 0;

    for (; version != NULL && version[i] != '\0' && i + 1 < sizeof(runtime->version); i++) {
        const char c = version[i];
        runtime->version[i] = c > ' ' && c < 0x7f ? c : '?';
    }
    runtime->version[i] = '\0';
    if (!oc_ep_version_parse(runtime->version, &major, &minor) || major != 1 || minor < OC_RUNTIME_MINOR_MIN) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED,
                      i != 0 ? "ONNX Runtime %s is not supported" : "an ONNX Runtime that does not say its version%s is not supported",
                      runtime->version);
        oc_hint(err, "versions 1.%d to 1.%d are known", OC_RUNTIME_MINOR_MIN,
                OC_RUNTIME_MINOR_PROVEN);
        return ORTCRYPT_E_UNSUPPORTED;
    }
    runtime->minor = minor;
    runtime->api_version = minor < OC_RUNTIME_API_MAX ? minor : OC_RUNTIME_API_MAX;
    return ORTCRYPT_OK;
}

/*
 * ORT_DISABLE_TELEMETRY is the only variable the library reads. From 1.29 on, ONNX Runtime writes the graph name, the
 * producer and the metadata of a model loaded from memory to files below the home and temporary folders unless it is 1
 * before the OrtEnv is made; the API call that disables telemetry events does not stop that.
 */
static ortcrypt_status check_telemetry(ortcrypt_runtime *runtime, const ortcrypt_runtime_options *options,
                                       ortcrypt_error *err)
{
    const char *const value = getenv("ORT_DISABLE_TELEMETRY");

    runtime->telemetry_off = value != NULL && strcmp(value, "1") == 0;
    runtime->telemetry_accepted = options->accept_telemetry;
    if (runtime->minor < OC_RUNTIME_TELEMETRY_MINOR || runtime->telemetry_off || runtime->telemetry_accepted) {
        return ORTCRYPT_OK;
    }
    (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "ONNX Runtime %s would write metadata of the model to disk", runtime->version);
    oc_hint(err, "set ORT_DISABLE_TELEMETRY=1 in the environment before the process makes its OrtEnv");
    return ORTCRYPT_E_UNSUPPORTED;
}

static ortcrypt_status find_callbacks(ortcrypt_runtime *runtime, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    OrtStatus *const refused = ortcrypt_ep_context_api_get(runtime->base, &runtime->ep_context);
    ortcrypt_status st = ORTCRYPT_OK;

    if (refused != NULL) {
        (void)oc_ort_check(runtime, refused, err, "EPContext callbacks");
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the EPContext callbacks of ONNX Runtime %s are not known",
                       runtime->version);
    }
    if (runtime->minor >= OC_EP_FIRST_STABLE && runtime->ep_context.era == ORTCRYPT_ERA_NONE) {
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "ONNX Runtime %s lacks functions for execution providers that its version must have",
                       runtime->version);
    }
    const char *const flaw = runtime->ep_context.era != ORTCRYPT_ERA_NONE ? oc_round_trip(runtime) : NULL;
    if (flaw != NULL) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "ONNX Runtime %s %s", runtime->version, flaw);
        oc_hint(err, "its callback interface is not one this version of ortcrypt knows; versions 1.%d to 1.%d are",
                OC_RUNTIME_MINOR_MIN, OC_RUNTIME_MINOR_PROVEN);
    }
    if (st == ORTCRYPT_OK && runtime->minor > OC_RUNTIME_MINOR_PROVEN) {
        oc_notice(monitor, "ONNX Runtime %s is newer than any this version was tested with; its callback interface answers as expected",
                  runtime->version);
    }
    return st;
}

static ortcrypt_status make_env(ortcrypt_runtime *runtime, OrtEnv *env, const ortcrypt_runtime_options *options,
                                ortcrypt_error *err)
{
    OrtLoggingLevel level = ORT_LOGGING_LEVEL_ERROR;

    if (env != NULL) {
        runtime->env = env;
        return ORTCRYPT_OK;
    }
    if (options->log_level != 0) {
        level = (OrtLoggingLevel)(options->log_level - 1);
    }
    const ortcrypt_status st = oc_ort_check(
        runtime, runtime->api->CreateEnvWithCustomLogger(drop_log, NULL, level, "ortcrypt", &runtime->env), err, "OrtEnv");
    runtime->env_owned = st == ORTCRYPT_OK;
    return st;
}

static void free_runtime(ortcrypt_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    while (runtime->eps != NULL) {
        oc_registered_ep *const ep = runtime->eps;
        runtime->eps = ep->next;
        oc_registered_free(ep);
    }
    if (runtime->env_owned) {
        runtime->api->ReleaseEnv(runtime->env); /* unloads the EP libraries registered in it */
    }
    oc_claim_closed(runtime);
    oc_canary_forget(runtime);
    (void)pthread_mutex_destroy(&runtime->lock);
    free(runtime->probe);
    free(runtime->bridge);
    free(runtime->library);
    free(runtime);
}

/* The caller's options (NULL: defaults) in *out; members of newer versions must be zero. */
static ortcrypt_status read_options(ortcrypt_runtime_options *out, const ortcrypt_runtime_options *options, ortcrypt_error *err)
{
    *out = (ortcrypt_runtime_options){.struct_size = sizeof(*out)};
    if (options == NULL) {
        return ORTCRYPT_OK;
    }
    if (options->struct_size != sizeof(*out)) { /* there is one version of this struct so far */
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_runtime_options.struct_size is %zu, not sizeof(ortcrypt_runtime_options)",
                       options->struct_size);
    }
    if (options->log_level < 0 || options->log_level > ORT_LOGGING_LEVEL_FATAL + 1) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_runtime_options.log_level is %d, not 0 to %d", options->log_level,
                       ORT_LOGGING_LEVEL_FATAL + 1);
    }
    *out = *options;
    return ORTCRYPT_OK;
}

static ortcrypt_status start(ortcrypt_runtime **out, const OrtApiBase *base, const char *library, OrtEnv *env,
                             const ortcrypt_runtime_options *options, ortcrypt_error *err)
{
    ortcrypt_runtime *runtime = NULL;
    ortcrypt_runtime_options o;

    ortcrypt_status st = read_options(&o, options, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    runtime = calloc(1, sizeof(*runtime));
    if (runtime == NULL) {
        return oc_fail_memory(err, sizeof(*runtime), "a runtime");
    }
    runtime->base = base;
    atomic_init(&runtime->holds, 0);
    (void)pthread_mutex_init(&runtime->lock, NULL); /* default attributes: cannot be refused */
    st = library != NULL ? oc_strdup(&runtime->library, library, err) : ORTCRYPT_OK;
    runtime->probe_timeout_ms = o.probe_timeout_ms;
    if (st == ORTCRYPT_OK && o.probe != NULL) {
        st = oc_strdup(&runtime->probe, o.probe, err);
    }
    if (st == ORTCRYPT_OK && o.bridge != NULL) {
        st = oc_strdup(&runtime->bridge, o.bridge, err);
    }
    if (o.monitor != NULL) {
        runtime->monitor = *o.monitor;
    }
    if (st == ORTCRYPT_OK) {
        st = read_version(runtime, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_telemetry(runtime, &o, err);
    }
    if (st == ORTCRYPT_OK) {
        runtime->api = base->GetApi(runtime->api_version);
        runtime->compile = runtime->api != NULL ? runtime->api->GetCompileApi() : NULL;
        if (runtime->compile == NULL) {
            st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "ONNX Runtime %s does not offer its API version %u with model compilation",
                         runtime->version, runtime->api_version);
        }
    }
    if (st == ORTCRYPT_OK) {
        st = find_callbacks(runtime, o.monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        st = make_env(runtime, env, &o, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_claim_opened(runtime);
        *out = runtime;
        runtime = NULL;
    }
    free_runtime(runtime);
    return st;
}

ortcrypt_status ortcrypt_runtime_open(ortcrypt_runtime **runtime, const char *library,
                                      const ortcrypt_runtime_options *options, ortcrypt_error *err)
{
    const OrtApiBase *base = NULL;

    if (runtime == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_runtime_open was called without a place for the runtime");
    }
    *runtime = NULL;
    const ortcrypt_status st = oc_library_load(&base, library, err);
    return st == ORTCRYPT_OK ? start(runtime, base, library, NULL, options, err) : st;
}

ortcrypt_status ortcrypt_runtime_adopt(ortcrypt_runtime **runtime, const OrtApiBase *base, OrtEnv *env,
                                       const ortcrypt_runtime_options *options, ortcrypt_error *err)
{
    if (runtime == NULL || base == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_runtime_adopt needs a place for the runtime and an OrtApiBase");
    }
    *runtime = NULL;
    return start(runtime, base, NULL, env, options, err);
}

ortcrypt_status ortcrypt_runtime_close(ortcrypt_runtime *runtime, ortcrypt_error *err)
{
    if (runtime == NULL) {
        return ORTCRYPT_OK;
    }
    const size_t holds = atomic_load(&runtime->holds);
    if (holds != 0) {
        return oc_fail(err, ORTCRYPT_E_BUSY, "the runtime is in use by %zu sessions, inputs or outputs", holds);
    }
    free_runtime(runtime);
    return ORTCRYPT_OK;
}
