/*
 * bundle/pages.c: assets as one stretch of memory that is decrypted when it is touched, a slice at a time. Each asset begins at a
 * slice of its own. A slice is a quarter of a piece: it fits the cache of a core with its ciphertext, and who waits for it waits less;
 * where the manifest's hashes count too it is a piece, since they are of whole pieces.
 * Each thread keeps the object file it read from last open, so that a thousand assets are not a thousand descriptors.
 */
#include <stdlib.h>

#include "bundle/internal.h"
#include "os/os.h"

typedef struct pages_lane {
    bool open;
    size_t asset; /* whose object it is */
    oc_object object;
    oc_piece_lane lane;
} pages_lane;

#define SLICE_CHUNKS (OC_PIECE_CHUNKS / 4)

struct oc_asset_pages {
    ortcrypt_bundle *bundle;
    oc_asset *assets; /* copies: the manifest's list moves while assets are added to a transaction whose view this reads */
    uint64_t *first; /* slice of each asset; one more: the number of slices */
    size_t count;
    uint32_t slice_chunks;
    uint32_t slice_len; /* of all but the last of an asset, bytes */
    uint32_t *lens;
    bool *ends;
    pages_lane lanes[OC_DEFAULT_THREADS_MAX];
    oc_paged *paged; /* its threads use what is above */
};

/* The room for ciphertext stays: another file is read with it, and memory for it might not be had again. */
static void lane_leave(pages_lane *lane)
{
    oc_stream_lane_free(lane->lane.stream);
    lane->lane.stream = NULL;
    if (lane->open) {
        oc_object_close(&lane->object);
        lane->open = false;
    }
}

