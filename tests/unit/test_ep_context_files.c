/* The ep_context helper without callbacks and without a graph: files at any path, and file types. */
#include "test_ep_context_rig.h"

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

/* Without a graph: any path, the same types, no link as the target of a write. */
static void test_types(void **state)
{
    (void)state;
    char outside[80];
    (void)snprintf(outside, sizeof(outside), "%s.outside", folder);
    save(outside, "secret");
    ortcrypt_ep_context *const context = open_context(NULL, NULL);
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(mkdir(in_folder("dir"), 0700), 0);
    make_socket(in_folder("socket"));
    const char *const special[] = {"fifo", "dir", "socket"};
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        refused(ortcrypt_ep_context_read(context, in_folder(special[i]), NULL, NULL, 0, &data), "no regular file");
        refused(ortcrypt_ep_context_write(context, in_folder(special[i]), NULL, NULL, "x", 1), "no regular file");
    }
    refused(ortcrypt_ep_context_read(context, "/dev/zero", NULL, NULL, 0, &data), "no regular file");
    refused(ortcrypt_ep_context_write(context, "/dev/null", NULL, NULL, "x", 1), "no regular file");
    assert_int_equal(symlink(outside, in_folder("link")), 0);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    refused(ortcrypt_ep_context_write(context, in_folder("link"), NULL, NULL, "x", 1), "is a link");
    refused(ortcrypt_ep_context_write(context, in_folder("dangling"), NULL, NULL, "x", 1), "is a link");
    refused(ortcrypt_ep_context_read(context, in_folder("dangling"), NULL, NULL, 0, &data), "does not exist");
    assert_int_not_equal(access(in_folder("nowhere"), F_OK), 0);
    ortcrypt_ep_context_close(context);
    expect_file(in_folder("link"), "secret");
    expect_file(in_folder("dir/../link"), "secret");
    assert_int_equal(unlink(outside), 0);
    oc_test_rm_rf(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests_name("ep_context files", tests, setup, teardown);
}
