/*
 * bundle/stream.c: an asset in order, with other threads decrypting ahead into a window of pieces.
 *
 * One lane of oc_parallel, the caller's thread, hands pieces over; the others fill the window. A thread claims the next piece
 * when there is room for it; the caller's thread claims one itself when the one it needs next is not begun, so that nothing
 * here depends on how many threads could be started.
 */
#include <pthread.h>
#include <string.h>

#include "bundle/internal.h"
#include "os/os.h"

#define WINDOW_PER_THREAD 2u

typedef struct stream_job {
    const oc_object *object;
    oc_push_fn push;
    void *push_state;
    const ortcrypt_monitor *monitor;
    oc_piece_lane lanes[OC_THREADS_MAX];
    oc_region region; /* the window: `window` pieces of plaintext */
    unsigned window;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    uint64_t claimed; /* pieces begun, in order */
    uint64_t pushed;  /* pieces handed over */
    bool ready[OC_THREADS_MAX * WINDOW_PER_THREAD];
    bool stop; /* somebody failed; their status is what oc_parallel returns */
} stream_job;

static uint8_t *slot(const stream_job *job, uint64_t piece)
{
    return job->region.data + (size_t)(piece % job->window) * OC_PIECE_PLAIN_LEN;
}

static void stop(stream_job *job)
{
    pthread_mutex_lock(&job->mutex);
    job->stop = true;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
}

/* Decrypts the piece this thread claimed. */
static ortcrypt_status fill(stream_job *job, unsigned lane, uint64_t piece, ortcrypt_error *err)
{
    ortcrypt_status st = oc_object_read_piece(job->object, &job->lanes[lane], piece, slot(job, piece), err);
    pthread_mutex_lock(&job->mutex);
    job->ready[piece % job->window] = st == ORTCRYPT_OK;
    job->stop = job->stop || st != ORTCRYPT_OK;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    return st;
}

static bool has_room(const stream_job *job)
{
    return job->claimed < job->object->shape.piece_count && job->claimed - job->pushed < job->window;
}

/* A lane that decrypts ahead. Returns when there is nothing left to begin. */
static ortcrypt_status produce(stream_job *job, unsigned lane, ortcrypt_error *err)
{
    for (;;) {
        pthread_mutex_lock(&job->mutex);
        while (!job->stop && job->claimed < job->object->shape.piece_count && !has_room(job)) {
            pthread_cond_wait(&job->changed, &job->mutex);
        }
        const bool more = !job->stop && has_room(job);
        const uint64_t piece = more ? job->claimed++ : 0;
        pthread_mutex_unlock(&job->mutex);
        if (!more) {
            return ORTCRYPT_OK;
        }
        ortcrypt_status st = fill(job, lane, piece, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
}

/* Waits for `piece`, or claims it when nobody has: *mine. False: somebody failed. */
static bool await(stream_job *job, uint64_t piece, bool *mine)
{
    pthread_mutex_lock(&job->mutex);
    *mine = job->claimed == piece;
    job->claimed += *mine ? 1 : 0;
    while (!*mine && !job->stop && !job->ready[piece % job->window]) {
        pthread_cond_wait(&job->changed, &job->mutex);
    }
    const bool go_on = !job->stop;
    pthread_mutex_unlock(&job->mutex);
    return go_on;
}

static ortcrypt_status hand_over(stream_job *job, uint64_t piece, ortcrypt_error *err)
{
    const size_t len = oc_piece_plain_len(&job->object->shape, piece);
    ortcrypt_status st = ORTCRYPT_OK;
    if (len != 0) {
        st = job->push(job->push_state, slot(job, piece), len, err);
        oc_wipe(slot(job, piece), len);
    }
    pthread_mutex_lock(&job->mutex);
    job->ready[piece % job->window] = false;
    job->pushed++;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    if (st == ORTCRYPT_OK) {
        st = oc_progress(job->monitor, "decrypting", piece * OC_PIECE_PLAIN_LEN + len, job->object->shape.plain_len, err);
    }
    return st;
}

/* The caller's thread: every piece in order. */
static ortcrypt_status consume(stream_job *job, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    while (st == ORTCRYPT_OK && job->pushed < job->object->shape.piece_count) {
        const uint64_t piece = job->pushed; /* only this thread changes it */
        bool mine = false;
        if (!await(job, piece, &mine)) {
            return ORTCRYPT_OK;
        }
        if (mine) {
            st = fill(job, 0, piece, err);
        }
        if (st == ORTCRYPT_OK) {
            st = hand_over(job, piece, err);
        }
    }
    if (st != ORTCRYPT_OK) {
        stop(job);
    }
    return st;
}

static ortcrypt_status run_lane(void *state, unsigned lane, uint64_t item, ortcrypt_error *err)
{
    (void)item;
    return lane == 0 ? consume(state, err) : produce(state, lane, err);
}

static ortcrypt_status run(stream_job *job, unsigned threads, ortcrypt_error *err)
{
    if (pthread_mutex_init(&job->mutex, NULL) != 0) {
        return oc_fail_memory(err, sizeof job->mutex, "a lock");
    }
    if (pthread_cond_init(&job->changed, NULL) != 0) {
        pthread_mutex_destroy(&job->mutex);
        return oc_fail_memory(err, sizeof job->changed, "a lock");
    }
    ortcrypt_status st = oc_parallel(threads, threads, run_lane, job, err);
    if (st == ORTCRYPT_OK) {
        st = consume(job, err); /* the other lanes may have taken every item before this thread got one */
    }
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->mutex);
    return st;
}

ortcrypt_status oc_bundle_stream(ortcrypt_bundle *bundle, const oc_asset *asset, oc_push_fn push, void *push_state,
                                 const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    oc_object object;
    ortcrypt_status st = oc_object_open(&object, bundle, asset, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const uint64_t pieces = object.shape.piece_count;
    const unsigned threads = bundle->threads < pieces ? bundle->threads : (unsigned)pieces;
    stream_job job = {.object = &object, .push = push, .push_state = push_state, .monitor = monitor};
    job.window = threads * WINDOW_PER_THREAD < pieces ? threads * WINDOW_PER_THREAD : (unsigned)pieces;
    st = oc_region_new(&job.region, (size_t)job.window * OC_PIECE_PLAIN_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = run(&job, threads, err);
    }
    for (unsigned i = 0; i < OC_THREADS_MAX; i++) {
        oc_piece_lane_free(&job.lanes[i]);
    }
    oc_region_free(&job.region); /* wipes what was decrypted ahead and not handed over */
    oc_object_close(&object);
    return st;
}
