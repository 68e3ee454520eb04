/*
 * An application whose own thread enters the sandbox: every call of the library that writes works from there, and from threads
 * it starts (as an EP's are), on both runtimes. The main thread stays outside and looks at what came of it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "os/landlock.h"
#include "ortcrypt/sandbox.h"
#include "test_flow_bed.h"

#define WRITERS 4
#define NAMES 8

typedef struct story {
    bed b;
    ortcrypt_output *output; /* while the writers write */
    ortcrypt_sandbox_report report;
    ortcrypt_error err;
    const char *step; /* what the thread was doing when it ended; NULL: all of it */
    char *compiled;
    char *made;
    char *plain;
    char *cache;
} story;

typedef struct writer {
    story *s;
    unsigned number;
    unsigned failures;
} writer;

static bool can_make(const story *s)
{
    char *const path = oc_test_format("%s/mine", s->b.dir);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    free(path);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void *write_blobs(void *state)
{
    writer *const w = state;
    char name[32];

    for (unsigned i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof name, "blob-%u-%u", w->number, i);
        w->failures += ortcrypt_write_named(w->s->output, name, name, strlen(name)) != NULL ? 1 : 0;
    }
    w->failures += can_make(w->s) ? 1 : 0;
    return NULL;
}

/* Callbacks on threads that an EP could have started, then given up: nothing of it may stay. */
static bool write_from_threads(story *s, const ortcrypt_compile_options *options)
{
    pthread_t threads[WRITERS];
    writer writers[WRITERS];
    unsigned failures = 0;

    if (ortcrypt_output_open(&s->output, s->b.runtime, s->b.bundle, s->b.keyring, options, &s->err) != ORTCRYPT_OK) {
        return false;
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.s = s, .number = i};
        failures += pthread_create(&threads[i], NULL, write_blobs, &writers[i]) != 0 ? 1 : 0;
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        failures += pthread_join(threads[i], NULL) != 0 ? 1 : 0;
        failures += writers[i].failures;
    }
    ortcrypt_output_close(s->output);
    return failures == 0;
}

static ortcrypt_status run_just_in_time(story *s, ortcrypt_bundle *bundle)
{
    static const uint8_t key[32] = {1};
    ortcrypt_session *session = NULL;
    const ortcrypt_session_options options = {.struct_size = sizeof options,
                                              .ep = EP,
                                              .ep_library = s->b.library,
                                              .cache = s->cache,
                                              .machine_key = key,
                                              .machine_key_len = sizeof key};
    const ortcrypt_status st = ortcrypt_session_open(&session, s->b.runtime, bundle, &options, &s->err);
    ortcrypt_session_close(session);
    return st;
}

/* No cmocka in here: it may end the main thread alone. */
static void *live_inside(void *state)
{
    story *const s = state;
    ortcrypt_bundle *bundle = NULL;
    ortcrypt_compile_options options = compile_options(&s->b);

    s->step = "entering";
    if (ortcrypt_sandbox_enter(NULL, &s->report, &s->err) != ORTCRYPT_OK || (s->report.files && can_make(s))) {
        return NULL;
    }
    s->step = "the just-in-time cache";
    if (ortcrypt_bundle_open(&bundle, s->b.bundle, s->b.keyring, NULL, &s->err) != ORTCRYPT_OK ||
        run_just_in_time(s, bundle) != ORTCRYPT_OK) {
        return NULL;
    }
    s->step = "decrypting";
    if (ortcrypt_bundle_decrypt(bundle, s->plain, NULL, &s->err) != ORTCRYPT_OK ||
        ortcrypt_bundle_close(bundle, &s->err) != ORTCRYPT_OK) {
        return NULL;
    }
    s->step = "encrypting";
    if (ortcrypt_encrypt(s->b.model, s->made, s->b.keyring, NULL, NULL, &s->err) != ORTCRYPT_OK) {
        return NULL;
    }
    s->step = "writing from threads";
    if (!write_from_threads(s, &options)) {
        return NULL;
    }
    s->step = "compiling into the bundle and to a new one";
    if (ortcrypt_compile(s->b.runtime, s->b.bundle, s->b.keyring, &options, NULL, &s->err) != ORTCRYPT_OK) {
        return NULL;
    }
    options.out_path = s->compiled;
    options.embed = true;
    if (ortcrypt_compile(s->b.runtime, s->b.bundle, s->b.keyring, &options, NULL, &s->err) == ORTCRYPT_OK) {
        s->step = NULL;
    }
    return NULL;
}

static unsigned files_below(const char *folder)
{
    unsigned count = 0;
    char *const command = oc_test_format("find '%s' -type f | wc -l", folder);
    FILE *const pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%u", &count), 1);
    (void)pclose(pipe);
    free(command);
    return count;
}

static void all_writing_works_inside(void **state)
{
    static const rig_model model = {.external = true};
    (void)state;
    for (size_t i = 0; i < RIG_VERSION_COUNT; i++) {
        story s = {.err = ORTCRYPT_ERROR_INIT};
        pthread_t thread;
        bed_open(&s.b, rig_versions[i], &model);
        s.compiled = oc_test_format("%s/compiled.ortc", s.b.dir);
        s.made = oc_test_format("%s/made.ortc", s.b.dir);
        s.plain = oc_test_format("%s/plain", s.b.dir);
        s.cache = oc_test_format("%s/cache/deep", s.b.dir);
        assert_int_equal(pthread_create(&thread, NULL, live_inside, &s), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (s.step != NULL) {
            fail_msg("%s, %s: %s", rig_versions[i], s.step, s.err.message);
        }
        assert_int_equal(s.report.files, oc_landlock_abi() > 0);
        assert_true(s.report.other_threads >= 1); /* this one */
        assert_true(files_below(s.cache) >= 5);
        assert_int_equal(files_below(s.plain), 2);
        char *const unpublished = oc_test_format("%s/tmp", s.b.bundle);
        assert_int_equal(files_below(unpublished), 0);
        const ortcrypt_session_options run = {.struct_size = sizeof run, .ep = EP};
        assert_same_output(&s.b, &run, "compiled inside");
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        assert_ok(ortcrypt_bundle_verify(s.made, s.b.keyring, NULL, NULL, &err), &err);
        assert_ok(ortcrypt_bundle_verify(s.compiled, s.b.keyring, NULL, NULL, &err), &err);
        assert_true(can_make(&s)); /* out here */
        free(unpublished);
        free(s.compiled);
        free(s.made);
        free(s.plain);
        free(s.cache);
        bed_close(&s.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_writing_works_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
