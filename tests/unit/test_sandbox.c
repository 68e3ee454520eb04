/*
 * Entering the sandbox: what a thread can and cannot do afterwards. Each test runs in a child process, because nobody leaves a sandbox.
 * The ways of a whole execution provider are in tests/cli/sandbox.bats.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "os/landlock.h"
#include "os/seccomp.h"
#include "ortcrypt/sandbox.h"
#include "store/store.h"
#include "support/support.h"

/* A check in the child: prints what is wrong and ends it. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno)); \
            _exit(1);                                                                     \
        }                                                                                 \
    } while (0)

typedef struct bed {
    char *folder; /* with the file `old` in it */
    int folder_fd;
} bed;

static void in_child(void (*fn)(const bed *))
{
    bed b = {.folder = oc_test_tmpdir()};
    int status = 0;
    char *const old = oc_test_format("%s/old", b.folder);
    if (oc_landlock_abi() == 0 || !oc_seccomp_available()) {
        skip();
    }
    oc_test_write_file(old, "old", 3);
    b.folder_fd = open(b.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const pid_t child = fork();
    if (child == 0) {
        fn(&b);
        exit(0); /* with the library's own ending: the store thread is stopped */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(b.folder_fd);
    oc_test_rm_rf(b.folder);
    free(old);
    free(b.folder);
}

static ortcrypt_sandbox_report enter(const ortcrypt_sandbox_options *options)
{
    ortcrypt_sandbox_report report;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    if (ortcrypt_sandbox_enter(options, &report, &err) != ORTCRYPT_OK) {
        fprintf(stderr, "%s\n", err.message);
        _exit(1);
    }
    return report;
}

static bool can_make(const bed *b, const char *name)
{
    const int fd = openat(b->folder_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void *try_to_make(void *state)
{
    return can_make(state, "thread") ? state : NULL;
}

static ortcrypt_status make_apart(void *state, ortcrypt_error *err)
{
    return can_make(state, "apart") ? ORTCRYPT_OK : oc_fail(err, ORTCRYPT_E_IO, "it cannot");
}

static void files_are_held(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    pthread_t thread;
    void *made = NULL;
    bed copy = *b;
    CHECK(can_make(b, "before"));
    const ortcrypt_sandbox_report report = enter(NULL);
    CHECK(report.landlock_abi > 0 && report.files && report.network && report.system_calls);
    CHECK(!can_make(b, "after") && errno == EACCES);
    CHECK(!can_make(b, "old")); /* there already, and opened for writing */
    CHECK(renameat(b->folder_fd, "old", b->folder_fd, "new") != 0);
    CHECK(unlinkat(b->folder_fd, "old", 0) != 0);
    CHECK(mkdirat(b->folder_fd, "folder", 0700) != 0);
    CHECK(linkat(b->folder_fd, "old", b->folder_fd, "link", 0) != 0);
    CHECK(symlinkat("old", b->folder_fd, "symlink") != 0);
    CHECK(fchmodat(b->folder_fd, "old", 0777, 0) != 0 && errno == EPERM);
    CHECK(faccessat(b->folder_fd, "old", R_OK, 0) == 0);
    const int fd = openat(b->folder_fd, "old", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(pthread_create(&thread, NULL, try_to_make, &copy) == 0 && pthread_join(thread, &made) == 0 && made == NULL);
    CHECK(ortcrypt_sandbox_call(make_apart, &copy, &err) == ORTCRYPT_OK);
    CHECK(faccessat(b->folder_fd, "apart", F_OK, 0) == 0);
}

/* The library's own writing, from a thread that cannot: a whole bundle, and its removal. */
static void bundles_are_written(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_store *store = NULL;
    oc_file *file = NULL;
    const uint8_t object[32] = {1, 2, 3};
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/new.ortc", b->folder);
    (void)enter(NULL);
    CHECK(mkdir(path, 0700) != 0);
    CHECK(oc_store_create(&store, path, &err) == ORTCRYPT_OK);
    CHECK(oc_file_new(&file, store, &err) == ORTCRYPT_OK);
    CHECK(oc_file_write(file, "bytes", 5, &err) == ORTCRYPT_OK);
    CHECK(oc_file_publish_object(file, object, &err) == ORTCRYPT_OK);
    CHECK(oc_store_publish_manifest(store, OC_SPAN_STR("manifest"), &err) == ORTCRYPT_OK);
    oc_store_close(store);
    CHECK(access(path, F_OK) == 0);
    CHECK(faccessat(b->folder_fd, "new.ortc/objects/01", F_OK, 0) == 0);
    (void)snprintf(path, sizeof path, "%s/given_up.ortc", b->folder);
    CHECK(oc_store_create(&store, path, &err) == ORTCRYPT_OK);
    oc_store_close(store);
    CHECK(access(path, F_OK) != 0);
}

static void devices_stay(const bed *b)
{
    static const char *const names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char path[4096];
    const char *const wrong[] = {path};
    const ortcrypt_sandbox_options bad = {.struct_size = sizeof bad, .devices = wrong, .device_count = 1};
    (void)snprintf(path, sizeof path, "%s/old", b->folder);
    CHECK(ortcrypt_sandbox_enter(&bad, NULL, &err) == ORTCRYPT_E_INVALID); /* a file is no device */
    CHECK(can_make(b, "still"));
    (void)enter(NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int fd = open(names[i], O_RDWR | O_CLOEXEC | O_TRUNC);
        CHECK(fd >= 0);
        close(fd);
    }
    CHECK(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0);
}

static void a_device_of_the_callers(const bed *b)
{
    static const char *const device = "/dev/ptmx";
    const ortcrypt_sandbox_options options = {.struct_size = sizeof options, .devices = &device, .device_count = 1};
    (void)b;
    (void)enter(&options);
    const int fd = open(device, O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(open("/dev/kmsg", O_WRONLY | O_CLOEXEC) < 0);
}

static void sockets_by_kind(const bed *b)
{
    int pair[2];
    (void)b;
    const ortcrypt_sandbox_report report = enter(NULL);
    CHECK(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EACCES);
    CHECK(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0);
    CHECK(socket(AF_INET, SOCK_DGRAM, 0) < 0);
    CHECK(socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 17) < 0);
    CHECK(socket(AF_INET, SOCK_RAW, 1) < 0 && errno == EACCES);
    CHECK(socket(AF_INET, SOCK_STREAM, 262) < 0 && errno == EACCES); /* MPTCP */
    CHECK(socket(AF_ALG, SOCK_SEQPACKET, 0) < 0 && errno == EACCES);
    CHECK(socket(AF_NETLINK, SOCK_RAW, 9) < 0 && errno == EACCES); /* audit */
    CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0);
    const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK((tcp >= 0) == (report.landlock_abi >= OC_LANDLOCK_ABI_NET));
    CHECK(tcp < 0 || (listen(tcp, 1) != 0 && errno == EPERM));
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0 && errno == EACCES);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(send(pair[0], "x", 1, 0) == 1);
}

/* 3, 5 and 7 are kept, and so is what the kernel opened since; 4, 6, 8 and 300 are not. */
static void descriptors_are_closed(const bed *b)
{
    const int keep[] = {7, 3, -1, 5};
    const ortcrypt_sandbox_options options = {
        .struct_size = sizeof options, .close_descriptors = true, .keep = keep, .keep_count = sizeof keep / sizeof *keep};
    static const int numbers[] = {3, 4, 5, 6, 7, 8, 300};
    (void)b;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK(numbers[i] == null || dup2(null, numbers[i]) == numbers[i]);
    }
    (void)enter(&options);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const bool open_still = fcntl(numbers[i], F_GETFD) >= 0;
        CHECK(open_still == (numbers[i] % 2 == 1));
    }
    CHECK(fcntl(STDERR_FILENO, F_GETFD) >= 0);
}

static void *wait_for_end(void *state)
{
    char byte;
    return read(*(int *)state, &byte, 1) == 0 ? NULL : state;
}

/* A thread that was there before is not held; whoever requires the sandbox is told so, and nothing has changed. */
static void other_threads_are_counted(const bed *b)
{
    ortcrypt_sandbox_options options = {.struct_size = sizeof options, .require = true};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    pthread_t thread;
    int ends[2];
    CHECK(pipe(ends) == 0 && pthread_create(&thread, NULL, wait_for_end, &ends[0]) == 0);
    CHECK(ortcrypt_sandbox_enter(&options, NULL, &err) == ORTCRYPT_E_UNSUPPORTED);
    CHECK(can_make(b, "free"));
    options.require = false;
    const ortcrypt_sandbox_report report = enter(&options);
    CHECK(report.other_threads >= 1 && report.missing[0] != '\0'); /* a sanitizer may have one of its own */
    CHECK(close(ends[1]) == 0 && pthread_join(thread, NULL) == 0);
}

__attribute__((unused)) static void whole_when_required(const bed *b)
{
    const ortcrypt_sandbox_options options = {.struct_size = sizeof options, .require = true};
    (void)b;
    const ortcrypt_sandbox_report report = enter(&options);
    CHECK(report.files && report.network && report.system_calls && report.other_threads == 0);
    CHECK(report.signals ? report.missing[0] == '\0' : report.missing[0] != '\0');
}

/* What a kernel of each ABI holds; the newest known one is what this kernel has or less. */
static void check_abi(const bed *b, int abi)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_landlock_held held = {0};
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/old", b->folder);
    CHECK(oc_landlock_restrict_as(abi, NULL, 0, &held, &err) == ORTCRYPT_OK);
    CHECK(held.abi == abi && held.files && held.truncate == (abi >= 3) && held.tcp == (abi >= 4) && (abi >= 6 || !held.signals));
    CHECK(!can_make(b, "after") && !can_make(b, "old"));
    CHECK(renameat(b->folder_fd, "old", b->folder_fd, "new") != 0 && unlinkat(b->folder_fd, "old", 0) != 0);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(null >= 0);
    CHECK((truncate(path, 1) != 0) == (abi >= 3));
    const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK((bind(tcp, (const struct sockaddr *)&any, sizeof any) != 0) == (abi >= OC_LANDLOCK_ABI_NET));
    CHECK((kill(getppid(), 0) != 0) == held.signals);
    CHECK(oc_seccomp_restrict(held.tcp, &err) == ORTCRYPT_OK);
    CHECK((socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0) == (abi < OC_LANDLOCK_ABI_NET));
    CHECK(truncate(path, 0) != 0);
}

