/*
 * cli/keys.h: a keyring from the key options: recipients for writing, identities for opening.
 *
 * Call order: cli_keys_for_writing | cli_keys_for_opening -> use keys.ring -> cli_keys_free (after the calls that use the ring).
 */
#ifndef CLI_KEYS_H
#define CLI_KEYS_H

#include "cli.h"
#include "ortcrypt/keyring.h"

/* A command given as one text: words split at spaces; '...', "..." and \ keep them together. No shell. */
typedef struct cli_command {
    char *text; /* what the words point into */
    char **words; /* NULL at the end */
    size_t word_count;
} cli_command;

ortcrypt_status cli_command_parse(cli_command *command, const char *option, const char *text, ortcrypt_error *err);
void cli_command_free(cli_command *command);
/*
 * Runs it with `in` on its standard input; its standard output goes to `out` (at most out_max bytes), its standard error to ours.
 * 0 on success; else -1, after a note that says why. The signature of ortcrypt_wrap_fn and ortcrypt_unwrap_fn; state: a cli_command.
 */
int cli_command_run(void *state, const void *in, size_t in_len, void *out, size_t out_max, size_t *out_len);

typedef struct cli_keys {
    ortcrypt_keyring *ring; /* NULL: no key was given (only where keys are optional) */
    cli_command command;    /* state of the ring's callback */
} cli_keys;

/* -r, -R, -p, --passphrase-fd, --recipient-command. ORTCRYPT_E_INVALID when none or a forbidden mixture is given. */
ortcrypt_status cli_keys_for_writing(cli_keys *keys, const cli_args *args, ortcrypt_error *err);

/*
 * -i, -p, --passphrase-fd, --identity-command; else what ORTCRYPT_IDENTITY names. Reads, wipes and unsets the variables of
 * env:NAME. ORTCRYPT_E_NO_KEY when nothing is given, unless `optional`.
 */
ortcrypt_status cli_keys_for_opening(cli_keys *keys, const cli_args *args, bool optional, ortcrypt_error *err);

void cli_keys_free(cli_keys *keys);

/* --pin, --bundle-id, --min-sequence. The texts belong to argv. */
ortcrypt_open_options cli_open_options(const cli_context *context);

#endif
