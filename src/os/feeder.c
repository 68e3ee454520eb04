/*
 * os/feeder.c: a pipe that a thread feeds, so that a reader that insists on a path gets bytes that are in no file.
 * The feeder owns both ends, the thread and an eventfd that ends it. The reader opens the path anew and has its own descriptor.
 * After a failure the reader sees an early end of file: only oc_feeder_join tells whether all bytes were fed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/os.h"
#include "os/threads.h"

#define PIPE_LEN (1024 * 1024)

struct oc_feeder {
    int read_fd;
    int write_fd; /* the thread closes it: the reader's end of file */
    int stop_fd;
    pthread_t thread;
    oc_feed_fn fn;
    void *state;
    ortcrypt_status status; /* the thread's until it is joined */
    ortcrypt_error err;
    char path[32];
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void feeder_free(oc_feeder *feeder)
{
    close_fd(&feeder->read_fd);
    close_fd(&feeder->write_fd);
    close_fd(&feeder->stop_fd);
    free(feeder);
}

static void *run_feeder(void *state)
{
    oc_feeder *feeder = state;
    feeder->status = feeder->fn(feeder->state, feeder, &feeder->err);
    close_fd(&feeder->write_fd);
    return NULL;
}

ortcrypt_status oc_feeder_open(oc_feeder **out, oc_feed_fn fn, void *state, ortcrypt_error *err)
{
    int ends[2] = {-1, -1};
    ortcrypt_status st = ORTCRYPT_OK;
    *out = NULL;
    oc_feeder *feeder = malloc(sizeof(*feeder));
    if (feeder == NULL) {
        return oc_fail_memory(err, sizeof(*feeder), "a pipe");
    }
    *feeder = (oc_feeder){.read_fd = -1, .write_fd = -1, .stop_fd = -1, .fn = fn, .state = state, .err = ORTCRYPT_ERROR_INIT};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "a pipe for the reader");
        goto out;
    }
    feeder->read_fd = ends[0];
    feeder->write_fd = ends[1];
    (void)fcntl(feeder->write_fd, F_SETPIPE_SZ, PIPE_LEN); /* refused beyond the user's share: smaller is only slower */
    feeder->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    /* non-blocking is a matter of our end alone: the reader opens the pipe anew */
    if (feeder->stop_fd < 0 || fcntl(feeder->write_fd, F_SETFL, O_NONBLOCK) != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "a pipe for the reader");
        goto out;
    }
    snprintf(feeder->path, sizeof(feeder->path), "/proc/self/fd/%d", feeder->read_fd);
    int rc = oc_thread_start(&feeder->thread, run_feeder, feeder);
    if (rc != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, rc, "a thread that feeds the reader");
        goto out;
    }
    *out = feeder;
    feeder = NULL;
out:
    if (feeder != NULL) {
        feeder_free(feeder);
    }
    return st;
}

const char *oc_feeder_path(const oc_feeder *feeder)
{
    return feeder->path;
}

/* Waits until the pipe takes bytes. false: oc_feeder_join asked to stop. */
static bool wait_writable(const oc_feeder *feeder)
{
    struct pollfd fds[2] = {{feeder->write_fd, POLLOUT, 0}, {feeder->stop_fd, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    return fds[1].revents == 0;
}

ortcrypt_status oc_feeder_push(oc_feeder *feeder, const void *data, size_t len, ortcrypt_error *err)
{
    const uint8_t *at = data;
    while (len != 0) {
        ssize_t n = write(feeder->write_fd, at, len);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EPIPE) {
            return oc_fail(err, ORTCRYPT_E_CANCELLED, "the reader went away before the end");
        } else if (n < 0 && errno == EAGAIN) {
            if (!wait_writable(feeder)) {
                return oc_fail(err, ORTCRYPT_E_CANCELLED, "the reader stopped before the end");
            }
        } else if (n < 0 && errno != EINTR) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing to the pipe");
        }
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_feeder_join(oc_feeder *feeder, ortcrypt_error *err)
{
    if (feeder == NULL) {
        return ORTCRYPT_OK;
    }
    uint64_t one = 1;
    close_fd(&feeder->read_fd); /* the writer gets EPIPE when no other reader is left */
    (void)!write(feeder->stop_fd, &one, sizeof(one)); /* and is woken when one is left that does not read */
    (void)pthread_join(feeder->thread, NULL);
    ortcrypt_status st = feeder->status;
    if (st != ORTCRYPT_OK && err != NULL) {
        *err = feeder->err;
    }
    feeder_free(feeder);
    return st;
}
