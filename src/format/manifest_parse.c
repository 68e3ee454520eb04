/*
 * format/manifest_parse.c: JSON text -> structs. The text was authenticated, so a fault is its writer's; still nothing is taken
 * for granted. The tree is jansson's until the structs stand; the structs copy everything.
 */
#include "format/manifest_json.h"

#include <stdlib.h>
#include <string.h>

static ortcrypt_status parse_pieces(json_t *list, const oc_where *w, oc_asset *a, ortcrypt_error *err)
{
    const size_t count = json_array_size(list);

    if (count != oc_piece_count(a->size)) {
        return oc_json_refuse(w, err, "has %zu entries, and %llu bytes make %llu", count, (unsigned long long)a->size,
                      (unsigned long long)oc_piece_count(a->size));
    }
    a->pieces = calloc(count, OC_LEAF_LEN);
    if (a->pieces == NULL) {
        return oc_fail_memory(err, (uint64_t)count * OC_LEAF_LEN, "an asset's pieces");
    }
    a->piece_count = count;
    for (size_t i = 0; i < count; i++) {
        ortcrypt_status st = oc_json_read_hex(json_array_get(list, i), &(oc_where){w, NULL, i}, a->pieces[i], OC_LEAF_LEN, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status parse_asset(const char *id, json_t *object, const oc_where *up, oc_asset *a, ortcrypt_error *err)
{
    static const char *const known[] = {"size", "object", "pieces", NULL};
    const oc_where w = {up, id, 0};
    json_t *pieces = NULL;

    if (!oc_hex_decode(a->id, OC_ASSET_ID_LEN, id, strlen(id))) {
        return oc_json_refuse(&w, err, "is no asset id of 32 lower hex digits");
    }
    if (!json_is_object(object)) {
        return oc_json_refuse(&w, err, "is no object");
    }
    ortcrypt_status st = oc_json_extensions(object, &w, known, &a->extensions, &a->extension_count, err);
    if (st == ORTCRYPT_OK) {
        st = oc_json_integer(object, &w, "size", &a->size, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_hex(object, &w, "object", a->object, OC_LEAF_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_get(object, &w, "pieces", JSON_ARRAY, "array", &pieces, err);
    }
    return st == ORTCRYPT_OK ? parse_pieces(pieces, &(oc_where){&w, "pieces", 0}, a, err) : st;
}

static ortcrypt_status parse_assets(json_t *root, oc_manifest *m, ortcrypt_error *err)
{
    const oc_where w = {NULL, "assets", 0};
    const char *id = NULL;
    json_t *list = NULL;
    json_t *value = NULL;

    ortcrypt_status st = oc_json_get(root, NULL, "assets", JSON_OBJECT, "object", &list, err);
    if (st == ORTCRYPT_OK && json_object_size(list) > OC_MANIFEST_ASSET_MAX) {
        st = oc_json_refuse(&w, err, "are more than %u", OC_MANIFEST_ASSET_MAX);
    }
    if (st != ORTCRYPT_OK || json_object_size(list) == 0) {
        return st;
    }
    json_object_foreach(list, id, value)
    {
        void *assets = m->assets;
        st = oc_list_room(&assets, m->asset_count, sizeof *m->assets, err);
        m->assets = assets;
        if (st == ORTCRYPT_OK) {
            m->assets[m->asset_count] = (oc_asset){0};
            st = parse_asset(id, value, &w, &m->assets[m->asset_count++], err);
        }
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    qsort(m->assets, m->asset_count, sizeof *m->assets, oc_asset_compare);
    return ORTCRYPT_OK;
}

static ortcrypt_status parse_root(json_t *root, oc_manifest *m, ortcrypt_error *err)
{
    static const char *const known[] = {"format", "bundle", "sequence", "creator", "labels", "assets", "variants", NULL};
    json_t *format = NULL;

    if (!json_is_object(root)) {
        return oc_json_refuse(NULL, err, "is no JSON object");
    }
    ortcrypt_status st = oc_json_check(root, NULL, 0, err);
    if (st == ORTCRYPT_OK) {
        st = oc_json_get(root, NULL, "format", JSON_STRING, "string", &format, err);
    }
    if (st == ORTCRYPT_OK && strcmp(json_string_value(format), "ortcrypt/1") != 0) {
        st = oc_json_refuse(&(oc_where){NULL, "format", 0}, err, "is not ortcrypt/1");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_extensions(root, NULL, known, &m->extensions, &m->extension_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_hex(root, NULL, "bundle", m->bundle_id, OC_BUNDLE_ID_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_integer(root, NULL, "sequence", &m->sequence, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_text(root, NULL, "creator", &m->creator, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_json_pairs(root, NULL, "labels", &m->labels, &m->label_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = parse_assets(root, m, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_parse_variants(root, m, err);
    }
    return st == ORTCRYPT_OK ? oc_manifest_check(m, ORTCRYPT_E_NOT_AUTHENTIC, err) : st;
}

/* A minus sign outside strings: jansson takes -0 for 0 and keeps no trace of it. */
static bool has_minus(oc_span json)
{
    bool string = false;

    for (size_t i = 0; i < json.len; i++) {
        const uint8_t c = json.data[i];
        if (c == '"') {
            string = !string;
        } else if (c == '\\' && string) {
            i++;
        } else if (c == '-' && !string) {
            return true;
        }
    }
    return false;
}

/* jansson's own words would quote the text. */
static ortcrypt_status refuse_json(const json_error_t *why, ortcrypt_error *err)
{
    const char *sentence = "is no JSON";

    /* jansson has no place for most lacks of memory; the few it calls a syntax error cannot be told apart */
    if (why->line < 0) {
        return oc_fail_memory(err, 0, "the manifest");
    }
    switch (json_error_code(why)) {
    case json_error_duplicate_key:
        sentence = "has a member twice";
        break;
    case json_error_numeric_overflow:
        sentence = "has a number that is no integer between 0 and 2^53-1";
        break;
    case json_error_stack_overflow:
        sentence = "is nested too deep";
        break;
    case json_error_invalid_utf8:
        sentence = "is not UTF-8";
        break;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        sentence = "has a text with NUL";
        break;
    case json_error_end_of_input_expected:
        sentence = "goes on after its end";
        break;
    default:
        break;
    }
    ortcrypt_status st = oc_json_refuse(NULL, err, "%s, at byte %d", sentence, why->position);
    if (why->position >= 0) {
        oc_at(err, (uint64_t)why->position, NULL);
    }
    return st;
}

ortcrypt_status oc_manifest_parse(oc_manifest **out, oc_span json, ortcrypt_error *err)
{
    json_error_t why;

    if (json.len > OC_MANIFEST_MAX) {
        return oc_fail(err, ORTCRYPT_E_LIMIT, "the manifest has %zu bytes, the limit is %u", json.len, OC_MANIFEST_MAX);
    }
    oc_manifest *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return oc_fail_memory(err, sizeof *m, "the manifest");
    }
    json_t *root = json_loadb((const char *)json.data, json.len, JSON_REJECT_DUPLICATES, &why);
    ortcrypt_status st = root == NULL ? refuse_json(&why, err) : parse_root(root, m, err);
    if (st == ORTCRYPT_OK && has_minus(json)) {
        st = oc_json_refuse(NULL, err, "has a number that is no integer between 0 and 2^53-1");
    }
    json_decref(root);
    if (st != ORTCRYPT_OK) {
        oc_manifest_free(m);
        return st;
    }
    *out = m;
    return ORTCRYPT_OK;
}
