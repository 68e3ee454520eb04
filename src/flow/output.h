/*
 * flow/output.h: a compiled variant while it is made. Bytes come from ORT's and the EP's calls of the callbacks, on any of
 * their threads, and go encrypted into the transaction; nothing is visible before the commit.
 *
 * Call order: ortcrypt_output_open -> callbacks -> oc_output_finish_parts -> oc_output_record -> oc_output_check -> commit.
 */
#ifndef OC_FLOW_OUTPUT_H
#define OC_FLOW_OUTPUT_H

#include <stdatomic.h>

#include "flow/flow.h"

#define OC_INITIALIZER_MIN_LEN 1024 /* bytes: unless the caller says otherwise */
#define OC_DIGEST_LEN 32

/* One EPContext blob. Its lock is held while it is written: distinct names are written side by side. */
typedef struct oc_blob {
    char *name;
    pthread_mutex_t lock;
    oc_asset_writer *writer; /* open between writes where a later write may replace or append */
    bool finished;           /* `id` is valid */
    uint8_t id[OC_ASSET_ID_LEN];
    uint8_t digest[OC_DIGEST_LEN]; /* ORTCRYPT_REWRITE_SAME: SHA-256 of the first write */
    uint64_t len;
    bool referenced; /* by an EPContext node */
    struct oc_blob *next;
} oc_blob;

typedef struct oc_init {
    oc_tensor tensor; /* owned strings */
    char *location;
} oc_init;

struct ortcrypt_output {
    ortcrypt_runtime *runtime; /* held */
    oc_txn *txn;
    ortcrypt_bundle *origin; /* where the source variant is: the transaction's view, or the bundle that a cache entry is made for */
    oc_registration *registration; /* of the write callback, where the EP takes it by id */
    oc_supply *source; /* until the variant is recorded: the manifest's arrays move then */
    ortcrypt_compile_options options; /* strings below are copies; keys and values of EP options are in `ep_options` */
    char *variant_id;
    char *ep;
    oc_pair *ep_options;
    size_t ep_option_count;
    const char **option_keys; /* the same as arrays, for ORT */
    const char **option_values;
    const OrtEpDevice *device; /* NULL until known */

    pthread_mutex_t lock; /* guards everything below but the inside of a blob */
    oc_blob *blobs;
    size_t blob_count;
    oc_init *inits;
    size_t init_count;
    oc_asset_writer *model;
    bool model_finished;
    uint8_t model_id[OC_ASSET_ID_LEN];
    uint64_t model_len;
    bool failed;
    ortcrypt_error failure; /* of the first callback that failed */

    bool committed; /* or tried to */
    oc_variant *variant; /* in the transaction's manifest, once recorded */
    ortcrypt_compile_result result;
};

/* compile.c: CompileModel and what comes before it. */
ortcrypt_status oc_output_compile(ortcrypt_output *output, ortcrypt_error *err);

/* ortcrypt_output_open; `own`: the application calls CompileModel itself. */
ortcrypt_status oc_output_open(ortcrypt_output **output, ortcrypt_runtime *runtime, const char *bundle_path,
                               const ortcrypt_keyring *keyring, const ortcrypt_compile_options *options, bool own,
                               ortcrypt_error *err);

/* One whose variant goes to the cache entry at `path` instead of the bundle `origin`, which must outlive it. */
ortcrypt_status oc_output_open_local(ortcrypt_output **output, ortcrypt_runtime *runtime, ortcrypt_bundle *origin, const char *path,
                                     const uint8_t *machine_key, const ortcrypt_compile_options *options, ortcrypt_error *err);

/* callbacks.c: what the callbacks of compile.h do, on an output that is open. */
OrtStatus *oc_output_write_named(ortcrypt_output *output, const char *name, const void *buffer, size_t buffer_num_bytes);
OrtStatus *oc_output_write_model(ortcrypt_output *output, const void *buffer, size_t buffer_num_bytes);
OrtStatus *oc_output_location(ortcrypt_output *output, const char *initializer_name, const OrtValue *initializer_value,
                              const OrtExternalInitializerInfo *external_info, OrtExternalInitializerInfo **new_external_info);

/* Remembers the first failure; returns it as an OrtStatus for ORT. */
OrtStatus *oc_output_refuse(ortcrypt_output *output, ortcrypt_status st, const ortcrypt_error *err);
/* ORTCRYPT_OK, or the first failure of a callback. */
ortcrypt_status oc_output_failure(ortcrypt_output *output, ortcrypt_error *err);

/* record.c: ends every asset and adds the variant to the transaction's manifest. */
ortcrypt_status oc_output_record(ortcrypt_output *output, ortcrypt_error *err);
/* check.c: ORTCRYPT_E_INPUT, "<EP> compiled no node of this model". */
ortcrypt_status oc_output_none_compiled(const ortcrypt_output *output, ortcrypt_error *err);
/* check.c: the compiled model against what was written; fills counts of the result. */
ortcrypt_status oc_output_check(ortcrypt_output *output, ortcrypt_error *err);
/* check.c: opens a session of the pending variant. */
ortcrypt_status oc_output_load(ortcrypt_output *output, ortcrypt_error *err);

#endif
