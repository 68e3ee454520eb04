/*
 * ortcrypt/ep_context.h: EPContext data callbacks for EP authors (and for applications), on every era of ONNX Runtime.
 *
 * Needs ORT's C API headers (API 23 or newer) and libc, nothing else of ortcrypt; copy this file and src/ep_context/ into an EP.
 * Call order in an EP: CreateEp: ortcrypt_ep_context_open -> _advertise ; Compile: _read -> _data_release, _write ; ReleaseEp: _close.
 * An application, or an EP that does its own I/O, needs only ortcrypt_ep_context_api_get.
 * Threads: everything here is thread-safe as long as the arguments are; one ortcrypt_ep_context may be used from several threads.
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

/* An EP that copies the code defines ORTCRYPT_EP_CONTEXT_LOCAL, so that its copy is neither exported nor replaced by another. */
#if defined(__GNUC__) && defined(ORTCRYPT_EP_CONTEXT_LOCAL)
#define ORTCRYPT_EP_CONTEXT_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define ORTCRYPT_EP_CONTEXT_API __attribute__((visibility("default")))
#else
#define ORTCRYPT_EP_CONTEXT_API
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
 * runtime lacks. An unknown major version is an error; should that runtime not even answer GetApi(1), no OrtStatus can be
 * made, and all pointers are NULL. The OrtStatus belongs to the caller.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_api_get(const OrtApiBase *base, ortcrypt_ep_context_api *api);

/* ---- For EPs: the callback when the application set one, else a file. ---- */

/*
 * What an EP keeps from CreateEp to ReleaseEp: a snapshot of the session's callbacks and of ep.context_file_path.
 * Where a context is an argument below it must not be NULL, except for _close and _has_...: without it there is no OrtApi to
 * make an error with, and silence would lose data.
 */
typedef struct ortcrypt_ep_context ortcrypt_ep_context;

/*
 * Call in CreateEp, while `options` live. *out is written on success only. ORT_INVALID_ARGUMENT when `out` or `options` is NULL;
 * `base` must not be NULL. ORT_NOT_IMPLEMENTED before 1.23 and for what is no 1.x.
 * On runtimes of the first era the context is without callbacks.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_open(ortcrypt_ep_context **out, const OrtApiBase *base,
                                                            const OrtSessionOptions *options);

/* Call in ReleaseEp. NULL is allowed. */
ORTCRYPT_EP_CONTEXT_API void ortcrypt_ep_context_close(ortcrypt_ep_context *context);

/* True when the application set that callback. */
ORTCRYPT_EP_CONTEXT_API bool ortcrypt_ep_context_has_read(const ortcrypt_ep_context *context);
ORTCRYPT_EP_CONTEXT_API bool ortcrypt_ep_context_has_write(const ortcrypt_ep_context *context);

/* What _advertise tells ORT. */
#define ORTCRYPT_EP_CONTEXT_READS 1u
#define ORTCRYPT_EP_CONTEXT_WRITES 2u

/*
 * Since 1.31 ORT refuses to use callbacks with an EP that does not say it calls them. The answer is member 26 of OrtEp, which
 * older headers lack: allocate the EP's struct with this room (OrtEp, then zeroed bytes up to ORTCRYPT_EP_ROOM).
 */
#define ORTCRYPT_EP_ROOM (27 * sizeof(void *))

/*
 * Call in CreateEp, last: sets that member and raises ep->ort_version_supported to 31 where the runtime reads it, and does
 * nothing on older runtimes. `room` is the number of bytes at `ep` that are the EP's (members ORT does not find set must be
 * zero). ORT_INVALID_ARGUMENT when `room` is below ORTCRYPT_EP_ROOM or `flags` is none of READS, WRITES, both.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_advertise(const ortcrypt_ep_context *context, OrtEp *ep,
                                                                 size_t room, uint32_t flags);

/* The bytes of one read. Start with ORTCRYPT_EP_CONTEXT_DATA_INIT; empty after any error. `allocator` must outlive it. */
typedef struct ortcrypt_ep_context_data {
    const void *data;        /* `size` bytes; may be NULL when size is 0 */
    size_t size;             /* bytes */
    OrtAllocator *allocator; /* not owned: frees `memory` */
    void *memory;
} ortcrypt_ep_context_data;

#define ORTCRYPT_EP_CONTEXT_DATA_INIT {NULL, 0, NULL, NULL}

/* Frees the bytes and makes *data empty. NULL and empty are allowed. */
ORTCRYPT_EP_CONTEXT_API void ortcrypt_ep_context_data_release(ortcrypt_ep_context_data *data);

/*
 * Reads the EPContext data called `name`.
 * With a read callback: it is called once with `name` as it is and `allocator`; its buffer is adopted, not copied. Its error is
 * returned unchanged, and no file is opened.
 * Without: a file, read straight into a buffer of `allocator`. With `graph` (the model says the name, so it is not trusted) the
 * name is relative to the model's folder (that of the graph's model path; of ep.context_file_path for a model from a buffer)
 * and cannot leave it. Without `graph` any path is opened. Either way only a regular file is read; the type is decided on
 * the opened handle, and nothing blocks.
 * allocator: NULL for ORT's default one. max_len: the largest size accepted, in bytes; 0 for no limit.
 * out: must be empty; written on success only.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_read(const ortcrypt_ep_context *context, const char *name,
                                                            const OrtGraph *graph, OrtAllocator *allocator,
                                                            size_t max_len, ortcrypt_ep_context_data *out);

/*
 * Writes `len` bytes under `name`, whole.
 * With a write callback: it is called once with `name` as it is; its error is returned unchanged, and no file is made.
 * Without: a file called `fallback_name` (NULL: `name`), written under a temporary name, fsynced and renamed, so that a reader
 * sees the old bytes or the new. With `graph` the name is relative to the folder of ep.context_file_path (else to that of the
 * graph's model path) and cannot leave it; without `graph` any path is used. An existing file is replaced; an existing
 * link, folder or special file is refused.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_write(const ortcrypt_ep_context *context, const char *name,
                                                             const char *fallback_name, const OrtGraph *graph,
                                                             const void *data, size_t len);

#ifdef __cplusplus
}
#endif
#endif
