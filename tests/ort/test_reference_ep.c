/*
 * The reference EP on real models: compiled from memory into memory, reloaded, compared with the CPU EP. One engine must give
 * equal bytes, many engines differ by at most 1e-5 of the range (kernels fuse less).
 */
#include "test_reference_ep_tensors.h"

#include <pthread.h>

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define INT32 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32
#define INT64 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64

typedef struct model_case {
    const char *model;
    const char *max_nodes; /* NULL: one engine */
    size_t engines_min;
    size_t input_count;
    rig_input inputs[4];
} model_case;

static const model_case CASES[] = {
    {"ppocr_det", NULL, 1, 1, {{"x", FLOAT, 4, {1, 3, 160, 160}, 0, 1}}},
    {"ppocr_det", "7", 20, 1, {{"x", FLOAT, 4, {1, 3, 160, 160}, 0, 1}}},
    {"ppocr_rec", NULL, 1, 1, {{"x", FLOAT, 4, {1, 3, 48, 160}, 0, 1}}},
    {"ppocr_rec", "7", 20, 1, {{"x", FLOAT, 4, {1, 3, 48, 160}, 0, 1}}},
    {"ppocr_cls", NULL, 1, 1, {{"x", FLOAT, 4, {2, 3, 48, 192}, 0, 1}}},
    {"ppocr_cls", "7", 20, 1, {{"x", FLOAT, 4, {2, 3, 48, 192}, 0, 1}}},
    {"magika", NULL, 1, 1, {{"bytes", INT32, 2, {3, 2048}, 0, 256}}},
    {"magika", "7", 10, 1, {{"bytes", INT32, 2, {3, 2048}, 0, 256}}},
    {"minilm_int8",
     NULL,
     1,
     3,
     {{"input_ids", INT64, 2, {2, 24}, 1, 30000},
      {"attention_mask", INT64, 2, {2, 24}, 1, 1},
      {"token_type_ids", INT64, 2, {2, 24}, 0, 0}}},
    {"minilm_int8",
     "7",
     20,
     3,
     {{"input_ids", INT64, 2, {2, 24}, 1, 30000},
      {"attention_mask", INT64, 2, {2, 24}, 1, 1},
      {"token_type_ids", INT64, 2, {2, 24}, 0, 0}}},
};

static void check_case(const rig *r, const model_case *c, bool embed)
{
    const rig_bytes model = rig_model(c->model);
    rig_store *const store = rig_store_new(r);
    const rig_options how = {.max_nodes = c->max_nodes, .embed = embed, .store = store};
    rig_bytes compiled = {NULL, 0};
    rig_ok(r, rig_compile(r, model, &how, &compiled));

    const rig_nodes before = rig_count(model);
    const rig_nodes after = rig_count(compiled);
    const size_t left = after.all - after.contexts;
    const double share = 100.0 * (1.0 - (double)left / (double)before.all);
    assert_true(share >= 95.0);
    assert_true(after.contexts >= c->engines_min);
    assert_true(c->max_nodes != NULL || after.contexts == 1);
    assert_int_equal(store->writes, embed ? 0 : after.contexts);
    assert_int_equal(store->count, store->writes); /* every name is another */

    OrtSession *session = NULL;
    rig_ok(r, rig_session(r, compiled, store, &session));
    assert_int_equal(store->reads, embed ? 0 : after.contexts); /* once each */
    OrtSession *const cpu = rig_cpu_session(r, model);
    rig_outputs want = rig_run(r, cpu, c->inputs, c->input_count, 7);
    rig_outputs got = rig_run(r, session, c->inputs, c->input_count, 7);
    const double difference = rig_difference(r, &want, &got);
    print_message("%s %s embed %d: %zu nodes, %zu engines, %.1f %% taken, compiled model %zu bytes, difference %g\n",
                  r->version, c->model, embed, before.all, after.contexts, share, compiled.len, difference);
    assert_true(difference <= (c->max_nodes != NULL ? 1e-5 : 0.0));
    rig_outputs_free(r, &want);
    rig_outputs_free(r, &got);
    r->api->ReleaseSession(session);
    r->api->ReleaseSession(cpu);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

static void test_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        check_case(&the_rig, &CASES[i], false);
        check_case(&the_rig, &CASES[i], true);
    }
}

