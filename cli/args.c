/* cli/args.c: parsing the command line by the option table. Knows no option by name. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const cli_verb *cli_verb_find(const char *name)
{
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }
    return NULL;
}

bool cli_number_parse(const char *text, uint64_t *out)
{
    const uint64_t max = (UINT64_C(1) << 53) - 1;
    uint64_t value = 0;
    if (*text == 0) {
        return false;
    }
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(*text - '0'); /* below 2^57 here: no overflow */
        if (value > max) {
            return false;
        }
    }
    *out = value;
    return true;
}

static const cli_option *find_long(const cli_verb *verb, const char *name, size_t len)
{
    for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
        if ((option->verbs & verb->bit) != 0 && strlen(option->name) == len && memcmp(option->name, name, len) == 0) {
            return option;
        }
    }
    return NULL;
}

static const cli_option *find_letter(const cli_verb *verb, char letter)
{
    for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
        if ((option->verbs & verb->bit) != 0 && option->letter == letter) {
            return option;
        }
    }
    return NULL;
}

static ortcrypt_status unknown_option(const cli_verb *verb, const char *text, ortcrypt_error *err)
{
    const char *names[64];
    size_t count = 0;
    char name[64];
    const char *from = text + (strncmp(text, "--", 2) == 0 ? 2 : 1);
    const size_t len = strcspn(from, "=");
    (void)cli_fail(err, ORTCRYPT_E_INVALID, "%s has no option %.*s", verb->name, (int)((size_t)(from - text) + len), text);
    cli_hint(err, "`ortcrypt %s --help` lists its options", verb->name);
    if (from != text + 2 || len >= sizeof name) {
        return ORTCRYPT_E_INVALID;
    }
    memcpy(name, from, len);
    name[len] = 0;
    for (const cli_option *option = CLI_OPTIONS; option->name != NULL && count < 64; option++) {
        if ((option->verbs & verb->bit) != 0) {
            names[count++] = option->name;
        }
    }
    const char *near = cli_suggest(name, names, count);
    if (near != NULL) {
        cli_hint(err, "did you mean --%s? `ortcrypt %s --help` lists its options", near, verb->name);
        return ORTCRYPT_E_INVALID;
    }
    for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
        if (strcmp(option->name, name) != 0) {
            continue;
        }
        for (const cli_verb *other = CLI_VERBS; other->name != NULL; other++) {
            if ((option->verbs & other->bit) != 0) {
                cli_hint(err, "--%s belongs to `ortcrypt %s`; `ortcrypt %s --help` lists the options of %s", name, other->name,
                         verb->name, verb->name);
                return ORTCRYPT_E_INVALID;
            }
        }
    }
    return ORTCRYPT_E_INVALID;
}

static bool choice_has(const char *choices, const char *value)
{
    const size_t len = strlen(value);
    while (*choices != 0) {
        const size_t one = strcspn(choices, "|");
        if (one == len && memcmp(choices, value, len) == 0) {
            return true;
        }
        choices += one + (choices[one] == '|' ? 1 : 0);
    }
    return false;
}

static ortcrypt_status check_value(const cli_option *option, const char *value, ortcrypt_error *err)
{
    uint64_t number = 0;
    const char *equals = strchr(value, '=');
    if (*value == 0) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s needs %s, which is empty", option->name, option->argument);
    }
    if (option->value == VALUE_NUMBER && !cli_number_parse(value, &number)) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s needs a whole number, not '%s'", option->name, value);
    }
    if (option->value == VALUE_PAIR && (equals == NULL || equals == value)) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s needs %s, not '%s'", option->name, option->argument, value);
    }
    if (option->value == VALUE_CHOICE && !choice_has(option->choices, value)) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s is one of %s, not '%s'", option->name, option->choices, value);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status add_item(cli_args *args, const cli_option *option, const char *value, ortcrypt_error *err)
{
    if (!option->repeat && option->id != OPT_HELP && cli_args_has(args, option->id)) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s is given twice", option->name);
    }
    if (value != NULL) {
        const ortcrypt_status st = check_value(option, value, err);
        if (st != ORTCRYPT_OK) {
            return st;
        }
    }
    args->items[args->count++] = (cli_arg){option, value};
    return ORTCRYPT_OK;
}

/* One word that begins with "--"; *next (may be NULL: none) is the word after it, *taken says that it was used. */
static ortcrypt_status parse_long(cli_args *args, const char *word, const char *next, bool *taken, ortcrypt_error *err)
{
    const char *equals = strchr(word, '=');
    const size_t len = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word) - 2;
    const cli_option *option = find_long(args->verb, word + 2, len);
    if (option == NULL) {
        return unknown_option(args->verb, word, err);
    }
    if (option->argument == NULL) {
        if (equals != NULL) {
            return cli_fail(err, ORTCRYPT_E_INVALID, "--%s takes no argument", option->name);
        }
        return add_item(args, option, NULL, err);
    }
    if (equals != NULL) {
        return add_item(args, option, equals + 1, err);
    }
    if (next == NULL) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s needs an argument: %s", option->name, option->argument);
    }
    *taken = true;
    return add_item(args, option, next, err);
}

