/*
 * The devices of an OrtEnv. ORT hands out its own list, which moves when an EP library is registered, and several runtime objects may share
 * the OrtEnv: so there is one lock in the process, and everybody gets a copy. The devices themselves stay until their library goes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

ortcrypt_status oc_devices_copy(const ortcrypt_runtime *runtime, const OrtEpDevice ***devices, size_t *count, ortcrypt_error *err)
{
    const OrtEpDevice *const *all = NULL;
    const OrtEpDevice **copy = NULL;
    size_t all_count = 0;

    (void)pthread_mutex_lock(&lock);
    ortcrypt_status st = oc_ort_check(runtime, runtime->api->GetEpDevices(runtime->env, &all, &all_count), err, "EP devices");
    if (st == ORTCRYPT_OK) {
        copy = calloc(all_count + 1, sizeof(*copy));
        st = copy != NULL ? ORTCRYPT_OK : oc_fail_memory(err, (all_count + 1) * sizeof(*copy), "the list of EP devices");
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < all_count; i++) {
        copy[i] = all[i];
    }
    (void)pthread_mutex_unlock(&lock);
    if (st == ORTCRYPT_OK) {
        *devices = copy;
        *count = all_count;
    }
    return st;
}

const char *oc_device_library(const ortcrypt_runtime *runtime, const OrtEpDevice *device)
{
    return runtime->api->GetKeyValue(runtime->api->EpDevice_EpMetadata(device), "library_path");
}

/* True when some device says it came from this library. Called with the lock held. */
static bool present(const ortcrypt_runtime *runtime, const char *library)
{
    const OrtEpDevice *const *all = NULL;
    size_t count = 0;
    bool found = false;
    OrtStatus *const refused = runtime->api->GetEpDevices(runtime->env, &all, &count);

    if (refused != NULL) {
        runtime->api->ReleaseStatus(refused);
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        const char *const path = oc_device_library(runtime, all[i]);
        found = path != NULL && strcmp(path, library) == 0;
    }
    return found;
}

bool oc_devices_present(const ortcrypt_runtime *runtime, const char *library)
{
    (void)pthread_mutex_lock(&lock);
    const bool found = present(runtime, library);
    (void)pthread_mutex_unlock(&lock);
    return found;
}

OrtStatus *oc_devices_register_again(const ortcrypt_runtime *runtime, const char *name, const char *library)
{
    (void)pthread_mutex_lock(&lock);
    OrtStatus *const refused = runtime->api->RegisterExecutionProviderLibrary(runtime->env, name, library);
    (void)pthread_mutex_unlock(&lock);
    return refused;
}

OrtStatus *oc_devices_register(const ortcrypt_runtime *runtime, const char *name, const char *library)
{
    OrtStatus *refused = NULL;

    (void)pthread_mutex_lock(&lock);
    if (!present(runtime, library)) {
        refused = runtime->api->RegisterExecutionProviderLibrary(runtime->env, name, library);
    }
    (void)pthread_mutex_unlock(&lock);
    return refused;
}
