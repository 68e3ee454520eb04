/* store/create.c: a new bundle is built under another name in the same folder and renamed when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/keyfile.h"
#include "store/internal.h"

#define COPY_STEP (1024u * 1024u)
#define BUILD_ATTEMPTS 4

/* Splits "a/b/c/" into the open folder "a/b" and the name "c". */
static ortcrypt_status open_parent(oc_store *store, ortcrypt_error *err)
{
    char *folder = NULL;
    ortcrypt_status st = oc_strdup(&folder, store->path, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/') {
        folder[--len] = '\0';
    }
    char *const slash = strrchr(folder, '/');
    const char *const name = slash == NULL ? folder : slash + 1;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        st = oc_fail(err, ORTCRYPT_E_INVALID, "\"%s\" is no name for a new bundle", store->path);
    } else {
        st = oc_strdup(&store->final_name, name, err);
    }
    if (st == ORTCRYPT_OK) {
        const char *parent = ".";
        if (slash != NULL) {
            parent = slash == folder ? "/" : folder;
            *slash = '\0';
            parent = *parent == '\0' ? "/" : parent;
        }
        store->parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (store->parent < 0) {
            st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be made: its folder %s", store->path, parent);
        }
    }
    free(folder);
    return st;
}

static ortcrypt_status already_there(const oc_store *store, ortcrypt_error *err)
{
    return oc_fail(err, ORTCRYPT_E_EXISTS, "%s exists already and is not overwritten", store->path);
}

