/*
 * cli/options.h: the one table of options and the one table of verbs. Parsing, help, "did you mean", the man pages and
 * the shells' completion are made from them.
 *
 * Call order: cli_args_parse -> cli_args_has / _value / _next / _number -> cli_args_free.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ortcrypt/error.h"

struct cli_context;

/* A verb's bit in cli_option.verbs. */
enum {
    CLI_KEYGEN = 1 << 0,
    CLI_ENCRYPT = 1 << 1,
    CLI_COMPILE = 1 << 2,
    CLI_RUN = 1 << 3,
    CLI_INSPECT = 1 << 4,
    CLI_VERIFY = 1 << 5,
    CLI_DECRYPT = 1 << 6,
    CLI_EPS = 1 << 7,
    CLI_CHECK_EP = 1 << 8,
    CLI_WITH_ORT = CLI_COMPILE | CLI_RUN | CLI_EPS, /* code of ONNX Runtime and of execution providers runs in the process */
    CLI_OPENING = CLI_COMPILE | CLI_RUN | CLI_INSPECT | CLI_VERIFY | CLI_DECRYPT,
    CLI_ALL = (1 << 9) - 1
};

typedef enum cli_option_id {
    OPT_OUTPUT,
    OPT_EXTRA,
    OPT_LABEL,
    OPT_SPLIT,
    OPT_NO_SPLIT,
    OPT_RECIPIENT,
    OPT_RECIPIENTS_FILE,
    OPT_RECIPIENT_COMMAND,
    OPT_IDENTITY,
    OPT_IDENTITY_COMMAND,
    OPT_PASSPHRASE,
    OPT_PASSPHRASE_FD,
    OPT_PIN,
    OPT_BUNDLE_ID,
    OPT_MIN_SEQUENCE,
    OPT_ORT,
    OPT_BRIDGE,
    OPT_NO_SANDBOX,
    OPT_REQUIRE_SANDBOX,
    OPT_EP,
    OPT_EP_OPTION,
    OPT_PROBE,
    OPT_VARIANT,
    OPT_EMBED,
    OPT_WEIGHTLESS,
    OPT_OPTIMIZE,
    OPT_ALLOW_NONE_COMPILED,
    OPT_NO_LOAD_CHECK,
    OPT_REWRITE,
    OPT_INITIALIZER_MIN,
    OPT_INPUT,
    OPT_RANDOM,
    OPT_DIM,
    OPT_REPEAT,
    OPT_COMPARE,
    OPT_EXPLAIN,
    OPT_LAZY,
    OPT_CACHE,
    OPT_NO_CACHE,
    OPT_CACHE_MAX,
    OPT_MACHINE_KEY,
    OPT_JSON,
    OPT_VERBOSE,
    OPT_HELP
} cli_option_id;

/* What an option's argument is: checked while parsing; completion can be made from it. */
typedef enum cli_value {
    VALUE_NONE,
    VALUE_TEXT,
    VALUE_FILE,
    VALUE_FOLDER,
    VALUE_NUMBER, /* decimal, 0 to 2^53 - 1 */
    VALUE_PAIR,   /* KEY=VALUE, both present */
    VALUE_CHOICE  /* one of option.choices */
} cli_value;

typedef struct cli_option {
    cli_option_id id;
    const char *name; /* long name, without the dashes */
    char letter;      /* short name, or 0 */
    cli_value value;
    const char *argument; /* as help shows it; NULL: takes none */
    const char *choices;  /* VALUE_CHOICE: "a|b|c" */
    bool repeat;          /* may be given more than once */
    const char *group;    /* heading in help */
    unsigned verbs;
    const char *help; /* one paragraph; help wraps it */
} cli_option;

typedef struct cli_verb {
    const char *name;
    unsigned bit;
    const char *operands; /* as usage shows them */
    int operand_count;    /* exactly that many */
    const char *summary;  /* one line, for the list of verbs */
    const char *text;     /* paragraphs for the verb's own help */
    const char *examples; /* lines; "$ " before a command */
    ortcrypt_status (*run)(struct cli_context *context, ortcrypt_error *err);
} cli_verb;

/* A name and what it means: environment variables, exit codes. */
typedef struct cli_term {
    const char *name;
    const char *text;
} cli_term;

extern const cli_option CLI_OPTIONS[]; /* ends with a row without name */
extern const cli_verb CLI_VERBS[];     /* the same */
extern const cli_term CLI_ENVIRONMENT[];
extern const cli_term CLI_EXIT_CODES[];
extern const char CLI_ABOUT[];       /* one paragraph */
extern const char CLI_FIRST_STEPS[]; /* lines; "$ " before a command */

typedef struct cli_arg {
    const cli_option *option;
    const char *value; /* borrowed from argv; NULL without argument */
} cli_arg;

typedef struct cli_args {
    const cli_verb *verb;
    cli_arg *items; /* in the order given */
    size_t count;
    const char **operands;
    size_t operand_count;
} cli_args;

const cli_verb *cli_verb_find(const char *name);

/*
 * Parses argv[0..argc-1] (after the verb). ORTCRYPT_E_INVALID with a hint for an unknown option (or one of another verb), a
 * missing, superfluous or malformed argument, an option given twice, and too few or too many operands (those only without --help).
 */
ortcrypt_status cli_args_parse(cli_args *args, const cli_verb *verb, int argc, char **argv, ortcrypt_error *err);
void cli_args_free(cli_args *args);

bool cli_args_has(const cli_args *args, cli_option_id id);
/* The argument, or NULL when the option was not given. */
const char *cli_args_value(const cli_args *args, cli_option_id id);
/* Repeatable options: *at starts at 0; NULL after the last. */
const char *cli_args_next(const cli_args *args, cli_option_id id, size_t *at);
size_t cli_args_count(const cli_args *args, cli_option_id id);
/* VALUE_NUMBER options (checked while parsing); `otherwise` when not given. */
uint64_t cli_args_number(const cli_args *args, cli_option_id id, uint64_t otherwise);

/* Decimal digits only, at most 2^53 - 1. */
bool cli_number_parse(const char *text, uint64_t *out);

/* KEY=VALUE options as two parallel arrays that point into *storage. {0} is a valid empty one. */
typedef struct cli_pairs {
    char **keys;
    const char **values;
    size_t count;
} cli_pairs;
ortcrypt_status cli_args_pairs(const cli_args *args, cli_option_id id, cli_pairs *pairs, ortcrypt_error *err);
void cli_pairs_free(cli_pairs *pairs);

/* The nearest name to `text` (at most 2 edits, or `text` is its beginning), or NULL. names[count]. */
const char *cli_suggest(const char *text, const char *const *names, size_t count);

/* Help pages. */
void cli_help_program(FILE *out);
void cli_help_verb(FILE *out, const cli_verb *verb);

/* True for the first of the verb's options under their heading. */
bool cli_option_heads_group(const cli_option *option, const cli_verb *verb);

/* What the build makes of the tables. man.c: the page of a verb (NULL: of the program) in man(7). */
void cli_man_page(FILE *out, const cli_verb *verb);
/* completion.c: for "bash", "zsh" or "fish"; false for another shell. */
bool cli_completion(FILE *out, const char *shell);

#endif
