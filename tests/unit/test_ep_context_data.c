/* The ep_context helper on a real runtime: callbacks and their errors, files, names, file types, races, advertising. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ep_context/internal.h"

static const OrtApiBase *base;
static const OrtApi *api;
static char folder[64];

static const OrtApiBase *load(const char *version)
{
    char path[PATH_MAX];
    const char *const deps = getenv("ORTCRYPT_DEPS");
    assert_non_null(deps);
    (void)snprintf(path, sizeof(path), "%s/ort/%s/libonnxruntime.so.%s", deps, version, version);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept: ORT does not like to be unloaded */
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    const OrtApiBase *(*get)(void) = NULL;
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

static int setup(void **state)
{
    (void)state;
    base = load("1.32.0");
    api = base->GetApi(23);
    (void)snprintf(folder, sizeof(folder), "/tmp/ortcrypt-epctx-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static void remove_tree(const char *path)
{
    char inner[PATH_MAX];
    DIR *const open = opendir(path);
    assert_non_null(open);
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        struct stat about;
        (void)snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && lstat(inner, &about) == 0) {
            if (S_ISDIR(about.st_mode)) {
                remove_tree(inner);
            } else {
                (void)unlink(inner);
            }
        }
    }
    (void)closedir(open);
    (void)rmdir(path);
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(folder);
    return 0;
}

static void ok(OrtStatus *status)
{
    if (status != NULL) {
        print_error("%s\n", api->GetErrorMessage(status));
        api->ReleaseStatus(status);
        fail();
    }
}

static void refused(OrtStatus *status, const char *part)
{
    assert_non_null(status);
    if (strstr(api->GetErrorMessage(status), part) == NULL) {
        print_error("expected \"%s\" in: %s\n", part, api->GetErrorMessage(status));
        api->ReleaseStatus(status);
        fail();
    }
    api->ReleaseStatus(status);
}

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void save(const char *path, const char *text)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    (void)fwrite(text, 1, strlen(text), file);
    assert_int_equal(fclose(file), 0);
}

static size_t entries(const char *path)
{
    size_t count = 0;
    DIR *const open = opendir(path);
    assert_non_null(open);
    while (readdir(open) != NULL) {
        count++;
    }
    (void)closedir(open);
    return count - 2;
}

/* An allocator that counts; every block must come back once. */
typedef struct counter {
    OrtAllocator ort;
    size_t allocated;
    size_t freed;
    void *last;
} counter;

static void *ORT_API_CALL count_alloc(OrtAllocator *self, size_t size)
{
    counter *const c = (counter *)self;
    c->allocated++;
    c->last = malloc(size != 0 ? size : 1);
    return c->last;
}

static void ORT_API_CALL count_free(OrtAllocator *self, void *memory)
{
    counter *const c = (counter *)self;
    c->freed++;
    free(memory);
}

static counter counter_new(void)
{
    counter c;
    memset(&c, 0, sizeof(c));
    c.ort.version = 16;
    c.ort.Alloc = count_alloc;
    c.ort.Free = count_free;
    return c;
}

/* A callback that does what the test says. */
typedef struct script {
    size_t calls;
    const char *name;  /* as it arrived */
    bool allocate;     /* give a buffer of `room` bytes */
    size_t room;
    size_t size;       /* the size it tells */
    OrtStatus *result; /* returned as it is */
} script;

static OrtStatus *ORT_API_CALL scripted_read(void *state, const char *name, OrtAllocator *allocator, void **buffer,
                                             size_t *size)
{
    script *const s = state;
    s->calls++;
    s->name = name;
    if (s->allocate) {
        *buffer = allocator->Alloc(allocator, s->room);
        memset(*buffer, 'p', s->room);
    }
    *size = s->size;
    return s->result;
}

static OrtStatus *ORT_API_CALL scripted_write(void *state, const char *name, const void *buffer, size_t size)
{
    script *const s = state;
    (void)buffer;
    s->calls++;
    s->name = name;
    s->size = size;
    return s->result;
}

