/*
 * How the six EPContext functions of a runtime are found.
 *
 * The runtime's version string decides; then its tables are read. Members newer than the header are read by index: ORT's
 * tables are append-only arrays of function pointers. Nothing is owned: all pointers live as long as the runtime's library.
 */
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

enum { SLOT_API_EXPERIMENTAL = 422 }; /* OrtApi::GetExperimentalFunction, v28 */

#define FUNCTION(table, name, number, slot) \
    {#name, #table "_" #name "_SinceV28", number, slot, offsetof(ortcrypt_ep_context_api, name)}

/* Source: ORT's headers up to v30 for the names; for the places the tables of the shipped 1.31.1 and 1.32.0. */
static const oc_ep_function functions[OC_EP_FUNCTION_COUNT] = {
    FUNCTION(OrtApi, SessionOptions_SetEpContextDataReadFunc, OC_EP_TABLE_API, 426),
    FUNCTION(OrtCompileApi, ModelCompilationOptions_SetEpContextDataWriteFunc, OC_EP_TABLE_COMPILE, 16),
    FUNCTION(OrtEpApi, SessionOptions_GetEpContextConfig, OC_EP_TABLE_EP, 74),
    FUNCTION(OrtEpApi, ReleaseEpContextConfig, OC_EP_TABLE_EP, 75),
    FUNCTION(OrtEpApi, EpContextConfig_GetEpContextDataReadFunc, OC_EP_TABLE_EP, 76),
    FUNCTION(OrtEpApi, EpContextConfig_GetEpContextDataWriteFunc, OC_EP_TABLE_EP, 77),
};

const oc_ep_function *oc_ep_functions(void) { return functions; }

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

/* Writes the pointer of one row; false: the runtime has none. */
static bool put_function(ortcrypt_ep_context_api *out, const oc_ep_function *row, any_function function)
{
    put((char *)out + row->member, function);
    return function != NULL;
}

/* All six or none: half an API would write what it cannot read. */
static bool fill_experimental(const OrtApi *api, ortcrypt_ep_context_api *out)
{
    const oc_ep_function *const row = oc_ep_functions();
    experimental_getter find = NULL;
    bool complete = true;
    put(&find, slot(api, SLOT_API_EXPERIMENTAL));
    for (size_t i = 0; i < OC_EP_FUNCTION_COUNT && complete; i++) {
        complete = put_function(out, &row[i], find(row[i].experimental));
    }
    out->era = ORTCRYPT_ERA_EXPERIMENTAL;
    return complete;
}

/* False in a build of ORT without compile or EP API (minimal builds), too. */
static bool fill_stable(const OrtApi *api, ortcrypt_ep_context_api *out)
{
    const oc_ep_function *const row = oc_ep_functions();
    const void *const tables[] = {api, api->GetCompileApi(), api->GetEpApi()}; /* by oc_ep_table */
    bool complete = tables[OC_EP_TABLE_COMPILE] != NULL && tables[OC_EP_TABLE_EP] != NULL;
    for (size_t i = 0; i < OC_EP_FUNCTION_COUNT && complete; i++) {
        complete = put_function(out, &row[i], slot(tables[row[i].table], row[i].slot));
    }
    out->era = ORTCRYPT_ERA_STABLE;
    return complete;
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
    if (stable ? fill_stable(ort, &found) : fill_experimental(ort, &found)) {
        *api = found;
    }
    return NULL;
}
