/* faults/trace.c: the ptrace loop. Linux 5.3 (PTRACE_GET_SYSCALL_INFO); knows no register of any machine. */
#include "faults/trace.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 256, OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                                    PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL };

static trace_call threads[THREADS_MAX];
static unsigned thread_count;

static void die(const char *what)
{
    fprintf(stderr, "trace: %s: %s\n", what, strerror(errno));
    exit(2);
}

const char *trace_changing(uint64_t number)
{
    static const struct {
        uint64_t number;
        const char *name;
    } table[] = {
#ifdef SYS_open
        {SYS_open, "open"}, {SYS_creat, "creat"}, {SYS_mkdir, "mkdir"}, {SYS_rmdir, "rmdir"}, {SYS_rename, "rename"},
        {SYS_unlink, "unlink"}, {SYS_link, "link"}, {SYS_symlink, "symlink"},
#endif
#ifdef SYS_renameat
        {SYS_renameat, "renameat"},
#endif
        {SYS_openat, "openat"}, {SYS_close, "close"}, {SYS_write, "write"}, {SYS_pwrite64, "pwrite64"}, {SYS_writev, "writev"},
        {SYS_pwritev, "pwritev"}, {SYS_pwritev2, "pwritev2"}, {SYS_ftruncate, "ftruncate"}, {SYS_fallocate, "fallocate"},
        {SYS_copy_file_range, "copy_file_range"}, {SYS_sendfile, "sendfile"}, {SYS_fsync, "fsync"},
        {SYS_fdatasync, "fdatasync"}, {SYS_sync_file_range, "sync_file_range"}, {SYS_mkdirat, "mkdirat"},
        {SYS_renameat2, "renameat2"}, {SYS_unlinkat, "unlinkat"}, {SYS_linkat, "linkat"}, {SYS_symlinkat, "symlinkat"},
        {SYS_flock, "flock"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].number == number) {
            return table[i].name;
        }
    }
    return NULL;
}

/* A thread's record; `fresh`: it was not known, so its first stop is the one that ptrace makes. */
static trace_call *record_of(pid_t process, pid_t thread, bool *fresh)
{
    *fresh = false;
    for (unsigned i = 0; i < thread_count; i++) {
        if (threads[i].thread == thread) {
            return &threads[i];
        }
    }
    if (thread_count == THREADS_MAX) {
        errno = E2BIG;
        die("threads");
    }
    *fresh = true;
    threads[thread_count] = (trace_call){.process = process, .thread = thread};
    return &threads[thread_count++];
}

static void forget(pid_t thread)
{
    for (unsigned i = 0; i < thread_count; i++) {
        if (threads[i].thread == thread) {
            threads[i] = threads[--thread_count];
            return;
        }
    }
}

static void show(trace_call *call, trace_fn fn, void *state)
{
    struct __ptrace_syscall_info info; /* glibc's name for the kernel's ptrace_syscall_info */
    if (ptrace(PTRACE_GET_SYSCALL_INFO, call->thread, sizeof info, &info) <= 0) {
        return; /* killed between its stop and now */
    }
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        call->entry = true;
        call->number = info.entry.nr;
        for (unsigned i = 0; i < 6; i++) {
            call->args[i] = info.entry.args[i];
        }
        fn(state, call);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && call->entry) {
        call->entry = false;
        call->result = info.exit.rval;
        fn(state, call);
    }
}

static pid_t start(char *const argv[])
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise(SIGSTOP) == 0) {
            execvp(argv[0], argv);
        }
        fprintf(stderr, "trace: %s: %s\n", argv[0], strerror(errno));
        _exit(2);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(uintptr_t)OPTIONS) != 0 || ptrace(PTRACE_SYSCALL, child, NULL, NULL) != 0) {
        die("starting the command");
    }
    return child;
}

int trace_run(char *const argv[], trace_fn fn, void *state)
{
    const pid_t process = start(argv);
    bool executing = false; /* after execve */
    int code = 2;
    int status = 0;
    pid_t thread;
    while ((thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        bool fresh = false;
        if (thread <= 0) {
            continue;
        }
        if (!WIFSTOPPED(status)) {
            forget(thread);
            if (thread == process) {
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
            continue;
        }
        trace_call *const call = record_of(process, thread, &fresh);
        int signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            if (executing) {
                show(call, fn, state);
            }
            signal = 0;
        } else if (status >> 16 != 0) {
            executing = executing || status >> 16 == PTRACE_EVENT_EXEC;
            signal = 0;
        } else if (signal == SIGSTOP && fresh) {
            signal = 0;
        }
        (void)ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(uintptr_t)signal); /* ESRCH: it was killed meanwhile */
    }
    return code;
}
