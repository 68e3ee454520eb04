/*
 * ortcrypt/ep_context.h: EPContext data callbacks for EP authors (and for applications), on every era of ONNX Runtime.
 *
 * Needs ORT's C API headers (API 23 or newer) and libc, nothing else of ortcrypt; copy this file and src/ep_context/ into an EP.
 * Call order in an EP: CreateEp: ortcrypt_ep_context_api_get -> GetEpContextConfig ; Compile: read / write ; ReleaseEp: ReleaseEpContextConfig.
 * Threads: everything here is thread-safe as long as the arguments are.
 */
#ifndef ORTCRYPT_EP_CONTEXT_H
#define ORTCRYPT_EP_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <onnxruntime_c_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ORT's own declarations, repeated so that headers older than 28, or without the experimental include file, suffice.
 * C11 and C++ allow the identical repeat. Source: "Compiled Model Encryption", and onnxruntime_experimental_c_api.h.
 */
typedef struct OrtEpContextConfig OrtEpContextConfig;
typedef OrtStatus *(ORT_API_CALL *OrtWriteNamedBufferFunc)(void *state, const char *name, const void *buffer,
                                                           size_t buffer_num_bytes);
typedef OrtStatus *(ORT_API_CALL *OrtReadNamedBufferFunc)(void *state, const char *name, OrtAllocator *allocator,
                                                          void **buffer, size_t *data_size);

/* How a runtime offers the six functions. */
typedef enum ortcrypt_era {
    ORTCRYPT_ERA_NONE = 0,         /* ORT 1.23 to 1.27: nowhere */
    ORTCRYPT_ERA_EXPERIMENTAL = 1, /* ORT 1.28 to 1.30: OrtApi::GetExperimentalFunction */
    ORTCRYPT_ERA_STABLE = 2        /* ORT 1.31 on: members of OrtApi, OrtCompileApi and OrtEpApi */
} ortcrypt_era;

/* The six functions with the signatures of the seed document; NULL where the runtime has none. */
typedef struct ortcrypt_ep_context_api {
    ortcrypt_era era;
    OrtStatus *(ORT_API_CALL *SessionOptions_SetEpContextDataReadFunc)(OrtSessionOptions *options,
                                                                       OrtReadNamedBufferFunc read_func, void *state);
    OrtStatus *(ORT_API_CALL *ModelCompilationOptions_SetEpContextDataWriteFunc)(OrtModelCompilationOptions *options,
                                                                                 OrtWriteNamedBufferFunc write_func,
                                                                                 void *state);
    OrtStatus *(ORT_API_CALL *SessionOptions_GetEpContextConfig)(const OrtSessionOptions *session_options,
                                                                 OrtEpContextConfig **config);
    void(ORT_API_CALL *ReleaseEpContextConfig)(OrtEpContextConfig *config);
    OrtStatus *(ORT_API_CALL *EpContextConfig_GetEpContextDataReadFunc)(const OrtEpContextConfig *config,
                                                                        OrtReadNamedBufferFunc *read_func, void **state);
    OrtStatus *(ORT_API_CALL *EpContextConfig_GetEpContextDataWriteFunc)(const OrtEpContextConfig *config,
                                                                         OrtWriteNamedBufferFunc *write_func,
                                                                         void **state);
} ortcrypt_ep_context_api;

/*
 * Finds the six functions of the runtime behind `base` (as CreateEpFactories or OrtGetApiBase gives it). *api is written
 * whole; on a runtime of the first era all pointers are NULL and no error is returned. Never asks for an API version the
 * runtime lacks. An unknown major version is an error. The OrtStatus belongs to the caller.
 */
OrtStatus *ortcrypt_ep_context_api_get(const OrtApiBase *base, ortcrypt_ep_context_api *api);

#ifdef __cplusplus
}
#endif
#endif
