/*
 * os/parallel.c: items 0..count-1 on a few threads.
 * The job lives on the caller's stack; every thread has ended before oc_parallel returns.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/os.h"
#include "os/threads.h"

#define THREADS_MAX 64

int oc_thread_start(pthread_t *thread, void *(*fn)(void *), void *state)
{
    /* signals that a fault raises in the thread itself stay as they are: blocking them would only hide a crash's report */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(&blocked, faults[i]);
    }
    int rc = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (rc == 0) {
        rc = pthread_create(thread, NULL, fn, state);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return rc;
}

unsigned oc_default_threads(void)
{
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > OC_DEFAULT_THREADS_MAX ? OC_DEFAULT_THREADS_MAX : (unsigned)count;
}

uint64_t oc_physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

struct job {
    pthread_mutex_t mutex; /* guards next, failed_item, status, err */
    oc_item_fn fn;
    void *state;
    uint64_t count;
    uint64_t next;
    uint64_t failed_item; /* lowest so far; items start in order, so the lowest that fails is always found */
    ortcrypt_status status;
    ortcrypt_error *err;
};

struct lane {
    struct job *job;
    unsigned number;
    pthread_t thread;
};

static bool take(struct job *job, uint64_t *item)
{
    pthread_mutex_lock(&job->mutex);
    bool there = job->status == ORTCRYPT_OK && job->next < job->count;
    if (there) {
        *item = job->next++;
    }
    pthread_mutex_unlock(&job->mutex);
    return there;
}

static void record(struct job *job, uint64_t item, ortcrypt_status status, const ortcrypt_error *err)
{
    pthread_mutex_lock(&job->mutex);
    if (job->status == ORTCRYPT_OK || item < job->failed_item) {
        job->status = status;
        job->failed_item = item;
        if (job->err != NULL) {
            *job->err = *err;
        }
    }
    pthread_mutex_unlock(&job->mutex);
}

static void *run_lane(void *state)
{
    const struct lane *lane = state;
    uint64_t item = 0;
    while (take(lane->job, &item)) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_status status = lane->job->fn(lane->job->state, lane->number, item, &err);
        if (status != ORTCRYPT_OK) {
            record(lane->job, item, status, &err);
        }
    }
    return NULL;
}

ortcrypt_status oc_parallel(unsigned threads, uint64_t count, oc_item_fn fn, void *state, ortcrypt_error *err)
{
    struct job job = {.fn = fn, .state = state, .count = count, .status = ORTCRYPT_OK, .err = err};
    struct lane lanes[THREADS_MAX];
    if (threads == 0) {
        threads = oc_default_threads();
    }
    if (threads > THREADS_MAX) {
        threads = THREADS_MAX;
    }
    if (threads > count) {
        threads = count == 0 ? 1 : (unsigned)count;
    }
    int rc = pthread_mutex_init(&job.mutex, NULL);
    if (rc != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, rc, "a lock for %u threads", threads);
    }
    lanes[0] = (struct lane){.job = &job, .number = 0};
    unsigned started = 1;
    for (; started < threads; started++) {
        lanes[started] = (struct lane){.job = &job, .number = started};
        if (oc_thread_start(&lanes[started].thread, run_lane, &lanes[started]) != 0) {
            break; /* the others do its work */
        }
    }
    (void)run_lane(&lanes[0]);
    for (unsigned i = 1; i < started; i++) {
        (void)pthread_join(lanes[i].thread, NULL);
    }
    (void)pthread_mutex_destroy(&job.mutex);
    return job.status;
}
