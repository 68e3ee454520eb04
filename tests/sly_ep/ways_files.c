/* sly_ep/ways_files.c: ways into the file system: contents, names, and what is kept beside a file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/fs.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sly.h"

#define HANDLE_MAX 128

const char *sly_path(char path[SLY_PATH], const sly *s, const char *name)
{
    (void)snprintf(path, SLY_PATH, "%s/%s", s->room, name);
    return path;
}

static int through(bool yes)
{
    return yes ? SLY_THROUGH : errno == ENOSYS || errno == EOPNOTSUPP ? SLY_ABSENT : SLY_HELD;
}

static int write_and_close(const sly *s, int fd)
{
    const bool wrote = fd >= 0 && write(fd, s->text, s->len) == (ssize_t)s->len;
    const int cause = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = cause;
    return through(wrote);
}

int sly_write_file(const sly *s, const char *path, int flags)
{
    return write_and_close(s, open(path, O_WRONLY | O_CLOEXEC | flags, 0600));
}

static int absolute(const sly *s)
{
    char path[SLY_PATH];
    return sly_write_file(s, sly_path(path, s, "absolute"), O_CREAT | O_EXCL);
}

static int working_folder(const sly *s)
{
    return sly_write_file(s, "sly-relative", O_CREAT | O_EXCL);
}

static int bundle_folder(const sly *s)
{
    char path[SLY_PATH];
    (void)snprintf(path, sizeof path, "%s/objects/sly", s->bundle);
    return sly_write_file(s, path, O_CREAT | O_EXCL);
}

static int in_tmp(const sly *s)
{
    char path[SLY_PATH];
    (void)snprintf(path, sizeof path, "/tmp/sly-%d", s->pid);
    return sly_write_file(s, path, O_CREAT | O_EXCL);
}

static int in_shm(const sly *s)
{
    char path[SLY_PATH];
    (void)snprintf(path, sizeof path, "/dev/shm/sly-%d", s->pid);
    return sly_write_file(s, path, O_CREAT | O_EXCL);
}

static int existing_file(const sly *s)
{
    char path[SLY_PATH];
    return sly_write_file(s, sly_path(path, s, "victim"), O_APPEND);
}

static int by_openat2(const sly *s)
{
    char path[SLY_PATH];
    struct open_how how = {.flags = O_WRONLY | O_CREAT | O_CLOEXEC, .mode = 0600};
    return write_and_close(s, (int)syscall(SYS_openat2, AT_FDCWD, sly_path(path, s, "openat2"), &how, sizeof how));
}

static int through_symlink(const sly *s)
{
    char path[SLY_PATH];
    return sly_write_file(s, sly_path(path, s, "link"), O_CREAT);
}

static int reopened(const sly *s)
{
    char path[SLY_PATH];
    const int fd = open(sly_path(path, s, "victim"), O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int result = sly_write_file(s, path, O_APPEND);
    close(fd);
    return result;
}

static int unnamed_file(const sly *s)
{
    char from[64];
    char path[SLY_PATH];
    const int fd = open(s->room, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        return through(false);
    }
    (void)snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    const int result = through(write(fd, s->text, s->len) == (ssize_t)s->len &&
                               linkat(AT_FDCWD, from, AT_FDCWD, sly_path(path, s, "unnamed"), AT_SYMLINK_FOLLOW) == 0);
    close(fd);
    return result;
}

/* Never works between file systems, sandbox or not: it stays memory. */
static int memfd_linked(const sly *s)
{
    char from[64];
    const int fd = memfd_create("sly", MFD_CLOEXEC);
    (void)snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    const bool wrote = write(fd, s->text, s->len) == (ssize_t)s->len;
    const bool linked = wrote && linkat(AT_FDCWD, from, AT_FDCWD, "/dev/shm/sly-linked", AT_SYMLINK_FOLLOW) == 0;
    close(fd);
    return linked ? SLY_THROUGH : SLY_ABSENT;
}

