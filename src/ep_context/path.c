/*
 * Names that become paths. A name that a model says is not trusted: the kernel resolves it below the model's folder
 * (openat2, RESOLVE_BENEATH), so that no link that is swapped meanwhile leads out.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static bool is_utf8(const char *text)
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
    if (!is_utf8(name)) {
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

int oc_ep_open(const char *folder, const char *name, int flags)
{
    flags |= O_CLOEXEC | O_NOCTTY;
    if (folder == NULL) {
        return open(name, flags);
    }
    const int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return -1;
    }
    struct open_how how;
    memset(&how, 0, sizeof(how));
    how.flags = (unsigned)flags;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    long fd = -1;
    /* EAGAIN: something was renamed while ".." was resolved; the kernel asks for another try */
    for (int tries = 0; tries < 1000 && fd < 0; tries++) {
        fd = syscall(SYS_openat2, at, name, &how, sizeof(how));
        if (fd < 0 && errno != EAGAIN && errno != EINTR) {
            break;
        }
    }
    const int why = errno;
    (void)close(at);
    errno = why;
    return (int)fd;
}
