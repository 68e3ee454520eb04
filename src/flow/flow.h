/*
 * flow/flow.h: what the files of this folder share. Plaintext comes from the bundle into regions this folder owns, or through
 * a pipe, and goes to ONNX Runtime; what ORT and the EP write comes back through the callbacks of output.c into the bundle.
 *
 * Loading:   oc_choose -> oc_inputs_new -> (session: CreateSession) -> ortcrypt_inputs_close.
 * Compiling: ortcrypt_output_open -> callbacks during CompileModel -> oc_output_check -> commit -> ortcrypt_output_close.
 */
#ifndef OC_FLOW_FLOW_H
#define OC_FLOW_FLOW_H

#include <pthread.h>

#include "bundle/bundle.h"
#include "flow/plan.h"
#include "flow/supply.h"
#include "ortcrypt/compile.h"
#include "ortcrypt/session.h"
#include "runtime/registry.h"
#include "runtime/runtime.h"

#define OC_EP_CPU_NAME "CPUExecutionProvider"
#define OC_EP_REFERENCE_NAME "OrtcryptReference"

/* A variant and the EP it runs on. Strings are the bundle's or the caller's. */
typedef struct oc_choice {
    const oc_variant *variant;
    bool in_time; /* nothing fits as well as what would be compiled here: `variant` is the source */
    const char *ep; /* NULL: the CPU EP */
    const OrtEpDevice *device; /* NULL without ep */
} oc_choice;

/*
 * The variant that `options` names, or the best one for its EP by ORT's own judgement. Registers options->ep_library; the EP
 * must have a device and a route.
 */
ortcrypt_status oc_choose(oc_choice *out, ortcrypt_runtime *runtime, const ortcrypt_bundle *bundle,
                          const ortcrypt_session_options *options, ortcrypt_error *err);

/* A hint for what ORT says of a variant that another runtime made: from 1.32 on, compiled models are beyond what 1.30 reads. */
void oc_choice_explain(const oc_variant *variant, const ortcrypt_runtime *runtime, ortcrypt_error *err);

/*
 * ORT's own judgement; not applicable (no information, or no EP here) when there is nothing to ask about, and with a notice when the EP
 * answers with an error: QNN does for every device but an NPU, its simulator too.
 */
OrtCompiledModelCompatibility oc_judge(const ortcrypt_runtime *runtime, const OrtEpDevice *device, const oc_variant *variant,
                                       const ortcrypt_monitor *monitor);

/*
 * ORTCRYPT_E_UNSUPPORTED, naming the EP and what would help, when its EPContext data would not reach the callbacks. A pair that no table
 * proves is tried out with the canary, in a program of its own, with these EP options.
 */
ortcrypt_status oc_route_check(ortcrypt_runtime *runtime, const char *ep, bool embedded, const char *const *keys,
                               const char *const *values, size_t count, const ortcrypt_monitor *monitor, ortcrypt_error *err);

/* The device of an EP that is used: the first NPU, else the first GPU, else the first. */
ortcrypt_status oc_choose_device(const OrtEpDevice **out, ortcrypt_runtime *runtime, const char *ep, ortcrypt_error *err);

/* The caller's options (NULL: defaults), checked; strings stay the caller's. ORTCRYPT_E_INVALID otherwise. */
ortcrypt_status oc_session_options_read(ortcrypt_session_options *out, const ortcrypt_session_options *options,
                                        ortcrypt_error *err);
ortcrypt_status oc_compile_options_read(ortcrypt_compile_options *out, const ortcrypt_compile_options *options,
                                        ortcrypt_error *err);

/* A clone of `base` (or new options), safe to use: see oc_options_guard. Released by the caller. */
ortcrypt_status oc_options_new(OrtSessionOptions **out, const ortcrypt_runtime *runtime, const OrtSessionOptions *base,
                               ortcrypt_error *err);
/*
 * Refuses session configuration entries that make ORT or an EP write plaintext to a file, and switches off the two settings
 * that cannot be read back (optimized model file, profiling).
 */
