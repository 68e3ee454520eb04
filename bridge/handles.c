/*
 * Callbacks by id, for an EP that wants a function and a state. The state is a number: EP -> number -> id -> registry -> callback.
 * Every call looks up both, so nothing an EP may keep for too long can lead to memory that is gone.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { PLACE_BITS = 8 };

typedef struct handle {
    uintptr_t number; /* in its low bits the target's place, for the OrtApi of an error */
    const oc_target *target;
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    size_t eps; /* EP instances of sessions with this id */
    struct handle *next;
} handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static handle *handles;
static uintptr_t last_number;
static _Atomic(const OrtApi *) last_api; /* of any target: errors after the one that is meant has gone */

static handle *find(const oc_target *target, const char *id)
{
    handle *found = handles;
    while (found != NULL && (found->target != target || strcmp(found->id, id) != 0)) {
        found = found->next;
    }
    return found;
}

/* The handle of an id, made when there is none; NULL: no memory. Lock held. */
static handle *find_or_make(const oc_target *target, const char *id)
{
    handle *found = find(target, id);
    if (found == NULL && (found = calloc(1, sizeof(*found))) != NULL) {
        found->number = ++last_number << PLACE_BITS | oc_interpose_index(target->interpose);
        found->target = target;
        memcpy(found->id, id, strlen(id) + 1);
        found->next = handles;
        handles = found;
    }
    return found;
}

static void forget(const handle *gone)
{
    for (handle **at = &handles; *at != NULL; at = &(*at)->next) {
        if (*at == gone) {
            handle *const next = (*at)->next;
            free(*at);
            *at = next;
            return;
        }
    }
}

OrtStatus *oc_handle_get(const oc_target *target, const char *id, void **state)
{
    atomic_store(&last_api, target->api);
    (void)pthread_mutex_lock(&lock);
    const handle *const found = find_or_make(target, id);
    const uintptr_t number = found != NULL ? found->number : 0;
    (void)pthread_mutex_unlock(&lock);
    if (number == 0) {
        return oc_ep_status(target->api, ORT_FAIL, "no memory for EPContext data callbacks");
    }
    *state = (void *)number;
    return NULL;
}

void oc_handle_hold(const oc_target *target, const char *id)
{
    (void)pthread_mutex_lock(&lock);
    handle *const found = find_or_make(target, id);
    if (found != NULL) {
        found->eps++;
    }
    (void)pthread_mutex_unlock(&lock);
}

void oc_handle_drop(const oc_target *target, const char *id, bool keep)
{
    (void)pthread_mutex_lock(&lock);
    handle *const found = find(target, id);
    if (found != NULL && found->eps != 0) {
        found->eps--;
    }
    if (found != NULL && found->eps == 0 && !keep) {
        forget(found);
    }
    (void)pthread_mutex_unlock(&lock);
}

void oc_handle_forget_all(const oc_target *target)
{
    (void)pthread_mutex_lock(&lock);
    for (handle *at = handles; at != NULL;) {
        handle *const next = at->next;
        if (at->target == target) {
            forget(at);
        }
        at = next;
    }
    (void)pthread_mutex_unlock(&lock);
}

/* The id of a number in id[], and the OrtApi for errors; false when its session has ended. */
static bool look_up(const void *state, char *id, const OrtApi **api)
{
    bool found = false;
    *api = atomic_load(&last_api);
    (void)pthread_mutex_lock(&lock);
    for (const handle *at = handles; at != NULL && !found; at = at->next) {
        if (at->number == (uintptr_t)state) {
            memcpy(id, at->id, sizeof(at->id));
            *api = at->target->api;
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

/* The registry that knows the id behind a number, or an error. */
static OrtStatus *find_registry(const void *state, char *id, const OrtApi **api, const ortcrypt_ep_registry **registry)
{
    if (!look_up(state, id, api)) {
        return oc_ep_status(*api, ORT_FAIL, "the execution provider used EPContext data callbacks of a session that has ended");
    }
    if (oc_ep_find_id(id, registry) == 0) {
        return oc_ep_status(*api, ORT_FAIL, "the EPContext data callbacks of this session are not there any more: what they belong "
                                            "to was closed");
    }
    return NULL;
}

OrtStatus *ORT_API_CALL oc_handle_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *data_size)
{
    const ortcrypt_ep_registry *registry = NULL;
    const OrtApi *api = NULL;
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    OrtStatus *const status = find_registry(state, id, &api, &registry);
    return status != NULL ? status : registry->read(id, api, name, allocator, buffer, data_size);
}

OrtStatus *ORT_API_CALL oc_handle_write(void *state, const char *name, const void *buffer, size_t buffer_num_bytes)
{
    const ortcrypt_ep_registry *registry = NULL;
    const OrtApi *api = NULL;
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    OrtStatus *const status = find_registry(state, id, &api, &registry);
    return status != NULL ? status : registry->write(id, api, name, buffer, buffer_num_bytes);
}
