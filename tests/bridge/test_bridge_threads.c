/* The bridge under many sessions at once: each with callbacks of its own, made and closed beside others. */
#include <pthread.h>

#include "bridge/bridge_rig.h"

typedef struct worker {
    pthread_t thread;
    const bed *bed;
    const OrtEpDevice *device;
    uint8_t number;
    size_t done;
} worker;

/* Sessions with an id of their own each, one after the other, beside those of three other threads. */
static void *make_sessions(void *argument)
{
    worker *const w = argument;
    const OrtApi *const api = w->bed->api;
    for (uint8_t i = 0; i < 20; i++) {
        const uint8_t random[OC_REGISTRATION_RANDOM_LEN] = {w->number, i, 0x77};
        oc_registration *registration = NULL;
        OrtSessionOptions *options = NULL;
        OrtSession *session = NULL;
        bool good = oc_registration_new(&registration, random, count_read, NULL, &reads, NULL) == ORTCRYPT_OK &&
                    api->CreateSessionOptions(&options) == NULL &&
                    api->AddSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, oc_registration_id(registration)) == NULL &&
                    api->SessionOptionsAppendExecutionProvider_V2(options, w->bed->env, &w->device, 1, NULL, NULL, 0) == NULL &&
                    api->CreateSession(w->bed->env, w->bed->model, options, &session) == NULL;
        api->ReleaseSession(session);
        api->ReleaseSessionOptions(options);
        oc_registration_end(registration);
        w->done += good ? 1 : 0;
    }
    return NULL;
}

static void sessions_from_many_threads(void **state)
{
    (void)state;
    bed b = open_bed("1.32.0");
    const OrtEpDevice *const *all = NULL;
    worker workers[4] = {{.bed = &b, .number = 1}, {.bed = &b, .number = 2}, {.bed = &b, .number = 3}, {.bed = &b, .number = 4}};
    size_t count = 0;
    ok(&b, enter(&b, "Fake", fake));
    assert_true(oc_registry_attach(bridge));
    ok(&b, b.api->GetEpDevices(b.env, &all, &count));
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < count; k++) {
            workers[i].device = strcmp(b.api->EpDevice_EpName(all[k]), "Fake") == 0 ? all[k] : workers[i].device;
        }
        assert_int_equal(pthread_create(&workers[i].thread, NULL, make_sessions, &workers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].done, 20);
    }
    assert_int_equal(look(fake)->eps, 0);
    assert_int_equal(look(fake)->created, 80);
    leave_bridge(&b, "Fake");
    assert_false(loaded(fake));
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_from_many_threads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
