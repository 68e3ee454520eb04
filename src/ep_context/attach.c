/*
 * Callbacks by id. libortcrypt hands its registry to ortcrypt_ep_attach; an id in the session options is looked up in it at every
 * call: EP -> context -> registry -> the application's callback. What the id stands for is libortcrypt's, and may be gone.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

/* Each copy of libortcrypt in the process has one; they are never let go of. */
enum { OC_EP_REGISTRIES = 8 };
static _Atomic(const ortcrypt_ep_registry *) registries[OC_EP_REGISTRIES];

#if !defined(ORTCRYPT_EP_CONTEXT_NO_ATTACH) || !defined(ORTCRYPT_EP_CONTEXT_ONE_FILE)
bool oc_ep_attach(const ortcrypt_ep_registry *registry)
{
    bool attached = false;
    if (registry == NULL || registry->struct_size < sizeof(*registry)) {
        return false;
    }
    for (size_t i = 0; i < OC_EP_REGISTRIES && !attached; i++) {
        const ortcrypt_ep_registry *there = NULL;
        attached = atomic_compare_exchange_strong(&registries[i], &there, registry) || there == registry;
    }
    return attached;
}
#endif

#ifndef ORTCRYPT_EP_CONTEXT_NO_ATTACH
bool ortcrypt_ep_attach(const ortcrypt_ep_registry *registry)
{
    return oc_ep_attach(registry);
}
#endif

uint32_t oc_ep_find_id(const char *id, const ortcrypt_ep_registry **registry)
{
    uint32_t callbacks = 0;
    *registry = NULL;
    for (size_t i = 0; i < OC_EP_REGISTRIES && callbacks == 0; i++) {
        const ortcrypt_ep_registry *const there = atomic_load(&registries[i]);
        if (there == NULL) {
            break;
        }
        callbacks = there->callbacks(id);
        *registry = callbacks != 0 ? there : NULL;
    }
    return callbacks;
}

static OrtStatus *ORT_API_CALL read_by_id(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *data_size)
{
    const ortcrypt_ep_context *const context = state;
    return context->registry->read(context->id, context->api, name, allocator, buffer, data_size);
}

static OrtStatus *ORT_API_CALL write_by_id(void *state, const char *name, const void *buffer, size_t buffer_num_bytes)
{
    const ortcrypt_ep_context *const context = state;
    return context->registry->write(context->id, context->api, name, buffer, buffer_num_bytes);
}

OrtStatus *oc_ep_take_id(ortcrypt_ep_context *context, const char *id)
{
    const ortcrypt_ep_registry *registry = NULL;
    const size_t len = strnlen(id, sizeof(context->id));
    const uint32_t callbacks = len < sizeof(context->id) ? oc_ep_find_id(id, &registry) : 0;
    if (callbacks == 0) { /* never a file in its place: the application means its data to be encrypted */
        return oc_ep_status(context->api, ORT_FAIL,
                            "the session option " ORTCRYPT_EP_CONTEXT_ID_KEY " names callbacks that are not there: what they "
                            "belong to was closed, or the ortcrypt that made them is not attached to this library");
    }
    memcpy(context->id, id, len + 1);
    context->registry = registry;
    if ((callbacks & ORTCRYPT_EP_CONTEXT_READS) != 0) {
        context->read = read_by_id;
        context->read_state = context;
    }
    if ((callbacks & ORTCRYPT_EP_CONTEXT_WRITES) != 0) {
        context->write = write_by_id;
        context->write_state = context;
    }
    return NULL;
}
