/*
 * format/manifest.h: the manifest's JSON <-> structs. Format: docs/format.md, "Manifest". Pure functions over jansson.
 * The caller authenticates the bytes before it parses them. Members that begin with "x-" are kept and printed again.
 */
#ifndef OC_FORMAT_MANIFEST_H
#define OC_FORMAT_MANIFEST_H

#include "base/bytes.h"
#include "format/keyfile.h"

#define OC_ASSET_ID_LEN 16
#define OC_LEAF_LEN 32
#define OC_MANIFEST_MAX (64u * 1024u * 1024u)
#define OC_MANIFEST_DEPTH_MAX 8
#define OC_MANIFEST_ASSET_MAX 65536u
#define OC_MANIFEST_TENSOR_MAX (1u << 20)
#define OC_MANIFEST_PART_MAX (1u << 20)
#define OC_MANIFEST_VARIANT_MAX 4096u
#define OC_MANIFEST_INTEGER_MAX ((UINT64_C(1) << 53) - 1)
#define OC_MANIFEST_TEXT_MAX 65536 /* bytes of a value of labels or options, of creator and of a variant's strings */
#define OC_RANK_MAX 64

typedef enum oc_role {
    OC_ROLE_MODEL,       /* "model", name "" */
    OC_ROLE_EXTERNAL,    /* "external": an external-data file; name = its location in the model */
    OC_ROLE_INITIALIZER, /* "initializer": one tensor; name = its location in the model */
    OC_ROLE_EP_CONTEXT,  /* "ep_context": name = ep_cache_context of the node */
    OC_ROLE_EXTRA        /* "extra": a file shipped along */
} oc_role;

typedef struct oc_pair { /* one member of labels, options or x-... (value is a JSON string there; raw JSON text for x-) */
    char *key;
    char *value;
} oc_pair;

typedef struct oc_asset {
    uint8_t id[OC_ASSET_ID_LEN];
    uint64_t size;                  /* plaintext bytes */
    uint8_t object[OC_LEAF_LEN];    /* object name */
    uint8_t (*pieces)[OC_LEAF_LEN]; /* leaves */
    size_t piece_count;
    oc_pair *extensions; /* x-..., here and below: as read; the add functions leave them empty */
    size_t extension_count;
} oc_asset;

typedef struct oc_part {
    oc_role role;
    char *name; /* "" for the model */
    uint8_t asset[OC_ASSET_ID_LEN];
    oc_pair *extensions;
    size_t extension_count;
} oc_part;

typedef struct oc_tensor {
    char *name;
    int dtype; /* onnx.TensorProto.DataType as an integer */
    uint64_t *shape;
    size_t rank;
    uint8_t asset[OC_ASSET_ID_LEN];
    uint64_t offset; /* bytes into the asset */
    uint64_t length; /* bytes: what dtype and shape give */
    oc_pair *extensions;
    size_t extension_count;
} oc_tensor;

typedef struct oc_variant {
    char *id;   /* 1 to 64 of [A-Za-z0-9._-], unique */
    char *kind; /* "source" | "compiled" */
    char *ep, *ep_version, *runtime, *device, *compatibility; /* NULL: absent (a source has none) */
    oc_pair *options; /* provider options it was compiled with */
    size_t option_count;
    int embed; /* -1 absent, 0, 1 */
    int verified; /* -1 absent (source), 0, 1 */
    oc_part *parts;
    size_t part_count;
    oc_tensor *tensors;
    size_t tensor_count;
    oc_pair *extensions; /* x-... */
    size_t extension_count;
} oc_variant;

typedef struct oc_manifest {
    uint8_t bundle_id[OC_BUNDLE_ID_LEN];
    uint64_t sequence; /* >= 1 */
    char *creator;
    oc_pair *labels;
    size_t label_count;
    oc_asset *assets; /* sorted by id */
    size_t asset_count;
    oc_variant *variants;
    size_t variant_count;
    oc_pair *extensions;
    size_t extension_count;
} oc_manifest;

/* ORTCRYPT_E_NOT_AUTHENTIC for content that authenticated but is not a valid manifest; the sentence names the member. */
ortcrypt_status oc_manifest_parse(oc_manifest **out, oc_span json, ortcrypt_error *err);
/*
 * One text for one manifest: compact, members in the order of docs/format.md, assets by id, the rest in list order. Everything
 * the parser would refuse is ORTCRYPT_E_INVALID (ORTCRYPT_E_LIMIT above out->max). Appended to *out; nothing is on failure.
 */
ortcrypt_status oc_manifest_print(const oc_manifest *manifest, oc_buf *out, ortcrypt_error *err);
ortcrypt_status oc_manifest_copy(oc_manifest **out, const oc_manifest *manifest, ortcrypt_error *err);
void oc_manifest_free(oc_manifest *manifest);

/* Pieces of the sealed stream of `size` plaintext bytes: one per 64 chunks begun. */
uint64_t oc_piece_count(uint64_t size);

/* Building. All strings are copied. A new manifest has sequence 1 and this library as creator. A duplicate (role, name), variant id or asset id is ORTCRYPT_E_INVALID. */
ortcrypt_status oc_manifest_new(oc_manifest **out, const uint8_t bundle_id[OC_BUNDLE_ID_LEN], ortcrypt_error *err);
/* Takes asset->pieces over (nulled in *asset) on success. Pointers from find_asset are valid until the next add_asset. */
ortcrypt_status oc_manifest_add_asset(oc_manifest *manifest, oc_asset *asset, ortcrypt_error *err);
/* The returned pointer is valid until the next add_variant. Strings NULL where absent, embed and verified -1. */
ortcrypt_status oc_manifest_add_variant(oc_manifest *manifest, const char *id, const char *kind, oc_variant **out,
                                        ortcrypt_error *err);
ortcrypt_status oc_variant_add_part(oc_variant *variant, oc_role role, const char *name,
                                    const uint8_t asset[OC_ASSET_ID_LEN], ortcrypt_error *err);
ortcrypt_status oc_variant_add_tensor(oc_variant *variant, const oc_tensor *tensor, ortcrypt_error *err); /* deep copy */
ortcrypt_status oc_pair_add(oc_pair **pairs, size_t *count, const char *key, const char *value, ortcrypt_error *err);
const char *oc_pair_get(const oc_pair *pairs, size_t count, const char *key); /* NULL when absent */

/* Looking up; NULL when absent. */
const oc_asset *oc_manifest_find_asset(const oc_manifest *manifest, const uint8_t id[OC_ASSET_ID_LEN]);
const oc_variant *oc_manifest_find_variant(const oc_manifest *manifest, const char *id);
const oc_part *oc_variant_find_part(const oc_variant *variant, oc_role role, const char *name);
const char *oc_role_text(oc_role role);

#endif
