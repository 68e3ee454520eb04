/*
 * Where the reference EP's engines go and come from: callbacks, files, names that are not to be trusted, engines that are not
 * its own, errors of the application, the compatibility string.
 */
#include "test_reference_ep_tensors.h"

static const rig_input INPUT = {"x", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4, {1, 3, 48, 192}, 0, 1};

/* The classifier, compiled with callbacks: the starting point of most tests. */
typedef struct start {
    rig_bytes model;
    rig_bytes compiled;
    rig_store *store;
} start;

static start start_new(const rig *r, const char *max_nodes, bool embed)
{
    start s = {rig_model("ppocr_cls"), {NULL, 0}, rig_store_new(r)};
    const rig_options how = {.max_nodes = max_nodes, .embed = embed, .store = s.store};
    rig_ok(r, rig_compile(r, s.model, &how, &s.compiled));
    return s;
}

static void start_free(start *s)
{
    rig_store_free(s->store);
    free(s->compiled.data);
    free(s->model.data);
}

static void compare(const rig *r, OrtSession *session, rig_bytes model)
{
    OrtSession *const cpu = rig_cpu_session(r, model);
    rig_outputs want = rig_run(r, cpu, &INPUT, 1, 5);
    rig_outputs got = rig_run(r, session, &INPUT, 1, 5);
    assert_true(rig_difference(r, &want, &got) <= 0.0);
    rig_outputs_free(r, &want);
    rig_outputs_free(r, &got);
    r->api->ReleaseSession(cpu);
}

