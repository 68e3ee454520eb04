/*
 * cli/terminal.h: what a person sees: messages and progress on standard error, tables on standard output, passphrase prompts.
 *
 * Call order: cli_terminal_start -> anything -> cli_progress_clear.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "cli.h"

/* Decides about colours and the progress bar, and installs the handlers: Ctrl-C and SIGTERM ask to stop (the second one kills), SIGPIPE is ignored. */
void cli_terminal_start(void);

/* A signal asked to stop. */
bool cli_interrupted(void);
/* ORTCRYPT_E_CANCELLED when it did. */
ortcrypt_status cli_check_interrupt(ortcrypt_error *err);

/* "ortcrypt: error: ...", then "ortcrypt: hint: ..." when there is one. */
void cli_print_error(const ortcrypt_error *err);
/* "ortcrypt: note: ..." */
void cli_print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Progress on a terminal, notices, and cancelling on a signal. */
ortcrypt_monitor cli_monitor(void);
void cli_progress_clear(void);

/* "1.5 MiB (1572864 bytes)" is too long for a table: "1.5 MiB". */
void cli_size_text(char out[24], uint64_t bytes);

/* Words for standard output: two columns, the first `width` wide. The value is cleaned of control bytes. */
void cli_print_row(int width, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints one JSON object and takes it over. NULL (memory ran out while it was built) is an error. */
ortcrypt_status cli_print_json(cli_context *context, json_t *object, ortcrypt_error *err);
/* The same from the library's text, which is freed. */
ortcrypt_status cli_print_json_text(cli_context *context, char *text, ortcrypt_error *err);
/* A JSON string of any bytes (cleaned first). NULL when memory ran out. */
json_t *cli_json_text(const char *text);

/*
 * While ONNX Runtime and EPs run, what they print to standard output goes to standard error (QNN prints a line, and --json promises one
 * object): lent when a runtime is opened, taken back before a result is printed, lent again while it is closed.
 */
void cli_output_lend(void);
void cli_output_take_back(void);

/* Flushes standard output; ORTCRYPT_E_IO when something of it was lost. */
ortcrypt_status cli_flush_output(ortcrypt_error *err);

/* Asks on /dev/tty without echo. *len characters of `out` (secret; the caller wipes it), without the newline. */
ortcrypt_status cli_prompt_secret(const char *question, char *out, size_t out_size, size_t *len, ortcrypt_error *err);

#endif
