/*
 * Models for test_flow_lifted.c: begin -> large tensors, each used by its last row -> finish, which encrypts.
 */
#ifndef TEST_FLOW_LIFTED_H
#define TEST_FLOW_LIFTED_H

#include "test_flow_ways.h"

#include "format/onnx.h"

#define COLUMNS ((size_t)MODEL_OUT)
#define TENSOR_LEN ((size_t)4 << 20)

static const rig_model inside = {.external = false};
static const rig_model outside = {.external = true, .pad_external = true, .location = "./w.bin"};

/* A model that is being written: x[n, 128] -> y<count>[n, 256]. */
typedef struct sum {
    pb nodes;
    pb tensors;
    pb file;
    unsigned count;
} sum;

static void begin(sum *s)
{
    *s = (sum){.count = 0};
    pb_raw(&s->file, "\xa5\xa5\xa5", 3);
    add_node(&s->nodes, "Transpose", "w", NULL, "wt", "perm", 0);
    add_node(&s->nodes, "MatMul", "x", "wt", "y0", NULL, 0);
    add_floats(&s->tensors, &s->file, &inside, "w", COLUMNS, MODEL_IN, 1);
}

/* y<count + 1> = y<count> + row */
static void add_row(sum *s, const char *row)
{
    char from[16];
    char to[16];

    (void)snprintf(from, sizeof(from), "y%u", s->count);
    (void)snprintf(to, sizeof(to), "y%u", ++s->count);
    add_node(&s->nodes, "Add", from, row, to, NULL, 0);
}

/* The last row of tensor `name` counts. The optimizer folds what is made of the tensor. */
static void use_last(sum *s, const char *name, size_t rows)
{
    char names[4][32];
    const int64_t last = (int64_t)rows - 1;

    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s%s", name, (const char *[]){"-last", "-turned", "-float", "-row"}[i]);
    }
    add_node(&s->nodes, "Transpose", name, NULL, names[1], "perm", 0);
    add_node(&s->nodes, "Cast", names[1], NULL, names[2], "to", 1);
    add_node(&s->nodes, "Gather", names[2], names[0], names[3], "axis", 1);
    add_tensor(&s->tensors, &s->file, &inside, names[0], 7, 0, 0, &last, sizeof(last));
    add_row(s, names[3]);
}

static void finish(sum *s, bed *b)
{
    char last[16];
    pb graph = s->nodes;

    (void)snprintf(last, sizeof(last), "y%u", s->count);
    add_node(&graph, "Identity", last, NULL, "y", NULL, 0);
    pb_text(&graph, 2, "lifted");
    pb_raw(&graph, s->tensors.data, s->tensors.len);
    add_value(&graph, 11, "x", MODEL_IN);
    add_value(&graph, 12, "y", COLUMNS);
    model_finish(&graph, b->dir);
    char *const path = oc_test_format("%s/w.bin", b->dir);
    oc_test_write_file(path, s->file.data, s->file.len);
    free(path);
    free(s->tensors.data);
    free(s->file.data);
    bed_encrypt(b, b->model);
}

/* Random bits would be no numbers. */
static void fill_value(void *to, int dtype, size_t i)
{
    const double value = (double)(i * 2654435761u % 2001u) / 1000.0 - 1.0;
    const float single = (float)value;
    const uint16_t half = (uint16_t)(0x3800u | i % 1024u);
    const int64_t number = (int64_t)(i * 7919u % 31u) - 15;

    if (dtype == 1) {
        memcpy(to, &single, sizeof(single));
    } else if (dtype == 10) {
        memcpy(to, &half, sizeof(half));
    } else if (dtype == 11) {
        memcpy(to, &value, sizeof(value));
    } else {
        memcpy(to, &number, sizeof(number));
    }
}

static void add_large(sum *s, const rig_model *spec, const char *name, int dtype, size_t size, size_t len)
{
    uint8_t *const data = malloc(len);

    assert_non_null(data);
    for (size_t i = 0; i < len / size; i++) {
        fill_value(data + i * size, dtype, i + (size_t)dtype);
    }
    add_tensor(&s->tensors, &s->file, spec, name, dtype, len / size / COLUMNS, COLUMNS, data, len);
    free(data);
}

static const struct {
    const char *name;
    int dtype;
    size_t size;
} kinds[] = {{"float", 1, 4}, {"half!", 10, 2}, {"double", 11, 8}, {"int64", 7, 8}, {"float2", 1, 4}};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* No tensor of these is where the processor would want it. */
static void assert_misaligned(const bed *b)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;
    size_t len = 0;
    uint8_t *const bytes = oc_test_read_file(b->model, &len);
    const oc_span span = OC_SPAN(bytes, len);
    const oc_source source = oc_source_memory(&span);

    assert_ok(oc_onnx_scan(&found, &source, "model.onnx", &err), &err);
    for (size_t i = 0; i < found->tensor_count; i++) {
        for (size_t k = 0; k < KIND_COUNT; k++) {
            if (strcmp(found->tensors[i].name, kinds[k].name) == 0 && found->tensors[i].raw_off % kinds[k].size == 0) {
                fail_msg("%s is aligned", kinds[k].name);
            }
        }
    }
    oc_onnx_model_free(found);
    free(bytes);
}

