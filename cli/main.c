/*
 * cli/main.c: the command line of ortcrypt.
 *
 * argv goes through the two tables (table.c) to one cmd_<verb>; its status and sentence come back and become the error lines and
 * the exit code. Data goes to standard output, everything else to standard error.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"
#include "terminal.h"

static ortcrypt_status unknown_verb(const char *word, ortcrypt_error *err)
{
    const char *names[32];
    size_t count = 0;
    for (const cli_verb *verb = CLI_VERBS; verb->name != NULL && count < 31; verb++) {
        names[count++] = verb->name;
    }
    names[count++] = "help";
    const char *near = cli_suggest(word, names, count);
    (void)cli_fail(err, ORTCRYPT_E_INVALID, word[0] == '-' ? "there is no option '%s' before the verb" : "there is no verb '%s'", word);
    if (near != NULL) {
        cli_hint(err, "did you mean `ortcrypt %s`? `ortcrypt --help` lists the verbs", near);
    } else {
        cli_hint(err, "`ortcrypt --help` lists the verbs");
    }
    return ORTCRYPT_E_INVALID;
}

/* `ortcrypt help --man [VERB]`, `ortcrypt help --completion SHELL`: for the build and for packages, so no help page names them. */
static ortcrypt_status show_generated(int argc, char **argv, ortcrypt_error *err)
{
    if (strcmp(argv[2], "--completion") == 0) {
        return argc == 4 && cli_completion(stdout, argv[3])
                   ? ORTCRYPT_OK
                   : cli_fail(err, ORTCRYPT_E_INVALID, "--completion needs one of bash, zsh and fish");
    }
    const cli_verb *verb = argc > 3 ? cli_verb_find(argv[3]) : NULL;
    if (argc > 3 && verb == NULL) {
        return unknown_verb(argv[3], err);
    }
    cli_man_page(stdout, verb);
    return ORTCRYPT_OK;
}

/* `ortcrypt help [VERB]` */
static ortcrypt_status show_help(int argc, char **argv, ortcrypt_error *err)
{
    if (argc < 3 || strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "help") == 0) {
        cli_help_program(stdout);
        return ORTCRYPT_OK;
    }
    if (strcmp(argv[2], "--man") == 0 || strcmp(argv[2], "--completion") == 0) {
        return show_generated(argc, argv, err);
    }
    const cli_verb *verb = cli_verb_find(argv[2]);
    if (verb == NULL) {
        return unknown_verb(argv[2], err);
    }
    cli_help_verb(stdout, verb);
    return ORTCRYPT_OK;
}

json_t *cli_error_json(const ortcrypt_error *err)
{
    json_t *error = json_pack("{s:s, s:i, s:o, s:o}", "status", ortcrypt_status_name(err->status), "exit_code",
                              ortcrypt_status_exit_code(err->status), "message", cli_json_text(err->message), "hint",
                              cli_json_text(err->hint));
    if (error != NULL && err->asset[0] != 0) {
        (void)json_object_set_new(error, "asset", cli_json_text(err->asset));
    }
    if (error != NULL && err->offset != ORTCRYPT_NO_OFFSET) {
        (void)json_object_set_new(error, "offset", json_integer((json_int_t)err->offset));
    }
    return error;
}

/* {"error": {...}}: --json prints one object whatever happens. */
static void print_json_error(cli_context *context, const ortcrypt_error *err)
{
    ortcrypt_error ignored = ORTCRYPT_ERROR_INIT;
    (void)cli_print_json(context, json_pack("{s:o}", "error", cli_error_json(err)), &ignored);
}

static ortcrypt_status run_verb(const cli_verb *verb, int argc, char **argv, ortcrypt_error *err)
{
    cli_args args;
    cli_context context = {.args = &args, .monitor = cli_monitor()};
    ortcrypt_status st = cli_args_parse(&args, verb, argc - 2, argv + 2, err);
    if (st == ORTCRYPT_OK && cli_args_has(&args, OPT_HELP)) {
        cli_help_verb(stdout, verb);
    } else if (st == ORTCRYPT_OK) {
        context.json = cli_args_has(&args, OPT_JSON);
        st = verb->run(&context, err);
        cli_progress_clear();
        if (st != ORTCRYPT_OK && cli_interrupted()) {
            st = cli_check_interrupt(err); /* whatever the interrupted step said */
        }
        if (st != ORTCRYPT_OK && context.json && !context.json_printed) {
            print_json_error(&context, err);
        }
    }
    cli_args_free(&args);
    return st;
}

static ortcrypt_status dispatch(int argc, char **argv, ortcrypt_error *err)
{
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        (void)printf("ortcrypt %s\n", ortcrypt_version());
        return ORTCRYPT_OK;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        return show_help(word[0] == '-' ? 1 : argc, argv, err);
    }
    const cli_verb *verb = cli_verb_find(word);
    return verb != NULL ? run_verb(verb, argc, argv, err) : unknown_verb(word, err);
}

/*
 * A standard stream that is closed would be the next file's descriptor, and messages would land in a bundle. It becomes /dev/null,
 * opened the wrong way round, so that using it is an error as before.
 */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest free one: fd */
        }
    }
}

int main(int argc, char **argv)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_error flush_err = ORTCRYPT_ERROR_INIT;
    const struct rlimit no_core = {1, 1}; /* a core would hold keys and plaintext; 0 stops files, 1 pipes to a handler too */
    fill_standard_streams();
    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1); /* before ONNX Runtime is loaded: it writes model metadata to disk else */
    (void)unsetenv("ORT_LOAD_CONFIG_FROM_MODEL"); /* a model's own session options may say where to write */
    (void)setrlimit(RLIMIT_CORE, &no_core);
    cli_terminal_start();
    if (argc < 2) {
        cli_help_program(stderr);
        return ortcrypt_status_exit_code(ORTCRYPT_E_INVALID);
    }
    ortcrypt_status st = dispatch(argc, argv, &err);
    (void)fflush(stdout); /* what was found before what is wrong with it, where both go to one place */
    if (st != ORTCRYPT_OK) {
        cli_print_error(&err);
    }
    const ortcrypt_status flushed = cli_flush_output(&flush_err);
    if (st == ORTCRYPT_OK && flushed != ORTCRYPT_OK) {
        cli_print_error(&flush_err);
        st = flushed;
    }
    return ortcrypt_status_exit_code(st);
}
