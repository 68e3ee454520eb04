/*
 * An OrtEp that says what EPs of 1.30 and older cannot: that they use the callbacks (OrtEp slot 26 of 1.31). ORT -> ours -> the EP's own,
 * member by member; only on ONNX Runtime 1.31 and newer, and only for sessions that have the runtime's own callbacks.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { SLOT_CALLBACK_SUPPORT = 26, FIRST_SUPPORT = 31 };

typedef struct wrapped {
    union {
        OrtEp ort; /* first: ORT's pointer is ours */
        char room[ORTCRYPT_EP_ROOM];
    } base;
    OrtEp *real;
    struct wrapped *next;
} wrapped;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wrapped *all;

/* ORT hands ours over as it got it; what it calls is the EP's own. */
static OrtEp *own(const OrtEp *ep)
{
    return ((const wrapped *)(const void *)ep)->real;
}

/* FORWARDn(type, member, type of `this`, types of n more arguments) */
#define FORWARD0(type, member, this_type)                                                                              \
    static type ORT_API_CALL forward_##member(this_type ep)                                                            \
    {                                                                                                                  \
        return own(ep)->member(own(ep));                                                                               \
    }
#define FORWARD1(type, member, this_type, type_a)                                                                      \
    static type ORT_API_CALL forward_##member(this_type ep, type_a a)                                                  \
    {                                                                                                                  \
        return own(ep)->member(own(ep), a);                                                                            \
    }
#define FORWARD2(type, member, this_type, type_a, type_b)                                                              \
    static type ORT_API_CALL forward_##member(this_type ep, type_a a, type_b b)                                        \
    {                                                                                                                  \
        return own(ep)->member(own(ep), a, b);                                                                         \
    }
#define FORWARD3(type, member, this_type, type_a, type_b, type_c)                                                      \
    static type ORT_API_CALL forward_##member(this_type ep, type_a a, type_b b, type_c c)                              \
    {                                                                                                                  \
        return own(ep)->member(own(ep), a, b, c);                                                                      \
    }

FORWARD0(const char *, GetName, const OrtEp *)
FORWARD2(OrtStatus *, GetCapability, OrtEp *, const OrtGraph *, OrtEpGraphSupportInfo *)
FORWARD1(OrtStatus *, GetPreferredDataLayout, OrtEp *, OrtEpDataLayout *)
FORWARD3(OrtStatus *, SetDynamicOptions, OrtEp *, const char *const *, const char *const *, size_t)
FORWARD1(OrtStatus *, OnRunStart, OrtEp *, const OrtRunOptions *)
FORWARD2(OrtStatus *, OnRunEnd, OrtEp *, const OrtRunOptions *, bool)
FORWARD2(OrtStatus *, CreateAllocator, OrtEp *, const OrtMemoryInfo *, OrtAllocator **)
FORWARD2(OrtStatus *, CreateSyncStreamForDevice, OrtEp *, const OrtMemoryDevice *, OrtSyncStreamImpl **)
FORWARD1(const char *, GetCompiledModelCompatibilityInfo, OrtEp *, const OrtGraph *)
FORWARD1(OrtStatus *, GetKernelRegistry, OrtEp *, const OrtKernelRegistry **)
FORWARD1(OrtStatus *, IsConcurrentRunSupported, OrtEp *, bool *)
FORWARD0(OrtStatus *, Sync, OrtEp *)
FORWARD1(OrtStatus *, CreateProfiler, OrtEp *, OrtEpProfilerImpl **)
FORWARD0(bool, IsGraphCaptureEnabled, const OrtEp *)
FORWARD1(bool, IsGraphCaptured, const OrtEp *, int)
FORWARD1(OrtStatus *, ReplayGraph, OrtEp *, int)
FORWARD0(OrtGraphCaptureNodeAssignmentPolicy, GetGraphCaptureNodeAssignmentPolicy, const OrtEp *)
FORWARD1(OrtStatus *, GetAvailableResource, const OrtEp *, OrtResourceCount *)
FORWARD0(OrtStatus *, OnSessionInitializationEnd, OrtEp *)
FORWARD1(OrtStatus *, GetDefaultMemoryDevice, const OrtEp *, const OrtMemoryDevice **)
FORWARD1(OrtStatus *, ReleaseCapturedGraph, OrtEp *, int)
FORWARD1(OrtStatus *, GetWeightlessSupport, const OrtEp *, OrtWeightlessSupport *)

