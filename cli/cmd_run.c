/*
 * cli/cmd_run.c: `ortcrypt run`.
 *
 * Keys are read first (their variables are wiped before anything is loaded), then the runtime, the bundle, the session. All that is
 * printed is collected in struct result and printed last, as a table or as JSON.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache.h"
#include "keys.h"
#include "ortcrypt/session.h"
#include "report.h"
#include "run.h"
#include "runtime.h"
#include "sandbox.h"
#include "terminal.h"

typedef struct run_state {
    cli_context *context;
    cli_keys keys;
    cli_ep ep;
    cli_pairs options;
    cli_cache cache;
    ortcrypt_runtime *runtime;
    ortcrypt_bundle *bundle;
    ortcrypt_session *session;
    cli_model model;
    cli_inputs inputs;
    cli_outputs outputs;
    cli_difference *differences; /* NULL: --compare was not given */
    char **files;                /* written files, of model.output_count */
    double create_seconds;
    double first_seconds;
    double *latencies; /* sorted, --repeat of them */
    size_t latency_count;
} run_state;

static double now_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static ortcrypt_status open_everything(run_state *run, ortcrypt_error *err)
{
    const cli_args *args = run->context->args;
    const ortcrypt_open_options open = cli_open_options(run->context);
    ortcrypt_session_options options = {.struct_size = sizeof options, .monitor = &run->context->monitor};
    ortcrypt_status st = cli_keys_for_opening(&run->keys, args, false, err);
    if (st == ORTCRYPT_OK) {
        st = cli_ep_parse(&run->ep, cli_args_value(args, OPT_EP), err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_args_pairs(args, OPT_EP_OPTION, &run->options, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_cache_find(&run->cache, args, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_sandbox_enter(run->context, err);
    }
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_bundle_open(&run->bundle, args->operands[0], run->keys.ring, &open, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_runtime_open(&run->runtime, run->context, err);
    }
    if (st == ORTCRYPT_OK) {
        const double start = now_seconds();
        options.variant = cli_args_value(args, OPT_VARIANT);
        options.ep = run->ep.name;
        options.ep_library = run->ep.library;
        options.ep_option_keys = (const char *const *)run->options.keys;
        options.ep_option_values = run->options.values;
        options.ep_option_count = run->options.count;
        options.cache = run->cache.folder;
        options.machine_key_file = run->cache.machine_key;
        options.cache_max_len = run->cache.max_len;
        options.lazy = cli_args_has(args, OPT_LAZY);
        st = ortcrypt_session_open(&run->session, run->runtime, run->bundle, &options, err);
        run->create_seconds = now_seconds() - start;
    }
    if (st == ORTCRYPT_OK) {
        st = cli_model_open(&run->model, ortcrypt_runtime_api(run->runtime), ortcrypt_session_ort(run->session), err);
    }
    return st;
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

static ortcrypt_status measure(run_state *run, ortcrypt_error *err)
{
    const uint64_t wanted = cli_args_number(run->context->args, OPT_REPEAT, 0);
    ortcrypt_status st = ORTCRYPT_OK;
    if (wanted == 0) {
        return ORTCRYPT_OK;
    }
    if (wanted > 10000000) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--repeat takes at most 10000000");
    }
    run->latencies = calloc((size_t)wanted, sizeof *run->latencies);
    if (run->latencies == NULL) {
        return cli_fail_memory(err);
    }
    while (st == ORTCRYPT_OK && run->latency_count < wanted) {
        cli_outputs again = {0};
        st = cli_check_interrupt(err);
        if (st == ORTCRYPT_OK) {
            st = cli_outputs_run(&again, &run->model, &run->inputs, &run->latencies[run->latency_count], err);
        }
        if (st == ORTCRYPT_OK) {
            run->latency_count++;
        }
        cli_outputs_free(&again);
    }
    qsort(run->latencies, run->latency_count, sizeof *run->latencies, by_value);
    return st;
}

/* Nearest rank, in milliseconds. */
static double percentile(const run_state *run, double percent)
{
    const double rank = ceil(percent / 100 * (double)run->latency_count);
    return run->latencies[rank < 1 ? 0 : (size_t)rank - 1] * 1000;
}

/* Least and greatest finite value, for the table. false: none. */
static bool value_range(const cli_tensor *tensor, double *least, double *greatest)
{
    bool any = false;
    const cli_type *known = cli_type_find(tensor->type);
    for (size_t i = 0; known != NULL && known->kind != 's' && i < tensor->count; i++) {
        const double value = cli_tensor_number(tensor, i);
        if (isfinite(value)) {
            *least = !any || value < *least ? value : *least;
            *greatest = !any || value > *greatest ? value : *greatest;
            any = true;
        }
    }
    return any;
}

static void print_output_row(const run_state *run, size_t i)
{
    const cli_tensor *tensor = &run->outputs.tensors[i];
    const char *folder = cli_args_value(run->context->args, OPT_OUTPUT);
    char text[512];
    double least = 0;
    double greatest = 0;
    if (tensor->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
        cli_value_text(text, sizeof text, &run->model.outputs[i]);
    } else {
        cli_tensor_text(text, sizeof text, tensor);
    }
    cli_print_row(9, "output", "%s: %s", run->model.outputs[i].name, text);
    if (value_range(tensor, &least, &greatest)) {
        cli_print_row(9, "", "values from %.6g to %.6g", least, greatest);
    }
    if (run->files != NULL && run->files[i] != NULL) {
        cli_print_row(9, "", "written to %s/%s", folder, run->files[i]);
    }
    if (run->differences != NULL) {
        const cli_difference *difference = &run->differences[i];
        if (!difference->compared) {
            cli_print_row(9, "", "against the plaintext model: %s", difference->same_bytes ? "all bytes are equal" : "different");
        } else {
            cli_print_row(9, "", "against the plaintext model: largest difference %.3g, range %.6g, equal bytes: %s",
                          difference->max_abs, difference->range, difference->same_bytes ? "yes" : "no");
        }
    }
}

/* Source of the members: ortcrypt_session_plan, docs/api.md. */
static ortcrypt_status print_plan(const run_state *run, ortcrypt_error *err)
{
    char *text = NULL;
    const ortcrypt_status st = ortcrypt_session_plan(run->session, &text, err);
    json_t *plan = st == ORTCRYPT_OK ? json_loads(text, 0, NULL) : NULL;
    size_t index = 0;
    json_t *asset = NULL;
    ortcrypt_free(text, 0);
    if (plan != NULL) {
        cli_print_row(9, "variant", "%s (%s, from the %s)", cli_json_string(plan, "variant"), cli_json_string(plan, "kind"),
                      cli_json_string(plan, "from"));
    }
    if (plan != NULL) {
        char size[24];
        cli_size_text(size, (uint64_t)json_integer_value(json_object_get(plan, "expected_peak")));
        cli_print_row(9, "memory", "%s expected at most while loading, an execution provider's own not counted", size);
    }
    json_array_foreach(json_object_get(plan, "assets"), index, asset) {
        char size[24];
        cli_size_text(size, (uint64_t)json_integer_value(json_object_get(asset, "bytes")));
        cli_print_row(9, index == 0 ? "assets" : "", "%s %s%s%s, by %s%s", cli_json_string(asset, "role"),
                      cli_json_string(asset, "name"), cli_json_string(asset, "name")[0] != 0 ? ", " : "", size,
                      cli_json_string(asset, "route"),
                      json_is_true(json_object_get(asset, "resident")) ? ", kept in memory as long as the session" : "");
        if (cli_json_string(asset, "why")[0] != 0) {
            cli_print_row(9, "", "  because %s", cli_json_string(asset, "why"));
        }
        if (json_object_get(asset, "sharing") != NULL) {
            cli_print_row(9, "", "  %s", cli_json_string(asset, "sharing"));
        }
    }
    json_decref(plan);
    return st;
}

static ortcrypt_status print_table(const run_state *run, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    char text[512];
    cli_print_row(9, "runtime", "ONNX Runtime %s, %s", ortcrypt_runtime_version(run->runtime),
                  run->ep.name != NULL ? run->ep.name : "CPUExecutionProvider");
    for (size_t i = 0; i < run->inputs.count; i++) {
        cli_tensor_text(text, sizeof text, &run->inputs.tensors[i]);
        cli_print_row(9, "input", "%s: %s", run->model.inputs[i].name, text);
    }
    for (size_t i = 0; i < run->outputs.count; i++) {
        print_output_row(run, i);
    }
    cli_print_row(9, "time", "session %.1f ms, first run %.1f ms", run->create_seconds * 1000, run->first_seconds * 1000);
    if (run->latency_count != 0) {
        cli_print_row(9, "latency", "min %.3f, p50 %.3f, p90 %.3f, p99 %.3f, max %.3f ms of %zu runs", percentile(run, 0),
                      percentile(run, 50), percentile(run, 90), percentile(run, 99), percentile(run, 100), run->latency_count);
    }
    if (cli_args_has(run->context->args, OPT_EXPLAIN)) {
        st = print_plan(run, err);
    }
    return st;
}

static json_t *tensor_json(const char *name, const cli_tensor *tensor)
{
    char type[32];
    json_t *shape = json_array();
    for (size_t i = 0; i < tensor->rank; i++) {
        (void)json_array_append_new(shape, json_integer(tensor->shape[i]));
    }
    return json_pack("{s:o, s:s, s:o}", "name", cli_json_text(name), "type", cli_type_name(tensor->type, type), "shape", shape);
}

/* JSON has no infinities: null. */
static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *output_json(const run_state *run, size_t i)
{
    const cli_tensor *tensor = &run->outputs.tensors[i];
    json_t *output = tensor_json(run->model.outputs[i].name, tensor);
    double least = 0;
    double greatest = 0;
    if (value_range(tensor, &least, &greatest)) {
        (void)json_object_set_new(output, "min", json_real(least));
        (void)json_object_set_new(output, "max", json_real(greatest));
    }
    if (run->files != NULL && run->files[i] != NULL) {
        (void)json_object_set_new(output, "file", cli_json_text(run->files[i]));
    }
    if (run->differences != NULL) {
        const cli_difference *difference = &run->differences[i];
        (void)json_object_set_new(output, "compare",
                                  json_pack("{s:b, s:b, s:o, s:o}", "equal_bytes", difference->same_bytes, "within",
                                            difference->within, "max_abs",
                                            difference->compared ? number_json(difference->max_abs) : json_null(), "range",
                                            difference->compared ? number_json(difference->range) : json_null()));
    }
    return output;
}

static ortcrypt_status print_json(const run_state *run, ortcrypt_error *err)
{
    json_t *inputs = json_array();
    json_t *outputs = json_array();
    char *plan = NULL;
    for (size_t i = 0; i < run->inputs.count; i++) {
        (void)json_array_append_new(inputs, tensor_json(run->model.inputs[i].name, &run->inputs.tensors[i]));
    }
    for (size_t i = 0; i < run->outputs.count; i++) {
        (void)json_array_append_new(outputs, output_json(run, i));
    }
    json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:f, s:f}", "runtime", ortcrypt_runtime_version(run->runtime), "ep",
                            cli_json_text(run->ep.name != NULL ? run->ep.name : "CPUExecutionProvider"), "inputs", inputs, "outputs",
                            outputs, "session_ms", run->create_seconds * 1000, "first_run_ms", run->first_seconds * 1000);
    if (all != NULL && run->latency_count != 0) {
        (void)json_object_set_new(all, "latency_ms",
                                  json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "runs", (json_int_t)run->latency_count, "min",
                                            percentile(run, 0), "p50", percentile(run, 50), "p90", percentile(run, 90), "p99",
                                            percentile(run, 99), "max", percentile(run, 100)));
    }
    if (all != NULL && cli_args_has(run->context->args, OPT_EXPLAIN)) {
        const ortcrypt_status st = ortcrypt_session_plan(run->session, &plan, err);
        if (st != ORTCRYPT_OK) {
            json_decref(all);
            return st;
        }
        (void)json_object_set_new(all, "plan", json_loads(plan, 0, NULL));
        ortcrypt_free(plan, 0);
    }
    return cli_print_json(run->context, all, err);
}

