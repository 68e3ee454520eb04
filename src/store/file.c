/* store/file.c: a file being written below tmp/ and put in its place. Any number at once, one writer per bundle. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

#define FLUSH_STEP (8u * 1024u * 1024u) /* bytes after which the disk is asked to begin writing, so that fsync waits less */

static ortcrypt_status fail_write(const oc_store *store, int cause, ortcrypt_error *err)
{
    return oc_fail_errno(err, ORTCRYPT_E_IO, cause, "writing to %s", store->path);
}

ortcrypt_status oc_file_new(oc_file **out, oc_store *store, ortcrypt_error *err)
{
    if (store->tmp < 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%s is not open for writing", store->path);
    }
    oc_file *const file = calloc(1, sizeof *file);
    if (file == NULL) {
        return oc_fail_memory(err, sizeof *file, "a file of a bundle");
    }
    file->store = store;
    ortcrypt_status st = oc_random_name(file->name, sizeof file->name - 1, err);
    if (st == ORTCRYPT_OK) {
        file->fd = oc_disk_openat(store->tmp, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file->fd < 0) {
            st = fail_write(store, errno, err);
        }
    }
    if (st != ORTCRYPT_OK) {
        free(file);
        return st;
    }
    pthread_mutex_lock(&store->mutex);
    file->next = store->files;
    store->files = file;
    pthread_mutex_unlock(&store->mutex);
    *out = file;
    return ORTCRYPT_OK;
}

static ortcrypt_status write_range(const oc_file *file, uint64_t offset, const uint8_t *data, size_t len, ortcrypt_error *err)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t put = pwrite(file->fd, data + done, len - done, (off_t)(offset + done));
        if (put <= 0 && !(put < 0 && errno == EINTR)) {
            return fail_write(file->store, put < 0 ? errno : ENOSPC, err);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_file_write_at(oc_file *file, uint64_t offset, const void *data, size_t len, ortcrypt_error *err)
{
    ortcrypt_status st = write_range(file, offset, data, len, err);
    if (st == ORTCRYPT_OK) {
        /* only a request to start; errors of the disk are reported by fsync */
        (void)sync_file_range(file->fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
    }
    return st;
}

ortcrypt_status oc_file_write(oc_file *file, const void *data, size_t len, ortcrypt_error *err)
{
    ortcrypt_status st = write_range(file, file->len, data, len, err);
    if (st == ORTCRYPT_OK) {
        file->len += len;
        if (file->len - file->flushed >= FLUSH_STEP) {
            (void)sync_file_range(file->fd, (off_t)file->flushed, (off_t)(file->len - file->flushed), SYNC_FILE_RANGE_WRITE);
            file->flushed = file->len;
        }
    }
    return st;
}

static void forget(oc_file *file)
{
    oc_store *const store = file->store;
    pthread_mutex_lock(&store->mutex);
    for (oc_file **link = &store->files; *link != NULL; link = &(*link)->next) {
        if (*link == file) {
            *link = file->next;
            break;
        }
    }
    pthread_mutex_unlock(&store->mutex);
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file);
}

void oc_file_discard(oc_file *file)
{
    if (file != NULL) {
        (void)oc_disk_unlinkat(file->store->tmp, file->name, 0);
        forget(file);
    }
}

/* Room in the list of placed files is made before the rename, so that noting one cannot be what goes wrong after it. */
static ortcrypt_status placed_reserve(oc_store *store, ortcrypt_error *err)
{
    if (store->placed_count < store->placed_cap) {
        return ORTCRYPT_OK;
    }
    const size_t cap = store->placed_cap == 0 ? 16 : store->placed_cap * 2;
    oc_placed *const more = realloc(store->placed, cap * sizeof *more);
    if (more == NULL) {
        return oc_fail_memory(err, cap * sizeof *more, "a list of files");
    }
    store->placed = more;
    store->placed_cap = cap;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_file_sync(oc_file *file, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    if (fsync(file->fd) != 0) {
        st = fail_write(file->store, errno, err);
    }
    if (close(file->fd) != 0 && st == ORTCRYPT_OK) {
        st = fail_write(file->store, errno, err);
    }
    file->fd = -1;
    return st;
}

/* tmp/<random> -> folder/leaf; `keep`: what is there already stays. */
static ortcrypt_status place(oc_file *file, const char *folder, const char *leaf, bool keep, ortcrypt_error *err)
{
    oc_store *const store = file->store;
    struct stat info;
    int fd = -1;
    ortcrypt_status st = oc_folder_open(store, folder, true, &fd, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    pthread_mutex_lock(&store->mutex);
    const bool there = fstatat(fd, leaf, &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there || !keep) {
        st = placed_reserve(store, err);
        if (st == ORTCRYPT_OK && oc_disk_renameat2(store->tmp, file->name, fd, leaf, 0) != 0) {
            st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing %s/%s/%s", store->path, folder, leaf);
        } else if (st == ORTCRYPT_OK) {
            file->name[0] = '\0';
            if (!there) {
                oc_placed *const placed = &store->placed[store->placed_count++];
                memcpy(placed->name, folder, strlen(folder));
                placed->name[strlen(folder)] = '/';
                memcpy(placed->name + strlen(folder) + 1, leaf, strlen(leaf) + 1);
            }
        }
    }
    pthread_mutex_unlock(&store->mutex);
    close(fd);
    return st;
}

static ortcrypt_status publish(oc_file *file, const char *name, bool keep, ortcrypt_error *err)
{
    char folder[OC_PLACED_SIZE];
    const size_t len = strlen(name);
    if (len >= sizeof folder || strchr(name, '/') == NULL) {
        oc_file_discard(file);
        return oc_fail(err, ORTCRYPT_E_INVALID, "\"%s\" is no name of a file in a bundle", name);
    }
    memcpy(folder, name, len + 1);
    char *const leaf = strrchr(folder, '/') + 1;
    leaf[-1] = '\0';
    ortcrypt_status st = oc_file_sync(file, err);
    if (st == ORTCRYPT_OK) {
        st = place(file, folder, leaf, keep, err);
    }
    if (file->name[0] != '\0') { /* not renamed: an error, or the object was there */
        (void)oc_disk_unlinkat(file->store->tmp, file->name, 0);
    }
    forget(file);
    return st;
}

ortcrypt_status oc_file_publish_object(oc_file *file, const uint8_t object[32], ortcrypt_error *err)
{
    char name[OC_OBJECT_PATH_SIZE];
    oc_store *const store = file->store;
    oc_object_path(name, object);
    ortcrypt_status st = publish(file, name, true, err);
    if (st == ORTCRYPT_OK) {
        pthread_mutex_lock(&store->mutex);
        store->touched[object[0]] = true;
        pthread_mutex_unlock(&store->mutex);
    }
    return st;
}

ortcrypt_status oc_file_publish_named(oc_file *file, const char *name, ortcrypt_error *err)
{
    oc_store *const store = file->store;
    const bool sig = strncmp(name, "sig/", 4) == 0;
    ortcrypt_status st = publish(file, name, false, err);
    if (st == ORTCRYPT_OK) {
        pthread_mutex_lock(&store->mutex);
        store->touched_sig = store->touched_sig || sig;
        store->touched_keys = store->touched_keys || !sig;
        pthread_mutex_unlock(&store->mutex);
    }
    return st;
}
