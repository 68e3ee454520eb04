/* Turning what the callbacks stored into a variant of the transaction's manifest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/output.h"
#include "flow/weightless.h"

static ortcrypt_status finish(oc_asset_writer **writer, uint8_t id[OC_ASSET_ID_LEN], ortcrypt_error *err)
{
    const ortcrypt_status st = oc_asset_writer_finish(*writer, id, err);

    oc_asset_writer_close(*writer);
    *writer = NULL;
    return st;
}

static ortcrypt_status finish_assets(ortcrypt_output *output, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    if (output->model == NULL || output->model_len == 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "no compiled model was written: ortcrypt_write_model was never called");
    }
    st = finish(&output->model, output->model_id, err);
    output->model_finished = st == ORTCRYPT_OK;
    for (oc_blob *blob = output->blobs; blob != NULL && st == ORTCRYPT_OK; blob = blob->next) {
        if (!blob->finished && blob->writer != NULL) {
            st = finish(&blob->writer, blob->id, err);
            blob->finished = st == ORTCRYPT_OK;
        }
    }
    return st;
}

static ortcrypt_status describe_device(oc_variant *variant, const ortcrypt_output *output, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(output->runtime);
    char text[256];

    if (output->device == NULL) {
        return ORTCRYPT_OK;
    }
    const OrtHardwareDevice *const hardware = api->EpDevice_Device(output->device);
    const OrtHardwareDeviceType type = api->HardwareDevice_Type(hardware);
    const char *const version = api->GetKeyValue(api->EpDevice_EpMetadata(output->device), "version");
    (void)snprintf(text, sizeof(text), "%s %s",
                   type == OrtHardwareDeviceType_NPU ? "NPU" : type == OrtHardwareDeviceType_GPU ? "GPU" : "CPU",
                   api->HardwareDevice_Vendor(hardware));
    ortcrypt_status st = oc_utf8_valid(text, strlen(text)) ? oc_strdup(&variant->device, text, err) : ORTCRYPT_OK;
    if (st == ORTCRYPT_OK && version != NULL && version[0] != '\0') {
        st = oc_strdup(&variant->ep_version, version, err);
    }
    return st;
}

static ortcrypt_status add_parts(oc_variant *variant, const ortcrypt_output *output, ortcrypt_error *err)
{
    ortcrypt_status st = oc_variant_add_part(variant, OC_ROLE_MODEL, "", output->model_id, err);

    for (size_t i = 0; i < output->init_count && st == ORTCRYPT_OK; i++) {
        st = oc_variant_add_part(variant, OC_ROLE_INITIALIZER, output->inits[i].location, output->inits[i].tensor.asset, err);
        if (st == ORTCRYPT_OK) {
            st = oc_variant_add_tensor(variant, &output->inits[i].tensor, err);
        }
    }
    for (const oc_blob *blob = output->blobs; blob != NULL && st == ORTCRYPT_OK; blob = blob->next) {
        if (blob->finished) {
            st = oc_variant_add_part(variant, OC_ROLE_EP_CONTEXT, blob->name, blob->id, err);
        }
    }
    return st;
}

ortcrypt_status oc_output_record(ortcrypt_output *output, ortcrypt_error *err)
{
    oc_variant *variant = NULL;

    ortcrypt_status st = finish_assets(output, err);
    oc_supply_free(output->source); /* its pointers into the manifest end here */
    output->source = NULL;
    if (st == ORTCRYPT_OK) {
        st = oc_manifest_add_variant(oc_txn_manifest(output->txn), output->variant_id, "compiled", &variant, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    output->variant = variant;
    variant->embed = output->options.embed ? 1 : 0;
    variant->verified = 0;
    st = oc_strdup(&variant->ep, output->ep, err);
    if (st == ORTCRYPT_OK && output->options.weightless) {
        st = oc_pair_add(&variant->extensions, &variant->extension_count, OC_WEIGHTLESS_MARK, "true", err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_strdup(&variant->runtime, ortcrypt_runtime_version(output->runtime), err);
    }
    if (st == ORTCRYPT_OK) {
        st = describe_device(variant, output, err);
    }
    for (size_t i = 0; i < output->ep_option_count && st == ORTCRYPT_OK; i++) {
        st = oc_pair_add(&variant->options, &variant->option_count, output->ep_options[i].key, output->ep_options[i].value, err);
    }
    return st == ORTCRYPT_OK ? add_parts(variant, output, err) : st;
}
