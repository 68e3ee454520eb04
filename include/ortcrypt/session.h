/*
 * ortcrypt/session.h: from a bundle to a running OrtSession.
 *
 * Call order: session_open -> session_ort (run it) -> session_close ; or, for an application that creates its own session:
 * inputs_open (prepares its OrtSessionOptions) -> inputs_model -> CreateSessionFromArray -> ... -> ReleaseSession -> inputs_close.
 * Threads: an open session may be run from several threads; open and close belong to one thread at a time.
 */
#ifndef ORTCRYPT_SESSION_H
#define ORTCRYPT_SESSION_H

#include "ortcrypt/bundle.h"
#include "ortcrypt/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortcrypt_session ortcrypt_session;
typedef struct ortcrypt_inputs ortcrypt_inputs;

typedef struct ortcrypt_session_options {
    size_t struct_size;
    const char *variant; /* id; NULL: the newest compiled variant that fits `ep`, or the source variant without `ep`. The source
                            variant named together with `ep`: the EP compiles it in memory, each time */
    const char *ep;      /* execution provider name as GetEpDevices gives it; NULL: the CPU EP */
    const char *ep_library; /* registered under the EP's name first; NULL: registered already */
    const char *const *ep_option_keys;
    const char *const *ep_option_values;
    size_t ep_option_count;
    /* Cloned and added to; NULL: ORT's defaults. Entries that make ORT write plaintext are refused; an optimized model file
       and profiling, which cannot be read back, are switched off. It must not have an execution provider appended nor a policy that
       selects one: ORT does not show them, so their route is not checked. Name the EP in `ep`. */
    const OrtSessionOptions *base;
    const ortcrypt_monitor *monitor;
    /*
     * Compiling just in time, with `ep` and without `variant`: when no variant of the bundle fits (or the EP would rather have it
     * compiled again), the source is compiled once into an entry of the folder `cache` (made when missing, 0700), encrypted for
     * this machine alone, and loaded from there next time. Where the cache cannot be written, or another process has been compiling
     * for cache_wait_ms, the EP compiles the source in memory, with a notice. Opening still never writes to the bundle.
     */
    const char *cache;            /* NULL: ORTCRYPT_E_NOT_FOUND when no variant fits */
    const char *machine_key_file; /* with `cache`: this machine's key, made (0600) when missing; or: */
    const void *machine_key;      /* its machine_key_len (32) bytes, copied */
    size_t machine_key_len;
    uint64_t cache_max_len;       /* bytes below `cache`, the entry unused for longest goes first; 0: 4 GiB */
    unsigned cache_wait_ms;       /* 0: 120000 */
    /*
     * External weights are decrypted when they are first touched, and never all at once: the session is there as soon as with a
     * plaintext file that is mapped. On ONNX Runtime 1.31 and newer, with the CPU EP, where userfaultfd is allowed; elsewhere the plan
     * (ortcrypt_session_plan) says why not. Switches prepacking off unless `base` says something about it. DANGER: weights that were
     * altered since are found when they are touched, and nothing but a signal can stop the thread that touches them: SIGBUS (SIGSEGV
     * before Linux 6.6) ends the process. They are never used.
     */
    bool lazy;
} ortcrypt_session_options;

/* Opens `bundle` on `runtime`. Both must outlive the session. *session is NULL on failure and nothing is left behind. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_session_open(ortcrypt_session **session, ortcrypt_runtime *runtime,
                                                                     ortcrypt_bundle *bundle,
                                                                     const ortcrypt_session_options *options,
                                                                     ortcrypt_error *err);

/* The OrtSession inside; owned by `session`, never released by the caller. */
ORTCRYPT_API OrtSession *ortcrypt_session_ort(const ortcrypt_session *session);

/*
 * How each asset reached ORT (route, bytes, why), and the bytes that loading was expected to need at most at a time
 * ("expected_peak": ours and ONNX Runtime's, not an execution provider's own), as one JSON object (ortcrypt_free(json, 0)).
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_session_plan(const ortcrypt_session *session, char **json,
                                                                     ortcrypt_error *err);

/* Releases the OrtSession first, then wipes and frees the memory behind it. NULL is allowed. */
ORTCRYPT_API void ortcrypt_session_close(ortcrypt_session *session);

/*
 * Prepares the caller's own `session_options` for a variant: the EPContext read callback is set, or named by id (ep_context.h); decrypted weights go into the model
 * (ortcrypt_inputs_model), where ORT has no reason to look for files and keeps no address of ours. From 2 GiB on no model can hold
 * them: then they are added to the options, and ORT copies them while the session is created. The EP is the caller's to append.
 * Keep *inputs open until the session was created; a session that lives on after ortcrypt_inputs_close runs as before.
 * Costs what ORT's own copy costs: model and weights are there twice until ortcrypt_inputs_close. ortcrypt_session_open does with once.
 * ORTCRYPT_E_UNSUPPORTED for a weightless variant: its weights must outlive the session.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_inputs_open(ortcrypt_inputs **inputs, ortcrypt_runtime *runtime,
                                                                    ortcrypt_bundle *bundle,
                                                                    OrtSessionOptions *session_options,
                                                                    const ortcrypt_session_options *options,
                                                                    ortcrypt_error *err);

/* The decrypted model for CreateSessionFromArray (or SetInputModelFromBuffer); owned by `inputs`. */
ORTCRYPT_API void ortcrypt_inputs_model(const ortcrypt_inputs *inputs, const void **model, size_t *model_len);

/* Wipes and frees. NULL is allowed. */
ORTCRYPT_API void ortcrypt_inputs_close(ortcrypt_inputs *inputs);

/*
 * OrtReadNamedBufferFunc over an ortcrypt_inputs (the state): the EPContext asset `name`, decrypted straight into a buffer
 * of `allocator`. Thread-safe. ortcrypt_inputs_open sets it; for applications that register it themselves.
 */
ORTCRYPT_API OrtStatus *ORT_API_CALL ortcrypt_read_named(void *inputs, const char *name, OrtAllocator *allocator,
                                                         void **buffer, size_t *data_size);

#ifdef __cplusplus
}
#endif
#endif
