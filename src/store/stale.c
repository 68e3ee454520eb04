/*
 * store/stale.c: what killed writers of a new bundle left beside it: <name>.tmp-<8 hex>, made by create.c, without a live
 * writer. A live one holds flock(EX) on the file lock in it. Names that only look alike stay: nothing but a bundle's files
 * may be inside.
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

#include "store/internal.h"

#define SUFFIX_HEX 8
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

ortcrypt_status oc_build_name(char **out, const char *final_name, ortcrypt_error *err)
{
    char suffix[SUFFIX_HEX + 1];
    ortcrypt_status st = oc_random_name(suffix, SUFFIX_HEX, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const size_t size = strlen(final_name) + sizeof ".tmp-" + SUFFIX_HEX;
    char *const name = malloc(size);
    if (name == NULL) {
        return oc_fail_memory(err, size, "a file name");
    }
    snprintf(name, size, "%s.tmp-%s", final_name, suffix);
    *out = name;
    return ORTCRYPT_OK;
}

static bool is_build_name(const char *name, const char *final_name)
{
    uint8_t random[SUFFIX_HEX / 2];
    const size_t len = strlen(final_name);
    return strncmp(name, final_name, len) == 0 && strncmp(name + len, ".tmp-", 5) == 0 &&
           oc_hex_decode(random, sizeof random, name + len + 5, strlen(name + len + 5));
}

static bool is_bundle_name(const char *name)
{
    static const char *const names[] = {".", "..", "FORMAT", "lock", "manifest", "tmp", "objects", "keys", "sig"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool only_bundle_names(int folder)
{
    const int fd = openat(folder, ".", FOLDER_FLAGS);
    DIR *const listing = fd < 0 ? NULL : fdopendir(fd);
    bool ours = listing != NULL;
    const struct dirent *entry;
    while (ours && (entry = readdir(listing)) != NULL) {
        ours = is_bundle_name(entry->d_name);
    }
    if (listing != NULL) {
        closedir(listing);
    } else if (fd >= 0) {
        close(fd);
    }
    return ours;
}

/*
 * Its writer may just have made the folder and hold no lock yet. Therefore the folder gets another name before anything in
 * it is deleted: that writer sees it in oc_build_is_mine and begins anew.
 */
static void remove_dead(const oc_store *store, const char *name)
{
    char *doomed = NULL;
    const int folder = openat(store->parent, name, FOLDER_FLAGS);
    const int lock = folder < 0 || !only_bundle_names(folder)
                         ? -1
                         : oc_disk_openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (lock >= 0 && oc_flock(lock, LOCK_EX, 0) == 0 && oc_build_name(&doomed, store->final_name, NULL) == ORTCRYPT_OK &&
        oc_disk_renameat2(store->parent, name, store->parent, doomed, RENAME_NOREPLACE) == 0) {
        oc_tree_remove(store->parent, doomed);
    }
    free(doomed);
    if (lock >= 0) {
        close(lock);
    }
    if (folder >= 0) {
        close(folder);
    }
}

void oc_stale_remove(const oc_store *store)
{
    const int fd = openat(store->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const listing = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (listing == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    while ((entry = readdir(listing)) != NULL) {
        if (is_build_name(entry->d_name, store->final_name)) {
            remove_dead(store, entry->d_name);
        }
    }
    closedir(listing);
}

bool oc_build_is_mine(const oc_store *store)
{
    struct stat mine;
    struct stat named;
    if (fstatat(store->parent, store->build_name, &named, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno != ENOENT;
    }
    return store->dir < 0 || fstat(store->dir, &mine) != 0 || (mine.st_dev == named.st_dev && mine.st_ino == named.st_ino);
}
