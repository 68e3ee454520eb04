/*
 * Small models made here for what the real ones lack: strings, ai.onnx.ml, attributes of all kinds, missing optional inputs,
 * values that only a body reads, initializers that may be overridden, external data given from memory.
 */
#include "test_reference_ep_onnx.h"
#include "test_reference_ep_tensors.h"

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT

/* Compiles and opens with everything in memory. */
static OrtSession *compiled_session(const rig *r, rig_bytes model, bool embed, rig_nodes *nodes)
{
    rig_store *const store = rig_store_new(r);
    const rig_options how = {.store = store, .embed = embed};
    rig_bytes compiled = {NULL, 0};
    OrtSession *session = NULL;
    rig_ok(r, rig_compile(r, model, &how, &compiled));
    *nodes = rig_count(compiled);
    rig_ok(r, rig_session(r, compiled, store, &session));
    rig_store_free(store);
    free(compiled.data);
    return session;
}

static OrtValue *string_value(const rig *r, const char *const *texts, size_t count)
{
    OrtAllocator *allocator = NULL;
    OrtValue *value = NULL;
    const int64_t dims[1] = {(int64_t)count};
    rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
    rig_ok(r, r->api->CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
    rig_ok(r, r->api->FillStringTensor(value, texts, count));
    return value;
}

static void expect_strings(const rig *r, const OrtValue *value, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[256];
        size_t len = 0;
        rig_ok(r, r->api->GetStringTensorElementLength(value, i, &len));
        assert_int_equal(len, strlen(texts[i]));
        assert_true(len < sizeof(text));
        rig_ok(r, r->api->GetStringTensorElement(value, sizeof(text), i, text));
        assert_memory_equal(text, texts[i], len);
    }
}

/* strings -> StringNormalizer (a list of strings) -> Concat with a string weight; and -> LabelEncoder (strings, floats). */
static rig_bytes string_model(void)
{
    const char *const tail[] = {"", "\xc3\xa9t\xc3\xa9", "a longer text that no small-string buffer holds"};
    const char *const keys[] = {"b", "c"};
    const float values[] = {1.5F, -2.25F};
    const int64_t any[1] = {-1};
    pb graph = {.len = 0};
    pb content = {.len = 0};
    pb made = node("StringNormalizer", "", "x", "clean");
    pb_text(&content, 9, "a");
    pb_text(&content, 9, "stop");
    put_attribute(&made, "stopwords", 8, &content);
    content.len = 0;
    pb_int(&content, 3, 1);
    put_attribute(&made, "is_case_sensitive", 2, &content);
    pb_message(&graph, 1, &made);
    made = node("Concat", "", "clean tail", "all");
    content.len = 0;
    pb_int(&content, 3, 0);
    put_attribute(&made, "axis", 2, &content);
    pb_message(&graph, 1, &made);
    made = node("LabelEncoder", "ai.onnx.ml", "clean", "labels");
    content.len = 0;
    pb_text(&content, 9, keys[0]);
    pb_text(&content, 9, keys[1]);
    put_attribute(&made, "keys_strings", 8, &content);
    content.len = 0;
    pb_float(&content, 7, values[0]);
    pb_float(&content, 7, values[1]);
    put_attribute(&made, "values_floats", 6, &content);
    content.len = 0;
    pb_float(&content, 2, 0.125F);
    put_attribute(&made, "default_float", 1, &content);
    pb_message(&graph, 1, &made);
    made = node("Neg", "", "labels", "less");
    pb_message(&graph, 1, &made);
    pb_text(&graph, 2, "strings");
    const pb weight = string_tensor("tail", tail, 3);
    pb_message(&graph, 5, &weight);
    put_value(&graph, 11, "x", 8, any, 1);
    put_value(&graph, 12, "all", 8, NULL, -1);
    put_value(&graph, 12, "labels", 1, NULL, -1);
    put_value(&graph, 12, "less", 1, NULL, -1);
    return model_of(&graph);
}

