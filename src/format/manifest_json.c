/* format/manifest_json.c: see manifest_json.h. */
#include "format/manifest_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t spell(const oc_where *w, char *out, size_t room)
{
    if (w == NULL || room < 80) {
        return 0;
    }
    const size_t at = spell(w->up, out, room);
    const int len = w->key != NULL ? snprintf(out + at, room - at, "%s%.64s", at != 0 ? "." : "", w->key)
                                   : snprintf(out + at, room - at, "[%zu]", w->index);
    return len < 0 || (size_t)len >= room - at ? at : at + (size_t)len;
}

ortcrypt_status oc_json_refuse(const oc_where *w, ortcrypt_error *err, const char *format, ...)
{
    char place[512] = "";
    char sentence[256];
    va_list args;

    (void)spell(w, place, sizeof place);
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the manifest's %s %s", w != NULL ? place : "text", sentence);
}

ortcrypt_status oc_json_check(json_t *value, const oc_where *w, unsigned depth, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    const char *key = NULL;
    json_t *child = NULL;
    size_t i = 0;

    if (json_is_real(value) || (json_is_integer(value) && (json_integer_value(value) < 0 ||
                                                           (uint64_t)json_integer_value(value) > OC_MANIFEST_INTEGER_MAX))) {
        return oc_json_refuse(w, err, "is no integer between 0 and 2^53-1");
    }
    if (!json_is_object(value) && !json_is_array(value)) {
        return ORTCRYPT_OK;
    }
    if (depth == OC_MANIFEST_DEPTH_MAX) {
        return oc_json_refuse(w, err, "is nested deeper than %d", OC_MANIFEST_DEPTH_MAX);
    }
    if (json_is_array(value)) {
        json_array_foreach(value, i, child)
        {
            st = oc_json_check(child, &(oc_where){w, NULL, i}, depth + 1, err);
            if (st != ORTCRYPT_OK) {
                return st;
            }
        }
        return ORTCRYPT_OK;
    }
    void *at = json_object_iter(value);
    while (st == ORTCRYPT_OK && at != NULL) {
        key = json_object_iter_key(at);
        st = oc_json_check(json_object_iter_value(at), &(oc_where){w, key, 0}, depth + 1, err);
        at = json_object_iter_next(value, at);
    }
    return st;
}

ortcrypt_status oc_json_extensions(json_t *object, const oc_where *w, const char *const *known, oc_pair **pairs, size_t *count,
                                       ortcrypt_error *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0) {
            i++;
        }
        if (known[i] != NULL) {
            continue;
        }
        if (strncmp(key, "x-", 2) != 0) {
            return oc_json_refuse(&(oc_where){w, key, 0}, err, "is a member that ortcrypt/1 does not have");
        }
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        st = text == NULL ? oc_fail_memory(err, 0, "a member of the manifest") : oc_pair_append(pairs, count, key, text, err);
        free(text);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_json_get(json_t *object, const oc_where *w, const char *key, json_type type, const char *what, json_t **out,
                           ortcrypt_error *err)
{
    json_t *const value = json_object_get(object, key);

    if (value == NULL) {
        return oc_json_refuse(&(oc_where){w, key, 0}, err, "is missing");
    }
    if (json_typeof(value) != type) {
        return oc_json_refuse(&(oc_where){w, key, 0}, err, "is no %s", what);
    }
    *out = value;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_json_integer(json_t *object, const oc_where *w, const char *key, uint64_t *out, ortcrypt_error *err)
{
    json_t *value = NULL;

    ortcrypt_status st = oc_json_get(object, w, key, JSON_INTEGER, "integer between 0 and 2^53-1", &value, err);
    if (st == ORTCRYPT_OK) {
        *out = (uint64_t)json_integer_value(value);
    }
    return st;
}

ortcrypt_status oc_json_text(json_t *object, const oc_where *w, const char *key, char **out, ortcrypt_error *err)
{
    json_t *value = NULL;

    ortcrypt_status st = oc_json_get(object, w, key, JSON_STRING, "string", &value, err);
    return st == ORTCRYPT_OK ? oc_strdup(out, json_string_value(value), err) : st;
}

ortcrypt_status oc_json_optional_text(json_t *object, const oc_where *w, const char *key, char **out, ortcrypt_error *err)
{
    return json_object_get(object, key) == NULL ? ORTCRYPT_OK : oc_json_text(object, w, key, out, err);
}

ortcrypt_status oc_json_read_hex(const json_t *value, const oc_where *w, uint8_t *out, size_t len, ortcrypt_error *err)
{
    if (!json_is_string(value) || !oc_hex_decode(out, len, json_string_value(value), json_string_length(value))) {
        return oc_json_refuse(w, err, "is not %zu lower hex digits", 2 * len);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_json_hex(json_t *object, const oc_where *w, const char *key, uint8_t *out, size_t len, ortcrypt_error *err)
{
    json_t *value = NULL;

    ortcrypt_status st = oc_json_get(object, w, key, JSON_STRING, "string", &value, err);
    return st == ORTCRYPT_OK ? oc_json_read_hex(value, &(oc_where){w, key, 0}, out, len, err) : st;
}

ortcrypt_status oc_json_pairs(json_t *object, const oc_where *w, const char *key, oc_pair **pairs, size_t *count,
                                 ortcrypt_error *err)
{
    const oc_where here = {w, key, 0};
    const char *name = NULL;
    json_t *list = NULL;
    json_t *value = NULL;

    ortcrypt_status st = oc_json_get(object, w, key, JSON_OBJECT, "object", &list, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    json_object_foreach(list, name, value)
    {
        if (!json_is_string(value)) {
            return oc_json_refuse(&(oc_where){&here, name, 0}, err, "is no string");
        }
        st = oc_pair_append(pairs, count, name, json_string_value(value), err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    return ORTCRYPT_OK;
}
