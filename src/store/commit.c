/* store/commit.c: publishing a manifest, and deleting what it no longer names. Format: docs/format.md, "Commit". */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/internal.h"

static ortcrypt_status sync_folder(const oc_store *store, const char *name, ortcrypt_error *err)
{
    int fd = -1;
    ortcrypt_status st = oc_folder_open(store, name, false, &fd, err);
    if (st == ORTCRYPT_OK) {
        st = oc_folder_sync(store, fd, name, err);
        close(fd);
    }
    return st;
}

/* Every folder that got a file since the last commit, so that the manifest never names what a power cut can lose. */
static ortcrypt_status sync_touched(oc_store *store, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    bool any = false;
    for (unsigned i = 0; st == ORTCRYPT_OK && i < 256; i++) {
        if (store->touched[i]) {
            char name[sizeof "objects/ab"];
            snprintf(name, sizeof name, "objects/%02x", i);
            st = sync_folder(store, name, err);
            any = true;
        }
    }
    if (st == ORTCRYPT_OK && any) {
        st = sync_folder(store, "objects", err);
    }
    if (st == ORTCRYPT_OK && store->touched_keys) {
        st = sync_folder(store, "keys", err);
    }
    if (st == ORTCRYPT_OK && store->touched_sig) {
        st = sync_folder(store, "sig", err);
    }
    return st;
}

static void forget_placed(oc_store *store)
{
    store->placed_count = 0;
    memset(store->touched, 0, sizeof store->touched);
    store->touched_keys = store->touched_sig = false;
}

ortcrypt_status oc_store_publish_manifest(oc_store *store, oc_span manifest, ortcrypt_error *err)
{
    oc_file *file = NULL;
    ortcrypt_status st = oc_file_new(&file, store, err);
    if (st == ORTCRYPT_OK) {
        st = oc_file_write(file, manifest.data, manifest.len, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_file_sync(file, err);
    }
    if (st == ORTCRYPT_OK) {
        st = sync_touched(store, err);
    }
    if (st == ORTCRYPT_OK && store->build_name != NULL) {
        /* the names FORMAT, keys, objects; a new bundle has no earlier state to keep apart from this one */
        st = oc_folder_sync(store, store->dir, ".", err);
    }
    const bool renamed = st == ORTCRYPT_OK && oc_disk_renameat2(store->tmp, file->name, store->dir, "manifest", 0) == 0;
    if (st == ORTCRYPT_OK && !renamed) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing %s/manifest", store->path);
    }
    oc_file_discard(file); /* only its handle and, when it was not renamed, the file in tmp/ */
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (store->build_name == NULL) {
        forget_placed(store); /* named by the manifest that is in place: never to be removed again, whatever comes */
    }
    st = oc_folder_sync(store, store->dir, ".", err);
    if (st == ORTCRYPT_OK && store->build_name != NULL) {
        st = oc_store_reveal(store, err);
        if (st == ORTCRYPT_OK) {
            forget_placed(store);
        }
    }
    return st;
}

/* What a walk over one folder of the bundle keeps. */
typedef struct keep {
    const uint8_t (*objects)[32];
    size_t count;
    const char *manifest_id;
} keep;

static int compare_objects(const void *a, const void *b)
{
    return memcmp(a, b, 32);
}

static bool stale_object(const keep *k, const char *name)
{
    uint8_t object[32];
    return oc_hex_decode(object, sizeof object, name, strlen(name)) &&
           (k->count == 0 || bsearch(object, k->objects, k->count, sizeof object, compare_objects) == NULL);
}

/* <64 hex>.age or .sig of another manifest. Files of other names are not ours to delete. */
static bool stale_named(const keep *k, const char *name)
{
    uint8_t id[32];
    const size_t len = strlen(name);
    return len == 68 && (strcmp(name + 64, ".age") == 0 || strcmp(name + 64, ".sig") == 0) &&
           oc_hex_decode(id, sizeof id, name, 64) && memcmp(name, k->manifest_id, 64) != 0;
}

/* Deletes what is stale in the folder `fd`, which is closed. */
static void sweep(int fd, const keep *k, bool (*stale)(const keep *, const char *))
{
    DIR *const listing = fdopendir(fd);
    if (listing == NULL) {
        close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        if (stale(k, entry->d_name)) {
            (void)oc_disk_unlinkat(dirfd(listing), entry->d_name, 0);
        }
    }
    closedir(listing);
}

static void sweep_named(const oc_store *store, const char *name, const keep *k)
{
    int fd = -1;
    if (oc_folder_open(store, name, false, &fd, NULL) == ORTCRYPT_OK) {
        sweep(fd, k, stale_named);
    }
}

static void sweep_objects(const oc_store *store, const keep *k)
{
    int objects = -1;
    if (oc_folder_open(store, "objects", false, &objects, NULL) != ORTCRYPT_OK) {
        return;
    }
    DIR *const listing = fdopendir(objects);
    if (listing == NULL) {
        close(objects);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        uint8_t first;
        if (oc_hex_decode(&first, 1, entry->d_name, strlen(entry->d_name))) {
            const int fd = openat(objects, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (fd >= 0) {
                sweep(fd, k, stale_object);
                (void)oc_disk_unlinkat(objects, entry->d_name, AT_REMOVEDIR); /* only when it is empty now */
            }
        }
    }
    closedir(listing);
}

ortcrypt_status oc_store_collect(oc_store *store, const uint8_t (*keep_objects)[32], size_t keep_count,
                                 const char *manifest_id_hex, ortcrypt_error *err)
{
    const keep k = {keep_objects, keep_count, manifest_id_hex};
    if (store->lock < 0 || strlen(manifest_id_hex) != 64) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%s is not locked for writing", store->path);
    }
    /* The write lock keeps other collectors away while the conversion of our own shared lock leaves a gap. */
    if (oc_flock(store->dir, LOCK_EX, 0) == 0) {
        sweep_objects(store, &k);
        sweep_named(store, "keys", &k);
        sweep_named(store, "sig", &k);
    }
    (void)oc_flock(store->dir, LOCK_SH, 0);
    return ORTCRYPT_OK;
}
