/* A cache that several processes, bundles and users share: its size, its locks, its folders and the machine's key. */
#include "test_flow_cache_bed.h"

static void limits(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_session *session = NULL;
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    run_cached(&p);
    char *const first = entry_of(&p);
    next_state(&p);
    char *const second = entry_of(&p);
    /* both fit */
    run_cached(&p);
    assert_int_equal(access(first, F_OK), 0);
    /* the oldest goes first, and not this one while it is in use */
    next_state(&p);
    char *const third = entry_of(&p);
    p.run.cache_max_len = 1;
    ortcrypt_bundle *const bundle = bed_bundle(&p.b);
    assert_ok(ortcrypt_session_open(&session, p.b.runtime, bundle, &p.run, &err), &err);
    assert_int_equal(access(first, F_OK), -1);
    assert_int_equal(access(second, F_OK), -1);
    assert_int_equal(access(third, F_OK), 0);
    free(rig_run(ortcrypt_runtime_api(p.b.runtime), ortcrypt_session_ort(session)));
    ortcrypt_session_close(session);
    assert_int_equal(access(third, F_OK), -1); /* over the limit by itself */
    close_bundle(bundle);
    free(first);
    free(second);
    free(third);
    place_close(&p);
}

/* Used lately is newer: that one stays. */
static void used_lately_stays(void **state)
{
    const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    const struct timespec before[2] = {{2000, 0}, {2000, 0}};
    struct stat info;
    uint64_t len = 0;
    place p;
    place other;

    (void)state;
    place_open(&p, "1.32.0");
    place_open(&other, "1.32.0");
    free(other.cache);
    other.cache = strdup(p.cache);
    other.run.cache = other.cache;
    run_cached(&p);
    run_cached(&other);
    char *const a = entry_of(&p);
    char *const b = entry_of(&other);
    assert_int_equal(utimensat(AT_FDCWD, a, long_ago, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, b, before, 0), 0);
    run_cached(&p); /* now b is the one unused for longest */
    assert_int_equal(stat(a, &info), 0);
    assert_true(info.st_mtim.tv_sec > 2000);
    char *const object = first_object(a);
    assert_int_equal(stat(object, &info), 0);
    len = (uint64_t)info.st_size;
    next_state(&p);
    p.run.cache_max_len = 3 * len; /* room for two of these, not for three */
    run_cached(&p);
    assert_int_equal(access(a, F_OK), 0);
    assert_int_equal(access(b, F_OK), -1);
    free(object);
    free(a);
    free(b);
    place_close(&other);
    place_close(&p);
}

static void another_process_takes_too_long(void **state)
{
    ortcrypt_bundle_info info;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    ortcrypt_bundle *const bundle = bed_bundle(&p.b);
    ortcrypt_bundle_get_info(bundle, &info);
    close_bundle(bundle);
    char *const folder = oc_test_format("%s/%s", p.cache, info.bundle_id);
    char *const lock = oc_test_format("%s/lock", folder);
    assert_ok(oc_folders_make(folder, &err), &err);
    const int fd = open(lock, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    p.run.cache_wait_ms = 50;
    run_from(&p, "bundle", "source");
    assert_non_null(strstr(notices, "compiled in memory, and nothing is kept: another process"));
    assert_int_equal(close(fd), 0);
    run_cached(&p);
    free(folder);
    free(lock);
    place_close(&p);
}

static void cache_that_cannot_be_written(void **state)
{
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    free(p.cache);
    p.cache = oc_test_format("%s/below", p.b.model); /* a file is no folder */
    p.run.cache = p.cache;
    run_from(&p, "bundle", "source");
    assert_non_null(strstr(notices, "compiled in memory, and nothing is kept"));
    place_close(&p);
}

static ortcrypt_status open_status(const place *p, ortcrypt_error *err)
{
    ortcrypt_session *session = NULL;
    ortcrypt_bundle *const bundle = bed_bundle(&p->b);
    const ortcrypt_status st = ortcrypt_session_open(&session, p->b.runtime, bundle, &p->run, err);

    ortcrypt_session_close(session);
    close_bundle(bundle);
    return st;
}

static void machine_key_files(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    struct stat info;
    place p;

    (void)state;
    place_open(&p, "1.32.0");
    char *const file = oc_test_format("%s/share/ortcrypt/machine.key", p.b.dir);
    char *const link_name = oc_test_format("%s/link", p.b.dir);
    p.run.machine_key_file = file;
    assert_st(open_status(&p, &err), &err, ORTCRYPT_E_INVALID); /* bytes and a file */
    p.run.machine_key = NULL;
    run_cached(&p);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(info.st_size, OC_MACHINE_KEY_LEN);
    run_cached(&p);
    assert_string_equal(notices, "");
    assert_int_equal(chmod(file, 0640), 0);
    assert_st(open_status(&p, &err), &err, ORTCRYPT_E_NO_KEY);
    assert_non_null(strstr(err.message, "other users have rights"));
    assert_int_equal(chmod(file, 0600), 0);
    assert_int_equal(symlink(file, link_name), 0);
    p.run.machine_key_file = link_name;
    assert_st(open_status(&p, &err), &err, ORTCRYPT_E_NO_KEY);
    p.run.machine_key_file = file;
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 12345, (gid_t)-1), 0);
        assert_st(open_status(&p, &err), &err, ORTCRYPT_E_NO_KEY);
        assert_non_null(strstr(err.message, "another user"));
        assert_int_equal(chown(file, 0, (gid_t)-1), 0);
    }
    assert_int_equal(truncate(file, 31), 0);
    assert_st(open_status(&p, &err), &err, ORTCRYPT_E_NO_KEY);
    p.run.machine_key_file = NULL;
    assert_st(open_status(&p, &err), &err, ORTCRYPT_E_INVALID);
    p.run.machine_key = key_a;
    p.run.machine_key_len = 31;
    assert_st(open_status(&p, &err), &err, ORTCRYPT_E_INVALID);
    free(file);
    free(link_name);
    place_close(&p);
}

