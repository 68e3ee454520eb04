/*
 * Every allocation of src/ep_context's files and names fails once: the call says so, nothing half written stays, no memory and no
 * descriptor is kept. The program's own malloc stands before libc's, so under a sanitizer there is nothing to run.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ep_context/internal.h"
#include "support/failing_malloc.h"

#ifdef SANITIZED
int main(void)
{
    return 0;
}
#else

/* An OrtApi of the three calls that files need. A status is any address. */
static int some_status;

static OrtStatus *ORT_API_CALL create_status(OrtErrorCode code, const char *text) NO_EXCEPTION
{
    (void)code, (void)text;
    return (OrtStatus *)(void *)&some_status;
}

static void *ORT_API_CALL take(OrtAllocator *self, size_t size)
{
    (void)self;
    return malloc(size);
}

static void ORT_API_CALL give(OrtAllocator *self, void *memory)
{
    (void)self;
    free(memory);
}

static OrtStatus *ORT_API_CALL take_for(OrtAllocator *allocator, size_t size, void **out) NO_EXCEPTION
{
    *out = allocator->Alloc(allocator, size);
    return *out != NULL ? NULL : (OrtStatus *)(void *)&some_status;
}

static size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *const open = opendir(path);
    assert_non_null(open);
    while (readdir(open) != NULL) {
        count++;
    }
    (void)closedir(open);
    return count;
}

typedef struct bed {
    OrtApi api;
    OrtAllocator allocator;
    char folder[64];
    char model[80];
    oc_ep_where where;
} bed;

static void save(const char *path, const char *text)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    (void)fwrite(text, 1, strlen(text), file);
    assert_int_equal(fclose(file), 0);
}

static void bed_open(bed *b, bool walk)
{
    char path[128];
    char text[128];
    memset(b, 0, sizeof(*b));
    b->api.CreateStatus = create_status;
    b->api.AllocatorAlloc = take_for;
    b->allocator.Alloc = take;
    b->allocator.Free = give;
    (void)snprintf(b->folder, sizeof(b->folder), "/tmp/ortcrypt-epmem-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    (void)snprintf(b->model, sizeof(b->model), "%s/a", b->folder);
    assert_int_equal(mkdir(b->model, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/real.bin", b->model);
    save(path, "old");
    (void)snprintf(path, sizeof(path), "%s/link", b->folder);
    (void)snprintf(text, sizeof(text), "%s/../a/real.bin", b->model);
    assert_int_equal(symlink(text, path), 0);
    b->where.folder = b->folder;
    b->where.walk = walk;
}

static void bed_close(bed *b)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/link", b->folder);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof(path), "%s/real.bin", b->model);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(b->model), 0);
    assert_int_equal(rmdir(b->folder), 0);
}

/* One call with its n-th allocation failing; true when it had one. */
static bool try_once(bed *b, bool writing, long n)
{
    const char *const name = "a/../a/../link"; /* parts, "..", an absolute link with ".." in it */
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    const size_t files = count_entries(b->model);
    const size_t descriptors = count_entries("/proc/self/fd");
    const long before = live;
    failed = false;
    until_failure = n;
    counting = true;
    OrtStatus *const status = writing ? oc_ep_file_write(&b->api, b->where, name, "new", 3)
                                      : oc_ep_file_read(&b->api, b->where, name, &b->allocator, 0, &data);
    counting = false;
    assert_true((status != NULL) == failed);
    assert_true(writing || (data.memory != NULL) == !failed);
    ortcrypt_ep_context_data_release(&data);
    assert_int_equal(live, before);
    assert_int_equal(count_entries(b->model), files);
    assert_int_equal(count_entries("/proc/self/fd"), descriptors);
    return failed;
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        bed b;
        long n = 0;
        bed_open(&b, way % 2 == 1);
        while (try_once(&b, way >= 2, n)) {
            n++;
        }
        print_message("%s by %s: %ld allocations\n", way >= 2 ? "writing" : "reading", way % 2 == 1 ? "the walk" : "the kernel", n);
        assert_true(n > 10);
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation),
    };
    return cmocka_run_group_tests_name("ep_context memory", tests, NULL, NULL);
}

#endif
