/*
 * os/outside.c: the store thread and its queue. One per process, in static memory. A job lies on its caller's stack until it is done.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/outside.h"
#include "os/threads.h"

struct job {
    struct job *next;
    oc_outside_fn fn;
    void *state;
    long result;
    int cause; /* errno after fn */
    bool done;
};

static struct {
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t work;
    pthread_cond_t done;
    struct job *first;
    struct job **end;
    pthread_t thread;
    bool stop;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .end = &queue.first};

/* The process that has the store thread, 0: none. A child after fork has a copy of this memory and no such thread. */
static _Atomic pid_t owner;

static struct job *take(void)
{
    while (queue.first == NULL && !queue.stop) {
        pthread_cond_wait(&queue.work, &queue.mutex);
    }
    struct job *const job = queue.first;
    if (job != NULL) {
        queue.first = job->next;
        queue.end = queue.first == NULL ? &queue.first : queue.end;
    }
    return job;
}

static void *serve(void *unused)
{
    struct job *job;

    (void)unused;
    pthread_mutex_lock(&queue.mutex);
    while ((job = take()) != NULL) {
        pthread_mutex_unlock(&queue.mutex);
        errno = 0;
        job->result = job->fn(job->state);
        job->cause = errno;
        pthread_mutex_lock(&queue.mutex);
        job->done = true; /* from here on it is its caller's again */
        pthread_cond_broadcast(&queue.done);
    }
    pthread_mutex_unlock(&queue.mutex);
    return NULL;
}

bool oc_outside_running(void)
{
    return atomic_load(&owner) == getpid();
}

ortcrypt_status oc_outside_start(ortcrypt_error *err)
{
    int cause = 0;

    if (atomic_load(&owner) != 0 && !oc_outside_running()) {
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "a child that was forked from a process in the sandbox makes no second one");
    }
    pthread_mutex_lock(&queue.mutex);
    if (atomic_load(&owner) == 0) {
        queue.stop = false;
        cause = oc_thread_start(&queue.thread, serve, NULL);
        if (cause == 0) {
            atomic_store(&owner, getpid());
        }
    }
    pthread_mutex_unlock(&queue.mutex);
    return cause == 0 ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, cause, "the thread that writes files");
}

long oc_outside(oc_outside_fn fn, void *state)
{
    struct job job = {.fn = fn, .state = state};
    int cancel = PTHREAD_CANCEL_ENABLE;

    if (!oc_outside_running()) {
        return fn(state);
    }
    /* the host may cancel its threads, but not while the store thread has the job on our stack */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&queue.mutex);
    if (queue.stop || pthread_equal(pthread_self(), queue.thread)) {
        pthread_mutex_unlock(&queue.mutex);
        (void)pthread_setcancelstate(cancel, NULL);
        return fn(state);
    }
    *queue.end = &job;
    queue.end = &job.next;
    pthread_cond_signal(&queue.work);
    while (!job.done) {
        pthread_cond_wait(&queue.done, &queue.mutex);
    }
    pthread_mutex_unlock(&queue.mutex);
    (void)pthread_setcancelstate(cancel, NULL);
    errno = job.cause;
    return job.result;
}

struct apart {
    oc_apart_fn fn;
    void *state;
    ortcrypt_error *err;
    ortcrypt_status status;
    pthread_t thread;
};

static void *run_apart(void *state)
{
    struct apart *const apart = state;

    apart->status = apart->fn(apart->state, apart->err);
    return NULL;
}

static long start_apart(void *state)
{
    struct apart *const apart = state;

    return oc_thread_start(&apart->thread, run_apart, apart);
}

ortcrypt_status oc_outside_apart(oc_apart_fn fn, void *state, ortcrypt_error *err)
{
    struct apart apart = {.fn = fn, .state = state, .err = err, .status = ORTCRYPT_OK};
    int cancel = PTHREAD_CANCEL_ENABLE;

    if (!oc_outside_running()) {
        return fn(state, err);
    }
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const int cause = (int)oc_outside(start_apart, &apart);
    if (cause == 0) {
        (void)pthread_join(apart.thread, NULL);
    }
    (void)pthread_setcancelstate(cancel, NULL);
    return cause == 0 ? apart.status : oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, cause, "a thread that writes files");
}

/* The code of the thread goes away with the library; what is queued is done first. Nobody waits for a thread that ended itself. */
__attribute__((destructor)) static void end(void)
{
    if (!oc_outside_running()) {
        return;
    }
    pthread_mutex_lock(&queue.mutex);
    queue.stop = true;
    const pthread_t thread = queue.thread;
    pthread_cond_signal(&queue.work);
    pthread_mutex_unlock(&queue.mutex);
    if (!pthread_equal(pthread_self(), thread)) {
        (void)pthread_join(thread, NULL);
    }
    atomic_store(&owner, 0);
}
