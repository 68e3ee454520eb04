/*
 * The older way of compiling, by session config entries instead of the compile API: ORT names the output itself, never
 * overwrites it, and does not compile what is compiled already.
 */
#include "test_reference_ep_tensors.h"

/* A session of the model at `path` that is to leave a compiled model behind. */
static OrtStatus *generate(const rig *r, const char *path)
{
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    OrtSession *session = NULL;
    rig_ok(r, r->api->AddSessionConfigEntry(options, "ep.context_enable", "1"));
    OrtStatus *const status = r->api->CreateSession(r->env, path, options, &session);
    r->api->ReleaseSession(session);
    r->api->ReleaseSessionOptions(options);
    return status;
}

static void test_output_exists(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    char made[PATH_MAX + 32];
    (void)snprintf(folder, sizeof(folder), "%s/config", r->folder);
    (void)snprintf(path, sizeof(path), "%s/cls.onnx", folder);
    (void)snprintf(made, sizeof(made), "%s/cls_ctx.onnx", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    const rig_bytes model = rig_model("ppocr_cls");
    rig_save(path, model);

    rig_ok(r, generate(r, path));
    const rig_bytes first = rig_file(made);
    const size_t files = rig_folder_count(folder);
    rig_refused(r, generate(r, path), "exists already");
    const rig_bytes second = rig_file(made);
    assert_int_equal(second.len, first.len);
    assert_memory_equal(second.data, first.data, first.len);
    assert_int_equal(rig_folder_count(folder), files);

    /* what was made is compiled already: asked for again it is refused, and nothing new is written */
    rig_refused(r, generate(r, made), "compiled already");
    assert_int_equal(rig_folder_count(folder), files);
    free(first.data);
    free(second.data);
    free(model.data);
    oc_test_rm_rf(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_output_exists)};
    int failed = cmocka_run_group_tests_name("reference EP by config entries, ORT 1.30.0", tests, rig_open_130, rig_close_group);
    failed += cmocka_run_group_tests_name("reference EP by config entries, ORT 1.32.0", tests, rig_open_132, rig_close_group);
    return failed;
}
