/* A program that cannot open a file for writing: this test's own, started again with the name of a scenario. */
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/watch.h"

static char *self; /* this program */

/* ---- The program's side. ---- */

static int say(const char *text) { return write(OC_WATCH_OUTPUT, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : 9; }

/* 0 when the call was refused with EACCES. */
static int refused(long result) { return result == -1 && errno == EACCES ? 0 : 7; }

static int open_how(uint64_t flags)
{
    const struct {
        uint64_t flags, mode, resolve;
    } how = {flags, (flags & O_CREAT) != 0 ? 0600 : 0, 0};
    return (int)syscall(SYS_openat2, AT_FDCWD, "how.txt", &how, sizeof(how));
}

static int try_one(const char *name)
{
    static const struct {
        const char *name;
        int flags;
    } opens[] = {{"wronly", O_WRONLY}, {"rdwr", O_RDWR},           {"create", O_RDONLY | O_CREAT}, {"truncate", O_RDONLY | O_TRUNC},
                 {"both", O_ACCMODE},  {"tmpfile", O_TMPFILE | O_RDWR}};
    for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
        if (strcmp(opens[i].name, name) == 0) {
            return refused(open(opens[i].flags & O_DIRECTORY ? "." : "there.txt", opens[i].flags, 0600));
        }
    }
    if (strcmp(name, "openat2") == 0) {
        return refused(open_how(O_WRONLY | O_CREAT));
    }
    if (strcmp(name, "rename") == 0) {
        return refused(rename("there.txt", "gone.txt"));
    }
    if (strcmp(name, "link") == 0) {
        return refused(link("there.txt", "link.txt"));
    }
    if (strcmp(name, "symlink") == 0) {
        return refused(symlink("there.txt", "link.txt"));
    }
    if (strcmp(name, "mkdir") == 0) {
        return refused(mkdir("folder", 0700));
    }
    if (strcmp(name, "mknod") == 0) {
        return refused(mknod("pipe", S_IFIFO | 0600, 0));
    }
    if (strcmp(name, "cut") == 0) {
        return refused(truncate("there.txt", 0));
    }
    return strcmp(name, "unlink") == 0 ? refused(unlink("there.txt")) : 8;
}

static int use_devices(void)
{
    const int fd = open("/dev/null", O_RDWR);
    const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

    (void)pthread_setname_np(pthread_self(), "named"); /* its own: no file; another's is one below /proc */
    if (open("/proc/self/comm", O_RDWR) != -1 || fd < 0 || zero < 0 || write(fd, "x", 1) != 1 || fcntl(zero, F_GETFD) != FD_CLOEXEC || fcntl(fd, F_GETFD) != 0) {
        return 7;
    }
    return say("devices");
}

static int read_files(void)
{
    char text[8] = "";
    const int fd = open("there.txt", O_RDONLY);
    const int how = open_how(O_RDONLY);

    if (how != -1 || errno != ENOENT || read(fd, text, sizeof(text) - 1) != 5 || strcmp(text, "there") != 0) {
        return 7;
    }
    return say(text);
}

/* Memory without a name is no file; what a child of the program does is seen too. */
static int indirect(void)
{
    const int memory = memfd_create("m", 0);
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        _exit(refused(open("/dev/shm/watch-test", O_CREAT | O_WRONLY, 0600)));
    }
    return memory >= 0 && ftruncate(memory, 10) == 0 && waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 7;
}

_Noreturn static void hang(void)
{
    (void)say("hangs");
    for (;;) {
        (void)pause();
    }
}

static int echo(void)
{
    char text[64];
    const ssize_t len = read(OC_WATCH_INPUT, text, sizeof(text));

    if (write(STDOUT_FILENO, "lost", 4) != 4 || fcntl(OC_WATCH_SOCKET + 1, F_GETFD) != -1) {
        return 7;
    }
    return write(OC_WATCH_OUTPUT, text, (size_t)len) == len ? 3 : 9;
}