static void write_kinds(bed *b, bool files_too)
{
    sum s;

    begin(&s);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        add_large(&s, &inside, kinds[i].name, kinds[i].dtype, kinds[i].size, TENSOR_LEN);
        use_last(&s, kinds[i].name, TENSOR_LEN / kinds[i].size / COLUMNS);
    }
    if (files_too) {
        add_large(&s, &outside, "outside", 1, 4, LARGE_LEN);
        use_last(&s, "outside", LARGE_LEN / 4 / COLUMNS);
    }
    finish(&s, b);
    assert_misaligned(b);
}

/* A graph attribute: reads `shadow`, of its own if it has one, and adds its first row. */
static void add_branch(pb *to, const char *name, const char *from, bool own)
{
    pb graph = {NULL, 0};
    pb attribute = {NULL, 0};
    char row[32];
    char out[32];
    static const int64_t zero = 0;

    (void)snprintf(row, sizeof(row), "%s-row-%s", name, from);
    (void)snprintf(out, sizeof(out), "%s-out-%s", name, from);
    add_node(&graph, "Gather", "shadow", "first", row, NULL, 0);
    add_node(&graph, "Add", from, row, out, NULL, 0);
    pb_text(&graph, 2, name);
    add_tensor(&graph, NULL, &inside, "first", 7, 0, 0, &zero, sizeof(zero));
    if (own) {
        add_floats(&graph, NULL, &inside, "shadow", TENSOR_LEN / 4 / COLUMNS, COLUMNS, 9); /* ORT merges what it knows of the shapes */
    }
    add_value(&graph, 12, out, COLUMNS);
    pb_text(&attribute, 1, name);
    pb_message(&attribute, 6, &graph);
    pb_int(&attribute, 20, 5);
    pb_message(to, 5, &attribute);
}

static void add_if(sum *s, const char *condition)
{
    pb branches = {NULL, 0};
    char from[16];
    char to[16];

    (void)snprintf(from, sizeof(from), "y%u", s->count);
    (void)snprintf(to, sizeof(to), "y%u", ++s->count);
    pb_text(&branches, 1, condition);
    pb_text(&branches, 2, to);
    pb_text(&branches, 3, to);
    pb_text(&branches, 4, "If");
    add_branch(&branches, "then_branch", from, false);
    add_branch(&branches, "else_branch", from, true);
    pb_message(&s->nodes, 1, &branches);
}

/* Tensors that must stay, or that ONNX Runtime takes out of the graph before it could be given them, among those that are taken out. */
static void write_odd(bed *b)
{
    static const float limit = 1000.0f;
    sum s;

    begin(&s);
    add_large(&s, &inside, "large", 1, 4, LARGE_LEN);
    use_last(&s, "large", LARGE_LEN / 4 / COLUMNS);
    add_large(&s, &inside, "idle", 1, 4, TENSOR_LEN);
    add_large(&s, &inside, "shadow", 1, 4, TENSOR_LEN);
    use_last(&s, "shadow", TENSOR_LEN / 4 / COLUMNS);
    add_node(&s.nodes, "ReduceMax", "x", NULL, "most", "keepdims", 0); /* no constant: ORT itself fails where it puts such a branch in place */
    add_node(&s.nodes, "Greater", "most", "limit", "no", NULL, 0);
    add_node(&s.nodes, "Less", "most", "limit", "yes", NULL, 0);
    add_tensor(&s.tensors, NULL, &inside, "limit", 1, 0, 0, &limit, sizeof(limit));
    add_if(&s, "no");
    add_if(&s, "yes");
    add_floats(&s.tensors, NULL, &inside, "twice", TENSOR_LEN / 4 / COLUMNS, COLUMNS, 21);
    add_floats(&s.tensors, NULL, &inside, "twice", TENSOR_LEN / 4 / COLUMNS, COLUMNS, 22);
    use_last(&s, "twice", TENSOR_LEN / 4 / COLUMNS);
    finish(&s, b);
}

/* The weights are many small tensors, which the optimizer puts together. */
static void write_scattered(bed *b)
{
    const size_t rows = 1000;
    const size_t parts = LARGE_LEN / (rows * COLUMNS * 4) + 1;
    sum s;
    pb concat = {NULL, 0};

    begin(&s);
    for (size_t i = 0; i < parts; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "part%zu", i);
        pb_text(&concat, 1, name);
        add_floats(&s.tensors, NULL, &inside, name, rows, COLUMNS, (unsigned)i + 30);
    }
    pb_text(&concat, 2, "whole");
    pb_text(&concat, 3, "whole");
    pb_text(&concat, 4, "Concat");
    pb attribute = {NULL, 0};
    pb_text(&attribute, 1, "axis");
    pb_int(&attribute, 3, 0);
    pb_int(&attribute, 20, 2);
    pb_message(&concat, 5, &attribute);
    pb_message(&s.nodes, 1, &concat);
    use_last(&s, "whole", rows * parts);
    finish(&s, b);
}

#endif
