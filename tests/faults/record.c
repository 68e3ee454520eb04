/*
 * record: writes a log of everything a command does to files and folders, for tests/faults/replay.py.
 *
 *   record LOG COMMAND...
 *
 * One line an event, in the order in which the calls returned. Files and folders are told by DEV:INODE, names are
 * percent-encoded, data is hexadecimal:
 *   create FOLDER NAME FILE     mkdir FOLDER NAME FOLDER     link FOLDER NAME FILE     unlink FOLDER NAME
 *   rename FOLDER NAME FOLDER NAME     write FILE OFFSET DATA     truncate FILE     fsync FILE-OR-FOLDER
 *   report      bytes went to standard output: the command said that it is done
 *   unknown CALL FILE-OR-FOLDER      a call that changes files and that this program does not follow
 * Exit code: the command's; 2 for an error of record itself.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "faults/trace.h"

enum { PATH_ROOM = PATH_MAX + 64, PENDING_MAX = 256, REPORT_FD = 1 };

/* An entry of a folder as a call names it, looked at before the call is made. */
typedef struct place {
    bool known;
    bool there; /* the entry exists */
    struct stat folder;
    char name[NAME_MAX + 1];
    char path[PATH_ROOM]; /* by way of /proc: for stat */
} place;

typedef struct pending {
    pid_t thread;
    place from;
    place to;
} pending;

static FILE *log_file;
static pending calls[PENDING_MAX];

static pending *pending_of(pid_t thread)
{
    pending *unused = NULL;
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        if (calls[i].thread == thread) {
            return &calls[i];
        }
        if (unused == NULL && calls[i].thread == 0) {
            unused = &calls[i];
        }
    }
    if (unused == NULL) {
        fputs("record: too many threads\n", stderr);
        exit(2);
    }
    unused->thread = thread;
    return unused;
}

static bool read_memory(pid_t thread, uint64_t from, void *to, size_t len)
{
    const struct iovec here = {to, len};
    const struct iovec there = {(void *)(uintptr_t)from, len};
    return process_vm_readv(thread, &here, 1, &there, 1, 0) == (ssize_t)len;
}

static bool read_text(pid_t thread, uint64_t from, char *to, size_t room)
{
    for (size_t i = 0; i < room; i++) {
        if (!read_memory(thread, from + i, &to[i], 1)) {
            return false;
        }
        if (to[i] == '\0') {
            return true;
        }
    }
    return false;
}

/* (folder descriptor, path) of a thread -> the folder and the last name. */
static void look(place *out, pid_t thread, int64_t folder, uint64_t text)
{
    char given[PATH_MAX];
    char parent[PATH_ROOM];
    struct stat info;
    memset(out, 0, sizeof *out);
    if (!read_text(thread, text, given, sizeof given) || given[0] == '\0') {
        return;
    }
    if (given[0] == '/') {
        snprintf(out->path, sizeof out->path, "%s", given);
    } else if ((int)folder == AT_FDCWD) {
        snprintf(out->path, sizeof out->path, "/proc/%d/cwd/%s", (int)thread, given);
    } else {
        snprintf(out->path, sizeof out->path, "/proc/%d/fd/%d/%s", (int)thread, (int)folder, given);
    }
    snprintf(parent, sizeof parent, "%s", out->path);
    char *const slash = strrchr(parent, '/');
    if (strlen(slash + 1) > NAME_MAX) {
        return;
    }
    memcpy(out->name, slash + 1, strlen(slash + 1) + 1);
    slash[slash == parent ? 1 : 0] = '\0';
    out->known = stat(parent, &out->folder) == 0;
    out->there = lstat(out->path, &info) == 0;
}

static bool stat_fd(pid_t thread, uint64_t fd, struct stat *info)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)thread, (int)fd);
    return stat(path, info) == 0;
}

static void put_id(const struct stat *info)
{
    fprintf(log_file, " %llx:%llx", (unsigned long long)info->st_dev, (unsigned long long)info->st_ino);
}

static void put_place(const place *p)
{
    put_id(&p->folder);
    fputc(' ', log_file);
    for (const unsigned char *c = (const unsigned char *)p->name; *c != '\0'; c++) {
        fprintf(log_file, isalnum(*c) || strchr("._-", *c) != NULL ? "%c" : "%%%02x", *c);
    }
}

static void put_made(const char *event, const place *p)
{
    struct stat made;
    if (p->known && lstat(p->path, &made) == 0) {
        fputs(event, log_file);
        put_place(p);
        put_id(&made);
        fputc('\n', log_file);
    }
}

static void put_fd(const char *event, const trace_call *call, uint64_t fd)
{
    struct stat info;
    if (stat_fd(call->thread, fd, &info)) {
        fputs(event, log_file);
        put_id(&info);
        fputc('\n', log_file);
    }
}

/* Where write(2) has just ended. */
static int64_t position(const trace_call *call)
{
    char path[64];
    long long at = -1;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)call->thread, (int)call->args[0]);
    FILE *const info = fopen(path, "re");
    if (info != NULL) {
        if (fscanf(info, "pos: %lld", &at) != 1) {
            at = -1;
        }
        fclose(info);
    }
    return at;
}

