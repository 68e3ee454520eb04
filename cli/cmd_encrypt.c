/* cli/cmd_encrypt.c: `ortcrypt encrypt`. */
#include <stdlib.h>

#include "keys.h"
#include "report.h"
#include "terminal.h"

ortcrypt_status cmd_encrypt(cli_context *context, ortcrypt_error *err)
{
    const cli_args *args = context->args;
    const char *bundle = cli_args_value(args, OPT_OUTPUT);
    ortcrypt_encrypt_options options = {.struct_size = sizeof options, .monitor = &context->monitor};
    ortcrypt_bundle_info info = {0};
    cli_keys keys = {0};
    cli_pairs labels = {0};
    const char **extras = calloc(args->count + 1, sizeof *extras);
    size_t at = 0;
    ortcrypt_status st = extras != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
    if (st == ORTCRYPT_OK && bundle == NULL) {
        st = cli_fail(err, ORTCRYPT_E_INVALID, "encrypt needs -o BUNDLE");
    }
    if (st == ORTCRYPT_OK && cli_args_has(args, OPT_SPLIT) && cli_args_has(args, OPT_NO_SPLIT)) {
        st = cli_fail(err, ORTCRYPT_E_INVALID, "--split and --no-split exclude each other");
    }
    if (st == ORTCRYPT_OK) {
        options.split = cli_args_has(args, OPT_SPLIT)      ? ORTCRYPT_SPLIT_ALWAYS
                        : cli_args_has(args, OPT_NO_SPLIT) ? ORTCRYPT_SPLIT_NEVER
                                                           : ORTCRYPT_SPLIT_LARGE;
        st = cli_args_pairs(args, OPT_LABEL, &labels, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_keys_for_writing(&keys, args, err);
    }
    if (st == ORTCRYPT_OK) {
        while ((extras[options.extra_count] = cli_args_next(args, OPT_EXTRA, &at)) != NULL) {
            options.extra_count++;
        }
        options.extra_files = extras;
        options.label_keys = (const char *const *)labels.keys;
        options.label_values = labels.values;
        options.label_count = labels.count;
        st = ortcrypt_encrypt(args->operands[0], bundle, keys.ring, &options, &info, err);
    }
    if (st == ORTCRYPT_OK && context->json) {
        st = cli_print_json(context, json_pack("{s:o, s:o}", "path", cli_json_text(bundle), "bundle", cli_info_json(&info)), err);
    } else if (st == ORTCRYPT_OK) {
        cli_progress_clear();
        cli_print_row(9, "made", "%s", bundle);
        cli_print_info(&info);
    }
    cli_keys_free(&keys);
    cli_pairs_free(&labels);
    free(extras);
    return st;
}
