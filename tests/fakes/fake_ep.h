/* fakes/fake_ep.h: an EP library of 1.29 without any device. A test calls its factory as ONNX Runtime would. */
#ifndef FAKE_EP_H
#define FAKE_EP_H

#include <stdatomic.h>

#include "ortcrypt/ep_context.h"

typedef struct fake_ep {
    OrtEp base;
    OrtWriteNamedBufferFunc write;
    void *write_state;
} fake_ep;

typedef struct fake_ep_control {
    bool refuse;       /* CreateEpFactories answers an error, after it made the factory */
    bool nothing;      /* ... or makes none */
    unsigned asks;     /* the newest OrtApi it knows; 0: 29 */
    unsigned version;  /* of its OrtEp; 0: 29 */
    char told[32];     /* the version it was told */
    size_t factories;  /* alive */
    atomic_size_t eps; /* alive; all of them are one OrtEp: an address that is free is used again at once */
    OrtReadNamedBufferFunc read; /* what the last CreateEp got */
    OrtWriteNamedBufferFunc write;
    void *read_state;
    void *write_state;
    bool many; /* each EP is one of its own, a fake_ep, and nothing above is written but the count */
    void (*in_create)(OrtEpFactory *factory);  /* called once, before CreateEp does anything */
    void (*in_release)(OrtEpFactory *factory); /* called once, after ReleaseEp released */
} fake_ep_control;

typedef fake_ep_control *(*fake_ep_control_fn)(void); /* symbol "fake_ep_control_get" */

#endif
