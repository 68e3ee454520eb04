/*
 * CreateEp and ReleaseEp of the EP's own factories. ORT -> ours -> the EP's, found by the factory's address. The factory stays the EP's:
 * two of its members are exchanged in place, so that every other one, those of later versions too, is what the EP made it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

typedef OrtStatus *(ORT_API_CALL *create_function)(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                                   const OrtKeyValuePairs *const *metadata, size_t device_count,
                                                   const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep);
typedef void(ORT_API_CALL *release_function)(OrtEpFactory *factory, OrtEp *ep);

typedef struct hooked {
    OrtEpFactory *factory;
    oc_target *target;
    create_function create; /* the EP's */
    release_function release;
    struct hooked *next;
} hooked;

/* A session with an id, as far as its EP is concerned. */
typedef struct record {
    const OrtEp *ep; /* as ORT has it */
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    bool sharing;
    struct record *next;
} record;

/* Libraries in which a session with callbacks shared its contexts: a library is loaded once, under however many names. */
typedef struct sharer {
    const void *library; /* the loader's handle: the same for the same library */
    struct sharer *next;
} sharer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all lists */
static sharer *sharers; /* until the library is unloaded: contexts outlive sessions */
static bool all_shared; /* no memory to say which */
static hooked *factories;
static record *records;