static OrtStatus *ORT_API_CALL forward_Compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                                               OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    return own(ep)->Compile(own(ep), graphs, fused, count, infos, context_nodes);
}

static void ORT_API_CALL forward_ReleaseNodeComputeInfos(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count)
{
    own(ep)->ReleaseNodeComputeInfos(own(ep), infos, count);
}

static OrtStatus *ORT_API_CALL forward_ShouldConvertDataLayoutForOp(OrtEp *ep, const char *domain, const char *op_type,
                                                                    OrtEpDataLayout layout, int *should)
{
    return own(ep)->ShouldConvertDataLayoutForOp(own(ep), domain, op_type, layout, should);
}

static OrtStatus *ORT_API_CALL callback_support(const OrtEp *ep, uint32_t *flags)
{
    (void)ep;
    *flags = ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES;
    return NULL;
}

/* Every member with the version that brought it: an EP's own struct ends where its version does. */
#define EACH_MEMBER(X)                                                                                                 \
    X(GetName, 22)                                                                                                     \
    X(GetCapability, 23) X(Compile, 23) X(ReleaseNodeComputeInfos, 23) X(GetPreferredDataLayout, 23)                   \
    X(ShouldConvertDataLayoutForOp, 23) X(SetDynamicOptions, 23) X(OnRunStart, 23) X(OnRunEnd, 23)                     \
    X(CreateAllocator, 23) X(CreateSyncStreamForDevice, 23) X(GetCompiledModelCompatibilityInfo, 23)                   \
    X(GetKernelRegistry, 24) X(IsConcurrentRunSupported, 24) X(Sync, 25) X(CreateProfiler, 25)                         \
    X(IsGraphCaptureEnabled, 26) X(IsGraphCaptured, 26) X(ReplayGraph, 26) X(GetGraphCaptureNodeAssignmentPolicy, 26)  \
    X(GetAvailableResource, 26) X(OnSessionInitializationEnd, 27) X(GetDefaultMemoryDevice, 27)                        \
    X(ReleaseCapturedGraph, 27) X(GetWeightlessSupport, 29)

OrtEp *oc_bridge_wrap(OrtEp *real)
{
    OrtStatus *(ORT_API_CALL *const support)(const OrtEp *, uint32_t *) = callback_support;
    wrapped *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->real = real;
    made->base.ort.ort_version_supported = FIRST_SUPPORT;
#define PUT(member, since)                                                                                             \
    made->base.ort.member = real->ort_version_supported >= (since) && real->member != NULL ? forward_##member : NULL;
    EACH_MEMBER(PUT)
    memcpy(made->base.room + SLOT_CALLBACK_SUPPORT * sizeof(support), &support, sizeof(support));
    (void)pthread_mutex_lock(&lock);
    made->next = all;
    all = made;
    (void)pthread_mutex_unlock(&lock);
    return &made->base.ort;
}

/* Where a wrapper of this address is in the list; *at is NULL when there is none. Lock held. */
static wrapped **place_of(const OrtEp *ep)
{
    wrapped **at = &all;
    while (*at != NULL && &(*at)->base.ort != ep) {
        at = &(*at)->next;
    }
    return at;
}

OrtEp *oc_bridge_real(const OrtEp *ep)
{
    (void)pthread_mutex_lock(&lock);
    const wrapped *const found = *place_of(ep);
    OrtEp *const real = found != NULL ? found->real : NULL;
    (void)pthread_mutex_unlock(&lock);
    if (real != NULL) {
        return real;
    }
    union {
        const OrtEp *given;
        OrtEp *ep;
    } same = {ep};
    return same.ep;
}

void oc_bridge_wrap_free(OrtEp *ep)
{
    (void)pthread_mutex_lock(&lock);
    wrapped **const at = place_of(ep);
    wrapped *const gone = *at;
    if (gone != NULL) {
        *at = gone->next;
    }
    (void)pthread_mutex_unlock(&lock);
    free(gone);
}
