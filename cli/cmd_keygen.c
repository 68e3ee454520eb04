/* cli/cmd_keygen.c: `ortcrypt keygen`: a new identity in the file format of age-keygen. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ortcrypt/keyring.h"
#include "terminal.h"

static ortcrypt_status write_all(int fd, const char *text, size_t len, const char *what, ortcrypt_error *err)
{
    while (len > 0) {
        const ssize_t wrote = write(fd, text, len);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", what);
        }
        text += wrote;
        len -= (size_t)wrote;
    }
    return ORTCRYPT_OK;
}

/* So that the file's name survives a power cut as well. */
static void sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int len = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : len, slash == NULL ? "." : path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* best effort: some file systems refuse it for folders */
        (void)close(fd);
    }
}

static ortcrypt_status write_file(const char *path, const char *text, size_t len, ortcrypt_error *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        (void)cli_fail(err, ORTCRYPT_E_EXISTS, "%s exists already", path);
        cli_hint(err, "keys are never overwritten: choose another name");
        return ORTCRYPT_E_EXISTS;
    }
    if (fd < 0) {
        return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    }
    ortcrypt_status st = write_all(fd, text, len, path, err);
    if (st == ORTCRYPT_OK && fsync(fd) != 0) {
        st = cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    }
    if (close(fd) != 0 && st == ORTCRYPT_OK) {
        st = cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    }
    if (st != ORTCRYPT_OK) {
        (void)unlink(path);
        return st;
    }
    sync_folder_of(path);
    return ORTCRYPT_OK;
}

/* A redirection made the file with the shell's umask. */
static void warn_about_readers(void)
{
    struct stat info;
    if (fstat(STDOUT_FILENO, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0) {
        cli_print_note("the file that receives the identity can be read by others; -o makes one that cannot");
    }
}

ortcrypt_status cmd_keygen(cli_context *context, ortcrypt_error *err)
{
    const char *path = cli_args_value(context->args, OPT_OUTPUT);
    char identity[ORTCRYPT_IDENTITY_SIZE] = "";
    char recipient[ORTCRYPT_RECIPIENT_SIZE] = "";
    char created[32] = "";
    char text[256] = "";
    const time_t now = time(NULL);
    struct tm utc;
    ortcrypt_status st = ortcrypt_identity_generate(identity, recipient, err);
    if (st == ORTCRYPT_OK) {
        if (gmtime_r(&now, &utc) != NULL) {
            (void)strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
        }
        const int len = snprintf(text, sizeof text, "# created: %s\n# public key: %s\n%s\n", created, recipient, identity);
        if (path != NULL) {
            st = write_file(path, text, (size_t)len, err);
        } else {
            warn_about_readers();
            st = write_all(STDOUT_FILENO, text, (size_t)len, "standard output", err); /* not stdio: its buffer is not wiped */
        }
    }
    if (st == ORTCRYPT_OK && (path != NULL || isatty(STDOUT_FILENO) == 0)) {
        (void)fprintf(stderr, "Public key: %s\n", recipient);
    }
    explicit_bzero(identity, sizeof identity);
    explicit_bzero(text, sizeof text);
    return st;
}
