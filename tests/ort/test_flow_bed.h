/*
 * One bundle on one runtime: what the flow tests have in common. open (encrypts) -> compile, run -> close.
 */
#ifndef TEST_FLOW_BED_H
#define TEST_FLOW_BED_H

#include <dirent.h>
#include <unistd.h>

#include "test_flow_rig.h"

#include "test_flow_model.h"

#define EP "OrtcryptReference"

typedef struct bed {
    const char *version;
    ortcrypt_runtime *runtime;
    ortcrypt_keyring *keyring;
    char *dir;
    char *model;  /* plaintext */
    char *bundle;
    char library[1024]; /* of the EP */
} bed;

RIG_UNUSED static void bed_encrypt(bed *b, const char *model)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_encrypt(model, b->bundle, b->keyring, NULL, NULL, &err), &err);
}

RIG_UNUSED static void bed_open(bed *b, const char *version, const rig_model *spec)
{
    *b = (bed){.version = version, .runtime = rig_runtime(version), .keyring = rig_keyring(), .dir = oc_test_tmpdir()};
    b->model = oc_test_format("%s/model.onnx", b->dir);
    b->bundle = oc_test_format("%s/model.ortc", b->dir);
    rig_reference_path(b->library);
    if (spec != NULL) {
        rig_model_write(b->dir, spec);
        bed_encrypt(b, b->model);
    }
}

RIG_UNUSED static void bed_close(bed *b)
{
    oc_test_rm_rf(b->dir);
    free(b->dir);
    free(b->model);
    free(b->bundle);
    ortcrypt_keyring_free(b->keyring);
    rig_runtime_close(b->runtime);
}

RIG_UNUSED static ortcrypt_compile_options compile_options(const bed *b)
{
    return (ortcrypt_compile_options){.struct_size = sizeof(ortcrypt_compile_options), .ep = EP, .ep_library = b->library};
}

RIG_UNUSED static void bed_compile(const bed *b, const ortcrypt_compile_options *options, ortcrypt_compile_result *result)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_compile(b->runtime, b->bundle, b->keyring, options, result, &err), &err);
}

RIG_UNUSED static ortcrypt_bundle *bed_bundle(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;

    assert_ok(ortcrypt_bundle_open(&bundle, b->bundle, b->keyring, NULL, &err), &err);
    return bundle;
}

RIG_UNUSED static void close_bundle(ortcrypt_bundle *bundle)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    assert_ok(ortcrypt_bundle_close(bundle, &err), &err);
}

/* Descriptors of this process that are files with a bundle's assets. */
RIG_UNUSED static size_t bed_open_objects(const bed *b)
{
    const size_t bundle_len = strlen(b->bundle);
    size_t count = 0;
    DIR *const open = opendir("/proc/self/fd");

    assert_non_null(open);
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        char target[1024] = "";
        const ssize_t len = readlinkat(dirfd(open), entry->d_name, target, sizeof(target) - 1);
        count += len > 0 && strncmp(target, b->bundle, bundle_len) == 0 && strstr(target + bundle_len, "/objects/") != NULL ? 1 : 0;
    }
    (void)closedir(open);
    return count;
}

/* Opens, runs, closes; the output is the caller's. Weights that went through the pipe are not kept open for the session's life. */
RIG_UNUSED static float *bed_run(const bed *b, const ortcrypt_session_options *options, char **plan)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    ortcrypt_bundle *const bundle = bed_bundle(b);

    assert_ok(ortcrypt_session_open(&session, b->runtime, bundle, options, &err), &err);
    if (plan != NULL) {
        assert_ok(ortcrypt_session_plan(session, plan, &err), &err);
        assert_true(strstr(*plan, "inside the model") == NULL || bed_open_objects(b) == 0);
    }
    float *const y = rig_run(ortcrypt_runtime_api(b->runtime), ortcrypt_session_ort(session));
    ortcrypt_session_close(session);
    close_bundle(bundle);
    return y;
}

RIG_UNUSED static void assert_same_output(const bed *b, const ortcrypt_session_options *options, const char *what)
{
    float *const plain = rig_plain(b->runtime, b->model, NULL);
    float *const y = bed_run(b, options, NULL);

    rig_assert_close(y, plain, 2 * MODEL_OUT, what);
    free(plain);
    free(y);
}

#endif
