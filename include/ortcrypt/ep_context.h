/*
 * ortcrypt/ep_context.h: EPContext data callbacks for EP authors (and for applications), on every era of ONNX Runtime.
 *
 * Needs ORT's C API headers (API 23 or newer) and libc, nothing else of ortcrypt. Copy this file and ortcrypt_ep_context.c (made
 * by tools/one_ep_context.py and installed beside it) into an EP; docs/ep-authors.md is the walk, ep_context.hpp the C++ side.
 * Call order in an EP: CreateEp: ortcrypt_ep_context_open -> _advertise ; Compile: _read -> _data_release, _write ; ReleaseEp: _close.
 * An application, or an EP that does its own I/O, needs only ortcrypt_ep_context_api_get.
 *
 * The contract between an EP and the application's callbacks, which ORT leaves to them:
 * - One call per name. Each read and each write is one call of the callback, with all the bytes; nothing is cut into chunks, and
 *   nothing is asked twice. An EP that has to write in pieces says so in its documentation, and the application's side must be
 *   told (libortcrypt: replace or append); otherwise a second write of a name with other bytes spoils the whole output there.
 * - Order. Writes of different names have no order; a name is complete when its call has returned NULL. Only after that may the
 *   EP hand out a node that says the name, so whoever reads a compiled model finds every name in it.
 * - Threads. A callback runs on the thread that called _read or _write, before that call returns, and no other thread is made.
 *   One context may be used from several threads at once, and several contexts (EP instances, sessions) may carry the same
 *   callback and state: no lock is held around a callback, so the application's callback must be thread-safe.
 * - Re-entrancy. A callback may itself read or write through another context, or open a session; not through the EP that is
 *   calling it, whose state is its own matter. Call neither _read nor _write while holding a lock the application could need.
 * - Lifetime. The application keeps callback and state valid until the session (or the compilation) is released.
 * - A name is a C string. One that came with a length (an attribute of a node) is first checked with
 *   ortcrypt_ep_context_is_name: after an embedded NUL it would silently be another name.
 */
#ifndef ORTCRYPT_EP_CONTEXT_H
#define ORTCRYPT_EP_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <onnxruntime_c_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ORTCRYPT_EP_CONTEXT_LOCAL: an EP's copy is neither exported nor replaced by another. ortcrypt_ep_context.c defines it. */
#if defined(__GNUC__) && defined(ORTCRYPT_EP_CONTEXT_LOCAL)
#define ORTCRYPT_EP_CONTEXT_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define ORTCRYPT_EP_CONTEXT_API __attribute__((visibility("default")))
#else
#define ORTCRYPT_EP_CONTEXT_API
#endif
/* An entry point: exported by every EP library, as CreateEpFactories is, whatever else is hidden. */
#if defined(__GNUC__)
#define ORTCRYPT_EP_ENTRY_POINT __attribute__((visibility("default")))
#else
#define ORTCRYPT_EP_ENTRY_POINT
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
 * What an EP keeps from CreateEp to ReleaseEp: a snapshot of the session's callbacks and of the options below.
 * Where a context is an argument below it must not be NULL, except for _close, _callbacks and _has_...: without it there is no OrtApi to
 * make an error with, and silence would lose data.
 */
typedef struct ortcrypt_ep_context ortcrypt_ep_context;

/*
 * Call in CreateEp, while `options` live. *out is written on success only. ORT_INVALID_ARGUMENT when `out` or `options` is NULL;
 * `base` must not be NULL. ORT_NOT_IMPLEMENTED before 1.23 and for what is no 1.x.
 * Callbacks that an id in the options names (see below) go before the runtime's own; an id that nobody knows is an error, never
 * a file. On runtimes of the first era a context without an id is without callbacks.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_open(ortcrypt_ep_context **out, const OrtApiBase *base,
                                                            const OrtSessionOptions *options);

/* Call in ReleaseEp. NULL is allowed. */
ORTCRYPT_EP_CONTEXT_API void ortcrypt_ep_context_close(ortcrypt_ep_context *context);

/*
 * A context from a configuration alone: for an EP that keeps the OrtEpContextConfig itself, as ep_context.hpp does. `config` is
 * borrowed during the call only; NULL: no callbacks. There is no ep.context_file_path in it, and _get_options refuses.
 * Otherwise as _open. `config` may also be ORTCRYPT_EP_CONTEXT_AS_CONFIG of a context that was opened with an id.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_open_config(ortcrypt_ep_context **out, const OrtApiBase *base,
                                                                   const OrtEpContextConfig *config);

/* Which callbacks an application set, and what _advertise tells ORT. */
#define ORTCRYPT_EP_CONTEXT_READS 1u
#define ORTCRYPT_EP_CONTEXT_WRITES 2u

/* The callbacks that the application set: 0, READS, WRITES or both. NULL has none. */
ORTCRYPT_EP_CONTEXT_API uint32_t ortcrypt_ep_context_callbacks(const ortcrypt_ep_context *context);

static inline bool ortcrypt_ep_context_has_read(const ortcrypt_ep_context *context)
{
    return (ortcrypt_ep_context_callbacks(context) & ORTCRYPT_EP_CONTEXT_READS) != 0;
}

static inline bool ortcrypt_ep_context_has_write(const ortcrypt_ep_context *context)
{
    return (ortcrypt_ep_context_callbacks(context) & ORTCRYPT_EP_CONTEXT_WRITES) != 0;
}

