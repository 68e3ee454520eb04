/* bundle/reader.c: random access to an asset's plaintext, one decrypted piece kept. One thread. */
#include <stdlib.h>
#include <string.h>

#include "bundle/internal.h"
#include "os/os.h"

struct oc_asset_reader {
    oc_object object;
    oc_piece_lane lane;
    oc_region plain; /* the piece kept */
    uint64_t piece;  /* its index; piece_count: none */
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
        reader->piece = reader->object.shape.piece_count;
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
        const uint64_t piece = (offset + done) / OC_PIECE_PLAIN_LEN;
        const size_t from = (size_t)((offset + done) % OC_PIECE_PLAIN_LEN);
        size_t part = oc_piece_plain_len(&reader->object.shape, piece) - from;
        part = part < len - done ? part : len - done;
        if (piece != reader->piece) {
            reader->piece = reader->object.shape.piece_count;
            st = oc_object_read_piece(&reader->object, &reader->lane, piece, reader->plain.data, err);
        }
        if (st == ORTCRYPT_OK) {
            reader->piece = piece;
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
