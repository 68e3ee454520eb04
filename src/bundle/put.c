/*
 * bundle/put.c: whole assets into a transaction, pieces encrypted and hashed by several threads.
 * In: a source that knows its length, read by one thread at a time. Out: an object file written piece by piece at its place.
 * Memory: 2 MiB for each thread.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/txn.h"
#include "os/os.h"

#define PARALLEL_FROM (4u * OC_PIECE_PLAIN_LEN) /* bytes from which threads pay */

typedef struct put_lane {
    oc_stream_lane *stream;
    oc_region plain;
    uint8_t *sealed;
} put_lane;

typedef struct put_job {
    const oc_source *source;
    const char *step;
    const ortcrypt_monitor *monitor;
    oc_stream *stream;
    oc_file *file;
    oc_shape shape;
    uint8_t header[OC_STREAM_HEADER_LEN];
    uint8_t (*leaves)[OC_LEAF_LEN];
    put_lane lanes[OC_THREADS_MAX];
    pthread_mutex_t reading;   /* the source is read by one thread at a time */
    atomic_uint_fast64_t done; /* plaintext bytes */
} put_job;

static ortcrypt_status lane_ready(const put_job *job, put_lane *lane, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    if (lane->plain.data == NULL) {
        st = oc_region_new(&lane->plain, OC_PIECE_PLAIN_LEN, err);
    }
    if (st == ORTCRYPT_OK && lane->sealed == NULL) {
        lane->sealed = malloc(OC_PIECE_ROOM);
        st = lane->sealed == NULL ? oc_fail_memory(err, OC_PIECE_ROOM, "encrypting") : ORTCRYPT_OK;
    }
    if (st == ORTCRYPT_OK && lane->stream == NULL) {
        st = oc_stream_lane_new(&lane->stream, job->stream, true, err);
    }
    return st;
}

static void lane_free(put_lane *lane)
{
    oc_stream_lane_free(lane->stream);
    oc_region_free(&lane->plain);
    free(lane->sealed);
}

static ortcrypt_status seal_piece(put_job *job, put_lane *lane, uint64_t piece, size_t *sealed_len, ortcrypt_error *err)
{
    const size_t plain_len = oc_piece_plain_len(&job->shape, piece);
    const uint64_t first = piece * OC_PIECE_CHUNKS;
    size_t from = 0;
    size_t to = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    if (piece == 0) {
        memcpy(lane->sealed, job->header, sizeof job->header);
        to = sizeof job->header;
    }
    for (uint64_t chunk = first; st == ORTCRYPT_OK && chunk < first + OC_PIECE_CHUNKS && chunk < job->shape.chunk_count; chunk++) {
        const bool last = chunk + 1 == job->shape.chunk_count;
        const size_t len = last ? plain_len - from : OC_STREAM_CHUNK_LEN;
        st = oc_stream_seal_chunk(lane->stream, chunk, last, lane->plain.data + from, len, lane->sealed + to, err);
        from += len;
        to += len + OC_STREAM_TAG_LEN;
    }
    *sealed_len = to;
    return st;
}

static ortcrypt_status put_piece(void *state, unsigned lane_index, uint64_t piece, ortcrypt_error *err)
{
    put_job *const job = state;
    put_lane *const lane = &job->lanes[lane_index];
    const size_t plain_len = oc_piece_plain_len(&job->shape, piece);
    size_t sealed_len = 0;
    ortcrypt_status st = lane_ready(job, lane, err);
    if (st == ORTCRYPT_OK && plain_len != 0) {
        pthread_mutex_lock(&job->reading);
        st = job->source->read(job->source->state, piece * OC_PIECE_PLAIN_LEN, lane->plain.data, plain_len, err);
        pthread_mutex_unlock(&job->reading);
    }
    if (st == ORTCRYPT_OK) {
        st = seal_piece(job, lane, piece, &sealed_len, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256(job->leaves[piece], OC_SPAN(lane->sealed, sealed_len), err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_file_write_at(job->file, oc_piece_offset(piece), lane->sealed, sealed_len, err);
    }
    if (st == ORTCRYPT_OK) {
        const uint64_t done = atomic_fetch_add(&job->done, plain_len) + plain_len;
        if (lane_index == 0) { /* the calling thread */
            st = oc_progress(job->monitor, job->step, done, job->shape.plain_len, err);
        }
    }
    return st;
}

static ortcrypt_status prepare(put_job *job, oc_txn *txn, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    if (!oc_shape_of(&job->shape, job->source->size) || job->shape.piece_count > SIZE_MAX / 2 / OC_LEAF_LEN) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "an asset of %llu bytes cannot be written", (unsigned long long)job->source->size);
    }
    job->leaves = calloc((size_t)job->shape.piece_count, sizeof *job->leaves);
    if (job->leaves == NULL) {
        return oc_fail_memory(err, job->shape.piece_count * sizeof *job->leaves, "an asset's leaves");
    }
    return oc_txn_new_object(txn, id, &job->stream, &job->file, job->header, err);
}

static ortcrypt_status put(oc_txn *txn, const oc_source *source, unsigned threads, const char *step,
                           const ortcrypt_monitor *monitor, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    uint8_t fresh[OC_ASSET_ID_LEN];
    put_job job = {.source = source, .step = step, .monitor = monitor};
    atomic_init(&job.done, 0);
    if (pthread_mutex_init(&job.reading, NULL) != 0) {
        return oc_fail_memory(err, sizeof job.reading, "a lock");
    }
    ortcrypt_status st = prepare(&job, txn, fresh, err);
    if (st == ORTCRYPT_OK) {
        st = oc_parallel(threads, job.shape.piece_count, put_piece, &job, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_progress(monitor, step, job.shape.plain_len, job.shape.plain_len, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_file *const file = job.file;
        job.file = NULL;
        st = oc_txn_add_object(txn, file, fresh, &job.shape, &job.leaves, err);
    }
    if (st == ORTCRYPT_OK) {
        memcpy(id, fresh, sizeof fresh);
    }
    for (unsigned i = 0; i < OC_THREADS_MAX; i++) {
        lane_free(&job.lanes[i]);
    }
    oc_file_discard(job.file);
    oc_stream_free(job.stream);
    free(job.leaves);
    pthread_mutex_destroy(&job.reading);
    return st;
}

ortcrypt_status oc_txn_put_source(oc_txn *txn, const oc_source *source, const char *step, const ortcrypt_monitor *monitor,
                                  uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    return put(txn, source, source->size < PARALLEL_FROM ? 1 : txn->threads, step, monitor, id, err);
}

ortcrypt_status oc_txn_put(oc_txn *txn, oc_span data, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    const oc_source source = oc_source_memory(&data);
    return oc_txn_put_source(txn, &source, "encrypting", NULL, id, err);
}
