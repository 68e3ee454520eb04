/* Session options: cloning the caller's, keeping out what would write plaintext, adding the execution provider. */
#include <string.h>
#include <unistd.h>

#include "flow/flow.h"

static ortcrypt_status check_pairs(const char *const *keys, const char *const *values, size_t count, ortcrypt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (keys == NULL || values == NULL || keys[i] == NULL || values[i] == NULL) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "option %zu of the execution provider has no key or no value", i);
        }
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_session_options_read(ortcrypt_session_options *out, const ortcrypt_session_options *options,
                                        ortcrypt_error *err)
{
    const ortcrypt_status st = oc_options_copy(out, sizeof(*out), options, "ortcrypt_session_options", err);

    return st == ORTCRYPT_OK ? check_pairs(out->ep_option_keys, out->ep_option_values, out->ep_option_count, err) : st;
}

ortcrypt_status oc_compile_options_read(ortcrypt_compile_options *out, const ortcrypt_compile_options *options,
                                        ortcrypt_error *err)
{
    const ortcrypt_status st = oc_options_copy(out, sizeof(*out), options, "ortcrypt_compile_options", err);

    if (st == ORTCRYPT_OK && (out->ep == NULL || out->ep[0] == '\0')) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "compiling needs the name of an execution provider");
    }
    if (st == ORTCRYPT_OK && (unsigned)out->rewrite > ORTCRYPT_REWRITE_APPEND) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_compile_options.rewrite is none of its values");
    }
    return st == ORTCRYPT_OK ? check_pairs(out->ep_option_keys, out->ep_option_values, out->ep_option_count, err) : st;
}

/* Configuration entries that name a file ORT or an EP then writes, or that make an EP share data with other sessions. */
static const char *const writing_entries[] = {
    "session.optimized_model_filepath",
    "session.optimized_model_external_initializers_file_name",
    "session.enable_profiling",
    "session.collect_node_memory_stats_to_file",
    "session.debug_layout_transformation",
    "session.save_external_prepacked_constant_initializers",
    "ep.context_enable",
    "ep.context_file_path",
    "ep.context_model_external_initializers_file_name",
    "ep.share_ep_contexts",
    "ep.stop_share_ep_contexts",
};

ortcrypt_status oc_options_guard(const ortcrypt_runtime *runtime, OrtSessionOptions *options, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtKeyValuePairs *entries = NULL;

    ortcrypt_status st = oc_ort_check(runtime, api->GetSessionOptionsConfigEntries(options, &entries), err, "session options");
    for (size_t i = 0; i < sizeof(writing_entries) / sizeof(writing_entries[0]) && st == ORTCRYPT_OK; i++) {
        const char *const value = api->GetKeyValue(entries, writing_entries[i]);
        if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0) {
            st = oc_fail(err, ORTCRYPT_E_INVALID, "the session option %s would put plaintext of the model where it is not encrypted",
                         writing_entries[i]);
        }
    }
    api->ReleaseKeyValuePairs(entries);
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime, api->SetOptimizedModelFilePath(options, ""), err, "session options");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime, api->DisableProfiling(options), err, "session options");
    }
    return st;
}

ortcrypt_status oc_options_new(OrtSessionOptions **out, const ortcrypt_runtime *runtime, const OrtSessionOptions *base,
                               ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtSessionOptions *options = NULL;

    ortcrypt_status st = oc_ort_check(
        runtime, base != NULL ? api->CloneSessionOptions(base, &options) : api->CreateSessionOptions(&options), err, "session options");
    if (st == ORTCRYPT_OK) {
        st = oc_options_guard(runtime, options, err);
    }
    if (st != ORTCRYPT_OK) {
        api->ReleaseSessionOptions(options);
        return st;
    }
    *out = options;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_options_append_ep(ortcrypt_runtime *runtime, OrtSessionOptions *options, const OrtEpDevice *device,
                                     const char *const *keys, const char *const *values, size_t count,
                                     ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtEnv *const env = ortcrypt_runtime_env(runtime);

    return oc_ort_check(runtime,
                        api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values, count), err,
                        "the execution provider");
}

bool oc_flow_has_proc(void)
{
    return access("/proc/self/fd", R_OK | X_OK) == 0;
}
