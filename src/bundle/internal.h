/*
 * bundle/internal.h: what the files of src/bundle share: the open bundle, the shape of object files, reading one piece.
 * Nobody outside this folder includes it. Format: docs/format.md, sections 3, 5 and 6.
 */
#ifndef OC_BUNDLE_INTERNAL_H
#define OC_BUNDLE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/secret.h"
#include "bundle/bundle.h"
#include "bundle/keyring.h"
#include "crypto/hash.h"
#include "crypto/stream.h"
#include "os/os.h"
#include "store/store.h"

#define OC_THREADS_MAX 64u /* lanes one call uses at most */
#define OC_PIECE_ROOM (OC_STREAM_HEADER_LEN + OC_PIECE_SEALED_LEN) /* bytes of the longest piece, the first */
#define OC_MANIFEST_ID_LEN 32 /* M */

struct ortcrypt_bundle {
    oc_store *store;       /* owned */
    oc_secret key;         /* the bundle key */
    oc_manifest *manifest; /* owned */
    uint8_t manifest_id[OC_MANIFEST_ID_LEN]; /* M; zero in a bundle that was never published */
    oc_buf key_file;       /* bytes of keys/<M>.age: every commit writes them again under the new M */
    char *recipients;      /* the key file's recipient lines */
    uint64_t max_asset_len;
    unsigned threads;      /* 1 to OC_THREADS_MAX */
    bool local;            /* a cache of this machine: contexts and key of docs/format.md, section 11, and no key file */
    atomic_bool check_leaves; /* a pin or a signature counts: a tag alone is not enough */
    atomic_int holds;
    pthread_mutex_t share_lock; /* guards `shared` and what it lists */
    oc_shared_asset *shared;
};

/* What ortcrypt_open_options say, checked. */
typedef struct oc_open_params {
    uint64_t max_asset_len;
    unsigned threads;
    bool has_id;
    uint8_t bundle_id[OC_BUNDLE_ID_LEN];
    bool has_pin;
    uint8_t pin[OC_MANIFEST_ID_LEN];
    uint64_t min_sequence;
    const ortcrypt_monitor *monitor;
} oc_open_params;

/* `options` may be NULL. ORTCRYPT_E_INVALID for text that is no id or pin. */
ortcrypt_status oc_open_params_read(oc_open_params *out, const ortcrypt_open_options *options, ortcrypt_error *err);

/* Key file, manifest and demands checked. Takes *store over and nulls it on success. */
ortcrypt_status oc_bundle_open_store(ortcrypt_bundle **out, oc_store **store, const ortcrypt_keyring *keyring,
                                     const oc_open_params *params, ortcrypt_error *err);

/* Parts of it. The manifest's bytes, whose hash becomes M; then, the key being there, its content, compared with `params`. */
ortcrypt_status oc_bundle_read_manifest(ortcrypt_bundle *bundle, oc_buf *sealed, ortcrypt_error *err);
ortcrypt_status oc_bundle_open_manifest(ortcrypt_bundle *bundle, oc_span sealed, const oc_open_params *params,
                                        const uint8_t bundle_id[OC_BUNDLE_ID_LEN], ortcrypt_error *err);

/* An empty bundle object around `store` (taken over, nulled) for a new bundle; key and manifest are the caller's to fill. */
ortcrypt_status oc_bundle_new(ortcrypt_bundle **out, oc_store **store, const oc_open_params *params, ortcrypt_error *err);

/* Frees whatever the holds say. NULL is allowed. */
void oc_bundle_free(ortcrypt_bundle *bundle);

/* From now on no piece is decrypted whose leaf does not match (a pin was given, or a signature verified). What was decrypted before stays. */
void oc_bundle_require_leaves(ortcrypt_bundle *bundle);

/* Contexts of the streams. Written to `out`; the span lies in it. */
#define OC_CONTEXT_MAX 64
oc_span oc_manifest_context(uint8_t out[OC_CONTEXT_MAX], const uint8_t bundle_id[OC_BUNDLE_ID_LEN]);
oc_span oc_asset_context(uint8_t out[OC_CONTEXT_MAX], const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                         const uint8_t asset_id[OC_ASSET_ID_LEN]);

