/*
 * ortcrypt/bridge.h: the bridge, a plugin library (libortcrypt_bridge.so) that is registered in place of an EP's own.
 *
 * It loads the EP's library and gives it the EPContext callbacks it knows, on every ONNX Runtime from 1.23 on; the EP keeps its name,
 * devices and options. libortcrypt inserts it by itself where a pair of runtime and EP needs it. Nobody links it; an application that
 * registers EP libraries itself does what is below, and uses only pairs that are proven (docs/threat-model.md).
 * Call order: dlopen -> ortcrypt_bridge_target(name, EP library) -> RegisterExecutionProviderLibrary(env, name, bridge) -> ... ->
 * UnregisterExecutionProviderLibrary, which lets go of the EP's library.
 */
#ifndef ORTCRYPT_BRIDGE_H
#define ORTCRYPT_BRIDGE_H

#include "ortcrypt/ep_context.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Entry point of the bridge: the next registration under `registration_name` (both copied) is of the EP library at `library_path`.
 * Said again before that registration, the last one counts. Thread-safe. False: an argument is NULL or empty, or there is no memory.
 */
ORTCRYPT_EP_ENTRY_POINT bool ortcrypt_bridge_target(const char *registration_name, const char *library_path);

#ifdef __cplusplus
}
#endif
#endif
