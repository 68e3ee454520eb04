/* Threads that share items, large memory and the pipe that a thread feeds. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"
#include "support/support.h"

#define ITEMS 1000

struct work {
    atomic_uint seen[ITEMS];
    atomic_uint lanes_wrong;
    unsigned threads;
    uint64_t fail_at[2];
    pthread_t caller;
    atomic_uint signals_open;
    int waiting; /* which of the two failures waits for the other: both orders must give the same answer */
    sem_t other_failed;
};

static ortcrypt_status do_item(void *state, unsigned lane, uint64_t item, ortcrypt_error *err)
{
    struct work *work = state;
    sigset_t blocked;
    atomic_fetch_add(&work->seen[item], 1);
    if (lane >= work->threads || (lane == 0) != (pthread_equal(pthread_self(), work->caller) != 0)) {
        atomic_fetch_add(&work->lanes_wrong, 1);
    }
    if (lane != 0 && (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 || !sigismember(&blocked, SIGINT) ||
                      !sigismember(&blocked, SIGPIPE) || !sigismember(&blocked, SIGALRM) || sigismember(&blocked, SIGSEGV))) {
        atomic_fetch_add(&work->signals_open, 1);
    }
    if (item == work->fail_at[work->waiting] && work->fail_at[1] != UINT64_MAX) {
        struct timespec deadline;
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += 10;
        (void)sem_timedwait(&work->other_failed, &deadline);
        for (int i = 0; i < 20; i++) {
            sched_yield();
        }
    }
    if (item == work->fail_at[1 - work->waiting]) {
        sem_post(&work->other_failed);
    }
    if (item == work->fail_at[0] || item == work->fail_at[1]) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "item %llu", (unsigned long long)item);
    }
    return ORTCRYPT_OK;
}

static struct work *work_new(unsigned threads)
{
    struct work *work = calloc(1, sizeof(*work));
    assert_non_null(work);
    work->threads = threads;
    work->fail_at[0] = work->fail_at[1] = UINT64_MAX;
    work->caller = pthread_self();
    assert_int_equal(sem_init(&work->other_failed, 0, 0), 0);
    return work;
}

static void every_item_once(void **state)
{
    (void)state;
    static const unsigned threads[] = {1, 2, 5, 64};
    for (size_t t = 0; t < 4; t++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        struct work *work = work_new(threads[t]);
        oc_test_ok(oc_parallel(threads[t], ITEMS, do_item, work, &err), &err);
        for (size_t i = 0; i < ITEMS; i++) {
            assert_int_equal(work->seen[i], 1);
        }
        assert_int_equal(work->lanes_wrong, 0);
        assert_int_equal(work->signals_open, 0);
        free(work);
    }
    struct work *work = work_new(oc_default_threads());
    oc_test_ok(oc_parallel(0, ITEMS, do_item, work, NULL), NULL);
    oc_test_ok(oc_parallel(4, 0, do_item, work, NULL), NULL);
    assert_int_equal(work->seen[0], 1);
    free(work);
}

/* The lowest item that fails is the one reported, whichever thread is faster; later items are not started. */
static void first_failure(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        struct work *work = work_new(4);
        work->fail_at[0] = 10;
        work->fail_at[1] = 11;
        work->waiting = round % 2;
        assert_int_equal(oc_parallel(4, ITEMS, do_item, work, &err), ORTCRYPT_E_INPUT);
        assert_string_equal(err.message, "item 10");
        for (size_t i = 0; i < 10; i++) {
            assert_int_equal(work->seen[i], 1);
        }
        free(work);
    }
    struct work *alone = work_new(1);
    alone->fail_at[0] = 10;
    assert_int_equal(oc_parallel(1, ITEMS, do_item, alone, NULL), ORTCRYPT_E_INPUT);
    assert_int_equal(alone->seen[11], 0);
    free(alone);
}

static void signal_mask_is_kept(void **state)
{
    (void)state;
    sigset_t one, after;
    struct work *work = work_new(4);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &one, NULL), 0);
    oc_test_ok(oc_parallel(4, ITEMS, do_item, work, NULL), NULL);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int s = 1; s < 32; s++) {
        assert_int_equal(sigismember(&after, s), s == SIGUSR2);
    }
    free(work);
}

static void machine(void **state)
{
    (void)state;
    cpu_set_t one;
    cpu_set_t all;
    assert_in_range(oc_default_threads(), 1, 8);
    assert_true(oc_physical_memory() > 64u * 1024 * 1024);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    unsigned threads = oc_default_threads();
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(threads, 1);
}

/* The VmFlags line of the mapping that holds `address` ("" when there is none). */
static void vm_flags(const void *address, char flags[256])
{
    char line[512];
    bool here = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    flags[0] = '\0';
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from = 0, to = 0;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            here = (uintptr_t)address >= from && (uintptr_t)address < to;
        } else if (here && strncmp(line, "VmFlags:", 8) == 0) {
            snprintf(flags, 256, "%.255s", line + 8);
        }
    }
    fclose(maps);
}