static ortcrypt_status make_folder(oc_store *store, ortcrypt_error *err)
{
    char *name = NULL;
    ortcrypt_status st = oc_build_name(&name, store->final_name, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (oc_disk_mkdirat(store->parent, name, 0777) != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be made", store->path);
        free(name);
        return st;
    }
    store->build_name = name; /* from here on oc_store_close removes it */
    store->dir = openat(store->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->dir < 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be made", store->path);
    }
    return st;
}

static void drop_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* The folder under its first name, locked. One that another writer took for a dead one's before it was locked is made anew. */
static ortcrypt_status make_locked(oc_store *store, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    for (unsigned attempt = 0; attempt < BUILD_ATTEMPTS; attempt++) {
        st = make_folder(store, err);
        if (st == ORTCRYPT_OK) {
            st = oc_store_lock(store, 0, err);
        }
        if (store->build_name == NULL || (st != ORTCRYPT_E_BUSY && oc_build_is_mine(store))) {
            return st;
        }
        if (st == ORTCRYPT_OK) {
            st = oc_fail(err, ORTCRYPT_E_BUSY, "%s is being written to by another process", store->path);
        }
        drop_fd(&store->tmp);
        drop_fd(&store->lock);
        drop_fd(&store->dir);
        free(store->build_name);
        store->build_name = NULL;
    }
    return st;
}

static ortcrypt_status write_format(oc_store *store, ortcrypt_error *err)
{
    static const char text[] = OC_FORMAT_TEXT;
    const size_t len = sizeof text - 1;
    const int fd = oc_disk_openat(store->dir, "FORMAT", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    ortcrypt_status st = ORTCRYPT_OK;
    errno = EIO; /* a short write of a few bytes has no errno of its own */
    if (fd < 0 || write(fd, text, len) != (ssize_t)len || fsync(fd) != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing %s/FORMAT", store->path);
    }
    if (fd >= 0 && close(fd) != 0 && st == ORTCRYPT_OK) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing %s/FORMAT", store->path);
    }
    return st;
}

ortcrypt_status oc_store_create(oc_store **out, const char *path, ortcrypt_error *err)
{
    oc_store *store = NULL;
    static const char *const folders[] = {"objects", "keys"};
    struct stat info;
    ortcrypt_status st = oc_store_new(&store, path, err);
    if (st == ORTCRYPT_OK) {
        st = open_parent(store, err);
    }
    if (st == ORTCRYPT_OK && fstatat(store->parent, store->final_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        st = already_there(store, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_stale_remove(store);
        st = make_locked(store, err);
    }
    if (st == ORTCRYPT_OK) {
        st = write_format(store, err);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < sizeof folders / sizeof folders[0]; i++) {
        int fd = -1;
        st = oc_folder_open(store, folders[i], true, &fd, err);
        if (st == ORTCRYPT_OK) {
            close(fd);
        }
    }
    if (st != ORTCRYPT_OK) {
        oc_store_close(store);
        return st;
    }
    *out = store;
    return ORTCRYPT_OK;
}

/* 0, or the errno. A file system without RENAME_NOREPLACE: an empty folder claims the name, then is replaced. */
static int rename_new(int parent, const char *from, const char *to)
{
    if (oc_disk_renameat2(parent, from, parent, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
    if (oc_disk_mkdirat(parent, to, 0777) != 0) {
        return errno;
    }
    if (oc_disk_renameat2(parent, from, parent, to, 0) != 0) {
        const int cause = errno;
        (void)oc_disk_unlinkat(parent, to, AT_REMOVEDIR);
        return cause;
    }
    return 0;
}

ortcrypt_status oc_store_reveal(oc_store *store, ortcrypt_error *err)
{
    const int cause = rename_new(store->parent, store->build_name, store->final_name);
    if (cause == EEXIST || cause == ENOTEMPTY) {
        return already_there(store, err);
    }
    if (cause != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, cause, "%s cannot be given its name", store->path);
    }
    ortcrypt_status st = oc_folder_sync(store, store->parent, "..", err);
    if (st != ORTCRYPT_OK && rename_new(store->parent, store->final_name, store->build_name) == 0) {
        return st; /* as if it had never been there; oc_store_close removes it */
    }
    free(store->build_name);
    store->build_name = NULL;
    return st;
}

static ortcrypt_status copy_bytes(oc_store *store, int from, uint64_t size, const uint8_t object[32], const char *what,
                                  ortcrypt_error *err)
{
    oc_file *file = NULL;
    uint8_t *const step = malloc(COPY_STEP);
    if (step == NULL) {
        return oc_fail_memory(err, COPY_STEP, "copying");
    }
    ortcrypt_status st = oc_file_new(&file, store, err);
    for (uint64_t done = 0; st == ORTCRYPT_OK && done < size;) {
        const size_t len = size - done < COPY_STEP ? (size_t)(size - done) : COPY_STEP;
        st = oc_pread_full(from, done, step, len, what, err);
        if (st == ORTCRYPT_OK) {
            st = oc_file_write(file, step, len, err);
        }
        done += len;
    }
    if (st == ORTCRYPT_OK) {
        st = oc_file_publish_object(file, object, err);
    } else {
        oc_file_discard(file);
    }
    free(step);
    return st;
}

/* A second name for the same file: bundles never change an object's bytes, they only remove its name. */
static bool link_object(oc_store *store, const oc_store *from, const char *path, const uint8_t object[32])
{
    struct stat info;
    char folder[OC_OBJECT_PATH_SIZE];
    int fd = -1;
    /* a link is copied: what it points to belongs to somebody else */
    if (fstatat(from->dir, path, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    memcpy(folder, path, sizeof folder);
    char *const leaf = strrchr(folder, '/') + 1;
    leaf[-1] = '\0';
    if (oc_folder_open(store, folder, true, &fd, NULL) != ORTCRYPT_OK) {
        return false;
    }
    const bool linked = oc_disk_linkat(from->dir, path, fd, leaf) == 0 || errno == EEXIST;
    close(fd);
    if (linked) {
        pthread_mutex_lock(&store->mutex);
        store->touched[object[0]] = true;
        pthread_mutex_unlock(&store->mutex);
    }
    return linked;
}

ortcrypt_status oc_store_copy_object(oc_store *store, const oc_store *from, const uint8_t object[32], ortcrypt_error *err)
{
    char path[OC_OBJECT_PATH_SIZE];
    char what[1024];
    int fd = -1;
    uint64_t size = 0;
    oc_object_path(path, object);
    ortcrypt_status st = oc_store_open_object(from, object, &fd, &size, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (!link_object(store, from, path, object)) {
        snprintf(what, sizeof what, "%s/%s", from->path, path);
        st = copy_bytes(store, fd, size, object, what, err);
    }
    close(fd);
    return st;
}
