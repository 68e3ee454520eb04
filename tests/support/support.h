/*
 * tests/support/support.h: what tests share. Everything here ends the running cmocka test with a sentence when it cannot do its job.
 * Returned memory is the caller's (free).
 */
#ifndef OC_TESTS_SUPPORT_H
#define OC_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ortcrypt/error.h"

/* A new empty folder below TMPDIR (or /tmp); remove it with oc_test_rm_rf, which does not follow links. */
char *oc_test_tmpdir(void);
void oc_test_rm_rf(const char *path);

/* printf into new memory: paths, mostly. */
char *oc_test_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The whole file; one NUL follows that *len (may be NULL) does not count. */
uint8_t *oc_test_read_file(const char *path, size_t *len);
void oc_test_write_file(const char *path, const void *data, size_t len);

/* The variable's value; fails the test when it is not set. Not owned by the caller. */
const char *oc_test_env(const char *name);

/* Bytes of a hex string (either case); one NUL follows. */
uint8_t *oc_test_unhex(const char *hex, size_t *len);

/* Bytes from a fixed sequence: the same seed gives the same bytes. */
void oc_test_fill(uint8_t *data, size_t len, uint64_t seed);

/* Fails with the error's sentence unless the status is the expected one. */
#define oc_test_status(got, expected, err) oc_test_status_at((got), (expected), (err), __FILE__, __LINE__)
void oc_test_status_at(ortcrypt_status got, ortcrypt_status expected, const ortcrypt_error *err, const char *file, int line);
#define oc_test_ok(got, err) oc_test_status((got), ORTCRYPT_OK, (err))

#endif
