/* Two runtimes, two threads, one EP library: one of them has it at a time. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "fakes/fake_load.h"

enum { ROUNDS = 200 };

typedef struct rival {
    fake f;
    const char *ep;
    atomic_int *holders; /* runtimes that have the library now */
    size_t won;
    bool failed;
} rival;

static void *contend(void *state)
{
    rival *const r = state;

    for (int i = 0; i < ROUNDS && !r->failed; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        ortcrypt_runtime *runtime = NULL;
        if (ortcrypt_runtime_adopt(&runtime, r->f.base, NULL, NULL, &err) != ORTCRYPT_OK) {
            r->failed = true;
            break;
        }
        const ortcrypt_status st = ortcrypt_runtime_register_ep(runtime, "Fake", r->ep, &err);
        if (st == ORTCRYPT_OK) {
            r->won++;
            r->failed = atomic_fetch_add(r->holders, 1) != 0;
            (void)sched_yield();
            r->f.control->libraries = 0; /* the fake does not forget them with its environment */
            (void)atomic_fetch_sub(r->holders, 1);
        } else {
            r->failed = st != ORTCRYPT_E_UNSUPPORTED || strstr(err.message, "can serve only one") == NULL;
        }
        if (ortcrypt_runtime_close(runtime, &err) != ORTCRYPT_OK) {
            r->failed = true;
        }
    }
    return NULL;
}

static void one_library_two_threads(void **state)
{
    atomic_int holders = 0;
    pthread_t threads[2];
    char ep[1024];

    (void)state;
    rig_reference_path(ep);
    rival rivals[2] = {{.f = load(30), .ep = ep, .holders = &holders}, {.f = load(PROVEN), .ep = ep, .holders = &holders}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &rivals[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_false(rivals[i].failed);
        assert_int_equal(rivals[i].f.control->live, 0);
    }
    assert_true(rivals[0].won + rivals[1].won > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_library_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
