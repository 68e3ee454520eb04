/* cli/keys.c: from options to a keyring. Secrets are copied into the library's secret memory and wiped here. */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal.h"

#define PASSPHRASE_SIZE 1026 /* 1024 bytes, one to see that it is longer, NUL */

static ortcrypt_status passphrase_from_fd(uint64_t number, char *out, size_t *len, ortcrypt_error *err)
{
    const int fd = number <= INT32_MAX ? (int)number : -1;
    size_t used = 0;
    for (;;) {
        char byte = 0;
        const ssize_t got = read(fd, &byte, 1); /* byte by byte: what follows the line is not ours */
        if (got < 0 && errno == EINTR && !cli_interrupted()) {
            continue;
        }
        if (got < 0) {
            const int saved = errno;
            return cli_interrupted() ? cli_check_interrupt(err)
                                     : cli_fail_errno(err, ORTCRYPT_E_IO, saved, "reading the passphrase from descriptor %llu",
                                                      (unsigned long long)number);
        }
        if (got == 0 || byte == '\n') {
            break;
        }
        if (used + 2 >= PASSPHRASE_SIZE) {
            return cli_fail(err, ORTCRYPT_E_LIMIT, "the passphrase on descriptor %llu is longer than 1024 bytes",
                            (unsigned long long)number);
        }
        out[used++] = byte;
    }
    *len = used;
    return ORTCRYPT_OK;
}

/* -p and --passphrase-fd. `twice`: a new passphrase, typed again to be sure. */
static ortcrypt_status add_passphrase(cli_keys *keys, const cli_args *args, bool twice, ortcrypt_error *err)
{
    char text[PASSPHRASE_SIZE] = "";
    char again[PASSPHRASE_SIZE] = "";
    size_t len = 0;
    size_t again_len = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    if (cli_args_has(args, OPT_PASSPHRASE_FD)) {
        st = passphrase_from_fd(cli_args_number(args, OPT_PASSPHRASE_FD, 0), text, &len, err);
    } else {
        st = cli_prompt_secret("Passphrase: ", text, sizeof text, &len, err);
        if (st == ORTCRYPT_OK && twice && len != 0) {
            st = cli_prompt_secret("Again: ", again, sizeof again, &again_len, err);
            if (st == ORTCRYPT_OK && (again_len != len || memcmp(text, again, len) != 0)) {
                st = cli_fail(err, ORTCRYPT_E_INVALID, "the two passphrases are not the same");
            }
        }
    }
    if (st == ORTCRYPT_OK && len == 0) {
        st = cli_fail(err, ORTCRYPT_E_NO_KEY, "the passphrase is empty");
    }
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_keyring_add_passphrase(keys->ring, text, len, err);
    }
    explicit_bzero(text, sizeof text);
    explicit_bzero(again, sizeof again);
    return st;
}

/* One recipient a line; # begins a comment. */
static ortcrypt_status add_recipients_file(cli_keys *keys, const char *path, ortcrypt_error *err)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    size_t number = 0;
    size_t added = 0;
    ortcrypt_status st = ORTCRYPT_OK;
    ssize_t len = 0;
    if (file == NULL) {
        return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    }
    errno = 0;
    while (st == ORTCRYPT_OK && (len = getline(&line, &cap, file)) >= 0) {
        number++;
        while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL) {
            line[--len] = 0;
        }
        if (len == 0 || line[0] == '#') {
            continue;
        }
        st = ortcrypt_keyring_add_recipient(keys->ring, line, err);
        if (st != ORTCRYPT_OK) {
            ortcrypt_error inner = *err;
            (void)cli_fail(err, st, "%s, line %zu: %s", path, number, inner.message);
            cli_hint(err, "%s", inner.hint);
        }
        added++;
    }
    if (st == ORTCRYPT_OK && ferror(file) != 0) {
        st = cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    } else if (st == ORTCRYPT_OK && added == 0) {
        st = cli_fail(err, ORTCRYPT_E_INPUT, "%s holds no recipient", path);
    }
    free(line);
    (void)fclose(file);
    return st;
}

