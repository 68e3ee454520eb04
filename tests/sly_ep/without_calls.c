/*
 * without_calls NUMBER... -- COMMAND...: runs the command where these system calls do not exist (ENOSYS), as on an older kernel.
 * At most 16 numbers. Exit code: the command's; 2 for an error of this program.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { NUMBERS_MAX = 16 };

int main(int argc, char **argv)
{
    struct sock_filter code[2 * NUMBERS_MAX + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short len = 1;
    int at = 1;
    for (; at < argc && at <= NUMBERS_MAX && strcmp(argv[at], "--") != 0; at++) {
        code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[at]), 0, 1);
        code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (at + 1 >= argc || strcmp(argv[at], "--") != 0) {
        fputs("usage: without_calls NUMBER... -- COMMAND...\n", stderr);
        return 2;
    }
    const struct sock_fprog program = {.len = len, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("without_calls");
        return 2;
    }
    (void)execvp(argv[at + 1], argv + at + 1);
    perror(argv[at + 1]);
    return 2;
}
