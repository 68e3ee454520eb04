/*
 * The scanner and the rewriter against protobuf's own parsers, on real and generated models and on models that are broken on
 * purpose. tests/models/diff_scan.py knows the other parsers; it starts this program again with --serve and asks it.
 *
 * --serve: a request is one letter, the length (4 bytes, little-endian) and a model; an answer is a length and bytes.
 *   S  what the scanner finds, as JSON
 *   O  the length of a model (4 bytes), the model with every movable tensor moved to "moved", and the recipe for the way back; or nothing
 *   I  the model with every external tensor inlined (byte k of tensor i is (7 i + k) mod 251), or nothing
 */
#include "support/support.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/recipe.h"

#define MUTATIONS "3000"

static json_t *tensor_json(const oc_onnx_tensor *t)
{
    json_t *shape = json_array();

    for (size_t i = 0; i < t->rank; i++) {
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    }
    return json_pack("{s:s, s:i, s:o, s:b, s:b, s:s?, s:I, s:I, s:I, s:I}", "name", t->name, "dtype", t->dtype, "shape", shape,
                     "external", t->external, "main", t->main_graph, "location", t->location, "offset", (json_int_t)t->offset,
                     "length", (json_int_t)t->length, "raw_off", (json_int_t)t->raw_off, "raw_len", (json_int_t)t->raw_len);
}

static char *found_json(const oc_onnx_model *found)
{
    json_t *tensors = json_array();
    json_t *contexts = json_array();
    json_t *names = json_array();

    for (size_t i = 0; i < found->tensor_count; i++) {
        json_array_append_new(tensors, tensor_json(&found->tensors[i]));
    }
    for (size_t i = 0; i < found->ep_context_count; i++) {
        const oc_onnx_ep_context *const c = &found->ep_contexts[i];
        json_array_append_new(contexts, json_pack("{s:s, s:s, s:s, s:I, s:I, s:s?, s:I}", "name", c->name, "source", c->source,
                                                  "partition", c->partition, "main", (json_int_t)c->main_context, "embed",
                                                  (json_int_t)c->embed_mode, "cache", c->cache_context, "len", (json_int_t)c->cache_len));
    }
    for (size_t i = 0; i < found->subgraph_name_count; i++) {
        json_array_append_new(names, json_string(found->subgraph_names[i]));
    }
    json_t *all = json_pack("{s:b, s:i, s:o, s:o, s:o}", "accepted", 1, "nodes", (int)found->node_count, "tensors", tensors,
                            "ep_contexts", contexts, "subgraph_names", names);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static ortcrypt_status read_pattern(void *state, uint64_t offset, void *buffer, size_t len, ortcrypt_error *err)
{
    const size_t *const tensor = state;

    (void)err;
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)buffer)[i] = (uint8_t)((7 * *tensor + offset + i) % 251);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status append(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    return oc_buf_append(state, data, len, err);
}

static void inline_all(const oc_onnx_model *found, const oc_source *source, oc_buf *out)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_edit *edits = calloc(found->tensor_count + 1, sizeof *edits);
    oc_source *sources = calloc(found->tensor_count + 1, sizeof *sources);
    size_t *indexes = calloc(found->tensor_count + 1, sizeof *indexes);
    size_t count = 0;

    for (size_t i = 0; i < found->tensor_count; i++) {
        if (found->tensors[i].external && found->tensors[i].length < 1 << 20) {
            indexes[count] = i;
            sources[count] = (oc_source){read_pattern, &indexes[count], found->tensors[i].length};
            edits[count] = (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_INLINE, .source = &sources[count], .length = found->tensors[i].length};
            count++;
        }
    }
    if (oc_onnx_rewrite(found, source, edits, count, append, out, NULL, &err) != ORTCRYPT_OK) {
        out->len = 0;
    }
    free(indexes);
    free(sources);
    free(edits);
}

static void answer(const void *data, size_t len)
{
    const uint8_t head[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16), (uint8_t)(len >> 24)};

    if (fwrite(head, 1, 4, stdout) != 4 || fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0) {
        exit(1);
    }
}

static void move_out(const oc_onnx_model *found, const oc_source *source, oc_buf *out)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_edit *edits = calloc(found->tensor_count + 1, sizeof *edits);
    size_t count = 0;
    uint64_t offset = 0;
    uint8_t *head = NULL;

    for (size_t i = 0; i < found->tensor_count; i++) {
        const uint64_t len = found->tensors[i].raw_len;
        if (found->tensors[i].movable) {
            edits[count++] = (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_RELOCATE, .location = "moved", .offset = offset, .length = len};
            offset += len;
        }
    }
    if (oc_buf_reserve(out, 4, &head, &err) == ORTCRYPT_OK) {
        out->len = 4;
        const ortcrypt_status st = oc_onnx_rewrite(found, source, edits, count, append, out, NULL, &err);
        const size_t len = out->len - 4;
        for (unsigned i = 0; i < 4; i++) {
            out->data[i] = (uint8_t)(len >> 8 * i);
        }
        if (st != ORTCRYPT_OK || oc_recipe_make(found, source, edits, count, append, out, &err) != ORTCRYPT_OK) {
            out->len = 0;
        }
    }
    free(edits);
}

static void serve_one(char command, const uint8_t *model, size_t len)
{
    const oc_span span = OC_SPAN(model, len);
    const oc_source source = oc_source_memory(&span);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;
    const ortcrypt_status st = oc_onnx_scan(&found, &source, "m", &err);

    if (command == 'I' || command == 'O') {
        oc_buf out = OC_BUF(1u << 30);
        if (st == ORTCRYPT_OK) {
            (command == 'I' ? inline_all : move_out)(found, &source, &out);
        }
        answer(out.data != NULL ? out.data : (const uint8_t *)"", out.len);
        oc_buf_free(&out);
    } else {
        json_t *refusal = json_pack("{s:b, s:i, s:s}", "accepted", 0, "status", (int)st, "message", err.message);
        char *text = st == ORTCRYPT_OK ? found_json(found) : json_dumps(refusal, JSON_COMPACT);
        answer(text, strlen(text));
        free(text);
        json_decref(refusal);
    }
    oc_onnx_model_free(found);
}

static int serve(void)
{
    uint8_t head[5];

    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        const size_t len = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16 | (size_t)head[4] << 24;
        uint8_t *model = malloc(len + (len == 0)); /* no byte more: reads past the end are seen by the sanitizer */
        if (model == NULL || fread(model, 1, len, stdin) != len) {
            free(model);
            return 1;
        }
        serve_one((char)head[0], model, len);
        free(model);
    }
    return 0;
}

static void agrees_with_protobuf(void **state)
{
    (void)state;
    const char *const deps = oc_test_env("ORTCRYPT_DEPS");
    char *python = oc_test_format("%s/venv/bin/python", deps);
    char *script = oc_test_format("%s/tests/models/diff_scan.py", oc_test_env("ORTCRYPT_SOURCE"));
    char self[4096];
    int status = 0;

    const ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(len > 0);
    self[len] = '\0';
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
        execl(python, python, script, "--mutations", MUTATIONS, self, deps, (char *)NULL);
        (void)fprintf(stderr, "%s: %s\n", python, strerror(errno));
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    free(script);
    free(python);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_protobuf)};

    if (argc == 2 && strcmp(argv[1], "--serve") == 0) {
        return serve();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
