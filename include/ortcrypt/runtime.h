/*
 * ortcrypt/runtime.h: one ONNX Runtime in this process.
 *
 * Call order: open or adopt -> register_ep -> compile / sessions -> close (after everything made with it).
 * Threads: calls on one runtime may run concurrently, except close.
 * Several in one process: different ONNX Runtimes live side by side, each with its own OrtEnv, EPs and sessions; nothing of one may
 * be given to another. One library file is one runtime by whatever path (it has one OrtEnv, so what is registered through one
 * ortcrypt_runtime is there in the other); a copy of the file is another. An EP library serves one of them at a time: see register_ep.
 */
#ifndef ORTCRYPT_RUNTIME_H
#define ORTCRYPT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include <onnxruntime_c_api.h>

#include "ortcrypt/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortcrypt_runtime ortcrypt_runtime;

typedef struct ortcrypt_runtime_options {
    size_t struct_size;
    bool accept_telemetry; /* go on although a runtime known to write model metadata to disk may do so */
    int log_level;         /* OrtLoggingLevel + 1 of the OrtEnv made here, 0: errors only; its lines are dropped, never printed */
    const ortcrypt_monitor *monitor; /* copied; it hears of the bridge when an EP is registered, until close */
    const char *probe; /* the program ortcrypt-probe, which tries out execution providers; NULL: found beside libortcrypt */
    unsigned probe_timeout_ms; /* for one try; 0: 120000 */
    const char *bridge; /* libortcrypt_bridge.so (bridge.h); NULL: found beside libortcrypt */
} ortcrypt_runtime_options;

/*
 * Loads `library` (path of libonnxruntime.so.X) and makes an OrtEnv. NULL: the one that the process is linked with or opened for
 * all to see; else the only one that was opened for its owner alone, ORTCRYPT_E_INVALID when there are several of these; else
 * "libonnxruntime.so". ORTCRYPT_E_UNSUPPORTED for a version before 1.23 or from 2 on, for one whose callback functions do not answer as
 * they should (docs/runtimes.md; one that is newer than any known is asked in a forked child process), or when
 * ORT_DISABLE_TELEMETRY=1 is not in the environment of a runtime that needs it. The library stays loaded until the process ends.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_runtime_open(ortcrypt_runtime **runtime, const char *library,
                                                                     const ortcrypt_runtime_options *options,
                                                                     ortcrypt_error *err);

/* The same for the runtime an application already has. `env` may be NULL (one is made); else it stays the caller's. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_runtime_adopt(ortcrypt_runtime **runtime, const OrtApiBase *base,
                                                                      OrtEnv *env, const ortcrypt_runtime_options *options,
                                                                      ortcrypt_error *err);

/* ORTCRYPT_E_BUSY while sessions, inputs or outputs made with it are open. NULL is allowed. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_runtime_close(ortcrypt_runtime *runtime, ortcrypt_error *err);

/* "1.32.0"; valid until close. */
ORTCRYPT_API const char *ortcrypt_runtime_version(const ortcrypt_runtime *runtime);

/* The OrtApi (of the highest version both sides know) and the OrtEnv; valid until close. */
ORTCRYPT_API const OrtApi *ortcrypt_runtime_api(const ortcrypt_runtime *runtime);
ORTCRYPT_API OrtEnv *ortcrypt_runtime_env(const ortcrypt_runtime *runtime);

/*
 * Registers an EP library under `name` (the path is made absolute first: ORT would resolve it against its own folder), behind the
 * bridge where the EP of that name needs it on this runtime: the monitor's notice says so, and name, devices and options stay the EP's.
 * Registering the same name and path again is allowed and does nothing; so it does where the OrtEnv has the library already.
 * ORTCRYPT_E_UNSUPPORTED when the library serves another ONNX Runtime in this process: it is loaded only once, and most EPs keep what
 * they were given in variables, which the second would take from the first (the reference EP keeps nothing and serves all).
 * Only what was registered through this library is known. What an adopted OrtEnv was given stays in it after close.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_runtime_register_ep(ortcrypt_runtime *runtime, const char *name,
                                                                            const char *library, ortcrypt_error *err);

typedef struct ortcrypt_describe_options {
    size_t struct_size;
    bool probe; /* try out every device of every EP that compiles, with a model that is no secret, in a program that can write no file */
    const char *const *ep_option_keys; /* for the EPs while they are tried out */
    const char *const *ep_option_values;
    size_t ep_option_count;
} ortcrypt_describe_options;

/*
 * Runtime, era of the callback API, EP devices, each EP's route and what the machine offers, as one JSON object (ortcrypt_free(json, 0)).
 * `options` may be NULL. An EP that could not be tried out is reported as refused, with the reason: that is no error.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_runtime_describe(ortcrypt_runtime *runtime,
                                                                         const ortcrypt_describe_options *options, char **json,
                                                                         ortcrypt_error *err);

/*
 * An error message of ORT (NULL: none) as one line in text[size], cut to fit: blanks joined, and without the places in ORT's own
 * source and the C++ functions that its messages begin with.
 */
ORTCRYPT_API void ortcrypt_ort_words(char *text, size_t size, const char *message);

#ifdef __cplusplus
}
#endif
#endif
