/* cli/help.c: help pages, made from the two tables. */
#include <string.h>

#include "cli.h"

#define HELP_WIDTH 88
#define HELP_INDENT 8

/* Prints paragraphs ('\n' between them), wrapped at HELP_WIDTH, each line after `indent` spaces. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
    int column = 0;
    while (*text != 0) {
        const int len = (int)strcspn(text, " \n");
        if (column == 0) {
            column = fprintf(out, "%*s%.*s", indent, "", len, text);
        } else if (column + 1 + len > HELP_WIDTH) {
            column = fprintf(out, "\n%*s%.*s", indent, "", len, text) - 1;
        } else {
            column += fprintf(out, " %.*s", len, text);
        }
        text += len;
        if (*text == '\n') {
            (void)fputc('\n', out);
            column = 0;
        }
        text += *text != 0 ? 1 : 0;
    }
    (void)fputc('\n', out);
}

static void print_indented_lines(FILE *out, const char *lines)
{
    while (*lines != 0) {
        const size_t len = strcspn(lines, "\n");
        (void)fprintf(out, "  %.*s\n", (int)len, lines);
        lines += len + (lines[len] != 0 ? 1 : 0);
    }
}

void cli_help_program(FILE *out)
{
    (void)fputs("Usage: ortcrypt VERB ... [OPTIONS]\n\n", out);
    print_wrapped(out, CLI_ABOUT, 0);
    (void)fputs("\nVerbs:\n", out);
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        (void)fprintf(out, "  %-9s %s\n", verb->name, verb->summary);
    }
    (void)fputs("  help      show the help of a verb: `ortcrypt help VERB`\n", out);
    (void)fputs("\nFrom a model to a result:\n", out);
    print_indented_lines(out, CLI_FIRST_STEPS);
    (void)fputs("\nEnvironment:\n", out);
    for (const cli_term *term = CLI_ENVIRONMENT; term->name != NULL; term++) {
        (void)fprintf(out, "  %-17s  %s\n", term->name, term->text);
    }
    (void)fputs("\nExit codes:\n", out);
    for (const cli_term *term = CLI_EXIT_CODES; term->name != NULL; term++) {
        (void)fprintf(out, "  %s  %s\n", term->name, term->text);
    }
    (void)fputs("\n`ortcrypt --version` prints the version.\n", out);
}

static void print_option(FILE *out, const cli_option *option)
{
    (void)fputs("  ", out);
    if (option->letter != 0) {
        (void)fprintf(out, "-%c, ", option->letter);
    }
    (void)fprintf(out, "--%s%s%s\n", option->name, option->argument != NULL ? " " : "",
                  option->argument != NULL ? option->argument : "");
    print_wrapped(out, option->help, HELP_INDENT);
}

bool cli_option_heads_group(const cli_option *option, const cli_verb *verb)
{
    bool seen = (option->verbs & verb->bit) == 0;
    for (const cli_option *earlier = CLI_OPTIONS; !seen && earlier < option; earlier++) {
        seen = (earlier->verbs & verb->bit) != 0 && strcmp(earlier->group, option->group) == 0;
    }
    return !seen;
}

/* Options come grouped under their headings, in the order in which the table first names each heading for this verb. */
void cli_help_verb(FILE *out, const cli_verb *verb)
{
    (void)fprintf(out, "Usage: ortcrypt %s%s%s [OPTIONS]\n\n", verb->name, verb->operands[0] != 0 ? " " : "", verb->operands);
    print_wrapped(out, verb->text, 0);
    for (const cli_option *first = CLI_OPTIONS; first->name != NULL; first++) {
        if (!cli_option_heads_group(first, verb)) {
            continue;
        }
        (void)fprintf(out, "\n%s:\n", first->group);
        for (const cli_option *option = first; option->name != NULL; option++) {
            if ((option->verbs & verb->bit) != 0 && strcmp(option->group, first->group) == 0) {
                print_option(out, option);
            }
        }
    }
    (void)fputs("\nExamples:\n", out);
    print_indented_lines(out, verb->examples);
}
