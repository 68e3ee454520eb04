/* cli/terminal.c: messages, signals, and output that is checked. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static bool colours;
static int output_errno; /* of the first flush that lost something */
static int own_output = -1; /* standard output while others have descriptor 1 */

static void on_signal(int number)
{
    (void)number;
    interrupted = 1; /* SA_RESETHAND: the next one ends the process */
}

void cli_terminal_start(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}; /* no SA_RESTART: a prompt must wake up */
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU}; /* whatever ends a run takes its traces along */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    struct sigaction old = {0};
    (void)sigemptyset(&stop.sa_mask);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) { /* nohup and background jobs keep theirs */
            (void)sigaction(ending[i], &stop, NULL);
        }
    }
    (void)sigaction(SIGPIPE, &ignore, NULL);
    colours = isatty(STDERR_FILENO) == 1 && (no_color == NULL || *no_color == 0) && (term == NULL || strcmp(term, "dumb") != 0);
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}

ortcrypt_status cli_check_interrupt(ortcrypt_error *err)
{
    return interrupted != 0 ? cli_fail(err, ORTCRYPT_E_CANCELLED, "stopped by a signal") : ORTCRYPT_OK;
}

static void print_line(const char *colour, const char *kind, const char *sentence)
{
    cli_progress_clear();
    (void)fprintf(stderr, "ortcrypt: %s%s:%s %s\n", colours ? colour : "", kind, colours ? "\033[0m" : "", sentence);
}

void cli_print_error(const ortcrypt_error *err)
{
    print_line("\033[1;31m", "error", err->message[0] != 0 ? err->message : ortcrypt_status_name(err->status));
    if (err->hint[0] != 0) {
        print_line("\033[36m", "hint", err->hint);
    }
}

void cli_print_note(const char *format, ...)
{
    char raw[1024];
    char clean[1024];
    va_list list;
    va_start(list, format);
    if (vsnprintf(raw, sizeof raw, format, list) < 0) {
        raw[0] = 0;
    }
    va_end(list);
    cli_text_clean(clean, sizeof clean, raw);
    print_line("\033[33m", "note", clean);
}

void cli_size_text(char out[24], uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, 24, unit == 0 ? "%.0f %s" : "%.1f %s", value, bytes == 1 ? "byte" : units[unit]);
}

void cli_print_row(int width, const char *name, const char *format, ...)
{
    char raw[5000]; /* a name has up to 4096 bytes */
    char clean[5000];
    va_list list;
    va_start(list, format);
    if (vsnprintf(raw, sizeof raw, format, list) < 0) {
        raw[0] = 0;
    }
    va_end(list);
    cli_text_clean(clean, sizeof clean, raw);
    (void)printf("%-*s  %s\n", width, name, clean);
}

ortcrypt_status cli_print_json(cli_context *context, json_t *object, ortcrypt_error *err)
{
    if (object == NULL) {
        return cli_fail_memory(err);
    }
    cli_progress_clear();
    const int printed = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(object);
    context->json_printed = true;
    if (printed != 0 || putchar('\n') == EOF) {
        return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "standard output did not take the result");
    }
    return ORTCRYPT_OK;
}

ortcrypt_status cli_print_json_text(cli_context *context, char *text, ortcrypt_error *err)
{
    json_t *object = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    ortcrypt_free(text, 0);
    return cli_print_json(context, object, err);
}

json_t *cli_json_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *clean = malloc(size);
    json_t *value = NULL;
    if (clean != NULL) {
        cli_text_clean(clean, size, text);
        value = json_string(clean);
    }
    free(clean);
    return value;
}

void cli_output_lend(void)
{
    if (fflush(stdout) != 0 && output_errno == 0) {
        output_errno = errno;
    }
    own_output = own_output < 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : own_output;
    if (own_output >= 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    }
}

void cli_output_take_back(void)
{
    if (own_output >= 0) {
        (void)fflush(stdout); /* what a library left in the buffer is its own */
        (void)dup2(own_output, STDOUT_FILENO);
        (void)close(own_output);
        own_output = -1;
    }
}

ortcrypt_status cli_flush_output(ortcrypt_error *err)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        const int reason = output_errno != 0 ? output_errno : errno != 0 ? errno : EIO;
        return cli_fail_errno(err, ORTCRYPT_E_IO, reason, "standard output did not take the result");
    }
    return ORTCRYPT_OK;
}
