/*
 * bundle/local.h: what this machine compiled for itself from a bundle, outside of it. Format: docs/format.md, section 11.
 *
 * Reading: oc_machine_key_read -> oc_local_open -> like any bundle -> oc_local_close.
 * Writing: oc_local_begin -> like any transaction. The origin may be closed afterwards.
 * The key is made of the bundle's and this machine's: neither another machine nor another holder of the bundle key has it.
 */
#ifndef OC_BUNDLE_LOCAL_H
#define OC_BUNDLE_LOCAL_H

#include "base/secret.h"
#include "bundle/bundle.h"

#define OC_MACHINE_KEY_LEN 32
#define OC_LOCAL_SOURCE "x-source" /* member of the manifest: M of the bundle it belongs to, as a JSON string */

/*
 * The 32 bytes of a machine key's file, which is made (0600, by its final name only when complete, folders above 0700) when it
 * is not there. ORTCRYPT_E_NO_KEY for a file that others own or may read, or of another length; ORTCRYPT_E_IO.
 */
ortcrypt_status oc_machine_key_read(oc_secret *out, const char *path, ortcrypt_error *err);

/* Makes the folder and those above it that are missing, 0700. */
ortcrypt_status oc_folders_make(const char *path, ortcrypt_error *err);

/*
 * Opens what lies at `path` (ORTCRYPT_E_NOT_FOUND: nothing). ORTCRYPT_E_NOT_AUTHENTIC when it was not made on this machine from this state
 * of this bundle, or was altered. machine_key: OC_MACHINE_KEY_LEN bytes.
 */
ortcrypt_status oc_local_open(ortcrypt_bundle **out, const char *path, const ortcrypt_bundle *origin, const uint8_t *machine_key,
                              ortcrypt_error *err);

void oc_local_close(ortcrypt_bundle *local); /* nothing may hold it any more. NULL is allowed */

/* A transaction on it, or on a new one where there is nothing. */
ortcrypt_status oc_local_begin(oc_txn **out, const char *path, const ortcrypt_bundle *origin, const uint8_t *machine_key,
                               ortcrypt_error *err);

#endif
