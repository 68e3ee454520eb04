/*
 * conform/check.h: whether an execution provider keeps the contract of the EPContext callbacks. What `ortcrypt check-ep` does; the one
 * header of this folder that the command line sees.
 *
 * Every run of the EP is a program of its own (ortcrypt-probe), with four models that are no secret; this process loads neither ONNX Runtime
 * nor the EP.
 */
#ifndef OC_CONFORM_CHECK_H
#define OC_CONFORM_CHECK_H

#include <jansson.h>

#include "ortcrypt/error.h"

typedef struct oc_check_options {
    const char *ort;     /* ONNX Runtime's library; NULL: libonnxruntime.so */
    const char *library; /* the EP's */
    const char *ep;      /* the name it is registered under, which some take for their own; NULL: that of a known library, else "check_ep" */
    const char *const *keys; /* options for the EP */
    const char *const *values;
    size_t count;
    unsigned timeout_ms; /* for one run; 0: 120000 */
    const ortcrypt_monitor *monitor;
} oc_check_options;

/*
 * *out: {library, ep, ep_version, runtime, models: [{name, what, verdict ("whole", "part", "none", "small", "error"), detail}],
 * rows: [{name, what, verdict ("holds", "fails", "unseen"), detail}], holds}. An error when nothing could be found out.
 */
ortcrypt_status oc_check_ep(json_t **out, const oc_check_options *options, ortcrypt_error *err);

#endif
