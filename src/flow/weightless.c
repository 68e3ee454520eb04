/* The source model as one piece, for the execution provider that left its weights there. */
#include <string.h>

#include "flow/weightless.h"

#define WEIGHTLESS_FUNCTION "SessionOptionsSetWeightlessSourceModelBuffer"

bool oc_weightless_variant(const oc_variant *variant)
{
    const char *const mark = oc_pair_get(variant->extensions, variant->extension_count, OC_WEIGHTLESS_MARK);

    return mark != NULL && strcmp(mark, "true") == 0;
}

ortcrypt_status oc_weightless_check(const ortcrypt_runtime *runtime, ortcrypt_error *err)
{
    if (oc_runtime_has(runtime, WEIGHTLESS_FUNCTION)) {
        return ORTCRYPT_OK;
    }
    (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "ONNX Runtime %s has no weightless mode", ortcrypt_runtime_version(runtime));
    oc_hint(err, "use ONNX Runtime 1.%u or newer, or compile without it", oc_runtime_since(WEIGHTLESS_FUNCTION));
    return ORTCRYPT_E_UNSUPPORTED;
}

static const oc_variant *find_source(const oc_manifest *manifest)
{
    for (size_t i = 0; i < manifest->variant_count; i++) {
        if (strcmp(manifest->variants[i].kind, "source") == 0) {
            return &manifest->variants[i];
        }
    }
    return NULL;
}

/* The source model with its weights inside. */
static ortcrypt_status read_source(oc_region *region, size_t *len, ortcrypt_bundle *bundle, ortcrypt_error *err)
{
    const oc_variant *const source = find_source(oc_bundle_manifest(bundle));
    oc_supply *supply = NULL;

    if (source == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "a weightless variant takes its weights from the source variant, and the bundle has none");
    }
    ortcrypt_status st = oc_supply_open(&supply, bundle, source, err);
    if (st == ORTCRYPT_OK) {
        st = oc_supply_put_back(supply, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_supply_model(supply, region, len, NULL, err);
    }
    oc_supply_free(supply);
    return st;
}

ortcrypt_status oc_weightless_load(oc_region *region, size_t *len, const ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                                   OrtSessionOptions *options, ortcrypt_error *err)
{
    ortcrypt_status st = oc_weightless_check(runtime, err);

    if (st == ORTCRYPT_OK) {
        st = read_source(region, len, bundle, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime, ortcrypt_runtime_api(runtime)->SessionOptionsSetWeightlessSourceModelBuffer(options, region->data, *len),
                          err, "the source model");
        if (st != ORTCRYPT_OK) {
            oc_region_free(region);
        }
    }
    return st;
}