static int renamed(const sly *s)
{
    char from[SLY_PATH];
    char to[SLY_PATH];
    return through(rename(sly_path(from, s, "victim2"), sly_path(to, s, s->text)) == 0 && rename(to, from) == 0);
}

static int hard_link(const sly *s)
{
    char from[SLY_PATH];
    char to[SLY_PATH];
    char name[300];
    (void)snprintf(name, sizeof name, "hard-%s", s->text);
    return through(link(sly_path(from, s, "victim"), sly_path(to, s, name)) == 0);
}

static int folder_name(const sly *s)
{
    char path[SLY_PATH];
    char name[300];
    (void)snprintf(name, sizeof name, "folder-%s", s->text);
    return through(mkdir(sly_path(path, s, name), 0700) == 0);
}

static int symlink_target(const sly *s)
{
    char path[SLY_PATH];
    return through(symlink(s->text, sly_path(path, s, "symlink")) == 0);
}

static int fifo(const sly *s)
{
    char path[SLY_PATH];
    char name[300];
    (void)snprintf(name, sizeof name, "fifo-%s", s->text);
    return through(mkfifo(sly_path(path, s, name), 0600) == 0);
}

static int removed(const sly *s)
{
    char path[SLY_PATH];
    return through(unlink(sly_path(path, s, "victim3")) == 0);
}

static int cut_by_path(const sly *s)
{
    char path[SLY_PATH];
    return through(truncate(sly_path(path, s, "victim2"), 1234) == 0);
}

