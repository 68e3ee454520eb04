/*
 * os/watch.h: running a program that cannot open a file for writing, and hearing which ones it tried.
 *
 * Call order: parent: oc_watch_run -> read the result -> oc_watch_result_free; the program, first thing in main: oc_watch_enter -> read
 * OC_WATCH_INPUT -> ... -> write OC_WATCH_OUTPUT -> exit. It is a program of ours that was started for this, never a fork: a
 * process with an ONNX Runtime in it has threads and locks that a fork breaks.
 *
 * How: a seccomp filter whose notifications the parent answers (Linux 5.9 or newer). The flags are looked at in the filter, so that opening
 * for reading costs nothing. Character devices stay usable: the parent opens them and hands the descriptor over. Every other try (but for a thread's name) is
 * refused with EACCES and told; Landlock stands behind it for what goes past paths. Where notifications are missing, Landlock refuses
 * alone, and tries cannot be told. This stops careless code; a hostile one is not what it is for.
 * Threads: oc_watch_run may run on several at once.
 */
#ifndef OC_OS_WATCH_H
#define OC_OS_WATCH_H

#include "base/bytes.h"

/* Descriptors of the program. */
#define OC_WATCH_INPUT 3
#define OC_WATCH_OUTPUT 4
#define OC_WATCH_SOCKET 5

#define OC_WATCH_EXIT_UNHELD 121 /* what a program exits with when oc_watch_enter says false */

#define OC_WATCH_TRIES_MAX 32 /* told; the rest is only counted */

typedef enum oc_watch_level {
    OC_WATCH_NOTHING,  /* this kernel has neither */
    OC_WATCH_LANDLOCK, /* refused, not told */
    OC_WATCH_SECCOMP   /* refused and told */
} oc_watch_level;

typedef enum oc_watch_end { OC_WATCH_EXITED, OC_WATCH_SIGNALLED, OC_WATCH_TIMED_OUT } oc_watch_end;

typedef struct oc_watch_options {
    const char *program;     /* path */
    const char *const *args; /* after the program's name, ended by NULL; NULL: none */
    const char *const *env;  /* the whole environment, ended by NULL */
    const char *folder;      /* working folder; NULL: the caller's */
    oc_span input;
    size_t output_max; /* bytes; more ends the program */
    unsigned timeout_ms;
    bool writes_allowed; /* it may write what it likes: only bounded */
} oc_watch_options;

/* One try: what the program asked for, and the path made absolute as well as it can be. */
typedef struct oc_watch_try {
    const char *what; /* "open", "rename", ...; constant */
    char *path;
} oc_watch_try;

typedef struct oc_watch_result {
    oc_watch_level level;
    oc_watch_end end;
    int code; /* exit code, or the signal; -1: the host takes exit codes away (it ignores SIGCHLD, or waits for any child) */
    oc_buf output;
    oc_watch_try tries[OC_WATCH_TRIES_MAX];
    size_t try_count; /* all of them; the first OC_WATCH_TRIES_MAX are in `tries` */
} oc_watch_result;

/*
 * Runs the program to its end. A program that crashes, hangs or exits with something else than 0 is a result, no error. Its standard
 * streams are /dev/null and other descriptors closed. ORTCRYPT_E_UNSUPPORTED when the kernel cannot watch (also said by `level`).
 */
ortcrypt_status oc_watch_run(oc_watch_result *result, const oc_watch_options *options, ortcrypt_error *err);
void oc_watch_result_free(oc_watch_result *result);

/*
 * In the program: gives up writing files, for this process and those it starts, and tells the parent. Standard streams and the
 * descriptors above stay. Single-threaded. False when the kernel refuses everything: the program must exit.
 */
bool oc_watch_enter(void);

#endif
