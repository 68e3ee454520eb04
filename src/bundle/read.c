/* bundle/read.c: a whole asset into memory, its pieces decrypted by several threads straight into their place. */
#include <string.h>

#include "bundle/internal.h"
#include "os/os.h"

#define PIECES_TOGETHER 2u /* 2 MiB, a huge page of x86_64 and aarch64; memory from oc_region_new begins at one */

typedef struct read_job {
    const oc_object *object;
    oc_piece_lane lanes[OC_THREADS_MAX];
    uint8_t *dst;
    atomic_uint_fast64_t done; /* plaintext bytes */
    const ortcrypt_monitor *monitor;
} read_job;

static ortcrypt_status read_piece(read_job *job, unsigned lane, uint64_t piece, ortcrypt_error *err)
{
    const oc_shape *const shape = &job->object->shape;
    uint8_t *const plain = job->dst == NULL ? NULL : job->dst + piece * OC_PIECE_PLAIN_LEN;
    ortcrypt_status st = oc_object_read_piece(job->object, &job->lanes[lane], piece, plain, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const size_t len = oc_piece_plain_len(shape, piece);
    const uint64_t done = atomic_fetch_add(&job->done, len) + len;
    /* a monitor is called on the thread that made the call, and that is lane 0 */
    return lane == 0 ? oc_progress(job->monitor, "decrypting", done, shape->plain_len, err) : ORTCRYPT_OK;
}

/*
 * The pieces of one huge page, by one thread: two that touch a fresh one at the same time would both have it zeroed, and one of the two
 * pages thrown away.
 */
static ortcrypt_status read_pieces(void *state, unsigned lane, uint64_t item, ortcrypt_error *err)
{
    read_job *const job = state;
    const uint64_t end = job->object->shape.piece_count;
    ortcrypt_status st = ORTCRYPT_OK;
    for (uint64_t piece = item * PIECES_TOGETHER; st == ORTCRYPT_OK && piece < end && piece < (item + 1) * PIECES_TOGETHER; piece++) {
        st = read_piece(job, lane, piece, err);
    }
    return st;
}

ortcrypt_status oc_bundle_read(ortcrypt_bundle *bundle, const oc_asset *asset, void *dst, const ortcrypt_monitor *monitor,
                               ortcrypt_error *err)
{
    oc_object object;
    ortcrypt_status st = ORTCRYPT_OK;
    if (asset->size > SIZE_MAX / 2 || (dst == NULL && asset->size != 0)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "no memory was given for an asset of %llu bytes", (unsigned long long)asset->size);
    }
    st = oc_object_open(&object, bundle, asset, err);
    if (st == ORTCRYPT_OK) {
        read_job job = {.object = &object, .dst = dst, .monitor = monitor};
        atomic_init(&job.done, 0);
        st = oc_parallel(bundle->threads, (object.shape.piece_count + PIECES_TOGETHER - 1) / PIECES_TOGETHER, read_pieces, &job, err);
        for (unsigned i = 0; i < OC_THREADS_MAX; i++) {
            oc_piece_lane_free(&job.lanes[i]);
        }
        oc_object_close(&object);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_progress(monitor, "decrypting", asset->size, asset->size, err);
    }
    if (st != ORTCRYPT_OK && asset->size != 0) {
        oc_wipe(dst, (size_t)asset->size);
    }
    return st;
}
