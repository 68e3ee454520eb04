/* flow/plan.h: how each asset of a variant reached ONNX Runtime; kept by a session and told by ortcrypt_session_plan. */
#ifndef OC_FLOW_PLAN_H
#define OC_FLOW_PLAN_H

#include "format/manifest.h"

typedef struct oc_load_entry {
    oc_role role;
    const char *name;  /* the bundle's */
    uint64_t len;      /* bytes */
    const char *route; /* constant */
    const char *why;   /* constant */
    bool resident;     /* our copy stays in memory while the session lives */
    const char *sharing; /* constant, or NULL: nothing to say */
} oc_load_entry;

typedef struct oc_load_plan {
    oc_load_entry *entries;
    size_t count;
    uint64_t peak_len; /* bytes that loading was expected to need at most at a time; 0: nobody said */
} oc_load_plan;

ortcrypt_status oc_load_plan_add(oc_load_plan *plan, oc_load_entry entry, ortcrypt_error *err);
/* {"variant", "kind", "from", "ep", "expected_peak", "assets": [{"role","name","bytes","route","why","resident","sharing"}]} in *json (ortcrypt_free). */
ortcrypt_status oc_load_plan_print(const oc_load_plan *plan, const oc_variant *variant, const char *from, const char *ep,
                                   char **json, ortcrypt_error *err);
void oc_load_plan_free(oc_load_plan *plan);

#endif
