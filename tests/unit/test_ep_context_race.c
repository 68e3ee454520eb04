/*
 * One thread swaps the target between a regular file, a link to a secret outside, a link inside, a FIFO and a folder as fast as it
 * can, while another reads and writes it 100,000 times: the secret is neither read nor written, and nothing blocks (a reader of
 * the FIFO would wait for ever). On tmpfs, where a swap is cheap; by both resolvers.
 */
#include "test_ep_context_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statfs.h>
#include <time.h>

enum { TURNS = 100000 };

typedef struct swapper {
    char outside[96]; /* the secret */
    atomic_bool stop;
    size_t swaps;
} swapper;

enum { KIND_FILE, KIND_LINK_OUT, KIND_ABSOLUTE_LINK_IN, KIND_LINK_IN, KIND_FIFO, KIND_FOLDER, KIND_COUNT };

/* Makes `path` what it should be; the writer's renames turn a link that was swapped away into a file. */
static void make_kind(const swapper *self, int kind, const char *path)
{
    struct stat about;
    const mode_t types[KIND_COUNT] = {S_IFREG, S_IFLNK, S_IFLNK, S_IFLNK, S_IFIFO, S_IFDIR};
    if (lstat(path, &about) == 0) {
        if ((about.st_mode & S_IFMT) == types[kind] && types[kind] != S_IFLNK) {
            return;
        }
        (void)(S_ISDIR(about.st_mode) ? rmdir(path) : unlink(path));
    }
    switch (kind) {
    case KIND_FILE:
        save(path, "inside");
        break;
    case KIND_LINK_OUT:
        (void)symlink(self->outside, path);
        break;
    case KIND_ABSOLUTE_LINK_IN:
        (void)symlink(in_folder("model/other"), path);
        break;
    case KIND_LINK_IN:
        (void)symlink("other", path);
        break;
    case KIND_FIFO:
        (void)mkfifo(path, 0600);
        break;
    default:
        (void)mkdir(path, 0700);
        break;
    }
}

static void *swap(void *argument)
{
    swapper *const self = argument;
    char target[96];
    char spare[96];
    (void)snprintf(target, sizeof(target), "%s/model/target", folder);
    (void)snprintf(spare, sizeof(spare), "%s/spare", folder);
    for (int kind = 0; !atomic_load_explicit(&self->stop, memory_order_relaxed); kind = (kind + 1) % KIND_COUNT) {
        make_kind(self, kind, spare);
        self->swaps += renameat2(AT_FDCWD, spare, AT_FDCWD, target, RENAME_EXCHANGE) == 0 ? 1 : 0;
    }
    return NULL;
}

/* What may be read: the bytes of a file inside, written by one side or the other; a file just being made is empty. */
static bool harmless(const ortcrypt_ep_context_data *data)
{
    return data->size == 0 || (data->size == 6 && memcmp(data->data, "inside", 6) == 0) ||
           (data->size == 3 && memcmp(data->data, "new", 3) == 0);
}

typedef struct tally {
    size_t reads; /* that went through */
    size_t writes;
    size_t harm; /* reads of something else */
} tally;

static void turn(oc_ep_where where, OrtAllocator *allocator, tally *sum)
{
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    OrtStatus *status = oc_ep_file_read(api, where, "target", allocator, 0, &data);
    if (status == NULL) {
        sum->reads++;
        sum->harm += harmless(&data) ? 0 : 1; /* no assertion while the other thread runs */
        ortcrypt_ep_context_data_release(&data);
    } else {
        api->ReleaseStatus(status);
    }
    status = oc_ep_file_write(api, where, "target", "new", 3);
    if (status == NULL) {
        sum->writes++;
    } else {
        api->ReleaseStatus(status);
    }
}

static void expect_secret(const char *path)
{
    char text[16] = {0};
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof(text), file), 6);
    assert_memory_equal(text, "secret", 6);
    (void)fclose(file);
}

static void race(bool walk)
{
    OrtAllocator *allocator = NULL;
    swapper self = {.swaps = 0};
    pthread_t thread;
    tally sum = {0, 0, 0};
    struct timespec from;
    struct timespec to;
    (void)snprintf(self.outside, sizeof(self.outside), "%s/secret", folder);
    save(self.outside, "secret");
    assert_int_equal(mkdir(in_folder("model"), 0700), 0);
    save(in_folder("model/target"), "inside");
    save(in_folder("model/other"), "inside");
    char model[96];
    (void)snprintf(model, sizeof(model), "%s/model", folder);
    const oc_ep_where where = {model, walk};
    atomic_init(&self.stop, false);
    ok(api->GetAllocatorWithDefaultOptions(&allocator));
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    assert_int_equal(pthread_create(&thread, NULL, swap, &self), 0);
    for (size_t i = 0; i < TURNS; i++) {
        turn(where, allocator, &sum);
    }
    atomic_store(&self.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    print_message("%s: %d reads and %d writes against %zu swaps in %.1f s: %zu reads and %zu writes went through\n",
                  walk ? "walk" : "kernel", (int)TURNS, (int)TURNS, self.swaps,
                  (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9, sum.reads, sum.writes);
    assert_int_equal(sum.harm, 0);
    assert_true(self.swaps > TURNS / 10 && sum.reads > 0 && sum.writes > 0);
    expect_secret(self.outside);
    oc_test_rm_rf(in_folder("model"));
    assert_true(unlink(in_folder("spare")) == 0 || rmdir(in_folder("spare")) == 0);
    assert_int_equal(unlink(self.outside), 0);
    assert_int_equal(entries(folder), 0);
}

static void test_kernel(void **state)
{
    (void)state;
    race(false);
}

static void test_walk(void **state)
{
    (void)state;
    race(true);
}

static int setup_on_tmpfs(void **state)
{
    enum { TMPFS = 0x01021994 };
    struct statfs about;
    const int done = setup(state);
    if (done == 0 && statfs("/dev/shm", &about) == 0 && (long)about.f_type == TMPFS) {
        assert_int_equal(rmdir(folder), 0);
        (void)snprintf(folder, sizeof(folder), "/dev/shm/ortcrypt-epctx-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return done;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_walk),
    };
    return cmocka_run_group_tests_name("ep_context races", tests, setup_on_tmpfs, teardown);
}
