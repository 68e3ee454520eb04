/*
 * What the parent says to one notification. A path in the program's memory may change while it is read: it serves for the sentence and
 * for the choice of a device, which the parent opens itself; nothing but reading is ever let through on the strength of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/watch_private.h"

#define WRITING_FLAGS (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/* Where a call has its folder's descriptor (-1: the working folder) and its path: of the thing that would come to be, or go. */
typedef struct call {
    int number;
    const char *what;
    int folder;
    int path;
    int flags; /* argument with open flags; -1: no open */
} call;

static const call CALLS[] = {
#ifdef SYS_open
    {SYS_open, "open", -1, 0, 1},       {SYS_creat, "open", -1, 0, -1},  {SYS_rename, "rename", -1, 1, -1},
    {SYS_link, "link", -1, 1, -1},      {SYS_symlink, "link", -1, 1, -1}, {SYS_mkdir, "make the folder", -1, 0, -1},
    {SYS_rmdir, "remove", -1, 0, -1},   {SYS_mknod, "make", -1, 0, -1},   {SYS_unlink, "remove", -1, 0, -1},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "rename", 2, 3, -1},
#endif
    {SYS_openat, "open", 0, 1, 2},       {SYS_openat2, "open", 0, 1, -1},          {SYS_renameat2, "rename", 2, 3, -1},
    {SYS_linkat, "link", 2, 3, -1},      {SYS_symlinkat, "link", 1, 2, -1},        {SYS_mkdirat, "make the folder", 0, 1, -1},
    {SYS_mknodat, "make", 0, 1, -1},     {SYS_unlinkat, "remove", 0, 1, -1},       {SYS_truncate, "shorten", -1, 0, -1},
};

static ssize_t read_memory(pid_t pid, uint64_t address, void *out, size_t len)
{
    char name[64];
    ssize_t got = -1;

    (void)snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid); /* a sandbox of the parent may refuse process_vm_readv */
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = pread(fd, out, len, (off_t)address);
        (void)close(fd);
    }
    return got;
}

/* Page by page, since a text may end just before memory that is not there. */
static bool read_text(pid_t pid, uint64_t address, char text[PATH_MAX])
{
    size_t len = 0;

    while (len < PATH_MAX - 1) {
        size_t step = 4096 - (size_t)((address + len) % 4096);
        step = step < PATH_MAX - 1 - len ? step : PATH_MAX - 1 - len;
        const ssize_t got = read_memory(pid, address + len, text + len, step);
        if (got <= 0) {
            break;
        }
        if (memchr(text + len, '\0', (size_t)got) != NULL) {
            return true;
        }
        len += (size_t)got;
    }
    text[len] = '\0';
    return len != 0;
}

/* The path with its folder before it, in text[PATH_MAX * 2]. */
static void absolute(pid_t pid, int folder, const char *path, char text[PATH_MAX * 2])
{
    char link[64];
    char base[PATH_MAX] = "";

    if (path[0] == '/') {
        (void)snprintf(text, PATH_MAX * 2, "%s", path);
        return;
    }
    if (folder == AT_FDCWD) {
        (void)snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
    } else {
        (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, folder);
    }
    const ssize_t len = readlink(link, base, sizeof(base) - 1);
    base[len > 0 ? len : 0] = '\0';
    (void)snprintf(text, PATH_MAX * 2, "%s%s%s", base, base[0] == '\0' || strcmp(base, "/") == 0 ? "" : "/", path[0] != '\0' ? path : ".");
}

/* A descriptor of the character device at `path`, opened with the program's flags; -1 when it is none. */
static int open_device(const char *path, int flags)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS}; /* /proc/self would be ours */
    const int handle = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    struct stat info;
    char name[64];
    int fd = -1;

    if (handle >= 0 && fstat(handle, &info) == 0 && S_ISCHR(info.st_mode)) {
        (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", handle);
        fd = open(name, (flags & (O_ACCMODE | O_APPEND)) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0 && (flags & O_NONBLOCK) == 0) {
            (void)fcntl(fd, F_SETFL, flags & O_APPEND);
        }
    }
    if (handle >= 0) {
        (void)close(handle);
    }
    return fd;
}

/* A thread's name, which glibc sets through a file that is none. It is refused all the same (Landlock does too), but no try to write. */
static bool is_thread_name(const char *path)
{
    const size_t len = strlen(path);

    return strncmp(path, "/proc/", 6) == 0 && len > 5 && strcmp(path + len - 5, "/comm") == 0 && strstr(path, "..") == NULL;
}

static void note(oc_watch_result *result, const char *what, const char *path)
{
    if (result->try_count < OC_WATCH_TRIES_MAX) {
        oc_watch_try *const one = &result->tries[result->try_count];
        one->what = what;
        one->path = strdup(path); /* NULL: the try counts all the same */
    }
    result->try_count++;
}

static bool send_device(int listener, const struct seccomp_notif *request, int fd, int flags)
{
    struct seccomp_notif_addfd add = {.id = request->id,
                                      .flags = SECCOMP_ADDFD_FLAG_SEND,
                                      .srcfd = (uint32_t)fd,
                                      .newfd_flags = (uint32_t)(flags & O_CLOEXEC)};
    const bool sent = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0;

    (void)close(fd);
    return sent;
}

/* True: an openat2 that only reads. The kernel reads the flags again, so this alone would be a race; Landlock is behind it. */
static bool only_reads(const struct seccomp_notif *request)
{
    struct open_how how = {0};

    return request->data.nr == SYS_openat2 &&
           read_memory((pid_t)request->pid, request->data.args[2], &how, sizeof(how)) == (ssize_t)sizeof(how) &&
           (how.flags & WRITING_FLAGS) == 0;
}

/* False: it was answered already. */
static bool judge(int listener, const struct seccomp_notif *request, struct seccomp_notif_resp *response, oc_watch_result *result)
{
    const pid_t pid = (pid_t)request->pid;
    char path[PATH_MAX] = "";
    char whole[PATH_MAX * 2] = "";
    const call *found = NULL;

    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]) && found == NULL; i++) {
        found = CALLS[i].number == request->data.nr ? &CALLS[i] : NULL;
    }
    response->id = request->id;
    response->error = -EACCES;
    if (only_reads(request)) {
        response->error = 0;
        response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        return true;
    }
    if (found == NULL || !read_text(pid, request->data.args[found->path], path)) {
        response->error = -EFAULT;
        note(result, found != NULL ? found->what : "make", "(a path that cannot be read)");
        return true;
    }
    absolute(pid, found->folder >= 0 ? (int)request->data.args[found->folder] : AT_FDCWD, path, whole);
    if (found->flags >= 0) {
        const int flags = (int)request->data.args[found->flags];
        const int fd = open_device(whole, flags);
        if (fd >= 0 && send_device(listener, request, fd, flags)) {
            return false;
        }
    }
    if (!is_thread_name(whole)) {
        note(result, found->what, whole);
    }
    return true;
}

void oc_watch_answer(int listener, oc_watch_result *result)
{
    struct seccomp_notif request; /* zero, or the kernel refuses it */
    struct seccomp_notif_resp response;

    memset(&request, 0, sizeof(request));
    memset(&response, 0, sizeof(response));
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
        return; /* the caller was killed meanwhile */
    }
    if (judge(listener, &request, &response, result)) {
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
}
