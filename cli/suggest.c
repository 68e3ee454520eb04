/* cli/suggest.c: "did you mean". */
#include <string.h>

#include "options.h"

#define WORD_MAX 48

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) between two words; WORD_MAX when one of them is too long. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    const size_t a_len = strlen(a);
    const size_t b_len = strlen(b);
    if (a_len > WORD_MAX || b_len > WORD_MAX) {
        return WORD_MAX;
    }
    for (size_t j = 0; j <= b_len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3];
        const size_t *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = smaller(smaller(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = smaller(now[j], before[j - 2] + 1);
            }
        }
    }
    return rows[a_len % 3][b_len];
}

const char *cli_suggest(const char *text, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 3;
    const size_t len = strlen(text);
    for (size_t i = 0; i < count; i++) {
        const size_t edits = distance(text, names[i]);
        if (edits < best_distance && edits < len) {
            best = names[i];
            best_distance = edits;
        }
    }
    for (size_t i = 0; best == NULL && len >= 2 && i < count; i++) {
        if (strncmp(text, names[i], len) == 0) {
            best = names[i];
        }
    }
    return best;
}
