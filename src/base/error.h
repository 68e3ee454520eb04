/*
 * base/error.h: filling an ortcrypt_error where the cause is known.
 * Call order: oc_fail* -> (oc_hint) -> return the status. `err` may be NULL everywhere.
 */
#ifndef OC_BASE_ERROR_H
#define OC_BASE_ERROR_H

#include "ortcrypt/error.h"

/* Writes status and sentence; clears the rest; returns `status`. Invalid UTF-8 or control bytes in the result become '?'. */
ortcrypt_status oc_fail(ortcrypt_error *err, ortcrypt_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with an errno: ": " and its text are appended, sys_errno is set. ENOMEM gives ORTCRYPT_E_NO_MEMORY instead of `status`. */
ortcrypt_status oc_fail_errno(ortcrypt_error *err, ortcrypt_status status, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ORTCRYPT_E_NO_MEMORY: "<len> bytes of memory for <what> are not available". */
ortcrypt_status oc_fail_memory(ortcrypt_error *err, uint64_t len, const char *what);

/* Adds the hint to an error already written. */
void oc_hint(ortcrypt_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the place: byte offset and/or asset id (32 hex characters, or NULL). */
void oc_at(ortcrypt_error *err, uint64_t offset, const char *asset);

/* Monitor calls that take NULL anywhere. oc_progress returns ORTCRYPT_E_CANCELLED (and fills err) when asked to stop. */
void oc_notice(const ortcrypt_monitor *monitor, const char *format, ...) __attribute__((format(printf, 2, 3)));
ortcrypt_status oc_progress(const ortcrypt_monitor *monitor, const char *step, uint64_t done, uint64_t total,
                            ortcrypt_error *err);

#endif
