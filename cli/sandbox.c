/* cli/sandbox.c: entering the sandbox, and saying what it does not hold. */
#include "sandbox.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "ortcrypt/sandbox.h"
#include "terminal.h"

/* Descriptors that the command line names as files (a shell's <(command), /dev/fd/N) and that can be read alone. */
typedef struct named_fds {
    int *fds;
    size_t count;
} named_fds;

static void add_named(named_fds *named, const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const size_t len = strlen(folders[i]);
        if (strncmp(path, folders[i], len) == 0 && cli_number_parse(path + len, &number) && number <= INT32_MAX) {
            const int flags = fcntl((int)number, F_GETFL);
            if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
                named->fds[named->count++] = (int)number;
            }
        }
    }
}

/* Keys are read by now, and stay nobody's. */
static ortcrypt_status find_named(named_fds *named, const cli_args *args, ortcrypt_error *err)
{
    *named = (named_fds){.fds = calloc(args->count + args->operand_count + 1, sizeof(int))};
    if (named->fds == NULL) {
        return cli_fail_memory(err);
    }
    for (size_t i = 0; i < args->operand_count; i++) {
        add_named(named, args->operands[i]);
    }
    for (size_t i = 0; i < args->count; i++) {
        const cli_arg *arg = &args->items[i];
        const char *value = arg->value;
        if (value == NULL || arg->option->id == OPT_IDENTITY) {
            continue;
        }
        if (arg->option->value == VALUE_PAIR) {
            value = strchr(value, '=') + 1; /* there: checked while parsing */
        }
        add_named(named, value);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status cli_sandbox_enter(const cli_context *context, ortcrypt_error *err)
{
    ortcrypt_sandbox_options options = {.struct_size = sizeof options,
                                        .require = cli_args_has(context->args, OPT_REQUIRE_SANDBOX),
                                        .close_descriptors = true};
    ortcrypt_sandbox_report report;
    named_fds named;
    if (cli_args_has(context->args, OPT_NO_SANDBOX)) {
        if (options.require) {
            return cli_fail(err, ORTCRYPT_E_INVALID, "--no-sandbox excludes --require-sandbox");
        }
        cli_print_note("without the sandbox, ONNX Runtime and execution providers could write plaintext to files or send it away");
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = find_named(&named, context->args, err);
    if (st == ORTCRYPT_OK) {
        options.keep = named.fds;
        options.keep_count = named.count;
        st = ortcrypt_sandbox_enter(&options, &report, err);
        free(named.fds);
    }
    if (st == ORTCRYPT_OK && (!report.files || !report.network || report.other_threads != 0)) {
        cli_print_note("the sandbox does not hold everything here: %s", report.missing);
    }
    return st;
}
