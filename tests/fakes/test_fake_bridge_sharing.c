/* Sessions behind the bridge that meet: addresses that are used again, contexts that are shared. */
#include <pthread.h>

#include "fakes/fake_bridge.h"

/* An EP's address is used again while the last one is released. */

static scene *current;
static OrtSessionOptions *second_options;
static OrtEp *second_ep;
static OrtStatus *second_status;

static void create_second(OrtEpFactory *factory)
{
    (void)factory;
    second_status = create(current->factory, second_options, &second_ep);
}

static void an_address_that_is_used_again(void **state)
{
    OrtEp *ep = NULL;

    (void)state;
    scene s = open_scene(PROVEN, "Fake");
    current = &s;
    OrtSessionOptions *const options = make_options(&s, 0, false);
    second_options = make_options(&s, 1, false);
    ok(create(s.factory, options, &ep));
    s.ep->in_release = create_second; /* as another thread may, once the address is free */
    s.factory->ReleaseEp(s.factory, ep);
    ok(second_status);
    assert_ptr_equal(second_ep, ep);
    ok(s.ep->write(s.ep->write_state, "a", "x", 1)); /* the live session's callbacks work */
    assert_int_equal(writes[1], 1);
    s.factory->ReleaseEp(s.factory, second_ep);
    refused(s.ep->write(s.ep->write_state, "a", "x", 1), "session that has ended");
    s.api->ReleaseSessionOptions(options);
    s.api->ReleaseSessionOptions(second_options);
    close_scene(&s);
}

/* Sharing: a session without callbacks would write what one with callbacks compiled. */

static void sharing_without_callbacks(void **state)
{
    OrtEp *first = NULL;
    OrtEp *second = NULL;

    (void)state;
    scene s = open_scene(30, "Fake");
    OrtSessionOptions *const with = make_options(&s, 0, true);
    OrtSessionOptions *const without = make_options(&s, -1, true);
    ok(create(s.factory, without, &second)); /* nobody had any yet */
    s.factory->ReleaseEp(s.factory, second);
    ok(create(s.factory, with, &first));
    refused(create(s.factory, without, &second), "must not share contexts");
    s.factory->ReleaseEp(s.factory, first);
    refused(create(s.factory, without, &second), "must not share contexts"); /* what is shared outlives a session */
    s.api->ReleaseSessionOptions(with);
    s.api->ReleaseSessionOptions(without);
    close_scene(&s);
}

/* Both at once: the one without callbacks comes while the EP of the other is being made. */
static void sharing_at_the_same_time(void **state)
{
    OrtEp *first = NULL;

    (void)state;
    scene s = open_scene(30, "Fake");
    current = &s;
    OrtSessionOptions *const with = make_options(&s, 0, true);
    second_options = make_options(&s, -1, true);
    s.ep->in_create = create_second;
    ok(create(s.factory, with, &first));
    refused(second_status, "must not share contexts");
    s.factory->ReleaseEp(s.factory, first);
    s.api->ReleaseSessionOptions(with);
    s.api->ReleaseSessionOptions(second_options);
    close_scene(&s);
}

/* One library under two names is loaded once: what it shares is one. */
static void sharing_under_two_names(void **state)
{
    OrtEp *first = NULL;
    OrtEp *second = NULL;

    (void)state;
    scene a = open_scene(30, "Fake");
    const scene b = open_scene(30, "Other");
    OrtSessionOptions *const with = make_options(&a, 0, true);
    ok(create(a.factory, with, &first));
    OrtSessionOptions *const without = make_options(&b, -1, true);
    refused(create(b.factory, without, &second), "must not share contexts");
    a.factory->ReleaseEp(a.factory, first);
    a.api->ReleaseSessionOptions(with);
    b.api->ReleaseSessionOptions(without);
    (void)dlclose(b.library);
    ok(bridge.release(b.factory));
    close_scene(&a);
}

/* ---- Threads: sessions with different ids come and go, each with its own callbacks, wrapped or not. ---- */

enum { THREADS = 4, ROUNDS = 300 };

typedef struct worker {
    const scene *s;
    int id;
    bool by_runtime; /* ORT's own callback too: on 1.31 and newer the EP is wrapped then */
    size_t failures;
} worker;

static void *come_and_go(void *state)
{
    worker *const w = state;
    ortcrypt_ep_context_api six;
    OrtStatus *const found = ortcrypt_ep_context_api_get(w->s->f.base, &six);

    for (int i = 0; i < ROUNDS && found == NULL; i++) {
        OrtEp *ep = NULL;
        OrtSessionOptions *const options = make_options(w->s, w->id, false);
        OrtStatus *status = w->by_runtime ? six.SessionOptions_SetEpContextDataReadFunc(options, runtime_read, w) : NULL;
        if (status == NULL) {
            status = create(w->s->factory, options, &ep);
        }
        if (status == NULL && !w->by_runtime) {
            const fake_ep *const mine = (const fake_ep *)(const void *)ep;
            status = mine->write(mine->write_state, "a", "x", 1);
        }
        if (status == NULL) {
            w->s->factory->ReleaseEp(w->s->factory, ep);
        } else {
            w->failures++;
            w->s->api->ReleaseStatus(status);
        }
        w->s->api->ReleaseSessionOptions(options);
    }
    return NULL;
}

static void sessions_of_many_threads(void **state)
{
    static const unsigned versions[] = {27, 30, PROVEN};
    pthread_t threads[THREADS];

    (void)state;
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
        scene s = open_scene(versions[v], "Fake");
        worker workers[THREADS];
        s.ep->many = true;
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){.s = &s, .id = i % IDS, .by_runtime = i == THREADS - 1 && versions[v] >= NAMES};
            assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(workers[i].failures, 0);
        }
        close_scene(&s);
    }
    assert_int_equal(writes[0], 2 * ROUNDS * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_address_that_is_used_again, reset),
        cmocka_unit_test_setup(sharing_without_callbacks, reset),
        cmocka_unit_test_setup(sharing_at_the_same_time, reset),
        cmocka_unit_test_setup(sharing_under_two_names, reset),
        cmocka_unit_test_setup(sessions_of_many_threads, reset),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