static void put_write(const trace_call *call)
{
    struct stat info;
    const size_t len = (size_t)call->result;
    if (call->number == SYS_write && call->args[0] == REPORT_FD) {
        fputs("report\n", log_file);
        return;
    }
    if (!stat_fd(call->thread, call->args[0], &info) || !S_ISREG(info.st_mode)) {
        return;
    }
    uint8_t *const data = malloc(len);
    const int64_t offset = call->number == SYS_pwrite64 ? (int64_t)call->args[3] : position(call) - call->result;
    if (data == NULL || offset < 0 || !read_memory(call->thread, call->args[1], data, len)) {
        fputs("record: written data cannot be read\n", stderr);
        exit(2);
    }
    fputs("write", log_file);
    put_id(&info);
    fprintf(log_file, " %lld ", (long long)offset);
    for (size_t i = 0; i < len; i++) {
        fputc("0123456789abcdef"[data[i] >> 4], log_file);
        fputc("0123456789abcdef"[data[i] & 15], log_file);
    }
    fputc('\n', log_file);
    free(data);
}

static bool is(const char *name, const char *a, const char *b)
{
    return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static void before(const trace_call *call, const char *name)
{
    pending *const p = pending_of(call->thread);
    const uint64_t *const a = call->args;
    const size_t len = strlen(name);
    const bool at = (len > 2 && strcmp(name + len - 2, "at") == 0) || strcmp(name, "renameat2") == 0;
    memset(&p->from, 0, sizeof p->from);
    memset(&p->to, 0, sizeof p->to);
    if (is(name, "rename", "link")) {
        look(&p->from, call->thread, AT_FDCWD, a[0]);
        look(&p->to, call->thread, AT_FDCWD, a[1]);
    } else if (is(name, "renameat", "renameat2") || is(name, "linkat", "linkat")) {
        look(&p->from, call->thread, (int64_t)a[0], a[1]);
        look(&p->to, call->thread, (int64_t)a[2], a[3]);
    } else if (strncmp(name, "symlink", 7) == 0) {
        look(&p->from, call->thread, at ? (int64_t)a[1] : AT_FDCWD, a[at ? 2 : 1]);
    } else if (at || is(name, "open", "creat") || is(name, "mkdir", "rmdir") || is(name, "unlink", "unlink")) {
        look(&p->from, call->thread, at ? (int64_t)a[0] : AT_FDCWD, a[at ? 1 : 0]);
    }
}

static void after_open(const trace_call *call, const char *name, const pending *p)
{
    const uint64_t flags = strcmp(name, "creat") == 0 ? O_CREAT | O_TRUNC : call->args[strcmp(name, "openat") == 0 ? 2 : 1];
    if ((flags & O_CREAT) != 0 && !p->from.there) {
        put_made("create", &p->from);
    } else if ((flags & O_TRUNC) != 0) {
        put_fd("truncate", call, (uint64_t)call->result);
    }
}

static void after(const trace_call *call, const char *name)
{
    const pending *const p = pending_of(call->thread);
    if (is(name, "open", "openat") || is(name, "creat", "creat")) {
        after_open(call, name, p);
    } else if (is(name, "write", "pwrite64")) {
        if (call->result > 0) {
            put_write(call);
        }
    } else if (is(name, "fsync", "fdatasync")) {
        put_fd("fsync", call, call->args[0]);
    } else if (is(name, "mkdir", "mkdirat")) {
        put_made("mkdir", &p->from);
    } else if (is(name, "link", "linkat")) {
        put_made("link", &p->to);
    } else if (is(name, "unlink", "unlinkat") || is(name, "rmdir", "rmdir")) {
        fputs("unlink", log_file);
        put_place(&p->from);
        fputc('\n', log_file);
    } else if (strncmp(name, "rename", 6) == 0) {
        fputs("rename", log_file);
        put_place(&p->from);
        put_place(&p->to);
        fputc('\n', log_file);
    } else if (strncmp(name, "symlink", 7) == 0) {
        fputs("unknown symlink", log_file);
        put_id(&p->from.folder);
        fputc('\n', log_file);
    } else if (!is(name, "close", "flock") && strcmp(name, "sync_file_range") != 0) { /* those promise nothing about the disk */
        char event[64];
        snprintf(event, sizeof event, "unknown %s", name);
        put_fd(event, call, call->args[0]);
    }
}

/* Changes through a shared mapping would not be seen. */
static void after_mmap(const trace_call *call)
{
    if ((call->args[3] & MAP_TYPE) != MAP_PRIVATE && (call->args[3] & MAP_ANONYMOUS) == 0 && (call->args[2] & PROT_WRITE) != 0) {
        put_fd("unknown mmap", call, call->args[4]);
    }
}

static void at_call(void *state, const trace_call *call)
{
    const char *const name = trace_changing(call->number);
    (void)state;
    if (name != NULL && call->entry) {
        before(call, name);
    } else if (name != NULL && call->result >= 0) {
        after(call, name);
    } else if (call->number == SYS_mmap && !call->entry && call->result > 0) {
        after_mmap(call);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: record LOG COMMAND...\n", stderr);
        return 2;
    }
    log_file = fopen(argv[1], "we");
    if (log_file == NULL) {
        perror(argv[1]);
        return 2;
    }
    const int code = trace_run(argv + 2, at_call, NULL);
    if (fclose(log_file) != 0) {
        perror(argv[1]);
        return 2;
    }
    return code;
}
