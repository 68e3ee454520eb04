/* OrtGetApiBase of the fake runtime: a table of its own for every version that is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_c_api.h>

#include "fake_private.h"

#define SEEN __attribute__((visibility("default")))

fake_control fake_ort;

static char own_version[32];

static const char *const fault_names[] = {
#define FAKE_NAME(name) #name,
    FAKE_FAULTS(FAKE_NAME)
#undef FAKE_NAME
};

SEEN fake_control *fake_ort_control(void);

static void start(void)
{
    const char *const fault = getenv("FAKE_ORT_FAULT");
    static bool started;

    if (started) {
        return;
    }
    started = true;
    (void)snprintf(own_version, sizeof own_version, "1.%u.0", fake_minor);
    fake_ort.version = getenv("FAKE_ORT_VERSION") != NULL ? getenv("FAKE_ORT_VERSION") : own_version;
    for (int i = 0; fault != NULL && i < FAKE_FAULT_COUNT; i++) {
        if (strcmp(fault_names[i], fault) == 0) {
            fake_ort.fault = (fake_fault)i;
        }
    }
    if (fault != NULL && strcmp(fault, fault_names[fake_ort.fault]) != 0) {
        (void)fprintf(stderr, "fake ONNX Runtime: there is no fault %s\n", fault);
        abort();
    }
}

fake_control *fake_ort_control(void)
{
    start();
    return &fake_ort;
}

static const OrtApi *ORT_API_CALL get_api(uint32_t version) NO_EXCEPTION
{
    fake_called(FAKE_BASE, FAKE_GET_API);
    if (version == 0 || version > fake_minor || version >= FAKE_VERSION_MAX) {
        fake_ort.asked_beyond = true;
        (void)fprintf(stderr, "The requested API version [%u] is not available\n", version);
        return NULL;
    }
    fake_ort.asked[version] = true;
    return fake_ort.fault != FAKE_NO_API ? fake_table_get(FAKE_API, version) : NULL;
}

static const char *ORT_API_CALL get_version(void) NO_EXCEPTION
{
    fake_called(FAKE_BASE, FAKE_GET_VERSION);
    return fake_ort.version;
}

SEEN const OrtApiBase *ORT_API_CALL OrtGetApiBase(void) NO_EXCEPTION
{
    static const OrtApiBase base = {get_api, get_version};

    start();
    return &base;
}
