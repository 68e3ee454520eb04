/* See fake_ep.h. It finds the callbacks as the EPs in use do: by the version it is told, then by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_ep.h"

#define SEEN __attribute__((visibility("default")))

enum { OWN = 29, FIRST_NAMES = 28 };

static fake_ep_control control;
static const OrtApi *api;
static OrtEp the_ep;

static OrtStatus *(ORT_API_CALL *get_config)(const OrtSessionOptions *options, OrtEpContextConfig **config);
static void(ORT_API_CALL *release_config)(OrtEpContextConfig *config);
static OrtStatus *(ORT_API_CALL *get_read)(const OrtEpContextConfig *config, OrtReadNamedBufferFunc *read, void **state);
static OrtStatus *(ORT_API_CALL *get_write)(const OrtEpContextConfig *config, OrtWriteNamedBufferFunc *write, void **state);

SEEN fake_ep_control *fake_ep_control_get(void);
SEEN OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                                  size_t *count);
SEEN OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

fake_ep_control *fake_ep_control_get(void) { return &control; }

static void once(void (**function)(OrtEpFactory *factory), OrtEpFactory *factory)
{
    void (*const call)(OrtEpFactory *) = *function;

    *function = NULL;
    if (call != NULL) {
        call(factory);
    }
}

typedef struct callbacks {
    OrtReadNamedBufferFunc read;
    void *read_state;
    OrtWriteNamedBufferFunc write;
    void *write_state;
} callbacks;

static OrtStatus *take_callbacks(const OrtSessionOptions *options, callbacks *out)
{
    OrtEpContextConfig *config = NULL;

    *out = (callbacks){.read = NULL};
    if (get_config == NULL) {
        return NULL;
    }
    OrtStatus *status = get_config(options, &config);
    if (status == NULL) {
        status = get_read(config, &out->read, &out->read_state);
    }
    if (status == NULL) {
        status = get_write(config, &out->write, &out->write_state);
    }
    release_config(config);
    return status;
}

static OrtEp *one_of_many(const callbacks *got)
{
    fake_ep *const made = calloc(1, sizeof(*made));

    if (made == NULL) {
        abort();
    }
    made->base.ort_version_supported = OWN;
    made->write = got->write;
    made->write_state = got->write_state;
    return &made->base;
}

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices, const OrtKeyValuePairs *const *metadata,
                                         size_t count, const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep) NO_EXCEPTION
{
    (void)devices;
    (void)metadata;
    (void)count;
    (void)logger;
    callbacks got;
    if (!control.many) {
        once(&control.in_create, factory);
    }
    OrtStatus *const status = take_callbacks(options, &got);
    if (status != NULL) {
        return status;
    }
    if (control.many) {
        *ep = one_of_many(&got);
        control.eps++;
        return NULL;
    }
    control.read = got.read;
    control.read_state = got.read_state;
    control.write = got.write;
    control.write_state = got.write_state;
    the_ep = (OrtEp){.ort_version_supported = control.version != 0 ? control.version : OWN};
    control.eps++;
    *ep = &the_ep;
    return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep) NO_EXCEPTION
{
    control.eps--;
    if (control.many) {
        free(ep);
        return;
    }
    if (ep != &the_ep) {
        abort();
    }
    once(&control.in_release, factory);
}

static void find_functions(const OrtApiBase *base)
{
    unsigned minor = 0;

    (void)snprintf(control.told, sizeof control.told, "%s", base->GetVersionString());
    (void)sscanf(control.told, "1.%u", &minor);
    const unsigned own = control.asks != 0 ? control.asks : OWN;
    api = base->GetApi(minor < own ? minor : own);
    get_config = NULL;
    if (api == NULL || minor < FIRST_NAMES) {
        return;
    }
    OrtExperimentalFnPtr found[4] = {
        api->GetExperimentalFunction("OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28"),
        api->GetExperimentalFunction("OrtEpApi_ReleaseEpContextConfig_SinceV28"),
        api->GetExperimentalFunction("OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28"),
        api->GetExperimentalFunction("OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28"),
    };
    memcpy(&get_config, &found[0], sizeof get_config);
    memcpy(&release_config, &found[1], sizeof release_config);
    memcpy(&get_read, &found[2], sizeof get_read);
    memcpy(&get_write, &found[3], sizeof get_write);
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max, size_t *count)
{
    (void)name;
    (void)logger;
    (void)max;
    *count = 0;
    find_functions(base);
    if (control.refuse) {
        return base->GetApi(1)->CreateStatus(ORT_FAIL, "this EP does not want to");
    }
    OrtEpFactory *const factory = control.nothing ? NULL : calloc(1, sizeof(*factory));
    if (factory != NULL) {
        factory->ort_version_supported = OWN;
        factory->CreateEp = create_ep;
        factory->ReleaseEp = release_ep;
        control.factories++;
        factories[(*count)++] = factory;
    }
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    control.factories--;
    free(factory);
    return NULL;
}
