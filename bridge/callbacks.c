/*
 * The six functions as EPs of 1.28 to 1.30 know them, on any runtime. EP -> GetExperimentalFunction -> ours -> an id in the session
 * options, else the runtime's own callbacks as it has them, else none.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What the EP holds as an OrtEpContextConfig. */
typedef struct config {
    const oc_target *target;
    OrtEpContextConfig *real; /* the runtime's; NULL: none */
    void *state;              /* of callbacks by id; NULL: none */
} config;

static _Atomic(oc_target *) places[OC_INTERPOSE_POOL];

void oc_bridge_place(unsigned place, oc_target *target)
{
    atomic_store(&places[place], target);
}

/* An entry of at most size - 1 bytes; "" when absent. */
static OrtStatus *read_entry(const OrtApi *api, const OrtSessionOptions *options, const char *key, char *text, size_t size)
{
    int present = 0;
    size_t len = 0;
    text[0] = '\0';
    OrtStatus *status = api->HasSessionConfigEntry(options, key, &present);
    if (status == NULL && present) {
        status = api->GetSessionConfigEntry(options, key, NULL, &len);
    }
    if (status == NULL && len > size) {
        return oc_ep_status(api, ORT_INVALID_ARGUMENT, "the session option %s is longer than any value of it", key);
    }
    return status == NULL && present && len != 0 ? api->GetSessionConfigEntry(options, key, text, &len) : status;
}

/* True in *set when the runtime has a callback for this session. */
static OrtStatus *runtime_callbacks(const oc_target *target, const OrtSessionOptions *options, bool *set)
{
    const ortcrypt_ep_context_api *const six = &target->six;
    OrtEpContextConfig *real = NULL;
    OrtReadNamedBufferFunc read = NULL;
    OrtWriteNamedBufferFunc write = NULL;
    void *state = NULL;
    *set = false;
    if (six->era == ORTCRYPT_ERA_NONE) {
        return NULL;
    }
    OrtStatus *status = six->SessionOptions_GetEpContextConfig(options, &real);
    if (status == NULL) {
        status = six->EpContextConfig_GetEpContextDataReadFunc(real, &read, &state);
    }
    if (status == NULL) {
        status = six->EpContextConfig_GetEpContextDataWriteFunc(real, &write, &state);
    }
    if (real != NULL) {
        six->ReleaseEpContextConfig(real);
    }
    *set = status == NULL && (read != NULL || write != NULL);
    return status;
}

OrtStatus *oc_bridge_read_session(const oc_target *target, const OrtSessionOptions *options, oc_bridge_session *out)
{
    const ortcrypt_ep_registry *registry = NULL;
    char share[8];
    OrtStatus *status = read_entry(target->api, options, ORTCRYPT_EP_CONTEXT_ID_KEY, out->id, sizeof(out->id));
    if (status == NULL) {
        status = read_entry(target->api, options, "ep.share_ep_contexts", share, sizeof(share));
    }
    if (status == NULL) {
        out->sharing = strcmp(share, "1") == 0;
        status = runtime_callbacks(target, options, &out->by_runtime);
    }
    if (status == NULL && out->id[0] != '\0' && oc_ep_find_id(out->id, &registry) == 0) {
        status = oc_ep_status(target->api, ORT_FAIL,
                              "the session option " ORTCRYPT_EP_CONTEXT_ID_KEY " names callbacks that are not there: what they "
                              "belong to was closed, or the ortcrypt that made them is not attached to the bridge");
    }
    return status;
}

static OrtStatus *get_config(const oc_target *target, const OrtSessionOptions *options, OrtEpContextConfig **out)
{
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE] = "";
    if (options == NULL || out == NULL) {
        return oc_ep_status(target->api, ORT_INVALID_ARGUMENT, "reading an EPContext configuration needs options and a place for it");
    }
    config *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return oc_ep_status(target->api, ORT_FAIL, "no memory for an EPContext configuration");
    }
    made->target = target;
    OrtStatus *status = read_entry(target->api, options, ORTCRYPT_EP_CONTEXT_ID_KEY, id, sizeof(id));
    if (status == NULL && id[0] != '\0') {
        status = oc_handle_get(target, id, &made->state);
    } else if (status == NULL && target->six.era != ORTCRYPT_ERA_NONE) {
        status = target->six.SessionOptions_GetEpContextConfig(options, &made->real);
    }
    if (status != NULL) {
        free(made);
        return status;
    }
    *out = (OrtEpContextConfig *)(void *)made;
    return NULL;
}

