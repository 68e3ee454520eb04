/* format/manifest_check.c: what must hold between a manifest's members, whether it was read or built. */
#include "format/manifest_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/onnx.h"

typedef struct check {
    const oc_manifest *m;
    ortcrypt_status status;
    ortcrypt_error *err;
} check;

__attribute__((format(printf, 2, 3))) static ortcrypt_status refuse(const check *c, const char *format, ...)
{
    char sentence[640];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return oc_fail(c->err, c->status, "the manifest's %s", sentence);
}

static ortcrypt_status check_pairs(const check *c, const oc_pair *pairs, size_t count, const char *where)
{
    for (size_t i = 0; i < count; i++) {
        if (!oc_name_valid(pairs[i].key, strlen(pairs[i].key)) || !oc_manifest_text_valid(pairs[i].value)) {
            return refuse(c, "%s has a member that is no text within its limit", where);
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status check_assets(const check *c)
{
    if (c->m->asset_count > OC_MANIFEST_ASSET_MAX) {
        return refuse(c, "assets are more than %u", OC_MANIFEST_ASSET_MAX);
    }
    for (size_t i = 0; i < c->m->asset_count; i++) {
        const oc_asset *const a = &c->m->assets[i];
        char id[2 * OC_ASSET_ID_LEN + 1];
        oc_hex_encode(id, a->id, OC_ASSET_ID_LEN);
        if (i > 0 && oc_asset_compare(a - 1, a) >= 0) {
            return refuse(c, "assets.%s is there twice or out of order", id);
        }
        if (a->size > OC_MANIFEST_INTEGER_MAX) {
            return refuse(c, "assets.%s.size is no integer between 0 and 2^53-1", id);
        }
        if (a->piece_count != oc_piece_count(a->size)) {
            return refuse(c, "assets.%s.pieces has %zu entries, and %llu bytes make %llu", id, a->piece_count,
                          (unsigned long long)a->size, (unsigned long long)oc_piece_count(a->size));
        }
    }
    return ORTCRYPT_OK;
}

static int compare_parts(const void *a, const void *b)
{
    const oc_part *const x = *(const oc_part *const *)a;
    const oc_part *const y = *(const oc_part *const *)b;

    return x->role != y->role ? (x->role < y->role ? -1 : 1) : strcmp(x->name, y->name);
}

static ortcrypt_status check_unique(const check *c, const oc_variant *v, size_t index)
{
    const oc_part **sorted = malloc((v->part_count + 1) * sizeof *sorted);
    ortcrypt_status st = ORTCRYPT_OK;

    if (sorted == NULL) {
        return oc_fail_memory(c->err, (v->part_count + 1) * sizeof *sorted, "the manifest's parts");
    }
    for (size_t i = 0; i < v->part_count; i++) {
        sorted[i] = &v->parts[i];
    }
    qsort(sorted, v->part_count, sizeof *sorted, compare_parts);
    for (size_t i = 1; st == ORTCRYPT_OK && i < v->part_count; i++) {
        if (compare_parts(&sorted[i - 1], &sorted[i]) == 0) {
            st = refuse(c, "variants[%zu].parts has role %s, name \"%.200s\" twice", index, oc_role_text(sorted[i]->role),
                        sorted[i]->name);
        }
    }
    free(sorted);
    return st;
}

static ortcrypt_status check_parts(const check *c, const oc_variant *v, size_t index)
{
    for (size_t i = 0; i < v->part_count; i++) {
        const oc_part *const p = &v->parts[i];
        if (p->role == OC_ROLE_MODEL ? p->name[0] != '\0' : !oc_name_valid(p->name, strlen(p->name))) {
            return refuse(c, "variants[%zu].parts[%zu].name is no name for role %s", index, i, oc_role_text(p->role));
        }
        if (oc_manifest_find_asset(c->m, p->asset) == NULL) {
            return refuse(c, "variants[%zu].parts[%zu].asset is none of its assets", index, i);
        }
    }
    return check_unique(c, v, index);
}

static ortcrypt_status check_tensors(const check *c, const oc_variant *v, size_t index)
{
    for (size_t i = 0; i < v->tensor_count; i++) {
        const oc_tensor *const t = &v->tensors[i];
        const oc_asset *const asset = oc_manifest_find_asset(c->m, t->asset);
        uint64_t len = 0;
        uint64_t end = 0;
        if (!oc_name_valid(t->name, strlen(t->name))) {
            return refuse(c, "variants[%zu].tensors[%zu].name is no name", index, i);
        }
        if (asset == NULL) {
            return refuse(c, "variants[%zu].tensors[%zu].asset is none of its assets", index, i);
        }
        if (!oc_add_u64(t->offset, t->length, &end) || end > asset->size) {
            return refuse(c, "variants[%zu].tensors[%zu] ends outside its asset", index, i);
        }
        /* ORT reads as many bytes as type and shape say */
        if (t->rank > OC_RANK_MAX || !oc_onnx_tensor_len(t->dtype, t->shape, t->rank, &len) || len != t->length) {
            return refuse(c, "variants[%zu].tensors[%zu].length is not what its dtype and shape give", index, i);
        }
        for (size_t k = 0; k < t->rank; k++) {
            if (t->shape[k] > OC_MANIFEST_INTEGER_MAX) {
                return refuse(c, "variants[%zu].tensors[%zu].shape has a number above 2^53-1", index, i);
            }
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status check_variant(const check *c, const oc_variant *v, size_t index)
{
    const char *const texts[] = {v->ep, v->ep_version, v->runtime, v->device, v->compatibility};
    const bool source = strcmp(v->kind, "source") == 0;

    if (!oc_variant_id_valid(v->id)) {
        return refuse(c, "variants[%zu].id is not 1 to 64 of A-Z a-z 0-9 . _ -", index);
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(c->m->variants[i].id, v->id) == 0) {
            return refuse(c, "variants[%zu].id is there twice", index);
        }
    }
    if (!source && strcmp(v->kind, "compiled") != 0) {
        return refuse(c, "variants[%zu].kind is neither source nor compiled", index);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i] != NULL && (source || !oc_manifest_text_valid(texts[i]))) {
            return refuse(c, "variants[%zu] has a text that is above its limit or that no source variant has", index);
        }
    }
    if (v->embed < -1 || v->embed > 1 || v->verified < -1 || v->verified > 1 ||
        (source && (v->embed != -1 || v->verified != -1 || v->option_count != 0))) {
        return refuse(c, "variants[%zu] has options, embed or verified as no variant of its kind has", index);
    }
    ortcrypt_status st = check_pairs(c, v->options, v->option_count, "options");
    if (st == ORTCRYPT_OK) {
        st = check_parts(c, v, index);
    }
    return st == ORTCRYPT_OK ? check_tensors(c, v, index) : st;
}

ortcrypt_status oc_manifest_check(const oc_manifest *manifest, ortcrypt_status status, ortcrypt_error *err)
{
    const check c = {manifest, status, err};
    size_t parts = 0;
    size_t tensors = 0;

    if (manifest->sequence < 1 || manifest->sequence > OC_MANIFEST_INTEGER_MAX) {
        return refuse(&c, "sequence is no integer between 1 and 2^53-1");
    }
    if (!oc_manifest_text_valid(manifest->creator)) {
        return refuse(&c, "creator is no text within its limit");
    }
    if (manifest->variant_count > OC_MANIFEST_VARIANT_MAX) {
        return refuse(&c, "variants are more than %u", OC_MANIFEST_VARIANT_MAX);
    }
    for (size_t i = 0; i < manifest->variant_count; i++) {
        parts += manifest->variants[i].part_count;
        tensors += manifest->variants[i].tensor_count;
    }
    if (parts > OC_MANIFEST_PART_MAX || tensors > OC_MANIFEST_TENSOR_MAX) {
        return refuse(&c, "variants have more than %u parts or %u tensors", OC_MANIFEST_PART_MAX, OC_MANIFEST_TENSOR_MAX);
    }
    ortcrypt_status st = check_pairs(&c, manifest->labels, manifest->label_count, "labels");
    if (st == ORTCRYPT_OK) {
        st = check_assets(&c);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < manifest->variant_count; i++) {
        st = check_variant(&c, &manifest->variants[i], i);
    }
    return st;
}
