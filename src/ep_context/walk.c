/*
 * A name below a folder, resolved part by part on open folders, so that nothing swapped meanwhile leads out of it.
 *
 * Each part is opened with O_NOFOLLOW from the folder reached so far; links are read and their text walked like the rest of the
 * name. ".." never asks the kernel: the way from the root is known without links and walked again one part shorter. A way out
 * is followed only in words: above the root, and for an absolute link from "/", the parts must be those of the root's own
 * path, until the root is reached again; nothing outside is ever opened. At most 40 links, as in the kernel.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ep_context/internal.h"

enum { LINKS_MAX = 40 };

typedef struct walk {
    int root;           /* borrowed */
    int at;             /* the folder reached: `root` itself, or ours */
    const char *folder; /* the root's path as it was given */
    char *real;         /* the same without links; "" for "/" */
    size_t real_len;
    size_t outside; /* this many bytes of `real` say where we are; real_len: at the root or below it */
    char *done;     /* "/a/b": the way from the root to `at`, without links; "" at the root */
    char *rest;     /* what is still to be walked */
    const char *next;
    unsigned links;
    bool past_link;
} walk;

int oc_ep_link_text(int at, const char *name, char **text)
{
    char buffer[PATH_MAX];
    const ssize_t len = readlinkat(at, name, buffer, sizeof(buffer));
    if (len < 0) {
        return errno;
    }
    if ((size_t)len == sizeof(buffer)) {
        return ENAMETOOLONG;
    }
    *text = strndup(buffer, (size_t)len);
    return *text != NULL ? 0 : ENOMEM;
}

static void set_at(walk *w, int at)
{
    if (w->at != w->root) {
        (void)close(w->at);
    }
    w->at = at;
}

static int open_part(int at, const char *part, int *fd)
{
    *fd = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? errno : 0;
}

/* Goes from the root along `done` again. What is not as it was: EAGAIN. */
static int reopen(walk *w)
{
    set_at(w, w->root);
    char *const way = strdup(w->done);
    char *state = NULL;
    int why = way != NULL ? 0 : ENOMEM;
    for (char *part = way != NULL ? strtok_r(way, "/", &state) : NULL; part != NULL && why == 0;
         part = strtok_r(NULL, "/", &state)) {
        int fd = -1;
        why = open_part(w->at, part, &fd);
        if (why == 0) {
            set_at(w, fd);
        } else if (why == ENOENT || why == ENOTDIR || why == ELOOP) {
            why = EAGAIN;
        }
    }
    free(way);
    return why;
}

static int step_up(walk *w)
{
    char *const cut = strrchr(w->done, '/');
    if (cut != NULL) {
        *cut = '\0';
        return reopen(w);
    }
    while (w->outside > 0 && w->real[w->outside - 1] != '/') {
        w->outside--;
    }
    w->outside -= w->outside > 0 ? 1 : 0;
    return 0;
}

/* One part further while outside: it must be the root's own. */
static int step_back(walk *w, const char *part)
{
    const char *const mine = w->real + w->outside + 1; /* after the slash */
    const size_t len = strlen(part);
    if (strncmp(mine, part, len) != 0 || (mine[len] != '/' && mine[len] != '\0')) {
        return EXDEV;
    }
    w->outside += 1 + len;
    return 0;
}

/* `path` after the parts of `folder`, or NULL when it does not begin with them. Both absolute. */
static const char *below(const char *path, const char *folder)
{
    for (;;) {
        path += strspn(path, "/");
        folder += strspn(folder, "/");
        const size_t len = strcspn(folder, "/");
        if (len == 0) {
            return path;
        }
        if (strcspn(path, "/") != len || memcmp(path, folder, len) != 0) {
            return NULL;
        }
        path += len;
        folder += len;
    }
}