static void ORT_API_CALL release_config(OrtEpContextConfig *handle)
{
    config *const gone = (config *)(void *)handle;
    if (gone == NULL) {
        return;
    }
    if (gone->real != NULL) {
        gone->target->six.ReleaseEpContextConfig(gone->real);
    }
    free(gone);
}

static const config *config_of(const OrtEpContextConfig *handle)
{
    return (const config *)(const void *)handle;
}

static OrtStatus *ORT_API_CALL get_read(const OrtEpContextConfig *handle, OrtReadNamedBufferFunc *read, void **state)
{
    const config *const from = config_of(handle);
    if (from->real != NULL) {
        return from->target->six.EpContextConfig_GetEpContextDataReadFunc(from->real, read, state);
    }
    *read = from->state != NULL ? oc_handle_read : NULL;
    *state = from->state;
    return NULL;
}

static OrtStatus *ORT_API_CALL get_write(const OrtEpContextConfig *handle, OrtWriteNamedBufferFunc *write, void **state)
{
    const config *const from = config_of(handle);
    if (from->real != NULL) {
        return from->target->six.EpContextConfig_GetEpContextDataWriteFunc(from->real, write, state);
    }
    *write = from->state != NULL ? oc_handle_write : NULL;
    *state = from->state;
    return NULL;
}

#define NAMED(name, text) (strcmp((name), text "_SinceV28") == 0)

/* The two setters are the application's; an EP gets them as the runtime has them. */
static oc_function find_function(const oc_target *target, const char *name, oc_function get)
{
    if (name == NULL) {
        return NULL;
    }
    if (NAMED(name, "OrtEpApi_SessionOptions_GetEpContextConfig")) {
        return get;
    }
    if (NAMED(name, "OrtEpApi_ReleaseEpContextConfig")) {
        return (oc_function)release_config;
    }
    if (NAMED(name, "OrtEpApi_EpContextConfig_GetEpContextDataReadFunc")) {
        return (oc_function)get_read;
    }
    if (NAMED(name, "OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc")) {
        return (oc_function)get_write;
    }
    if (NAMED(name, "OrtApi_SessionOptions_SetEpContextDataReadFunc")) {
        return (oc_function)target->six.SessionOptions_SetEpContextDataReadFunc;
    }
    if (NAMED(name, "OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc")) {
        return (oc_function)target->six.ModelCompilationOptions_SetEpContextDataWriteFunc;
    }
    typedef oc_function(ORT_API_CALL * finder)(const char *name);
    return target->find != NULL ? ((finder)target->find)(name) : NULL;
}

/* Kernels ask for the EP they belong to, and cast it to what the EP made. */
static OrtStatus *kernel_ep(const oc_target *target, const OrtKernelInfo *info, const OrtEp **ep)
{
    typedef OrtStatus *(ORT_API_CALL * getter)(const OrtKernelInfo *info, const OrtEp **ep);
    OrtStatus *const status = ((getter)target->ep_of_kernel)(info, ep);
    if (status == NULL && *ep != NULL) {
        *ep = oc_bridge_real(*ep);
    }
    return status;
}

#define MAKE(n)                                                                                                        \
    static OrtStatus *ORT_API_CALL get_config_##n(const OrtSessionOptions *options, OrtEpContextConfig **out)          \
    {                                                                                                                  \
        return get_config(atomic_load(&places[n]), options, out);                                                      \
    }                                                                                                                  \
    static oc_function ORT_API_CALL experimental_##n(const char *name)                                                 \
    {                                                                                                                  \
        return find_function(atomic_load(&places[n]), name, (oc_function)get_config_##n);                              \
    }                                                                                                                  \
    static OrtStatus *ORT_API_CALL kernel_ep_##n(const OrtKernelInfo *info, const OrtEp **ep)                          \
    {                                                                                                                  \
        return kernel_ep(atomic_load(&places[n]), info, ep);                                                           \
    }
OC_INTERPOSE_EACH(MAKE)

#define LIST_EXPERIMENTAL(n) (oc_function)experimental_##n,
#define LIST_KERNEL_EP(n) (oc_function)kernel_ep_##n,

oc_function oc_bridge_experimental(unsigned place)
{
    static const oc_function list[] = {OC_INTERPOSE_EACH(LIST_EXPERIMENTAL)};
    return list[place];
}

oc_function oc_bridge_kernel_ep(unsigned place)
{
    static const oc_function list[] = {OC_INTERPOSE_EACH(LIST_KERNEL_EP)};
    return list[place];
}