/* A whole process that opens a session: an exit code, since cmocka belongs to the parent. Secret memory is wiped on fork: a keyring is new. */
static int child(const place *p, const char *identity, int go)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_runtime *runtime = NULL;
    ortcrypt_keyring *keyring = NULL;
    ortcrypt_session *session = NULL;
    ortcrypt_bundle *bundle = NULL;
    char *plan = NULL;
    char path[1024];
    char byte;

    const bool ok = rig_runtime_path(path, "1.32.0") && ortcrypt_runtime_open(&runtime, path, NULL, &err) == ORTCRYPT_OK &&
                    ortcrypt_keyring_new(&keyring, &err) == ORTCRYPT_OK &&
                    ortcrypt_keyring_add_identity(keyring, identity, strlen(identity), &err) == ORTCRYPT_OK &&
                    ortcrypt_bundle_open(&bundle, p->b.bundle, keyring, NULL, &err) == ORTCRYPT_OK &&
                    read(go, &byte, 1) == 0 && /* ends for both at once */
                    ortcrypt_session_open(&session, runtime, bundle, &p->run, &err) == ORTCRYPT_OK &&
                    ortcrypt_session_plan(session, &plan, &err) == ORTCRYPT_OK && strstr(plan, "\"from\":\"cache\"") != NULL;
    if (!ok) {
        (void)fprintf(stderr, "a child: %s\n", plan != NULL ? plan : err.message);
    }
    return ok ? 0 : 1;
}

static void two_processes(void **state)
{
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    place p = {.b = {.dir = oc_test_tmpdir()}};
    pid_t children[2];
    int go[2];

    (void)state;
    rig_reference_path(p.b.library);
    p.b.model = oc_test_format("%s/model.onnx", p.b.dir);
    p.b.bundle = oc_test_format("%s/model.ortc", p.b.dir);
    p.cache = oc_test_format("%s/cache", p.b.dir);
    rig_model_write(p.b.dir, &small);
    assert_ok(ortcrypt_identity_generate(identity, recipient, &err), &err);
    assert_ok(ortcrypt_keyring_new(&p.b.keyring, &err), &err);
    assert_ok(ortcrypt_keyring_add_recipient(p.b.keyring, recipient, &err), &err);
    assert_ok(ortcrypt_keyring_add_identity(p.b.keyring, identity, strlen(identity), &err), &err);
    bed_encrypt(&p.b, p.b.model);
    p.run = (ortcrypt_session_options){.struct_size = sizeof(p.run), .ep = EP, .ep_library = p.b.library, .cache = p.cache,
                                       .machine_key = key_a, .machine_key_len = sizeof(key_a)};
    assert_int_equal(pipe(go), 0);
    for (size_t i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            (void)close(go[1]);
            _exit(child(&p, identity, go[0]));
        }
        assert_true(children[i] > 0);
    }
    (void)close(go[0]);
    (void)close(go[1]);
    for (size_t i = 0; i < 2; i++) {
        int result = -1;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    assert_entry(&p, key_a, 1, 1);
    oc_test_rm_rf(p.b.dir);
    free(p.b.dir);
    free(p.b.model);
    free(p.b.bundle);
    free(p.cache);
    ortcrypt_keyring_free(p.b.keyring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes), /* first: forks before a runtime is loaded */
        cmocka_unit_test(limits),
        cmocka_unit_test(used_lately_stays),
        cmocka_unit_test(another_process_takes_too_long),
        cmocka_unit_test(cache_that_cannot_be_written),
        cmocka_unit_test(machine_key_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
