/* format/manifest_text.h: what the manifest's files share. Private to src/format. */
#ifndef OC_FORMAT_MANIFEST_TEXT_H
#define OC_FORMAT_MANIFEST_TEXT_H

#include "format/manifest.h"

/* Room for one more element behind `count` ones; doubles, so callers keep no capacity. */
ortcrypt_status oc_list_room(void **list, size_t count, size_t element_len, ortcrypt_error *err);

/* Everything that holds between members: references, limits, uniqueness. The sentence names the member, `status` is returned. */
ortcrypt_status oc_manifest_check(const oc_manifest *manifest, ortcrypt_status status, ortcrypt_error *err);

/* UTF-8 without NUL, at most OC_MANIFEST_TEXT_MAX bytes. */
bool oc_manifest_text_valid(const char *text);
bool oc_variant_id_valid(const char *id);
/* false when `text` names no role. */
bool oc_role_find(const char *text, oc_role *role);

/* oc_pair_add without looking for the key. */
ortcrypt_status oc_pair_append(oc_pair **pairs, size_t *count, const char *key, const char *value, ortcrypt_error *err);
void oc_pairs_free(oc_pair *pairs, size_t count);
void oc_tensor_clear(oc_tensor *tensor);
int oc_asset_compare(const void *a, const void *b); /* by id, for qsort */

#endif
