/* Session options: cloning the caller's, keeping out what would write plaintext, adding the execution provider. */
#include <string.h>
#include <unistd.h>

#include "bundle/local.h"
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

    if (st == ORTCRYPT_OK && out->cache != NULL && (out->machine_key == NULL) == (out->machine_key_file == NULL)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a cache needs a machine key: its bytes or its file");
    }
    if (st == ORTCRYPT_OK && out->machine_key != NULL && out->machine_key_len != OC_MACHINE_KEY_LEN) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "a machine key is %d bytes", OC_MACHINE_KEY_LEN);
    }
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
    if (st == ORTCRYPT_OK && (unsigned)out->optimize > ORTCRYPT_OPTIMIZE_ALL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_compile_options.optimize is none of its values");
    }
    return st == ORTCRYPT_OK ? check_pairs(out->ep_option_keys, out->ep_option_values, out->ep_option_count, err) : st;
}

/* Entries that make ORT or an EP write, although their names do not speak of a file. */
static const char *const writing_entries[] = {
    "session.enable_profiling",
    "session.debug_layout_transformation",
    "session.save_external_prepacked_constant_initializers",
    "ep.context_enable",
};

/* Every entry that names a file or folder as well, those of later runtimes and of EPs too, but for one that is a switch. */
static bool writes(const char *key)
{
    static const char *const words[] = {"file", "path", "folder", "directory"};

    if (strcmp(key, "session.use_external_initializer_file_buffers_directly") == 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(key, words[i]) != NULL) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(writing_entries) / sizeof(writing_entries[0]); i++) {
        if (strcmp(key, writing_entries[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* What one session compiled is held for others, of which ORT and the EP do not know whether they have callbacks (seen on 1.30.0). */
static bool shares(const char *key)
{
    return strcmp(key, "ep.share_ep_contexts") == 0 || strcmp(key, "ep.stop_share_ep_contexts") == 0;
}

static bool switched_on(const char *value)
{
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

static ortcrypt_status check_entries(const OrtApi *api, const OrtKeyValuePairs *entries, ortcrypt_error *err)
{
    const char *const *keys = NULL;
    const char *const *values = NULL;
    size_t count = 0;

    api->GetKeyValuePairs(entries, &keys, &values, &count);
    for (size_t i = 0; i < count; i++) {
        if (shares(keys[i]) && switched_on(values[i])) {
            (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED,
                          "sessions that share EPContext data (session option %s) are not supported: one without callbacks writes what another compiled, in plaintext", keys[i]);
            oc_hint(err, "leave it out: each session then has its own data");
            return ORTCRYPT_E_UNSUPPORTED;
        }
        if (writes(keys[i]) && switched_on(values[i])) {
            return oc_fail(err, ORTCRYPT_E_INVALID,
                           "the session option %s would put plaintext of the model where it is not encrypted", keys[i]);
        }
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_options_guard(const ortcrypt_runtime *runtime, OrtSessionOptions *options, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtKeyValuePairs *entries = NULL;

    ortcrypt_status st = oc_ort_check(runtime, api->GetSessionOptionsConfigEntries(options, &entries), err, "session options");
    if (st == ORTCRYPT_OK) {
        st = check_entries(api, entries, err);
    }
    api->ReleaseKeyValuePairs(entries);
    if (st == ORTCRYPT_OK) {
        st = oc_callbacks_clear(runtime, options, err);
    }
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

/* Options with which OpenVINO and QNN write caches, dumps and profiles to files, past every callback. */
static const char *const writing_ep_options[] = {
    "cache_dir", "cache_path", "dump_json_qnn_graph", "json_qnn_graph_dir", "dump_qnn_ir_dlc", "dump_qnn_ir_dlc_dir",
    "profiling_file_path", "profiling_level",
};

ortcrypt_status oc_options_append_ep(ortcrypt_runtime *runtime, OrtSessionOptions *options, const OrtEpDevice *device,
                                     const char *const *keys, const char *const *values, size_t count,
                                     ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    OrtEnv *const env = ortcrypt_runtime_env(runtime);

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof(writing_ep_options) / sizeof(writing_ep_options[0]); k++) {
            if (strcmp(keys[i], writing_ep_options[k]) == 0 && switched_on(values[i])) {
                return oc_fail(err, ORTCRYPT_E_INVALID,
                               "the provider option %s makes the execution provider write files of its own about the model", keys[i]);
            }
        }
    }
    return oc_ort_check(runtime,
                        api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values, count), err,
                        "the execution provider");
}

bool oc_flow_has_proc(void)
{
    return access("/proc/self/fd", R_OK | X_OK) == 0;
}
