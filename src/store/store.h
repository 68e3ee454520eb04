/*
 * store/store.h: where a bundle's files live: a directory, reached through its handle (openat), never by path again.
 * Format: docs/format.md, "Bundle directory" and "Commit". No key, no crypto, no JSON here: names and bytes.
 *
 * Reading: oc_store_open -> oc_store_read_small / oc_store_open_object -> oc_store_close.
 * Writing: oc_store_lock (flock EX, empties tmp/) or oc_store_create -> oc_file_new -> oc_file_write -> oc_file_publish ... ->
 * oc_store_publish_manifest -> oc_store_collect -> oc_store_close. Threads: one writer; reads are thread-safe.
 */
#ifndef OC_STORE_STORE_H
#define OC_STORE_STORE_H

#include "base/bytes.h"

#define OC_OBJECT_PATH_SIZE 76 /* "objects/ab/" + 64 hex + NUL */
#define OC_LOCK_WAIT_MS 5000u  /* how long a writer waits for another one's commit */

typedef struct oc_store oc_store;
typedef struct oc_file oc_file; /* a file being written below tmp/ */

/*
 * Opens the directory, checks that it looks like a bundle (FORMAT), takes flock(SH) on it: as long as the store is open, no
 * commit deletes what the manifest of this moment names. A file system without flock can be read all the same.
 * ORTCRYPT_E_FORMAT: not a bundle; ORTCRYPT_E_UNSUPPORTED: newer format; ORTCRYPT_E_IO: cannot be opened.
 */
ortcrypt_status oc_store_open(oc_store **out, const char *path, ortcrypt_error *err);
void oc_store_close(oc_store *store); /* releases locks; an unpublished new bundle is removed. NULL is allowed */
const char *oc_store_path(const oc_store *store);

/* Reads a regular file below the bundle whole (FORMAT, manifest, keys/<M>.age, sig/<M>.sig): at most `max` bytes. ENOENT: ORTCRYPT_E_NOT_FOUND. */
ortcrypt_status oc_store_read_small(const oc_store *store, const char *name, size_t max, oc_buf *out, ortcrypt_error *err);
bool oc_store_exists(const oc_store *store, const char *name);

/* "objects/ab/<64 hex>": where an object lies below the bundle, for sentences and for oc_store_exists. */
void oc_object_path(char path[OC_OBJECT_PATH_SIZE], const uint8_t object[32]);

/*
 * Calls fn for every name in the folder `name` ("keys", "sig", "objects", "objects/ab"), in no order, "." and ".." left out.
 * A folder that is not there has no names. The first status other than ORTCRYPT_OK ends it and is returned.
 */
typedef ortcrypt_status (*oc_name_fn)(void *state, const char *name, ortcrypt_error *err);
ortcrypt_status oc_store_list(const oc_store *store, const char *name, oc_name_fn fn, void *state, ortcrypt_error *err);

/*
 * Opens objects/ab/<64 hex> for reading: links are followed, the type is decided on the handle (O_NONBLOCK, fstat, regular
 * file). *fd is the caller's (close). ORTCRYPT_E_IO when missing or no regular file. *size is what fstat says.
 */
ortcrypt_status oc_store_open_object(const oc_store *store, const uint8_t object[32], int *fd, uint64_t *size,
                                     ortcrypt_error *err);

/* pread until len bytes are there. ORTCRYPT_E_NOT_AUTHENTIC ("cut") at an early end, ORTCRYPT_E_IO on an error. */
ortcrypt_status oc_pread_full(int fd, uint64_t offset, void *buffer, size_t len, const char *what, ortcrypt_error *err);

/* flock(EX) on `lock`, waiting at most wait_ms (ORTCRYPT_E_BUSY); then tmp/ is emptied. Without flock: ORTCRYPT_E_UNSUPPORTED. */
ortcrypt_status oc_store_lock(oc_store *store, unsigned wait_ms, ortcrypt_error *err);

/*
 * Begins a new bundle for `path` (ORTCRYPT_E_EXISTS when there is anything): the directory path.tmp-XXXXXXXX with FORMAT, lock
 * and folders, already locked. It is removed by oc_store_close unless it was published.
 */
ortcrypt_status oc_store_create(oc_store **out, const char *path, ortcrypt_error *err);

/* Hard-links an object of another bundle, or copies its bytes where that is not possible. The content is not looked at. */
ortcrypt_status oc_store_copy_object(oc_store *store, const oc_store *from, const uint8_t object[32], ortcrypt_error *err);

/*
 * tmp/<random>, O_EXCL, 0666 by umask (everything in a bundle is ciphertext). Discarded by oc_file_discard or oc_store_close.
 * One thread per file; several files may be written at once. oc_file_write appends; oc_file_write_at may be called from
 * several threads for ranges that do not overlap, and is not mixed with oc_file_write.
 */
ortcrypt_status oc_file_new(oc_file **out, oc_store *store, ortcrypt_error *err);
ortcrypt_status oc_file_write(oc_file *file, const void *data, size_t len, ortcrypt_error *err);
ortcrypt_status oc_file_write_at(oc_file *file, uint64_t offset, const void *data, size_t len, ortcrypt_error *err);
void oc_file_discard(oc_file *file); /* NULL is allowed */

/*
 * fsync, close, rename to its place (objects/ab/<hex>, keys/<M>.age, sig/<M>.sig); consumes *file, also on failure. An object
 * that is there already is kept. What was placed is removed again by oc_store_close unless a manifest was published after it.
 */
ortcrypt_status oc_file_publish_object(oc_file *file, const uint8_t object[32], ortcrypt_error *err);
ortcrypt_status oc_file_publish_named(oc_file *file, const char *name, ortcrypt_error *err);

/*
 * The commit: fsyncs every touched folder, then `manifest` by one rename, the folder again; a new bundle is renamed to its
 * path (RENAME_NOREPLACE) and its parent fsynced. The first error of write, fsync or close ends it.
 */
ortcrypt_status oc_store_publish_manifest(oc_store *store, oc_span manifest, ortcrypt_error *err);

/*
 * Deletes what the current manifest does not name: `keep_objects` (sorted, keep_count x 32 bytes) and the files of `manifest_id_hex` stay.
 * Only when flock(EX | NB) on the folder succeeds (no reader); otherwise nothing is deleted and ORTCRYPT_OK is returned.
 */
ortcrypt_status oc_store_collect(oc_store *store, const uint8_t (*keep_objects)[32], size_t keep_count,
                                 const char *manifest_id_hex, ortcrypt_error *err);

#endif
