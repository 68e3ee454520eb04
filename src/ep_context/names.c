/* Which names can be file names. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <string.h>

#include "ep_context/internal.h"

/* Length of the UTF-8 sequence at `text` (RFC 3629: no overlong forms, no surrogates), or 0. */
static size_t utf8_sequence(const unsigned char *text)
{
    const unsigned char first = text[0];
    if (first < 0x80) {
        return 1;
    }
    const size_t len = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0; /* also at the final NUL */
        }
    }
    const unsigned char second = text[1];
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return overlong || beyond ? 0 : len;
}

bool oc_ep_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        const size_t len = utf8_sequence(at);
        if (len == 0) {
            return false;
        }
        at += len;
    }
    return true;
}

const char *oc_ep_name_flaw(const char *name, bool below)
{
    if (name[0] == '\0') {
        return "is empty";
    }
    if (strnlen(name, OC_EP_NAME_MAX + 1) > OC_EP_NAME_MAX) {
        return "is longer than 4096 bytes";
    }
    if (!oc_ep_is_utf8(name)) {
        return "is not UTF-8";
    }
    if (below && name[0] == '/') {
        return "is absolute";
    }
    const char *const slash = strrchr(name, '/');
    const char *const last = slash != NULL ? slash + 1 : name;
    if (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
        return "names a folder";
    }
    return NULL;
}
