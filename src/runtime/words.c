/* ORT's error messages as people should read them: one line, without the places in ORT's own source that they begin with. */
#include <stdbool.h>
#include <string.h>

#include "runtime/private.h"

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static size_t word_len(const char *at) { return strcspn(at, " \n\r\t"); }

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at)) {
        at++;
    }
    return at;
}

/* "model.cc:202", "/onnxruntime_src/onnxruntime/core/graph/model.cc:202" */
static bool is_place(const char *word, size_t len)
{
    static const char *const endings[] = {".cc", ".h", ".cpp", ".hpp", ".cu", ".inc"};
    size_t name_len = len;

    while (name_len != 0 && word[name_len - 1] >= '0' && word[name_len - 1] <= '9') {
        name_len--;
    }
    if (name_len == len || name_len < 2 || word[--name_len] != ':') {
        return false;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t ending_len = strlen(endings[i]);
        if (name_len > ending_len && memcmp(word + name_len - ending_len, endings[i], ending_len) == 0) {
            return true;
        }
    }
    return false;
}

/* Behind the bracket that closes `*at`; NULL when none does. */
static const char *skip_brackets(const char *at, char open, char close)
{
    size_t depth = 0;

    for (; *at != '\0'; at++) {
        depth += *at == open;
        if (*at == close && --depth == 0) {
            return at + 1;
        }
    }
    return NULL;
}

/*
 * Behind "Status ns::Class<T>::Method(int)::<lambda(U&)> const [with T = float]", what GCC's __PRETTY_FUNCTION__ gives. `at`
 * where this is none.
 */
static const char *skip_signature(const char *at)
{
    const char *p = at;

    while (*p != '\0' && *p != '(') {
        p = *p == '<' ? skip_brackets(p, '<', '>') : p + 1;
        if (p == NULL) {
            return at;
        }
    }
    if (*p == '\0') {
        return at;
    }
    while (*p != '\0' && !is_blank(*p)) {
        const char *const next = *p == '(' ? skip_brackets(p, '(', ')') : *p == '<' ? skip_brackets(p, '<', '>') : p + 1;
        if (next == NULL) {
            return at;
        }
        p = next;
    }
    if (strncmp(p, " const ", 7) == 0) {
        p += 6;
    }
    if (strncmp(p, " [with ", 7) == 0) {
        const char *const end = skip_brackets(p + 1, '[', ']');
        p = end != NULL ? end : p;
    }
    return p;
}

/* A full path comes with a whole signature, a bare file name with a function's name. */
static const char *skip_place(const char *at)
{
    const size_t len = word_len(at);
    const char *const function = skip_blanks(at + len);

    if (!is_place(at, len)) {
        return at;
    }
    return skip_blanks(*at == '/' ? skip_signature(function) : function + word_len(function));
}

void ortcrypt_ort_words(char *text, size_t size, const char *message)
{
    const char *at = skip_blanks(message != NULL ? message : "");
    size_t len = 0;

    while (size != 0 && *at != '\0') {
        const char *const after = skip_place(at);
        if (after != at) {
            at = after;
            continue;
        }
        if (len != 0 && len + 1 < size) {
            text[len++] = ' ';
        }
        for (; *at != '\0' && !is_blank(*at); at++) {
            if (len + 1 < size) {
                text[len++] = *at;
            }
        }
        at = skip_blanks(at);
    }
    if (size != 0) {
        text[len] = '\0';
    }
}
