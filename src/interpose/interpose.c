/*
 * Copies of a runtime's tables, in which slots can be replaced.
 * The runtime's tables -> copied when the instance is made, padded to the offered version -> the EP, by way of pool.c.
 */
#include <stdlib.h>
#include <string.h>

#include "interpose/internal.h"

/* Where OrtApi hands out the other tables. */
static const size_t getters[OC_TABLE_COUNT] = {
    [OC_TABLE_EP] = OC_SLOT(OrtApi, GetEpApi),
    [OC_TABLE_COMPILE] = OC_SLOT(OrtApi, GetCompileApi),
    [OC_TABLE_EDITOR] = OC_SLOT(OrtApi, GetModelEditorApi),
    [OC_TABLE_INTEROP] = OC_SLOT(OrtApi, GetInteropApi),
};

/* The runtime's own table; NULL: it has none. `minor`: of the runtime, as far as its tables are known. */
static const void *real_table(const oc_interpose *interpose, oc_table table, unsigned minor)
{
    const OrtApi *const api = interpose->real;
    switch (table) {
    case OC_TABLE_API:
        return api;
    case OC_TABLE_EP:
        return api->GetEpApi();
    case OC_TABLE_COMPILE:
        return api->GetCompileApi();
    case OC_TABLE_EDITOR:
        return api->GetModelEditorApi();
    case OC_TABLE_INTEROP:
        return oc_slot_count(OC_TABLE_INTEROP, minor) != 0 ? api->GetInteropApi() : NULL;
    case OC_TABLE_COUNT:
    default:
        return NULL;
    }
}

/*
 * What the runtime has, then functions that say they are missing. A runtime built without a table it should have answers NULL, and
 * so do we. False: no memory.
 */
static bool copy_table(oc_interpose *interpose, oc_table table, unsigned minor)
{
    const oc_pool_functions *const own = oc_pool_at(interpose->index);
    const size_t present = oc_slot_count(table, minor);
    const size_t offered = oc_slot_count(table, interpose->api_version);
    const size_t count = present > offered ? present : offered;
    const void *const real = real_table(interpose, table, minor);
    if (count == 0 || (real == NULL && present != 0)) {
        return true;
    }
    oc_function *const copy = calloc(count, sizeof(*copy));
    if (copy == NULL) {
        return false;
    }
    if (real != NULL) {
        memcpy(copy, real, present * sizeof(*copy));
    }
    for (size_t slot = present; slot < count; slot++) {
        copy[slot] = oc_slot_returns_status(table, slot) ? own->missing_status : own->missing_other;
    }
    interpose->tables[table] = copy;
    interpose->counts[table] = count;
    return true;
}

/* The version the runtime's own tables are read in: no newer one is asked for than will be offered. */
static unsigned present_version(const oc_interpose *interpose)
{
    return interpose->minor < interpose->api_version ? interpose->minor : interpose->api_version;
}

static bool copy_tables(oc_interpose *interpose)
{
    const unsigned minor = present_version(interpose);
    const oc_pool_functions *const own = oc_pool_at(interpose->index);
    bool copied = true;
    for (int table = 0; table < OC_TABLE_COUNT && copied; table++) {
        copied = copy_table(interpose, (oc_table)table, minor);
    }
    for (int table = OC_TABLE_EP; table < OC_TABLE_COUNT && copied; table++) {
        if (getters[table] < interpose->counts[OC_TABLE_API]) {
            interpose->tables[OC_TABLE_API][getters[table]] = own->get_table[table];
        }
    }
    interpose->base.GetApi = own->get_api;
    interpose->base.GetVersionString = own->get_version;
    return copied;
}

