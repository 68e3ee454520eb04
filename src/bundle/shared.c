/* bundle/shared.c: assets decrypted whole, once for all who use the same open bundle at a time. The last one to let go wipes it. */
#include <stdlib.h>
#include <string.h>

#include "bundle/internal.h"
#include "os/os.h"

struct oc_shared_asset {
    oc_shared_asset *next;
    uint8_t id[OC_ASSET_ID_LEN];
    oc_region region;
    unsigned users;
};

static oc_shared_asset *find(const ortcrypt_bundle *bundle, const oc_asset *asset)
{
    oc_shared_asset *at = bundle->shared;
    while (at != NULL && memcmp(at->id, asset->id, OC_ASSET_ID_LEN) != 0) {
        at = at->next;
    }
    return at;
}

static ortcrypt_status decrypt(oc_shared_asset **out, ortcrypt_bundle *bundle, const oc_asset *asset, const ortcrypt_monitor *monitor,
                               ortcrypt_error *err)
{
    oc_shared_asset *const made = calloc(1, sizeof *made);
    size_t len = 0;
    if (made == NULL) {
        return oc_fail_memory(err, sizeof *made, "an asset");
    }
    memcpy(made->id, asset->id, OC_ASSET_ID_LEN);
    ortcrypt_status st = oc_len(asset->size, SIZE_MAX / 2, "an asset", &len, err);
    if (st == ORTCRYPT_OK) {
        st = oc_region_new(&made->region, len, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_bundle_read(bundle, asset, made->region.data, monitor, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_region_free(&made->region);
        free(made);
        return st;
    }
    made->next = bundle->shared;
    bundle->shared = made;
    *out = made;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_bundle_share(oc_shared_asset **out, ortcrypt_bundle *bundle, const oc_asset *asset, const ortcrypt_monitor *monitor,
                                ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    *out = NULL;
    pthread_mutex_lock(&bundle->share_lock); /* held while decrypting: who wants the same asset waits for it */
    oc_shared_asset *shared = find(bundle, asset);
    if (shared == NULL) {
        st = decrypt(&shared, bundle, asset, monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        shared->users++;
        *out = shared;
    }
    pthread_mutex_unlock(&bundle->share_lock);
    return st;
}

uint8_t *oc_shared_data(const oc_shared_asset *shared) { return shared->region.data; }

void oc_bundle_unshare(ortcrypt_bundle *bundle, oc_shared_asset *shared)
{
    if (shared == NULL) {
        return;
    }
    pthread_mutex_lock(&bundle->share_lock);
    const bool last = --shared->users == 0;
    for (oc_shared_asset **at = &bundle->shared; last && *at != NULL; at = &(*at)->next) {
        if (*at == shared) {
            *at = shared->next;
            break;
        }
    }
    pthread_mutex_unlock(&bundle->share_lock);
    if (last) {
        oc_region_free(&shared->region);
        free(shared);
    }
}
