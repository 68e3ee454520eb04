/*
 * ortcrypt_ep_context: a snapshot of what a session's options say about EPContext data.
 *
 * Session options -> OrtEpContextConfig (ours until close) -> callback and state (the application's, called by data.c).
 */
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

/* OrtEp::GetEpContextDataCallbackSupport, v31: index, and the signature. Source: the shipped 1.31.1 and 1.32.0. */
enum { SLOT_EP_CALLBACK_SUPPORT = 26 };
typedef OrtStatus *(ORT_API_CALL *support_function)(const OrtEp *ep, uint32_t *flags);

/* The callbacks of `config`; NULL: none. */
static OrtStatus *take_callbacks(ortcrypt_ep_context *context, const OrtEpContextConfig *config)
{
    if (config == NULL) {
        return NULL;
    }
    OrtStatus *const status =
        context->six.EpContextConfig_GetEpContextDataReadFunc(config, &context->read, &context->read_state);
    return status != NULL ? status
                          : context->six.EpContextConfig_GetEpContextDataWriteFunc(config, &context->write,
                                                                                   &context->write_state);
}

/* A context that knows its runtime and nothing else. A runtime that cannot even make an OrtStatus: NULL and no context. */
static OrtStatus *new_context(ortcrypt_ep_context **out, const OrtApiBase *base)
{
    ortcrypt_ep_context_api six;
    OrtStatus *const status = ortcrypt_ep_context_api_get(base, &six);
    if (status != NULL) {
        return status;
    }
    unsigned major = 0;
    unsigned minor = 0;
    if (!oc_ep_version_parse(base->GetVersionString(), &major, &minor) || major != 1 || minor < OC_EP_FIRST_SUPPORTED) {
        const OrtApi *const oldest = base->GetApi(1);
        return oldest == NULL ? NULL
                              : oc_ep_status(oldest, ORT_NOT_IMPLEMENTED, "ONNX Runtime 1.%d or newer is needed",
                                             (int)OC_EP_FIRST_SUPPORTED);
    }
    const OrtApi *const api = base->GetApi(minor < ORT_API_VERSION ? minor : ORT_API_VERSION);
    ortcrypt_ep_context *const context = calloc(1, sizeof(*context));
    if (context == NULL) {
        return oc_ep_status(api, ORT_FAIL, "no memory for an EPContext data context");
    }
    context->api = api;
    context->minor = minor;
    context->six = six;
    *out = context;
    return NULL;
}

/* An id goes first: it was put there for this session, and says the same on every runtime. */
static OrtStatus *take_from_options(ortcrypt_ep_context *context, const OrtSessionOptions *options)
{
    const char *const id = context->entries[OC_EP_CALLBACKS_ID];
    OrtStatus *status = NULL;
    if (id != NULL && id[0] != '\0') {
        return oc_ep_take_id(context, id);
    }
    if (context->six.era != ORTCRYPT_ERA_NONE) {
        status = context->six.SessionOptions_GetEpContextConfig(options, &context->config);
    }
    return status != NULL ? status : take_callbacks(context, context->config);
}

/* The context behind ORTCRYPT_EP_CONTEXT_AS_CONFIG; NULL: it is ORT's. */
static const ortcrypt_ep_context *as_context(const OrtEpContextConfig *config)
{
    const uintptr_t address = (uintptr_t)config;
    return (address & 1) != 0 ? (const ortcrypt_ep_context *)(address - 1) : NULL;
}

OrtStatus *ortcrypt_ep_context_open(ortcrypt_ep_context **out, const OrtApiBase *base, const OrtSessionOptions *options)
{
    ortcrypt_ep_context *context = NULL;
    OrtStatus *status = new_context(&context, base);
    if (context == NULL) {
        return status;
    }
    if (out == NULL || options == NULL) {
        status = oc_ep_status(context->api, ORT_INVALID_ARGUMENT,
                              "opening an EPContext data context needs session options and a place for the result");
    }
    if (status == NULL) {
        context->has_entries = true;
        status = oc_ep_entries_copy(context->api, options, context->entries);
    }
    if (status == NULL) {
        status = take_from_options(context, options);
    }
    if (status != NULL) {
        ortcrypt_ep_context_close(context);
        return status;
    }
    *out = context;
    return NULL;
}