/* The link's text takes the place of the part just read. Takes `text`. */
static int follow(walk *w, char *text)
{
    const char *from = text;
    char *joined = NULL;
    int why = ++w->links > LINKS_MAX ? ELOOP : 0;
    if (why == 0 && text[0] == '/') {
        const char *const inner = w->folder[0] == '/' ? below(text, w->folder) : NULL;
        from = inner != NULL ? inner : text;
        w->outside = inner != NULL ? w->real_len : 0;
        w->done[0] = '\0';
        set_at(w, w->root);
    }
    const size_t from_len = strlen(from);
    const size_t next_len = strlen(w->next);
    if (why == 0) {
        joined = malloc(from_len + next_len + 1);
        why = joined != NULL ? 0 : ENOMEM;
    }
    if (why == 0) {
        memcpy(joined, from, from_len);
        memcpy(joined + from_len, w->next, next_len + 1); /* begins with a slash, when there is a rest */
        free(w->rest);
        w->rest = joined;
        w->next = joined;
    }
    free(text);
    return why;
}

static int enter(walk *w, const char *part)
{
    char *text = NULL;
    int fd = -1;
    int why = open_part(w->at, part, &fd);
    if (why == ENOTDIR || why == ELOOP) {
        why = oc_ep_link_text(w->at, part, &text);
        if (why == 0) {
            return follow(w, text);
        }
        return why == EINVAL ? ENOTDIR : why;
    }
    if (why != 0) {
        return why;
    }
    set_at(w, fd);
    const size_t done_len = strlen(w->done);
    const size_t part_len = strlen(part);
    char *const longer = realloc(w->done, done_len + part_len + 2);
    if (longer == NULL) {
        return ENOMEM;
    }
    longer[done_len] = '/';
    memcpy(longer + done_len + 1, part, part_len + 1);
    w->done = longer;
    return 0;
}

/* The last part. *found: it is there or could be made there. */
static int arrive(walk *w, const char *part, bool *found)
{
    char *text = NULL;
    const int why = oc_ep_link_text(w->at, part, &text);
    if (why == 0) {
        w->past_link = true;
        return follow(w, text);
    }
    *found = why == EINVAL || why == ENOENT;
    return *found ? 0 : why;
}

/* Takes the next part (*part is heap, NULL at the end); *last: nothing follows, not even a slash. */
static int take_part(walk *w, char **part, bool *last)
{
    w->next += strspn(w->next, "/");
    const size_t len = strcspn(w->next, "/");
    *part = NULL;
    if (len == 0) {
        return 0;
    }
    *part = strndup(w->next, len);
    w->next += len;
    *last = w->next[0] == '\0';
    return *part != NULL ? 0 : ENOMEM;
}

static int step(walk *w, const char *part, bool last, bool *found)
{
    if (strcmp(part, ".") == 0) {
        return 0;
    }
    if (strcmp(part, "..") == 0) {
        return step_up(w);
    }
    if (w->outside < w->real_len) {
        return step_back(w, part);
    }
    return last ? arrive(w, part, found) : enter(w, part);
}

static int walk_all(walk *w, oc_ep_place *place)
{
    for (;;) {
        char *part = NULL;
        bool last = false;
        bool found = false;
        int why = take_part(w, &part, &last);
        if (why == 0 && part == NULL) {
            return w->outside < w->real_len ? EXDEV : EISDIR;
        }
        if (why == 0) {
            why = step(w, part, last, &found);
        }
        if (why == 0 && found) {
            const int at = fcntl(w->at, F_DUPFD_CLOEXEC, 0);
            if (at < 0) {
                why = errno;
            } else {
                const oc_ep_place here = {at, part, w->past_link};
                *place = here;
                return 0;
            }
        }
        free(part);
        if (why != 0) {
            return why;
        }
    }
}

int oc_ep_walk(int root, const char *folder, const char *name, oc_ep_place *place)
{
    walk w = {.root = root, .at = root, .folder = folder};
    w.real = realpath(folder, NULL);
    int why = w.real != NULL ? 0 : errno;
    w.done = strdup("");
    w.rest = strdup(name);
    if (why == 0 && (w.done == NULL || w.rest == NULL)) {
        why = ENOMEM;
    }
    if (why == 0) {
        w.real_len = strcmp(w.real, "/") == 0 ? 0 : strlen(w.real);
        w.outside = w.real_len;
        w.next = w.rest;
        why = walk_all(&w, place);
    }
    set_at(&w, root);
    free(w.real);
    free(w.done);
    free(w.rest);
    return why;
}
