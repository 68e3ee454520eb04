/* cli/prompt.c: asking for a passphrase on the terminal, without echo. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"

/* One line into `out`, read byte by byte so that nothing is left in a buffer of stdio. */
static ortcrypt_status read_line(int fd, char *out, size_t out_size, size_t *len, ortcrypt_error *err)
{
    size_t used = 0;
    for (;;) {
        char byte = 0;
        const ssize_t got = read(fd, &byte, 1);
        if (got < 0 && errno == EINTR && !cli_interrupted()) {
            continue;
        }
        if (got < 0) {
            const int saved = errno;
            return cli_interrupted() ? cli_check_interrupt(err) : cli_fail_errno(err, ORTCRYPT_E_IO, saved, "reading the passphrase");
        }
        if (got == 0 || byte == '\n') {
            break;
        }
        if (used + 1 >= out_size) {
            return cli_fail(err, ORTCRYPT_E_LIMIT, "the passphrase is longer than %zu bytes", out_size - 1);
        }
        out[used++] = byte;
    }
    *len = used;
    return ORTCRYPT_OK;
}

ortcrypt_status cli_prompt_secret(const char *question, char *out, size_t out_size, size_t *len, ortcrypt_error *err)
{
    struct termios before;
    ortcrypt_status st = ORTCRYPT_OK;
    cli_progress_clear();
    const int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty < 0 || tcgetattr(tty, &before) != 0) {
        st = cli_fail(err, ORTCRYPT_E_NO_KEY, "there is no terminal to ask for the passphrase");
        cli_hint(err, "hand it over with --passphrase-fd N");
        goto out;
    }
    struct termios quiet = before;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK);
    quiet.c_lflag |= ECHONL | ICANON | ISIG;
    if (tcsetattr(tty, TCSAFLUSH, &quiet) != 0) {
        st = cli_fail_errno(err, ORTCRYPT_E_IO, errno, "the terminal does not switch its echo off");
        goto out;
    }
    (void)dprintf(tty, "%s", question);
    st = read_line(tty, out, out_size, len, err);
    (void)tcsetattr(tty, TCSAFLUSH, &before);
    if (st != ORTCRYPT_OK) {
        (void)dprintf(tty, "\n");
    }

out:
    if (tty >= 0) {
        (void)close(tty);
    }
    return st;
}
