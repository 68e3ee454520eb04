/*
 * store/cache.c: locking, measuring and removing the entries of a cache. In: folders that other processes of this user change
 * at the same time. An entry in use is held by flock(SH) on its folder (oc_store_open), so flock(EX) tells.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/cache.h"
#include "store/internal.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define BUNDLE_HEX 32 /* the name of a bundle's folder */
#define ENTRY_HEX 64  /* and of an entry in it */
#define REMOVED "removed-"
#define REMOVED_HEX 16
#define LOCK_STEP_MS 100u
#define SIZE_DEPTH 3 /* entry, objects, objects/ab */

static bool is_hex(const char *name, size_t len)
{
    return strlen(name) == len && strspn(name, "0123456789abcdef") == len;
}

/* What killed processes left: half an entry (<64 hex>.tmp-<8 hex>) or one being removed. Who holds the lock is alone in making any. */
static bool is_left_over(const char *name)
{
    const size_t len = strlen(name);

    if (strncmp(name, REMOVED, sizeof REMOVED - 1) == 0) {
        return is_hex(name + sizeof REMOVED - 1, REMOVED_HEX);
    }
    return len == ENTRY_HEX + sizeof ".tmp-" - 1 + 8 && strspn(name, "0123456789abcdef") == ENTRY_HEX &&
           strncmp(name + ENTRY_HEX, ".tmp-", 5) == 0;
}

static void clean(int folder)
{
    const int fd = openat(folder, ".", FOLDER_FLAGS);
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;

    while (dir != NULL && (found = readdir(dir)) != NULL) {
        if (is_left_over(found->d_name)) {
            oc_tree_remove(folder, found->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
}

ortcrypt_status oc_cache_lock(int *lock, const char *folder, unsigned wait_ms, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    int cause = EWOULDBLOCK;
    ortcrypt_status st = ORTCRYPT_OK;
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = dir < 0 ? -1 : oc_disk_openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the cache %s cannot be written to", folder);
    }
    for (unsigned waited = 0; st == ORTCRYPT_OK && cause == EWOULDBLOCK && waited <= wait_ms; waited += LOCK_STEP_MS) {
        const unsigned left = wait_ms - waited;
        cause = oc_flock(fd, LOCK_EX, left < LOCK_STEP_MS ? left : LOCK_STEP_MS);
        if (cause == EWOULDBLOCK) {
            st = oc_progress(monitor, "waiting for another process that compiles this", waited, wait_ms, err);
        }
    }
    if (st == ORTCRYPT_OK && cause == EWOULDBLOCK) {
        st = oc_fail(err, ORTCRYPT_E_BUSY, "another process has been compiling into the cache %s for long", folder);
    } else if (st == ORTCRYPT_OK && cause != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, cause, "the cache %s is on a file system without locks (flock)", folder);
    }
    if (st == ORTCRYPT_OK) {
        clean(dir);
        *lock = fd;
    } else {
        oc_cache_unlock(fd);
    }
    if (dir >= 0) {
        close(dir);
    }
    return st;
}

void oc_cache_unlock(int lock)
{
    if (lock >= 0) {
        close(lock);
    }
}

void oc_cache_touch(const char *entry)
{
    const int fd = open(entry, FOLDER_FLAGS);

    if (fd >= 0) {
        (void)oc_disk_touch(fd);
        close(fd);
    }
}

/* Renamed before it is emptied: who comes in between finds nothing rather than half of it. */
static bool remove_entry(int folder, const char *name)
{
    char doomed[sizeof REMOVED + REMOVED_HEX] = REMOVED;
    bool removed = false;
    const int fd = openat(folder, name, FOLDER_FLAGS);

    if (fd >= 0 && oc_flock(fd, LOCK_EX, 0) == 0 && oc_random_name(doomed + sizeof REMOVED - 1, REMOVED_HEX, NULL) == ORTCRYPT_OK &&
        oc_disk_renameat2(folder, name, folder, doomed, RENAME_NOREPLACE) == 0) {
        oc_tree_remove(folder, doomed);
        removed = true;
    }
    if (fd >= 0) {
        close(fd);
    } else if (errno == ENOTDIR || errno == ELOOP) {
        removed = oc_disk_unlinkat(folder, name, 0) == 0; /* a file or link in an entry's place */
    }
    return removed;
}

bool oc_cache_remove(const char *folder, const char *name)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool removed = fd >= 0 && remove_entry(fd, name);

    if (fd >= 0) {
        close(fd);
    }
    return removed;
}

typedef struct entry {
    char bundle[BUNDLE_HEX + 1];
    char name[ENTRY_HEX + 1];
    uint64_t len;
    struct timespec used;
} entry;

typedef struct listing {
    entry *items;
    size_t count;
    uint64_t len; /* of all of them */
} listing;

static DIR *list(int parent, const char *name)
{
    const int fd = openat(parent, name, FOLDER_FLAGS);
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir == NULL && fd >= 0) {
        close(fd);
    }
    return dir;
}

static uint64_t len_below(int parent, const char *name, int depth)
{
    DIR *const dir = list(parent, name);
    const struct dirent *found;
    uint64_t len = 0;

    while (dir != NULL && (found = readdir(dir)) != NULL) {
        struct stat info;
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0 ||
            fstatat(dirfd(dir), found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISREG(info.st_mode)) {
            len += (uint64_t)info.st_size;
        } else if (S_ISDIR(info.st_mode) && depth > 0) {
            len += len_below(dirfd(dir), found->d_name, depth - 1);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return len;
}

static void add_entry(listing *all, int folder, const char *bundle, const char *name)
{
    struct stat info;
    entry *const grown = realloc(all->items, (all->count + 1) * sizeof *grown);

    if (grown == NULL) {
        return;
    }
    all->items = grown;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)) {
        entry *const made = &all->items[all->count++];
        memcpy(made->bundle, bundle, sizeof made->bundle);
        memcpy(made->name, name, sizeof made->name);
        made->len = len_below(folder, name, SIZE_DEPTH);
        made->used = info.st_mtim;
        all->len += made->len;
    }
}

static void add_bundle(listing *all, int root, const char *bundle)
{
    DIR *const dir = list(root, bundle);
    const struct dirent *found;

    while (dir != NULL && (found = readdir(dir)) != NULL) {
        if (is_hex(found->d_name, ENTRY_HEX)) {
            add_entry(all, dirfd(dir), bundle, found->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static int older(const void *a, const void *b)
{
    const entry *const x = a;
    const entry *const y = b;

    if (x->used.tv_sec != y->used.tv_sec) {
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    }
    return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

void oc_cache_trim(const char *root, uint64_t max_len)
{
    listing all = {0};
    const int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* the user's own choice: it may be a link */
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;

    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    while ((found = readdir(dir)) != NULL) {
        if (is_hex(found->d_name, BUNDLE_HEX)) {
            add_bundle(&all, dirfd(dir), found->d_name);
        }
    }
    if (all.count != 0) {
        qsort(all.items, all.count, sizeof *all.items, older);
    }
    for (size_t i = 0; i < all.count && all.len > max_len; i++) {
        const int folder = openat(dirfd(dir), all.items[i].bundle, FOLDER_FLAGS);
        if (folder >= 0 && remove_entry(folder, all.items[i].name)) {
            all.len -= all.items[i].len;
        }
        if (folder >= 0) {
            close(folder);
        }
    }
    closedir(dir);
    free(all.items);
}