/* With callbacks no file is made, neither in the working folder nor in HOME, and none is opened for reading. */
static void test_no_file(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const size_t at_home = rig_folder_count(r->folder);
    char folder[PATH_MAX];
    char old[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s/empty", r->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(folder), 0);
    start s = start_new(r, "20", false);
    OrtSession *session = NULL;
    rig_ok(r, rig_session(r, s.compiled, s.store, &session));
    assert_true(s.store->reads > 3);
    assert_int_equal(rig_folder_count(folder), 0);
    assert_int_equal(chdir(old), 0);
    assert_int_equal(rig_folder_count(r->folder), at_home + 1);
    r->api->ReleaseSession(session);
    start_free(&s);
    assert_int_equal(rmdir(folder), 0);
}

static void test_names(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    rig_store *const store = rig_store_new(r);
    const rig_bytes model = rig_model("ppocr_cls");
    const rig_options how = {.max_nodes = "100", .store = store, .prefix = "left/"};
    rig_bytes compiled = {NULL, 0};
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    assert_true(store->count > 1);
    for (size_t i = 0; i < store->count; i++) {
        assert_null(strchr(store->items[i].name, '/'));
        assert_non_null(strstr(store->items[i].name, EP_NAME));
    }
    OrtSession *session = NULL;
    rig_ok(r, rig_session(r, compiled, store, &session));
    r->api->ReleaseSession(session);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

/* Without callbacks: files beside the compiled model, found again from there, or through ep.context_file_path. */
static void test_files(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    (void)snprintf(folder, sizeof(folder), "%s/files", r->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/cls_ctx.onnx", folder);
    const rig_bytes model = rig_model("ppocr_cls");
    const rig_options how = {.out_path = path};
    rig_ok(r, rig_compile(r, model, &how, NULL));
    assert_int_equal(rig_folder_count(folder), 2);

    OrtSession *session = NULL;
    OrtSessionOptions *options = rig_session_options(r, NULL);
    rig_ok(r, r->api->CreateSession(r->env, path, options, &session));
    compare(r, session, model);
    r->api->ReleaseSession(session);

    /* from memory there is no folder, and the working folder is not guessed */
    const rig_bytes compiled = rig_file(path);
    char old[PATH_MAX];
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(folder), 0);
    rig_refused(r, r->api->CreateSessionFromArray(r->env, compiled.data, compiled.len, options, &session), "no folder");
    assert_int_equal(chdir(old), 0);
    rig_ok(r, r->api->AddSessionConfigEntry(options, "ep.context_file_path", path));
    rig_ok(r, r->api->CreateSessionFromArray(r->env, compiled.data, compiled.len, options, &session));
    compare(r, session, model);
    r->api->ReleaseSession(session);
    r->api->ReleaseSessionOptions(options);
    free(compiled.data);
    free(model.data);
    oc_test_rm_rf(folder);
}

/* The first `from` in the bytes becomes `to`, of the same length. */
static void replace(rig_bytes *bytes, const char *from, const char *to)
{
    const size_t len = strlen(from);
    assert_int_equal(len, strlen(to));
    char *const at = memmem(bytes->data, bytes->len, from, len);
    assert_non_null(at);
    memcpy(at, to, len);
}

/* Saves the model at `path` with `name` replaced by `other`, and expects that loading it is refused. */
static void refuse_name(const rig *r, rig_bytes compiled, const char *path, const char *name, const char *other,
                        const char *why)
{
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    OrtSession *session = NULL;
    rig_bytes changed = rig_copy(compiled.data, compiled.len);
    replace(&changed, name, other);
    rig_save(path, changed);
    rig_refused(r, r->api->CreateSession(r->env, path, options, &session), why);
    r->api->ReleaseSessionOptions(options);
    free(changed.data);
}

/* A model is not trusted: the name it says leads nowhere but into its own folder, and to regular files. */
static void test_bad_names(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    char other[PATH_MAX + 300];
    char inside[PATH_MAX + 300];
    char changed[256];
    (void)snprintf(folder, sizeof(folder), "%s/names", r->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/cls_ctx.onnx", folder);
    const rig_bytes model = rig_model("ppocr_cls");
    const rig_options how = {.out_path = path};
    rig_ok(r, rig_compile(r, model, &how, NULL));
    const rig_bytes compiled = rig_file(path);
    const rig_nodes nodes = rig_count(compiled);
    const char *const name = nodes.first_name;
    assert_true(strlen(name) > 20);

    /* the engine is moved to where a wrong resolution would find it */
    (void)snprintf(inside, sizeof(inside), "%s/%s", folder, name);
    (void)snprintf(other, sizeof(other), "%s/%s", r->folder, name + 3);
    assert_int_equal(rename(inside, other), 0);
    (void)snprintf(changed, sizeof(changed), "../%s", name + 3);
    refuse_name(r, compiled, path, name, changed, "outside the model's folder");
    (void)snprintf(changed, sizeof(changed), "/%s", name + 1);
    refuse_name(r, compiled, path, name, changed, "is absolute");
    refuse_name(r, compiled, path, name, name, "does not exist");
    assert_int_equal(symlink(other, inside), 0);
    refuse_name(r, compiled, path, name, name, "outside the model's folder");
    assert_int_equal(unlink(inside), 0);
    assert_int_equal(mkfifo(inside, 0600), 0);
    refuse_name(r, compiled, path, name, name, "no regular file");
    assert_int_equal(unlink(inside), 0);
    assert_int_equal(mkdir(inside, 0700), 0);
    refuse_name(r, compiled, path, name, name, "no regular file");
    assert_int_equal(rmdir(inside), 0);

    /* a link that stays in the folder is followed, a relative one and an absolute one */
    char moved[PATH_MAX + 300];
    (void)snprintf(moved, sizeof(moved), "%s/moved", folder);
    assert_int_equal(rename(other, moved), 0);
    const char *const inner[] = {"moved", moved};
    for (size_t i = 0; i < 2; i++) {
        OrtSessionOptions *const by_link = rig_session_options(r, NULL);
        OrtSession *opened = NULL;
        assert_int_equal(symlink(inner[i], inside), 0);
        rig_ok(r, r->api->CreateSession(r->env, path, by_link, &opened));
        r->api->ReleaseSession(opened);
        r->api->ReleaseSessionOptions(by_link);
        assert_int_equal(unlink(inside), 0);
    }
    assert_int_equal(rename(moved, inside), 0);
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    OrtSession *session = NULL;
    rig_ok(r, r->api->CreateSession(r->env, path, options, &session));
    r->api->ReleaseSession(session);
    r->api->ReleaseSessionOptions(options);
    free(compiled.data);
    free(model.data);
    oc_test_rm_rf(folder);
}

typedef void (*damage)(rig_bytes *engine);

static void not_an_engine(rig_bytes *engine)
{
    engine->data[0] = 'X';
}

static void newer(rig_bytes *engine)
{
    engine->data[8] = 3;
}

static void cut(rig_bytes *engine)
{
    engine->len -= 1;
}

static void cut_to_header(rig_bytes *engine)
{
    engine->len = 63;
}

static void longer(rig_bytes *engine)
{
    engine->len += 1; /* rig_copy keeps a spare byte */
    engine->data[engine->len - 1] = 0;
}

static void empty(rig_bytes *engine)
{
    engine->len = 0;
}

static void no_model(rig_bytes *engine)
{
    memset(engine->data + 64, 0xff, engine->len - 64);
}

static void test_foreign_engines(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const struct {
        damage harm;
        const char *sentence;
    } cases[] = {
        {not_an_engine, "is no engine of OrtcryptReference"},
        {newer, "has version 3"},
        {cut, "should hold a model of"},
        {cut_to_header, "is cut"},
        {longer, "should hold a model of"},
        {empty, "is no engine of OrtcryptReference"},
        {no_model, "does not load"},
    };
    start s = start_new(r, NULL, false);
    assert_int_equal(s.store->count, 1);
    const rig_bytes good = s.store->items[0].bytes;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        OrtSession *session = NULL;
        s.store->items[0].bytes = rig_copy(good.data, good.len);
        cases[i].harm(&s.store->items[0].bytes);
        rig_refused(r, rig_session(r, s.compiled, s.store, &session), cases[i].sentence);
        assert_null(session);
        free(s.store->items[0].bytes.data);
    }
    s.store->items[0].bytes = good;
    OrtSession *session = NULL;
    rig_ok(r, rig_session(r, s.compiled, s.store, &session));
    compare(r, session, s.model);
    r->api->ReleaseSession(session);

    /* an EPContext node of somebody else is not touched: nobody takes it */
    while (memmem(s.compiled.data, s.compiled.len, EP_NAME, strlen(EP_NAME)) != NULL) {
        replace(&s.compiled, EP_NAME, "OrtcryptSomebody_");
    }
    s.store->reads = 0;
    OrtStatus *const status = rig_session(r, s.compiled, s.store, &session);
    assert_non_null(status);
    r->api->ReleaseStatus(status);
    assert_int_equal(s.store->reads, 0);
    start_free(&s);
}

/* The application's own error arrives, and nothing falls back to a file. */
static void test_callback_errors(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    start s = start_new(r, "20", false);
    OrtSession *session = NULL;
    s.store->fail = "the vault is closed";
    s.store->reads = 0;
    rig_refused(r, rig_session(r, s.compiled, s.store, &session), "the vault is closed");
    assert_int_equal(s.store->reads, 1);

    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    (void)snprintf(folder, sizeof(folder), "%s/closed", r->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/cls_ctx.onnx", folder);
    const rig_options how = {.store = s.store, .out_path = path};
    rig_refused(r, rig_compile(r, s.model, &how, NULL), "the vault is closed");
    assert_int_equal(rig_folder_count(folder), 0);
    assert_int_equal(rmdir(folder), 0);
    start_free(&s);
}

static void test_bad_options(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_cls");
    const char *const bad[] = {"0", "-1", "x", "7x", "1000001"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        OrtSessionOptions *const options = rig_session_options(r, bad[i]);
        OrtSession *session = NULL;
        rig_refused(r, r->api->CreateSessionFromArray(r->env, model.data, model.len, options, &session),
                    "max_nodes_per_engine is a number");
        r->api->ReleaseSessionOptions(options);
    }
    free(model.data);
}

/* A model that is compiled already is not compiled again. */
static void test_compiled_again(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    start s = start_new(r, NULL, true);
    rig_bytes again = {NULL, 0};
    const rig_options how = {.embed = true, .store = s.store};
    rig_refused(r, rig_compile(r, s.compiled, &how, &again), "compiled already");
    start_free(&s);
}

static void test_compatibility(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    char same[128];
    (void)snprintf(same, sizeof(same), EP_NAME ";engine=1;ep=0.1.0;ort=%s", r->version);
    const struct {
        const char *info;
        OrtCompiledModelCompatibility want;
    } cases[] = {
        {same, OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL},
        {EP_NAME ";engine=1;ep=0.1.0;ort=1.29.0", OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION},
        {EP_NAME ";engine=2;ep=9.0.0;ort=1.29.0", OrtCompiledModelCompatibility_EP_UNSUPPORTED},
        {EP_NAME ";engine=10;ep=0.1.0;ort=1.29.0", OrtCompiledModelCompatibility_EP_UNSUPPORTED},
        {EP_NAME "2;engine=1;ep=0.1.0;ort=1.29.0", OrtCompiledModelCompatibility_EP_NOT_APPLICABLE},
        {"something else", OrtCompiledModelCompatibility_EP_NOT_APPLICABLE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        OrtCompiledModelCompatibility found = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
        rig_ok(r, r->api->GetModelCompatibilityForEpDevices(&r->device, 1, cases[i].info, &found));
        assert_int_equal(found, cases[i].want);
    }
    /* and the string is in the compiled model */
    start s = start_new(r, NULL, false);
    assert_non_null(memmem(s.compiled.data, s.compiled.len, same, strlen(same)));
    start_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_file),         cmocka_unit_test(test_names),
        cmocka_unit_test(test_files),           cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_foreign_engines), cmocka_unit_test(test_callback_errors),
        cmocka_unit_test(test_bad_options),     cmocka_unit_test(test_compiled_again),
        cmocka_unit_test(test_compatibility),
    };
    int failed = cmocka_run_group_tests_name("reference EP's I/O, ORT 1.30.0", tests, rig_open_130, rig_close_group);
    failed += cmocka_run_group_tests_name("reference EP's I/O, ORT 1.32.0", tests, rig_open_132, rig_close_group);
    return failed;
}