/* True when the `len` bytes at `name` are one C string: none of them is NUL, and the byte after them is. */
static inline bool ortcrypt_ep_context_is_name(const char *name, size_t len)
{
    return memchr(name, '\0', len) == NULL && name[len] == '\0';
}

/* ---- What else the session options say to EPs. ---- */

/* "0" or "1"; value is false when absent, which is ORT's default for all of them. */
typedef struct ortcrypt_ep_context_flag {
    bool present;
    bool value;
} ortcrypt_ep_context_flag;

/* Texts are NULL when absent or empty, otherwise UTF-8 of at most 4096 bytes; they belong to the context. */
typedef struct ortcrypt_ep_context_options {
    ortcrypt_ep_context_flag enable;     /* ep.context_enable: make EPContext nodes */
    ortcrypt_ep_context_flag embed_mode; /* ep.context_embed_mode: the data into the node, not under a name */
    ortcrypt_ep_context_flag share;      /* ep.share_ep_contexts */
    ortcrypt_ep_context_flag stop_share; /* ep.stop_share_ep_contexts */
    /* ep.enable_weightless; when absent, the deprecated ep.enable_weightless_ep_context_nodes, which counts with `enable` only */
    ortcrypt_ep_context_flag weightless;
    const char *file_path;         /* ep.context_file_path: the compiled model's; no folder */
    const char *node_name_prefix;  /* ep.context_node_name_prefix */
    const char *source_model_path; /* ep.context_source_model_path; no folder */
} ortcrypt_ep_context_options;

/*
 * Reads them all from the snapshot that _open took. "1" is on and "0" off, as QNN and OpenVINO have it; any other value, which
 * those take for off, is ORT_INVALID_ARGUMENT with the key and the value in the sentence. *out is written on success only.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_get_options(const ortcrypt_ep_context *context,
                                                                   ortcrypt_ep_context_options *out);

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
 * and cannot leave it, whatever is swapped meanwhile: links are followed when they lead to where they may, an absolute one when
 * it says the folder's path (as it was given, or its real one). Without `graph` any path is opened. Either way only a regular
 * file is read; the type is decided on the opened handle, and nothing blocks. Names of files are 1 to 4096 bytes of UTF-8.
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
 * graph's model path) and cannot leave it; an existing link is written through when what it leads to is a file in there, and
 * refused when it dangles or leads out. Without `graph` any path is used, and a link is refused. An existing file is
 * replaced; a folder or special file is refused.
 */
ORTCRYPT_EP_CONTEXT_API OrtStatus *ortcrypt_ep_context_write(const ortcrypt_ep_context *context, const char *name,
                                                             const char *fallback_name, const OrtGraph *graph,
                                                             const void *data, size_t len);

/* ---- Callbacks by id: how libortcrypt hands its callbacks over on any runtime, those without callbacks included. ---- */

/*
 * The session config entry that names callbacks: 32 lower-case hex digits from getrandom(2), good until what they belong to is
 * closed. Empty is absent. Only libortcrypt makes ids, and only through an attached registry can they be used.
 */
#define ORTCRYPT_EP_CONTEXT_ID_KEY "ortcrypt.ep_context_id"
#define ORTCRYPT_EP_CONTEXT_ID_SIZE 33 /* with the final NUL */

/*
 * What libortcrypt knows by id; valid for the life of the process. Thread-safe. Every call looks the id up anew and refuses one that
 * is unknown or closed; what is behind an id stays while a call runs. `api`: any version; makes the OrtStatus of such a refusal.
 */
typedef struct ortcrypt_ep_registry {
    size_t struct_size; /* sizeof(ortcrypt_ep_registry); members are only ever appended */
    uint32_t(ORT_API_CALL *callbacks)(const char *id); /* 0: unknown or closed; else READS, WRITES or both */
    OrtStatus *(ORT_API_CALL *read)(const char *id, const OrtApi *api, const char *name, OrtAllocator *allocator, void **buffer,
                                    size_t *data_size);
    OrtStatus *(ORT_API_CALL *write)(const char *id, const OrtApi *api, const char *name, const void *buffer,
                                     size_t buffer_num_bytes);
} ortcrypt_ep_registry;

/*
 * Entry point of an EP library (of the bridge too): libortcrypt calls it after RegisterExecutionProviderLibrary. The source file has
 * it; an EP's list of exported symbols must name it beside CreateEpFactories. An EP that takes of this header only
 * ortcrypt_ep_context_api_get and does its own I/O would promise what it does not do: it defines ORTCRYPT_EP_CONTEXT_NO_ATTACH.
 * True when ids of `registry` can be used from now on; again is allowed. False: it is too old, or there are more than eight.
 */
ORTCRYPT_EP_ENTRY_POINT bool ortcrypt_ep_attach(const ortcrypt_ep_registry *registry);

/*
 * A context that has its callbacks by id, as an OrtEpContextConfig for this header's functions (no other accepts it): odd, as no
 * address of ORT's is. Valid until the context is closed.
 */
#define ORTCRYPT_EP_CONTEXT_AS_CONFIG(context) ((OrtEpContextConfig *)((uintptr_t)(context) | 1))

#ifdef __cplusplus
}
#endif
#endif
