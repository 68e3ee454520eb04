/*
 * runtime/registry.h: callbacks of this library by id, for EP libraries that were attached (ortcrypt/ep_context.h, "Callbacks by id").
 *
 * Call order: oc_registration_new -> its id into a session config entry -> EPs call -> oc_registration_end.
 * Data flow: EP library -> oc_registry_table -> the registration of the id -> callback and state, which belong to who registered.
 * Threads: everything may run anywhere; _end waits for callbacks that are running, and must not be called from one.
 */
#ifndef OC_RUNTIME_REGISTRY_H
#define OC_RUNTIME_REGISTRY_H

#include "base/bytes.h"
#include "ortcrypt/ep_context.h"

typedef struct oc_registration oc_registration;

enum { OC_REGISTRATION_RANDOM_LEN = 16 };

/*
 * `random`: from getrandom(2), never used before. A callback that is NULL answers every call with an error: an EP that has an id makes
 * and opens no file. `state` must stay valid until _end returned.
 */
ortcrypt_status oc_registration_new(oc_registration **out, const uint8_t random[OC_REGISTRATION_RANDOM_LEN],
                                    OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write, void *state, ortcrypt_error *err);
const char *oc_registration_id(const oc_registration *registration);
/* From now on the id is refused; returns when no callback of it runs any more. NULL is allowed. */
void oc_registration_end(oc_registration *registration);

/* What EP libraries are attached to. */
const ortcrypt_ep_registry *oc_registry_table(void);

/* Hands the table to the library at `path`, which is loaded; false when it has no ortcrypt_ep_attach, or does not take it. */
bool oc_registry_attach(const char *path);

#endif
