/*
 * cli/npy_header.c: the Python dictionary at the head of a .npy file:
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * Exactly these three members, in any order. Source: numpy.lib.format.
 */
#include <string.h>

#include "tensor.h"

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* A quoted text without escapes. NULL: none, or longer than `max`. */
static const char *take_text(const char *at, char *out, size_t max)
{
    const char quote = *at;
    if (quote != '\'' && quote != '"') {
        return NULL;
    }
    const char *end = strchr(at + 1, quote);
    if (end == NULL || (size_t)(end - at) > max || memchr(at + 1, '\\', (size_t)(end - at - 1)) != NULL) {
        return NULL;
    }
    memcpy(out, at + 1, (size_t)(end - at - 1));
    out[end - at - 1] = 0;
    return end + 1;
}

static const char *take_bool(const char *at, bool *out)
{
    if (strncmp(at, "True", 4) == 0) {
        *out = true;
        return at + 4;
    }
    if (strncmp(at, "False", 5) == 0) {
        *out = false;
        return at + 5;
    }
    return NULL;
}

/* "(3, 4)", "(3,)", "()" ; Python 2 wrote 3L. */
static const char *take_shape(const char *at, cli_npy_header *header)
{
    header->rank = 0;
    if (*at != '(') {
        return NULL;
    }
    at = skip_space(at + 1);
    while (*at != ')') {
        uint64_t value = 0;
        const size_t digits = strspn(at, "0123456789");
        char number[20];
        if (digits == 0 || digits >= sizeof number || header->rank == CLI_RANK_MAX) {
            return NULL;
        }
        memcpy(number, at, digits);
        number[digits] = 0;
        if (!cli_number_parse(number, &value)) {
            return NULL;
        }
        header->shape[header->rank++] = value;
        at += digits;
        at = skip_space(at + (*at == 'L' ? 1 : 0));
        if (*at != ',' && *at != ')') {
            return NULL;
        }
        at = skip_space(at + (*at == ',' ? 1 : 0));
    }
    return at + 1;
}

const char *cli_npy_header_parse(cli_npy_header *header, const char *text)
{
    bool seen[3] = {false, false, false};
    const char *at = skip_space(text);
    *header = (cli_npy_header){0};
    if (*at != '{') {
        return "its header is no dictionary";
    }
    at = skip_space(at + 1);
    while (*at != '}') {
        char key[16] = "";
        at = take_text(at, key, sizeof key - 1);
        at = at != NULL ? skip_space(at) : NULL;
        if (at == NULL || *at != ':') {
            return "its header is malformed";
        }
        at = skip_space(at + 1);
        const int member = strcmp(key, "descr") == 0 ? 0 : strcmp(key, "fortran_order") == 0 ? 1 : strcmp(key, "shape") == 0 ? 2 : -1;
        if (member < 0 || seen[member]) {
            return "its header has a member that does not belong there";
        }
        if (member == 0 && *at == '[') {
            return "structured elements are not supported";
        }
        seen[member] = true;
        at = member == 0   ? take_text(at, header->descr, sizeof header->descr - 1)
             : member == 1 ? take_bool(at, &header->fortran)
                           : take_shape(at, header);
        at = at != NULL ? skip_space(at) : NULL;
        if (at == NULL || (*at != ',' && *at != '}')) {
            return "its header is malformed";
        }
        at = skip_space(at + (*at == ',' ? 1 : 0));
    }
    if (!seen[0] || !seen[1] || !seen[2]) {
        return "its header lacks a member";
    }
    return *skip_space(at + 1) == 0 ? NULL : "something follows its header's dictionary";
}
