/*
 * tests/bridge/fake_ep.h: an EP library that takes no node, and tells what it was given. FAKE_EP in the environment names its fault:
 *   fails (no factories), none, newer (asks for OrtApi 31), newer_factory, newer_ep, const (its factory is read-only), same (one factory
 *   for every registration), missing (calls a void function that 1.24 does not have), ep_fails, two (factories), takes (one node, which it then does not compile)
 */
#ifndef TEST_BRIDGE_FAKE_EP_H
#define TEST_BRIDGE_FAKE_EP_H

#include "ortcrypt/ep_context.h"

typedef struct fake_ep_seen {
    char version[32];
    uint32_t api_version; /* asked for */
    unsigned factories;   /* alive */
    unsigned eps;         /* alive */
    unsigned created;     /* EPs, ever */
    OrtReadNamedBufferFunc read; /* of the EP created last */
    void *read_state;
    OrtWriteNamedBufferFunc write;
    void *write_state;
} fake_ep_seen;

/* Exported by the library: fake_ep_look. */
typedef fake_ep_seen *(*fake_ep_look_function)(void);

#endif
