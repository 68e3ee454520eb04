/*
 * ortcrypt/keyring.h: who may open a bundle.
 *
 * Call order: new -> add_* / set_* -> use with a bundle -> free.
 * Threads: a keyring may be read by several calls at once; adding to it must not run beside its use.
 * A keyring holds recipients (public, for writing) and identities (secret, for opening); each call takes what it needs.
 * Format: docs/format.md, "Key file". Recipients and identities are those of age (C2SP age specification).
 */
#ifndef ORTCRYPT_KEYRING_H
#define ORTCRYPT_KEYRING_H

#include <stddef.h>

#include "ortcrypt/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortcrypt_keyring ortcrypt_keyring;

#define ORTCRYPT_RECIPIENT_SIZE 63 /* "age1" + 58 characters + NUL */
#define ORTCRYPT_IDENTITY_SIZE 75  /* "AGE-SECRET-KEY-1" + 58 characters + NUL */

/*
 * Makes a new X25519 identity from getrandom(2). Both outputs are NUL-terminated text as age writes it.
 * The caller wipes `identity`. On failure both are "".
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_identity_generate(char identity[ORTCRYPT_IDENTITY_SIZE],
                                                                          char recipient[ORTCRYPT_RECIPIENT_SIZE],
                                                                          ortcrypt_error *err);

/* An empty keyring in *keyring; free with ortcrypt_keyring_free. NULL on failure. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_new(ortcrypt_keyring **keyring, ortcrypt_error *err);

/* Wipes and frees. NULL is allowed. Bundles that were opened with it stay open. */
ORTCRYPT_API void ortcrypt_keyring_free(ortcrypt_keyring *keyring);

/*
 * Adds a recipient: "age1..." (X25519), NUL-terminated. Refused with ORTCRYPT_E_UNSUPPORTED for a recipient of another
 * type (use a wrap callback), ORTCRYPT_E_INVALID for text that is none, or beside a passphrase.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_add_recipient(ortcrypt_keyring *keyring,
                                                                              const char *recipient, ortcrypt_error *err);

/*
 * Adds a passphrase of `len` bytes (1 to 1024), copied into secret memory. For opening it is one more identity; for
 * writing it excludes every other recipient, as in age.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_add_passphrase(ortcrypt_keyring *keyring,
                                                                               const char *passphrase, size_t len,
                                                                               ortcrypt_error *err);

/*
 * Adds every identity of an identity file's text (`len` bytes, at most 64 KiB): lines AGE-SECRET-KEY-1..., comments (#)
 * and blank lines. ORTCRYPT_E_INPUT names the first line that is none of these, never its content.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_add_identity(ortcrypt_keyring *keyring, const char *text,
                                                                             size_t len, ortcrypt_error *err);

/* The same from a regular file, read into secret memory. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_add_identity_file(ortcrypt_keyring *keyring,
                                                                                  const char *path, ortcrypt_error *err);

/* The same from a descriptor (pipe or file), read to its end; the caller closes it. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_add_identity_fd(ortcrypt_keyring *keyring, int fd,
                                                                                ortcrypt_error *err);

/* Highest scrypt work factor (log2 N, 1 to 30) accepted when opening; 18 unless raised. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_set_scrypt_limit(ortcrypt_keyring *keyring,
                                                                                 unsigned log_n, ortcrypt_error *err);

/*
 * Wraps or unwraps the key file's payload with anything the application has (a KMS, a TPM, another age implementation).
 * wrap:   `payload` (payload_len bytes, secret) -> writes at most `out_max` bytes of key file to `out`, sets *out_len.
 * unwrap: `key_file` (key_file_len bytes) -> writes the payload (at most `out_max` bytes) to `out`, sets *out_len.
 * Return 0 on success; anything else ends the call with ORTCRYPT_E_NO_KEY. Called once per call, on the calling thread.
 */
typedef int (*ortcrypt_wrap_fn)(void *state, const void *payload, size_t payload_len, void *out, size_t out_max,
                                size_t *out_len);
typedef int (*ortcrypt_unwrap_fn)(void *state, const void *key_file, size_t key_file_len, void *out, size_t out_max,
                                  size_t *out_len);

/*
 * Sets one of them or both; NULL leaves what there was. `wrap` replaces native wrapping, `unwrap` is tried before the identities of the
 * keyring. Both get `state`, so two calls give them two. `recipient_text` (may be NULL, needs `wrap`) is the line kept beside the key so
 * that rekey can list it.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_keyring_set_callbacks(ortcrypt_keyring *keyring, ortcrypt_wrap_fn wrap,
                                                                              ortcrypt_unwrap_fn unwrap, void *state,
                                                                              const char *recipient_text, ortcrypt_error *err);

#ifdef __cplusplus
}
#endif
#endif
