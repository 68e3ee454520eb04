/* faults/trace.h: runs a command under ptrace and shows every system call of all its threads and children. */
#ifndef FAULTS_TRACE_H
#define FAULTS_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct trace_call {
    pid_t process; /* the command itself */
    pid_t thread;  /* that makes the call, stopped meanwhile */
    bool entry;    /* before the call; else after it */
    uint64_t number;
    uint64_t args[6]; /* of the entry, kept for the exit */
    int64_t result;   /* exit: what the call gave back, -errno on an error */
} trace_call;

typedef void (*trace_fn)(void *state, const trace_call *call);

/*
 * Starts argv[0] and calls `fn` at the entry and at the exit of every system call after its execve. Returns the command's
 * exit code, 128 + n when signal n ended it. What goes wrong here itself ends this program with code 2.
 */
int trace_run(char *const argv[], trace_fn fn, void *state);

/* "openat", "fsync", ... for the calls that change files, folders or locks (on any kind of descriptor); else NULL. */
const char *trace_changing(uint64_t number);

#endif
