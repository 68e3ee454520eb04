/* format/manifest_print.c: structs -> JSON text. The tree is jansson's until it is printed. */
#include "format/manifest_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "format/dtype.h"

/*
 * Sets a member of an object, taking `value` over. A NULL object or value (no memory, or no UTF-8) makes *ok false and stays
 * false, so that a printer is a list of members with one check at its end.
 */
static void put(bool *ok, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) {
        *ok = false;
    }
}

static void put_hex(bool *ok, json_t *object, const char *key, const uint8_t *bytes, size_t len)
{
    char hex[2 * OC_LEAF_LEN + 1];

    oc_hex_encode(hex, bytes, len);
    put(ok, object, key, json_string(hex));
}

static void put_text(bool *ok, json_t *object, const char *key, const char *text)
{
    if (text != NULL) {
        put(ok, object, key, json_string(text));
    }
}

static void put_pairs(bool *ok, json_t *object, const char *key, const oc_pair *pairs, size_t count)
{
    json_t *const list = json_object();

    for (size_t i = 0; i < count; i++) {
        put(ok, list, pairs[i].key, json_string(pairs[i].value));
    }
    put(ok, object, key, list);
}

static void put_extensions(bool *ok, json_t *object, const oc_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(ok, object, pairs[i].key, json_loads(pairs[i].value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL));
    }
}

static json_t *print_asset(bool *ok, const oc_asset *a)
{
    json_t *const object = json_object();
    json_t *const pieces = json_array();
    char hex[2 * OC_LEAF_LEN + 1];

    put(ok, object, "size", json_integer((json_int_t)a->size));
    put_hex(ok, object, "object", a->object, OC_LEAF_LEN);
    for (size_t i = 0; i < a->piece_count; i++) {
        oc_hex_encode(hex, a->pieces[i], OC_LEAF_LEN);
        if (json_array_append_new(pieces, json_string(hex)) != 0) {
            *ok = false;
        }
    }
    put(ok, object, "pieces", pieces);
    put_extensions(ok, object, a->extensions, a->extension_count);
    return object;
}

static json_t *print_part(bool *ok, const oc_part *p)
{
    json_t *const object = json_object();

    put(ok, object, "role", json_string(oc_role_text(p->role)));
    put(ok, object, "name", json_string(p->name));
    put_hex(ok, object, "asset", p->asset, OC_ASSET_ID_LEN);
    put_extensions(ok, object, p->extensions, p->extension_count);
    return object;
}

static json_t *print_tensor(bool *ok, const oc_tensor *t)
{
    json_t *const object = json_object();
    json_t *const shape = json_array();

    put(ok, object, "name", json_string(t->name));
    put(ok, object, "dtype", json_string(oc_dtype_text(t->dtype)));
    for (size_t i = 0; i < t->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)t->shape[i])) != 0) {
            *ok = false;
        }
    }
    put(ok, object, "shape", shape);
    put_hex(ok, object, "asset", t->asset, OC_ASSET_ID_LEN);
    put(ok, object, "offset", json_integer((json_int_t)t->offset));
    put(ok, object, "length", json_integer((json_int_t)t->length));
    put_extensions(ok, object, t->extensions, t->extension_count);
    return object;
}

static json_t *print_variant(bool *ok, const oc_variant *v)
{
    json_t *const object = json_object();
    json_t *const parts = json_array();
    json_t *const tensors = json_array();

    put(ok, object, "id", json_string(v->id));
    put(ok, object, "kind", json_string(v->kind));
    put_text(ok, object, "ep", v->ep);
    put_text(ok, object, "ep_version", v->ep_version);
    put_text(ok, object, "runtime", v->runtime);
    put_text(ok, object, "device", v->device);
    put_text(ok, object, "compatibility", v->compatibility);
    if (v->option_count != 0) {
        put_pairs(ok, object, "options", v->options, v->option_count);
    }
    if (v->embed != -1) {
        put(ok, object, "embed", json_integer(v->embed));
    }
    if (v->verified != -1) {
        put(ok, object, "verified", json_boolean(v->verified));
    }
    for (size_t i = 0; i < v->part_count; i++) {
        if (json_array_append_new(parts, print_part(ok, &v->parts[i])) != 0) {
            *ok = false;
        }
    }
    put(ok, object, "parts", parts);
    for (size_t i = 0; i < v->tensor_count; i++) {
        if (json_array_append_new(tensors, print_tensor(ok, &v->tensors[i])) != 0) {
            *ok = false;
        }
    }
    put(ok, object, "tensors", tensors);
    put_extensions(ok, object, v->extensions, v->extension_count);
    return object;
}

static json_t *print_manifest(bool *ok, const oc_manifest *m)
{
    json_t *const object = json_object();
    json_t *const assets = json_object();
    json_t *const variants = json_array();
    char id[2 * OC_ASSET_ID_LEN + 1];

    put(ok, object, "format", json_string("ortcrypt/1"));
    put_hex(ok, object, "bundle", m->bundle_id, OC_BUNDLE_ID_LEN);
    put(ok, object, "sequence", json_integer((json_int_t)m->sequence));
    put(ok, object, "creator", json_string(m->creator));
    put_pairs(ok, object, "labels", m->labels, m->label_count);
    for (size_t i = 0; i < m->asset_count; i++) {
        oc_hex_encode(id, m->assets[i].id, OC_ASSET_ID_LEN);
        put(ok, assets, id, print_asset(ok, &m->assets[i]));
    }
    put(ok, object, "assets", assets);
    for (size_t i = 0; i < m->variant_count; i++) {
        if (json_array_append_new(variants, print_variant(ok, &m->variants[i])) != 0) {
            *ok = false;
        }
    }
    put(ok, object, "variants", variants);
    put_extensions(ok, object, m->extensions, m->extension_count);
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
    bool ok = true;

    ortcrypt_status st = oc_manifest_check(manifest, ORTCRYPT_E_INVALID, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_t *const tree = print_manifest(&ok, manifest);
    if (tree == NULL || !ok) {
        /* texts were checked, so what is left is an x- member that is no JSON, or memory */
        st = oc_fail(err, ORTCRYPT_E_INVALID, "the manifest has a member that is no JSON, or memory ran out");
    } else if (json_dump_callback(tree, write_text, &s, JSON_COMPACT) != 0) {
        st = s.status != ORTCRYPT_OK ? s.status : oc_fail_memory(err, 0, "the manifest's text");
    }
    json_decref(tree);
    if (st != ORTCRYPT_OK) {
        out->len = before;
    }
    return st;
}
