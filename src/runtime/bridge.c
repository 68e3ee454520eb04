/*
 * Registering an EP behind the bridge (ortcrypt/bridge.h): name and path are said to the bridge, which ORT then loads in the EP's place.
 * The bridge's file is found beside this library, or named by who opened the runtime.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ortcrypt/bridge.h"
#include "runtime/private.h"
#include "runtime/registry.h"

#define BRIDGE_LIBRARY "libortcrypt_bridge.so"

/* From the folder of this library, or of the program it is linked into: a build folder, an installed library, an installed program. */
static const char *const PLACES[] = {"",
                                     "../",
                                     "ortcrypt/",
                                     "../lib/ortcrypt/",
                                     "../lib/" ORTCRYPT_ARCHITECTURE "/ortcrypt/",
                                     "../lib64/ortcrypt/",
                                     "../../lib/ortcrypt/",
                                     "../../lib/" ORTCRYPT_ARCHITECTURE "/ortcrypt/",
                                     "../../lib64/ortcrypt/"};

static ortcrypt_status find_bridge(char **out, const char *named, ortcrypt_error *err)
{
    char *path = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    if (named == NULL) {
        st = oc_find_beside(&path, PLACES, sizeof(PLACES) / sizeof(PLACES[0]), BRIDGE_LIBRARY, R_OK, err);
        if (st == ORTCRYPT_OK && path == NULL) {
            st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the bridge (" BRIDGE_LIBRARY ") is not beside ortcrypt, and none is named");
        }
    }
    if (st == ORTCRYPT_OK) {
        *out = realpath(named != NULL ? named : path, NULL);
        st = *out != NULL ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "the bridge %s", named != NULL ? named : path);
    }
    free(path);
    return st;
}

/* Says to the bridge which library a name means. The handle keeps the bridge loaded until ORT has it. */
static ortcrypt_status announce(void **handle, const char *bridge, const char *name, const char *library, ortcrypt_error *err)
{
    bool (*target)(const char *registration_name, const char *library_path) = NULL;

    *handle = dlopen(bridge, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the bridge does not load: %s", dlerror());
    }
    void *const symbol = dlsym(*handle, "ortcrypt_bridge_target");
    memcpy(&target, &symbol, sizeof(target));
    if (target == NULL || !oc_registry_attach(bridge)) {
        return oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s is no bridge of this version", bridge);
    }
    return target(name, library) ? ORTCRYPT_OK : oc_fail_memory(err, strlen(library), "the bridge");
}

/* A name means one library from its announcement to its registration: two runtimes may register one name from different files at once. */
static pthread_mutex_t announcing = PTHREAD_MUTEX_INITIALIZER;

ortcrypt_status oc_bridge_register(const ortcrypt_runtime *runtime, const char *name, const char *library, ortcrypt_error *err)
{
    const OrtApi *const api = runtime->api;
    char *bridge = NULL;
    void *handle = NULL;

    ortcrypt_status st = find_bridge(&bridge, runtime->bridge, err);
    (void)pthread_mutex_lock(&announcing);
    if (st == ORTCRYPT_OK) {
        st = announce(&handle, bridge, name, library, err);
    }
    if (st == ORTCRYPT_OK) {
        OrtStatus *const refused = oc_devices_register_again(runtime, name, bridge);
        const bool unknown = refused != NULL && api->GetErrorCode(refused) == ORT_NOT_IMPLEMENTED;
        st = oc_ort_check(runtime, refused, err, "EP library behind the bridge");
        if (unknown) { /* an EP that the bridge does not know how to stand before */
            st = ORTCRYPT_E_UNSUPPORTED;
            if (err != NULL) {
                err->status = st;
            }
        }
    }
    (void)pthread_mutex_unlock(&announcing);
    if (handle != NULL) {
        (void)dlclose(handle);
    }
    free(bridge);
    return st;
}
