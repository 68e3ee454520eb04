/*
 * bundle/bundle.h: keyring + format + store: open, read with the decryptor pool, write, commit. What flow builds on.
 *
 * Reading: ortcrypt_bundle_open -> oc_bundle_* -> ortcrypt_bundle_close.
 * Writing: oc_txn_begin -> oc_asset_writer_* and oc_txn_manifest -> oc_txn_commit -> oc_txn_end.
 */
#ifndef OC_BUNDLE_BUNDLE_H
#define OC_BUNDLE_BUNDLE_H

#include "format/manifest.h"
#include "format/onnx.h"
#include "ortcrypt/bundle.h"

#define OC_PIECE_CHUNKS 64
#define OC_PIECE_PLAIN_LEN (1024u * 1024u)                   /* 64 chunks of plaintext */
#define OC_PIECE_SEALED_LEN (64u * 16400u)                   /* 1049600 */
#define OC_OBJECT_LABEL "ortcrypt/1 object"                  /* then 0x00 */
#define OC_MANIFEST_CONTEXT "ortcrypt/1 manifest"            /* then 0x00 and the bundle id */
#define OC_LOCAL_CONTEXT "ortcrypt/1 local"                  /* then 0x00, the bundle id, and for an asset its id */
#define OC_LOCAL_KEY_LABEL "ortcrypt/1 local key"            /* then 0x00 and the bundle id */
#define OC_ASSET_CONTEXT "ortcrypt/1 asset"                  /* then 0x00, the bundle id, the asset id */

/*
 * Copies a public options struct (its first member is struct_size) into `out` of out_size bytes, zeroed first, so that callers
 * built against an older or newer header work. NULL: all zero. ORTCRYPT_E_INVALID for an absurd struct_size,
 * ORTCRYPT_E_UNSUPPORTED for a member set that this library does not know. `what` is the struct's name.
 */
ortcrypt_status oc_options_copy(void *out, size_t out_size, const void *options, const char *what, ortcrypt_error *err);

const oc_manifest *oc_bundle_manifest(const ortcrypt_bundle *bundle);

/* Sessions and inputs hold the bundle: close answers ORTCRYPT_E_BUSY until every hold is released. Thread-safe. */
void oc_bundle_hold(ortcrypt_bundle *bundle);
void oc_bundle_release(ortcrypt_bundle *bundle);

/*
 * Reads a whole asset into dst (exactly asset->size bytes), pieces in parallel. `asset` is of this bundle's manifest (or a
 * pending one of the transaction whose view it is). Nothing of dst is plaintext after a failure.
 */
ortcrypt_status oc_bundle_read(ortcrypt_bundle *bundle, const oc_asset *asset, void *dst, const ortcrypt_monitor *monitor,
                               ortcrypt_error *err);

/*
 * Reads in order, one authenticated piece at a time (at most 1 MiB), to `push`. The end of the stream is checked first, so
 * that a cut is known before the first byte is handed over. The buffer is wiped after each call. Decrypts ahead on the pool.
 */
ortcrypt_status oc_bundle_stream(ortcrypt_bundle *bundle, const oc_asset *asset, oc_push_fn push, void *push_state,
                                 const ortcrypt_monitor *monitor, ortcrypt_error *err);

/*
 * A whole asset in memory (oc_region), decrypted once for all who share it at a time: read only, by agreement. The last unshare wipes
 * it. Thread-safe; NULL may be unshared.
 */
typedef struct oc_shared_asset oc_shared_asset;
ortcrypt_status oc_bundle_share(oc_shared_asset **out, ortcrypt_bundle *bundle, const oc_asset *asset, const ortcrypt_monitor *monitor,
                                ortcrypt_error *err);
uint8_t *oc_shared_data(const oc_shared_asset *shared);
void oc_bundle_unshare(ortcrypt_bundle *bundle, oc_shared_asset *shared);

/*
 * Assets as memory that is decrypted when it is touched (os/os.h, oc_paged: what a reader may do, what a failure does). Together
 * they hold at least a byte; the bundle must outlive the pages, and the assets stay in it (what describes them is copied: writers of
 * the transaction whose view this is may finish meanwhile). Open -> data of each -> settle -> close.
 */