static int cut_by_opening(const sly *s)
{
    char path[SLY_PATH];
    const int fd = open(sly_path(path, s, "victim2"), O_RDONLY | O_TRUNC | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
    return through(fd >= 0);
}

static int allocated(const sly *s)
{
    char path[SLY_PATH];
    const int fd = open(sly_path(path, s, "victim2"), O_WRONLY | O_CLOEXEC);
    const int result = through(fd >= 0 && fallocate(fd, 0, 0, 4321) == 0);
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

static int shared_mapping(const sly *s)
{
    char path[SLY_PATH];
    const int fd = open(sly_path(path, s, "mapped"), O_RDWR | O_CLOEXEC); /* a page long */
    char *const page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
        memcpy(page, s->text, s->len);
        (void)munmap(page, 4096);
    }
    if (fd >= 0) {
        close(fd);
    }
    return through(page != MAP_FAILED);
}

static int attribute(const sly *s)
{
    char path[SLY_PATH];
    return through(setxattr(sly_path(path, s, "victim"), "user.sly1", s->text, s->len, 0) == 0);
}

static int attribute_of_link(const sly *s)
{
    char path[SLY_PATH];
    return through(lsetxattr(sly_path(path, s, "victim"), "user.sly2", s->text, s->len, 0) == 0);
}

static int attribute_of_descriptor(const sly *s)
{
    char path[SLY_PATH];
    const int fd = open(sly_path(path, s, "victim"), O_RDONLY | O_CLOEXEC);
    const int result = through(fsetxattr(fd, "user.sly3", s->text, s->len, 0) == 0);
    close(fd);
    return result;
}

static int attribute_at(const sly *s)
{
    char path[SLY_PATH];
    struct {
        uint64_t value;
        uint32_t size;
        uint32_t flags;
    } args = {(uint64_t)(uintptr_t)s->text, (uint32_t)s->len, 0};
    return through(syscall(463, AT_FDCWD, sly_path(path, s, "victim"), 0, "user.sly4", &args, sizeof args) == 0); /* setxattrat */
}

static int inode_flags(const sly *s)
{
    char path[SLY_PATH];
    long flags = 0x40; /* no dump */
    const int fd = open(sly_path(path, s, "victim"), O_RDONLY | O_CLOEXEC);
    const int result = through(ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0);
    close(fd);
    return result;
}

static int mode(const sly *s)
{
    char path[SLY_PATH];
    return through(chmod(sly_path(path, s, "victim"), 0641) == 0);
}

static int owner(const sly *s)
{
    char path[SLY_PATH];
    return through(chown(sly_path(path, s, "victim"), getuid(), getgid()) == 0);
}

static int times(const sly *s)
{
    char path[SLY_PATH];
    const struct timespec told[2] = {{0x534c5921, 0x2a2a2a2}, {0x534c5921, 0x2a2a2a2}};
    return through(utimensat(AT_FDCWD, sly_path(path, s, "victim"), told, 0) == 0);
}

static int by_handle(const sly *s)
{
    char path[SLY_PATH];
    char room[sizeof(struct file_handle) + HANDLE_MAX];
    struct file_handle *const handle = (struct file_handle *)(void *)room;
    int mount_id = 0;
    handle->handle_bytes = HANDLE_MAX;
    const int folder = open(s->room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool named = name_to_handle_at(AT_FDCWD, sly_path(path, s, "victim"), handle, &mount_id, 0) == 0;
    const int fd = named ? open_by_handle_at(folder, handle, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    close(folder);
    if (fd < 0 && (!named || geteuid() != 0)) {
        return SLY_ABSENT;
    }
    return write_and_close(s, fd);
}

static int mounted(const sly *s)
{
    if (geteuid() != 0) {
        return SLY_ABSENT;
    }
    return through(mount("none", s->room, "tmpfs", 0, "") == 0 && umount2(s->room, MNT_DETACH) == 0);
}

static int child(const sly *s)
{
    char path[SLY_PATH];
    int status = 1;
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(sly_write_file(s, sly_path(path, s, "child"), O_CREAT) == SLY_THROUGH ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? SLY_THROUGH : SLY_HELD;
}

static int program(const sly *s)
{
    char path[SLY_PATH];
    char sh[] = "sh", option[] = "-c", script[] = "printf %s \"$SLY_MARKER\" 2>/dev/null >\"$0\"";
    char *const argv[] = {sh, option, script, path, NULL};
    extern char **environ;
    pid_t pid = -1;
    int status = 1;
    (void)sly_path(path, s, "program");
    return posix_spawnp(&pid, sh, NULL, NULL, argv, environ) == 0 && waitpid(pid, &status, 0) == pid && status == 0 ? SLY_THROUGH
                                                                                                                    : SLY_HELD;
}

static int early_thread(const sly *s)
{
    char path[SLY_PATH];
    return sly_early_write(s, sly_path(path, s, "early"));
}

static int inherited_descriptor(const sly *s)
{
    return through(write(s->fd, s->text, s->len) == (ssize_t)s->len);
}

const sly_way SLY_FILES[] = {
    {"absolute", absolute}, {"working-folder", working_folder}, {"bundle-folder", bundle_folder}, {"tmp", in_tmp}, {"shm", in_shm},
    {"existing-file", existing_file}, {"openat2", by_openat2}, {"through-symlink", through_symlink}, {"reopened", reopened},
    {"unnamed-file", unnamed_file}, {"memfd-linked", memfd_linked}, {"renamed", renamed}, {"hard-link", hard_link},
    {"folder-name", folder_name}, {"symlink-target", symlink_target}, {"fifo", fifo}, {"removed", removed},
    {"cut-by-path", cut_by_path}, {"cut-by-opening", cut_by_opening}, {"allocated", allocated}, {"shared-mapping", shared_mapping},
    {"attribute", attribute}, {"attribute-of-link", attribute_of_link}, {"attribute-of-descriptor", attribute_of_descriptor},
    {"attribute-at", attribute_at}, {"inode-flags", inode_flags}, {"mode", mode}, {"owner", owner}, {"times", times},
    {"handle", by_handle}, {"mount", mounted}, {"child", child}, {"program", program}, {"early-thread", early_thread},
    {"inherited-descriptor", inherited_descriptor}, {0}};