/* Version texts to numbers, checked. `said`: what the EP will be told. */
static OrtStatus *read_versions(oc_interpose *interpose, const OrtApi *oldest, const OrtApiBase *real,
                                const oc_interpose_options *options)
{
    const char *const own = real->GetVersionString();
    const char *const said = options != NULL && options->version != NULL ? options->version : own;
    unsigned major = 0;
    unsigned minor = 0;
    if (!oc_ep_version_parse(own, &major, &interpose->minor) || major != 1 || interpose->minor < OC_EP_FIRST_SUPPORTED) {
        return oc_ep_status(oldest, ORT_NOT_IMPLEMENTED, "ONNX Runtime 1.%d or a newer 1.x is needed, and this is %.40s",
                            (int)OC_EP_FIRST_SUPPORTED, own != NULL ? own : "");
    }
    if (!oc_ep_version_parse(said, &major, &minor) || major != 1 || minor < OC_EP_FIRST_SUPPORTED ||
        strlen(said) >= sizeof(interpose->version)) {
        return oc_ep_status(oldest, ORT_INVALID_ARGUMENT, "\"%.40s\" is no version of ONNX Runtime to offer", said);
    }
    memcpy(interpose->version, said, strlen(said) + 1);
    interpose->api_version = minor < OC_INTERPOSE_MINOR_MAX ? minor : OC_INTERPOSE_MINOR_MAX;
    if (options != NULL && options->api_version != 0) {
        interpose->api_version = options->api_version;
    }
    if (interpose->api_version < OC_EP_FIRST_SUPPORTED || interpose->api_version > OC_INTERPOSE_MINOR_MAX) {
        return oc_ep_status(oldest, ORT_INVALID_ARGUMENT, "an API version to offer is %d to %d, not %u",
                            (int)OC_EP_FIRST_SUPPORTED, (int)OC_INTERPOSE_MINOR_MAX, interpose->api_version);
    }
    interpose->real = real->GetApi(present_version(interpose));
    return interpose->real != NULL
               ? NULL
               : oc_ep_status(oldest, ORT_NOT_IMPLEMENTED, "ONNX Runtime %.40s does not give its own OrtApi", own);
}

OrtStatus *oc_interpose_new(oc_interpose **out, const OrtApiBase *real, const oc_interpose_options *options)
{
    *out = NULL;
    const OrtApi *const oldest = real->GetApi(1); /* any 1.x answers: to make errors with */
    if (oldest == NULL) {
        return NULL;
    }
    oc_interpose *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return oc_ep_status(oldest, ORT_FAIL, "no memory for a copy of ONNX Runtime's tables");
    }
    OrtStatus *const status = read_versions(made, oldest, real, options);
    if (status != NULL) {
        free(made);
        return status;
    }
    if (!oc_pool_take(made)) {
        free(made);
        return oc_ep_status(oldest, ORT_FAIL, "more than %d EP libraries at a time are not supported", (int)OC_INTERPOSE_POOL);
    }
    if (!copy_tables(made)) {
        oc_interpose_free(made);
        return oc_ep_status(oldest, ORT_FAIL, "no memory for a copy of ONNX Runtime's tables");
    }
    *out = made;
    return NULL;
}

void oc_interpose_free(oc_interpose *interpose)
{
    if (interpose == NULL) {
        return;
    }
    oc_pool_leave(interpose);
    for (int table = 0; table < OC_TABLE_COUNT; table++) {
        free(interpose->tables[table]);
    }
    free(interpose);
}

const OrtApiBase *oc_interpose_base(const oc_interpose *interpose)
{
    return &interpose->base;
}

const void *oc_interpose_table(const oc_interpose *interpose, oc_table table)
{
    return interpose->tables[table];
}

bool oc_interpose_replace(oc_interpose *interpose, oc_table table, size_t slot, oc_function function, oc_function *original)
{
    if (slot >= interpose->counts[table]) {
        return false;
    }
    if (original != NULL) {
        *original = interpose->tables[table][slot];
    }
    interpose->tables[table][slot] = function;
    return true;
}

unsigned oc_interpose_minor(const oc_interpose *interpose)
{
    return interpose->minor;
}

const OrtApi *oc_interpose_real(const oc_interpose *interpose)
{
    return interpose->real;
}

unsigned oc_interpose_asked(const oc_interpose *interpose)
{
    return atomic_load(&interpose->asked);
}

unsigned oc_interpose_missed(const oc_interpose *interpose)
{
    return atomic_load(&interpose->missed);
}

unsigned oc_interpose_index(const oc_interpose *interpose)
{
    return interpose->index;
}
