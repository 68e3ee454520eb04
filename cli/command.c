/* cli/command.c: running somebody else's program to wrap or unwrap a key. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keys.h"
#include "ortcrypt/sandbox.h"
#include "terminal.h"

#define WAKE_MS 200

extern char **environ;

/* Takes one word off *from into *to (both advance). false: a quote is not closed. */
static bool take_word(const char **from, char **to)
{
    char quote = 0;
    const char *at = *from;
    char *out = *to;
    for (; *at != 0 && (quote != 0 || *at != ' '); at++) {
        if (*at == quote) {
            quote = 0;
        } else if (quote == 0 && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (*at == '\\' && quote != '\'' && at[1] != 0) {
            *out++ = *++at;
        } else {
            *out++ = *at;
        }
    }
    *out++ = 0;
    *from = at;
    *to = out;
    return quote == 0;
}

ortcrypt_status cli_command_parse(cli_command *command, const char *option, const char *text, ortcrypt_error *err)
{
    const size_t len = strlen(text);
    const char *from = text;
    *command = (cli_command){.text = malloc(2 * len + 2), .words = calloc(len / 2 + 2, sizeof(char *))};
    char *to = command->text;
    if (command->text == NULL || command->words == NULL) {
        cli_command_free(command);
        return cli_fail_memory(err);
    }
    for (;;) {
        from += strspn(from, " ");
        if (*from == 0) {
            break;
        }
        command->words[command->word_count++] = to;
        if (!take_word(&from, &to)) {
            cli_command_free(command);
            return cli_fail(err, ORTCRYPT_E_INVALID, "--%s: a quote is not closed in '%s'", option, text);
        }
    }
    if (command->word_count == 0) {
        cli_command_free(command);
        return cli_fail(err, ORTCRYPT_E_INVALID, "--%s needs a command", option);
    }
    return ORTCRYPT_OK;
}

void cli_command_free(cli_command *command)
{
    free(command->text);
    free(command->words);
    *command = (cli_command){0};
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* Starts the child on the inner ends of two pipes. 0, or an errno. */
static int spawn_child(const cli_command *command, const sigset_t *signals, int in, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        return failed;
    }
    failed = posix_spawnattr_init(&attributes);
    if (failed == 0) {
        (void)sigemptyset(&defaults);
        (void)sigaddset(&defaults, SIGPIPE); /* we ignore it; the child must not */
        failed = posix_spawnattr_setsigdefault(&attributes, &defaults);
        failed = failed != 0 ? failed : posix_spawnattr_setsigmask(&attributes, signals);
        failed = failed != 0 ? failed : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        failed = failed != 0 ? failed : posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        failed = failed != 0 ? failed : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        failed = failed != 0 ? failed : posix_spawnp(pid, command->words[0], &actions, &attributes, command->words, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Feeds and reads at once, so that neither side waits for the other. NULL on success, else the end of a sentence. */
static const char *exchange(int *feed, int *fetch, const char *in, size_t in_len, char *out, size_t out_max, size_t *out_len)
{
    size_t fed = 0;
    size_t got = 0;
    while (*fetch >= 0) {
        struct pollfd fds[2] = {{*fetch, POLLIN, 0}, {*feed, POLLOUT, 0}}; /* a negative descriptor is skipped */
        if ((poll(fds, 2, WAKE_MS) < 0 && errno != EINTR) || cli_interrupted()) {
            return "was stopped"; /* Ctrl-C reaches another thread than this one, so nothing else wakes it up */
        }
        if (*feed >= 0 && fds[1].revents != 0) {
            const ssize_t wrote = fed < in_len ? write(*feed, in + fed, in_len - fed) : 0;
            fed += wrote > 0 ? (size_t)wrote : 0;
            if (fed == in_len || (wrote < 0 && errno != EAGAIN && errno != EINTR)) {
                close_fd(feed); /* a program that does not read its input to the end may do so */
            }
        }
        if (fds[0].revents != 0) {
            char past = 0;
            const ssize_t count = got < out_max ? read(*fetch, out + got, out_max - got) : read(*fetch, &past, 1);
            if (count > 0 && got == out_max) {
                return "wrote more than a key file may hold";
            }
            got += count > 0 ? (size_t)count : 0;
            if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
                close_fd(fetch);
            }
        }
    }
    *out_len = got;
    return NULL;
}

/* What crosses to a thread outside of the sandbox: the user's own program is not held by it. */
typedef struct errand {
    const cli_command *command;
    const void *in;
    size_t in_len;
    void *out;
    size_t out_max;
    size_t *out_len;
    sigset_t signals; /* blocked where the caller is, and so in the program; all are on that thread */
    int result;       /* 0 or -1 */
} errand;

static ortcrypt_status run_command(void *state, ortcrypt_error *err)
{
    errand *job = state;
    const cli_command *command = job->command;
    int to_child[2] = {-1, -1};
    int from_child[2] = {-1, -1};
    const char *trouble = NULL;
    size_t got = 0;
    pid_t pid = -1;
    int status = 0;
    int failed = 0;
    (void)err; /* what went wrong is a note */
    job->result = -1;
    if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0 ||
        fcntl(to_child[1], F_SETFL, O_NONBLOCK) != 0 || fcntl(from_child[0], F_SETFL, O_NONBLOCK) != 0) {
        failed = errno;
    } else {
        failed = spawn_child(command, &job->signals, to_child[0], from_child[1], &pid);
    }
    close_fd(&to_child[0]);
    close_fd(&from_child[1]);
    if (failed != 0) {
        cli_print_note("%s cannot be started: %s", command->words[0], strerror(failed));
    } else {
        trouble = exchange(&to_child[1], &from_child[0], job->in, job->in_len, job->out, job->out_max, &got);
        if (trouble != NULL) {
            cli_print_note("%s %s", command->words[0], trouble);
            (void)kill(pid, SIGTERM);
        }
    }
    close_fd(&to_child[1]);
    close_fd(&from_child[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (failed != 0 || trouble != NULL) {
        return ORTCRYPT_OK;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        cli_print_note("%s ended with %s %d", command->words[0], WIFEXITED(status) ? "exit code" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        return ORTCRYPT_OK;
    }
    *job->out_len = got;
    job->result = 0;
    return ORTCRYPT_OK;
}

int cli_command_run(void *state, const void *in, size_t in_len, void *out, size_t out_max, size_t *out_len)
{
    errand job = {.command = state, .in = in, .in_len = in_len, .out = out, .out_max = out_max, .out_len = out_len, .result = -1};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    if (pthread_sigmask(SIG_SETMASK, NULL, &job.signals) != 0 || ortcrypt_sandbox_call(run_command, &job, &err) != ORTCRYPT_OK) {
        cli_print_note("%s cannot be started: %s", job.command->words[0], err.message);
        return -1;
    }
    return job.result;
}
