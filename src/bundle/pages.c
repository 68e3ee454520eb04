/*
 * bundle/pages.c: assets as one stretch of memory that is decrypted when it is touched. Each asset begins at a piece of its own.
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

struct oc_asset_pages {
    ortcrypt_bundle *bundle;
    oc_asset *assets; /* copies: the manifest's list moves while assets are added to a transaction whose view this reads */
    uint64_t *first; /* piece of each asset; one more: the number of pieces */
    size_t count;
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

/* The asset that has the piece. Some assets may have none. */
static size_t find_asset(const oc_asset_pages *pages, uint64_t piece)
{
    size_t low = 0;
    size_t high = pages->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (pages->first[middle] <= piece) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static ortcrypt_status fill_piece(void *state, unsigned lane_number, uint64_t piece, uint8_t *to, ortcrypt_error *err)
{
    oc_asset_pages *const pages = state;
    pages_lane *const lane = &pages->lanes[lane_number];
    const size_t asset = find_asset(pages, piece);
    ortcrypt_status st = ORTCRYPT_OK;
    if (lane->open && lane->asset != asset) {
        lane_leave(lane);
    }
    if (!lane->open) {
        st = oc_object_open(&lane->object, pages->bundle, &pages->assets[asset], err);
        lane->open = st == ORTCRYPT_OK;
        lane->asset = asset;
    }
    const uint64_t within = piece - pages->first[asset];
    if (st == ORTCRYPT_OK && (within >= lane->object.shape.piece_count ||
                              oc_piece_plain_len(&lane->object.shape, within) != pages->lens[piece])) { /* no bytes of a piece before in its end */
        st = oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "%s is not the asset that was opened", lane->object.what);
    }
    return st == ORTCRYPT_OK ? oc_object_read_piece(&lane->object, &lane->lane, within, to, err) : st;
}

static uint64_t pieces_of(const oc_asset *asset) { return asset->size / OC_PIECE_PLAIN_LEN + (asset->size % OC_PIECE_PLAIN_LEN != 0 ? 1 : 0); }

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
        pages->assets[i] = *assets[i];
        pages->first[i] = total;
        if (!oc_add_u64(total, pieces_of(assets[i]), &total) || total > SIZE_MAX / 2 / OC_PIECE_PLAIN_LEN) {
            return oc_fail(err, ORTCRYPT_E_LIMIT, "the assets are larger than memory can be");
        }
    }
    pages->first[count] = total;
    pages->lens = calloc((size_t)total + 1, sizeof(*pages->lens));
    pages->ends = calloc((size_t)total + 1, sizeof(*pages->ends));
    if (pages->lens == NULL || pages->ends == NULL) {
        return oc_fail_memory(err, ((size_t)total + 1) * sizeof(*pages->lens), "the list of pieces");
    }
    for (size_t i = 0; i < count; i++) {
        for (uint64_t piece = pages->first[i]; piece < pages->first[i + 1]; piece++) {
            const uint64_t rest = assets[i]->size - (piece - pages->first[i]) * OC_PIECE_PLAIN_LEN;
            pages->lens[piece] = rest < OC_PIECE_PLAIN_LEN ? (uint32_t)rest : OC_PIECE_PLAIN_LEN;
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
    ortcrypt_status st = lay_out(pages, assets, count, err);
    for (size_t i = 0; i < options->end_count && st == ORTCRYPT_OK; i++) {
        const oc_pages_end *const end = &options->ends[i];
        pages->ends[pages->first[end->asset] + end->offset / OC_PIECE_PLAIN_LEN] = true;
    }
    if (st == ORTCRYPT_OK) {
        st = check_objects(pages, err);
    }
    if (st == ORTCRYPT_OK) {
        const oc_paged_spec spec = {.piece_len = OC_PIECE_PLAIN_LEN,
                                    .piece_count = pages->first[count],
                                    .lens = pages->lens,
                                    .window = options->window_len,
                                    .ahead = options->ahead_len / OC_PIECE_PLAIN_LEN,
                                    .ends = pages->ends,
                                    .fill = fill_piece,
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
    return oc_paged_data(pages->paged) + (size_t)pages->first[asset] * OC_PIECE_PLAIN_LEN;
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
