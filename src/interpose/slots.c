/*
 * How long ONNX Runtime's tables are in each version, and which functions can say that they are not implemented.
 * Source: the \since marks of ORT's headers up to 1.29; above that the tables of the shipped libraries. They only ever grow.
 */
#include "interpose/internal.h"

enum { FIRST = OC_EP_FIRST_SUPPORTED, VERSIONS = OC_INTERPOSE_MINOR_MAX - FIRST + 1 };

static const unsigned short counts[OC_TABLE_COUNT][VERSIONS] = {
    /*                   1.23 1.24 1.25 1.26 1.27 1.28 1.29 1.30 1.31 1.32 */
    [OC_TABLE_API] =     {390, 415, 419, 419, 422, 424, 425, 426, 428, 429},
    [OC_TABLE_EP] =      {16, 50, 73, 73, 73, 73, 74, 74, 78, 78},
    [OC_TABLE_COMPILE] = {14, 15, 15, 15, 15, 15, 16, 16, 17, 17},
    [OC_TABLE_EDITOR] =  {20, 20, 20, 20, 20, 20, 20, 20, 20, 20},
    [OC_TABLE_INTEROP] = {0, 11, 13, 13, 13, 13, 13, 13, 13, 13},
};

_Static_assert(ORT_API_VERSION != 29 || sizeof(OrtApi) / sizeof(oc_function) == 425, "OrtApi of 1.29");
_Static_assert(ORT_API_VERSION != 29 || sizeof(OrtEpApi) / sizeof(oc_function) == 74, "OrtEpApi of 1.29");
_Static_assert(ORT_API_VERSION != 29 || sizeof(OrtCompileApi) / sizeof(oc_function) == 16, "OrtCompileApi of 1.29");
_Static_assert(ORT_API_VERSION != 29 || sizeof(OrtModelEditorApi) / sizeof(oc_function) == 20, "OrtModelEditorApi of 1.29");
_Static_assert(ORT_API_VERSION != 29 || sizeof(OrtInteropApi) / sizeof(oc_function) == 13, "OrtInteropApi of 1.29");

size_t oc_slot_count(oc_table table, unsigned minor)
{
    return counts[table][minor - FIRST];
}

/* Slots that can be missing (they came after 1.23) and return no OrtStatus: void, pointers, bool and numbers. */
static const unsigned short other_api[] = {
    OC_SLOT(OrtApi, TensorTypeAndShape_HasShape),
    OC_SLOT(OrtApi, GetInteropApi),
    OC_SLOT(OrtApi, ReleaseDeviceEpIncompatibilityDetails),
    OC_SLOT(OrtApi, RunOptionsSetSyncStream),
    OC_SLOT(OrtApi, GetExperimentalFunction),
};
static const unsigned short other_ep[] = {
    OC_SLOT(OrtEpApi, ReleaseHardwareDevice),     OC_SLOT(OrtEpApi, ReleaseKernelRegistry),
    OC_SLOT(OrtEpApi, ReleaseKernelDefBuilder),   OC_SLOT(OrtEpApi, ReleaseKernelDef),
    OC_SLOT(OrtEpApi, KernelDef_GetOperatorType), OC_SLOT(OrtEpApi, KernelDef_GetDomain),
    OC_SLOT(OrtEpApi, KernelDef_GetExecutionProvider), OC_SLOT(OrtEpApi, ReleaseKernelImpl),
    OC_SLOT(OrtEpApi, ReleaseOpSchema),           OC_SLOT(OrtEpApi, ReleaseProfilingEvent),
};
static const unsigned short other_interop[] = {
    OC_SLOT(OrtInteropApi, ReleaseExternalResourceImporter),
    OC_SLOT(OrtInteropApi, ReleaseExternalMemoryHandle),
    OC_SLOT(OrtInteropApi, ReleaseExternalSemaphoreHandle),
};

static bool listed(const unsigned short *slots, size_t count, size_t slot)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = slots[i] == slot;
    }
    return found;
}

bool oc_slot_returns_status(oc_table table, size_t slot)
{
    if (slot >= oc_slot_count(table, 29)) {
        return false; /* no header here says what it is */
    }
    switch (table) {
    case OC_TABLE_API:
        return !listed(other_api, sizeof(other_api) / sizeof(other_api[0]), slot);
    case OC_TABLE_EP:
        return !listed(other_ep, sizeof(other_ep) / sizeof(other_ep[0]), slot);
    case OC_TABLE_INTEROP:
        return !listed(other_interop, sizeof(other_interop) / sizeof(other_interop[0]), slot);
    case OC_TABLE_COMPILE:
    case OC_TABLE_EDITOR:
    case OC_TABLE_COUNT:
    default:
        return true;
    }
}