/* The options are released at once: the context is a snapshot. */
static ortcrypt_ep_context *open_context(script *reader)
{
    ortcrypt_ep_context_api six;
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context *context = NULL;
    ok(ortcrypt_ep_context_api_get(base, &six));
    ok(api->CreateSessionOptions(&options));
    if (reader != NULL) {
        ok(six.SessionOptions_SetEpContextDataReadFunc(options, scripted_read, reader));
    }
    ok(ortcrypt_ep_context_open(&context, base, options));
    api->ReleaseSessionOptions(options);
    return context;
}

static void test_open(void **state)
{
    (void)state;
    script reader = {.size = 0};
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context *context = NULL;
    ok(api->CreateSessionOptions(&options));
    refused(ortcrypt_ep_context_open(NULL, base, options), "a place for the result");
    refused(ortcrypt_ep_context_open(&context, base, NULL), "session options");
    assert_null(context);
    api->ReleaseSessionOptions(options);
    ortcrypt_ep_context_close(NULL);

    context = open_context(NULL);
    assert_false(ortcrypt_ep_context_has_read(context));
    assert_false(ortcrypt_ep_context_has_write(context));
    ortcrypt_ep_context_close(context);
    context = open_context(&reader);
    assert_true(ortcrypt_ep_context_has_read(context));
    assert_false(ortcrypt_ep_context_has_write(context));
    ortcrypt_ep_context_close(context);
}

static void test_read_callback(void **state)
{
    (void)state;
    script reader = {.allocate = true, .room = 5, .size = 5};
    counter memory = counter_new();
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ortcrypt_ep_context *const context = open_context(&reader);
    const char *const name = "../any /name\x01 that is no path/..";

    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data));
    assert_int_equal(reader.calls, 1);
    assert_string_equal(reader.name, name);
    assert_ptr_equal(data.data, memory.last); /* adopted, not copied */
    assert_int_equal(data.size, 5);
    refused(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data), "an empty place");
    ortcrypt_ep_context_data_release(&data);
    assert_int_equal(memory.freed, 1);
    assert_null(data.data);
    ortcrypt_ep_context_data_release(&data);
    ortcrypt_ep_context_data_release(NULL);
    assert_int_equal(memory.freed, 1);

    refused(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 4, &data), "at most 4 are accepted");
    assert_int_equal(memory.allocated, memory.freed);
    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 5, &data));
    ortcrypt_ep_context_data_release(&data);
    ok(ortcrypt_ep_context_read(context, name, NULL, NULL, 0, &data)); /* ORT's allocator */
    assert_memory_equal(data.data, "ppppp", 5);
    ortcrypt_ep_context_data_release(&data);

    reader.size = 0; /* a buffer of no bytes is legal, and freed */
    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data));
    assert_int_equal(data.size, 0);
    ortcrypt_ep_context_data_release(&data);
    assert_int_equal(memory.allocated, memory.freed);
    reader.allocate = false; /* so is none */
    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data));
    assert_int_equal(data.size, 0);
    reader.size = 7;
    refused(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data), "without a buffer");

    /* an error is passed on unchanged, what was allocated is freed once, and no file is opened instead */
    save(in_folder("secret.bin"), "file");
    reader.allocate = true;
    reader.result = api->CreateStatus(ORT_ENGINE_ERROR, "mine");
    const size_t freed = memory.freed;
    OrtStatus *const status = ortcrypt_ep_context_read(context, in_folder("secret.bin"), NULL, &memory.ort, 0, &data);
    assert_ptr_equal(status, reader.result);
    assert_int_equal(memory.freed, freed + 1);
    assert_null(data.data);
    api->ReleaseStatus(status);
    assert_int_equal(unlink(in_folder("secret.bin")), 0);
    ortcrypt_ep_context_close(context);
}

