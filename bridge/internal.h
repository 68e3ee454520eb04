/*
 * bridge/internal.h: what the files of the bridge share.
 *
 * Data flow: ONNX Runtime -> the EP's own factory, whose CreateEp and ReleaseEp are ours (factory.c) -> the EP -> the copied tables of
 * interpose -> the six functions as the EP knows them (callbacks.c) -> callbacks by id, or those that the runtime has.
 * Owners: a target has the EP's library, the copied tables and all records of its EPs; it goes when its last factory was released and the
 * EP's library left memory.
 */
#ifndef OC_BRIDGE_INTERNAL_H
#define OC_BRIDGE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "ep_context/internal.h"
#include "interpose/interpose.h"

/* The newest OrtEp and OrtEpFactory, and the newest OrtApi, that an EP behind the bridge may know: from 1.31 on it has the callbacks itself. */
enum { OC_BRIDGE_STRUCT_MAX = 30 };
/* What EPs are told where the runtime has no callbacks, and the first version of it. */
#define OC_BRIDGE_TOLD "1.28.0"

typedef OrtStatus *(*oc_create_factories)(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                                          size_t max_factories, size_t *factory_count);
typedef OrtStatus *(*oc_release_factory)(OrtEpFactory *factory);

typedef struct oc_target {
    char *name; /* of the registration */
    char *path; /* of the EP's library */
    void *library;
    const OrtApiBase *base; /* the runtime's own */
    oc_release_factory release;
    oc_interpose *interpose;
    const OrtApi *api;          /* the runtime's own */
    unsigned minor;             /* of the runtime */
    ortcrypt_ep_context_api six; /* the runtime's own; none before 1.28 */
    oc_function find;           /* the runtime's GetExperimentalFunction; NULL before 1.28 */
    oc_function ep_of_kernel;   /* the runtime's KernelInfo_GetEp; NULL before 1.24 */
    size_t factory_count;       /* not yet released */
    struct oc_target *next;     /* targets.c's list of those that stay */
} oc_target;

/* factory.c. All of these take their own lock; none is held around calls of ORT or the EP. */
OrtStatus *oc_bridge_hook(oc_target *target, OrtEpFactory *factory);
/* The factory is as it was; its target, or NULL when it is none of ours. */
oc_target *oc_bridge_unhook(OrtEpFactory *factory);
/* The library with this handle is gone, and what its sessions shared with it. */
void oc_bridge_unloaded(const void *library);

/* ep.c: an OrtEp before the EP's own that says that callbacks are used; NULL: no memory. */
OrtEp *oc_bridge_wrap(OrtEp *real);
/* The EP's own behind it, also for one that is not wrapped. */
OrtEp *oc_bridge_real(const OrtEp *ep);
void oc_bridge_wrap_free(OrtEp *ep); /* does nothing to one that is not wrapped */

/* callbacks.c: GetExperimentalFunction for the EP at this place of interpose's pool, and who is there. */
oc_function oc_bridge_experimental(unsigned place);
/* KernelInfo_GetEp likewise. */
oc_function oc_bridge_kernel_ep(unsigned place);
void oc_bridge_place(unsigned place, oc_target *target); /* NULL: nobody */

/* What a session's options say. */
typedef struct oc_bridge_session {
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE]; /* "": none */
    bool by_runtime;                      /* the runtime's own callbacks are set, one or both */
    bool sharing;                         /* ep.share_ep_contexts */
} oc_bridge_session;
OrtStatus *oc_bridge_read_session(const oc_target *target, const OrtSessionOptions *options, oc_bridge_session *out);

/*
 * handles.c: what the EP gets as the state of callbacks by id: a number, so that one that is called after its session is refused and
 * touches no memory. Numbers are never used again.
 */
OrtStatus *oc_handle_get(const oc_target *target, const char *id, void **state);
/* A session of this id has an EP (or one less: after the last one its number is refused, unless kept). */
void oc_handle_hold(const oc_target *target, const char *id);
void oc_handle_drop(const oc_target *target, const char *id, bool keep);
void oc_handle_forget_all(const oc_target *target);
OrtStatus *ORT_API_CALL oc_handle_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *data_size);
OrtStatus *ORT_API_CALL oc_handle_write(void *state, const char *name, const void *buffer, size_t buffer_num_bytes);

#endif
