/* cli/cmd_eps.c: `ortcrypt eps`. Source of the members: the comment at ortcrypt_runtime_describe. */
#include <string.h>

#include "eps.h"
#include "report.h"
#include "runtime.h"
#include "sandbox.h"
#include "terminal.h"

static void print_ep(const json_t *ep)
{
    char devices[256] = "";
    size_t used = 0;
    size_t index = 0;
    json_t *device = NULL;
    json_array_foreach(json_object_get(ep, "devices"), index, device) {
        const int len = snprintf(devices + used, sizeof devices - used, "%s%s", used != 0 ? ", " : "", cli_json_string(device, "type"));
        used += len > 0 && used + (size_t)len < sizeof devices ? (size_t)len : 0;
    }
    (void)putchar('\n');
    cli_print_row(12, "EP", "%s", cli_json_string(ep, "name"));
    cli_print_row(12, "  by", "%s%s%s", cli_json_string(ep, "vendor"), cli_json_string(ep, "version")[0] != 0 ? ", version " : "",
                  cli_json_string(ep, "version"));
    cli_print_row(12, "  devices", "%s", devices);
    json_array_foreach(json_object_get(ep, "devices"), index, device) {
        const json_t *probe = json_object_get(device, "probe");
        if (json_is_object(probe) && json_array_size(json_object_get(ep, "devices")) > 1) { /* else the route says it */
            cli_print_row(12, "  tried out", "%s: %s: %s", cli_json_string(device, "type"),
                          json_is_true(json_object_get(probe, "proven")) ? "proven" : "refused", cli_json_string(probe, "why"));
        }
    }
    cli_print_row(12, "  route", "%s%s%s", cli_json_string(ep, "route"), cli_json_string(ep, "why")[0] != 0 ? ": " : "", cli_json_string(ep, "why"));
}

static void print_runtime(const json_t *all)
{
    const json_t *runtime = json_object_get(all, "runtime");
    const json_t *kernel = json_object_get(all, "kernel");
    const json_t *swap = json_object_get(kernel, "swap");
    const char *library = cli_json_string(runtime, "library");
    char abi[32];
    const int landlock = (int)json_integer_value(json_object_get(kernel, "landlock"));
    cli_print_row(12, "runtime", "ONNX Runtime %s%s%s", cli_json_string(runtime, "version"), library[0] != 0 ? ", " : "", library);
    cli_print_row(12, "callbacks", "%s", strcmp(cli_json_string(runtime, "era"), "stable") == 0         ? "stable (1.31 and newer)"
                                         : strcmp(cli_json_string(runtime, "era"), "experimental") == 0 ? "experimental (1.28 to 1.30)"
                                                                                                : "none in this version");
    cli_print_row(12, "telemetry", "%s", cli_json_string(all, "telemetry"));
    (void)snprintf(abi, sizeof abi, landlock > 0 ? "ABI %d" : "no", landlock);
    cli_print_row(12, "kernel", "userfaultfd %s, Landlock %s, seccomp %s, user notification %s",
                  json_is_true(json_object_get(kernel, "userfaultfd")) ? "yes" : "no", abi,
                  json_is_true(json_object_get(kernel, "seccomp")) ? "yes" : "no",
                  json_is_true(json_object_get(kernel, "user_notification")) ? "yes" : "no");
    cli_print_row(12, "swap", "%s",
                  json_is_true(swap) ? "on (decrypted memory may reach it)" : json_is_false(swap) ? "off" : "unknown");
}

/* A crash writes the process's memory there; the command line makes no core dumps, an application may. */
static void print_core_pattern(const json_t *kernel)
{
    const char *pattern = cli_json_string(kernel, "core_pattern");
    cli_print_row(12, "core dumps", "%s%s", pattern[0] == '|' ? "to a program: " : pattern[0] != 0 ? "to files: " : "unknown", pattern);
}

static ortcrypt_status describe(char **text, ortcrypt_runtime *runtime, cli_context *context, ortcrypt_error *err)
{
    cli_pairs pairs = {0};
    ortcrypt_status st = cli_args_pairs(context->args, OPT_EP_OPTION, &pairs, err);
    if (st == ORTCRYPT_OK) {
        const ortcrypt_describe_options options = {.struct_size = sizeof options,
                                                   .probe = cli_args_has(context->args, OPT_PROBE),
                                                   .ep_option_keys = (const char *const *)pairs.keys,
                                                   .ep_option_values = pairs.values,
                                                   .ep_option_count = pairs.count};
        st = ortcrypt_runtime_describe(runtime, &options, text, err);
    }
    cli_pairs_free(&pairs);
    return st;
}

static ortcrypt_status register_eps(ortcrypt_runtime *runtime, const cli_args *args, ortcrypt_error *err)
{
    const char *text = NULL;
    size_t at = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    while (st == ORTCRYPT_OK && (text = cli_args_next(args, OPT_EP, &at)) != NULL) {
        cli_ep ep;
        st = cli_ep_parse(&ep, text, err);
        if (st == ORTCRYPT_OK && ep.library != NULL) {
            st = ortcrypt_runtime_register_ep(runtime, ep.name, ep.library, err);
        } else if (st == ORTCRYPT_OK) {
            st = cli_fail(err, ORTCRYPT_E_INVALID, "--ep %s needs its library: --ep %s=LIBRARY", ep.name, ep.name);
        }
        cli_ep_free(&ep);
    }
    return st;
}

ortcrypt_status cmd_eps(cli_context *context, ortcrypt_error *err)
{
    ortcrypt_runtime *runtime = NULL;
    char *text = NULL;
    ortcrypt_status st = cli_sandbox_enter(context, err);
    if (st == ORTCRYPT_OK) {
        st = cli_runtime_open(&runtime, context, err);
    }
    if (st == ORTCRYPT_OK) {
        st = register_eps(runtime, context->args, err);
    }
    if (st == ORTCRYPT_OK) {
        st = describe(&text, runtime, context, err);
    }
    cli_output_take_back();
    if (st == ORTCRYPT_OK && context->json) {
        st = cli_print_json_text(context, text, err);
    } else if (st == ORTCRYPT_OK) {
        json_t *all = json_loads(text, 0, NULL);
        size_t index = 0;
        json_t *ep = NULL;
        print_runtime(all);
        print_core_pattern(json_object_get(all, "kernel"));
        json_array_foreach(json_object_get(all, "eps"), index, ep) {
            print_ep(ep);
        }
        cli_print_functions(json_object_get(all, "functions"));
        json_decref(all);
        ortcrypt_free(text, 0);
    }
    cli_runtime_close(runtime);
    return st;
}
