/*
 * The functions of ONNX Runtime's interface that take nothing to tell instances apart by: one set for each place of the pool.
 * EP -> function number n -> the instance at place n -> its answer.
 */
#include <pthread.h>

#include "interpose/internal.h"

static _Atomic(oc_interpose *) places[OC_INTERPOSE_POOL];
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

oc_interpose *oc_interpose_at(unsigned index)
{
    return index < OC_INTERPOSE_POOL ? atomic_load(&places[index]) : NULL;
}

bool oc_pool_take(oc_interpose *interpose)
{
    bool taken = false;
    (void)pthread_mutex_lock(&taking);
    for (unsigned i = 0; i < OC_INTERPOSE_POOL && !taken; i++) {
        if (atomic_load(&places[i]) == NULL) {
            interpose->index = i;
            atomic_store(&places[i], interpose);
            taken = true;
        }
    }
    (void)pthread_mutex_unlock(&taking);
    return taken;
}

void oc_pool_leave(const oc_interpose *interpose)
{
    atomic_store(&places[interpose->index], NULL);
}

static const OrtApi *answer_api(unsigned index, uint32_t version)
{
    oc_interpose *const at = oc_interpose_at(index);
    unsigned asked = atomic_load(&at->asked);
    while (version > asked && !atomic_compare_exchange_weak(&at->asked, &asked, version)) {
    }
    const void *const table = version >= 1 && version <= at->api_version ? at->tables[OC_TABLE_API] : NULL;
    return table;
}

static OrtStatus *answer_missing(unsigned index)
{
    const oc_interpose *const at = oc_interpose_at(index);
    return oc_ep_status(at->real, ORT_NOT_IMPLEMENTED, "ONNX Runtime 1.%u does not have this function", at->minor);
}

static void *answer_other(unsigned index)
{
    (void)atomic_fetch_add(&oc_interpose_at(index)->missed, 1);
    return NULL;
}

#define MAKE(n)                                                                                                        \
    static const OrtApi *ORT_API_CALL get_api_##n(uint32_t version)                                                    \
    {                                                                                                                  \
        return answer_api(n, version);                                                                                 \
    }                                                                                                                  \
    static const char *ORT_API_CALL get_version_##n(void)                                                              \
    {                                                                                                                  \
        return oc_interpose_at(n)->version;                                                                            \
    }                                                                                                                  \
    static const void *ORT_API_CALL get_ep_##n(void)                                                                   \
    {                                                                                                                  \
        return oc_interpose_at(n)->tables[OC_TABLE_EP];                                                                \
    }                                                                                                                  \
    static const void *ORT_API_CALL get_compile_##n(void)                                                              \
    {                                                                                                                  \
        return oc_interpose_at(n)->tables[OC_TABLE_COMPILE];                                                           \
    }                                                                                                                  \
    static const void *ORT_API_CALL get_editor_##n(void)                                                               \
    {                                                                                                                  \
        return oc_interpose_at(n)->tables[OC_TABLE_EDITOR];                                                            \
    }                                                                                                                  \
    static const void *ORT_API_CALL get_interop_##n(void)                                                              \
    {                                                                                                                  \
        return oc_interpose_at(n)->tables[OC_TABLE_INTEROP];                                                           \
    }                                                                                                                  \
    static OrtStatus *ORT_API_CALL missing_status_##n(void)                                                            \
    {                                                                                                                  \
        return answer_missing(n);                                                                                      \
    }                                                                                                                  \
    static void *ORT_API_CALL missing_other_##n(void)                                                                  \
    {                                                                                                                  \
        return answer_other(n);                                                                                        \
    }
OC_INTERPOSE_EACH(MAKE)

#define LIST(n)                                                                                                        \
    {get_api_##n,                                                                                                      \
     get_version_##n,                                                                                                  \
     {NULL, (oc_function)get_ep_##n, (oc_function)get_compile_##n, (oc_function)get_editor_##n, (oc_function)get_interop_##n}, \
     (oc_function)missing_status_##n,                                                                                  \
     (oc_function)missing_other_##n},
static const oc_pool_functions functions[OC_INTERPOSE_POOL] = {OC_INTERPOSE_EACH(LIST)};

const oc_pool_functions *oc_pool_at(unsigned index)
{
    return &functions[index];
}
