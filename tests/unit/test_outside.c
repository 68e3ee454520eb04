/* The thread outside of the sandbox: where things run, what they return, and that nobody waits for ever. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "os/outside.h"
#include "support/support.h"

#define THREADS 8
#define ROUNDS 200

static long tell_thread(void *state)
{
    *(pid_t *)state = gettid();
    errno = E2BIG;
    return 42;
}

static void direct_without_one(void **unused)
{
    pid_t where = 0;
    (void)unused;
    assert_false(oc_outside_running());
    assert_int_equal(oc_outside(tell_thread, &where), 42);
    assert_int_equal(where, gettid());
}

static void results_and_errno_cross(void **unused)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    pid_t where = 0;
    pid_t again = 0;
    (void)unused;
    oc_test_ok(oc_outside_start(&err), &err);
    oc_test_ok(oc_outside_start(&err), &err);
    assert_true(oc_outside_running());
    errno = 0;
    assert_int_equal(oc_outside(tell_thread, &where), 42);
    assert_int_equal(errno, E2BIG);
    assert_int_not_equal(where, gettid());
    assert_int_equal(oc_outside(tell_thread, &again), 42);
    assert_int_equal(where, again);
    assert_int_equal(oc_disk_openat(AT_FDCWD, "/nowhere/at/all", O_RDONLY, 0), -1);
    assert_int_equal(errno, ENOENT);
}

/* Every call of disk.c does what its name says. */
static void disk_calls(void **unused)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct stat info;
    char *const tmp = oc_test_tmpdir();
    const int folder = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)unused;
    oc_test_ok(oc_outside_start(&err), &err);
    assert_int_equal(oc_disk_mkdirat(folder, "a", 0700), 0);
    const int fd = oc_disk_openat(folder, "a/file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(write(fd, "here", 4), 4);
    const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    assert_int_equal(futimens(fd, long_ago), 0);
    assert_int_equal(oc_disk_touch(fd), 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_true(info.st_mtim.tv_sec > 1);
    assert_int_equal(oc_disk_linkat(folder, "a/file", folder, "b"), 0);
    assert_int_equal(oc_disk_renameat2(folder, "b", folder, "a/file", RENAME_NOREPLACE), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(oc_disk_renameat2(folder, "b", folder, "c", 0), 0);
    assert_int_equal(oc_disk_unlinkat(folder, "a/file", 0), 0);
    assert_int_equal(oc_disk_unlinkat(folder, "a", AT_REMOVEDIR), 0);
    assert_int_equal(faccessat(folder, "c", F_OK, 0), 0);
    assert_int_equal(faccessat(folder, "a", F_OK, 0), -1);
    close(fd);
    close(folder);
    oc_test_rm_rf(tmp);
    free(tmp);
}

typedef struct racer {
    int folder;
    unsigned number;
    unsigned failures;
} racer;

/* Own names only, so that every result is known; what differs is who is on the store thread when. */
static void *race(void *state)
{
    racer *const r = state;
    char name[32];
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void)snprintf(name, sizeof name, "%u-%u", r->number, i);
        const int fd = oc_disk_openat(r->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        r->failures += fd < 0 ? 1 : 0;
        r->failures += oc_disk_openat(r->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) != -1 || errno != EEXIST ? 1 : 0;
        r->failures += oc_disk_unlinkat(r->folder, name, 0) != 0 ? 1 : 0;
        close(fd);
    }
    return NULL;
}

static void many_threads(void **unused)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    pthread_t threads[THREADS];
    racer racers[THREADS];
    char *const tmp = oc_test_tmpdir();
    const int folder = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)unused;
    oc_test_ok(oc_outside_start(&err), &err);
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i] = (racer){.folder = folder, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(racers[i].failures, 0);
    }
    assert_int_equal(rmdir(tmp), 0); /* it is empty */
    close(folder);
    free(tmp);
}

typedef struct errand {
    int wait_fd; /* read from before it returns */
    pid_t where;
    bool signals_blocked;
    ortcrypt_status inner; /* of an errand of its own */
} errand;

static ortcrypt_status say_no(void *state, ortcrypt_error *err)
{
    ((errand *)state)->where = gettid();
    return oc_fail(err, ORTCRYPT_E_INPUT, "no");
}

static ortcrypt_status wait_for_byte(void *state, ortcrypt_error *err)
{
    errand *const e = state;
    errand inner = {.wait_fd = -1};
    sigset_t blocked;
    char byte;
    e->where = gettid();
    e->signals_blocked = pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM);
    e->inner = oc_outside_apart(say_no, &inner, err);
    return read(e->wait_fd, &byte, 1) == 1 ? ORTCRYPT_OK : oc_fail(err, ORTCRYPT_E_IO, "no byte");
}

static void *errand_thread(void *state)
{
    static ortcrypt_error err;
    return (void *)(intptr_t)oc_outside_apart(wait_for_byte, state, &err);
}

/* An application's function waits for somebody who writes to a bundle: that one must get on. */
static void work_that_waits_stops_nobody(void **unused)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    pthread_t thread;
    void *status = NULL;
    pid_t store = 0;
    int ends[2];
    errand e = {0};
    (void)unused;
    oc_test_ok(oc_outside_start(&err), &err);
    assert_int_equal(pipe(ends), 0);
    e.wait_fd = ends[0];
    assert_int_equal(pthread_create(&thread, NULL, errand_thread, &e), 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(oc_outside(tell_thread, &store), 42);
    }
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_ptr_equal(status, NULL); /* ORTCRYPT_OK */
    assert_true(e.signals_blocked);
    assert_int_equal(e.inner, ORTCRYPT_E_INPUT);
    assert_int_not_equal(e.where, store);
    assert_int_not_equal(e.where, gettid());
    oc_test_status(oc_outside_apart(say_no, &e, &err), ORTCRYPT_E_INPUT, &err);
    assert_string_equal(err.message, "no");
    close(ends[0]);
    close(ends[1]);
}

#if !defined(__SANITIZE_THREAD__)
/* A child has no store thread: it must not wait for one. */
static void a_forked_child_goes_on(void **unused)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    int status = 0;
    (void)unused;
    oc_test_ok(oc_outside_start(&err), &err);
    const pid_t child = fork();
    if (child == 0) {
        pid_t where = 0;
        (void)alarm(30);
        const bool right = !oc_outside_running() && oc_outside(tell_thread, &where) == 42 && where == gettid() &&
                           oc_outside_start(&err) == ORTCRYPT_E_UNSUPPORTED;
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_without_one), /* first: the thread stays */
        cmocka_unit_test(results_and_errno_cross),
        cmocka_unit_test(disk_calls),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(work_that_waits_stops_nobody),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(a_forked_child_goes_on),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