typedef struct oc_asset_pages oc_asset_pages;
typedef struct oc_pages_end {
    size_t asset;
    uint64_t offset; /* of the last byte */
} oc_pages_end;
typedef struct oc_pages_options {
    size_t window_len; /* bytes behind the reader that stay while it prepares; 0: all */
    size_t ahead_len;  /* bytes decrypted ahead of a touch */
    const oc_pages_end *ends; /* of large tensors, in any order: looked at before the rest of the tensor */
    size_t end_count;
    bool onward; /* what follows an end is read next; else nothing is decrypted ahead across it */
} oc_pages_options;
ortcrypt_status oc_asset_pages_open(oc_asset_pages **out, ortcrypt_bundle *bundle, const oc_asset *const *assets, size_t count,
                                    const oc_pages_options *options, ortcrypt_error *err);
uint8_t *oc_asset_pages_data(const oc_asset_pages *pages, size_t asset);
ortcrypt_status oc_asset_pages_settle(oc_asset_pages *pages, bool complete, ortcrypt_error *err);
void oc_asset_pages_close(oc_asset_pages *pages); /* NULL is allowed */

/* Random access to an asset's plaintext; keeps the last chunk(s) decrypted. Open -> source.read... -> close. One thread. */
typedef struct oc_asset_reader oc_asset_reader;
ortcrypt_status oc_asset_reader_open(oc_asset_reader **out, ortcrypt_bundle *bundle, const oc_asset *asset,
                                     ortcrypt_error *err);
oc_source oc_asset_reader_source(oc_asset_reader *reader); /* valid until close */
void oc_asset_reader_close(oc_asset_reader *reader);

/* A writing transaction. */
typedef struct oc_txn oc_txn;
typedef struct oc_asset_writer oc_asset_writer;

/* A new bundle at `path`, with a fresh id and key, wrapped for the keyring. */
ortcrypt_status oc_txn_create(oc_txn **out, const char *path, const ortcrypt_keyring *keyring, ortcrypt_error *err);

/*
 * An existing bundle: takes the write lock, opens it, sequence + 1. With out_path: a new bundle there, a copy of everything.
 * A signed bundle is refused without out_path (ORTCRYPT_E_UNSUPPORTED: changing it needs the signing key).
 */
ortcrypt_status oc_txn_begin(oc_txn **out, const char *path, const char *out_path, const ortcrypt_keyring *keyring,
                             const ortcrypt_open_options *options, ortcrypt_error *err);

/* The bundle as it will be: its manifest is the one being built and its assets include the pending ones. */
ortcrypt_bundle *oc_txn_view(oc_txn *txn);
oc_manifest *oc_txn_manifest(oc_txn *txn);

/* Threads that encrypt: 0 (the default): min(cores, 8), or what the open options said. */
void oc_txn_set_threads(oc_txn *txn, unsigned threads);

/*
 * Takes an asset of this transaction out again (a blob that was written a second time). Nothing may name it any more: a part
 * or tensor that does makes the commit fail. Thread-safe against finish.
 */
ortcrypt_status oc_txn_drop_asset(oc_txn *txn, const uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err);

/*
 * While writers finish on other threads the manifest's list of assets moves: pointers from oc_manifest_find_asset are used only
 * when no writer is open.
 *
 * One asset, fresh id. push may be called from one thread at a time; several writers may be open at once on several threads.
 * finish adds the asset to the transaction's manifest (thread-safe) and returns its id; without finish, close removes it.
 */
ortcrypt_status oc_asset_writer_open(oc_asset_writer **out, oc_txn *txn, ortcrypt_error *err);
ortcrypt_status oc_asset_writer_push(oc_asset_writer *writer, const void *data, size_t len, ortcrypt_error *err);
ortcrypt_status oc_asset_writer_finish(oc_asset_writer *writer, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err);
void oc_asset_writer_close(oc_asset_writer *writer); /* NULL is allowed */

/*
 * Whole assets from memory or from a source, encrypted on several threads where it pays. source->read is called from several
 * threads, one at a time; the monitor on the calling thread only.
 */
ortcrypt_status oc_txn_put(oc_txn *txn, oc_span data, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err);
ortcrypt_status oc_txn_put_source(oc_txn *txn, const oc_source *source, const char *step, const ortcrypt_monitor *monitor,
                                  uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err);

/* Publishes the manifest. After it (or a failure) only oc_txn_end is allowed; info may be NULL. */
ortcrypt_status oc_txn_commit(oc_txn *txn, ortcrypt_bundle_info *info, ortcrypt_error *err);
void oc_txn_end(oc_txn *txn); /* not committed: everything written is removed. NULL is allowed */

#endif
