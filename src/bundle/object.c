/*
 * bundle/object.c: one asset's object file, open for reading, and decrypting one piece of it.
 * In: ciphertext by pread into the lane's own memory (never a mapping: GCM reads it twice, and another process could change it
 * in between). Out: authenticated plaintext in the caller's memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle/internal.h"
#include "os/os.h"

ortcrypt_status oc_object_fail(const oc_object *object, ortcrypt_status status, uint64_t offset, ortcrypt_error *err)
{
    oc_at(err, offset, object->id);
    return status;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* In the file. The last chunk is shorter than others, so only its beginning is known by this. */
static uint64_t chunk_offset(uint64_t chunk) { return OC_STREAM_HEADER_LEN + chunk * OC_STREAM_SEALED_CHUNK_LEN; }

static ortcrypt_status check_size(const oc_object *object, uint64_t size, ortcrypt_error *err)
{
    if (size == object->shape.sealed_len) {
        return ORTCRYPT_OK;
    }
    return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is %llu bytes long, not %llu: it was %s", object->what,
                   (unsigned long long)size, (unsigned long long)object->shape.sealed_len,
                   size < object->shape.sealed_len ? "cut" : "lengthened");
}

static ortcrypt_status check_header(oc_object *object, const ortcrypt_bundle *bundle, ortcrypt_error *err)
{
    uint8_t context[OC_CONTEXT_MAX];
    ortcrypt_status st = oc_pread_full(object->fd, 0, object->header, sizeof object->header, object->what, err);
    if (st == ORTCRYPT_OK) {
        st = oc_stream_open_new(&object->stream, bundle->key.data,
                                oc_bundle_context(context, bundle, bundle->manifest->bundle_id, object->asset.id), object->header, err);
        if (st == ORTCRYPT_E_NOT_AUTHENTIC) {
            st = oc_fail(err, st, "%s was altered, or belongs to another asset or bundle: its header is not authentic", object->what);
        }
    }
    return st;
}

static ortcrypt_status open_chunk(const oc_object *object, oc_stream_lane *lane, uint64_t index, const uint8_t *sealed,
                                  size_t sealed_len, uint8_t *plain, ortcrypt_error *err)
{
    const bool last = index + 1 == object->shape.chunk_count;
    ortcrypt_status st = oc_stream_open_chunk(lane, index, last, sealed, sealed_len, plain, err);
    if (st == ORTCRYPT_E_NOT_AUTHENTIC) {
        const uint64_t offset = chunk_offset(index);
        st = oc_fail(err, st, "%s was altered: its chunk %llu, at byte %llu, is not authentic", object->what,
                     (unsigned long long)index, (unsigned long long)offset);
        oc_at(err, offset, object->id);
    }
    return st;
}

/* The last chunk before all others: a file whose end is not authentic is refused before a byte of it is used. */
static ortcrypt_status check_end(const oc_object *object, ortcrypt_error *err)
{
    uint8_t chunk[OC_STREAM_SEALED_CHUNK_LEN];
    oc_stream_lane *lane = NULL;
    const uint64_t index = object->shape.chunk_count - 1;
    const uint64_t offset = chunk_offset(index);
    const size_t len = (size_t)(object->shape.sealed_len - offset);
    ortcrypt_status st = oc_pread_full(object->fd, offset, chunk, len, object->what, err);
    if (st == ORTCRYPT_OK) {
        st = oc_stream_lane_new(&lane, object->stream, false, err);
    }
    if (st == ORTCRYPT_OK) {
        st = open_chunk(object, lane, index, chunk, len, chunk, err);
    }
    oc_wipe(chunk, sizeof chunk);
    oc_stream_lane_free(lane);
    return st;
}

