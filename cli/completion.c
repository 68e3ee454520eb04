/* cli/completion.c: completion for bash, zsh and fish, made from the two tables. */
#include <string.h>

#include "cli.h"

#define REFERENCE_EP "OrtcryptReference"

/* The help's first sentence, without its full stop: the length of it. */
static int first_sentence(const char *text)
{
    const char *const end = strstr(text, ". ");
    const size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
    return (int)(len - (end == NULL && len != 0 && text[len - 1] == '.' ? 1 : 0));
}

/* `len` bytes of text inside single quotes; a character of `escaped` gets a backslash, a quote becomes `quote`. */
static void print_quoted(FILE *out, const char *text, int len, const char *escaped, const char *quote)
{
    for (int i = 0; i < len; i++) {
        if (text[i] == '\'') {
            (void)fputs(quote, out);
        } else {
            (void)fprintf(out, "%s%c", strchr(escaped, text[i]) != NULL ? "\\" : "", text[i]);
        }
    }
}

/* "same|replace|append" with spaces. */
static void print_choices(FILE *out, const char *choices)
{
    for (; *choices != 0; choices++) {
        (void)fputc(*choices == '|' ? ' ' : *choices, out);
    }
}

static void print_verbs(FILE *out)
{
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        (void)fprintf(out, "%s ", verb->name);
    }
}

static bool takes_folder(const cli_verb *verb) { return strncmp(verb->operands, "BUNDLE", 6) == 0; }

/* Options of `verb` with that kind of argument, as one alternative of a bash `case`, and what to do for them. */
static void bash_values(FILE *out, const cli_verb *verb, cli_value value, const char *action)
{
    const char *between = "                ";
    for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
        if ((option->verbs & verb->bit) == 0 || option->value != value || option->id == OPT_EP) {
            continue;
        }
        (void)fputs(between, out);
        between = "|";
        if (option->letter != 0) {
            (void)fprintf(out, "-%c|", option->letter);
        }
        (void)fprintf(out, "--%s", option->name);
        if (value == VALUE_CHOICE) {
            (void)fputs(") words='", out);
            print_choices(out, option->choices);
            (void)fputs("' ;;\n", out);
            between = "                ";
        }
    }
    if (between[0] == '|') {
        (void)fprintf(out, ") %s ;;\n", action);
    }
}

static void bash_verb(FILE *out, const cli_verb *verb)
{
    (void)fprintf(out, "        %s)\n            operands=%s\n            case $prev in\n", verb->name,
                  takes_folder(verb) ? "folders" : verb->operand_count != 0 ? "files" : "none");
    bash_values(out, verb, VALUE_FILE, "operands=files; want=value");
    bash_values(out, verb, VALUE_FOLDER, "operands=folders; want=value");
    bash_values(out, verb, VALUE_TEXT, "operands=none; want=value");
    bash_values(out, verb, VALUE_NUMBER, "operands=none; want=value");
    bash_values(out, verb, VALUE_PAIR, "operands=none; want=value");
    bash_values(out, verb, VALUE_CHOICE, "");
    (void)fputs("                --ep) words=" REFERENCE_EP " ;;\n            esac\n            options='", out);
    for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
        if ((option->verbs & verb->bit) != 0) {
            (void)fprintf(out, "--%s ", option->name);
        }
    }
    (void)fputs("' ;;\n", out);
}

/* `=` and what follows are words of their own in bash: the value of --option=VALUE, and the file of NAME=FILE. */
static void print_bash(FILE *out)
{
    (void)fputs("# bash completion for ortcrypt, made from its table of options\n"
                "_ortcrypt()\n"
                "{\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= options= operands=none want=\n"
                "    COMPREPLY=()\n"
                "    if [[ $cur == = ]]; then\n"
                "        cur=\n"
                "    elif [[ $prev == = ]]; then\n"
                "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                "        [[ $prev == --* ]] || prev==\n"
                "    fi\n"
                "    if ((COMP_CWORD == 1)); then\n"
                "        words='",
                out);
    print_verbs(out);
    (void)fputs("help --help --version'\n    else\n        case ${COMP_WORDS[1]} in\n        help) words='", out);
    print_verbs(out);
    (void)fputs("' ;;\n", out);
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        bash_verb(out, verb);
    }
    (void)fputs("        esac\n"
                "    fi\n"
                "    if [[ -z $words && -z $want && $cur == -* ]]; then\n"
                "        words=$options\n"
                "    fi\n"
                "    if [[ $prev == = ]]; then\n"
                "        operands=files\n"
                "    fi\n"
                "    if [[ -n $words ]]; then\n"
                "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                "    elif [[ $operands != none ]]; then\n"
                "        compopt -o filenames 2>/dev/null\n"
                "        [[ $operands == files ]] && mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                "        [[ $operands == folders ]] && mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
                "    fi\n"
                "    return 0\n"
                "}\n"
                "complete -F _ortcrypt ortcrypt\n",
                out);
}