static ortcrypt_status check_recipient_mixture(const cli_args *args, ortcrypt_error *err)
{
    const bool natively = cli_args_has(args, OPT_RECIPIENT) || cli_args_has(args, OPT_RECIPIENTS_FILE);
    const bool passphrase = cli_args_has(args, OPT_PASSPHRASE) || cli_args_has(args, OPT_PASSPHRASE_FD);
    const bool command = cli_args_has(args, OPT_RECIPIENT_COMMAND);
    if (!natively && !passphrase && !command) {
        (void)cli_fail(err, ORTCRYPT_E_NO_KEY, "nobody could open the bundle: no recipient was given");
        cli_hint(err, "-r age1... (from `ortcrypt keygen`), -R FILE, -p or --recipient-command");
        return ORTCRYPT_E_NO_KEY;
    }
    if (passphrase && (natively || command)) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "a passphrase excludes recipients");
    }
    if (command && natively) {
        (void)cli_fail(err, ORTCRYPT_E_INVALID, "--recipient-command excludes -r and -R");
        cli_hint(err, "let the command encrypt to all of them: 'age -e -r age1... -R ssh_key.pub'");
        return ORTCRYPT_E_INVALID;
    }
    return ORTCRYPT_OK;
}

ortcrypt_status cli_keys_for_writing(cli_keys *keys, const cli_args *args, ortcrypt_error *err)
{
    const char *text = NULL;
    size_t at = 0;
    *keys = (cli_keys){0};
    ortcrypt_status st = check_recipient_mixture(args, err);
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_keyring_new(&keys->ring, err);
    }
    while (st == ORTCRYPT_OK && (text = cli_args_next(args, OPT_RECIPIENT, &at)) != NULL) {
        st = ortcrypt_keyring_add_recipient(keys->ring, text, err);
    }
    at = 0;
    while (st == ORTCRYPT_OK && (text = cli_args_next(args, OPT_RECIPIENTS_FILE, &at)) != NULL) {
        st = add_recipients_file(keys, text, err);
    }
    if (st == ORTCRYPT_OK && (text = cli_args_value(args, OPT_RECIPIENT_COMMAND)) != NULL) {
        st = cli_command_parse(&keys->command, "recipient-command", text, err);
        if (st == ORTCRYPT_OK) {
            st = ortcrypt_keyring_set_callbacks(keys->ring, cli_command_run, NULL, &keys->command, NULL, err);
        }
    }
    if (st == ORTCRYPT_OK && (cli_args_has(args, OPT_PASSPHRASE) || cli_args_has(args, OPT_PASSPHRASE_FD))) {
        st = add_passphrase(keys, args, true, err);
    }
    if (st != ORTCRYPT_OK) {
        cli_keys_free(keys);
    }
    return st;
}

/* The text of an environment variable, wiped where it stands (/proc/self/environ shows the same bytes) and unset. */
static ortcrypt_status add_identity_variable(cli_keys *keys, const char *name, ortcrypt_error *err)
{
    char *text = getenv(name);
    if (text == NULL) {
        return cli_fail(err, ORTCRYPT_E_NO_KEY, "the environment variable %s is not set", name);
    }
    const size_t len = strlen(text);
    const ortcrypt_status st = ortcrypt_keyring_add_identity(keys->ring, text, len, err);
    explicit_bzero(text, len);
    (void)unsetenv(name);
    return st;
}

/* Reads from a pipe, a terminal or a file. The library would not wake up from its first wait at Ctrl-C. */
static ortcrypt_status add_identity_fd(cli_keys *keys, int fd, ortcrypt_error *err)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, -1) < 0 && errno == EINTR && !cli_interrupted()) {
    }
    const ortcrypt_status st = cli_check_interrupt(err);
    return st == ORTCRYPT_OK ? ortcrypt_keyring_add_identity_fd(keys->ring, fd, err) : st;
}

/*
 * A pipe that the user names as a file: a shell's <(command), or a FIFO. It is opened without O_NONBLOCK, so that we wait for its
 * writer (Ctrl-C ends that); what is no pipe by then goes the way of files. *handled tells whether `path` was one.
 */
static ortcrypt_status add_identity_pipe(cli_keys *keys, const char *path, bool *handled, ortcrypt_error *err)
{
    struct stat info;
    *handled = stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
    if (!*handled) {
        return ORTCRYPT_OK;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return cli_interrupted() ? cli_check_interrupt(err)
                                 : cli_fail_errno(err, ORTCRYPT_E_IO, errno, "the identity pipe %s cannot be opened", path);
    }
    const ortcrypt_status st = add_identity_fd(keys, fd, err);
    (void)close(fd);
    return st;
}

/* The descriptor that /dev/stdin, /dev/fd/N or /proc/self/fd/N names: sockets cannot be opened by that path, and files would begin anew. */
static bool descriptor_path(const char *path, int *fd)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    uint64_t number = STDIN_FILENO;
    bool found = strcmp(path, "/dev/stdin") == 0;
    for (size_t i = 0; !found && i < sizeof folders / sizeof *folders; i++) {
        const size_t len = strlen(folders[i]);
        found = strncmp(path, folders[i], len) == 0 && cli_number_parse(path + len, &number) && number <= INT32_MAX;
    }
    *fd = (int)number;
    return found;
}