static void check_strings(const rig *r, OrtSession *session)
{
    const char *const in[] = {"a", "b", "stop", "z"};
    const char *const want[] = {"b", "z", "", "\xc3\xa9t\xc3\xa9", "a longer text that no small-string buffer holds"};
    const char *const name = "x";
    OrtValue *const value = string_value(r, in, 4);
    rig_outputs got = rig_run_values(r, session, &name, (const OrtValue *const *)&value, 1);
    const void *data[2] = {NULL, NULL};
    assert_int_equal(got.count, 3);
    expect_strings(r, got.values[0], want, 5);
    rig_ok(r, r->api->GetTensorData(got.values[1], &data[0]));
    rig_ok(r, r->api->GetTensorData(got.values[2], &data[1]));
    const float labels[2] = {1.5F, 0.125F};
    const float less[2] = {-1.5F, -0.125F};
    assert_memory_equal(data[0], labels, sizeof(labels));
    assert_memory_equal(data[1], less, sizeof(less));
    rig_outputs_free(r, &got);
    r->api->ReleaseValue(value);
}

/* An EPContext node cannot have strings, so in a compiled model they stay with the CPU EP; else an engine takes them. */
static void test_strings(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = string_model();
    OrtSession *session = NULL;
    rig_ok(r, rig_session(r, model, NULL, &session));
    check_strings(r, session);
    r->api->ReleaseSession(session);
    rig_nodes nodes;
    session = compiled_session(r, model, true, &nodes);
    assert_int_equal(nodes.all, 4);
    assert_int_equal(nodes.contexts, 1);
    check_strings(r, session);
    r->api->ReleaseSession(session);
    free(model.data);
}

/* Clip without its minimum: the place of a missing input is kept. ConstantOfShape: an attribute that is a tensor. */
static rig_bytes optional_model(void)
{
    const float high[] = {0.5F};
    const float fill[] = {0.25F};
    const int64_t any[1] = {-1};
    pb graph = {.len = 0};
    pb content = {.len = 0};
    pb limit = {.len = 0};
    pb made = node("Clip", "", "x - high", "low");
    pb_message(&graph, 1, &made);
    made = node("Shape", "", "x", "shape");
    pb_message(&graph, 1, &made);
    made = node("ConstantOfShape", "", "shape", "same");
    const pb value = float_tensor("", fill, 1);
    pb_message(&content, 5, &value);
    put_attribute(&made, "value", 4, &content);
    pb_message(&graph, 1, &made);
    made = node("Add", "", "low same", "y");
    pb_message(&graph, 1, &made);
    pb_text(&graph, 2, "optional");
    pb_int(&limit, 2, 1); /* a scalar: no dims */
    pb_text(&limit, 8, "high");
    pb_data(&limit, 9, high, sizeof(high));
    pb_message(&graph, 5, &limit);
    put_value(&graph, 11, "x", 1, any, 1);
    put_value(&graph, 12, "y", 1, any, 1);
    return model_of(&graph);
}

static void compare_with_cpu(const rig *r, OrtSession *session, rig_bytes model, const rig_input *inputs, size_t count)
{
    OrtSession *const cpu = rig_cpu_session(r, model);
    rig_outputs want = rig_run(r, cpu, inputs, count, 11);
    rig_outputs got = rig_run(r, session, inputs, count, 11);
    assert_true(rig_difference(r, &want, &got) <= 0.0);
    rig_outputs_free(r, &want);
    rig_outputs_free(r, &got);
    r->api->ReleaseSession(cpu);
}

static void test_optional(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const rig_bytes model = optional_model();
    rig_nodes nodes;
    OrtSession *const session = compiled_session(r, model, false, &nodes);
    assert_int_equal(nodes.all, 1);
    const rig_input sizes[] = {{"x", FLOAT, 1, {5}, 0, 1}, {"x", FLOAT, 1, {1}, 0, 1}, {"x", FLOAT, 1, {0}, 0, 1}};
    for (size_t i = 0; i < 3; i++) {
        compare_with_cpu(r, session, model, &sizes[i], 1);
    }
    r->api->ReleaseSession(session);
    free(model.data);
}

