/*
 * bundle/reader.c: random access to an asset's plaintext, the bytes decrypted last kept, up to a piece of them. One thread. What reads a
 * model's headers jumps over its weights, so no more is decrypted than was asked for, until a read goes on where the last one ended.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/internal.h"
#include "os/os.h"

#define ONWARD_CHUNKS 16u /* decrypted at once by a reader that goes on: they fit the cache of a core with their ciphertext */

struct oc_asset_reader {
    oc_object object;
    oc_piece_lane lane;
    oc_region plain; /* what is kept: a piece of room */
    uint64_t off;    /* of its first byte in the asset */
    size_t len;      /* its bytes; 0: none */
};

ortcrypt_status oc_asset_reader_open(oc_asset_reader **out, ortcrypt_bundle *bundle, const oc_asset *asset,
                                     ortcrypt_error *err)
{
    oc_asset_reader *const reader = calloc(1, sizeof *reader);
    *out = NULL;
    if (reader == NULL) {
        return oc_fail_memory(err, sizeof *reader, "reading an asset");
    }
    ortcrypt_status st = oc_object_open(&reader->object, bundle, asset, err);
    if (st == ORTCRYPT_OK) {
        st = oc_region_new(&reader->plain, OC_PIECE_PLAIN_LEN, err);
        if (st != ORTCRYPT_OK) {
            oc_object_close(&reader->object);
        }
    }
    if (st != ORTCRYPT_OK) {
        free(reader);
        return st;
    }
    *out = reader;
    return ORTCRYPT_OK;
}

/* Makes the byte at `offset` one that is kept, and up to `wanted` bytes from there. A piece whose hash is checked is taken whole. */
static ortcrypt_status fetch(oc_asset_reader *reader, uint64_t offset, size_t wanted, ortcrypt_error *err)
{
    const bool whole = atomic_load(reader->object.check_leaves);
    const bool onward = reader->len != 0 && offset == reader->off + reader->len;
    const uint64_t first = whole ? offset / OC_PIECE_PLAIN_LEN * OC_PIECE_CHUNKS : offset / OC_STREAM_CHUNK_LEN;
    const uint64_t from = first * OC_STREAM_CHUNK_LEN;
    uint64_t count = OC_PIECE_CHUNKS - first % OC_PIECE_CHUNKS; /* of one piece, whose hash may begin to count meanwhile */

    if (!whole && wanted < OC_PIECE_PLAIN_LEN) {
        const uint64_t asked = (offset - from + wanted + OC_STREAM_CHUNK_LEN - 1) / OC_STREAM_CHUNK_LEN;
        const uint64_t least = onward && asked < ONWARD_CHUNKS ? ONWARD_CHUNKS : asked;
        count = least < count ? least : count;
    }
    reader->len = 0;
    const ortcrypt_status st = oc_object_read_chunks(&reader->object, &reader->lane, first, count, reader->plain.data, err);
    if (st == ORTCRYPT_OK) {
        const uint64_t left = reader->object.shape.plain_len - from;
        reader->off = from;
        reader->len = (size_t)(left < count * OC_STREAM_CHUNK_LEN ? left : count * OC_STREAM_CHUNK_LEN);
    }
    return st;
}

static ortcrypt_status reader_read(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    oc_asset_reader *const reader = state;
    const uint64_t size = reader->object.shape.plain_len;
    uint8_t *const to = buffer;
    size_t done = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    if (offset > size || len > size - offset) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "bytes %llu to %llu were asked for of an asset of %llu bytes", (unsigned long long)offset,
                       (unsigned long long)offset + len, (unsigned long long)size);
    }
    while (st == ORTCRYPT_OK && done < len) {
        const uint64_t at = offset + done;
        if (reader->len == 0 || at < reader->off || at - reader->off >= reader->len) {
            st = fetch(reader, at, len - done, err);
        }
        if (st == ORTCRYPT_OK) {
            const size_t from = (size_t)(at - reader->off);
            const size_t part = reader->len - from < len - done ? reader->len - from : len - done;
            memcpy(to + done, reader->plain.data + from, part);
            done += part;
        }
    }
    if (st != ORTCRYPT_OK) {
        oc_wipe(to, done);
    }
    return st;
}

oc_source oc_asset_reader_source(oc_asset_reader *reader)
{
    return (oc_source){reader_read, reader, reader->object.shape.plain_len};
}

void oc_asset_reader_close(oc_asset_reader *reader)
{
    if (reader != NULL) {
        oc_piece_lane_free(&reader->lane);
        oc_region_free(&reader->plain);
        oc_object_close(&reader->object);
        free(reader);
    }
}