/* One word of letters: "-p", "-oFILE", "-pv". */
static ortcrypt_status parse_letters(cli_args *args, const char *word, const char *next, bool *taken, ortcrypt_error *err)
{
    for (const char *at = word + 1; *at != 0; at++) {
        const cli_option *option = find_letter(args->verb, *at);
        ortcrypt_status st = ORTCRYPT_OK;
        if (option == NULL) {
            const char one[] = {'-', *at, 0};
            return unknown_option(args->verb, one, err);
        }
        if (option->argument == NULL) {
            st = add_item(args, option, NULL, err);
            if (st != ORTCRYPT_OK) {
                return st;
            }
            continue;
        }
        if (at[1] != 0) {
            return add_item(args, option, at + 1, err);
        }
        if (next == NULL) {
            return cli_fail(err, ORTCRYPT_E_INVALID, "-%c needs an argument: %s", option->letter, option->argument);
        }
        *taken = true;
        return add_item(args, option, next, err);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status check_operands(const cli_args *args, ortcrypt_error *err)
{
    const size_t wanted = (size_t)args->verb->operand_count;
    if (cli_args_has(args, OPT_HELP) || args->operand_count == wanted) {
        return ORTCRYPT_OK;
    }
    if (args->operand_count < wanted) {
        (void)cli_fail(err, ORTCRYPT_E_INVALID, "%s needs %s", args->verb->name, args->verb->operands);
    } else {
        (void)cli_fail(err, ORTCRYPT_E_INVALID, "%s has nothing to do with '%s'", args->verb->name, args->operands[wanted]);
    }
    cli_hint(err, "`ortcrypt %s --help` shows how it is called", args->verb->name);
    return ORTCRYPT_E_INVALID;
}

ortcrypt_status cli_args_parse(cli_args *args, const cli_verb *verb, int argc, char **argv, ortcrypt_error *err)
{
    bool options_over = false;
    size_t letters = 0;
    *args = (cli_args){.verb = verb};
    for (int i = 0; i < argc; i++) {
        letters += strlen(argv[i]); /* "-pv" holds several options in one word */
    }
    args->items = calloc((size_t)argc + letters + 1, sizeof *args->items);
    args->operands = calloc((size_t)argc + 1, sizeof *args->operands);
    if (args->items == NULL || args->operands == NULL) {
        return cli_fail_memory(err);
    }
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool taken = false;
        ortcrypt_status st = ORTCRYPT_OK;
        if (!options_over && strcmp(word, "--") == 0) {
            options_over = true;
        } else if (!options_over && strncmp(word, "--", 2) == 0) {
            st = parse_long(args, word, next, &taken, err);
        } else if (!options_over && word[0] == '-' && word[1] != 0) {
            st = parse_letters(args, word, next, &taken, err);
        } else {
            args->operands[args->operand_count++] = word;
        }
        if (st != ORTCRYPT_OK) {
            return st;
        }
        i += taken ? 1 : 0;
    }
    return check_operands(args, err);
}

void cli_args_free(cli_args *args)
{
    free(args->items);
    free(args->operands);
    *args = (cli_args){0};
}

bool cli_args_has(const cli_args *args, cli_option_id id)
{
    return cli_args_count(args, id) != 0;
}

size_t cli_args_count(const cli_args *args, cli_option_id id)
{
    size_t count = 0;
    for (size_t i = 0; i < args->count; i++) {
        count += args->items[i].option->id == id ? 1 : 0;
    }
    return count;
}

const char *cli_args_value(const cli_args *args, cli_option_id id)
{
    size_t at = 0;
    return cli_args_next(args, id, &at);
}

const char *cli_args_next(const cli_args *args, cli_option_id id, size_t *at)
{
    while (*at < args->count) {
        const cli_arg *item = &args->items[(*at)++];
        if (item->option->id == id) {
            return item->value;
        }
    }
    return NULL;
}

uint64_t cli_args_number(const cli_args *args, cli_option_id id, uint64_t otherwise)
{
    const char *text = cli_args_value(args, id);
    uint64_t number = otherwise;
    if (text != NULL) {
        (void)cli_number_parse(text, &number);
    }
    return number;
}

ortcrypt_status cli_args_pairs(const cli_args *args, cli_option_id id, cli_pairs *pairs, ortcrypt_error *err)
{
    const size_t count = cli_args_count(args, id);
    const char *text = NULL;
    size_t at = 0;
    *pairs = (cli_pairs){0};
    if (count == 0) {
        return ORTCRYPT_OK;
    }
    pairs->keys = calloc(count, sizeof *pairs->keys);
    pairs->values = calloc(count, sizeof *pairs->values);
    if (pairs->keys == NULL || pairs->values == NULL) {
        cli_pairs_free(pairs);
        return cli_fail_memory(err);
    }
    while ((text = cli_args_next(args, id, &at)) != NULL) {
        const size_t len = strcspn(text, "=");
        char *key = strndup(text, len);
        if (key == NULL) {
            cli_pairs_free(pairs);
            return cli_fail_memory(err);
        }
        pairs->keys[pairs->count] = key;
        pairs->values[pairs->count] = text + len + 1;
        pairs->count++;
    }
    return ORTCRYPT_OK;
}

void cli_pairs_free(cli_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->keys[i]);
    }
    free(pairs->keys);
    free(pairs->values);
    *pairs = (cli_pairs){0};
}