/* x -> Relu -> h, which only the bodies of an If read; with weights in them or without. */
static rig_bytes body_model(bool weights)
{
    const float one[] = {1.0F};
    const int64_t any[1] = {-1};
    const int64_t flag[1] = {1};
    const char *const ops[2] = {"Add", "Mul"};
    const char *const names[2] = {"then_branch", "else_branch"};
    pb graph = {.len = 0};
    pb made = node("Relu", "", "x", "h");
    pb_message(&graph, 1, &made);
    made = node("Cast", "", "c", "cond");
    pb to = {.len = 0};
    pb_int(&to, 3, 9);
    put_attribute(&made, "to", 2, &to);
    pb_message(&graph, 1, &made);
    made = node("If", "", "cond", "y");
    for (size_t i = 0; i < 2; i++) {
        pb body = {.len = 0};
        pb content = {.len = 0};
        const char *const weight_name = i == 0 ? "w0" : "w1";
        const char *const inputs[2] = {weights ? "h w0" : "h h", weights ? "h w1" : "h h"};
        const pb inner = node(ops[i], "", inputs[i], i == 0 ? "y0" : "y1");
        const pb weight = float_tensor(weight_name, one, 1);
        pb_message(&body, 1, &inner);
        pb_text(&body, 2, names[i]);
        if (weights) {
            pb_message(&body, 5, &weight);
        }
        put_value(&body, 12, i == 0 ? "y0" : "y1", 1, any, 1);
        pb_message(&content, 6, &body);
        put_attribute(&made, names[i], 5, &content);
    }
    pb_message(&graph, 1, &made);
    made = node("Neg", "", "y", "z");
    pb_message(&graph, 1, &made);
    pb_text(&graph, 2, "bodies");
    put_value(&graph, 11, "x", 1, any, 1);
    put_value(&graph, 11, "c", 1, flag, 1);
    put_value(&graph, 12, "z", 1, any, 1);
    return model_of(&graph);
}

static void check_bodies(const rig *r, bool weights)
{
    const rig_bytes model = body_model(weights);
    rig_nodes nodes;
    OrtSession *direct = NULL;
    OrtSession *const session = compiled_session(r, model, false, &nodes);
    rig_ok(r, rig_session(r, model, NULL, &direct));
    assert_true(nodes.contexts >= 1);
    assert_true(weights || nodes.ifs == 1);
    const rig_input inputs[2][2] = {{{"x", FLOAT, 1, {4}, 0, 1}, {"c", FLOAT, 1, {1}, 0, 1}},
                                    {{"x", FLOAT, 1, {4}, 0, 1}, {"c", FLOAT, 1, {1}, 0, 0}}};
    for (size_t i = 0; i < 2; i++) {
        compare_with_cpu(r, session, model, inputs[i], 2);
        compare_with_cpu(r, direct, model, inputs[i], 2);
    }
    r->api->ReleaseSession(direct);
    r->api->ReleaseSession(session);
    free(model.data);
}

/* An If stays with the CPU EP wherever ORT can carry it into a compiled model. */
static void test_bodies(void **state)
{
    (void)state;
    check_bodies(&the_rig, false);
    check_bodies(&the_rig, true);
}

/* "w" is an initializer and an input: its value is a default that a run may override, so it is no part of the engine. */
static void test_overridable(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    const float two[] = {2.0F, 3.0F};
    const int64_t pair[1] = {2};
    pb graph = {.len = 0};
    const pb made = node("Mul", "", "x w", "y");
    const pb weight = float_tensor("w", two, 2);
    pb_message(&graph, 1, &made);
    pb_text(&graph, 2, "override");
    pb_message(&graph, 5, &weight);
    put_value(&graph, 11, "x", 1, pair, 1);
    put_value(&graph, 11, "w", 1, pair, 1);
    put_value(&graph, 12, "y", 1, pair, 1);
    const rig_bytes model = model_of(&graph);
    rig_nodes nodes;
    OrtSession *const session = compiled_session(r, model, false, &nodes);
    assert_int_equal(nodes.contexts, 1);
    const rig_input inputs[2] = {{"x", FLOAT, 1, {2}, 0, 1}, {"w", FLOAT, 1, {2}, 0, 1}};
    compare_with_cpu(r, session, model, inputs, 1); /* ORT makes it a plain default in a compiled model */
    r->api->ReleaseSession(session);
    OrtSession *direct = NULL;
    rig_ok(r, rig_session(r, model, NULL, &direct));
    compare_with_cpu(r, direct, model, inputs, 1);
    compare_with_cpu(r, direct, model, inputs, 2);
    r->api->ReleaseSession(direct);
    free(model.data);
}

enum { WEIGHT_COUNT = 1024 };

