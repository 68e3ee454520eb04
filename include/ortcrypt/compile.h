/*
 * ortcrypt/compile.h: compiling a bundle's model with an execution provider, encrypted from the first byte.
 *
 * Call order: compile (all of it) ; or, for an application that calls CompileModel itself:
 * output_open -> register write_named, write_model, initializer_location with the output as state -> CompileModel -> output_commit -> output_close.
 * Threads: the callbacks are thread-safe; the rest belongs to one thread at a time.
 */
#ifndef ORTCRYPT_COMPILE_H
#define ORTCRYPT_COMPILE_H

#include "ortcrypt/bundle.h"
#include "ortcrypt/runtime.h"
#include "ortcrypt/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortcrypt_output ortcrypt_output;

/* What a second write of one name in one compile means. */
typedef enum ortcrypt_rewrite {
    ORTCRYPT_REWRITE_SAME = 0,    /* the same bytes are accepted, other bytes refused */
    ORTCRYPT_REWRITE_REPLACE = 1, /* the last write counts */
    ORTCRYPT_REWRITE_APPEND = 2   /* for an EP that documents chunks: bytes are appended */
} ortcrypt_rewrite;

/* What ORT's graph optimizer does before the EP sees the graph. */
typedef enum ortcrypt_optimize {
    ORTCRYPT_OPTIMIZE_DEFAULT = 0, /* what ORT does when it is not told: nothing */
    ORTCRYPT_OPTIMIZE_NONE = 1,
    ORTCRYPT_OPTIMIZE_BASIC = 2, /* folds constants and drops what does nothing; some EPs take a graph whole only so */
    ORTCRYPT_OPTIMIZE_EXTENDED = 3,
    ORTCRYPT_OPTIMIZE_ALL = 4
} ortcrypt_optimize;

typedef struct ortcrypt_compile_options {
    size_t struct_size;
    const char *variant; /* id the new variant gets (1 to 64 of [A-Za-z0-9._-]); NULL: made from the EP's name */
    const char *ep;      /* required; the variant is recorded, checked and later chosen for it */
    const char *ep_library;
    const char *const *ep_option_keys;
    const char *const *ep_option_values;
    size_t ep_option_count;
    bool embed;               /* EPContext embed mode 1: blobs inside the model */
    bool allow_none_compiled; /* accept a result without EPContext node */
    bool no_load_check;       /* the device is not here: record the variant as unverified */
    ortcrypt_rewrite rewrite;
    size_t initializer_min_len; /* bytes from which an initializer becomes an asset of its own; 0: 1024 */
    const char *out_path; /* write a new bundle there (all of the old one and the new variant); NULL: into the bundle */
    const ortcrypt_open_options *open; /* what the bundle must satisfy */
    const OrtSessionOptions *base;     /* cloned and added to; NULL: ORT's defaults */
    const ortcrypt_monitor *monitor;
    /*
     * Leave weights in the source variant (ORT 1.29 on, and an EP that supports it): they are decrypted with the variant at every
     * load and stay in memory as long as the session. An application with its own CompileModel also calls
     * ModelCompilationOptions_SetWeightlessEnabled and, before, SessionOptionsSetWeightlessSourceModelBuffer with the source model.
     */
    bool weightless;
    ortcrypt_optimize optimize;
    /*
     * For ortcrypt_output_open: the application's own options, from which it makes its OrtModelCompilationOptions afterwards. EPs that
     * take ortcrypt's callbacks by id (ep_context.h; the bridge) find them there, on runtimes without callbacks too (before 1.28, where
     * this must be set unless `embed` is). What would write plaintext in it is refused. ortcrypt_compile does not look at it.
     */
    OrtSessionOptions *session_options;
} ortcrypt_compile_options;

typedef struct ortcrypt_compile_result {
    char variant[65];
    size_t node_count;       /* nodes of the compiled model's main graph */
    size_t ep_context_count; /* EPContext nodes among them */
    size_t blob_count;       /* EPContext assets */
    uint64_t blob_len;       /* bytes in them */
    size_t initializer_count; /* initializers stored as assets of their own */
    bool verified;
    ortcrypt_bundle_info bundle;
} ortcrypt_compile_result;

/*
 * Compiles the source variant of the bundle at `bundle_path` and commits the result as a new variant. On failure the
 * bundle is as before. `result` may be NULL.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_compile(ortcrypt_runtime *runtime, const char *bundle_path,
                                                                const ortcrypt_keyring *keyring,
                                                                const ortcrypt_compile_options *options,
                                                                ortcrypt_compile_result *result, ortcrypt_error *err);

/* Begins a new compiled variant; holds the bundle's write lock until closed. `options` as above (embed, variant, rewrite, ...). */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_output_open(ortcrypt_output **output, ortcrypt_runtime *runtime,
                                                                    const char *bundle_path,
                                                                    const ortcrypt_keyring *keyring,
                                                                    const ortcrypt_compile_options *options,
                                                                    ortcrypt_error *err);

/* Checks what was written (nodes against blobs, external tensors, load check) and publishes it. Called once. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_output_commit(ortcrypt_output *output,
                                                                      ortcrypt_compile_result *result,
                                                                      ortcrypt_error *err);

/* Without a commit before it, everything written is removed. NULL is allowed. */
ORTCRYPT_API void ortcrypt_output_close(ortcrypt_output *output);

/* OrtWriteNamedBufferFunc: one EPContext blob. State: the ortcrypt_output. */
ORTCRYPT_API OrtStatus *ORT_API_CALL ortcrypt_write_named(void *output, const char *name, const void *buffer,
                                                          size_t buffer_num_bytes);

/* OrtWriteBufferFunc: the next bytes of the compiled model. State: the ortcrypt_output. */
ORTCRYPT_API OrtStatus *ORT_API_CALL ortcrypt_write_model(void *output, const void *buffer, size_t buffer_num_bytes);

/* OrtGetInitializerLocationFunc: stores a large initializer as an asset of its own. State: the ortcrypt_output. */
ORTCRYPT_API OrtStatus *ORT_API_CALL ortcrypt_initializer_location(void *output, const char *initializer_name,
                                                                   const OrtValue *initializer_value,
                                                                   const OrtExternalInitializerInfo *external_info,
                                                                   OrtExternalInitializerInfo **new_external_info);

#ifdef __cplusplus
}
#endif
#endif
