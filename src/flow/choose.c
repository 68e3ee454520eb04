/* Which variant of a bundle runs, on which execution provider and device, and whether that pair may be used at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/flow.h"
#include "runtime/canary.h"

/* ORTCRYPT_E_UNSUPPORTED whatever the reason: that nothing could be tried out proves nothing either. */
static ortcrypt_status prove(ortcrypt_runtime *runtime, const char *ep, const char *const *keys, const char *const *values, size_t count,
                             const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;
    const OrtEpDevice *device = NULL;
    oc_canary_verdict verdict;

    ortcrypt_status st = oc_choose_device(&device, runtime, ep, &reason);
    if (st == ORTCRYPT_OK) {
        st = oc_canary_prove(&verdict, runtime, ep, device, keys, values, count, &reason);
    }
    if (st == ORTCRYPT_E_NO_MEMORY || st == ORTCRYPT_E_NOT_FOUND || st == ORTCRYPT_E_INVALID) {
        if (err != NULL) {
            *err = reason;
        }
        return st;
    }
    if (st != ORTCRYPT_OK) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "nothing proves that %s keeps its EPContext data out of files on ONNX Runtime %s: %s",
                      ep, ortcrypt_runtime_version(runtime), reason.message);
        oc_hint(err, "%s", reason.hint);
        return ORTCRYPT_E_UNSUPPORTED;
    }
    if (!verdict.proven) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s is refused on ONNX Runtime %s: %s", ep, ortcrypt_runtime_version(runtime),
                      verdict.why);
        oc_hint(err, "it was tried out with a model that is no secret; `ortcrypt check-ep LIBRARY` says more");
        return ORTCRYPT_E_UNSUPPORTED;
    }
    if (!verdict.known) {
        oc_notice(monitor, "%s on ONNX Runtime %s is in no table: %s", ep, ortcrypt_runtime_version(runtime), verdict.why);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_route_check(ortcrypt_runtime *runtime, const char *ep, bool embedded, const char *const *keys,
                               const char *const *values, size_t count, const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    const char *why = NULL;

    const oc_route route = oc_runtime_route(runtime, ep, &why);
    if (route == OC_ROUTE_UNPROVEN) {
        return prove(runtime, ep, keys, values, count, monitor, err);
    }
    if (route != OC_ROUTE_NONE) {
        return ORTCRYPT_OK;
    }
    if (embedded && strcmp(ep, OC_EP_REFERENCE_NAME) == 0) {
        return ORTCRYPT_OK; /* its engines are inside the model then: no callback takes part, on any runtime */
    }
    (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s cannot be used with ONNX Runtime %s", ep, ortcrypt_runtime_version(runtime));
    oc_hint(err, "%s", why);
    return ORTCRYPT_E_UNSUPPORTED;
}

static int type_rank(OrtHardwareDeviceType type)
{
    return type == OrtHardwareDeviceType_NPU ? 2 : type == OrtHardwareDeviceType_GPU ? 1 : 0;
}

ortcrypt_status oc_choose_device(const OrtEpDevice **out, ortcrypt_runtime *runtime, const char *ep, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    const OrtEpDevice **devices = NULL;
    size_t count = 0;
    int best = -1;

    const ortcrypt_status st = oc_runtime_devices(runtime, ep, &devices, &count, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    for (size_t i = 0; i < count; i++) {
        const int rank = type_rank(api->HardwareDevice_Type(api->EpDevice_Device(devices[i])));
        if (rank > best) {
            best = rank;
            *out = devices[i];
        }
    }
    free(devices);
    return ORTCRYPT_OK;
}

OrtCompiledModelCompatibility oc_judge(const ortcrypt_runtime *runtime, const OrtEpDevice *device, const oc_variant *variant,
                                       const ortcrypt_monitor *monitor)
{
    OrtCompiledModelCompatibility judgement = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    if (device == NULL || variant->compatibility == NULL || variant->compatibility[0] == '\0') {
        return judgement;
    }
    if (oc_ort_check(runtime,
                     ortcrypt_runtime_api(runtime)->GetModelCompatibilityForEpDevices(&device, 1, variant->compatibility, &judgement),
                     &err, "its answer") != ORTCRYPT_OK) {
        oc_notice(monitor, "%s does not say whether variant %s runs on this device, so it is tried; %s", variant->ep, variant->id, err.message);
        return OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    }
    return judgement;
}

static int judgement_rank(OrtCompiledModelCompatibility judgement)
{
    switch (judgement) {
    case OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL:
        return 3;
    case OrtCompiledModelCompatibility_EP_NOT_APPLICABLE:
        return 2;
    case OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION:
        return 1;
    case OrtCompiledModelCompatibility_EP_UNSUPPORTED:
    default:
        return 0;
    }
}

static void tell_suboptimal(const ortcrypt_monitor *monitor, OrtCompiledModelCompatibility judgement, const oc_variant *variant)
{
    if (judgement == OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION) {
        oc_notice(monitor, "variant %s works, but %s would rather have it compiled again", variant->id, variant->ep);
    }
}

/* "OrtcryptReference 0.1.0 on ONNX Runtime 1.30.0": who made a compiled variant, as far as it says so. */
#define MAKER_SIZE 256
static void maker(char text[MAKER_SIZE], const oc_variant *variant)
{
    const bool versioned = variant->ep_version != NULL && variant->ep_version[0] != '\0';

    (void)snprintf(text, MAKER_SIZE, "%.100s%s%.40s on ONNX Runtime %.40s", variant->ep, versioned ? " " : "",
                   versioned ? variant->ep_version : "", variant->runtime != NULL ? variant->runtime : "");
}

static void tell_stale(const ortcrypt_monitor *monitor, const oc_variant *variant)
{
    char by[MAKER_SIZE];

    maker(by, variant);
    oc_notice(monitor, "variant %s, made by %s, is left out: %s says that it does not run on this device", variant->id, by, variant->ep);
}

void oc_choice_explain(const oc_variant *variant, const ortcrypt_runtime *runtime, ortcrypt_error *err)
{
    char by[MAKER_SIZE];

    if (strcmp(variant->kind, "compiled") == 0 && variant->runtime != NULL &&
        strcmp(variant->runtime, ortcrypt_runtime_version(runtime)) != 0) {
        maker(by, variant);
        oc_hint(err, "variant %s was made by %s, and this is %s: compile the model again here", variant->id, by,
                ortcrypt_runtime_version(runtime));
    }
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

/*
 * The best compiled variant of an EP; among equals the one added last. With `in_time` the source instead, when the EP would have
 * it compiled again anyway: what another runtime made may not even load.
 */
static ortcrypt_status choose_compiled(oc_choice *out, ortcrypt_runtime *runtime, const oc_manifest *manifest, bool in_time,
                                       const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    const char *const ep = out->ep;
    const OrtEpDevice *const device = out->device;
    OrtCompiledModelCompatibility best = OrtCompiledModelCompatibility_EP_UNSUPPORTED;
    const oc_variant *found = NULL;
    size_t asked = 0; /* what an EP cannot say of one variant it will not of the next: one notice is enough */

    for (size_t i = manifest->variant_count; i-- > 0;) {
        const oc_variant *const variant = &manifest->variants[i];
        if (strcmp(variant->kind, "compiled") != 0 || variant->ep == NULL || strcmp(variant->ep, ep) != 0) {
            continue;
        }
        const OrtCompiledModelCompatibility judgement = oc_judge(runtime, device, variant, asked++ == 0 ? monitor : NULL);
        if (judgement_rank(judgement) == 0) {
            tell_stale(monitor, variant);
        } else if (judgement_rank(judgement) > judgement_rank(best)) {
            best = judgement;
            found = variant;
        }
    }
    if (found != NULL) {
        tell_suboptimal(monitor, best, found);
    }
    if (in_time && find_source(manifest) != NULL && judgement_rank(best) < judgement_rank(OrtCompiledModelCompatibility_EP_NOT_APPLICABLE)) {
        out->in_time = true;
        found = find_source(manifest);
    }
    if (found == NULL) {
        (void)oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the bundle has no variant that %s can run here", ep);
        oc_hint(err, "compile one with this execution provider first, or name the variant source: it is compiled in memory then, each time");
        return ORTCRYPT_E_NOT_FOUND;
    }
    out->variant = found;
    return ORTCRYPT_OK;
}

static ortcrypt_status choose_named(oc_choice *out, ortcrypt_runtime *runtime, const oc_manifest *manifest, const char *id,
                                    const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    OrtCompiledModelCompatibility judgement = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    const oc_variant *const variant = oc_manifest_find_variant(manifest, id);

    if (variant == NULL) {
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the bundle has no variant %s", id);
    }
    const bool compiled = strcmp(variant->kind, "compiled") == 0;
    const char *const ep = out->ep != NULL ? out->ep : OC_EP_CPU_NAME;
    if (compiled && variant->ep != NULL && strcmp(ep, variant->ep) != 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "variant %s was compiled for %s, not for %s", id, variant->ep, ep);
    }
    if (compiled && out->device != NULL) {
        judgement = oc_judge(runtime, out->device, variant, monitor);
    }
    if (judgement_rank(judgement) == 0) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s says that variant %s does not run on this device", variant->ep, id);
        oc_hint(err, "compile the model again here");
        return ORTCRYPT_E_UNSUPPORTED;
    }
    tell_suboptimal(monitor, judgement, variant);
    out->variant = variant;
    return ORTCRYPT_OK;
}

/* The caller's EP, else the one the named variant was compiled for, else none (the CPU EP). */
static const char *find_ep(const oc_manifest *manifest, const ortcrypt_session_options *options)
{
    const char *ep = options->ep;

    if (ep == NULL && options->variant != NULL) {
        const oc_variant *const variant = oc_manifest_find_variant(manifest, options->variant);
        ep = variant != NULL ? variant->ep : NULL;
    }
    return ep != NULL && strcmp(ep, OC_EP_CPU_NAME) != 0 ? ep : NULL;
}

ortcrypt_status oc_choose(oc_choice *out, ortcrypt_runtime *runtime, const ortcrypt_bundle *bundle,
                          const ortcrypt_session_options *options, ortcrypt_error *err)
{
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    const ortcrypt_monitor *const monitor = options->monitor;
    const char *const id = options->variant;
    oc_choice choice = {.ep = find_ep(manifest, options)};
    ortcrypt_status st = ORTCRYPT_OK;

    if (choice.ep != NULL && options->ep_library != NULL) {
        st = ortcrypt_runtime_register_ep(runtime, choice.ep, options->ep_library, err);
    }
    if (st == ORTCRYPT_OK && choice.ep != NULL) {
        st = oc_choose_device(&choice.device, runtime, choice.ep, err);
    }
    if (st == ORTCRYPT_OK && id != NULL) {
        st = choose_named(&choice, runtime, manifest, id, monitor, err);
    } else if (st == ORTCRYPT_OK && choice.ep != NULL) {
        st = choose_compiled(&choice, runtime, manifest, options->cache != NULL, monitor, err);
    } else if (st == ORTCRYPT_OK) {
        choice.variant = find_source(manifest);
        if (choice.variant == NULL) {
            st = oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the bundle has no source variant");
        }
    }
    if (st == ORTCRYPT_OK && choice.ep != NULL) {
        st = oc_route_check(runtime, choice.ep, choice.variant->embed == 1, options->ep_option_keys, options->ep_option_values,
                            options->ep_option_count, monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        *out = choice;
    }
    return st;
}