static void zsh_option(FILE *out, const cli_option *option)
{
    (void)fputs(" \\\n        ", out);
    if (option->letter != 0 && option->repeat) {
        (void)fprintf(out, "'*'{-%c,--%s}'[", option->letter, option->name);
    } else if (option->letter != 0) {
        (void)fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter, option->name);
    } else {
        (void)fprintf(out, "'%s--%s[", option->repeat ? "*" : "", option->name);
    }
    print_quoted(out, option->help, first_sentence(option->help), "[]\\", "'\\''");
    (void)fputc(']', out);
    if (option->argument != NULL) {
        (void)fputc(':', out);
        print_quoted(out, option->argument, (int)strlen(option->argument), ":\\", "'\\''");
        (void)fputc(':', out);
    }
    if (option->id == OPT_EP) {
        (void)fputs("(" REFERENCE_EP ")", out);
    } else if (option->value == VALUE_CHOICE) {
        (void)fputc('(', out);
        print_choices(out, option->choices);
        (void)fputc(')', out);
    } else if (option->value == VALUE_FILE || option->value == VALUE_FOLDER) {
        (void)fputs(option->value == VALUE_FILE ? "_files" : "_files -/", out);
    }
    (void)fputc('\'', out);
}

static void print_zsh(FILE *out)
{
    (void)fputs("#compdef ortcrypt\n# zsh completion for ortcrypt, made from its table of options\n_ortcrypt() {\n    local -a verbs=(\n", out);
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        (void)fprintf(out, "        '%s:", verb->name);
        print_quoted(out, verb->summary, (int)strlen(verb->summary), ":\\", "'\\''");
        (void)fputs("'\n", out);
    }
    (void)fputs("        'help:show the help of a verb'\n    )\n"
                "    if ((CURRENT == 2)); then\n        _describe verb verbs\n        return\n    fi\n"
                "    local verb=${words[2]}\n    shift words\n    ((CURRENT--))\n    case $verb in\n"
                "    help) _describe verb verbs ;;\n",
                out);
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        (void)fprintf(out, "    %s)\n        _arguments -s", verb->name);
        for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
            if ((option->verbs & verb->bit) != 0) {
                zsh_option(out, option);
            }
        }
        if (verb->operand_count != 0) {
            (void)fprintf(out, " \\\n        '1:%s:_files%s'", verb->operands, takes_folder(verb) ? " -/" : "");
        }
        (void)fputs(" ;;\n", out);
    }
    (void)fputs("    esac\n}\n"
                "if [[ $funcstack[1] == _ortcrypt ]]; then\n    _ortcrypt \"$@\"\nelse\n    compdef _ortcrypt ortcrypt\nfi\n",
                out);
}

static void fish_option(FILE *out, const cli_verb *verb, const cli_option *option)
{
    (void)fprintf(out, "complete -c ortcrypt -n '__fish_seen_subcommand_from %s' -l %s", verb->name, option->name);
    if (option->letter != 0) {
        (void)fprintf(out, " -s %c", option->letter);
    }
    if (option->id == OPT_EP) {
        (void)fputs(" -x -a " REFERENCE_EP, out);
    } else if (option->value == VALUE_FILE || option->value == VALUE_PAIR) {
        (void)fputs(" -r -F", out);
    } else if (option->value == VALUE_FOLDER) {
        (void)fputs(" -x -a '(__fish_complete_directories)'", out);
    } else if (option->value == VALUE_CHOICE) {
        (void)fputs(" -x -a '", out);
        print_choices(out, option->choices);
        (void)fputc('\'', out);
    } else if (option->value != VALUE_NONE) {
        (void)fputs(" -x", out);
    }
    (void)fputs(" -d '", out);
    print_quoted(out, option->help, first_sentence(option->help), "\\", "\\'");
    (void)fputs("'\n", out);
}

static void print_fish(FILE *out)
{
    (void)fputs("# fish completion for ortcrypt, made from its table of options\ncomplete -c ortcrypt -f\n", out);
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        (void)fprintf(out, "complete -c ortcrypt -n __fish_use_subcommand -a %s -d '", verb->name);
        print_quoted(out, verb->summary, (int)strlen(verb->summary), "\\", "\\'");
        (void)fputs("'\n", out);
        if (verb->operand_count != 0) {
            (void)fprintf(out, "complete -c ortcrypt -n '__fish_seen_subcommand_from %s' %s\n", verb->name,
                          takes_folder(verb) ? "-a '(__fish_complete_directories)'" : "-F");
        }
        for (const cli_option *option = CLI_OPTIONS; option->name != NULL; option++) {
            if ((option->verbs & verb->bit) != 0) {
                fish_option(out, verb, option);
            }
        }
    }
    (void)fputs("complete -c ortcrypt -n __fish_use_subcommand -a help -d 'show the help of a verb'\n"
                "complete -c ortcrypt -n '__fish_seen_subcommand_from help' -a '",
                out);
    print_verbs(out);
    (void)fputs("'\n", out);
}

bool cli_completion(FILE *out, const char *shell)
{
    static const struct {
        const char *shell;
        void (*print)(FILE *out);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].shell, shell) == 0) {
            shells[i].print(out);
            return true;
        }
    }
    return false;
}