static void regions(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 4096, 4097, 4u << 20, (4u << 20) + 1, 11u << 20};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_region region;
        char flags[256];
        oc_test_ok(oc_region_new(&region, lens[i], &err), &err);
        assert_non_null(region.data);
        assert_int_equal(region.len, lens[i]);
        if (lens[i] >= 4u << 20) {
            assert_int_equal((uintptr_t)region.data % (2u << 20), 0);
        }
        for (size_t at = 0; at < lens[i]; at += 1000) {
            assert_int_equal(region.data[at], 0);
        }
        vm_flags(region.data, flags);
        assert_non_null(strstr(flags, " dd")); /* not in dumps */
        assert_non_null(strstr(flags, " dc")); /* not in forks */
        if (lens[i] != 0) {
            memset(region.data, 0xEE, lens[i]);
        }
        oc_region_free(&region);
        assert_null(region.data);
        oc_region_free(&region);
    }
    oc_region none = {NULL, 0, NULL, 0};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_region_free(&none);
    oc_region_free(NULL);
    assert_int_equal(oc_region_new(&none, SIZE_MAX, &err), ORTCRYPT_E_NO_MEMORY);
    assert_int_equal(oc_region_new(&none, (size_t)1 << 46, &err), ORTCRYPT_E_NO_MEMORY);
    assert_null(none.map);
}

struct feed {
    size_t len;
    ortcrypt_status then;
    ortcrypt_status pushed;
    bool sigpipe_blocked;
};

static ortcrypt_status feed(void *state, oc_feeder *feeder, ortcrypt_error *err)
{
    struct feed *f = state;
    sigset_t blocked;
    f->sigpipe_blocked = pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGPIPE) == 1;
    uint8_t *data = malloc(f->len + 1);
    if (data == NULL) {
        return ORTCRYPT_E_NO_MEMORY;
    }
    oc_test_fill(data, f->len, 3);
    f->pushed = oc_feeder_push(feeder, data, f->len, err);
    free(data);
    return f->pushed != ORTCRYPT_OK ? f->pushed : f->then == ORTCRYPT_OK ? ORTCRYPT_OK : oc_fail(err, f->then, "as told");
}

/* Reads at most `max` bytes through the path; returns how many. */
static size_t read_some(const oc_feeder *feeder, uint8_t *data, size_t max, int *fd)
{
    size_t have = 0;
    ssize_t n = 1;
    *fd = open(oc_feeder_path(feeder), O_RDONLY | O_CLOEXEC);
    assert_true(*fd >= 0);
    while (have < max && (n = read(*fd, data + have, max - have)) > 0) {
        have += (size_t)n;
    }
    assert_true(n >= 0);
    return have;
}

static void feeder_feeds(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 65536, 1u << 20, (5u << 20) + 17};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_feeder *feeder = NULL;
        struct feed f = {.len = lens[i]};
        int fd = -1;
        uint8_t *got = malloc(lens[i] + 100);
        uint8_t *want = malloc(lens[i] + 100);
        assert_non_null(got);
        assert_non_null(want);
        oc_test_fill(want, lens[i], 3);
        oc_test_ok(oc_feeder_open(&feeder, feed, &f, &err), &err);
        assert_int_equal(read_some(feeder, got, lens[i] + 100, &fd), lens[i]);
        assert_memory_equal(got, want, lens[i]);
        oc_test_ok(oc_feeder_join(feeder, &err), &err);
        assert_true(f.sigpipe_blocked);
        close(fd);
        free(got);
        free(want);
    }
}

/* The reader gives up: whether it closes, keeps its end open without reading, or never opened at all, join comes back. */
static void feeder_reader_gone(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_feeder *feeder = NULL;
        struct feed f = {.len = 8u << 20};
        uint8_t some[1000];
        int fd = -1;
        oc_test_ok(oc_feeder_open(&feeder, feed, &f, &err), &err);
        if (how != 2) {
            assert_int_equal(read_some(feeder, some, sizeof(some), &fd), sizeof(some));
        }
        if (how == 0) {
            close(fd);
        }
        assert_int_equal(oc_feeder_join(feeder, &err), ORTCRYPT_E_CANCELLED);
        assert_int_equal(err.status, ORTCRYPT_E_CANCELLED);
        assert_int_equal(f.pushed, ORTCRYPT_E_CANCELLED);
        if (how == 1) {
            close(fd);
        }
    }
}

static void feeder_failure(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_feeder *feeder = NULL;
    struct feed f = {.len = 1000, .then = ORTCRYPT_E_NOT_AUTHENTIC};
    uint8_t some[2000];
    int fd = -1;
    oc_test_ok(oc_feeder_open(&feeder, feed, &f, &err), &err);
    assert_int_equal(read_some(feeder, some, sizeof(some), &fd), 1000); /* an early end for the reader */
    assert_int_equal(oc_feeder_join(feeder, &err), ORTCRYPT_E_NOT_AUTHENTIC);
    assert_string_equal(err.message, "as told");
    close(fd);
    oc_test_ok(oc_feeder_join(NULL, &err), &err);
}

static size_t count_fds(int *without_cloexec)
{
    size_t count = 0;
    *without_cloexec = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0;
        *without_cloexec += flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    return count;
}

static void feeder_descriptors(void **state)
{
    (void)state;
    int inherited = 0, now = 0;
    size_t before = count_fds(&inherited);
    oc_feeder *feeder = NULL;
    struct feed f = {.len = 8u << 20};
    oc_test_ok(oc_feeder_open(&feeder, feed, &f, NULL), NULL);
    assert_true(count_fds(&now) > before);
    assert_int_equal(now, inherited); /* nothing of ours goes to programs that the host starts */
    assert_int_equal(oc_feeder_join(feeder, NULL), ORTCRYPT_E_CANCELLED);
    assert_int_equal(count_fds(&now), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once), cmocka_unit_test(first_failure),      cmocka_unit_test(signal_mask_is_kept),
        cmocka_unit_test(machine),         cmocka_unit_test(regions),            cmocka_unit_test(feeder_feeds),
        cmocka_unit_test(feeder_reader_gone), cmocka_unit_test(feeder_failure),  cmocka_unit_test(feeder_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
