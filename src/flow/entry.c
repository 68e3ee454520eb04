/* The functions ORT and EPs call. Nothing here looks into a state before it is known to be open. */
#include "flow/live.h"
#include "flow/output.h"

OrtStatus *ORT_API_CALL ortcrypt_read_named(void *inputs, const char *name, OrtAllocator *allocator, void **buffer,
                                            size_t *data_size)
{
    OrtStatus *status = oc_live_enter(inputs, OC_LIVE_INPUTS);

    if (status == NULL) {
        status = oc_inputs_read_named(inputs, name, allocator, buffer, data_size);
        oc_live_leave(inputs);
    }
    return status;
}

OrtStatus *ORT_API_CALL ortcrypt_write_named(void *output, const char *name, const void *buffer, size_t buffer_num_bytes)
{
    OrtStatus *status = oc_live_enter(output, OC_LIVE_OUTPUT);

    if (status == NULL) {
        status = oc_output_write_named(output, name, buffer, buffer_num_bytes);
        oc_live_leave(output);
    }
    return status;
}

OrtStatus *ORT_API_CALL ortcrypt_write_model(void *output, const void *buffer, size_t buffer_num_bytes)
{
    OrtStatus *status = oc_live_enter(output, OC_LIVE_OUTPUT);

    if (status == NULL) {
        status = oc_output_write_model(output, buffer, buffer_num_bytes);
        oc_live_leave(output);
    }
    return status;
}

OrtStatus *ORT_API_CALL ortcrypt_initializer_location(void *output, const char *initializer_name,
                                                      const OrtValue *initializer_value,
                                                      const OrtExternalInitializerInfo *external_info,
                                                      OrtExternalInitializerInfo **new_external_info)
{
    OrtStatus *status = oc_live_enter(output, OC_LIVE_OUTPUT);

    if (status == NULL) {
        status = oc_output_location(output, initializer_name, initializer_value, external_info, new_external_info);
        oc_live_leave(output);
    }
    return status;
}
