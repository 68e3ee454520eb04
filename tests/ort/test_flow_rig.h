/*
 * What the tests on real runtimes share: where things are, a scratch folder, and refusals with their words.
 * ORTCRYPT_DEPS (runtimes, models) and ORTCRYPT_BUILD (the reference EP) come from the environment.
 */
#ifndef TEST_FLOW_RIG_H
#define TEST_FLOW_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ortcrypt/error.h"
#include "ortcrypt/runtime.h"

#define RIG_UNUSED __attribute__((unused))

static const char *const rig_versions[] = {"1.30.0", "1.32.0"};
#define RIG_VERSION_COUNT (sizeof(rig_versions) / sizeof(rig_versions[0]))

#define assert_st(status, err, expected)                                                                        \
    do {                                                                                                        \
        const ortcrypt_status rig_st = (status);                                                                \
        if (rig_st != (expected)) {                                                                             \
            fail_msg("%s instead of %s: %s", ortcrypt_status_name(rig_st), ortcrypt_status_name(expected),      \
                     (err)->message);                                                                           \
        }                                                                                                       \
    } while (0)
#define assert_ok(status, err) assert_st(status, err, ORTCRYPT_OK)

RIG_UNUSED static const char *rig_env(const char *name)
{
    const char *const value = getenv(name);

    if (value == NULL) {
        fail_msg("%s is not set: run through ctest", name);
    }
    return value;
}

/* Path of a runtime; `path` has PATH_MAX-like room of 1024 bytes. False when it is not there. */
RIG_UNUSED static int rig_runtime_path(char path[1024], const char *version)
{
    (void)snprintf(path, 1024, "%s/ort/%s/libonnxruntime.so.%s", rig_env("ORTCRYPT_DEPS"), version, version);
    return access(path, R_OK) == 0;
}

RIG_UNUSED static ortcrypt_runtime *rig_runtime(const char *version)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    char path[1024];

    if (!rig_runtime_path(path, version)) {
        fail_msg("%s is missing: run make setup", path);
    }
    assert_ok(ortcrypt_runtime_open(&runtime, path, NULL, &err), &err);
    return runtime;
}

RIG_UNUSED static void rig_runtime_close(ortcrypt_runtime *runtime)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_runtime_close(runtime, &err), &err);
}

RIG_UNUSED static void rig_reference_path(char path[1024])
{
    (void)snprintf(path, 1024, "%s/libortcrypt_reference_ep.so", rig_env("ORTCRYPT_BUILD"));
    if (access(path, R_OK) != 0) {
        (void)snprintf(path, 1024, "%s/reference-ep/libortcrypt_reference_ep.so", rig_env("ORTCRYPT_BUILD"));
    }
}

RIG_UNUSED static int rig_unlink(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* A new folder below TMPDIR in dir[256]; rig_remove removes it with everything in it. */
RIG_UNUSED static void rig_folder(char dir[256])
{
    const char *const tmp = getenv("TMPDIR");

    (void)snprintf(dir, 256, "%s/ortcrypt-flow-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
}

RIG_UNUSED static void rig_remove(const char *dir)
{
    (void)nftw(dir, rig_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
