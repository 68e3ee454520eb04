/* format/manifest.c: the manifest in memory: building, finding, copying, freeing. Every string and list is the manifest's. */
#include "format/manifest_text.h"

#include <stdlib.h>
#include <string.h>

#include "format/dtype.h"
#include "format/onnx.h"

#define CHUNK_LEN 16384u
#define PIECE_CHUNKS 64u

static const char *const roles[] = {"model", "external", "initializer", "ep_context", "extra"};

const char *oc_role_text(oc_role role)
{
    return (size_t)role < sizeof roles / sizeof roles[0] ? roles[role] : "unknown";
}

bool oc_role_find(const char *text, oc_role *role)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(roles[i], text) == 0) {
            *role = (oc_role)i;
            return true;
        }
    }
    return false;
}

uint64_t oc_piece_count(uint64_t size)
{
    return size / CHUNK_LEN / PIECE_CHUNKS + 1;
}

ortcrypt_status oc_list_room(void **list, size_t count, size_t element_len, ortcrypt_error *err)
{
    void *grown = NULL;

    if ((count & (count - 1)) != 0) { /* full only at powers of two */
        return ORTCRYPT_OK;
    }
    const size_t cap = count == 0 ? 1 : count * 2;
    if (cap > SIZE_MAX / 2 / element_len || (grown = realloc(*list, cap * element_len)) == NULL) {
        return oc_fail_memory(err, cap * element_len, "the manifest");
    }
    *list = grown;
    return ORTCRYPT_OK;
}

bool oc_manifest_text_valid(const char *text)
{
    const size_t len = strnlen(text, OC_MANIFEST_TEXT_MAX + 1);

    return len <= OC_MANIFEST_TEXT_MAX && oc_utf8_valid(text, len);
}

bool oc_variant_id_valid(const char *id)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t len = strspn(id, allowed);

    return len >= 1 && len <= 64 && id[len] == '\0';
}

int oc_asset_compare(const void *a, const void *b)
{
    return memcmp(((const oc_asset *)a)->id, ((const oc_asset *)b)->id, OC_ASSET_ID_LEN);
}

void oc_pairs_free(oc_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].key);
        free(pairs[i].value);
    }
    free(pairs);
}

void oc_tensor_clear(oc_tensor *tensor)
{
    free(tensor->name);
    free(tensor->shape);
    oc_pairs_free(tensor->extensions, tensor->extension_count);
    *tensor = (oc_tensor){0};
}

static void variant_clear(oc_variant *v)
{
    for (size_t i = 0; i < v->part_count; i++) {
        free(v->parts[i].name);
        oc_pairs_free(v->parts[i].extensions, v->parts[i].extension_count);
    }
    for (size_t i = 0; i < v->tensor_count; i++) {
        oc_tensor_clear(&v->tensors[i]);
    }
    free(v->id);
    free(v->kind);
    free(v->ep);
    free(v->ep_version);
    free(v->runtime);
    free(v->device);
    free(v->compatibility);
    oc_pairs_free(v->options, v->option_count);
    free(v->parts);
    free(v->tensors);
    oc_pairs_free(v->extensions, v->extension_count);
}

void oc_manifest_free(oc_manifest *manifest)
{
    if (manifest == NULL) {
        return;
    }
    for (size_t i = 0; i < manifest->asset_count; i++) {
        free(manifest->assets[i].pieces);
        oc_pairs_free(manifest->assets[i].extensions, manifest->assets[i].extension_count);
    }
    for (size_t i = 0; i < manifest->variant_count; i++) {
        variant_clear(&manifest->variants[i]);
    }
    free(manifest->creator);
    oc_pairs_free(manifest->labels, manifest->label_count);
    free(manifest->assets);
    free(manifest->variants);
    oc_pairs_free(manifest->extensions, manifest->extension_count);
    free(manifest);
}