/* As on a kernel that lacks these calls. Arguments end with -1. */
static void lose(const int *calls)
{
    struct sock_filter code[16] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short count = 1;
    for (; *calls >= 0; calls++) {
        code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)*calls, 0, 1);
        code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {count, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) {
        _exit(9);
    }
}

static int program(const char *scenario)
{
    if (strcmp(scenario, "older-create") == 0) {
        lose((const int[]){SYS_seccomp, -1});
        scenario = "create";
    } else if (strcmp(scenario, "oldest") == 0) {
        lose((const int[]){SYS_seccomp, SYS_landlock_create_ruleset, -1});
    }
    if (!oc_watch_enter()) {
        return OC_WATCH_EXIT_UNHELD;
    }
    if (strcmp(scenario, "devices") == 0) {
        return use_devices();
    }
    if (strcmp(scenario, "read") == 0) {
        return read_files();
    }
    if (strcmp(scenario, "indirect") == 0) {
        return indirect();
    }
    if (strcmp(scenario, "hang") == 0) {
        hang();
    }
    if (strcmp(scenario, "crash") == 0) {
        abort();
    }
    return strcmp(scenario, "echo") == 0 ? echo() : try_one(scenario);
}

/* ---- The test's side. ---- */

static oc_watch_result run(const char *scenario, const char *folder, unsigned timeout_ms)
{
    const char *const args[] = {scenario, NULL};
    const char *const env[] = {NULL};
    const oc_watch_options options = {.program = self,
                                      .args = args,
                                      .env = env,
                                      .folder = folder,
                                      .input = OC_SPAN_STR("a job"),
                                      .output_max = 1024,
                                      .timeout_ms = timeout_ms};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_watch_result result;

    oc_test_ok(oc_watch_run(&result, &options, &err), &err);
    return result;
}