ortcrypt_status oc_options_guard(const ortcrypt_runtime *runtime, OrtSessionOptions *options, ortcrypt_error *err);
ortcrypt_status oc_options_append_ep(ortcrypt_runtime *runtime, OrtSessionOptions *options, const OrtEpDevice *device,
                                     const char *const *keys, const char *const *values, size_t count,
                                     ortcrypt_error *err);

/*
 * ids.c: names callbacks of ours in the options by id, where the EP's library takes ids. *out stays NULL elsewhere; it ends, and the
 * id with it, before `state` does.
 */
ortcrypt_status oc_callbacks_name(oc_registration **out, ortcrypt_runtime *runtime, const char *ep, OrtSessionOptions *options,
                                  OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write, void *state, ortcrypt_error *err);
/* Forgets an id that the options were given for another load. */
ortcrypt_status oc_callbacks_clear(const ortcrypt_runtime *runtime, OrtSessionOptions *options, ortcrypt_error *err);

/* The state of a load; also the state of the read callback. */
struct ortcrypt_inputs {
    ortcrypt_runtime *runtime; /* held */
    ortcrypt_bundle *bundle;   /* held */
    const oc_variant *variant;
    oc_registration *registration; /* of the read callback, where the EP takes it by id */
    oc_supply *supply;
    oc_model_bytes model; /* array route */
    oc_region source; /* of a weightless variant: ORT and the EP use it for as long as the session lives */
    size_t source_len;
    oc_load_ways ways;
    oc_load_plan plan;
    pthread_mutex_t lock;  /* guards `failed` and `failure`: the callback runs on the EP's threads */
    bool failed;
    ortcrypt_error failure; /* of the first read callback that failed: ORT would keep its words only */
};

typedef struct oc_load_wish {
    bool own;       /* for a session of the application's, so that ORT gets no buffer it would use after it was created */
    bool lazy;
    const char *ep; /* NULL: the CPU EP */
} oc_load_wish;

/* Scans and checks the variant, gives `options` what they must be given, and sets the read callback. The model is not read. */
ortcrypt_status oc_inputs_new(ortcrypt_inputs **out, ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                              const oc_variant *variant, const oc_load_wish *wish, OrtSessionOptions *options,
                              const ortcrypt_monitor *monitor, ortcrypt_error *err);
ortcrypt_status oc_inputs_read_model(ortcrypt_inputs *inputs, const ortcrypt_monitor *monitor, ortcrypt_error *err);
/*
 * ORT has created the session, or failed to: memory filled when touched is checked whole (unless lazy, or it failed), and what ORT
 * needs no more is wiped.
 * When it was not authentic that is the reason for whatever ORT made of it, and no session made from it may be used.
 */
ortcrypt_status oc_inputs_settle(ortcrypt_inputs *inputs, bool created, ortcrypt_error *err);

/* load.c: decides (inputs->ways) and names the files to the options; what the plan says of the model and of the other parts. */
ortcrypt_status oc_load_files(ortcrypt_inputs *inputs, const oc_load_wish *wish, OrtSessionOptions *options,
                              const ortcrypt_monitor *monitor, ortcrypt_error *err);
oc_load_facts oc_load_facts_of(const oc_supply *supply, const ortcrypt_runtime *runtime, const char *ep); /* without wishes */
ortcrypt_status oc_load_give(oc_supply *supply, const oc_load_ways *ways, const ortcrypt_runtime *runtime, OrtSessionOptions *options,
                             const ortcrypt_monitor *monitor, ortcrypt_error *err); /* loads the files that way and names them */
ortcrypt_status oc_load_plan_model(ortcrypt_inputs *inputs, uint64_t len, ortcrypt_error *err);
ortcrypt_status oc_load_plan_parts(ortcrypt_inputs *inputs, ortcrypt_error *err);
/* What ortcrypt_read_named does, on inputs that are open. */
OrtStatus *oc_inputs_read_named(ortcrypt_inputs *inputs, const char *name, OrtAllocator *allocator, void **buffer, size_t *data_size);
/* ORTCRYPT_OK, or the first failure of a read callback. */
ortcrypt_status oc_inputs_failure(ortcrypt_inputs *inputs, ortcrypt_error *err);

/* /proc is mounted: a pipe can be named as a path. */
bool oc_flow_has_proc(void);

#endif