static void every_abi(const bed *b)
{
    const int offered = oc_landlock_abi();
    for (int abi = 1; abi <= 7 && abi <= offered; abi++) {
        int status = 0;
        const pid_t child = fork(); /* before any thread is there */
        if (child == 0) {
            check_abi(b, abi);
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (status != 0) {
            fprintf(stderr, "ABI %d: see above\n", abi);
            _exit(1);
        }
    }
}

#define STORY(name)                     \
    static void test_##name(void **state) \
    {                                   \
        (void)state;                    \
        in_child(name);                 \
    }
STORY(files_are_held)
STORY(bundles_are_written)
STORY(devices_stay)
STORY(a_device_of_the_callers)
STORY(sockets_by_kind)
STORY(descriptors_are_closed)
STORY(other_threads_are_counted)
STORY(every_abi)
#if !defined(__SANITIZE_THREAD__) /* that sanitizer has a thread of its own, from before */
STORY(whole_when_required)
#endif

static void wrong_calls(void **state)
{
    const ortcrypt_sandbox_options old = {.struct_size = 8};
    const ortcrypt_sandbox_options no_list = {.struct_size = sizeof no_list, .keep_count = 1};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    (void)state;
    oc_test_status(ortcrypt_sandbox_enter(&old, NULL, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(ortcrypt_sandbox_enter(&no_list, NULL, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(ortcrypt_sandbox_call(NULL, NULL, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(ortcrypt_sandbox_call(make_apart, &(bed){.folder_fd = -1}, &err), ORTCRYPT_E_IO, &err); /* directly */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(test_files_are_held),
        cmocka_unit_test(test_bundles_are_written),
        cmocka_unit_test(test_devices_stay),
        cmocka_unit_test(test_a_device_of_the_callers),
        cmocka_unit_test(test_sockets_by_kind),
        cmocka_unit_test(test_descriptors_are_closed),
        cmocka_unit_test(test_other_threads_are_counted),
        cmocka_unit_test(test_every_abi),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_whole_when_required),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
