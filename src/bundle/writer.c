/*
 * bundle/writer.c: one asset from a sequence of pushes. In: plaintext of the caller, sealed chunk by chunk as it comes (what
 * is left over, less than a chunk, is ours to wipe). Out: an object file whose leaves were hashed on the way.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/txn.h"
#include "crypto/random.h"

struct oc_asset_writer {
    oc_txn *txn;
    oc_stream *stream;
    oc_stream_lane *lane;
    oc_file *file;
    uint8_t id[OC_ASSET_ID_LEN];
    uint64_t plain_len;  /* pushed */
    uint64_t chunk;      /* index of the next chunk */
    size_t partial_len;  /* plaintext waiting for the rest of its chunk */
    size_t sealed_len;   /* ciphertext of the piece being filled */
    uint8_t (*leaves)[OC_LEAF_LEN];
    size_t leaf_count;
    size_t leaf_cap;
    bool failed;
    uint8_t partial[OC_STREAM_CHUNK_LEN];
    uint8_t sealed[OC_PIECE_ROOM];
};

ortcrypt_status oc_txn_new_object(oc_txn *txn, uint8_t id[OC_ASSET_ID_LEN], oc_stream **stream, oc_file **file,
                                  uint8_t header[OC_STREAM_HEADER_LEN], ortcrypt_error *err)
{
    uint8_t context[OC_CONTEXT_MAX];
    const ortcrypt_bundle *const view = txn->view;
    if (txn->ended) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%s was committed already", oc_store_path(view->store));
    }
    ortcrypt_status st = oc_random(id, OC_ASSET_ID_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = oc_stream_seal_new(stream, view->key.data, oc_bundle_context(context, view, view->manifest->bundle_id, id), header, err);
    }
    return st == ORTCRYPT_OK ? oc_file_new(file, view->store, err) : st;
}

ortcrypt_status oc_asset_writer_open(oc_asset_writer **out, oc_txn *txn, ortcrypt_error *err)
{
    *out = NULL;
    oc_asset_writer *const writer = malloc(sizeof *writer);
    if (writer == NULL) {
        return oc_fail_memory(err, sizeof *writer, "writing an asset");
    }
    memset(writer, 0, offsetof(oc_asset_writer, partial));
    writer->txn = txn;
    ortcrypt_status st = oc_txn_new_object(txn, writer->id, &writer->stream, &writer->file, writer->sealed, err);
    writer->sealed_len = OC_STREAM_HEADER_LEN;
    if (st == ORTCRYPT_OK) {
        st = oc_stream_lane_new(&writer->lane, writer->stream, true, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_asset_writer_close(writer);
        return st;
    }
    *out = writer;
    return ORTCRYPT_OK;
}

static ortcrypt_status leaf_room(oc_asset_writer *writer, ortcrypt_error *err)
{
    if (writer->leaf_count < writer->leaf_cap) {
        return ORTCRYPT_OK;
    }
    const size_t cap = writer->leaf_cap == 0 ? 16 : writer->leaf_cap * 2;
    uint8_t(*const more)[OC_LEAF_LEN] = realloc(writer->leaves, cap * sizeof *more);
    if (more == NULL) {
        return oc_fail_memory(err, cap * sizeof *more, "an asset's leaves");
    }
    writer->leaves = more;
    writer->leaf_cap = cap;
    return ORTCRYPT_OK;
}

static ortcrypt_status end_piece(oc_asset_writer *writer, ortcrypt_error *err)
{
    ortcrypt_status st = leaf_room(writer, err);
    if (st == ORTCRYPT_OK) {
        st = oc_sha256(writer->leaves[writer->leaf_count], OC_SPAN(writer->sealed, writer->sealed_len), err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_file_write(writer->file, writer->sealed, writer->sealed_len, err);
    }
    writer->leaf_count += st == ORTCRYPT_OK ? 1 : 0;
    writer->sealed_len = 0;
    return st;
}

static ortcrypt_status seal(oc_asset_writer *writer, const uint8_t *plain, size_t len, bool last, ortcrypt_error *err)
{
    ortcrypt_status st =
        oc_stream_seal_chunk(writer->lane, writer->chunk, last, plain, len, writer->sealed + writer->sealed_len, err);
    if (st == ORTCRYPT_OK) {
        writer->sealed_len += len + OC_STREAM_TAG_LEN;
        writer->chunk++;
        if (last || writer->chunk % OC_PIECE_CHUNKS == 0) {
            st = end_piece(writer, err);
        }
    }
    return st;
}

/* A full chunk is never the last one, so it can be sealed at once. */
static ortcrypt_status push(oc_asset_writer *writer, const uint8_t *data, size_t len, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    while (st == ORTCRYPT_OK && len != 0) {
        size_t taken = OC_STREAM_CHUNK_LEN - writer->partial_len;
        if (writer->partial_len == 0 && len >= OC_STREAM_CHUNK_LEN) {
            st = seal(writer, data, OC_STREAM_CHUNK_LEN, false, err);
        } else {
            taken = taken < len ? taken : len;
            memcpy(writer->partial + writer->partial_len, data, taken);
            writer->partial_len += taken;
            if (writer->partial_len == OC_STREAM_CHUNK_LEN) {
                st = seal(writer, writer->partial, OC_STREAM_CHUNK_LEN, false, err);
                writer->partial_len = 0;
            }
        }
        data += taken;
        len -= taken;
        writer->plain_len += taken;
    }
    return st;
}

ortcrypt_status oc_asset_writer_push(oc_asset_writer *writer, const void *data, size_t len, ortcrypt_error *err)
{
    if (writer->failed) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "an earlier part of this asset was not written");
    }
    ortcrypt_status st = push(writer, data, len, err);
    writer->failed = st != ORTCRYPT_OK;
    return st;
}

ortcrypt_status oc_asset_writer_finish(oc_asset_writer *writer, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    oc_shape shape;
    if (writer->failed) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "an earlier part of this asset was not written");
    }
    writer->failed = true; /* finished, well or not: nothing more is accepted */
    ortcrypt_status st = seal(writer, writer->partial, writer->partial_len, true, err);
    if (st == ORTCRYPT_OK && !oc_shape_of(&shape, writer->plain_len)) {
        st = oc_fail(err, ORTCRYPT_E_LIMIT, "an asset cannot be that long");
    }
    if (st == ORTCRYPT_OK) {
        oc_file *const file = writer->file;
        writer->file = NULL;
        st = oc_txn_add_object(writer->txn, file, writer->id, &shape, &writer->leaves, err);
    }
    if (st == ORTCRYPT_OK) {
        memcpy(id, writer->id, OC_ASSET_ID_LEN);
    }
    return st;
}

void oc_asset_writer_close(oc_asset_writer *writer)
{
    if (writer != NULL) {
        oc_wipe(writer->partial, sizeof writer->partial);
        oc_stream_lane_free(writer->lane);
        oc_stream_free(writer->stream);
        oc_file_discard(writer->file);
        free(writer->leaves);
        free(writer);
    }
}
