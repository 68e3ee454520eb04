/*
 * bundle/decrypt_outdir.h: a fresh folder for plaintext files whose names come from a manifest, that is from somebody else.
 * Everything happens below the folder's handle: openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, O_CREAT | O_EXCL, 0600.
 *
 * Call order: oc_outdir_create (OUT.tmp-XXXX) -> oc_outdir_file, write, oc_outdir_file_close ... -> oc_outdir_publish (renamed
 * to OUT) -> oc_outdir_end (not published: removed with everything in it). One thread.
 */
#ifndef OC_BUNDLE_DECRYPT_OUTDIR_H
#define OC_BUNDLE_DECRYPT_OUTDIR_H

#include "base/bytes.h"

#define OC_OUTDIR_DEPTH_MAX 64     /* components of a name that may become a path */
#define OC_OUTDIR_COMPONENT_MAX 255 /* bytes */

typedef struct oc_outdir oc_outdir;

/* ORTCRYPT_E_EXISTS when there is anything at `path`; ORTCRYPT_E_IO when its parent is missing or not writable. */
ortcrypt_status oc_outdir_create(oc_outdir **out, const char *path, ortcrypt_error *err);

/* Relative, no empty, "." or ".." component, no control character, no component over 255 bytes, at most 64 components. */
bool oc_outdir_name_plain(const char *name);

/*
 * Makes the subfolders of a plain name and opens the new file for writing: *fd is the caller's. ORTCRYPT_E_EXISTS when the
 * place is taken or cannot bear that name (the caller chooses another); ORTCRYPT_E_IO when it is not about the name.
 */
ortcrypt_status oc_outdir_file(oc_outdir *folder, const char *name, int *fd, ortcrypt_error *err);

/* Writes all of it; fsync and close at the end. Any error is ORTCRYPT_E_IO. _close consumes fd in every case. */
ortcrypt_status oc_outdir_write(int fd, const void *data, size_t len, const char *name, ortcrypt_error *err);
ortcrypt_status oc_outdir_file_close(int fd, const char *name, ortcrypt_error *err);

/* ORTCRYPT_E_IO when `len` bytes do not fit on that file system. */
ortcrypt_status oc_outdir_room(const oc_outdir *folder, uint64_t len, ortcrypt_error *err);

/* Renames it to its path (RENAME_NOREPLACE): ORTCRYPT_E_EXISTS when somebody else was faster. */
ortcrypt_status oc_outdir_publish(oc_outdir *folder, ortcrypt_error *err);
void oc_outdir_end(oc_outdir *folder); /* NULL is allowed */

#endif
