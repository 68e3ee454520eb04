/*
 * ortcrypt-probe: drives an execution provider with a model that is no secret, unable to write a file, and reports what it saw. Started by
 * libortcrypt, with a job on descriptor 3 (runtime/probe.h); of no use by hand. An EP that crashes takes this program down, not the caller.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conform/drive.h"
#include "os/watch.h"

#define JOB_MAX (256 * 1024)

static bool read_job(char *job)
{
    size_t len = 0;

    while (len < JOB_MAX - 1) {
        const ssize_t got = read(OC_WATCH_INPUT, job + len, JOB_MAX - 1 - len);
        if (got < 0) {
            return false;
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    job[len] = '\0';
    return len != 0;
}

int main(void)
{
    static char job[JOB_MAX];
    oc_drive drive;

    if (!read_job(job)) {
        (void)fprintf(stderr, "ortcrypt-probe is started by libortcrypt and the command ortcrypt; it does nothing by itself\n");
        return 2;
    }
    if (!oc_drive_begin(&drive, job, OC_WATCH_OUTPUT)) {
        return 2;
    }
    if (!json_is_false(json_object_get(drive.job, "watched")) && !oc_watch_enter()) {
        return OC_WATCH_EXIT_UNHELD;
    }
    oc_drive_run(&drive);
    oc_drive_end(&drive);
    _exit(0); /* what ORT and EPs do at exit is not what is looked at */
}
