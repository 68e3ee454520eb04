/*
 * format/manifest_json.h: members of jansson's tree, taken with a sentence that says where. Private to src/format.
 * Every function but check expects oc_json_check to have passed: integers are then 0 to 2^53-1.
 */
#ifndef OC_FORMAT_MANIFEST_JSON_H
#define OC_FORMAT_MANIFEST_JSON_H

#include <jansson.h>

#include "format/manifest_text.h"

/* A place in the tree: a chain on the stack, spelled out only for a sentence. NULL is the top. */
typedef struct oc_where {
    const struct oc_where *up;
    const char *key; /* NULL: an array's element */
    size_t index;
} oc_where;

/* ORTCRYPT_E_NOT_AUTHENTIC: "the manifest's <place> <sentence>". */
ortcrypt_status oc_json_refuse(const oc_where *w, ortcrypt_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Depth and numbers of everything in the tree, x- members too. `depth` counts the objects and arrays around the value. */
ortcrypt_status oc_json_check(json_t *value, const oc_where *w, unsigned depth, ortcrypt_error *err);

/* Refuses unknown members; keeps those that begin with "x-" as JSON text. `known` ends with NULL. */
ortcrypt_status oc_json_extensions(json_t *object, const oc_where *w, const char *const *known, oc_pair **pairs, size_t *count,
                                   ortcrypt_error *err);

/* Members that must be there. `what` is the type in words. *out is borrowed; strings are copied; *out of text may hold NULL only. */
ortcrypt_status oc_json_get(json_t *object, const oc_where *w, const char *key, json_type type, const char *what, json_t **out,
                            ortcrypt_error *err);
ortcrypt_status oc_json_integer(json_t *object, const oc_where *w, const char *key, uint64_t *out, ortcrypt_error *err);
ortcrypt_status oc_json_text(json_t *object, const oc_where *w, const char *key, char **out, ortcrypt_error *err);
ortcrypt_status oc_json_optional_text(json_t *object, const oc_where *w, const char *key, char **out, ortcrypt_error *err);
ortcrypt_status oc_json_hex(json_t *object, const oc_where *w, const char *key, uint8_t *out, size_t len, ortcrypt_error *err);
/* An object of strings, appended to *pairs. */
ortcrypt_status oc_json_pairs(json_t *object, const oc_where *w, const char *key, oc_pair **pairs, size_t *count,
                              ortcrypt_error *err);
/* A value, not a member. */
ortcrypt_status oc_json_read_hex(const json_t *value, const oc_where *w, uint8_t *out, size_t len, ortcrypt_error *err);

/* Appends root's variants; what was read before a failure is the manifest's too. */
ortcrypt_status oc_manifest_parse_variants(json_t *root, oc_manifest *m, ortcrypt_error *err);

#endif
