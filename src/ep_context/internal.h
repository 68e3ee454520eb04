/*
 * ep_context/internal.h: what the files of this folder share. ORT headers and libc only.
 */
#ifndef OC_EP_CONTEXT_INTERNAL_H
#define OC_EP_CONTEXT_INTERNAL_H

#include "ortcrypt/ep_context.h"

/* Minor versions of ORT 1.x. */
enum { OC_EP_FIRST_EXPERIMENTAL = 28, OC_EP_FIRST_STABLE = 31 };

/* "1.30.0" or "1.31.0-dev" -> 1, 30. */
bool oc_ep_version_parse(const char *text, unsigned *major, unsigned *minor);

/* A new OrtStatus with one sentence (cut at 1023 bytes). */
OrtStatus *oc_ep_status(const OrtApi *api, OrtErrorCode code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