/* That of the manifest (asset_id NULL) or of an asset in this bundle, which may be a local one. */
oc_span oc_bundle_context(uint8_t out[OC_CONTEXT_MAX], const ortcrypt_bundle *bundle, const uint8_t bundle_id[OC_BUNDLE_ID_LEN],
                          const uint8_t *asset_id);

/* "keys/<M>.age" or "sig/<M>.sig". */
#define OC_NAMED_SIZE 80
void oc_key_file_name(char name[OC_NAMED_SIZE], const uint8_t manifest_id[OC_MANIFEST_ID_LEN]);
void oc_sig_file_name(char name[OC_NAMED_SIZE], const uint8_t manifest_id[OC_MANIFEST_ID_LEN]);

/* The shape of an object file: from the plaintext's length alone. */
typedef struct oc_shape {
    uint64_t plain_len;
    uint64_t sealed_len;  /* of the file */
    uint64_t chunk_count; /* at least 1; the last is shorter than the others */
    uint64_t piece_count;
} oc_shape;

bool oc_shape_of(oc_shape *out, uint64_t plain_len); /* false: no file can be that long */
uint64_t oc_piece_offset(uint64_t piece);            /* in the file; piece 0 begins with the header */
size_t oc_piece_len(const oc_shape *shape, uint64_t piece);
size_t oc_piece_plain_len(const oc_shape *shape, uint64_t piece);

/* SHA-256("ortcrypt/1 object", 0x00, file length, leaves): the name of an object file of sealed_len bytes; leaf_count x 32 bytes. */
ortcrypt_status oc_object_name(uint8_t out[OC_LEAF_LEN], uint64_t sealed_len, const void *leaves, size_t leaf_count,
                               ortcrypt_error *err);

/* Reads an object file whole and compares it with its name, without a key: ORTCRYPT_E_NOT_AUTHENTIC, ORTCRYPT_E_IO. */
ortcrypt_status oc_object_check_name(const oc_store *store, const uint8_t object[OC_LEAF_LEN], ortcrypt_error *err);

/* An asset open for reading: length, header and last chunk are checked. Read-only afterwards: any number of lanes. */
typedef struct oc_object {
    oc_asset asset; /* a copy: the manifest's list moves while assets are added; its leaves stay where they are */
    oc_shape shape;
    oc_stream *stream;
    int fd;
    const atomic_bool *check_leaves; /* the bundle's: it may become true while the object is open */
    uint8_t header[OC_STREAM_HEADER_LEN];
    char id[2 * OC_ASSET_ID_LEN + 1];
    char what[1024]; /* path of the file, for sentences */
} oc_object;

/* What one thread needs to decrypt pieces: about 1 MiB. {0} is a valid unused one. */
typedef struct oc_piece_lane {
    oc_stream_lane *stream;
    uint8_t *sealed; /* OC_PIECE_ROOM bytes of private memory: ciphertext is never read twice from where others can write */
    oc_region room;  /* which it is in */
} oc_piece_lane;

ortcrypt_status oc_object_open(oc_object *out, const ortcrypt_bundle *bundle, const oc_asset *asset, ortcrypt_error *err);
void oc_object_close(oc_object *object);

/*
 * Decrypts piece `piece` into `plain` (oc_piece_plain_len bytes), making the lane ready at its first use. On failure
 * what was written of `plain` is wiped.
 */
ortcrypt_status oc_object_read_piece(const oc_object *object, oc_piece_lane *lane, uint64_t piece, uint8_t *plain,
                                     ortcrypt_error *err);
/* The same for chunks first to first + count - 1, all of one piece, or to the end of the asset. Leaves are checked as of the whole piece. */
ortcrypt_status oc_object_read_chunks(const oc_object *object, oc_piece_lane *lane, uint64_t first, uint64_t count, uint8_t *plain,
                                      ortcrypt_error *err);
void oc_piece_lane_free(oc_piece_lane *lane);

/* Adds the asset id and the offset in its file to an error about `object`; returns `status`. */
ortcrypt_status oc_object_fail(const oc_object *object, ortcrypt_status status, uint64_t offset, ortcrypt_error *err);

/* Puts "<what>: " before an error's sentence that does not name its file; returns `status`. */
ortcrypt_status oc_fail_in(ortcrypt_status status, const char *what, ortcrypt_error *err);

/* bundle_id, M, sequence and sums. */
void oc_bundle_fill_info(const ortcrypt_bundle *bundle, ortcrypt_bundle_info *info);

#endif
