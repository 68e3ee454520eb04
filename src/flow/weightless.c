/* The source model as one piece, for the execution provider that left its weights there. */
#include <stdlib.h>
#include <string.h>

#include "flow/weightless.h"

bool oc_weightless_variant(const oc_variant *variant)
{
    const char *const mark = oc_pair_get(variant->extensions, variant->extension_count, OC_WEIGHTLESS_MARK);

    return mark != NULL && strcmp(mark, "true") == 0;
}

ortcrypt_status oc_weightless_check(const ortcrypt_runtime *runtime, ortcrypt_error *err)
{
    if (oc_runtime_minor(runtime) >= OC_WEIGHTLESS_MINOR) {
        return ORTCRYPT_OK;
    }
    (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "ONNX Runtime %s has no weightless mode", ortcrypt_runtime_version(runtime));
    oc_hint(err, "use ONNX Runtime 1.%d or newer, or compile without it", OC_WEIGHTLESS_MINOR);
    return ORTCRYPT_E_UNSUPPORTED;
}

typedef struct whole {
    oc_supply *supply;
    oc_asset_reader **readers; /* one per file of the supply */
    oc_source *sources;
    oc_onnx_edit *edits;
    size_t edit_count;
} whole;

static void whole_close(whole *w)
{
    for (size_t i = 0; w->readers != NULL && i < w->supply->file_count; i++) {
        if (w->readers[i] != NULL) {
            oc_asset_reader_close(w->readers[i]);
        }
    }
    free(w->readers);
    free(w->sources);
    free(w->edits);
    oc_supply_free(w->supply);
}

static ortcrypt_status open_files(whole *w, ortcrypt_bundle *bundle, ortcrypt_error *err)
{
    const size_t count = w->supply->file_count;
    ortcrypt_status st = ORTCRYPT_OK;

    w->readers = calloc(count + 1, sizeof(*w->readers));
    w->sources = calloc(count + 1, sizeof(*w->sources));
    w->edits = calloc(w->supply->onnx->tensor_count + 1, sizeof(*w->edits));
    if (w->readers == NULL || w->sources == NULL || w->edits == NULL) {
        return oc_fail_memory(err, (w->supply->onnx->tensor_count + 1) * sizeof(*w->edits), "the list of external files");
    }
    for (size_t i = 0; i < count && st == ORTCRYPT_OK; i++) {
        st = oc_asset_reader_open(&w->readers[i], bundle, w->supply->files[i].asset, err);
        if (st == ORTCRYPT_OK) {
            w->sources[i] = oc_asset_reader_source(w->readers[i]);
        }
    }
    return st;
}

static int by_place(const void *a, const void *b)
{
    const oc_onnx_edit *const x = a;
    const oc_onnx_edit *const y = b;

    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static void list_edits(whole *w)
{
    const oc_onnx_model *const onnx = w->supply->onnx;

    for (size_t i = 0; i < onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &onnx->tensors[i];
        const oc_part *const part = tensor->external ? oc_cover_part(w->supply->variant, tensor->location) : NULL;
        for (size_t j = 0; part != NULL && j < w->supply->file_count; j++) {
            if (w->supply->files[j].part == part) {
                w->edits[w->edit_count++] = (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_INLINE, .source = &w->sources[j],
                                                           .offset = tensor->offset, .length = tensor->length};
                break;
            }
        }
    }
    qsort(w->edits, w->edit_count, sizeof(*w->edits), by_place);
}

static ortcrypt_status whole_open(whole *w, ortcrypt_bundle *bundle, ortcrypt_error *err)
{
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const oc_variant *source = NULL;

    for (size_t i = 0; i < manifest->variant_count && source == NULL; i++) {
        source = strcmp(manifest->variants[i].kind, "source") == 0 ? &manifest->variants[i] : NULL;
    }
    if (source == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "a weightless variant takes its weights from the source variant, and the bundle has none");
    }
    ortcrypt_status st = oc_supply_open(&w->supply, bundle, source, err);
    if (st == ORTCRYPT_OK) {
        st = open_files(w, bundle, err);
    }
    if (st == ORTCRYPT_OK) {
        list_edits(w);
    }
    return st;
}

static ortcrypt_status rewrite(const whole *w, ortcrypt_bundle *bundle, oc_push_fn push, void *state, uint64_t *len, ortcrypt_error *err)
{
    oc_asset_reader *model = NULL;

    ortcrypt_status st = oc_asset_reader_open(&model, bundle, w->supply->model, err);
    if (st == ORTCRYPT_OK) {
        const oc_source source = oc_asset_reader_source(model);
        st = oc_onnx_rewrite(w->supply->onnx, &source, w->edits, w->edit_count, push, state, len, err);
        oc_asset_reader_close(model);
    }
    return st;
}

/* The bytes with which the rewriter's two passes must agree. */
typedef struct fill {
    oc_region *region; /* NULL: only counted */
    size_t at;
} fill;

static ortcrypt_status fill_region(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    fill *const to = state;

    if (to->region != NULL && len > to->region->len - to->at) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "the source model changed its length while it was read");
    }
    if (to->region != NULL) {
        memcpy(to->region->data + to->at, data, len);
        to->at += len;
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status read_whole(oc_region *region, size_t *len, const whole *w, ortcrypt_bundle *bundle, ortcrypt_error *err)
{
    oc_region made = {0};
    fill count = {NULL, 0};
    fill to = {&made, 0};
    uint64_t whole_len = 0;
    size_t room = 0;

    ortcrypt_status st = rewrite(w, bundle, fill_region, &count, &whole_len, err);
    if (st == ORTCRYPT_OK) {
        st = oc_len(whole_len, SIZE_MAX / 2, "the source model", &room, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_region_new(&made, room, err);
    }
    if (st == ORTCRYPT_OK) {
        st = rewrite(w, bundle, fill_region, &to, NULL, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_region_free(&made);
        return st;
    }
    *region = made;
    *len = to.at;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_weightless_load(oc_region *region, size_t *len, const ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                                   OrtSessionOptions *options, ortcrypt_error *err)
{
    whole w = {0};

    ortcrypt_status st = oc_weightless_check(runtime, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = whole_open(&w, bundle, err);
    if (st == ORTCRYPT_OK) {
        st = read_whole(region, len, &w, bundle, err);
    }
    whole_close(&w);
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime, ortcrypt_runtime_api(runtime)->SessionOptionsSetWeightlessSourceModelBuffer(options, region->data, *len),
                          err, "the source model");
        if (st != ORTCRYPT_OK) {
            oc_region_free(region);
        }
    }
    return st;
}
