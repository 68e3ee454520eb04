/*
 * ortcrypt_bundle_decrypt: parts of the source variant -> authenticated pieces -> files of a fresh folder.
 * The bundle owns the variant; names are borrowed from it and are never trusted as paths (bundle/decrypt_outdir.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle/bundle.h"
#include "bundle/decrypt_outdir.h"
#include "bundle/decrypt_names.h"
#include "bundle/progress.h"

#define FALLBACK_MAX 1000 /* names asset-<id>.bin, asset-<id>-2.bin, ... tried before giving up */

typedef struct decryption {
    ortcrypt_bundle *bundle;
    oc_outdir *folder;
    const oc_split *split; /* the list's */
    oc_progress_sum sum;
} decryption;

typedef struct file_push {
    int fd;
    const char *name;
} file_push;

static ortcrypt_status push_to_file(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    const file_push *const push = state;

    return oc_outdir_write(push->fd, data, len, push->name, err);
}

typedef struct restore_push {
    file_push file;
    oc_progress_sum *sum;
} restore_push;

static ortcrypt_status push_restored(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    restore_push *const push = state;

    const ortcrypt_status status = push_to_file(&push->file, data, len, err);
    return status == ORTCRYPT_OK ? oc_progress_sum_add(push->sum, len, err) : status;
}

/* The original of a split model: the weights that were moved out stand in it again. */
static ortcrypt_status write_restored(decryption *run, const oc_asset *model, int fd, const char *name, ortcrypt_error *err)
{
    restore_push push = {{fd, name}, &run->sum};
    uint8_t sha256[OC_SHA256_LEN];

    ortcrypt_status status = oc_split_restore(run->bundle, model, run->split, push_restored, &push, sha256, err);
    if (status == ORTCRYPT_OK && memcmp(sha256, run->split->sha256, sizeof sha256) != 0) {
        status = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the split model %s does not give the original: its hash is another one", name);
    }
    return status;
}

static ortcrypt_status write_asset(decryption *run, const oc_decrypt_item *item, int fd, const char *name, ortcrypt_error *err)
{
    file_push push = {fd, name};

    ortcrypt_status status = item->split
                                 ? write_restored(run, item->asset, fd, name, err)
                                 : oc_bundle_stream(run->bundle, item->asset, push_to_file, &push, &run->sum.monitor, err);
    if (status == ORTCRYPT_OK) {
        status = oc_outdir_file_close(fd, name, err);
    } else {
        close(fd);
    }
    if (status == ORTCRYPT_OK && !item->split) {
        status = oc_progress_sum_add(&run->sum, item->asset->size, err);
    }
    return status;
}

/* A name of ours for what cannot have its own: asset-<id>.bin, then asset-<id>-2.bin, ... */
static ortcrypt_status open_fallback(decryption *run, const oc_asset *asset, char name[64], int *fd, ortcrypt_error *err)
{
    char hex[2 * OC_ASSET_ID_LEN + 1];
    ortcrypt_status status = ORTCRYPT_E_EXISTS;

    oc_hex_encode(hex, asset->id, OC_ASSET_ID_LEN);
    for (int i = 1; status == ORTCRYPT_E_EXISTS && i <= FALLBACK_MAX; i++) {
        if (i == 1) {
            (void)snprintf(name, 64, "asset-%s.bin", hex);
        } else {
            (void)snprintf(name, 64, "asset-%s-%d.bin", hex, i);
        }
        status = oc_outdir_file(run->folder, name, fd, err);
    }
    return status;
}

static ortcrypt_status write_item(decryption *run, const oc_decrypt_item *item, ortcrypt_error *err)
{
    char fallback[64];
    int fd = -1;
    const char *name = item->name;
    ortcrypt_status status = ORTCRYPT_E_EXISTS;
    const char *reason = "is no plain relative path";

    if (item->plain) {
        status = oc_outdir_file(run->folder, name, &fd, err);
        reason = "is taken by another file or not possible here";
    }
    if (status == ORTCRYPT_E_EXISTS) {
        name = fallback;
        status = open_fallback(run, item->asset, fallback, &fd, err);
        if (status == ORTCRYPT_OK) {
            oc_notice(run->sum.user, "the name '%s' of the %s file %s; it is written as %s", item->name,
                      oc_role_text(item->role), reason, fallback);
        }
    }
    return status == ORTCRYPT_OK ? write_asset(run, item, fd, name, err) : status;
}

static ortcrypt_status write_items(decryption *run, const oc_decrypt_list *list, const ortcrypt_monitor *monitor,
                                   ortcrypt_error *err)
{
    ortcrypt_status status = oc_progress_sum_start(&run->sum, monitor, "decrypting", list->total_len, err);

    for (size_t i = 0; status == ORTCRYPT_OK && i < list->count; i++) {
        status = write_item(run, &list->items[i], err);
    }
    return status;
}

ortcrypt_status ortcrypt_bundle_decrypt(ortcrypt_bundle *bundle, const char *out_dir, const ortcrypt_monitor *monitor,
                                        ortcrypt_error *err)
{
    decryption run = {.bundle = bundle};
    oc_decrypt_list list = {0};

    if (bundle == NULL || out_dir == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_bundle_decrypt needs a bundle and a folder");
    }
    oc_bundle_hold(bundle);
    ortcrypt_status status = oc_decrypt_list_make(&list, oc_bundle_manifest(bundle), err);
    run.split = &list.split;
    if (status == ORTCRYPT_OK) {
        status = oc_outdir_create(&run.folder, out_dir, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_outdir_room(run.folder, list.total_len, err);
    }
    if (status == ORTCRYPT_OK) {
        status = write_items(&run, &list, monitor, err);
    }
    if (status == ORTCRYPT_OK) {
        status = oc_outdir_publish(run.folder, err);
    }
    oc_outdir_end(run.folder);
    oc_decrypt_list_free(&list);
    oc_bundle_release(bundle);
    return status;
}
