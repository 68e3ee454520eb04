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
    struct oc_registered_ep *next;
} oc_registered_ep;

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
};

#endif