/* One compiled model, many shapes. */
static void test_dynamic_shapes(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_rec");
    rig_store *const store = rig_store_new(r);
    const rig_options how = {.store = store};
    rig_bytes compiled = {NULL, 0};
    OrtSession *session = NULL;
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    rig_ok(r, rig_session(r, compiled, store, &session));
    OrtSession *const cpu = rig_cpu_session(r, model);
    const int64_t shapes[][2] = {{1, 320}, {3, 64}, {2, 480}, {1, 16}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const rig_input input = {"x", FLOAT, 4, {shapes[i][0], 3, 48, shapes[i][1]}, 0, 1};
        rig_outputs want = rig_run(r, cpu, &input, 1, i);
        rig_outputs got = rig_run(r, session, &input, 1, i);
        assert_true(rig_difference(r, &want, &got) <= 0.0);
        rig_outputs_free(r, &want);
        rig_outputs_free(r, &got);
    }
    r->api->ReleaseSession(session);
    r->api->ReleaseSession(cpu);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

static const rig_input SILERO[2][3] = {
    {{"input", FLOAT, 2, {1, 512}, 0, 1}, {"state", FLOAT, 3, {2, 1, 128}, 0, 0}, {"sr", INT64, 0, {0}, 16000, 16000}},
    {{"input", FLOAT, 2, {1, 256}, 0, 1}, {"state", FLOAT, 3, {2, 1, 128}, 0, 0}, {"sr", INT64, 0, {0}, 8000, 8000}},
};

static void compare_silero(const rig *r, OrtSession *session, OrtSession *cpu)
{
    for (size_t i = 0; i < 2; i++) {
        rig_outputs want = rig_run(r, cpu, SILERO[i], 3, 3);
        rig_outputs got = rig_run(r, session, SILERO[i], 3, 3);
        assert_true(rig_difference(r, &want, &got) <= 0.0);
        rig_outputs_free(r, &want);
        rig_outputs_free(r, &got);
    }
}

/* Without a compiled model the If stays with the CPU EP; in one ORT cannot keep its weights, so it goes into the engine. */
static void test_if(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("silero_vad");
    OrtSession *const cpu = rig_cpu_session(r, model);
    OrtSession *session = NULL;
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    rig_ok(r, r->api->AddSessionConfigEntry(options, "session.record_ep_graph_assignment_info", "1"));
    rig_ok(r, r->api->CreateSessionFromArray(r->env, model.data, model.len, options, &session));
    r->api->ReleaseSessionOptions(options);
    const OrtEpAssignedSubgraph *const *graphs = NULL;
    size_t graph_count = 0;
    size_t ours = 0;
    size_t ifs_of_cpu = 0;
    rig_ok(r, r->api->Session_GetEpGraphAssignmentInfo(session, &graphs, &graph_count));
    for (size_t i = 0; i < graph_count; i++) {
        const OrtEpAssignedNode *const *nodes = NULL;
        const char *ep = NULL;
        size_t node_count = 0;
        rig_ok(r, r->api->EpAssignedSubgraph_GetEpName(graphs[i], &ep));
        rig_ok(r, r->api->EpAssignedSubgraph_GetNodes(graphs[i], &nodes, &node_count));
        for (size_t k = 0; k < node_count; k++) {
            const char *op_type = NULL;
            rig_ok(r, r->api->EpAssignedNode_GetOperatorType(nodes[k], &op_type));
            ours += strcmp(ep, EP_NAME) == 0 ? 1 : 0;
            ifs_of_cpu += strcmp(ep, EP_NAME) != 0 && strcmp(op_type, "If") == 0 ? 1 : 0;
            assert_true(strcmp(ep, EP_NAME) != 0 || strcmp(op_type, "If") != 0);
        }
    }
    assert_true(ours >= 1);
    assert_true(ifs_of_cpu >= 1);
    compare_silero(r, session, cpu);
    r->api->ReleaseSession(session);

    rig_store *const store = rig_store_new(r);
    const rig_options how = {.store = store};
    rig_bytes compiled = {NULL, 0};
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    assert_int_equal(rig_count(compiled).ifs, 0);
    rig_ok(r, rig_session(r, compiled, store, &session));
    compare_silero(r, session, cpu);
    r->api->ReleaseSession(session);
    r->api->ReleaseSession(cpu);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

static const rig_input THREADS_INPUT = {"x", FLOAT, 4, {1, 3, 48, 192}, 0, 1};

typedef struct runner {
    const rig *r;
    OrtSession *session;
    const rig_outputs *want;
    bool equal;
} runner;

static void *run_ten(void *argument)
{
    runner *const self = argument;
    self->equal = true;
    for (size_t i = 0; i < 10; i++) {
        rig_outputs got = rig_run(self->r, self->session, &THREADS_INPUT, 1, 5);
        self->equal = self->equal && rig_difference(self->r, self->want, &got) <= 0.0;
        rig_outputs_free(self->r, &got);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = rig_model("ppocr_cls");
    rig_store *const store = rig_store_new(r);
    const rig_options how = {.max_nodes = "60", .store = store};
    rig_bytes compiled = {NULL, 0};
    OrtSession *session = NULL;
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    rig_ok(r, rig_session(r, compiled, store, &session));
    rig_outputs want = rig_run(r, session, &THREADS_INPUT, 1, 5);
    runner runners[4];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        runners[i] = (runner){r, session, &want, false};
        assert_int_equal(pthread_create(&threads[i], NULL, run_ten, &runners[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(runners[i].equal);
    }
    rig_outputs_free(r, &want);
    r->api->ReleaseSession(session);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_dynamic_shapes),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_threads),
    };
    int failed = cmocka_run_group_tests_name("reference EP, ORT 1.30.0", tests, rig_open_130, rig_close_group);
    failed += cmocka_run_group_tests_name("reference EP, ORT 1.32.0", tests, rig_open_132, rig_close_group);
    return failed;
}
