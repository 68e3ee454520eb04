/*
 * Callbacks by id: registered with this library, named in the session options, found by the EP's library or the bridge when they are
 * called. options <- id -> registry -> inputs or output. Works on every runtime, those without callbacks of their own included.
 */
#include "crypto/random.h"
#include "flow/flow.h"

ortcrypt_status oc_callbacks_clear(const ortcrypt_runtime *runtime, OrtSessionOptions *options, ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    int present = 0;

    ortcrypt_status st =
        oc_ort_check(runtime, api->HasSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, &present), err, "session options");
    if (st == ORTCRYPT_OK && present) { /* entries cannot be removed: empty is absent */
        st = oc_ort_check(runtime, api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, ""), err, "session options");
    }
    return st;
}

ortcrypt_status oc_callbacks_name(oc_registration **out, ortcrypt_runtime *runtime, const char *ep, OrtSessionOptions *options,
                                  OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write, void *state, ortcrypt_error *err)
{
    uint8_t random[OC_REGISTRATION_RANDOM_LEN];
    oc_registration *made = NULL;

    if (ep == NULL || !oc_runtime_takes_ids(runtime, ep)) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = oc_random(random, sizeof(random), err);
    if (st == ORTCRYPT_OK) {
        st = oc_registration_new(&made, random, read, write, state, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime,
                          ortcrypt_runtime_api(runtime)->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY,
                                                                               oc_registration_id(made)),
                          err, "session options");
    }
    if (st != ORTCRYPT_OK) {
        oc_registration_end(made);
        return st;
    }
    *out = made;
    return ORTCRYPT_OK;
}
