/*
 * runtime/private.h: what the files of this folder share. The OrtEnv and every registered EP library belong to the runtime
 * (or to the application when it handed its own env in); sessions, inputs and outputs only count themselves in `holds`.
 */
#ifndef OC_RUNTIME_PRIVATE_H
#define OC_RUNTIME_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/runtime.h"

#define OC_RUNTIME_MINOR_MIN 23   /* 1.23: the compile API has all we use */
#define OC_RUNTIME_MINOR_PROVEN 32 /* the newest whose tables were seen */
#define OC_RUNTIME_API_MAX 29     /* ORT_API_VERSION of the headers this is written against */
#define OC_RUNTIME_TELEMETRY_MINOR 29 /* from here on ORT writes metadata of models to files unless told not to */

#define OC_EP_CPU "CPUExecutionProvider"
#define OC_EP_REFERENCE "OrtcryptReference"

typedef struct oc_registered_ep {
    char *name;
    char *library; /* absolute */
    bool attached; /* ids of this library can be used in it: it was built with the helper, or stands behind the bridge */
    bool bridged;
    char *unbridged; /* why not, where the table would have it so (a sentence part); NULL: not wanted, or it is */
    struct oc_registered_ep *next;
} oc_registered_ep;

/* What is known of a pair of runtime and EP. */
typedef struct oc_pair {
    const char *ep;
    const char *version;  /* what the EP says of itself; NULL: any */
    unsigned first, last; /* minor versions of ONNX Runtime 1.x */
    oc_route route;       /* HELPER: NATIVE too, where the runtime has callbacks and the library takes no ids */
    const char *why;
} oc_pair;

/* pairs.c: the row of a pair; NULL: nothing is known. `version` may be NULL: not known, and any does. *known: the EP is in the table. */
const oc_pair *oc_pair_find(unsigned minor, const char *ep, const char *version, bool *known);

/* True when the table sends this EP over the bridge on this runtime, in whatever version. */
bool oc_pair_bridged(unsigned minor, const char *ep);

/*
 * bridge.c: registers the EP's library behind the bridge. ORTCRYPT_E_UNSUPPORTED when there is no bridge, or it does not take this EP;
 * nothing is registered then.
 */
ortcrypt_status oc_bridge_register(const ortcrypt_runtime *runtime, const char *name, const char *library, ortcrypt_error *err);

/*
 * beside.c: the file `name` in the first of `places` that has it with these rights (access(2)'s mode). Places are relative to the folder of
 * this library, or of the program it is linked into, and end with a slash or are empty. *out is heap; NULL: it is nowhere.
 */
ortcrypt_status oc_find_beside(char **out, const char *const *places, size_t count, const char *name, int mode, ortcrypt_error *err);

/* register.c: what is registered under this name, or under another from the library that made this EP's devices. Lock held. */
oc_registered_ep *oc_registered_find(ortcrypt_runtime *runtime, const char *ep);
void oc_registered_free(oc_registered_ep *ep); /* NULL is allowed */
/* The first device of an EP; NULL: none. */
const OrtEpDevice *oc_runtime_first_device(const ortcrypt_runtime *runtime, const char *ep);

struct ortcrypt_runtime {
    const OrtApiBase *base;
    const OrtApi *api;
    const OrtCompileApi *compile;
    OrtEnv *env;
    bool env_owned;
    unsigned minor;
    unsigned api_version;
    char version[32];
    char *library; /* as opened; NULL: adopted, or the one already in the process */
    ortcrypt_ep_context_api ep_context;
    bool telemetry_off; /* ORT_DISABLE_TELEMETRY=1 was in the environment */
    bool telemetry_accepted;
    atomic_size_t holds;
    pthread_mutex_t lock; /* guards `eps` */
    oc_registered_ep *eps;
    struct ortcrypt_runtime *next_open; /* claims.c's list of all open ones */
    ortcrypt_monitor monitor; /* the caller's: notices of registrations */
    char *bridge; /* NULL: found beside this library */
    char *probe; /* NULL: found beside this library */
    unsigned probe_timeout_ms;
    struct oc_canary_kept *canaries; /* verdicts; guarded by `lock` */
};

/*
 * library.c: the OrtApiBase of a named library; of none (NULL): that of the process's global scope, else the only one that was opened
 * for its owner alone (ORTCRYPT_E_INVALID when there are several), else that of libonnxruntime.so.
 */
ortcrypt_status oc_library_load(const OrtApiBase **base, const char *library, ortcrypt_error *err);

/*
 * claims.c: an EP library serves one ONNX Runtime at a time. ORTCRYPT_E_UNSUPPORTED when another has it. Each claim is dropped when its
 * registration did not come about. `library` is the real path. A runtime is counted from _opened to _closed, which comes after ReleaseEnv.
 */
ortcrypt_status oc_claim_library(const ortcrypt_runtime *runtime, const char *name, const char *library, ortcrypt_error *err);
void oc_claim_drop(const ortcrypt_runtime *runtime, const char *library);
void oc_claim_opened(ortcrypt_runtime *runtime);
void oc_claim_closed(const ortcrypt_runtime *runtime);

/*
 * devices.c: a copy (free) of ORT's list of devices, which are ORT's; the library a device is from (NULL: none); and registering a library,
 * which does nothing when a device of it is there: the application, or another runtime object over the OrtEnv, was first. Thread-safe.
 */
ortcrypt_status oc_devices_copy(const ortcrypt_runtime *runtime, const OrtEpDevice ***devices, size_t *count, ortcrypt_error *err);
const char *oc_device_library(const ortcrypt_runtime *runtime, const OrtEpDevice *device);
OrtStatus *oc_devices_register(const ortcrypt_runtime *runtime, const char *name, const char *library);
/* One that may be there already, under other names (the bridge). */
OrtStatus *oc_devices_register_again(const ortcrypt_runtime *runtime, const char *name, const char *library);
bool oc_devices_present(const ortcrypt_runtime *runtime, const char *library);

#endif
