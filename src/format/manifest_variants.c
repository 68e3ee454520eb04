/* format/manifest_variants.c: the member "variants" of the JSON tree -> structs, copied. */
#include <stdlib.h>
#include <string.h>

#include "format/dtype.h"
#include "format/manifest_json.h"

static ortcrypt_status parse_part(json_t *object, const oc_where *w, oc_part *p, ortcrypt_error *err)
{
    static const char *const known[] = {"role", "name", "asset", NULL};
    json_t *role = NULL;

    ortcrypt_status st = oc_json_text(object, w, "name", &p->name, err);
    if (st == ORTCRYPT_OK) {
        st = oc_json_extensions(object, w, known, &p->extensions, &p->extension_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_get(object, w, "role", JSON_STRING, "string", &role, err);
    }
    if (st == ORTCRYPT_OK && !oc_role_find(json_string_value(role), &p->role)) {
        st = oc_json_refuse(&(oc_where){w, "role", 0}, err, "is none of model, external, initializer, ep_context and extra");
    }
    return st == ORTCRYPT_OK ? oc_json_hex(object, w, "asset", p->asset, OC_ASSET_ID_LEN, err) : st;
}

static ortcrypt_status parse_shape(json_t *object, const oc_where *up, oc_tensor *t, ortcrypt_error *err)
{
    const oc_where w = {up, "shape", 0};
    json_t *list = NULL;

    ortcrypt_status st = oc_json_get(object, up, "shape", JSON_ARRAY, "array", &list, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const size_t rank = json_array_size(list);
    if (rank > OC_RANK_MAX) {
        return oc_json_refuse(&w, err, "has more than %d entries", OC_RANK_MAX);
    }
    if (rank != 0) {
        t->shape = calloc(rank, sizeof *t->shape);
        if (t->shape == NULL) {
            return oc_fail_memory(err, rank * sizeof *t->shape, "a tensor's shape");
        }
    }
    t->rank = rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(list, i);
        if (!json_is_integer(dim)) {
            return oc_json_refuse(&(oc_where){&w, NULL, i}, err, "is no integer between 0 and 2^53-1");
        }
        t->shape[i] = (uint64_t)json_integer_value(dim);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status parse_tensor(json_t *object, const oc_where *w, oc_tensor *t, ortcrypt_error *err)
{
    static const char *const known[] = {"name", "dtype", "shape", "asset", "offset", "length", NULL};
    json_t *dtype = NULL;

    ortcrypt_status st = oc_json_text(object, w, "name", &t->name, err);
    if (st == ORTCRYPT_OK) {
        st = oc_json_extensions(object, w, known, &t->extensions, &t->extension_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_get(object, w, "dtype", JSON_STRING, "string", &dtype, err);
    }
    if (st == ORTCRYPT_OK && (t->dtype = oc_dtype_find(json_string_value(dtype))) == 0) {
        st = oc_json_refuse(&(oc_where){w, "dtype", 0}, err, "is no element type of ONNX in lower case");
    }
    if (st == ORTCRYPT_OK) {
        st = parse_shape(object, w, t, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_hex(object, w, "asset", t->asset, OC_ASSET_ID_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_integer(object, w, "offset", &t->offset, err);
    }
    return st == ORTCRYPT_OK ? oc_json_integer(object, w, "length", &t->length, err) : st;
}

static ortcrypt_status parse_parts(json_t *variant, const oc_where *up, oc_variant *v, ortcrypt_error *err)
{
    const oc_where w = {up, "parts", 0};
    json_t *list = NULL;
    json_t *value = NULL;
    size_t i = 0;

    ortcrypt_status st = oc_json_get(variant, up, "parts", JSON_ARRAY, "array", &list, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_array_foreach(list, i, value)
    {
        const oc_where here = {&w, NULL, i};
        void *parts = v->parts;
        st = oc_list_room(&parts, v->part_count, sizeof *v->parts, err);
        v->parts = parts;
        if (st == ORTCRYPT_OK && !json_is_object(value)) {
            st = oc_json_refuse(&here, err, "is no object");
        }
        if (st == ORTCRYPT_OK) {
            v->parts[v->part_count] = (oc_part){0};
            st = parse_part(value, &here, &v->parts[v->part_count++], err);
        }
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status parse_tensors(json_t *variant, const oc_where *up, oc_variant *v, ortcrypt_error *err)
{
    const oc_where w = {up, "tensors", 0};
    json_t *list = NULL;
    json_t *value = NULL;
    size_t i = 0;

    ortcrypt_status st = oc_json_get(variant, up, "tensors", JSON_ARRAY, "array", &list, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_array_foreach(list, i, value)
    {
        const oc_where here = {&w, NULL, i};
        void *tensors = v->tensors;
        st = oc_list_room(&tensors, v->tensor_count, sizeof *v->tensors, err);
        v->tensors = tensors;
        if (st == ORTCRYPT_OK && !json_is_object(value)) {
            st = oc_json_refuse(&here, err, "is no object");
        }
        if (st == ORTCRYPT_OK) {
            v->tensors[v->tensor_count] = (oc_tensor){0};
            st = parse_tensor(value, &here, &v->tensors[v->tensor_count++], err);
        }
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status parse_flags(json_t *object, const oc_where *w, oc_variant *v, ortcrypt_error *err)
{
    const json_t *const verified = json_object_get(object, "verified");
    uint64_t embed = 0;

    if (json_object_get(object, "embed") != NULL) {
        ortcrypt_status st = oc_json_integer(object, w, "embed", &embed, err);
        if (st == ORTCRYPT_OK && embed > 1) {
            st = oc_json_refuse(&(oc_where){w, "embed", 0}, err, "is neither 0 nor 1");
        }
        if (st != ORTCRYPT_OK) {
            return st;
        }
        v->embed = (int)embed;
    }
    if (verified != NULL) {
        if (!json_is_boolean(verified)) {
            return oc_json_refuse(&(oc_where){w, "verified", 0}, err, "is neither true nor false");
        }
        v->verified = json_is_true(verified) ? 1 : 0;
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status parse_variant(json_t *object, const oc_where *w, oc_variant *v, ortcrypt_error *err)
{
    static const char *const known[] = {"id",      "kind",  "ep",       "ep_version", "runtime", "device", "compatibility",
                                        "options", "embed", "verified", "parts",      "tensors", NULL};
    ortcrypt_status st = oc_json_text(object, w, "id", &v->id, err);

    if (st == ORTCRYPT_OK) {
        st = oc_json_text(object, w, "kind", &v->kind, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_extensions(object, w, known, &v->extensions, &v->extension_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_optional_text(object, w, "ep", &v->ep, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_optional_text(object, w, "ep_version", &v->ep_version, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_optional_text(object, w, "runtime", &v->runtime, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_optional_text(object, w, "device", &v->device, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_optional_text(object, w, "compatibility", &v->compatibility, err);
    }
    if (st == ORTCRYPT_OK && json_object_get(object, "options") != NULL) {
        st = oc_json_pairs(object, w, "options", &v->options, &v->option_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = parse_flags(object, w, v, err);
    }
    if (st == ORTCRYPT_OK) {
        st = parse_parts(object, w, v, err);
    }
    return st == ORTCRYPT_OK ? parse_tensors(object, w, v, err) : st;
}

ortcrypt_status oc_manifest_parse_variants(json_t *root, oc_manifest *m, ortcrypt_error *err)
{
    const oc_where w = {NULL, "variants", 0};
    json_t *list = NULL;
    json_t *value = NULL;
    size_t i = 0;

    ortcrypt_status st = oc_json_get(root, NULL, "variants", JSON_ARRAY, "array", &list, err);
    if (st == ORTCRYPT_OK && json_array_size(list) > OC_MANIFEST_VARIANT_MAX) {
        st = oc_json_refuse(&w, err, "are more than %u", OC_MANIFEST_VARIANT_MAX);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_array_foreach(list, i, value)
    {
        const oc_where here = {&w, NULL, i};
        void *variants = m->variants;
        st = oc_list_room(&variants, m->variant_count, sizeof *m->variants, err);
        m->variants = variants;
        if (st == ORTCRYPT_OK && !json_is_object(value)) {
            st = oc_json_refuse(&here, err, "is no object");
        }
        if (st == ORTCRYPT_OK) {
            m->variants[m->variant_count] = (oc_variant){.embed = -1, .verified = -1};
            st = parse_variant(value, &here, &m->variants[m->variant_count++], err);
        }
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    return ORTCRYPT_OK;
}
