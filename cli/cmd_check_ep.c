/* cli/cmd_check_ep.c: `ortcrypt check-ep`. Neither ONNX Runtime nor the EP is loaded here: every run is a program of its own. */
#include <stdlib.h>
#include <string.h>

#include "conform/check.h"
#include "report.h"
#include "terminal.h"

static void print_rows(const json_t *rows, const char *what)
{
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row) {
        const char *detail = cli_json_string(row, "detail");
        cli_print_row(64, cli_json_string(row, what), "%s%s%s", cli_json_string(row, "verdict"), detail[0] != 0 ? ": " : "", detail);
    }
}

static void print_report(const json_t *report)
{
    const char *version = cli_json_string(report, "ep_version");
    cli_print_row(12, "EP", "%s%s%s", cli_json_string(report, "ep"), version[0] != 0 ? ", version " : "", version);
    cli_print_row(12, "library", "%s", cli_json_string(report, "library"));
    cli_print_row(12, "runtime", "ONNX Runtime %s", cli_json_string(report, "runtime"));
    (void)putchar('\n');
    print_rows(json_object_get(report, "models"), "what");
    (void)putchar('\n');
    print_rows(json_object_get(report, "rows"), "what");
}

/* The first row that fails, by name. */
static ortcrypt_status name_fault(const json_t *report, ortcrypt_error *err)
{
    size_t index = 0;
    json_t *row = NULL;
    if (json_is_true(json_object_get(report, "holds"))) {
        return ORTCRYPT_OK;
    }
    json_array_foreach(json_object_get(report, "rows"), index, row) {
        if (strcmp(cli_json_string(row, "verdict"), "fails") == 0) {
            break;
        }
    }
    (void)cli_fail(err, ORTCRYPT_E_INPUT, "%s does not keep the contract: \"%s\" does not hold", cli_json_string(report, "ep"),
                   cli_json_string(row, "what"));
    cli_hint(err, "docs/ep-authors.md says what each row means");
    return ORTCRYPT_E_INPUT;
}

ortcrypt_status cmd_check_ep(cli_context *context, ortcrypt_error *err)
{
    const char *ort = cli_args_value(context->args, OPT_ORT);
    cli_pairs pairs = {0};
    json_t *report = NULL;
    ort = ort != NULL ? ort : getenv("ORTCRYPT_ORT");
    ortcrypt_status st = cli_args_pairs(context->args, OPT_EP_OPTION, &pairs, err);
    if (st == ORTCRYPT_OK) {
        const oc_check_options options = {.ort = ort != NULL && *ort != 0 ? ort : NULL,
                                          .library = context->args->operands[0],
                                          .ep = cli_args_value(context->args, OPT_EP),
                                          .keys = (const char *const *)pairs.keys,
                                          .values = pairs.values,
                                          .count = pairs.count,
                                          .monitor = &context->monitor};
        st = oc_check_ep(&report, &options, err);
    }
    if (st == ORTCRYPT_OK) {
        st = name_fault(report, err);
        cli_progress_clear();
        if (context->json) {
            if (st != ORTCRYPT_OK) {
                (void)json_object_set_new(report, "error", cli_error_json(err));
            }
            const ortcrypt_status printed = cli_print_json(context, json_incref(report), err);
            st = printed != ORTCRYPT_OK ? printed : st;
        } else {
            print_report(report);
        }
    }
    json_decref(report);
    cli_pairs_free(&pairs);
    return st;
}
