/* cli/man.c: man pages, made from the two tables. Nothing in them depends on the day or the machine. */
#include <ctype.h>
#include <string.h>

#include "cli.h"

/* One line of text: what man(7) would read as commands or as typographic dashes is escaped. */
static void print_text(FILE *out, const char *text, size_t len)
{
    if (len != 0 && (text[0] == '.' || text[0] == '\'')) {
        (void)fputs("\\&", out);
    }
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        (void)fputs(c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '`' ? "\\(ga" : c == '\'' ? "\\(aq" : "", out);
        if (strchr("\\-`'", c) == NULL) {
            (void)fputc(c, out);
        }
    }
}

/* Paragraphs, '\n' between them. */
static void print_paragraphs(FILE *out, const char *text)
{
    while (*text != 0) {
        const size_t len = strcspn(text, "\n");
        print_text(out, text, len);
        (void)fputc('\n', out);
        text += len;
        if (*text == '\n') {
            (void)fputs(".PP\n", out);
            text++;
        }
    }
}

static void print_example(FILE *out, const char *lines)
{
    (void)fputs(".SH EXAMPLES\n.nf\n", out);
    while (*lines != 0) {
        const size_t len = strcspn(lines, "\n");
        print_text(out, lines, len);
        (void)fputc('\n', out);
        lines += len + (lines[len] != 0 ? 1 : 0);
    }
    (void)fputs(".fi\n", out);
}

static void print_title(FILE *out, const char *verb)
{
    (void)fputs(".TH ORTCRYPT", out);
    for (const char *p = verb != NULL ? verb : ""; *p != 0; p++) {
        (void)fprintf(out, "%s%c", p == verb ? "\\-" : "", toupper((unsigned char)*p));
    }
    (void)fprintf(out, " 1 \"\" \"ortcrypt %s\" \"ortcrypt\"\n.SH NAME\nortcrypt%s%s \\- ", ortcrypt_version(),
                  verb != NULL ? "\\-" : "", verb != NULL ? verb : "");
}

static void print_option(FILE *out, const cli_option *option)
{
    (void)fputs(".TP\n", out);
    if (option->letter != 0) {
        (void)fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    }
    (void)fputs("\\fB\\-\\-", out);
    print_text(out, option->name, strlen(option->name));
    (void)fputs("\\fR", out);
    if (option->argument != NULL) {
        (void)fputs(" \\fI", out);
        print_text(out, option->argument, strlen(option->argument));
        (void)fputs("\\fR", out);
    }
    (void)fputc('\n', out);
    print_paragraphs(out, option->help);
}

static void print_options(FILE *out, const cli_verb *verb)
{
    (void)fputs(".SH OPTIONS\n", out);
    for (const cli_option *first = CLI_OPTIONS; first->name != NULL; first++) {
        if (!cli_option_heads_group(first, verb)) {
            continue;
        }
        (void)fprintf(out, ".SS %s\n", first->group);
        for (const cli_option *option = first; option->name != NULL; option++) {
            if ((option->verbs & verb->bit) != 0 && strcmp(option->group, first->group) == 0) {
                print_option(out, option);
            }
        }
    }
}

static void print_terms(FILE *out, const char *heading, const cli_term *terms)
{
    (void)fprintf(out, ".SH %s\n", heading);
    for (const cli_term *term = terms; term->name != NULL; term++) {
        (void)fprintf(out, ".TP\n.B %s\n", term->name);
        print_paragraphs(out, term->text);
    }
}

static void print_program(FILE *out)
{
    print_title(out, NULL);
    (void)fputs("keep ONNX models encrypted at rest, compiled ones included\n"
                ".SH SYNOPSIS\n.B ortcrypt\n.I VERB\n\\&... [\\fIOPTIONS\\fR]\n.br\n.B ortcrypt help\n.I VERB\n"
                ".SH DESCRIPTION\n",
                out);
    print_paragraphs(out, CLI_ABOUT);
    (void)fputs(".SH VERBS\n", out);
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        (void)fprintf(out, ".TP\n.BR ortcrypt\\-%s (1)\n", verb->name);
        print_paragraphs(out, verb->summary);
    }
}

static void print_see_also(FILE *out, const cli_verb *here)
{
    (void)fputs(".SH SEE ALSO\n", out);
    if (here != NULL) {
        (void)fputs(".BR ortcrypt (1),\n", out);
    }
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL; verb++) {
        if (verb != here) {
            (void)fprintf(out, ".BR ortcrypt\\-%s (1),\n", verb->name);
        }
    }
    (void)fputs(".BR age (1)\n", out);
}

void cli_man_page(FILE *out, const cli_verb *verb)
{
    if (verb == NULL) {
        print_program(out);
    } else {
        print_title(out, verb->name);
        print_paragraphs(out, verb->summary);
        (void)fprintf(out, ".SH SYNOPSIS\n.B ortcrypt %s\n", verb->name);
        if (verb->operands[0] != 0) {
            (void)fprintf(out, ".I %s\n", verb->operands);
        }
        (void)fputs("[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n", out);
        print_paragraphs(out, verb->text);
        print_options(out, verb);
    }
    print_example(out, verb != NULL ? verb->examples : CLI_FIRST_STEPS);
    print_terms(out, "ENVIRONMENT", CLI_ENVIRONMENT);
    print_terms(out, "EXIT STATUS", CLI_EXIT_CODES);
    print_see_also(out, verb);
}
