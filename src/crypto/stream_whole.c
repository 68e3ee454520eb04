/* crypto/stream_whole.c: streams that fit in memory, from one span into a buffer. */
#include <stdlib.h>

#include "crypto/stream.h"

static ortcrypt_status seal_chunks(const oc_stream *stream, oc_span plain, uint8_t *sealed, ortcrypt_error *err)
{
    oc_stream_lane *lane = NULL;
    uint64_t count = oc_stream_chunk_count(plain.len);
    ortcrypt_status st = oc_stream_lane_new(&lane, stream, true, err);
    for (uint64_t i = 0; st == ORTCRYPT_OK && i < count; i++) {
        size_t off = (size_t)i * OC_STREAM_CHUNK_LEN;
        bool last = i + 1 == count;
        st = oc_stream_seal_chunk(lane, i, last, plain.data == NULL ? NULL : plain.data + off,
                                  last ? plain.len - off : OC_STREAM_CHUNK_LEN,
                                  sealed + (size_t)i * OC_STREAM_SEALED_CHUNK_LEN, err);
    }
    oc_stream_lane_free(lane);
    return st;
}

ortcrypt_status oc_stream_seal_all(const uint8_t key[OC_STREAM_KEY_LEN], oc_span context, oc_span plain, oc_buf *out,
                                   ortcrypt_error *err)
{
    oc_stream *stream = NULL;
    uint64_t sealed_len = 0;
    size_t len = 0;
    uint8_t *room = NULL;
    if (!oc_stream_sealed_len(plain.len, &sealed_len)) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "%zu bytes are too many for one stream", plain.len);
    }
    ortcrypt_status st = oc_len(sealed_len, SIZE_MAX, "a stream", &len, err);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_reserve(out, len, &room, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_stream_seal_new(&stream, key, context, room, err);
    }
    if (st == ORTCRYPT_OK) {
        st = seal_chunks(stream, plain, room + OC_STREAM_HEADER_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        out->len += len;
    }
    oc_stream_free(stream);
    return st;
}

static ortcrypt_status open_chunks(const oc_stream *stream, oc_span sealed, uint8_t *plain, ortcrypt_error *err)
{
    oc_stream_lane *lane = NULL;
    ortcrypt_status st = oc_stream_lane_new(&lane, stream, false, err);
    bool last = false;
    for (uint64_t i = 0; st == ORTCRYPT_OK && !last; i++) {
        size_t len = sealed.len < OC_STREAM_SEALED_CHUNK_LEN ? sealed.len : OC_STREAM_SEALED_CHUNK_LEN;
        last = len < OC_STREAM_SEALED_CHUNK_LEN;
        st = oc_stream_open_chunk(lane, i, last, sealed.data, len, plain + (size_t)i * OC_STREAM_CHUNK_LEN, err);
        sealed = OC_SPAN(sealed.data + len, sealed.len - len);
    }
    oc_stream_lane_free(lane);
    return st;
}

ortcrypt_status oc_stream_open_all(const uint8_t key[OC_STREAM_KEY_LEN], oc_span context, oc_span sealed, oc_buf *out,
                                   ortcrypt_error *err)
{
    oc_stream *stream = NULL;
    uint64_t plain_len = 0;
    uint8_t *room = NULL;
    if (!oc_stream_plain_len(sealed.len, &plain_len)) {
        return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%zu bytes are no whole stream: it was cut or lengthened", sealed.len);
    }
    ortcrypt_status st = oc_stream_open_new(&stream, key, context, sealed.data, err);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_reserve(out, (size_t)plain_len, &room, err); /* plain_len < sealed.len */
    }
    if (st == ORTCRYPT_OK) {
        st = open_chunks(stream, OC_SPAN(sealed.data + OC_STREAM_HEADER_LEN, sealed.len - OC_STREAM_HEADER_LEN), room, err);
        if (st == ORTCRYPT_OK) {
            out->len += (size_t)plain_len;
        } else {
            oc_wipe(room, (size_t)plain_len); /* chunks before the bad one were authentic, but nothing is handed over */
        }
    }
    oc_stream_free(stream);
    return st;
}
