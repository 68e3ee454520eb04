/* os/sandbox.c: the public functions: the store thread first, then inherited descriptors, then the domain and the filter. */
#include "ortcrypt/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/landlock.h"
#include "os/outside.h"
#include "os/seccomp.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool kept(const ortcrypt_sandbox_options *options, int fd)
{
    for (size_t i = 0; i < options->keep_count; i++) {
        if (options->keep[i] == fd) {
            return true;
        }
    }
    return false;
}

/* One after the other, as the kernel lists them. */
static ortcrypt_status close_listed(const ortcrypt_sandbox_options *options, ortcrypt_error *err)
{
    DIR *const listing = opendir("/proc/self/fd");
    const struct dirent *entry;

    if (listing == NULL) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "inherited descriptors cannot be closed: /proc/self/fd");
    }
    while ((entry = readdir(listing)) != NULL) {
        const int fd = atoi(entry->d_name); /* "." and ".." give 0 */
        if (fd > STDERR_FILENO && fd != dirfd(listing) && !kept(options, fd)) {
            (void)close(fd);
        }
    }
    closedir(listing);
    return ORTCRYPT_OK;
}

/* The gaps between those that are kept; the kernel needs no list of what is open. */
static ortcrypt_status close_others(const ortcrypt_sandbox_options *options, ortcrypt_error *err)
{
    unsigned first = STDERR_FILENO + 1;

    for (;;) {
        unsigned next = ~0u; /* the lowest kept one from `first` on */
        for (size_t i = 0; i < options->keep_count; i++) {
            const unsigned fd = (unsigned)options->keep[i]; /* a negative one is the greatest: no descriptor */
            next = fd >= first && fd < next ? fd : next;
        }
        if (next > first && syscall(SYS_close_range, first, next == ~0u ? ~0u : next - 1, 0u) != 0) {
            return close_listed(options, err);
        }
        if (next > (unsigned)INT32_MAX) {
            return ORTCRYPT_OK;
        }
        first = next + 1;
    }
}

/* Threads of this process but for the calling one and `ours` more. */
static size_t count_other_threads(size_t ours)
{
    DIR *const listing = opendir("/proc/self/task");
    const struct dirent *entry;
    size_t count = 0;

    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count > 1 + ours ? count - 1 - ours : 0;
}

static void add(ortcrypt_sandbox_report *report, const char *what)
{
    const size_t used = strlen(report->missing);

    (void)snprintf(report->missing + used, sizeof report->missing - used, "%s%s", used == 0 ? "" : "; ", what);
}

static void name_missing(ortcrypt_sandbox_report *report)
{
    report->missing[0] = '\0';
    if (report->landlock_abi == 0) {
        add(report, "files can be written (this kernel has no Landlock)");
    }
    if (!report->system_calls) {
        add(report, "sockets can be opened, and files' attributes changed (no seccomp)");
    }
    if (report->other_threads != 0) {
        add(report, "threads that ran before are not held");
    }
    if (report->landlock_abi != 0 && report->landlock_abi < 3) {
        add(report, "files can be emptied (that takes Linux 6.2)");
    }
    if (report->landlock_abi != 0 && !report->signals) {
        add(report, "signals can be sent to other processes (that takes Linux 6.15)");
    }
}

static ortcrypt_status check_required(ortcrypt_error *err)
{
    const char *const lacking = oc_landlock_abi() == 0 ? "this kernel has no Landlock, or it is switched off"
                                : !oc_seccomp_available() ? "system calls cannot be filtered here (seccomp)"
                                                          : NULL;
    if (lacking != NULL) {
        (void)oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the sandbox is required and cannot be made: %s", lacking);
        oc_hint(err, "Linux 5.13 or newer, with landlock in the list that the kernel's lsm= parameter gives");
        return ORTCRYPT_E_UNSUPPORTED;
    }
    const size_t others = count_other_threads(oc_outside_running() ? 1 : 0);
    return others == 0 ? ORTCRYPT_OK
                       : oc_fail(err, ORTCRYPT_E_UNSUPPORTED,
                                 "the sandbox is required and would not hold all of the process: %zu other thread%s running already", others, others == 1 ? " is" : "s are");
}

static ortcrypt_status restrict_thread(const ortcrypt_sandbox_options *options, ortcrypt_sandbox_report *report, ortcrypt_error *err)
{
    oc_landlock_held held = {0};
    ortcrypt_error ignored = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = oc_landlock_abi() == 0 && !options->require
                             ? ORTCRYPT_OK
                             : oc_landlock_restrict(options->devices, options->device_count, &held, err);

    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = oc_seccomp_restrict(held.tcp, options->require ? err : &ignored);
    if (st != ORTCRYPT_OK && options->require) {
        return st;
    }
    report->landlock_abi = held.abi;
    report->files = held.files;
    report->signals = held.signals;
    report->system_calls = st == ORTCRYPT_OK;
    report->network = st == ORTCRYPT_OK;
    return ORTCRYPT_OK;
}

ortcrypt_status ortcrypt_sandbox_enter(const ortcrypt_sandbox_options *options, ortcrypt_sandbox_report *report, ortcrypt_error *err)
{
    static const ortcrypt_sandbox_options defaults = {.struct_size = sizeof defaults};
    const ortcrypt_sandbox_options *const chosen = options != NULL ? options : &defaults;
    ortcrypt_sandbox_report said = {0};

    if (chosen->struct_size != sizeof *chosen || (chosen->keep == NULL && chosen->keep_count != 0) ||
        (chosen->devices == NULL && chosen->device_count != 0)) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_sandbox_enter needs options with struct_size set");
    }
    ortcrypt_status st = chosen->require ? check_required(err) : ORTCRYPT_OK;
    if (st == ORTCRYPT_OK) {
        st = oc_outside_start(err);
    }
    if (st == ORTCRYPT_OK && chosen->close_descriptors) {
        st = close_others(chosen, err);
    }
    if (st == ORTCRYPT_OK) {
        said.other_threads = count_other_threads(1);
        st = restrict_thread(chosen, &said, err);
    }
    if (st == ORTCRYPT_OK && report != NULL) {
        name_missing(&said);
        *report = said;
    }
    return st;
}

ortcrypt_status ortcrypt_sandbox_call(ortcrypt_status (*fn)(void *state, ortcrypt_error *err), void *state, ortcrypt_error *err)
{
    return fn != NULL ? oc_outside_apart(fn, state, err) : oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_sandbox_call needs a function");
}