ortcrypt_status oc_object_open(oc_object *out, const ortcrypt_bundle *bundle, const oc_asset *asset, ortcrypt_error *err)
{
    char path[OC_OBJECT_PATH_SIZE];
    uint64_t size = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    memset(out, 0, sizeof *out);
    out->asset = *asset;
    out->fd = -1;
    out->check_leaves = &bundle->check_leaves;
    oc_hex_encode(out->id, asset->id, OC_ASSET_ID_LEN);
    oc_object_path(path, asset->object);
    snprintf(out->what, sizeof out->what, "%s/%s", oc_store_path(bundle->store), path);
    if (asset->size > bundle->max_asset_len) {
        st = oc_fail(err, ORTCRYPT_E_LIMIT, "the asset %s is %llu bytes long; the limit is %llu", out->id,
                     (unsigned long long)asset->size, (unsigned long long)bundle->max_asset_len);
        oc_hint(err, "raise max_asset_len if this size is right");
    } else if (!oc_shape_of(&out->shape, asset->size) || out->shape.piece_count != asset->piece_count) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "size and pieces of the asset %s do not fit together", out->id);
    } else {
        st = oc_store_open_object(bundle->store, asset->object, &out->fd, &size, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_size(out, size, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_header(out, bundle, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_end(out, err);
    }
    if (st != ORTCRYPT_OK) {
        (void)oc_object_fail(out, st, err == NULL ? ORTCRYPT_NO_OFFSET : err->offset, err);
        oc_object_close(out);
    }
    return st;
}

void oc_object_close(oc_object *object)
{
    oc_stream_free(object->stream);
    object->stream = NULL;
    if (object->fd >= 0) {
        close(object->fd);
        object->fd = -1;
    }
}

void oc_piece_lane_free(oc_piece_lane *lane)
{
    oc_stream_lane_free(lane->stream);
    oc_region_free(&lane->room);
    *lane = (oc_piece_lane){.stream = NULL};
}

static ortcrypt_status lane_ready(const oc_object *object, oc_piece_lane *lane, ortcrypt_error *err)
{
    if (lane->sealed == NULL) {
        /* a mapping, because glibc keeps what malloc gave: freed once, such a block makes it keep all that are no larger */
        const ortcrypt_status st = oc_region_new(&lane->room, OC_PIECE_ROOM, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
        lane->sealed = lane->room.data;
    }
    return lane->stream != NULL ? ORTCRYPT_OK : oc_stream_lane_new(&lane->stream, object->stream, false, err);
}

static ortcrypt_status check_leaf(const oc_object *object, uint64_t piece, oc_span sealed, ortcrypt_error *err)
{
    uint8_t leaf[OC_LEAF_LEN];
    ortcrypt_status st = oc_sha256(leaf, sealed, err);
    if (st == ORTCRYPT_OK && memcmp(leaf, object->asset.pieces[piece], OC_LEAF_LEN) != 0) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was altered: its piece %llu, at byte %llu, is not the one in the manifest",
                     object->what, (unsigned long long)piece, (unsigned long long)oc_piece_offset(piece));
    }
    return st;
}

/* Chunks first to end - 1 of one piece, read into lane->sealed, where *at is their beginning. A leaf is the hash of a whole piece. */
static ortcrypt_status read_sealed(const oc_object *object, oc_piece_lane *lane, uint64_t first, uint64_t end, size_t *at,
                                   ortcrypt_error *err)
{
    const uint64_t piece = first / OC_PIECE_CHUNKS;
    const bool check_leaves = atomic_load(object->check_leaves);
    uint64_t from = first == 0 ? 0 : chunk_offset(first);
    uint64_t to = end == object->shape.chunk_count ? object->shape.sealed_len : chunk_offset(end);

    if (check_leaves) {
        from = oc_piece_offset(piece);
        to = from + oc_piece_len(&object->shape, piece);
    }
    ortcrypt_status st = oc_pread_full(object->fd, from, lane->sealed, (size_t)(to - from), object->what, err);
    if (st == ORTCRYPT_OK && check_leaves) {
        st = check_leaf(object, piece, OC_SPAN(lane->sealed, (size_t)(to - from)), err);
    }
    if (st == ORTCRYPT_OK && from == 0 && memcmp(lane->sealed, object->header, OC_STREAM_HEADER_LEN) != 0) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was changed while it was read", object->what);
    }
    *at = (size_t)(chunk_offset(first) - from);
    return st == ORTCRYPT_OK ? st : oc_object_fail(object, st, oc_piece_offset(piece), err);
}

static uint64_t chunk_plain_len(const oc_object *object, uint64_t chunk)
{
    return least(object->shape.plain_len - chunk * OC_STREAM_CHUNK_LEN, OC_STREAM_CHUNK_LEN);
}

ortcrypt_status oc_object_read_chunks(const oc_object *object, oc_piece_lane *lane, uint64_t first, uint64_t count, uint8_t *plain,
                                      ortcrypt_error *err)
{
    const uint64_t end = least(object->shape.chunk_count, first + count);
    uint8_t nothing; /* the address of an empty last chunk when plain is NULL */
    size_t at = 0;
    size_t done = 0;
    ortcrypt_status st = lane_ready(object, lane, err);

    if (st == ORTCRYPT_OK) {
        st = read_sealed(object, lane, first, end, &at, err);
    }
    for (uint64_t chunk = first; st == ORTCRYPT_OK && chunk < end; chunk++) {
        const size_t len = (size_t)chunk_plain_len(object, chunk);
        st = open_chunk(object, lane->stream, chunk, lane->sealed + at, len + OC_STREAM_TAG_LEN, len != 0 ? plain + done : &nothing, err);
        at += len + OC_STREAM_TAG_LEN;
        done += st == ORTCRYPT_OK ? len : 0;
    }
    if (st != ORTCRYPT_OK && done != 0) {
        oc_wipe(plain, done);
    }
    return st == ORTCRYPT_OK ? st : oc_object_fail(object, st, err == NULL ? ORTCRYPT_NO_OFFSET : err->offset, err);
}

ortcrypt_status oc_object_read_piece(const oc_object *object, oc_piece_lane *lane, uint64_t piece, uint8_t *plain, ortcrypt_error *err)
{
    return oc_object_read_chunks(object, lane, piece * OC_PIECE_CHUNKS, OC_PIECE_CHUNKS, plain, err);
}
