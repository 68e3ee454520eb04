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
        const uint64_t offset = OC_STREAM_HEADER_LEN + index * OC_STREAM_SEALED_CHUNK_LEN;
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
    const uint64_t offset = OC_STREAM_HEADER_LEN + index * OC_STREAM_SEALED_CHUNK_LEN;
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
    out->check_leaves = atomic_load(&bundle->check_leaves);
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

ortcrypt_status oc_object_read_piece(const oc_object *object, oc_piece_lane *lane, uint64_t piece, uint8_t *plain,
                                     ortcrypt_error *err)
{
    const size_t len = oc_piece_len(&object->shape, piece);
    const size_t plain_len = oc_piece_plain_len(&object->shape, piece);
    const uint64_t offset = oc_piece_offset(piece);
    size_t from = piece == 0 ? OC_STREAM_HEADER_LEN : 0;
    uint8_t nothing; /* the address of an empty last chunk when plain is NULL */
    ortcrypt_status st = lane_ready(object, lane, err);
    if (st == ORTCRYPT_OK) {
        st = oc_pread_full(object->fd, offset, lane->sealed, len, object->what, err);
    }
    if (st == ORTCRYPT_OK && object->check_leaves) {
        st = check_leaf(object, piece, OC_SPAN(lane->sealed, len), err);
    }
    if (st == ORTCRYPT_OK && piece == 0 && memcmp(lane->sealed, object->header, OC_STREAM_HEADER_LEN) != 0) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was changed while it was read", object->what);
    }
    if (st != ORTCRYPT_OK) {
        return oc_object_fail(object, st, offset, err);
    }
    for (uint64_t chunk = piece * OC_PIECE_CHUNKS; st == ORTCRYPT_OK && from < len; chunk++) {
        const size_t done = (size_t)(chunk % OC_PIECE_CHUNKS) * OC_STREAM_CHUNK_LEN;
        const size_t sealed_len = len - from < OC_STREAM_SEALED_CHUNK_LEN ? len - from : OC_STREAM_SEALED_CHUNK_LEN;
        st = open_chunk(object, lane->stream, chunk, lane->sealed + from, sealed_len, done < plain_len ? plain + done : &nothing, err);
        from += sealed_len;
    }
    if (st != ORTCRYPT_OK && plain_len != 0) {
        oc_wipe(plain, plain_len);
    }
    return st == ORTCRYPT_OK ? st : oc_object_fail(object, st, err == NULL ? ORTCRYPT_NO_OFFSET : err->offset, err);
}
