/* cli/cmd_decrypt.c: `ortcrypt decrypt`. */
#include "keys.h"
#include "terminal.h"

ortcrypt_status cmd_decrypt(cli_context *context, ortcrypt_error *err)
{
    const cli_args *args = context->args;
    const ortcrypt_open_options open = cli_open_options(context);
    const char *folder = cli_args_value(args, OPT_OUTPUT);
    ortcrypt_error close_err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;
    cli_keys keys = {0};
    if (folder == NULL) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "decrypt needs -o DIR");
    }
    ortcrypt_status st = cli_keys_for_opening(&keys, args, false, err);
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_bundle_open(&bundle, args->operands[0], keys.ring, &open, err);
    }
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_bundle_decrypt(bundle, folder, &context->monitor, err);
    }
    if (st == ORTCRYPT_OK && context->json) {
        st = cli_print_json(context, json_pack("{s:o}", "path", cli_json_text(folder)), err);
    } else if (st == ORTCRYPT_OK) {
        cli_progress_clear();
        cli_print_row(9, "decrypted", "to %s", folder);
    }
    if (ortcrypt_bundle_close(bundle, &close_err) != ORTCRYPT_OK) {
        cli_print_note("closing the bundle: %s", close_err.message);
    }
    cli_keys_free(&keys);
    return st;
}