OrtStatus *ortcrypt_ep_context_open_config(ortcrypt_ep_context **out, const OrtApiBase *base,
                                           const OrtEpContextConfig *config)
{
    ortcrypt_ep_context *context = NULL;
    OrtStatus *status = new_context(&context, base);
    if (context == NULL) {
        return status;
    }
    const ortcrypt_ep_context *const named = as_context(config);
    if (out == NULL || (config != NULL && named == NULL && context->six.era == ORTCRYPT_ERA_NONE)) {
        status = oc_ep_status(context->api, ORT_INVALID_ARGUMENT,
                              out == NULL ? "opening an EPContext data context needs a place for the result"
                                          : "this ONNX Runtime has no EPContext configurations");
    }
    if (status == NULL) {
        status = named != NULL ? oc_ep_take_id(context, named->id) : take_callbacks(context, config);
    }
    if (status != NULL) {
        ortcrypt_ep_context_close(context);
        return status;
    }
    *out = context;
    return NULL;
}

void ortcrypt_ep_context_close(ortcrypt_ep_context *context)
{
    if (context == NULL) {
        return;
    }
    if (context->config != NULL) {
        context->six.ReleaseEpContextConfig(context->config);
    }
    for (size_t i = 0; i < OC_EP_ENTRY_COUNT; i++) {
        free(context->entries[i]);
    }
    free(context);
}

uint32_t ortcrypt_ep_context_callbacks(const ortcrypt_ep_context *context)
{
    if (context == NULL) {
        return 0;
    }
    return (context->read != NULL ? ORTCRYPT_EP_CONTEXT_READS : 0) |
           (context->write != NULL ? ORTCRYPT_EP_CONTEXT_WRITES : 0);
}

static OrtStatus *ORT_API_CALL supports_read(const OrtEp *ep, uint32_t *flags)
{
    (void)ep;
    *flags = ORTCRYPT_EP_CONTEXT_READS;
    return NULL;
}

static OrtStatus *ORT_API_CALL supports_write(const OrtEp *ep, uint32_t *flags)
{
    (void)ep;
    *flags = ORTCRYPT_EP_CONTEXT_WRITES;
    return NULL;
}

static OrtStatus *ORT_API_CALL supports_both(const OrtEp *ep, uint32_t *flags)
{
    (void)ep;
    *flags = ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES;
    return NULL;
}

OrtStatus *ortcrypt_ep_context_advertise(const ortcrypt_ep_context *context, OrtEp *ep, size_t room, uint32_t flags)
{
    if (ep == NULL || room < ORTCRYPT_EP_ROOM) {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "advertising needs %zu bytes of room at the OrtEp",
                            ORTCRYPT_EP_ROOM);
    }
    support_function support = NULL;
    if (flags == (ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES)) {
        support = supports_both;
    } else if (flags == ORTCRYPT_EP_CONTEXT_READS) {
        support = supports_read;
    } else if (flags == ORTCRYPT_EP_CONTEXT_WRITES) {
        support = supports_write;
    } else {
        return oc_ep_status(context->api, ORT_INVALID_ARGUMENT, "advertising knows the flags 1, 2 and 3, not %u",
                            flags);
    }
    if (context->six.era != ORTCRYPT_ERA_STABLE) {
        return NULL;
    }
    memcpy((char *)ep + SLOT_EP_CALLBACK_SUPPORT * sizeof(support), &support, sizeof(support));
    if (ep->ort_version_supported < OC_EP_FIRST_STABLE) {
        ep->ort_version_supported = OC_EP_FIRST_STABLE; /* ORT reads the member from this version on */
    }
    return NULL;
}
