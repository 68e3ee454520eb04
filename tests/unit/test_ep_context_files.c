/* The ep_context helper without callbacks: files, names that are not to be trusted, file types, races. */
#include "test_ep_context_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

static void expect_file(const char *path, const char *text)
{
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ortcrypt_ep_context *const context = open_context(NULL, NULL);
    ok(ortcrypt_ep_context_read(context, path, NULL, NULL, 0, &data));
    assert_int_equal(data.size, strlen(text));
    assert_memory_equal(data.size != 0 ? data.data : "", text, data.size);
    ortcrypt_ep_context_data_release(&data);
    ortcrypt_ep_context_close(context);
}

static void test_files(void **state)
{
    (void)state;
    ortcrypt_ep_context *const context = open_context(NULL, NULL);
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", in_folder("a.bin"));
    ok(ortcrypt_ep_context_write(context, path, NULL, NULL, "first", 5));
    expect_file(path, "first");
    ok(ortcrypt_ep_context_write(context, "logical", path, NULL, "second one", 10));
    expect_file(path, "second one");
    ok(ortcrypt_ep_context_write(context, path, NULL, NULL, NULL, 0));
    expect_file(path, "");
    assert_int_equal(entries(folder), 1); /* no temporary file is left */

    save(path, "123456");
    refused(ortcrypt_ep_context_read(context, path, NULL, NULL, 5, &data), "at most 5 are accepted");
    ok(ortcrypt_ep_context_read(context, path, NULL, NULL, 6, &data));
    ortcrypt_ep_context_data_release(&data);
    refused(ortcrypt_ep_context_read(context, in_folder("none.bin"), NULL, NULL, 0, &data), "does not exist");
    refused(ortcrypt_ep_context_write(context, in_folder("no/such.bin"), NULL, NULL, "x", 1), "does not exist");
    ortcrypt_ep_context_close(context);
    assert_int_equal(unlink(path), 0);
}

static OrtStatus *read_below(const char *name)
{
    OrtAllocator *allocator = NULL;
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ok(api->GetAllocatorWithDefaultOptions(&allocator));
    OrtStatus *const status = oc_ep_file_read(api, folder, name, allocator, 0, &data);
    ortcrypt_ep_context_data_release(&data);
    return status;
}

static OrtStatus *write_below(const char *name)
{
    return oc_ep_file_write(api, folder, name, "new", 3);
}