/* The asset that has the slice. Some assets may have none. */
static size_t find_asset(const oc_asset_pages *pages, uint64_t slice)
{
    size_t low = 0;
    size_t high = pages->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (pages->first[middle] <= slice) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static ortcrypt_status fill_slice(void *state, unsigned lane_number, uint64_t slice, uint8_t *to, ortcrypt_error *err)
{
    oc_asset_pages *const pages = state;
    pages_lane *const lane = &pages->lanes[lane_number];
    const size_t asset = find_asset(pages, slice);
    const uint64_t within = slice - pages->first[asset];
    ortcrypt_status st = ORTCRYPT_OK;

    if (lane->open && lane->asset != asset) {
        lane_leave(lane);
    }
    if (!lane->open) {
        st = oc_object_open(&lane->object, pages->bundle, &pages->assets[asset], err);
        lane->open = st == ORTCRYPT_OK;
        lane->asset = asset;
    }
    if (st == ORTCRYPT_OK && within * pages->slice_len + pages->lens[slice] > lane->object.shape.plain_len) {
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is not the asset that was opened", lane->object.what);
    }
    return st == ORTCRYPT_OK
               ? oc_object_read_chunks(&lane->object, &lane->lane, within * pages->slice_chunks, pages->slice_chunks, to, err)
               : st;
}

static ortcrypt_status lay_out(oc_asset_pages *pages, const oc_asset *const *assets, size_t count, ortcrypt_error *err)
{
    uint64_t total = 0;

    pages->assets = calloc(count + 1, sizeof(*pages->assets));
    pages->first = calloc(count + 1, sizeof(*pages->first));
    if (pages->assets == NULL || pages->first == NULL) {
        return oc_fail_memory(err, (count + 1) * sizeof(*pages->first), "the list of assets");
    }
    pages->count = count;
    for (size_t i = 0; i < count; i++) {
        const uint64_t slices = assets[i]->size / pages->slice_len + (assets[i]->size % pages->slice_len != 0 ? 1 : 0);
        pages->assets[i] = *assets[i];
        pages->first[i] = total;
        if (!oc_add_u64(total, slices, &total) || total > SIZE_MAX / 2 / pages->slice_len) {
            return oc_fail(err, ORTCRYPT_E_LIMIT, "the assets are larger than memory can be");
        }
    }
    pages->first[count] = total;
    pages->lens = calloc((size_t)total + 1, sizeof(*pages->lens));
    pages->ends = calloc((size_t)total + 1, sizeof(*pages->ends));
    if (pages->lens == NULL || pages->ends == NULL) {
        return oc_fail_memory(err, ((size_t)total + 1) * sizeof(*pages->lens), "the list of slices");
    }
    for (size_t i = 0; i < count; i++) {
        for (uint64_t slice = pages->first[i]; slice < pages->first[i + 1]; slice++) {
            const uint64_t rest = assets[i]->size - (slice - pages->first[i]) * pages->slice_len;
            pages->lens[slice] = rest < pages->slice_len ? (uint32_t)rest : pages->slice_len;
        }
    }
    return ORTCRYPT_OK;
}

/* An object file that is missing, cut or another's is found before anybody waits for a page of it. */
static ortcrypt_status check_objects(const oc_asset_pages *pages, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    for (size_t i = 0; i < pages->count && st == ORTCRYPT_OK; i++) {
        oc_object object;
        st = oc_object_open(&object, pages->bundle, &pages->assets[i], err);
        if (st == ORTCRYPT_OK) {
            oc_object_close(&object);
        }
    }
    return st;
}

ortcrypt_status oc_asset_pages_open(oc_asset_pages **out, ortcrypt_bundle *bundle, const oc_asset *const *assets, size_t count,
                                    const oc_pages_options *options, ortcrypt_error *err)
{
    oc_asset_pages *const pages = calloc(1, sizeof *pages);
    *out = NULL;
    if (pages == NULL) {
        return oc_fail_memory(err, sizeof *pages, "an asset");
    }
    pages->bundle = bundle;
    pages->slice_chunks = atomic_load(&bundle->check_leaves) ? OC_PIECE_CHUNKS : SLICE_CHUNKS;
    pages->slice_len = pages->slice_chunks * OC_STREAM_CHUNK_LEN;
    ortcrypt_status st = lay_out(pages, assets, count, err);
    for (size_t i = 0; i < options->end_count && st == ORTCRYPT_OK; i++) {
        const oc_pages_end *const end = &options->ends[i];
        pages->ends[pages->first[end->asset] + end->offset / pages->slice_len] = true;
    }
    if (st == ORTCRYPT_OK) {
        st = check_objects(pages, err);
    }
    if (st == ORTCRYPT_OK) {
        const oc_paged_spec spec = {.piece_len = pages->slice_len,
                                    .piece_count = pages->first[count],
                                    .threads = bundle->threads,
                                    .lens = pages->lens,
                                    .window = options->window_len,
                                    .ahead = options->ahead_len / pages->slice_len,
                                    .ends = pages->ends,
                                    .onward = options->onward,
                                    .fill = fill_slice,
                                    .state = pages};
        st = oc_paged_open(&pages->paged, &spec, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_asset_pages_close(pages);
        return st;
    }
    *out = pages;
    return ORTCRYPT_OK;
}

uint8_t *oc_asset_pages_data(const oc_asset_pages *pages, size_t asset)
{
    return oc_paged_data(pages->paged) + (size_t)pages->first[asset] * pages->slice_len;
}

ortcrypt_status oc_asset_pages_settle(oc_asset_pages *pages, bool complete, ortcrypt_error *err)
{
    return oc_paged_settle(pages->paged, complete, err);
}

void oc_asset_pages_close(oc_asset_pages *pages)
{
    if (pages != NULL) {
        oc_paged_close(pages->paged);
        for (unsigned i = 0; i < OC_DEFAULT_THREADS_MAX; i++) {
            lane_leave(&pages->lanes[i]);
            oc_piece_lane_free(&pages->lanes[i].lane);
        }
        free(pages->assets);
        free(pages->first);
        free(pages->lens);
        free(pages->ends);
        free(pages);
    }
}
