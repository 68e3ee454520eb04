/* cli/cmd_verify.c: `ortcrypt verify`. Source of the members: ortcrypt_bundle_verify, docs/api.md. */
#include <string.h>

#include "keys.h"
#include "report.h"
#include "terminal.h"

#define WIDTH 9

static void print_list(const char *name, const json_t *list)
{
    size_t index = 0;
    json_t *entry = NULL;
    json_array_foreach(list, index, entry) {
        cli_print_row(WIDTH, index == 0 ? name : "", "%s", json_is_string(entry) ? json_string_value(entry) : "");
    }
}

/* Each with what it belongs to: "compiled-1: ep_context ctx_0.bin". */
static void print_damaged(const json_t *damaged)
{
    size_t index = 0;
    json_t *item = NULL;
    json_array_foreach(damaged, index, item) {
        size_t at = 0;
        json_t *part = NULL;
        cli_print_row(WIDTH, index == 0 ? "damaged" : "", "%s", cli_json_string(item, "error"));
        json_array_foreach(json_object_get(item, "parts"), at, part) {
            cli_print_row(WIDTH, "", "  of variant %s: %s %s", cli_json_string(part, "variant"), cli_json_string(part, "role"),
                          cli_json_string(part, "name"));
        }
    }
}

static void print_report(const json_t *all)
{
    const json_t *checked = json_object_get(all, "checked");
    const bool with_key = json_is_true(json_object_get(all, "with_key"));
    const size_t damaged = json_array_size(json_object_get(all, "damaged"));
    char size[24];
    cli_size_text(size, (uint64_t)json_integer_value(json_object_get(checked, "len")));
    cli_print_row(WIDTH, "bundle", "%s", cli_json_string(all, "path"));
    cli_print_row(WIDTH, "pin", "%s", cli_json_string(all, "manifest_id"));
    cli_print_row(WIDTH, "checked", "%lld %s, %s", (long long)json_integer_value(json_object_get(checked, with_key ? "assets" : "objects")),
                  with_key ? "files opened and authenticated" : "objects against their names", size);
    print_list("proven", json_object_get(all, "proven"));
    print_list("unproven", json_object_get(all, "not_proven"));
    print_damaged(json_object_get(all, "damaged"));
    cli_print_row(WIDTH, "result", "%s", damaged != 0 ? "damaged" : with_key ? "authentic" : "intact");
}

ortcrypt_status cmd_verify(cli_context *context, ortcrypt_error *err)
{
    const ortcrypt_open_options open = cli_open_options(context);
    ortcrypt_error print_err = ORTCRYPT_ERROR_INIT;
    cli_keys keys = {0};
    char *text = NULL;
    ortcrypt_status st = cli_keys_for_opening(&keys, context->args, true, err);
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_bundle_verify(context->args->operands[0], keys.ring, &open, &text, err);
    }
    if (text != NULL && context->json) { /* also after damage: the report lists it */
        const ortcrypt_status printed = cli_print_json_text(context, text, &print_err);
        text = NULL;
        if (st == ORTCRYPT_OK && printed != ORTCRYPT_OK) {
            *err = print_err;
            st = printed;
        }
    } else if (text != NULL) {
        json_t *all = json_loads(text, 0, NULL);
        cli_progress_clear();
        print_report(all);
        json_decref(all);
    }
    ortcrypt_free(text, 0);
    cli_keys_free(&keys);
    return st;
}