ortcrypt_status oc_manifest_new(oc_manifest **out, const uint8_t bundle_id[OC_BUNDLE_ID_LEN], ortcrypt_error *err)
{
    oc_manifest *m = calloc(1, sizeof *m);
    char creator[64] = "ortcrypt ";

    if (m == NULL) {
        return oc_fail_memory(err, sizeof *m, "the manifest");
    }
    memcpy(m->bundle_id, bundle_id, OC_BUNDLE_ID_LEN);
    m->sequence = 1;
    strncat(creator, ortcrypt_version(), sizeof creator - strlen(creator) - 1);
    ortcrypt_status st = oc_strdup(&m->creator, creator, err);
    if (st != ORTCRYPT_OK) {
        oc_manifest_free(m);
        return st;
    }
    *out = m;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_manifest_copy(oc_manifest **out, const oc_manifest *manifest, ortcrypt_error *err)
{
    oc_buf text = OC_BUF(OC_MANIFEST_MAX);

    /* printing and parsing is the deep copy that can forget no member */
    ortcrypt_status st = oc_manifest_print(manifest, &text, err);
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_parse(out, OC_SPAN(text.data, text.len), err);
    }
    oc_buf_free(&text);
    return st;
}

ortcrypt_status oc_manifest_add_asset(oc_manifest *manifest, oc_asset *asset, ortcrypt_error *err)
{
    char id[2 * OC_ASSET_ID_LEN + 1];
    size_t at = manifest->asset_count;
    void *list = manifest->assets;

    if (asset->size > OC_MANIFEST_INTEGER_MAX || asset->piece_count != oc_piece_count(asset->size) || asset->pieces == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "an asset of %llu bytes does not have %zu pieces",
                       (unsigned long long)asset->size, asset->piece_count);
    }
    if (at >= OC_MANIFEST_ASSET_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "a bundle has at most %u assets", OC_MANIFEST_ASSET_MAX);
    }
    while (at > 0 && memcmp(manifest->assets[at - 1].id, asset->id, OC_ASSET_ID_LEN) > 0) {
        at--;
    }
    if (at > 0 && memcmp(manifest->assets[at - 1].id, asset->id, OC_ASSET_ID_LEN) == 0) {
        oc_hex_encode(id, asset->id, OC_ASSET_ID_LEN);
        return oc_fail(err, ORTCRYPT_E_INVALID, "there is an asset %s already", id);
    }
    ortcrypt_status st = oc_list_room(&list, manifest->asset_count, sizeof *manifest->assets, err);
    manifest->assets = list;
    if (st != ORTCRYPT_OK) {
        return st;
    }
    oc_asset *const slot = &manifest->assets[at];
    memmove(slot + 1, slot, (manifest->asset_count - at) * sizeof *slot);
    *slot = *asset;
    slot->extensions = NULL;
    slot->extension_count = 0;
    manifest->asset_count++;
    asset->pieces = NULL;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_manifest_add_variant(oc_manifest *manifest, const char *id, const char *kind, oc_variant **out,
                                        ortcrypt_error *err)
{
    oc_variant v = {.embed = -1, .verified = -1};
    void *list = manifest->variants;

    if (!oc_variant_id_valid(id) || oc_manifest_find_variant(manifest, id) != NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "\"%.80s\" is no variant id of 1 to 64 of A-Z a-z 0-9 . _ -, or is there already",
                       id);
    }
    if (strcmp(kind, "source") != 0 && strcmp(kind, "compiled") != 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "\"%.80s\" is no kind of variant", kind);
    }
    if (manifest->variant_count >= OC_MANIFEST_VARIANT_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "a bundle has at most %u variants", OC_MANIFEST_VARIANT_MAX);
    }
    ortcrypt_status st = oc_list_room(&list, manifest->variant_count, sizeof v, err);
    manifest->variants = list;
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&v.id, id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&v.kind, kind, err);
    }
    if (st != ORTCRYPT_OK) {
        variant_clear(&v);
        return st;
    }
    manifest->variants[manifest->variant_count] = v;
    *out = &manifest->variants[manifest->variant_count++];
    return ORTCRYPT_OK;
}

