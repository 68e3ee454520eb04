/* fakes/fake_objects.h: ONNX Runtime's objects as the fake has them, and how its functions are declared. */
#ifndef FAKE_OBJECTS_H
#define FAKE_OBJECTS_H

#include <onnxruntime_c_api.h>

#include "fake_private.h"
#include "ortcrypt/ep_context.h"

#define API_SLOT(member) (offsetof(OrtApi, member) / sizeof(void *))
#define NOTE(member) fake_called(FAKE_API, API_SLOT(member))

struct OrtStatus {
    OrtErrorCode code;
    char message[128];
};

typedef struct fake_callback {
    OrtReadNamedBufferFunc read;
    void *state;
    size_t max_len;
} fake_callback;

enum { ENTRIES_MAX = 4, ENTRY_SIZE = 64 };

struct OrtSessionOptions {
    char keys[ENTRIES_MAX][ENTRY_SIZE]; /* "": none */
    char values[ENTRIES_MAX][ENTRY_SIZE];
    fake_callback callback;
    const void *source;
    size_t source_len;
};

struct OrtEpContextConfig {
    fake_callback callback;
};

/* A new error; counted in fake_ort.live. */
OrtStatus *fake_error(OrtErrorCode code, const char *message);

/* fake_eps.c, fake_entries.c and fake_callbacks.c: their part of fake_put_functions. */
void fake_put_entries(OrtApi *api);
void fake_put_eps(OrtApi *api);
void fake_put_callbacks(fake_function *slots, fake_table table, unsigned minor);

#endif
