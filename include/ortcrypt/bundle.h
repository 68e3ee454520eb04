/*
 * ortcrypt/bundle.h: encrypted bundles on disk.
 *
 * Call order: encrypt (makes one) ; open -> describe / read / use with sessions -> close ; verify ; decrypt.
 * Threads: an open bundle may be used from several threads. Opening never writes to it.
 * Format: docs/format.md.
 */
#ifndef ORTCRYPT_BUNDLE_H
#define ORTCRYPT_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ortcrypt/error.h"
#include "ortcrypt/keyring.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortcrypt_bundle ortcrypt_bundle;

/* Zero everything and set struct_size = sizeof(the struct); NULL in place of options means all defaults. */
typedef struct ortcrypt_open_options {
    size_t struct_size;
    uint64_t max_asset_len; /* bytes; a larger asset is refused; 0: physical memory */
    unsigned threads;       /* decrypting threads; 0: min(cores, 8) */
    const char *bundle_id;  /* 32 lower hex: the id that must be found, or NULL */
    const char *pin;        /* 64 lower hex: SHA-256 of the manifest file (M) that must be found, or NULL */
    uint64_t min_sequence;  /* lowest sequence accepted; 0: any */
    const ortcrypt_monitor *monitor;
} ortcrypt_open_options;

/*
 * Whether embedded weights (initializers of the main graph, 4096 bytes and more each) move out of the model into a file of the
 * bundle's own. ONNX Runtime then borrows them instead of parsing and copying them; decrypting gives the original file all the same.
 */
typedef enum ortcrypt_split {
    ORTCRYPT_SPLIT_LARGE = 0, /* when they are more than 64 MiB together */
    ORTCRYPT_SPLIT_ALWAYS = 1,
    ORTCRYPT_SPLIT_NEVER = 2
} ortcrypt_split;

typedef struct ortcrypt_encrypt_options {
    size_t struct_size;
    const char *const *extra_files; /* paths of files shipped along; stored under their last path component */
    size_t extra_count;
    const char *const *label_keys; /* labels kept in the manifest (UTF-8, 1 to 256 bytes each) */
    const char *const *label_values;
    size_t label_count;
    unsigned threads; /* 0: min(cores, 8) */
    const ortcrypt_monitor *monitor;
    ortcrypt_split split;
} ortcrypt_encrypt_options;

/* What encrypt, compile and open report. Lengths are bytes. */
typedef struct ortcrypt_bundle_info {
    char bundle_id[33];   /* lower hex + NUL */
    char manifest_id[65]; /* M, lower hex + NUL */
    uint64_t sequence;
    size_t asset_count;
    size_t variant_count;
    uint64_t plain_len; /* sum over all assets */
} ortcrypt_bundle_info;

/* One variant. Strings belong to the bundle and live until it is closed; absent ones are "". */
typedef struct ortcrypt_variant_info {
    const char *id;
    const char *kind;          /* "source" or "compiled" */
    const char *ep;            /* execution provider that made it */
    const char *ep_version;
    const char *runtime;       /* ONNX Runtime that made it */
    const char *compatibility; /* the EP's own compatibility string */
    int embed;                 /* EPContext embed mode 0 or 1; -1 for a source */
    bool verified;             /* false: compiled with the load check left out */
    size_t part_count;
    size_t tensor_count;
    uint64_t plain_len;
} ortcrypt_variant_info;

/*
 * Encrypts an ONNX model, its external data files and `extra_files` into a new bundle at `bundle_path`, which must not
 * exist. Symbolic links among the inputs are followed. `keyring` needs a recipient, a passphrase or a wrap callback.
 * Nothing is left at `bundle_path` on failure. `info` (may be NULL) is written on success.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_encrypt(const char *model_path, const char *bundle_path,
                                                                const ortcrypt_keyring *keyring,
                                                                const ortcrypt_encrypt_options *options,
                                                                ortcrypt_bundle_info *info, ortcrypt_error *err);

/* Opens the bundle: key file, manifest and what `options` demand are checked; assets are when read. *bundle NULL on failure. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_open(ortcrypt_bundle **bundle, const char *path,
                                                                    const ortcrypt_keyring *keyring,
                                                                    const ortcrypt_open_options *options,
                                                                    ortcrypt_error *err);

/* Wipes keys and closes. ORTCRYPT_E_BUSY, and nothing closed, while sessions or inputs of it are open. NULL is allowed. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_close(ortcrypt_bundle *bundle, ortcrypt_error *err);

/* What the manifest says of the whole bundle; *info is always written. */
ORTCRYPT_API void ortcrypt_bundle_get_info(const ortcrypt_bundle *bundle, ortcrypt_bundle_info *info);

/* Variant `index` of info.variant_count, in the order they were added. ORTCRYPT_E_NOT_FOUND beyond the last. */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_get_variant(const ortcrypt_bundle *bundle, size_t index,
                                                                           ortcrypt_variant_info *info,
                                                                           ortcrypt_error *err);

/*
 * Reads one file that was shipped along (role `extra`) by its name, whole: *data is a new buffer of *len bytes
 * (ortcrypt_free(data, len); NULL for an empty file).
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_read_extra(ortcrypt_bundle *bundle, const char *name,
                                                                          void **data, uint64_t *len,
                                                                          ortcrypt_error *err);

/*
 * What a bundle says of itself, as one JSON object in *json (ortcrypt_free(json, 0)). With keyring NULL: what is visible
 * without a key (format, recipients' types, sizes, signature present). With one: the manifest's content too.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_describe(const char *path, const ortcrypt_keyring *keyring,
                                                                        const ortcrypt_open_options *options,
                                                                        char **json, ortcrypt_error *err);

/*
 * With a keyring: opens and authenticates every byte. Without (NULL): proves only that the storage is intact (object
 * names against their content). *json (may be NULL) receives what was checked; every damaged asset is listed there.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_verify(const char *path, const ortcrypt_keyring *keyring,
                                                                      const ortcrypt_open_options *options, char **json,
                                                                      ortcrypt_error *err);

/*
 * Writes the original files of the source variant (model, external data, extra files) below `out_dir`, which is made and
 * must not exist. Names that are no plain relative path become asset-<id>.bin (notice). Each file is checked whole
 * before it gets its name; on failure nothing is left.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_bundle_decrypt(ortcrypt_bundle *bundle, const char *out_dir,
                                                                       const ortcrypt_monitor *monitor,
                                                                       ortcrypt_error *err);

#ifdef __cplusplus
}
#endif
#endif