ortcrypt_status oc_variant_add_part(oc_variant *variant, oc_role role, const char *name,
                                    const uint8_t asset[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    oc_part part = {.role = role};
    void *list = variant->parts;

    if ((size_t)role >= sizeof roles / sizeof roles[0] ||
        (role == OC_ROLE_MODEL ? name[0] != '\0' : !oc_name_valid(name, strlen(name)))) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "\"%.200s\" is no name for a part of role %s", name, oc_role_text(role));
    }
    if (oc_variant_find_part(variant, role, name) != NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "the variant %s has a part \"%.200s\" of role %s already", variant->id, name,
                       oc_role_text(role));
    }
    ortcrypt_status st = oc_list_room(&list, variant->part_count, sizeof part, err);
    variant->parts = list;
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&part.name, name, err);
    }
    if (st == ORTCRYPT_OK) {
        memcpy(part.asset, asset, OC_ASSET_ID_LEN);
        variant->parts[variant->part_count++] = part;
    }
    return st;
}

ortcrypt_status oc_variant_add_tensor(oc_variant *variant, const oc_tensor *tensor, ortcrypt_error *err)
{
    oc_tensor t = *tensor;
    uint64_t len = 0;
    void *list = variant->tensors;

    if (!oc_name_valid(tensor->name, strlen(tensor->name)) || tensor->rank > OC_RANK_MAX ||
        !oc_onnx_tensor_len(tensor->dtype, tensor->shape, tensor->rank, &len) || len != tensor->length) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "tensor \"%.200s\" has no name, or its type and shape do not give %llu bytes",
                       tensor->name, (unsigned long long)tensor->length);
    }
    t.name = NULL;
    t.shape = NULL;
    t.extensions = NULL;
    t.extension_count = 0;
    ortcrypt_status st = oc_list_room(&list, variant->tensor_count, sizeof t, err);
    variant->tensors = list;
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&t.name, tensor->name, err);
    }
    if (st == ORTCRYPT_OK && t.rank != 0) {
        t.shape = malloc(t.rank * sizeof *t.shape);
        if (t.shape == NULL) {
            st = oc_fail_memory(err, t.rank * sizeof *t.shape, "a tensor's shape");
        } else {
            memcpy(t.shape, tensor->shape, t.rank * sizeof *t.shape);
        }
    }
    if (st != ORTCRYPT_OK) {
        oc_tensor_clear(&t);
        return st;
    }
    variant->tensors[variant->tensor_count++] = t;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_pair_append(oc_pair **pairs, size_t *count, const char *key, const char *value, ortcrypt_error *err)
{
    oc_pair pair = {0};
    void *list = *pairs;

    ortcrypt_status st = oc_list_room(&list, *count, sizeof pair, err);
    *pairs = list;
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&pair.key, key, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&pair.value, value, err);
    }
    if (st != ORTCRYPT_OK) {
        free(pair.key);
        return st;
    }
    (*pairs)[(*count)++] = pair;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_pair_add(oc_pair **pairs, size_t *count, const char *key, const char *value, ortcrypt_error *err)
{
    if (oc_pair_get(*pairs, *count, key) != NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "there is a value for \"%.200s\" already", key);
    }
    return oc_pair_append(pairs, count, key, value, err);
}

const char *oc_pair_get(const oc_pair *pairs, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pairs[i].key, key) == 0) {
            return pairs[i].value;
        }
    }
    return NULL;
}

const oc_asset *oc_manifest_find_asset(const oc_manifest *manifest, const uint8_t id[OC_ASSET_ID_LEN])
{
    oc_asset key = {0};

    if (manifest->asset_count == 0) {
        return NULL;
    }
    memcpy(key.id, id, OC_ASSET_ID_LEN);
    return bsearch(&key, manifest->assets, manifest->asset_count, sizeof key, oc_asset_compare);
}

const oc_variant *oc_manifest_find_variant(const oc_manifest *manifest, const char *id)
{
    for (size_t i = 0; i < manifest->variant_count; i++) {
        if (strcmp(manifest->variants[i].id, id) == 0) {
            return &manifest->variants[i];
        }
    }
    return NULL;
}

const oc_part *oc_variant_find_part(const oc_variant *variant, oc_role role, const char *name)
{
    for (size_t i = 0; i < variant->part_count; i++) {
        if (variant->parts[i].role == role && strcmp(variant->parts[i].name, name) == 0) {
            return &variant->parts[i];
        }
    }
    return NULL;
}
