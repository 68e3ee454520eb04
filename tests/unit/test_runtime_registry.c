/* Callbacks by id, the library's side: unknown and closed ids, callbacks that run while theirs are closed, many threads. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/registry.h"
#include "support/support.h"

/* A status is the address of its text. */
static OrtStatus *ORT_API_CALL create_status(OrtErrorCode code, const char *text) NO_EXCEPTION
{
    (void)code;
    union {
        const char *text;
        OrtStatus *status;
    } made = {text};
    return made.status;
}

static const OrtApi api = {.CreateStatus = create_status};

static void refused(const OrtStatus *status, const char *part)
{
    assert_non_null(status);
    assert_non_null(strstr((const char *)(const void *)status, part));
}

static oc_registration *make(uint8_t first, OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write, void *state)
{
    const uint8_t random[OC_REGISTRATION_RANDOM_LEN] = {first, 0xab};
    oc_registration *made = NULL;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(oc_registration_new(&made, random, read, write, state, &err), &err);
    return made;
}

static OrtStatus *ORT_API_CALL count_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *size)
{
    (void)name, (void)allocator, (void)buffer;
    *size = (size_t)++*(int *)state;
    return NULL;
}

static OrtStatus *ORT_API_CALL count_write(void *state, const char *name, const void *buffer, size_t size)
{
    (void)name, (void)buffer;
    *(int *)state += (int)size;
    return NULL;
}

static void ids_lead_to_their_callbacks(void **state)
{
    const ortcrypt_ep_registry *const table = oc_registry_table();
    int first = 0;
    int second = 10;
    size_t size = 0;
    void *buffer = NULL;
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];

    (void)state;
    assert_int_equal(table->struct_size, sizeof(*table));
    oc_registration *const a = make(1, count_read, NULL, &first);
    oc_registration *const b = make(2, NULL, count_write, &second);
    assert_string_equal(oc_registration_id(a), "01ab0000000000000000000000000000");
    /* both, or the EP would use a file for the other */
    assert_int_equal(table->callbacks(oc_registration_id(a)), 3);
    assert_int_equal(table->callbacks(oc_registration_id(b)), 3);
    assert_int_equal(table->callbacks("03ab0000000000000000000000000000"), 0);
    assert_int_equal(table->callbacks(""), 0);
    assert_int_equal(table->callbacks(NULL), 0);
    assert_null(table->read(oc_registration_id(a), &api, "n", NULL, &buffer, &size));
    assert_int_equal(size, 1);
    assert_int_equal(second, 10);
    assert_null(table->write(oc_registration_id(b), &api, "n", "xx", 2));
    assert_int_equal(second, 12);
    refused(table->write(oc_registration_id(a), &api, "n", "xx", 2), "this session loads");
    refused(table->read(oc_registration_id(b), &api, "n", NULL, &buffer, &size), "this session compiles");
    refused(table->read("nobody", &api, "n", NULL, &buffer, &size), "not there any more");
    refused(table->read(NULL, &api, "n", NULL, &buffer, &size), "not there any more");
    refused(table->write(NULL, &api, "n", "xx", 2), "not there any more");
    memcpy(id, oc_registration_id(a), sizeof(id));
    oc_registration_end(a);
    assert_int_equal(table->callbacks(id), 0);
    refused(table->read(id, &api, "n", NULL, &buffer, &size), "was closed");
    assert_null(table->write(oc_registration_id(b), &api, "n", "xx", 2));
    oc_registration_end(b);
    oc_registration_end(NULL);
    assert_int_equal(first, 1);
}

typedef struct waiting {
    oc_registration *registration;
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    sem_t entered;
    sem_t go_on;
    int alive; /* what the callback uses: gone once the registration ended */
} waiting;

static OrtStatus *ORT_API_CALL wait_inside(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *size)
{
    waiting *const w = state;
    (void)name, (void)allocator, (void)buffer;
    (void)sem_post(&w->entered);
    (void)sem_wait(&w->go_on);
    *size = (size_t)w->alive;
    return NULL;
}

static void *call(void *argument)
{
    waiting *const w = argument;
    size_t size = 0;
    void *buffer = NULL;
    OrtStatus *const status = oc_registry_table()->read(w->id, &api, "n", NULL, &buffer, &size);
    return status == NULL && size == 1 ? w : NULL;
}

static void *end(void *argument)
{
    waiting *const w = argument;
    oc_registration_end(w->registration);
    w->alive = 0;
    return NULL;
}

static void closing_waits_for_what_runs(void **state)
{
    waiting w = {.alive = 1};
    pthread_t caller;
    pthread_t closer;
    void *result = NULL;

    (void)state;
    w.registration = make(7, wait_inside, NULL, &w);
    memcpy(w.id, oc_registration_id(w.registration), sizeof(w.id));
    assert_int_equal(sem_init(&w.entered, 0, 0), 0);
    assert_int_equal(sem_init(&w.go_on, 0, 0), 0);
    assert_int_equal(pthread_create(&caller, NULL, call, &w), 0);
    (void)sem_wait(&w.entered);
    assert_int_equal(pthread_create(&closer, NULL, end, &w), 0);
    while (oc_registry_table()->callbacks(w.id) != 0) { /* until closing has begun: new calls are refused from here on */
    }
    (void)sem_post(&w.go_on);
    assert_int_equal(pthread_join(caller, &result), 0);
    assert_ptr_equal(result, &w); /* what it used was there to its end */
    assert_int_equal(pthread_join(closer, NULL), 0);
    assert_int_equal(w.alive, 0);
    (void)sem_destroy(&w.entered);
    (void)sem_destroy(&w.go_on);
}

static OrtStatus *ORT_API_CALL add(void *state, const char *name, const void *buffer, size_t size)
{
    int *const counters = state;
    (void)name, (void)buffer;
    (void)__atomic_fetch_add(counters, (int)size, __ATOMIC_RELAXED);
    return NULL;
}

/* Registers, is called, ends, a thousand times beside three others. */
static void *churn(void *argument)
{
    const uint8_t first = (uint8_t)(uintptr_t)argument;
    int ok = 0;
    for (int i = 0; i < 1000; i++) {
        const uint8_t random[OC_REGISTRATION_RANDOM_LEN] = {first, (uint8_t)i, (uint8_t)(i >> 8)};
        int count = 0;
        oc_registration *made = NULL;
        if (oc_registration_new(&made, random, NULL, add, &count, NULL) == ORTCRYPT_OK &&
            oc_registry_table()->write(oc_registration_id(made), &api, "n", "x", 1) == NULL) {
            ok += count;
        }
        oc_registration_end(made);
    }
    return ok == 1000 ? argument : NULL;
}

static void many_threads(void **state)
{
    pthread_t threads[4];
    (void)state;
    for (uintptr_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
}

static void libraries_that_take_no_ids(void **state)
{
    (void)state;
    assert_false(oc_registry_attach("/nowhere/lib.so"));
    assert_false(oc_registry_attach("libm.so.6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_lead_to_their_callbacks),
        cmocka_unit_test(closing_waits_for_what_runs),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(libraries_that_take_no_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
