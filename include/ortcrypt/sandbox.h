/*
 * ortcrypt/sandbox.h: threads that can write no file, for what runs an execution provider.
 *
 * Call order: sandbox_enter (before ONNX Runtime and EP libraries are loaded) -> everything else -> sandbox_call for files of your own.
 * It stops careless execution providers, not hostile ones: they share the process with a thread that may write. docs/threat-model.md.
 * Threads: enter holds the calling thread and those that it, and they, start afterwards; call may be used from any thread.
 */
#ifndef ORTCRYPT_SANDBOX_H
#define ORTCRYPT_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "ortcrypt/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero everything and set struct_size = sizeof(the struct); NULL in place of options means all defaults. */
typedef struct ortcrypt_sandbox_options {
    size_t struct_size;
    bool require; /* ORTCRYPT_E_UNSUPPORTED, and nothing changed, when files would not be held (no Landlock, no seccomp), or when another
                     thread runs already that would stay outside */
    bool close_descriptors; /* closes every descriptor above 2 but for keep[0..keep_count-1]: a file that is open for writing stays so
                               in the sandbox. Call it before anything of the process relies on one */
    const int *keep;
    size_t keep_count;
    const char *const *devices; /* paths of more character devices that stay usable (those of known GPUs and NPUs do) */
    size_t device_count;
} ortcrypt_sandbox_options;

/* What the kernel holds from now on. */
typedef struct ortcrypt_sandbox_report {
    int landlock_abi;     /* that was used, 0: none */
    bool files;           /* no file, folder or link can be made, written, renamed or removed */
    bool network;         /* no connection, no datagram, no Unix socket */
    bool signals;         /* no signal to processes outside */
    bool system_calls;    /* extended attributes, modes, times, io_uring and the like are refused (seccomp) */
    size_t other_threads; /* threads that ran before; they are not held */
    char missing[256];    /* what is not held, as a part of a sentence; "" when all is */
} ortcrypt_sandbox_report;

/*
 * Starts a thread that stays outside and does all writing of this library (bundles, caches, machine keys, decrypted files), then
 * restricts the calling thread for ever. Reading, memory, standard streams and character devices are as before. Where the kernel can do
 * less, what it can is done, and `report` (may be NULL; written on success) says what is missing. Also sets PR_SET_NO_NEW_PRIVS.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_sandbox_enter(const ortcrypt_sandbox_options *options,
                                                                      ortcrypt_sandbox_report *report, ortcrypt_error *err);

/*
 * Runs fn(state, err) on a thread outside of the sandbox, waits for it and returns what it returned: for files that the application
 * itself writes. All signals but those of faults are blocked there. Without a sandbox fn is called directly.
 */
ORTCRYPT_API ORTCRYPT_MUST_USE ortcrypt_status ortcrypt_sandbox_call(ortcrypt_status (*fn)(void *state, ortcrypt_error *err),
                                                                     void *state, ortcrypt_error *err);

#ifdef __cplusplus
}
#endif
#endif
