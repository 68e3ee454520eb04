/*
 * What EPs read from session config entries, typed. The texts are copied when the context is opened; what they mean is asked
 * later, so that an EP that does not ask is not stopped by a bad one.
 */
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

/* Keys in the order of the indices; source: onnxruntime_session_options_config_keys.h, and the last is our own. */
static const char *const entry_keys[OC_EP_ENTRY_COUNT] = {
    [OC_EP_ENABLE] = "ep.context_enable",
    [OC_EP_EMBED_MODE] = "ep.context_embed_mode",
    [OC_EP_FILE_PATH] = "ep.context_file_path",
    [OC_EP_NAME_PREFIX] = "ep.context_node_name_prefix",
    [OC_EP_SHARE] = "ep.share_ep_contexts",
    [OC_EP_STOP_SHARE] = "ep.stop_share_ep_contexts",
    [OC_EP_WEIGHTLESS] = "ep.enable_weightless",
    [OC_EP_WEIGHTLESS_NODES] = "ep.enable_weightless_ep_context_nodes",
    [OC_EP_SOURCE_MODEL] = "ep.context_source_model_path",
    [OC_EP_CALLBACKS_ID] = ORTCRYPT_EP_CONTEXT_ID_KEY,
};

/* *value is heap, or NULL when the entry is absent. */
static OrtStatus *copy_entry(const OrtApi *api, const OrtSessionOptions *options, const char *key, char **value)
{
    int present = 0;
    size_t size = 0;
    OrtStatus *status = api->HasSessionConfigEntry(options, key, &present);
    if (status == NULL && present) {
        status = api->GetSessionConfigEntry(options, key, NULL, &size); /* size with the final NUL */
    }
    if (status != NULL || !present) {
        return status;
    }
    char *const text = calloc(1, size + 1);
    if (text == NULL) {
        return oc_ep_status(api, ORT_FAIL, "no memory for the session option %s", key);
    }
    status = size != 0 ? api->GetSessionConfigEntry(options, key, text, &size) : NULL;
    if (status != NULL) {
        free(text);
        return status;
    }
    *value = text;
    return NULL;
}

OrtStatus *oc_ep_entries_copy(const OrtApi *api, const OrtSessionOptions *options, char **entries)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < OC_EP_ENTRY_COUNT && status == NULL; i++) {
        status = copy_entry(api, options, entry_keys[i], &entries[i]);
    }
    return status;
}

static OrtStatus *read_flag(const ortcrypt_ep_context *context, size_t entry, ortcrypt_ep_context_flag *flag)
{
    const char *const text = context->entries[entry];
    if (text == NULL) {
        return NULL;
    }
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "the session option %s is 0 or 1, not \"%.40s\"",
                            entry_keys[entry], text);
    }
    flag->present = true;
    flag->value = text[0] == '1';
    return NULL;
}

/* Empty means absent, to ORT too. */
static OrtStatus *read_text(const ortcrypt_ep_context *context, size_t entry, const char **value)
{
    const char *const text = context->entries[entry];
    if (text == NULL || text[0] == '\0') {
        return NULL;
    }
    if (strnlen(text, OC_EP_NAME_MAX + 1) > OC_EP_NAME_MAX) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "the session option %s is longer than %d bytes",
                            entry_keys[entry], (int)OC_EP_NAME_MAX);
    }
    if (!oc_ep_is_utf8(text)) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "the session option %s is not UTF-8",
                            entry_keys[entry]);
    }
    *value = text;
    return NULL;
}

/* A file's path: neither "folder/" nor "." nor "..". */
static OrtStatus *read_path(const ortcrypt_ep_context *context, size_t entry, const char **value)
{
    const char *path = NULL;
    OrtStatus *const status = read_text(context, entry, &path);
    if (status != NULL || path == NULL) {
        return status;
    }
    const char *const flaw = oc_ep_name_flaw(path, false);
    if (flaw != NULL) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "the session option %s is a file's path: \"%.200s\" %s",
                            entry_keys[entry], path, flaw);
    }
    *value = path;
    return NULL;
}

OrtStatus *ortcrypt_ep_context_get_options(const ortcrypt_ep_context *context, ortcrypt_ep_context_options *out)
{
    ortcrypt_ep_context_options found;
    ortcrypt_ep_context_flag old = {false, false};
    memset(&found, 0, sizeof(found));
    if (out == NULL || !context->has_entries) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT,
                            "the options are read from a context that was opened with session options");
    }
    const struct {
        size_t entry;
        ortcrypt_ep_context_flag *flag;
    } flags[] = {
        {OC_EP_ENABLE, &found.enable},          {OC_EP_EMBED_MODE, &found.embed_mode},
        {OC_EP_SHARE, &found.share},            {OC_EP_STOP_SHARE, &found.stop_share},
        {OC_EP_WEIGHTLESS, &found.weightless},  {OC_EP_WEIGHTLESS_NODES, &old},
    };
    OrtStatus *status = NULL;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && status == NULL; i++) {
        status = read_flag(context, flags[i].entry, flags[i].flag);
    }
    if (status == NULL) {
        status = read_path(context, OC_EP_FILE_PATH, &found.file_path);
    }
    if (status == NULL) {
        status = read_text(context, OC_EP_NAME_PREFIX, &found.node_name_prefix);
    }
    if (status == NULL) {
        status = read_path(context, OC_EP_SOURCE_MODEL, &found.source_model_path);
    }
    if (status != NULL) {
        return status;
    }
    if (!found.weightless.present && old.present) {
        found.weightless.present = true;
        found.weightless.value = old.value && found.enable.value; /* ORT: ignored unless contexts are made */
    }
    *out = found;
    return NULL;
}
