/* cli/sandbox.c: entering the sandbox, and saying what it does not hold. */
#include "sandbox.h"

#include "ortcrypt/sandbox.h"
#include "terminal.h"

ortcrypt_status cli_sandbox_enter(const cli_context *context, ortcrypt_error *err)
{
    const ortcrypt_sandbox_options options = {.struct_size = sizeof options,
                                              .require = cli_args_has(context->args, OPT_REQUIRE_SANDBOX),
                                              .close_descriptors = true};
    ortcrypt_sandbox_report report;
    if (cli_args_has(context->args, OPT_NO_SANDBOX)) {
        if (options.require) {
            return cli_fail(err, ORTCRYPT_E_INVALID, "--no-sandbox excludes --require-sandbox");
        }
        cli_print_note("without the sandbox, ONNX Runtime and execution providers could write plaintext to files or send it away");
        return ORTCRYPT_OK;
    }
    const ortcrypt_status st = ortcrypt_sandbox_enter(&options, &report, err);
    if (st == ORTCRYPT_OK && (!report.files || !report.network || report.other_threads != 0)) {
        cli_print_note("the sandbox does not hold everything here: %s", report.missing);
    }
    return st;
}