/* y = x + w, where w is external data in "w.bin". */
static rig_bytes external_model(void)
{
    const int64_t dims[1] = {WEIGHT_COUNT};
    const char *const keys[3] = {"location", "offset", "length"};
    const char *const values[3] = {"w.bin", "0", "4096"};
    pb graph = {.len = 0};
    pb weight = {.len = 0};
    const pb made = node("Add", "", "x w", "y");
    pb_int(&weight, 1, WEIGHT_COUNT);
    pb_int(&weight, 2, 1);
    pb_text(&weight, 8, "w");
    for (size_t i = 0; i < 3; i++) {
        pb pair = {.len = 0};
        pb_text(&pair, 1, keys[i]);
        pb_text(&pair, 2, values[i]);
        pb_message(&weight, 13, &pair);
    }
    pb_int(&weight, 14, 1);
    pb_message(&graph, 1, &made);
    pb_text(&graph, 2, "external");
    pb_message(&graph, 5, &weight);
    put_value(&graph, 11, "x", 1, dims, 1);
    put_value(&graph, 12, "y", 1, dims, 1);
    return model_of(&graph);
}

static rig_bytes compile_external(const rig *r, rig_bytes model, const float *weights, rig_store *store)
{
    const char *const file = "w.bin";
    char *buffer = NULL;
    const size_t len = WEIGHT_COUNT * sizeof(*weights);
    OrtSessionOptions *const options = rig_session_options(r, NULL);
    OrtModelCompilationOptions *compilation = NULL;
    OrtAllocator *allocator = NULL;
    void *compiled = NULL;
    size_t compiled_len = 0;
    memcpy(&buffer, &weights, sizeof(buffer)); /* ORT only reads it */
    rig_ok(r, r->api->GetAllocatorWithDefaultOptions(&allocator));
    rig_ok(r, r->api->AddExternalInitializersFromFilesInMemory(options, &file, (char *const *)&buffer, &len, 1));
    rig_ok(r, r->compile->CreateModelCompilationOptionsFromSessionOptions(r->env, options, &compilation));
    rig_ok(r, r->compile->ModelCompilationOptions_SetInputModelFromBuffer(compilation, model.data, model.len));
    rig_ok(r,
           r->compile->ModelCompilationOptions_SetOutputModelBuffer(compilation, allocator, &compiled, &compiled_len));
    rig_ok(r, r->six.ModelCompilationOptions_SetEpContextDataWriteFunc(compilation, rig_store_write, store));
    rig_ok(r, r->compile->CompileModel(r->env, compilation));
    r->compile->ReleaseModelCompilationOptions(compilation);
    r->api->ReleaseSessionOptions(options);
    const rig_bytes copy = rig_copy(compiled, compiled_len);
    allocator->Free(allocator, compiled);
    return copy;
}

/* The weight is external data, given from memory: the engine has its bytes, not those of a file of that name. */
static void test_external_data(void **state)
{
    (void)state;
    const rig *const r = &the_rig;
    float right[WEIGHT_COUNT];
    float wrong[WEIGHT_COUNT];
    for (size_t i = 0; i < WEIGHT_COUNT; i++) {
        right[i] = (float)i;
        wrong[i] = -1;
    }
    char old[PATH_MAX];
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(r->folder), 0);
    rig_save("w.bin", (rig_bytes){(char *)wrong, sizeof(wrong)});
    rig_store *const store = rig_store_new(r);
    const rig_bytes model = external_model();
    const rig_bytes compiled = compile_external(r, model, right, store);
    assert_int_equal(store->count, 1);
    assert_non_null(memmem(store->items[0].bytes.data, store->items[0].bytes.len, right, sizeof(right)));

    OrtSession *session = NULL;
    rig_ok(r, rig_session(r, compiled, store, &session));
    const rig_input input = {"x", FLOAT, 1, {WEIGHT_COUNT}, 0, 0}; /* zeros */
    rig_outputs got = rig_run(r, session, &input, 1, 1);
    const void *data = NULL;
    rig_ok(r, r->api->GetTensorData(got.values[0], &data));
    assert_memory_equal(data, right, sizeof(right));
    rig_outputs_free(r, &got);
    r->api->ReleaseSession(session);
    rig_store_free(store);
    free(compiled.data);
    free(model.data);
    assert_int_equal(unlink("w.bin"), 0);
    assert_int_equal(chdir(old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),     cmocka_unit_test(test_optional),      cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_overridable), cmocka_unit_test(test_external_data),
    };
    int failed = cmocka_run_group_tests_name("reference EP's graphs, ORT 1.30.0", tests, rig_open_130, rig_close_group);
    failed += cmocka_run_group_tests_name("reference EP's graphs, ORT 1.32.0", tests, rig_open_132, rig_close_group);
    return failed;
}