static void test_names(void **state)
{
    (void)state;
    char longest[5001];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    const struct {
        const char *name;
        const char *why;
    } bad[] = {
        {"", "is empty"},
        {longest, "is longer than 4096 bytes"},
        {"a\xff.bin", "is not UTF-8"},
        {"a\xc0\xaf.bin", "is not UTF-8"},
        {"a\xed\xa0\x80.bin", "is not UTF-8"},
        {"a\xf4\x90\x80\x80.bin", "is not UTF-8"},
        {"a\xe2\x82", "is not UTF-8"},
        {".", "names a folder"},
        {"..", "names a folder"},
        {"a/", "names a folder"},
        {"a/..", "names a folder"},
        {"/etc/hostname", "is absolute"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refused(read_below(bad[i].name), bad[i].why);
        refused(write_below(bad[i].name), bad[i].why);
    }
    assert_int_equal(mkdir(in_folder("a"), 0700), 0);
    assert_int_equal(mkdir(in_folder("a/b"), 0700), 0);
    ok(write_below("a/b/../c.bin"));
    ok(read_below("a/c.bin"));
    ok(read_below("./a/b/../../a/c.bin"));
    ok(write_below("\xe2\x82\xac \xf0\x9f\x98\x80.bin"));
    refused(read_below("../x.bin"), "outside the model's folder");
    refused(read_below("a/../../x.bin"), "outside the model's folder");
    refused(write_below("../x.bin"), "outside the model's folder");
    refused(write_below("a/../../x.bin"), "outside the model's folder");
    remove_tree(in_folder("a"));
    assert_int_equal(unlink(in_folder("\xe2\x82\xac \xf0\x9f\x98\x80.bin")), 0);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(fd);
}

static void test_types(void **state)
{
    (void)state;
    char outside[80];
    (void)snprintf(outside, sizeof(outside), "%s.outside", folder);
    save(outside, "secret");
    save(in_folder("real.bin"), "real");
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(mkdir(in_folder("dir"), 0700), 0);
    make_socket(in_folder("socket"));
    const char *const special[] = {"fifo", "dir", "socket"};
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        refused(read_below(special[i]), "no regular file"); /* and does not block */
        refused(write_below(special[i]), "no regular file");
    }
    assert_int_equal(symlink("real.bin", in_folder("inner")), 0);
    assert_int_equal(symlink(outside, in_folder("absolute")), 0);
    assert_int_equal(symlink("../", in_folder("up")), 0);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_int_equal(symlink("fifo", in_folder("to-fifo")), 0);
    ok(read_below("inner"));
    refused(read_below("absolute"), "outside the model's folder");
    refused(read_below("up/x"), "outside the model's folder");
    refused(read_below("dangling"), "does not exist");
    refused(read_below("to-fifo"), "no regular file");
    refused(write_below("absolute"), "is a link");
    refused(write_below("dangling"), "is a link");
    refused(write_below("up/x"), "outside the model's folder");
    assert_int_not_equal(access(in_folder("nowhere"), F_OK), 0);

    /* trusted: any path, the same types, no link as the target */
    ortcrypt_ep_context *const context = open_context(NULL, NULL);
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    refused(ortcrypt_ep_context_read(context, "/dev/zero", NULL, NULL, 0, &data), "no regular file");
    refused(ortcrypt_ep_context_read(context, in_folder("fifo"), NULL, NULL, 0, &data), "no regular file");
    refused(ortcrypt_ep_context_write(context, in_folder("absolute"), NULL, NULL, "x", 1), "is a link");
    ortcrypt_ep_context_close(context);
    expect_file(in_folder("absolute"), "secret");
    expect_file(outside, "secret");
    assert_int_equal(unlink(outside), 0);
    remove_tree(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

/* One thread swaps the target while another reads and writes: the secret outside is neither read nor written. */
typedef struct swapper {
    const char *outside;
    atomic_bool stop;
    size_t swaps;
} swapper;

static void *swap(void *argument)
{
    swapper *const self = argument;
    char target[PATH_MAX];
    char next[PATH_MAX];
    (void)snprintf(target, sizeof(target), "%s/target", folder);
    (void)snprintf(next, sizeof(next), "%s/next", folder);
    for (size_t turn = 0; !atomic_load(&self->stop); turn++) {
        switch (turn % 4) {
        case 0:
            save(next, "fine");
            break;
        case 1:
            (void)symlink(self->outside, next);
            break;
        case 2:
            (void)mkfifo(next, 0600);
            break;
        default:
            (void)rmdir(target);
            (void)unlink(target);
            (void)mkdir(target, 0700);
            continue;
        }
        (void)rmdir(target);
        self->swaps += rename(next, target) == 0 ? 1 : 0;
    }
    (void)unlink(next);
    (void)rmdir(target);
    (void)unlink(target);
    return NULL;
}

static void test_race(void **state)
{
    (void)state;
    enum { TURNS = 10000 };
    char outside[80];
    OrtAllocator *allocator = NULL;
    size_t read_count = 0;
    size_t write_count = 0;
    pthread_t thread;
    (void)snprintf(outside, sizeof(outside), "%s.outside", folder);
    save(outside, "secret");
    swapper self = {.outside = outside};
    atomic_init(&self.stop, false);
    ok(api->GetAllocatorWithDefaultOptions(&allocator));
    assert_int_equal(pthread_create(&thread, NULL, swap, &self), 0);
    for (size_t i = 0; i < TURNS; i++) {
        ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
        OrtStatus *status = oc_ep_file_read(api, folder, "target", allocator, 0, &data);
        if (status == NULL) {
            read_count++;
            assert_true(data.size == 0 || memcmp(data.data, "secret", data.size < 6 ? data.size : 6) != 0);
            ortcrypt_ep_context_data_release(&data);
        } else {
            api->ReleaseStatus(status);
        }
        status = i % 8 == 0 ? oc_ep_file_write(api, folder, "target", "new", 3) : NULL;
        write_count += i % 8 == 0 && status == NULL ? 1 : 0;
        if (status != NULL) {
            api->ReleaseStatus(status);
        }
    }
    atomic_store(&self.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("%d turns against %zu swaps: %zu reads and %zu writes went through\n", (int)TURNS, self.swaps,
                  read_count, write_count);
    expect_file(outside, "secret");
    assert_int_equal(unlink(outside), 0);
    assert_int_equal(entries(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_race),
    };
    return cmocka_run_group_tests_name("ep_context files", tests, setup, teardown);
}
