/* cli/cmd_compile.c: `ortcrypt compile`. */
#include <string.h>

#include "keys.h"
#include "ortcrypt/compile.h"
#include "report.h"
#include "runtime.h"
#include "sandbox.h"
#include "terminal.h"

static ortcrypt_rewrite rewrite_from(const char *text)
{
    if (text != NULL && strcmp(text, "replace") == 0) {
        return ORTCRYPT_REWRITE_REPLACE;
    }
    return text != NULL && strcmp(text, "append") == 0 ? ORTCRYPT_REWRITE_APPEND : ORTCRYPT_REWRITE_SAME;
}

static ortcrypt_optimize optimize_from(const char *text)
{
    static const char *const names[] = {[ORTCRYPT_OPTIMIZE_NONE] = "none",
                                        [ORTCRYPT_OPTIMIZE_BASIC] = "basic",
                                        [ORTCRYPT_OPTIMIZE_EXTENDED] = "extended",
                                        [ORTCRYPT_OPTIMIZE_ALL] = "all"};
    for (unsigned i = ORTCRYPT_OPTIMIZE_NONE; text != NULL && i <= ORTCRYPT_OPTIMIZE_ALL; i++) {
        if (strcmp(text, names[i]) == 0) {
            return (ortcrypt_optimize)i;
        }
    }
    return ORTCRYPT_OPTIMIZE_DEFAULT;
}

static void print_result(const ortcrypt_compile_result *result, const char *runtime_version, const char *ep, const char *path)
{
    char size[24];
    cli_size_text(size, result->blob_len);
    cli_print_row(9, "compiled", "variant %s of %s, with %s on ONNX Runtime %s", result->variant, path, ep, runtime_version);
    cli_print_row(9, "nodes", "%zu, %zu of them compiled", result->node_count, result->ep_context_count);
    cli_print_row(9, "blobs", "%zu, %s", result->blob_count, size);
    if (result->initializer_count != 0) {
        cli_print_row(9, "weights", "%zu stored by themselves", result->initializer_count);
    }
    cli_print_row(9, "checked", "%s", result->verified ? "it loads" : "not loaded (unverified)");
    cli_print_info(&result->bundle);
}

static ortcrypt_status report(cli_context *context, const ortcrypt_compile_result *result, const char *runtime_version, const char *ep,
                              const char *path, ortcrypt_error *err)
{
    if (!context->json) {
        cli_progress_clear();
        print_result(result, runtime_version, ep, path);
        return ORTCRYPT_OK;
    }
    return cli_print_json(
        context,
        json_pack("{s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "path", cli_json_text(path), "variant",
                  cli_json_text(result->variant), "ep", cli_json_text(ep), "runtime", runtime_version, "nodes",
                  (json_int_t)result->node_count, "ep_context_nodes", (json_int_t)result->ep_context_count, "blobs",
                  (json_int_t)result->blob_count, "blob_bytes", (json_int_t)result->blob_len, "initializers",
                  (json_int_t)result->initializer_count, "verified", result->verified, "bundle", cli_info_json(&result->bundle)),
        err);
}

static ortcrypt_compile_options options_from(cli_context *context, const cli_ep *ep, const cli_pairs *pairs,
                                             const ortcrypt_open_options *open)
{
    const cli_args *args = context->args;
    return (ortcrypt_compile_options){.struct_size = sizeof(ortcrypt_compile_options),
                                      .variant = cli_args_value(args, OPT_VARIANT),
                                      .ep = ep->name,
                                      .ep_library = ep->library,
                                      .ep_option_keys = (const char *const *)pairs->keys,
                                      .ep_option_values = pairs->values,
                                      .ep_option_count = pairs->count,
                                      .embed = cli_args_has(args, OPT_EMBED),
                                      .allow_none_compiled = cli_args_has(args, OPT_ALLOW_NONE_COMPILED),
                                      .no_load_check = cli_args_has(args, OPT_NO_LOAD_CHECK),
                                      .rewrite = rewrite_from(cli_args_value(args, OPT_REWRITE)),
                                      .initializer_min_len = (size_t)cli_args_number(args, OPT_INITIALIZER_MIN, 0),
                                      .out_path = cli_args_value(args, OPT_OUTPUT),
                                      .open = open,
                                      .monitor = &context->monitor,
                                      .weightless = cli_args_has(args, OPT_WEIGHTLESS),
                                      .optimize = optimize_from(cli_args_value(args, OPT_OPTIMIZE))};
}

ortcrypt_status cmd_compile(cli_context *context, ortcrypt_error *err)
{
    const cli_args *args = context->args;
    const ortcrypt_open_options open = cli_open_options(context);
    const char *out_path = cli_args_value(args, OPT_OUTPUT);
    ortcrypt_compile_result result;
    ortcrypt_runtime *runtime = NULL;
    cli_keys keys = {0};
    cli_ep ep = {0};
    cli_pairs pairs = {0};
    ortcrypt_status st = ORTCRYPT_OK;
    if (!cli_args_has(args, OPT_EP)) {
        (void)cli_fail(err, ORTCRYPT_E_INVALID, "compile needs --ep NAME[=LIBRARY]");
        cli_hint(err, "--ep OrtcryptReference needs nothing else; `ortcrypt eps` lists what there is");
        return ORTCRYPT_E_INVALID;
    }
    st = cli_keys_for_opening(&keys, args, false, err);
    if (st == ORTCRYPT_OK) {
        st = cli_ep_parse(&ep, cli_args_value(args, OPT_EP), err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_args_pairs(args, OPT_EP_OPTION, &pairs, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_sandbox_enter(context, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_runtime_open(&runtime, context, err);
    }
    if (st == ORTCRYPT_OK) {
        const ortcrypt_compile_options options = options_from(context, &ep, &pairs, &open);
        st = ortcrypt_compile(runtime, args->operands[0], keys.ring, &options, &result, err);
    }
    if (st == ORTCRYPT_OK) {
        cli_output_take_back();
        st = report(context, &result, ortcrypt_runtime_version(runtime), ep.name, out_path != NULL ? out_path : args->operands[0], err);
    }
    cli_runtime_close(runtime);
    cli_pairs_free(&pairs);
    cli_ep_free(&ep);
    cli_keys_free(&keys);
    return st;
}
