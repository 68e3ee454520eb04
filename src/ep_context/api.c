/*
 * How the six EPContext functions of a runtime are found.
 *
 * The runtime's version string decides; then its tables are read. Members newer than the header are read by index: ORT's
 * tables are append-only arrays of function pointers. Nothing is owned: all pointers live as long as the runtime's library.
 */
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

/* Indices of members; source: ORT's headers up to v29, above that the shipped 1.31.1 and 1.32.0 tables. */
enum {
    SLOT_API_EXPERIMENTAL = 422, /* OrtApi::GetExperimentalFunction, v28 */
    SLOT_API_SET_READ = 426,     /* OrtApi, v31 */
    SLOT_COMPILE_SET_WRITE = 16, /* OrtCompileApi, v31 */
    SLOT_EP_GET_CONFIG = 74,     /* OrtEpApi, v31, and the three that follow */
    SLOT_EP_RELEASE_CONFIG = 75,
    SLOT_EP_GET_READ = 76,
    SLOT_EP_GET_WRITE = 77
};

typedef void(ORT_API_CALL *any_function)(void);
typedef any_function(ORT_API_CALL *experimental_getter)(const char *name);

_Static_assert(sizeof(any_function) == sizeof(void *), "ORT's tables are arrays of pointers");

/* Copies a function pointer of one type into a member of another: both are one pointer wide. */
static void put(void *member, any_function function)
{
    memcpy(member, &function, sizeof(function));
}

static any_function slot(const void *table, size_t index)
{
    any_function function;
    memcpy(&function, (const char *)table + index * sizeof(function), sizeof(function));
    return function;
}

bool oc_ep_version_parse(const char *text, unsigned *major, unsigned *minor)
{
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end = NULL;
    const unsigned long first = strtoul(text, &end, 10);
    if (*end != '.' || end[1] < '0' || end[1] > '9') {
        return false;
    }
    const unsigned long second = strtoul(end + 1, NULL, 10);
    if (first > 1000 || second > 1000) {
        return false;
    }
    *major = (unsigned)first;
    *minor = (unsigned)second;
    return true;
}

/* An error needs an OrtApi to be made with; v1 is the oldest that any 1.x answers, and a 2.x that lacks it gives no status. */
static OrtStatus *unknown_version(const OrtApiBase *base, const char *version)
{
    const OrtApi *const api = base->GetApi(1);
    if (api == NULL) {
        return NULL;
    }
    return oc_ep_status(api, ORT_NOT_IMPLEMENTED,
                        "this code knows ONNX Runtime 1.x, and this runtime calls itself \"%.40s\"",
                        version != NULL ? version : "");
}

static void fill_experimental(const OrtApi *api, ortcrypt_ep_context_api *out)
{
    experimental_getter find = NULL;
    put(&find, slot(api, SLOT_API_EXPERIMENTAL));
    put(&out->SessionOptions_SetEpContextDataReadFunc, find("OrtApi_SessionOptions_SetEpContextDataReadFunc_SinceV28"));
    put(&out->ModelCompilationOptions_SetEpContextDataWriteFunc,
        find("OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc_SinceV28"));
    put(&out->SessionOptions_GetEpContextConfig, find("OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28"));
    put(&out->ReleaseEpContextConfig, find("OrtEpApi_ReleaseEpContextConfig_SinceV28"));
    put(&out->EpContextConfig_GetEpContextDataReadFunc,
        find("OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28"));
    put(&out->EpContextConfig_GetEpContextDataWriteFunc,
        find("OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28"));
    out->era = ORTCRYPT_ERA_EXPERIMENTAL;
}

/* False in a build of ORT without compile or EP API (minimal builds). */
static bool fill_stable(const OrtApi *api, ortcrypt_ep_context_api *out)
{
    const OrtCompileApi *const compile = api->GetCompileApi();
    const OrtEpApi *const ep = api->GetEpApi();
    if (compile == NULL || ep == NULL) {
        return false;
    }
    put(&out->SessionOptions_SetEpContextDataReadFunc, slot(api, SLOT_API_SET_READ));
    put(&out->ModelCompilationOptions_SetEpContextDataWriteFunc, slot(compile, SLOT_COMPILE_SET_WRITE));
    put(&out->SessionOptions_GetEpContextConfig, slot(ep, SLOT_EP_GET_CONFIG));
    put(&out->ReleaseEpContextConfig, slot(ep, SLOT_EP_RELEASE_CONFIG));
    put(&out->EpContextConfig_GetEpContextDataReadFunc, slot(ep, SLOT_EP_GET_READ));
    put(&out->EpContextConfig_GetEpContextDataWriteFunc, slot(ep, SLOT_EP_GET_WRITE));
    out->era = ORTCRYPT_ERA_STABLE;
    return true;
}

/* All six or none: half an API would write what it cannot read. */
static bool complete(const ortcrypt_ep_context_api *api)
{
    return api->SessionOptions_SetEpContextDataReadFunc != NULL &&
           api->ModelCompilationOptions_SetEpContextDataWriteFunc != NULL &&
           api->SessionOptions_GetEpContextConfig != NULL && api->ReleaseEpContextConfig != NULL &&
           api->EpContextConfig_GetEpContextDataReadFunc != NULL &&
           api->EpContextConfig_GetEpContextDataWriteFunc != NULL;
}

OrtStatus *ortcrypt_ep_context_api_get(const OrtApiBase *base, ortcrypt_ep_context_api *api)
{
    const ortcrypt_ep_context_api none = {ORTCRYPT_ERA_NONE, NULL, NULL, NULL, NULL, NULL, NULL};
    if (api == NULL) {
        return NULL;
    }
    *api = none;
    if (base == NULL) {
        return NULL;
    }
    unsigned major = 0;
    unsigned minor = 0;
    const char *const version = base->GetVersionString();
    if (!oc_ep_version_parse(version, &major, &minor) || major != 1) {
        return unknown_version(base, version);
    }
    if (minor < OC_EP_FIRST_EXPERIMENTAL) {
        return NULL;
    }
    const bool stable = minor >= OC_EP_FIRST_STABLE;
    const OrtApi *const ort = base->GetApi(stable ? OC_EP_FIRST_STABLE : OC_EP_FIRST_EXPERIMENTAL);
    if (ort == NULL) {
        return unknown_version(base, version);
    }
    ortcrypt_ep_context_api found = none;
    if (stable) {
        (void)fill_stable(ort, &found);
    } else {
        fill_experimental(ort, &found);
    }
    *api = complete(&found) ? found : none;
    return NULL;
}
