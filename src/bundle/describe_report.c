/* JSON for describe and verify: nothing here but shapes. */
#include "bundle/describe_report.h"

#include <stdlib.h>
#include <string.h>

void oc_report_start(oc_report *json)
{
    *json = (oc_report){.top = json_object()};
    json->bad = json->top == NULL;
}

void oc_report_free(oc_report *json)
{
    json_decref(json->top);
    json->top = NULL;
}

void oc_report_put(oc_report *json, json_t *object, const char *key, json_t *value)
{
    json->bad |= json_object_set_new(object, key, value) != 0;
}

void oc_report_add(oc_report *json, json_t *array, json_t *value)
{
    json->bad |= json_array_append_new(array, value) != 0;
}

json_t *oc_report_text(const char *text)
{
    text = text == NULL ? "" : text;
    const size_t len = strlen(text);
    if (oc_utf8_valid(text, len)) {
        return json_stringn(text, len);
    }
    char *const plain = strdup(text);
    if (plain == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)plain[i] >= 0x80) {
            plain[i] = '?';
        }
    }
    json_t *const value = json_stringn(plain, len);
    free(plain);
    return value;
}

json_t *oc_report_hex(const uint8_t *data, size_t len)
{
    char hex[2 * 32 + 1];

    if (len > 32) {
        return NULL;
    }
    oc_hex_encode(hex, data, len);
    return json_string(hex);
}

json_t *oc_report_number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

ortcrypt_status oc_report_finish(oc_report *json, char **out, ortcrypt_error *err)
{
    char *const text = json->bad ? NULL : json_dumps(json->top, JSON_INDENT(2));

    if (text == NULL) {
        return oc_fail_memory(err, 0, "a report");
    }
    *out = text;
    return ORTCRYPT_OK;
}