static void test_write_callback(void **state)
{
    (void)state;
    script writer = {.calls = 0};
    ortcrypt_ep_context *const context = open_context(NULL);
    context->write = scripted_write; /* the options an application has do not reach here without a compilation */
    context->write_state = &writer;
    assert_true(ortcrypt_ep_context_has_write(context));
    const char *const name = "/any\xff name/..";
    ok(ortcrypt_ep_context_write(context, name, in_folder("never.bin"), NULL, "abc", 3));
    assert_int_equal(writer.calls, 1);
    assert_string_equal(writer.name, name);
    assert_int_equal(writer.size, 3);
    ok(ortcrypt_ep_context_write(context, name, NULL, NULL, NULL, 0));
    assert_int_equal(writer.calls, 2);
    writer.result = api->CreateStatus(ORT_FAIL, "mine");
    OrtStatus *const status = ortcrypt_ep_context_write(context, name, in_folder("never.bin"), NULL, "abc", 3);
    assert_ptr_equal(status, writer.result);
    api->ReleaseStatus(status);
    assert_int_equal(entries(folder), 0);
    refused(ortcrypt_ep_context_write(context, NULL, NULL, NULL, "abc", 3), "a name");
    refused(ortcrypt_ep_context_write(context, name, NULL, NULL, NULL, 3), "the bytes");
    ortcrypt_ep_context_close(context);
}

static void expect_file(const char *path, const char *text)
{
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ortcrypt_ep_context *const context = open_context(NULL);
    ok(ortcrypt_ep_context_read(context, path, NULL, NULL, 0, &data));
    assert_int_equal(data.size, strlen(text));
    assert_memory_equal(data.size != 0 ? data.data : "", text, data.size);
    ortcrypt_ep_context_data_release(&data);
    ortcrypt_ep_context_close(context);
}

static void test_files(void **state)
{
    (void)state;
    ortcrypt_ep_context *const context = open_context(NULL);
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
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
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
    ortcrypt_ep_context *const context = open_context(NULL);
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
    print_message("%d turns against %zu swaps: %zu reads and %zu writes went through\n", (int)TURNS, self.swaps, read_count,
                  write_count);
    expect_file(outside, "secret");
    assert_int_equal(unlink(outside), 0);
    assert_int_equal(entries(folder), 0);
}

static void test_advertise(void **state)
{
    (void)state;
    union {
        OrtEp ort;
        void *slots[27];
    } ep;
    memset(&ep, 0, sizeof(ep));
    ep.ort.ort_version_supported = 23;
    ortcrypt_ep_context *const context = open_context(NULL);
    refused(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep) - 1, 3), "of room");
    refused(ortcrypt_ep_context_advertise(context, NULL, sizeof(ep), 3), "of room");
    refused(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep), 0), "flags");
    refused(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep), 4), "flags");
    assert_null(ep.slots[26]);
    for (uint32_t flags = 1; flags <= 3; flags++) {
        OrtStatus *(ORT_API_CALL *support)(const OrtEp *, uint32_t *) = NULL;
        uint32_t told = 0;
        ok(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep), flags));
        memcpy(&support, &ep.slots[26], sizeof(support));
        ok(support(&ep.ort, &told));
        assert_int_equal(told, flags);
        assert_int_equal(ep.ort.ort_version_supported, 31);
    }
    ortcrypt_ep_context_close(context);

    /* a runtime that does not read the member: nothing changes */
    const OrtApiBase *const stable = base;
    base = load("1.30.0");
    memset(&ep, 0, sizeof(ep));
    ep.ort.ort_version_supported = 23;
    ortcrypt_ep_context *const older = open_context(NULL);
    ok(ortcrypt_ep_context_advertise(older, &ep.ort, sizeof(ep), 3));
    assert_null(ep.slots[26]);
    assert_int_equal(ep.ort.ort_version_supported, 23);
    ortcrypt_ep_context_close(older);
    base = stable;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),      cmocka_unit_test(test_read_callback), cmocka_unit_test(test_write_callback),
        cmocka_unit_test(test_files),     cmocka_unit_test(test_names),         cmocka_unit_test(test_types),
        cmocka_unit_test(test_race),      cmocka_unit_test(test_advertise),
    };
    return cmocka_run_group_tests_name("ep_context data", tests, setup, teardown);
}
