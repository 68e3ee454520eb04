/*
 * tests/support/failing_malloc.h: the program's own malloc before libc's, so that the n-th allocation of a call fails, those of
 * the libraries below it included. Included by one file of a program. Under a sanitizer, which does the same, SANITIZED is
 * defined and there is nothing to run.
 *
 * Call order: counting = true, until_failure = n, failed = false -> the call under test -> failed, live.
 */
#ifndef OC_TESTS_FAILING_MALLOC_H
#define OC_TESTS_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void __libc_free(void *memory);

/* The build hides symbols; hidden ones would replace the allocator for the program alone, not for its libraries. */
#define SEEN __attribute__((visibility("default")))

static bool counting;
static long until_failure = -1; /* allocations that still succeed; < 0: all */
static bool all_after_it;       /* false: one alone fails, and what comes after it must clean up */
static bool failed;             /* out: one did */
static long live;               /* out: blocks taken and not given back */

static bool fails(void)
{
    if (!counting || until_failure < 0 || until_failure-- > 0) {
        return false;
    }
    until_failure = all_after_it ? 0 : -1;
    failed = true;
    return true;
}

SEEN void *malloc(size_t size)
{
    void *const memory = fails() ? NULL : __libc_malloc(size);
    live += memory != NULL;
    return memory;
}

SEEN void *calloc(size_t count, size_t size)
{
    void *const memory = fails() ? NULL : __libc_calloc(count, size);
    live += memory != NULL;
    return memory;
}

SEEN void *realloc(void *memory, size_t size)
{
    void *const grown = fails() ? NULL : __libc_realloc(memory, size);
    live += grown != NULL && memory == NULL;
    return grown;
}

SEEN void free(void *memory)
{
    live -= memory != NULL;
    __libc_free(memory);
}

#endif
#endif