static bool find(const OrtEpFactory *factory, hooked *out)
{
    bool found = false;
    (void)pthread_mutex_lock(&lock);
    for (const hooked *at = factories; at != NULL && !found; at = at->next) {
        if (at->factory == factory) {
            *out = *at;
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

static bool is_shared(const void *library)
{
    (void)pthread_mutex_lock(&lock);
    bool found = all_shared;
    for (const sharer *at = sharers; at != NULL && !found; at = at->next) {
        found = at->library == library;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

static void mark_shared(const void *library)
{
    if (is_shared(library)) {
        return;
    }
    sharer *const made = calloc(1, sizeof(*made));
    (void)pthread_mutex_lock(&lock);
    if (made != NULL) {
        made->library = library;
        made->next = sharers;
        sharers = made;
    } else {
        all_shared = true;
    }
    (void)pthread_mutex_unlock(&lock);
}

void oc_bridge_unloaded(const void *library)
{
    (void)pthread_mutex_lock(&lock);
    for (sharer **at = &sharers; *at != NULL;) {
        sharer *const here = *at;
        if (here->library == library) {
            *at = here->next;
            free(here);
        } else {
            at = &here->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

/* Why this EP cannot be used in this session, before the EP is asked. */
static OrtStatus *refuse(const oc_target *target, const oc_bridge_session *session)
{
    const bool callbacks = session->id[0] != '\0' || session->by_runtime;
    if (oc_interpose_missed(target->interpose) != 0) {
        return oc_ep_status(target->api, ORT_NOT_IMPLEMENTED,
                            "the execution provider called a function that ONNX Runtime 1.%u does not have", target->minor);
    }
    if (session->sharing && !callbacks && is_shared(target->library)) { /* seen: the other one's data, in plaintext */
        return oc_ep_status(target->api, ORT_NOT_IMPLEMENTED,
                            "a session without EPContext data callbacks must not share contexts with one that had them: the execution "
                            "provider would write what the other one compiled to a file");
    }
    return NULL;
}

/* For ReleaseEp, which gets no options. */
static OrtStatus *keep_record(const OrtEp *ep, const oc_target *target, const oc_bridge_session *session)
{
    record *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return oc_ep_status(target->api, ORT_FAIL, "no memory for an execution provider");
    }
    made->ep = ep;
    made->sharing = session->sharing;
    memcpy(made->id, session->id, sizeof(made->id));
    (void)pthread_mutex_lock(&lock);
    made->next = records;
    records = made;
    (void)pthread_mutex_unlock(&lock);
    return NULL;
}

/* NULL: a session without an id. The caller frees it. */
static record *take_record(const OrtEp *ep)
{
    record *gone = NULL;
    (void)pthread_mutex_lock(&lock);
    for (record **at = &records; *at != NULL; at = &(*at)->next) {
        if ((*at)->ep == ep) {
            gone = *at;
            *at = gone->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return gone;
}

/* What the EP made, as ORT gets it; on an error the EP is released. */
static OrtStatus *finish(const hooked *hook, const oc_bridge_session *session, OrtEp **ep)
{
    const oc_target *const target = hook->target;
    OrtEp *const real = *ep;
    OrtEp *given = real;
    OrtStatus *status = NULL;
    if (real->ort_version_supported > OC_BRIDGE_STRUCT_MAX) {
        status = oc_ep_status(target->api, ORT_NOT_IMPLEMENTED, "the execution provider is newer (1.%u) than the bridge knows (1.%d)",
                              real->ort_version_supported, (int)OC_BRIDGE_STRUCT_MAX);
    } else if (session->by_runtime && target->six.era == ORTCRYPT_ERA_STABLE) {
        given = oc_bridge_wrap(real);
        status = given != NULL ? NULL : oc_ep_status(target->api, ORT_FAIL, "no memory for an execution provider");
    }
    if (status == NULL && session->id[0] != '\0') {
        status = keep_record(given, target, session);
    }
    if (status != NULL) {
        if (given != NULL) {
            oc_bridge_wrap_free(given);
        }
        hook->release(hook->factory, real);
        *ep = NULL;
        return status;
    }
    *ep = given;
    return NULL;
}

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                         const OrtKeyValuePairs *const *metadata, size_t device_count,
                                         const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep)
{
    oc_bridge_session session = {.id = ""};
    hooked hook;
    if (!find(factory, &hook)) {
        return NULL; /* ORT releases a factory after its EPs: not reached */
    }
    oc_target *const target = hook.target;
    OrtStatus *status = oc_bridge_read_session(target, options, &session);
    if (status == NULL) {
        status = refuse(target, &session);
    }
    if (status != NULL) {
        return status;
    }
    if (session.sharing && (session.id[0] != '\0' || session.by_runtime)) {
        mark_shared(target->library); /* before the EP is made: another session may come meanwhile */
    }
    if (session.id[0] != '\0') {
        oc_handle_hold(target, session.id); /* until ReleaseEp */
    }
    *ep = NULL;
    status = hook.create(factory, devices, metadata, device_count, options, logger, ep);
    if (status == NULL && *ep != NULL) {
        status = finish(&hook, &session, ep);
    }
    if (status != NULL && session.id[0] != '\0') {
        oc_handle_drop(target, session.id, false);
    }
    return status;
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep)
{
    hooked hook;
    if (ep == NULL || !find(factory, &hook)) {
        return;
    }
    OrtEp *const real = oc_bridge_real(ep);
    record *const gone = take_record(ep); /* first: once released, its address may be another EP's */
    hook.release(factory, real);
    if (gone != NULL) { /* then: the EP may write or read while it ends. With shared contexts another session's EP may use the number. */
        oc_handle_drop(hook.target, gone->id, gone->sharing);
        free(gone);
    }
    if (real != ep) { /* an EP's own address may be a new wrapper's by now */
        oc_bridge_wrap_free(ep);
    }
}

/*
 * Writes `len` bytes to `to`, which may be in memory that is read-only: an errno then, where a plain store would end the process. The
 * kernel does the copying, through a pipe.
 */
static int store(void *to, const void *from, size_t len)
{
    int ends[2];
    int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (error != 0) {
        return error;
    }
    if (write(ends[1], from, len) != (ssize_t)len || read(ends[0], to, len) != (ssize_t)len) {
        error = errno != 0 ? errno : EIO;
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    return error;
}

static int put_members(OrtEpFactory *factory, create_function create, release_function release)
{
    const int error = store(&factory->CreateEp, &create, sizeof(create));
    return error != 0 ? error : store(&factory->ReleaseEp, &release, sizeof(release));
}

OrtStatus *oc_bridge_hook(oc_target *target, OrtEpFactory *factory)
{
    hooked there;
    if (find(factory, &there)) {
        return oc_ep_status(target->api, ORT_NOT_IMPLEMENTED, "this execution provider has one factory for all its registrations, and "
                                                              "it is registered already");
    }
    if (factory->ort_version_supported > OC_BRIDGE_STRUCT_MAX) {
        return oc_ep_status(target->api, ORT_NOT_IMPLEMENTED, "the execution provider is newer (1.%u) than the bridge knows (1.%d)",
                            factory->ort_version_supported, (int)OC_BRIDGE_STRUCT_MAX);
    }
    hooked *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return oc_ep_status(target->api, ORT_FAIL, "no memory for an execution provider's factory");
    }
    *made = (hooked){factory, target, factory->CreateEp, factory->ReleaseEp, NULL};
    (void)pthread_mutex_lock(&lock);
    made->next = factories;
    factories = made;
    (void)pthread_mutex_unlock(&lock);
    const int error = put_members(factory, create_ep, release_ep);
    if (error != 0) {
        (void)oc_bridge_unhook(factory);
        return oc_ep_status(target->api, ORT_NOT_IMPLEMENTED, "the execution provider's factory cannot be bridged: %s", strerror(error));
    }
    return NULL;
}

oc_target *oc_bridge_unhook(OrtEpFactory *factory)
{
    hooked *gone = NULL;
    (void)pthread_mutex_lock(&lock);
    for (hooked **at = &factories; *at != NULL; at = &(*at)->next) {
        if ((*at)->factory == factory) {
            gone = *at;
            *at = gone->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (gone == NULL) {
        return NULL;
    }
    oc_target *const target = gone->target;
    (void)put_members(factory, gone->create, gone->release);
    free(gone);
    return target;
}
