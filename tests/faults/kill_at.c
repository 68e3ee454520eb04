/*
 * kill_at: does something to a command at the entry of its n-th system call, all threads and children counted together.
 *
 *   kill_at list FILE COMMAND...      nothing; FILE gets a line for each call: its name when it changes files or locks, else -
 *   kill_at kill N COMMAND...         SIGKILL: the n-th call is not made, and none after it. Exit code 200 when N was reached
 *   kill_at int N COMMAND...          SIGINT, and the command goes on
 *   kill_at pause N:A:B COMMAND...    writes a byte to descriptor A, reads one from descriptor B, then the command goes on
 *
 * Exit code otherwise: the command's, 128 + n when signal n ended it; 2 for an error of kill_at itself.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/trace.h"

enum { KILLED = 200 };

typedef struct cut {
    FILE *list;
    unsigned long at; /* 0: never */
    unsigned long calls;
    int tell_fd;
    int wait_fd;
    enum { DO_LIST, DO_KILL, DO_INT, DO_PAUSE } what;
    bool reached;
} cut;

static void wait_for_word(const cut *c)
{
    char byte = '.';
    if (write(c->tell_fd, &byte, 1) != 1 || read(c->wait_fd, &byte, 1) < 0) {
        perror("kill_at: the descriptors of pause");
        exit(2);
    }
}

static void at_call(void *state, const trace_call *call)
{
    cut *const c = state;
    if (!call->entry) {
        return;
    }
    c->calls++;
    if (c->what == DO_LIST) {
        const char *const name = trace_changing(call->number);
        fprintf(c->list, "%s\n", name == NULL ? "-" : name);
    }
    if (c->calls != c->at) {
        return;
    }
    c->reached = true;
    switch (c->what) {
    case DO_KILL: (void)kill(call->process, SIGKILL); break;
    case DO_INT: (void)kill(call->process, SIGINT); break;
    case DO_PAUSE: wait_for_word(c); break;
    case DO_LIST: break;
    }
}

/* N, or N:A:B; the command does not inherit A and B. */
static bool parse_at(cut *c, const char *text)
{
    const int fields = sscanf(text, "%lu:%d:%d", &c->at, &c->tell_fd, &c->wait_fd);
    if (c->what != DO_PAUSE) {
        return fields == 1;
    }
    return fields == 3 && fcntl(c->tell_fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(c->wait_fd, F_SETFD, FD_CLOEXEC) == 0;
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"list", "kill", "int", "pause"};
    cut c = {0};
    unsigned what = 0;
    while (argc > 3 && what < 4 && strcmp(argv[1], words[what]) != 0) {
        what++;
    }
    c.what = what;
    if (argc <= 3 || what == 4 || (c.what != DO_LIST && !parse_at(&c, argv[2]))) {
        fputs("usage: kill_at list FILE|kill N|int N|pause N:A:B COMMAND...\n", stderr);
        return 2;
    }
    if (c.what == DO_LIST && (c.list = fopen(argv[2], "we")) == NULL) {
        perror(argv[2]);
        return 2;
    }
    const int code = trace_run(argv + 3, at_call, &c);
    if (c.list != NULL && fclose(c.list) != 0) {
        perror(argv[2]);
        return 2;
    }
    return c.what == DO_KILL && c.reached ? KILLED : code;
}
