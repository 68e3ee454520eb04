/*
 * ep_context/internal.h: what the files of this folder share. ORT headers and libc only.
 */
#ifndef OC_EP_CONTEXT_INTERNAL_H
#define OC_EP_CONTEXT_INTERNAL_H

#include "ortcrypt/ep_context.h"

/* Minor versions of ORT 1.x. */
enum { OC_EP_FIRST_SUPPORTED = 23, OC_EP_FIRST_EXPERIMENTAL = 28, OC_EP_FIRST_STABLE = 31 };

struct ortcrypt_ep_context {
    const OrtApi *api;
    unsigned minor; /* of the runtime */
    ortcrypt_ep_context_api six;
    OrtEpContextConfig *config; /* NULL in the first era */
    OrtReadNamedBufferFunc read;
    void *read_state; /* the application's */
    OrtWriteNamedBufferFunc write;
    void *write_state;
    char *context_file_path; /* session option ep.context_file_path, or NULL */
};

/* "1.30.0" or "1.31.0-dev" -> 1, 30. */
bool oc_ep_version_parse(const char *text, unsigned *major, unsigned *minor);

/* A new OrtStatus with one sentence (cut at 1023 bytes). */
OrtStatus *oc_ep_status(const OrtApi *api, OrtErrorCode code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Files. `folder` NULL: `name` is any path. Otherwise `name` is relative to it and is resolved below it.
 * Names: 1 to OC_EP_NAME_MAX bytes of UTF-8; else ORT_INVALID_ARGUMENT.
 */
enum { OC_EP_NAME_MAX = 4096 };
OrtStatus *oc_ep_file_read(const OrtApi *api, const char *folder, const char *name, OrtAllocator *allocator,
                           size_t max_len, ortcrypt_ep_context_data *out);
OrtStatus *oc_ep_file_write(const OrtApi *api, const char *folder, const char *name, const void *data, size_t len);

/* open(2) of `name`, below `folder` unless that is NULL. -1 and errno; EXDEV: it leaves the folder; ENOSYS: no openat2. */
int oc_ep_open(const char *folder, const char *name, int flags);
/* NULL, or why `name` cannot be a file name (a sentence part that needs no name). `below`: it is relative to a folder. */
const char *oc_ep_name_flaw(const char *name, bool below);

#endif