static ortcrypt_status add_identity(cli_keys *keys, const char *text, ortcrypt_error *err)
{
    uint64_t number = 0;
    int fd = -1;
    bool handled = false;
    if (strcmp(text, "-") == 0) {
        return add_identity_fd(keys, STDIN_FILENO, err);
    }
    if (strncmp(text, "env:", 4) == 0) {
        return add_identity_variable(keys, text + 4, err);
    }
    if (strncmp(text, "fd:", 3) == 0) {
        if (!cli_number_parse(text + 3, &number) || number > INT32_MAX) {
            return cli_fail(err, ORTCRYPT_E_INVALID, "-i fd:N needs the number of a descriptor, not '%s'", text + 3);
        }
        return add_identity_fd(keys, (int)number, err);
    }
    if (strncmp(text, "AGE-SECRET-KEY-", 15) == 0) {
        (void)cli_fail(err, ORTCRYPT_E_INVALID, "-i takes a file; a key in the arguments is seen by every process on the machine");
        cli_hint(err, "write it to a file, or hand it over with -i -, fd:N or env:NAME; take this one for known to others");
        return ORTCRYPT_E_INVALID;
    }
    if (descriptor_path(text, &fd)) {
        return add_identity_fd(keys, fd, err);
    }
    const ortcrypt_status st = add_identity_pipe(keys, text, &handled, err);
    return handled ? st : ortcrypt_keyring_add_identity_file(keys->ring, text, err);
}

static ortcrypt_status no_key(ortcrypt_error *err)
{
    (void)cli_fail(err, ORTCRYPT_E_NO_KEY, "no key was given");
    cli_hint(err, "-i FILE (from `ortcrypt keygen`), -p, --identity-command, or ORTCRYPT_IDENTITY=FILE in the environment");
    return ORTCRYPT_E_NO_KEY;
}

ortcrypt_status cli_keys_for_opening(cli_keys *keys, const cli_args *args, bool optional, ortcrypt_error *err)
{
    const char *text = NULL;
    size_t at = 0;
    const char *variable = getenv("ORTCRYPT_IDENTITY");
    char *fallback = variable != NULL && *variable != 0 ? strdup(variable) : NULL;
    const bool passphrase = cli_args_has(args, OPT_PASSPHRASE) || cli_args_has(args, OPT_PASSPHRASE_FD);
    const bool given = cli_args_has(args, OPT_IDENTITY) || cli_args_has(args, OPT_IDENTITY_COMMAND) || passphrase;
    ortcrypt_status st = ORTCRYPT_OK;
    *keys = (cli_keys){0};
    (void)unsetenv("ORTCRYPT_IDENTITY");
    if (!given && fallback == NULL) {
        return optional ? ORTCRYPT_OK : no_key(err);
    }
    st = ortcrypt_keyring_new(&keys->ring, err);
    if (st == ORTCRYPT_OK && !given) {
        st = add_identity(keys, fallback, err);
    }
    while (st == ORTCRYPT_OK && (text = cli_args_next(args, OPT_IDENTITY, &at)) != NULL) {
        st = add_identity(keys, text, err);
    }
    if (st == ORTCRYPT_OK && (text = cli_args_value(args, OPT_IDENTITY_COMMAND)) != NULL) {
        st = cli_command_parse(&keys->command, "identity-command", text, err);
        if (st == ORTCRYPT_OK) {
            st = ortcrypt_keyring_set_callbacks(keys->ring, NULL, cli_command_run, &keys->command, NULL, err);
        }
    }
    if (st == ORTCRYPT_OK && passphrase) {
        st = add_passphrase(keys, args, false, err);
    }
    if (st != ORTCRYPT_OK) {
        cli_keys_free(keys);
    }
    free(fallback);
    return st;
}

void cli_keys_free(cli_keys *keys)
{
    ortcrypt_keyring_free(keys->ring);
    cli_command_free(&keys->command);
    *keys = (cli_keys){0};
}

ortcrypt_open_options cli_open_options(const cli_context *context)
{
    const cli_args *args = context->args;
    return (ortcrypt_open_options){.struct_size = sizeof(ortcrypt_open_options),
                                   .bundle_id = cli_args_value(args, OPT_BUNDLE_ID),
                                   .pin = cli_args_value(args, OPT_PIN),
                                   .min_sequence = cli_args_number(args, OPT_MIN_SEQUENCE, 0),
                                   .monitor = &context->monitor};
}