static ortcrypt_status check_differences(const run_state *run, ortcrypt_error *err)
{
    for (size_t i = 0; run->differences != NULL && i < run->outputs.count; i++) {
        const cli_difference *difference = &run->differences[i];
        if (!difference->within && difference->compared) {
            return cli_fail(err, ORTCRYPT_E_INPUT, "output '%s' differs from the plaintext model's by %.3g; 1e-5 of its range is %.3g",
                            run->model.outputs[i].name, difference->max_abs, CLI_TOLERANCE * difference->range);
        }
        if (!difference->within) {
            return cli_fail(err, ORTCRYPT_E_INPUT, "output '%s' is not the plaintext model's", run->model.outputs[i].name);
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status run_and_report(run_state *run, ortcrypt_error *err)
{
    const cli_args *args = run->context->args;
    const char *folder = cli_args_value(args, OPT_OUTPUT);
    const char *plain = cli_args_value(args, OPT_COMPARE);
    ortcrypt_status st = cli_inputs_make(&run->inputs, &run->model, args, err);
    if (st == ORTCRYPT_OK) {
        st = cli_outputs_run(&run->outputs, &run->model, &run->inputs, &run->first_seconds, err);
    }
    if (st == ORTCRYPT_OK) {
        st = measure(run, err);
    }
    if (st == ORTCRYPT_OK && plain != NULL) {
        st = cli_compare_model(&run->differences, &run->model, &run->inputs, &run->outputs, ortcrypt_runtime_env(run->runtime), plain,
                               err);
    }
    if (st == ORTCRYPT_OK && folder != NULL) {
        run->files = calloc(run->model.output_count + 1, sizeof *run->files);
        st = run->files != NULL ? cli_outputs_write(&run->outputs, &run->model, folder, run->files, err) : cli_fail_memory(err);
    }
    if (st == ORTCRYPT_OK) {
        cli_progress_clear();
        cli_output_take_back();
        st = run->context->json ? print_json(run, err) : print_table(run, err);
    }
    return st == ORTCRYPT_OK ? check_differences(run, err) : st;
}

static void close_everything(run_state *run)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    for (size_t i = 0; run->files != NULL && i < run->model.output_count; i++) {
        free(run->files[i]);
    }
    free(run->files);
    free(run->latencies);
    free(run->differences);
    cli_output_lend();
    cli_outputs_free(&run->outputs);
    cli_inputs_free(&run->inputs);
    cli_model_close(&run->model);
    ortcrypt_session_close(run->session);
    if (ortcrypt_bundle_close(run->bundle, &err) != ORTCRYPT_OK) {
        cli_print_note("closing the bundle: %s", err.message);
    }
    cli_runtime_close(run->runtime);
    cli_cache_free(&run->cache);
    cli_pairs_free(&run->options);
    cli_ep_free(&run->ep);
    cli_keys_free(&run->keys);
}

ortcrypt_status cmd_run(cli_context *context, ortcrypt_error *err)
{
    run_state run = {.context = context};
    const char *folder = cli_args_value(context->args, OPT_OUTPUT);
    ortcrypt_status st = folder != NULL ? cli_check_absent(folder, err) : ORTCRYPT_OK;
    if (st == ORTCRYPT_OK) {
        st = open_everything(&run, err);
    }
    if (st == ORTCRYPT_OK) {
        st = run_and_report(&run, err);
    }
    close_everything(&run);
    return st;
}