/* Every way to a file is refused and told, with the path made absolute; the folder stays as it was. */
static void test_tries(void **state)
{
    static const struct {
        const char *scenario, *what, *path;
    } cases[] = {
        {"wronly", "open", "there.txt"},     {"rdwr", "open", "there.txt"},  {"create", "open", "there.txt"},
        {"truncate", "open", "there.txt"},   {"both", "open", "there.txt"},  {"tmpfile", "open", "."},
        {"openat2", "open", "how.txt"},      {"rename", "rename", "gone.txt"}, {"link", "link", "link.txt"},
        {"symlink", "link", "link.txt"},     {"mkdir", "make the folder", "folder"}, {"mknod", "make", "pipe"},
        {"cut", "shorten", "there.txt"},     {"unlink", "remove", "there.txt"},
    };
    char *const folder = oc_test_tmpdir();
    char *const real = realpath(folder, NULL);
    char *const there = oc_test_format("%s/there.txt", folder);

    (void)state;
    oc_test_write_file(there, "there", 5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        oc_watch_result result = run(cases[i].scenario, folder, 60000);
        char *const path = oc_test_format("%s/%s", real, cases[i].path);
        if (result.level == OC_WATCH_SECCOMP) {
            assert_int_equal(result.try_count, 1);
            assert_string_equal(result.tries[0].what, cases[i].what);
            assert_string_equal(result.tries[0].path, path);
        }
        assert_int_equal(result.end, OC_WATCH_EXITED);
        assert_int_equal(result.code, 0);
        free(path);
        oc_watch_result_free(&result);
    }
    size_t len = 0;
    uint8_t *const bytes = oc_test_read_file(there, &len);
    assert_int_equal(len, 5);
    free(bytes);
    assert_int_equal(unlink(there), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is in it */
    free(there);
    free(real);
    free(folder);
}

static void test_allowed(void **state)
{
    char *const folder = oc_test_tmpdir();
    char *const there = oc_test_format("%s/there.txt", folder);
    static const char *const cases[][2] = {{"devices", "devices"}, {"read", "there"}};

    (void)state;
    oc_test_write_file(there, "there", 5);
    for (size_t i = 0; i < 2; i++) {
        oc_watch_result result = run(cases[i][0], folder, 60000);
        assert_int_equal(result.end, OC_WATCH_EXITED);
        assert_int_equal(result.code, 0);
        assert_int_equal(result.try_count, 0);
        assert_int_equal(result.output.len, strlen(cases[i][1]));
        assert_memory_equal(result.output.data, cases[i][1], result.output.len);
        oc_watch_result_free(&result);
    }
    oc_test_rm_rf(folder);
    free(there);
    free(folder);
}

static void test_indirect(void **state)
{
    (void)state;
    oc_watch_result result = run("indirect", NULL, 60000);
    assert_int_equal(result.code, 0);
    if (result.level == OC_WATCH_SECCOMP) {
        assert_int_equal(result.try_count, 1);
        assert_string_equal(result.tries[0].path, "/dev/shm/watch-test");
    }
    oc_watch_result_free(&result);
}

static void test_ends(void **state)
{
    (void)state;
    oc_watch_result result = run("echo", "/", 60000);
    assert_int_equal(result.end, OC_WATCH_EXITED);
    assert_int_equal(result.code, 3);
    assert_int_equal(result.output.len, 5);
    assert_memory_equal(result.output.data, "a job", 5);
    oc_watch_result_free(&result);
    result = run("crash", "/", 60000);
    assert_int_equal(result.end, OC_WATCH_SIGNALLED);
    oc_watch_result_free(&result);
    result = run("hang", "/", 1000);
    assert_int_equal(result.end, OC_WATCH_TIMED_OUT);
    assert_int_equal(result.output.len, 5); /* what it said before is kept */
    oc_watch_result_free(&result);
}

/* Landlock alone refuses without telling; without both the program must not go on, and the caller hears that nothing can be watched. */
static void test_older_kernels(void **state)
{
    const char *const env[] = {NULL};
    const oc_watch_options options = {.program = self, .args = (const char *const[]){"oldest", NULL}, .env = env, .output_max = 10, .timeout_ms = 60000};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char *const folder = oc_test_tmpdir();

    (void)state;
    oc_watch_result result = run("older-create", folder, 60000);
    assert_int_equal(result.level, OC_WATCH_LANDLOCK);
    assert_int_equal(result.code, 0); /* refused */
    assert_int_equal(result.try_count, 0);
    oc_watch_result_free(&result);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
    oc_test_status(oc_watch_run(&result, &options, &err), ORTCRYPT_E_UNSUPPORTED, &err);
}

/* A host that ignores SIGCHLD: the kernel throws the exit code away. */
static void test_no_exit_code(void **state)
{
    (void)state;
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    oc_watch_result result = run("echo", "/", 60000);
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    assert_int_equal(result.end, OC_WATCH_EXITED);
    assert_int_equal(result.code, -1);
    assert_int_equal(result.output.len, 5);
    oc_watch_result_free(&result);
}

static void test_not_started(void **state)
{
    const char *const env[] = {NULL};
    const oc_watch_options gone = {.program = "/nowhere/program", .env = env, .output_max = 10, .timeout_ms = 1000};
    oc_watch_options chatty = {.program = self, .args = (const char *const[]){"echo", NULL}, .env = env, .input = OC_SPAN_STR("a job"),
                               .output_max = 4, .timeout_ms = 60000};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_watch_result result;

    (void)state;
    oc_test_status(oc_watch_run(&result, &gone, &err), ORTCRYPT_E_IO, &err);
    assert_non_null(strstr(err.message, "/nowhere/program"));
    oc_test_status(oc_watch_run(&result, &chatty, &err), ORTCRYPT_E_LIMIT, &err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tries), cmocka_unit_test(test_allowed),     cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_ends),  cmocka_unit_test(test_not_started),
        cmocka_unit_test(test_older_kernels), cmocka_unit_test(test_no_exit_code),
    };
    if (argc == 2) {
        return program(argv[1]);
    }
    self = realpath(argv[0], NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(self);
    return failed;
}
