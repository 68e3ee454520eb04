/* The session options this EP reads. All are text in session config entries. */
#include <stdlib.h>
#include <string.h>

#include "reference_ep.h"

/* *value is heap, or NULL when the entry is absent or empty. */
static OrtStatus *entry(const OrtApi *api, const OrtSessionOptions *from, const char *key, char **value)
{
    int present = 0;
    size_t size = 0;
    OrtStatus *status = api->HasSessionConfigEntry(from, key, &present);
    if (status == NULL && present) {
        status = api->GetSessionConfigEntry(from, key, NULL, &size); /* size with the final NUL */
    }
    if (status != NULL || size <= 1) {
        return status;
    }
    char *const text = calloc(1, size);
    status = text == NULL ? oc_ref_status(api, ORT_FAIL, "no memory for the option %s", key)
                          : api->GetSessionConfigEntry(from, key, text, &size);
    if (status != NULL) {
        free(text);
        return status;
    }
    *value = text;
    return NULL;
}

static OrtStatus *flag(const OrtApi *api, const OrtSessionOptions *from, const char *key, bool *value)
{
    char *text = NULL;
    OrtStatus *status = entry(api, from, key, &text);
    if (status == NULL && text != NULL) {
        if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
            status = oc_ref_status(api, ORT_INVALID_ARGUMENT, "the option %s is 0 or 1, not \"%.40s\"", key, text);
        } else {
            *value = text[0] == '1';
        }
    }
    free(text);
    return status;
}

/* A whole number from `low` to `high`. */
static OrtStatus *number(const OrtApi *api, const OrtSessionOptions *from, const char *key, long low, long high,
                         long *value)
{
    char *text = NULL;
    OrtStatus *status = entry(api, from, key, &text);
    if (status == NULL && text != NULL) {
        char *end = NULL;
        const long found = strtol(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || found < low || found > high) {
            status = oc_ref_status(api, ORT_INVALID_ARGUMENT,
                                   "the option %s is a number from %ld to %ld, not \"%.40s\"", key, low, high, text);
        } else {
            *value = found;
        }
    }
    free(text);
    return status;
}

static OrtStatus *weightless(const OrtApi *api, const OrtSessionOptions *from, const char *key, OrtWeightlessSupport *value)
{
    char *text = NULL;
    OrtStatus *status = entry(api, from, key, &text);
    if (status == NULL && text != NULL) {
        if (strcmp(text, "none") == 0) {
            *value = OrtWeightlessSupport_NONE;
        } else if (strcmp(text, "external") == 0) {
            *value = OrtWeightlessSupport_EXTERNAL_ONLY;
        } else if (strcmp(text, "all") == 0) {
            *value = OrtWeightlessSupport_ALL;
        } else {
            status = oc_ref_status(api, ORT_INVALID_ARGUMENT, "the option %s is none, external or all, not \"%.40s\"", key, text);
        }
    }
    free(text);
    return status;
}

OrtStatus *oc_ref_options_read(const OrtApi *api, const OrtSessionOptions *from, oc_ref_options *out)
{
    oc_ref_options found = {.weightless = OrtWeightlessSupport_ALL};
    long max_nodes = 0;
    long threads = 0;
    OrtStatus *status = flag(api, from, "ep.context_enable", &found.make_context);
    if (status == NULL) {
        status = flag(api, from, "ep.context_embed_mode", &found.embed);
    }
    if (status == NULL) {
        status = flag(api, from, "session.compile_only", &found.compile_only);
    }
    if (status == NULL) {
        status = flag(api, from, "ep.enable_weightless", &found.enable_weightless);
    }
    if (status == NULL) {
        status = weightless(api, from, OC_REF_OPTION "weightless", &found.weightless);
    }
    if (status == NULL) {
        status = entry(api, from, "ep.context_file_path", &found.context_path);
    }
    if (status == NULL) {
        status = entry(api, from, "ep.context_node_name_prefix", &found.prefix);
    }
    if (status == NULL) {
        status = number(api, from, OC_REF_OPTION "max_nodes_per_engine", 1, 1000000, &max_nodes);
    }
    if (status == NULL) {
        status = number(api, from, OC_REF_OPTION "intra_op_num_threads", 1, 1024, &threads);
    }
    if (status != NULL) {
        oc_ref_options_free(&found);
        return status;
    }
    found.max_nodes = (size_t)max_nodes;
    found.threads = (int)threads;
    *out = found;
    return NULL;
}

void oc_ref_options_free(oc_ref_options *options)
{
    const oc_ref_options empty = {.weightless = OrtWeightlessSupport_NONE};
    free(options->context_path);
    free(options->prefix);
    *options = empty;
}
