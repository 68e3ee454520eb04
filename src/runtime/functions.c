/*
 * The table of functions that are not in every version, and how each is found.
 * The six callbacks' places and names are those of ep_context, which EP authors copy; here is what they are needed for.
 */
#include <limits.h>
#include <string.h>

#include "ep_context/internal.h"
#include "runtime/functions.h"
#include "runtime/private.h"

#define API(member) #member, OC_HOME_API, offsetof(OrtApi, member) / sizeof(void *)
#define COMPILE(member) #member, OC_HOME_COMPILE, offsetof(OrtCompileApi, member) / sizeof(void *)
#define EP_API(member) #member, OC_HOME_EP_API, offsetof(OrtEpApi, member) / sizeof(void *)

/* By index of oc_ep_functions(). */
static const struct callback_row {
    oc_function_check check;
    const char *lost;
} callbacks[OC_EP_FUNCTION_COUNT] = {
    {OC_CHECK_ROUND_TRIP, "a bundle's compiled data reaches only EPs that take callbacks by id"},
    {OC_CHECK_REFUSAL, "only EPs that take callbacks by id hand over what they compile: others write files"},
    {OC_CHECK_ROUND_TRIP, "an EP cannot see the application's callbacks"},
    {OC_CHECK_ROUND_TRIP, "an EP cannot let go of the configuration"},
    {OC_CHECK_ROUND_TRIP, "an EP cannot call the read callback"},
    {OC_CHECK_ROUND_TRIP, "an EP cannot call the write callback"},
};

/* Source: the \since notes of ORT's headers up to v29; above that the shipped libraries. */
static const struct member_row {
    const char *name;
    oc_function_home home;
    size_t slot;
    unsigned since;
    oc_function_check check;
    const char *lost;
} members[] = {
    {API(AddExternalInitializersFromFilesInMemory), 18, OC_CHECK_PLACE, "external weights cannot come from memory"},
    {API(RegisterExecutionProviderLibrary), 22, OC_CHECK_PLACE, "EPs in libraries of their own cannot be used"},
    {API(GetSessionOptionsConfigEntries), 23, OC_CHECK_PLACE, "entries that would write plaintext cannot be refused"},
    {API(GetModelCompatibilityForEpDevices), 23, OC_CHECK_PLACE, "a fitting variant cannot be chosen"},
    {COMPILE(ModelCompilationOptions_SetEpContextBinaryInformation), 23, OC_CHECK_PLACE, "compiled data has no name without a folder"},
    {COMPILE(ModelCompilationOptions_SetOutputModelWriteFunc), 23, OC_CHECK_PLACE, "a compiled model would be in memory as a whole"},
    {COMPILE(ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc), 23, OC_CHECK_PLACE, "large weights would stay in the compiled model"},
    {API(GetCompatibilityInfoFromModelBytes), 24, OC_CHECK_PLACE, "compiled variants carry no compatibility text: EP and versions decide"},
    {API(GetExperimentalFunction), OC_FIRST_EXPERIMENTAL, OC_CHECK_PLACE, "before 1.31: the six callback functions"},
    {COMPILE(ModelCompilationOptions_SetWeightlessEnabled), 29, OC_CHECK_PLACE, "compiling without weights (--weightless)"},
    {API(SessionOptionsSetWeightlessSourceModelBuffer), 29, OC_CHECK_ROUND_TRIP, "loading variants compiled without weights"},
    {EP_API(SessionOptionsGetWeightlessSourceModelBuffer), 29, OC_CHECK_ROUND_TRIP, "an EP cannot see the weights' source"},
    {"GetWeightlessSupport", OC_HOME_EP, offsetof(OrtEp, GetWeightlessSupport) / sizeof(void *), 29, OC_CHECK_PLACE,
     "an EP cannot say that it needs no weights"},
    {"GetEpContextDataCallbackSupport", OC_HOME_EP, ORTCRYPT_EP_ROOM / sizeof(void *) - 1, OC_EP_FIRST_STABLE, OC_CHECK_PLACE,
     "nothing: before 1.31 an EP need not say that it uses the callbacks"},
    {"session.use_external_initializer_file_buffers_directly", OC_HOME_ENTRY, 0, 31, OC_CHECK_PLACE,
     "ORT copies external weights that come from memory"},
};

bool oc_function_at(oc_function_row *row, size_t index)
{
    static const oc_function_home homes[] = {OC_HOME_API, OC_HOME_COMPILE, OC_HOME_EP_API}; /* by oc_ep_table */
    const size_t member = index - OC_EP_FUNCTION_COUNT;

    if (index < OC_EP_FUNCTION_COUNT) {
        const oc_ep_function *const six = &oc_ep_functions()[index];
        *row = (oc_function_row){six->name, six->experimental, homes[six->table], six->slot, OC_EP_FIRST_STABLE,
                             callbacks[index].check, callbacks[index].lost};
        return true;
    }
    if (member >= sizeof(members) / sizeof(members[0])) {
        return false;
    }
    const struct member_row *const at = &members[member];
    *row = (oc_function_row){at->name, NULL, at->home, (unsigned)at->slot, at->since, at->check, at->lost};
    return true;
}

const char *oc_function_home_text(oc_function_home home)
{
    static const char *const texts[] = {"OrtApi", "OrtCompileApi", "OrtEpApi", "OrtEp", "session entry"};

    return texts[home];
}

const char *oc_function_check_text(oc_function_check check)
{
    static const char *const texts[] = {"place", "set and read back", "refuses NULL"};

    return texts[check];
}

/* The pointer at `slot` is there: `table` is one whose version is not before the row's. */
static bool has_slot(const void *table, unsigned slot)
{
    const void *function = NULL;

    memcpy(&function, (const char *)table + slot * sizeof(function), sizeof(function));
    return function != NULL;
}

oc_found oc_function_find(const ortcrypt_runtime *runtime, const oc_function_row *row)
{
    if (row->experimental != NULL) { /* all six, or none */
        const ortcrypt_era era = runtime->ep_context.era;
        return era == ORTCRYPT_ERA_STABLE ? OC_FOUND_MEMBER : era == ORTCRYPT_ERA_EXPERIMENTAL ? OC_FOUND_EXPERIMENTAL : OC_FOUND_NOT;
    }
    if (runtime->minor < row->since) {
        return OC_FOUND_NOT;
    }
    if (row->home == OC_HOME_ENTRY) {
        return OC_FOUND_ENTRY;
    }
    if (row->home == OC_HOME_EP) {
        return OC_FOUND_MEMBER; /* of the EP's own struct: ORT reads it from this version on */
    }
    const void *table = runtime->api;
    if (row->home == OC_HOME_COMPILE) {
        table = runtime->compile;
    } else if (row->home == OC_HOME_EP_API) {
        table = runtime->api->GetEpApi();
    }
    return table != NULL && has_slot(table, row->slot) ? OC_FOUND_MEMBER : OC_FOUND_NOT;
}

/* Names are constants of this program: one that is in no row has no version. */
static bool find_row(oc_function_row *row, const char *name)
{
    for (size_t i = 0; oc_function_at(row, i); i++) {
        if (strcmp(row->name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool oc_runtime_has(const ortcrypt_runtime *runtime, const char *name)
{
    oc_function_row row;

    return find_row(&row, name) && oc_function_find(runtime, &row) != OC_FOUND_NOT;
}

unsigned oc_runtime_since(const char *name)
{
    oc_function_row row;

    return find_row(&row, name) ? row.since : UINT_MAX;
}
