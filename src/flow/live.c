/*
 * States of callbacks, by address. An entry outlives its state: it has the OrtApi that an error is made with. There are never more
 * entries than there were states at one time, or different addresses of them.
 */
#include <pthread.h>
#include <stdlib.h>

#include "flow/live.h"

typedef struct entry {
    const void *state;
    const OrtApi *api; /* functions of a runtime's library, which is never unloaded */
    oc_live_kind kind;
    bool open;
    size_t running; /* callbacks */
    struct entry *next;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held around a callback */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static entry *entries;

static entry *find(const void *state)
{
    entry *found = entries;

    while (found != NULL && found->state != state) {
        found = found->next;
    }
    return found;
}

ortcrypt_status oc_live_begin(const void *state, oc_live_kind kind, const OrtApi *api, ortcrypt_error *err)
{
    (void)pthread_mutex_lock(&lock);
    entry *at = find(state);
    if (at == NULL) {
        at = calloc(1, sizeof(*at));
        if (at != NULL) {
            at->state = state;
            at->next = entries;
            entries = at;
        }
    }
    if (at != NULL) {
        at->api = api;
        at->kind = kind;
        at->open = true;
    }
    (void)pthread_mutex_unlock(&lock);
    return at != NULL ? ORTCRYPT_OK : oc_fail_memory(err, sizeof(*at), "the state of callbacks");
}

void oc_live_end(const void *state)
{
    (void)pthread_mutex_lock(&lock);
    entry *const at = state != NULL ? find(state) : NULL;
    if (at != NULL) {
        at->open = false;
        while (at->running != 0) {
            (void)pthread_cond_wait(&idle, &lock);
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

OrtStatus *oc_live_enter(const void *state, oc_live_kind kind)
{
    (void)pthread_mutex_lock(&lock);
    entry *const at = find(state);
    const bool open = at != NULL && at->open && at->kind == kind;
    const entry *const any = at != NULL ? at : entries;
    const OrtApi *const api = any != NULL ? any->api : NULL;
    if (open) {
        at->running++;
    }
    (void)pthread_mutex_unlock(&lock);
    if (open || api == NULL) { /* no api: nothing was ever open, so nobody can have called with one of ours */
        return NULL;
    }
    return api->CreateStatus(ORT_FAIL, kind == OC_LIVE_INPUTS
                                           ? "the EPContext data is not there any more: the inputs or the session it belongs to was closed"
                                           : "the compiled variant is not there any more: the output it belongs to was closed");
}

void oc_live_leave(const void *state)
{
    (void)pthread_mutex_lock(&lock);
    entry *const at = find(state);
    if (at != NULL && --at->running == 0) {
        (void)pthread_cond_broadcast(&idle);
    }
    (void)pthread_mutex_unlock(&lock);
}
