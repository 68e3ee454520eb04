/* One runtime, several threads: EP libraries are registered while others look at the devices. */
#include "test_flow_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "runtime/runtime.h"

enum { LIBRARIES = 24, LOOKERS = 2 };

typedef struct scene {
    ortcrypt_runtime *runtimes[LOOKERS]; /* two objects over one OrtEnv */
    atomic_bool done;
} scene;

typedef struct looker {
    scene *scene;
    ortcrypt_runtime *runtime;
    size_t looks;
    bool failed;
} looker;

static void *look(void *state)
{
    looker *const l = state;

    while (!l->failed && (!atomic_load(&l->scene->done) || l->looks == 0)) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        const OrtEpDevice **devices = NULL;
        const char *why = NULL;
        char *text = NULL;
        size_t count = 0;
        l->failed = oc_runtime_devices(l->runtime, "CPUExecutionProvider", &devices, &count, &err) != ORTCRYPT_OK || count != 1 ||
                    ortcrypt_runtime_describe(l->runtime, NULL, &text, &err) != ORTCRYPT_OK ||
                    oc_runtime_route(l->runtime, "NobodyExecutionProvider", &why) == OC_ROUTE_NATIVE;
        free(devices);
        ortcrypt_free(text, 0);
        l->looks++;
    }
    return NULL;
}

static char *copy_of(const char *library, const char *dir, size_t number)
{
    char *const path = oc_test_format("%s/ep%zu.so", dir, number);
    size_t len = 0;
    uint8_t *const bytes = oc_test_read_file(library, &len);

    oc_test_write_file(path, bytes, len);
    free(bytes);
    return path;
}

/* ORT's list of devices moves when it grows: who walks it must not meet that. */
static void registering_while_others_look(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    char library[1024];
    char *paths[LIBRARIES];
    pthread_t threads[LOOKERS];
    looker lookers[LOOKERS];
    scene s = {.done = false};

    (void)state;
    rig_reference_path(library);
    char *const dir = oc_test_tmpdir();
    for (size_t i = 0; i < LIBRARIES; i++) {
        paths[i] = copy_of(library, dir, i);
    }
    for (size_t i = 0; i < LOOKERS; i++) {
        s.runtimes[i] = rig_runtime("1.32.0");
        lookers[i] = (looker){.scene = &s, .runtime = s.runtimes[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, look, &lookers[i]), 0);
    }
    for (size_t i = 0; i < LIBRARIES; i++) {
        char *const name = oc_test_format("ep%zu", i);
        assert_ok(ortcrypt_runtime_register_ep(s.runtimes[0], name, paths[i], &err), &err);
        free(name);
        free(paths[i]);
        (void)sched_yield();
    }
    atomic_store(&s.done, true);
    for (size_t i = 0; i < LOOKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(lookers[i].failed);
    }
    for (size_t i = 0; i < LOOKERS; i++) {
        rig_runtime_close(s.runtimes[i]);
    }
    oc_test_rm_rf(dir);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registering_while_others_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
