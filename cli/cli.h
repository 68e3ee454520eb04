/*
 * cli/cli.h: what every file of the command line shares: the context of one call, errors, and the verbs.
 *
 * Call order: main -> cli_args_parse -> verb->run(context) -> main prints the error and turns its status into the exit code.
 * The command line stands on include/ortcrypt and conform/check.h alone. Its cross-file functions begin with cli_, not oc_: it is linked with the
 * static library, whose internal names begin with oc_.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "ortcrypt/bundle.h"
#include "ortcrypt/error.h"

/* One call of the program. */
typedef struct cli_context {
    const cli_args *args;
    ortcrypt_monitor monitor; /* progress bar, notices, and Ctrl-C as cancel */
    bool json;                /* --json: exactly one JSON object on stdout */
    bool json_printed;
} cli_context;

/* Fills `err` (control bytes and bad UTF-8 become '?') and returns `status`, like every other call. */
ortcrypt_status cli_fail(ortcrypt_error *err, ortcrypt_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with ": " and the text of `sys_errno` appended. */
ortcrypt_status cli_fail_errno(ortcrypt_error *err, ortcrypt_status status, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
ortcrypt_status cli_fail_memory(ortcrypt_error *err);
void cli_hint(ortcrypt_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What --json prints as the member "error"; NULL when memory ran out. */
json_t *cli_error_json(const ortcrypt_error *err);

/* Copies `text` for a terminal or for JSON: control bytes and bytes that are no UTF-8 become '?'. Always NUL-terminated. */
void cli_text_clean(char *out, size_t out_size, const char *text);

/* The verbs (cmd_<verb>.c). */
ortcrypt_status cmd_keygen(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_encrypt(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_compile(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_run(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_inspect(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_verify(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_decrypt(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_eps(cli_context *context, ortcrypt_error *err);
ortcrypt_status cmd_check_ep(cli_context *context, ortcrypt_error *err);

#endif
