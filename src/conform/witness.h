/*
 * conform/witness.h: an EP library that stands between ONNX Runtime and the EP that is checked, and counts what the EP does with what it is
 * given. ortcrypt-probe loads it, says which library it stands for, and registers it in that library's place.
 *
 * Call order: ortcrypt_witness() -> set `library` -> RegisterExecutionProviderLibrary -> ... -> ReleaseEnv -> read the counts.
 * One registration at a time. Counts are atomic; `buffers` is written by the read callback, one at a time.
 */
#ifndef OC_CONFORM_WITNESS_H
#define OC_CONFORM_WITNESS_H

#include <stdatomic.h>

#include <onnxruntime_c_api.h>

#define OC_WITNESS_LIBRARY "libortcrypt_witness.so"
#define OC_WITNESS_SYMBOL "ortcrypt_witness"
#define OC_WITNESS_BUFFERS 64

typedef struct oc_witness {
    const char *library;              /* of the EP; borrowed */
    const OrtAllocator *allocator;    /* the one that EPs get for ORT's default one */
    atomic_uint configs_got;          /* OrtEpContextConfig that the EP asked for */
    atomic_uint configs_released;
    OrtAllocator *own; /* an allocator of the EP's own, whose Free is free_own now; NULL: none was given */
    void(ORT_API_CALL *free_own)(OrtAllocator *self, void *memory);
    void(ORT_API_CALL *own_free)(OrtAllocator *self, void *memory); /* what it was */
    atomic_uint buffers_given;
    atomic_uint buffers_freed;        /* of `buffers`, through the allocator they came from */
    _Atomic(void *) buffers[OC_WITNESS_BUFFERS]; /* memory the read callback took from an allocator */
} oc_witness;

typedef oc_witness *(*oc_witness_function)(void);

#endif
