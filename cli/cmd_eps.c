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
    cli_print_row(12, "kernel", "userfaultfd %s, Landlock %s, seccomp %s, swap %s",
                  json_is_true(json_object_get(kernel, "userfaultfd")) ? "yes" : "no", abi,
                  json_is_true(json_object_get(kernel, "seccomp")) ? "yes" : "no",
                  json_is_true(swap) ? "on (decrypted memory may reach it)" : json_is_false(swap) ? "off" : "unknown");
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
        st = ortcrypt_runtime_describe(runtime, &text, err);
    }
    cli_output_take_back();
    if (st == ORTCRYPT_OK && context->json) {
        st = cli_print_json_text(context, text, err);
    } else if (st == ORTCRYPT_OK) {
        json_t *all = json_loads(text, 0, NULL);
        size_t index = 0;
        json_t *ep = NULL;
        print_runtime(all);
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
