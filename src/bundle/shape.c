/* bundle/shape.c: the layout of object files, contexts and names: numbers and hashes, no I/O but oc_object_check_name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle/internal.h"

bool oc_shape_of(oc_shape *out, uint64_t plain_len)
{
    uint64_t sealed_len = 0;
    if (!oc_stream_sealed_len(plain_len, &sealed_len) || sealed_len > INT64_MAX) {
        return false;
    }
    const uint64_t chunks = oc_stream_chunk_count(plain_len);
    *out = (oc_shape){plain_len, sealed_len, chunks, (chunks + OC_PIECE_CHUNKS - 1) / OC_PIECE_CHUNKS};
    return true;
}

uint64_t oc_piece_offset(uint64_t piece)
{
    return piece == 0 ? 0 : OC_STREAM_HEADER_LEN + piece * OC_PIECE_SEALED_LEN;
}

size_t oc_piece_len(const oc_shape *shape, uint64_t piece)
{
    const uint64_t end = piece + 1 == shape->piece_count ? shape->sealed_len : oc_piece_offset(piece + 1);
    return (size_t)(end - oc_piece_offset(piece));
}

size_t oc_piece_plain_len(const oc_shape *shape, uint64_t piece)
{
    const uint64_t left = shape->plain_len - piece * OC_PIECE_PLAIN_LEN;
    return left < OC_PIECE_PLAIN_LEN ? (size_t)left : OC_PIECE_PLAIN_LEN;
}

static oc_span context(uint8_t out[OC_CONTEXT_MAX], const char *label, size_t label_size, const uint8_t *bundle_id,
                       const uint8_t *asset_id)
{
    size_t len = label_size; /* its final NUL is the 0x00 of the format */
    memcpy(out, label, label_size);
    memcpy(out + len, bundle_id, OC_BUNDLE_ID_LEN);
    len += OC_BUNDLE_ID_LEN;
    if (asset_id != NULL) {
        memcpy(out + len, asset_id, OC_ASSET_ID_LEN);
        len += OC_ASSET_ID_LEN;
    }
    return OC_SPAN(out, len);
}

oc_span oc_manifest_context(uint8_t out[OC_CONTEXT_MAX], const uint8_t bundle_id[OC_BUNDLE_ID_LEN])
{
    return context(out, OC_MANIFEST_CONTEXT, sizeof OC_MANIFEST_CONTEXT, bundle_id, NULL);
}

oc_span oc_asset_context(uint8_t out[OC_CONTEXT_MAX], const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                         const uint8_t asset_id[OC_ASSET_ID_LEN])
{
    return context(out, OC_ASSET_CONTEXT, sizeof OC_ASSET_CONTEXT, bundle_id, asset_id);
}

oc_span oc_bundle_context(uint8_t out[OC_CONTEXT_MAX], const ortcrypt_bundle *bundle, const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                          const uint8_t *asset_id)
{
    if (bundle->local) { /* one label for both: a manifest's context has no asset id behind it */
        return context(out, OC_LOCAL_CONTEXT, sizeof OC_LOCAL_CONTEXT, bundle_id, asset_id);
    }
    return asset_id == NULL ? oc_manifest_context(out, bundle_id) : oc_asset_context(out, bundle_id, asset_id);
}

static void named(char name[OC_NAMED_SIZE], const char *folder, const char *suffix, const uint8_t *manifest_id)
{
    char hex[2 * OC_MANIFEST_ID_LEN + 1];
    oc_hex_encode(hex, manifest_id, OC_MANIFEST_ID_LEN);
    snprintf(name, OC_NAMED_SIZE, "%s/%s.%s", folder, hex, suffix);
}

void oc_key_file_name(char name[OC_NAMED_SIZE], const uint8_t manifest_id[OC_MANIFEST_ID_LEN])
{
    named(name, "keys", "age", manifest_id);
}

void oc_sig_file_name(char name[OC_NAMED_SIZE], const uint8_t manifest_id[OC_MANIFEST_ID_LEN])
{
    named(name, "sig", "sig", manifest_id);
}

ortcrypt_status oc_object_name(uint8_t out[OC_LEAF_LEN], uint64_t sealed_len, const void *leaves, size_t leaf_count,
                               ortcrypt_error *err)
{
    oc_sha256_ctx *hash = NULL;
    uint8_t length[8];
    oc_store_be64(length, sealed_len);
    ortcrypt_status st = oc_sha256_new(&hash, err);
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_update(hash, OC_SPAN(OC_OBJECT_LABEL, sizeof OC_OBJECT_LABEL), err); /* with its NUL */
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_update(hash, OC_SPAN(length, sizeof length), err);
    }
    if (st == ORTCRYPT_OK && leaf_count != 0) {
        st = oc_sha256_update(hash, OC_SPAN(leaves, leaf_count * OC_LEAF_LEN), err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_sha256_final(hash, out, err);
    }
    oc_sha256_free(hash);
    return st;
}

/* Hashes the pieces of an open object file of `size` bytes in `buffer` (OC_PIECE_ROOM bytes); their leaves make its name. */
static ortcrypt_status hash_file(int fd, uint64_t size, uint8_t *buffer, uint8_t name[OC_LEAF_LEN], const char *what,
                                 ortcrypt_error *err)
{
    oc_buf leaves = OC_BUF(SIZE_MAX / 2);
    uint8_t leaf[OC_LEAF_LEN];
    uint64_t done = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    for (uint64_t piece = 0; st == ORTCRYPT_OK && done < size; piece++) {
        const uint64_t end = oc_piece_offset(piece + 1) < size ? oc_piece_offset(piece + 1) : size;
        const size_t len = (size_t)(end - done);
        st = oc_pread_full(fd, done, buffer, len, what, err);
        if (st == ORTCRYPT_OK) {
            st = oc_sha256(leaf, OC_SPAN(buffer, len), err);
        }
        if (st == ORTCRYPT_OK) {
            st = oc_buf_append(&leaves, leaf, sizeof leaf, err);
        }
        done = end;
    }
    if (st == ORTCRYPT_OK) {
        st = oc_object_name(name, size, leaves.data, leaves.len / OC_LEAF_LEN, err);
    }
    oc_buf_free(&leaves);
    return st;
}

ortcrypt_status oc_object_check_name(const oc_store *store, const uint8_t object[OC_LEAF_LEN], ortcrypt_error *err)
{
    char path[OC_OBJECT_PATH_SIZE];
    char what[1024];
    uint8_t name[OC_LEAF_LEN];
    uint64_t size = 0;
    int fd = -1;
    oc_object_path(path, object);
    snprintf(what, sizeof what, "%s/%s", oc_store_path(store), path);
    ortcrypt_status st = oc_store_open_object(store, object, &fd, &size, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    uint8_t *const buffer = malloc(OC_PIECE_ROOM);
    st = buffer == NULL ? oc_fail_memory(err, OC_PIECE_ROOM, "an object") : hash_file(fd, size, buffer, name, what, err);
    if (st == ORTCRYPT_OK && memcmp(name, object, OC_LEAF_LEN) != 0) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s was altered: its content does not belong to its name", what);
    }
    free(buffer);
    close(fd);
    return st;
}
