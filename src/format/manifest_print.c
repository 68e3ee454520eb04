/* format/manifest_print.c: structs -> JSON text. The tree is jansson's until it is printed. */
#include "format/manifest_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "format/dtype.h"

/*
 * Sets a member of an object, taking `value` over. Texts were checked, so a NULL object or value is a lack of memory; that stays
 * in *st, and a printer is a list of members with one check at its end.
 */
static void put(ortcrypt_status *st, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0 && *st == ORTCRYPT_OK) {
        *st = ORTCRYPT_E_NO_MEMORY;
    }
}

static void append(ortcrypt_status *st, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0 && *st == ORTCRYPT_OK) {
        *st = ORTCRYPT_E_NO_MEMORY;
    }
}

static void put_hex(ortcrypt_status *st, json_t *object, const char *key, const uint8_t *bytes, size_t len)
{
    char hex[2 * OC_LEAF_LEN + 1];

    oc_hex_encode(hex, bytes, len);
    put(st, object, key, json_string(hex));
}

static void put_text(ortcrypt_status *st, json_t *object, const char *key, const char *text)
{
    if (text != NULL) {
        put(st, object, key, json_string(text));
    }
}

static void put_pairs(ortcrypt_status *st, json_t *object, const char *key, const oc_pair *pairs, size_t count)
{
    json_t *const list = json_object();

    for (size_t i = 0; i < count; i++) {
        put(st, list, pairs[i].key, json_string(pairs[i].value));
    }
    put(st, object, key, list);
}

static void put_extensions(ortcrypt_status *st, json_t *object, const oc_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_error_t why;
        json_t *const value = json_loads(pairs[i].value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
        if (value == NULL && why.line >= 0 && *st == ORTCRYPT_OK) {
            *st = ORTCRYPT_E_INVALID;
        }
        put(st, object, pairs[i].key, value);
    }
}

static json_t *print_asset(ortcrypt_status *st, const oc_asset *a)
{
    json_t *const object = json_object();
    json_t *const pieces = json_array();
    char hex[2 * OC_LEAF_LEN + 1];

    put(st, object, "size", json_integer((json_int_t)a->size));
    put_hex(st, object, "object", a->object, OC_LEAF_LEN);
    for (size_t i = 0; i < a->piece_count; i++) {
        oc_hex_encode(hex, a->pieces[i], OC_LEAF_LEN);
        append(st, pieces, json_string(hex));
    }
    put(st, object, "pieces", pieces);
    put_extensions(st, object, a->extensions, a->extension_count);
    return object;
}

static json_t *print_part(ortcrypt_status *st, const oc_part *p)
{
    json_t *const object = json_object();

    put(st, object, "role", json_string(oc_role_text(p->role)));
    put(st, object, "name", json_string(p->name));
    put_hex(st, object, "asset", p->asset, OC_ASSET_ID_LEN);
    put_extensions(st, object, p->extensions, p->extension_count);
    return object;
}

static json_t *print_tensor(ortcrypt_status *st, const oc_tensor *t)
{
    json_t *const object = json_object();
    json_t *const shape = json_array();

    put(st, object, "name", json_string(t->name));
    put(st, object, "dtype", json_string(oc_dtype_text(t->dtype)));
    for (size_t i = 0; i < t->rank; i++) {
        append(st, shape, json_integer((json_int_t)t->shape[i]));
    }
    put(st, object, "shape", shape);
    put_hex(st, object, "asset", t->asset, OC_ASSET_ID_LEN);
    put(st, object, "offset", json_integer((json_int_t)t->offset));
    put(st, object, "length", json_integer((json_int_t)t->length));
    put_extensions(st, object, t->extensions, t->extension_count);
    return object;
}

static json_t *print_variant(ortcrypt_status *st, const oc_variant *v)
{
    json_t *const object = json_object();
    json_t *const parts = json_array();
    json_t *const tensors = json_array();

    put(st, object, "id", json_string(v->id));
    put(st, object, "kind", json_string(v->kind));
    put_text(st, object, "ep", v->ep);
    put_text(st, object, "ep_version", v->ep_version);
    put_text(st, object, "runtime", v->runtime);
    put_text(st, object, "device", v->device);
    put_text(st, object, "compatibility", v->compatibility);
    if (v->option_count != 0) {
        put_pairs(st, object, "options", v->options, v->option_count);
    }
    if (v->embed != -1) {
        put(st, object, "embed", json_integer(v->embed));
    }
    if (v->verified != -1) {
        put(st, object, "verified", json_boolean(v->verified));
    }
    for (size_t i = 0; i < v->part_count; i++) {
        append(st, parts, print_part(st, &v->parts[i]));
    }
    put(st, object, "parts", parts);
    for (size_t i = 0; i < v->tensor_count; i++) {
        append(st, tensors, print_tensor(st, &v->tensors[i]));
    }
    put(st, object, "tensors", tensors);
    put_extensions(st, object, v->extensions, v->extension_count);
    return object;
}

static json_t *print_manifest(ortcrypt_status *st, const oc_manifest *m)
{
    json_t *const object = json_object();
    json_t *const assets = json_object();
    json_t *const variants = json_array();
    char id[2 * OC_ASSET_ID_LEN + 1];

    put(st, object, "format", json_string("ortcrypt/1"));
    put_hex(st, object, "bundle", m->bundle_id, OC_BUNDLE_ID_LEN);
    put(st, object, "sequence", json_integer((json_int_t)m->sequence));
    put(st, object, "creator", json_string(m->creator));
    put_pairs(st, object, "labels", m->labels, m->label_count);
    for (size_t i = 0; i < m->asset_count; i++) {
        oc_hex_encode(id, m->assets[i].id, OC_ASSET_ID_LEN);
        put(st, assets, id, print_asset(st, &m->assets[i]));
    }
    put(st, object, "assets", assets);
    for (size_t i = 0; i < m->variant_count; i++) {
        append(st, variants, print_variant(st, &m->variants[i]));
    }
    put(st, object, "variants", variants);
    put_extensions(st, object, m->extensions, m->extension_count);
    return object;
}

typedef struct sink {
    oc_buf *out;
    ortcrypt_status status;
    ortcrypt_error *err;
} sink;

static int write_text(const char *text, size_t len, void *data)
{
    sink *const s = data;

    s->status = oc_buf_append(s->out, text, len, s->err);
    return s->status == ORTCRYPT_OK ? 0 : -1;
}

ortcrypt_status oc_manifest_print(const oc_manifest *manifest, oc_buf *out, ortcrypt_error *err)
{
    const size_t before = out->len;
    sink s = {out, ORTCRYPT_OK, err};
    ortcrypt_status made = ORTCRYPT_OK;

    ortcrypt_status st = oc_manifest_check(manifest, ORTCRYPT_E_INVALID, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_t *const tree = print_manifest(&made, manifest);
    if (made == ORTCRYPT_E_INVALID) {
        st = oc_fail(err, made, "the manifest has a member x-... that is no JSON");
    } else if (tree == NULL || made != ORTCRYPT_OK) {
        st = oc_fail_memory(err, 0, "the manifest's text");
    } else if (json_dump_callback(tree, write_text, &s, JSON_COMPACT) != 0) {
        st = s.status != ORTCRYPT_OK ? s.status : oc_fail_memory(err, 0, "the manifest's text");
    }
    json_decref(tree);
    if (st != ORTCRYPT_OK) {
        out->len = before;
    }
    return st;
}
