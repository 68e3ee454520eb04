/*
 * ortcrypt/error.h: what every call returns.
 *
 * Call order: ORTCRYPT_ERROR_INIT -> any call that takes an ortcrypt_error * -> read it when the status is not ORTCRYPT_OK.
 * Threads: an ortcrypt_error belongs to the caller; the library keeps none of its own (it runs on ORT's threads).
 */
#ifndef ORTCRYPT_ERROR_H
#define ORTCRYPT_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ORTCRYPT_API __attribute__((visibility("default")))
#define ORTCRYPT_MUST_USE __attribute__((warn_unused_result))
#else
#define ORTCRYPT_API
#define ORTCRYPT_MUST_USE
#endif

/* Each code answers "what can the caller do". The command line turns them into exit codes (ortcrypt_status_exit_code). */
typedef enum ortcrypt_status {
    ORTCRYPT_OK = 0,
    ORTCRYPT_E_INVALID = 1,       /* the call itself is wrong (argument, order, option): fix the caller; exit 2 */
    ORTCRYPT_E_INPUT = 2,         /* a file or tensor that was to be processed is not what it must be: fix the input; exit 1 */
    ORTCRYPT_E_NOT_FOUND = 3,     /* no variant, asset or device of that name: choose another; exit 1 */
    ORTCRYPT_E_EXISTS = 4,        /* the output is there already and is never overwritten: choose another; exit 6 */
    ORTCRYPT_E_FORMAT = 5,        /* not a bundle, not a key file, or malformed where nothing is authenticated yet; exit 5 */
    ORTCRYPT_E_UNSUPPORTED = 6,   /* newer format, runtime, recipient type, or no proven route: use another version; exit 5 */
    ORTCRYPT_E_NO_KEY = 7,        /* no identity opens the key file: supply the right one; exit 4 */
    ORTCRYPT_E_NOT_AUTHENTIC = 8, /* altered, cut, mixed or rolled back: get the bundle again; exit 3 */
    ORTCRYPT_E_IO = 9,            /* the operating system refused (sys_errno says how): disk, rights, path; exit 6 */
    ORTCRYPT_E_NO_MEMORY = 10,    /* memory or another resource ran out; exit 1 */
    ORTCRYPT_E_LIMIT = 11,        /* a stated limit is exceeded: raise it or refuse the input; exit 1 */
    ORTCRYPT_E_BUSY = 12,         /* still in use, or another process writes: close first, or try later; exit 1 */
    ORTCRYPT_E_ORT = 13,          /* ONNX Runtime or an execution provider said no; its words are in the message; exit 1 */
    ORTCRYPT_E_CANCELLED = 14     /* the caller's monitor asked to stop; exit 1 */
} ortcrypt_status;

#define ORTCRYPT_NO_OFFSET UINT64_MAX

/*
 * Filled by the call that returned a status other than ORTCRYPT_OK; left alone on success.
 * No field ever holds a key, a passphrase or a plaintext byte.
 */
typedef struct ortcrypt_error {
    ortcrypt_status status;
    int sys_errno;      /* errno of the system call, or 0 */
    uint64_t offset;    /* byte offset in the file that the sentence is about, or ORTCRYPT_NO_OFFSET */
    char asset[33];     /* asset id in lower hex with a final NUL, or "" */
    char message[1024]; /* one sentence, UTF-8, no final newline */
    char hint[512];     /* how to go on, or "" */
} ortcrypt_error;

#define ORTCRYPT_ERROR_INIT {ORTCRYPT_OK, 0, ORTCRYPT_NO_OFFSET, "", "", ""}

/* "ORTCRYPT_E_IO" for ORTCRYPT_E_IO; "unknown status" outside the list. A constant; never NULL. */
ORTCRYPT_API const char *ortcrypt_status_name(ortcrypt_status status);

/* The command line's exit code for a status: 0 done, 1 other, 2 usage, 3 not authentic, 4 no usable key, 5 unsupported, 6 I/O. */
ORTCRYPT_API int ortcrypt_status_exit_code(ortcrypt_status status);

/* "0.1.0". A constant. */
ORTCRYPT_API const char *ortcrypt_version(void);

/* Frees a string or buffer that a call of this library returned (after wiping `len` bytes; 0 for strings). NULL is allowed. */
ORTCRYPT_API void ortcrypt_free(void *memory, uint64_t len);

/*
 * What a long call tells its caller. All members may be NULL; called from the thread that made the call, never concurrently.
 * notice:   one sentence worth showing (a name that became another file name, a fallback that was taken).
 * progress: `step` is a constant verb phrase ("encrypting"), `done` and `total` are bytes (total 0: not known).
 *           A non-zero result cancels the call: it undoes what it made and returns ORTCRYPT_E_CANCELLED.
 */
typedef struct ortcrypt_monitor {
    void (*notice)(void *state, const char *sentence);
    int (*progress)(void *state, const char *step, uint64_t done, uint64_t total);
    void *state;
} ortcrypt_monitor;

#ifdef __cplusplus
}
#endif
#endif
