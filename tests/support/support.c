/* tests/support/support.c */
#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *oc_test_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        fail_msg("no memory for a text");
    }
    return text;
}

char *oc_test_tmpdir(void)
{
    const char *base = getenv("TMPDIR");
    char *path = oc_test_format("%s/ortcrypt-test-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(path) == NULL) {
        fail_msg("mkdtemp %s: %s", path, strerror(errno));
    }
    return path;
}

/* Through handles: names may be longer together than a path may be, and no link is followed. */
static void remove_at(int at, const char *name)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT) {
        return;
    }
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        fail_msg("removing %s: %s", name, strerror(errno));
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            remove_at(dirfd(folder), entry->d_name);
        }
    }
    (void)closedir(folder);
    if (unlinkat(at, name, AT_REMOVEDIR) != 0) {
        fail_msg("removing %s: %s", name, strerror(errno));
    }
}

void oc_test_rm_rf(const char *path)
{
    remove_at(AT_FDCWD, path);
}

uint8_t *oc_test_read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    size_t cap = 65536;
    size_t have = 0;
    uint8_t *data = malloc(cap + 1);
    while (data != NULL) {
        have += fread(data + have, 1, cap - have, file);
        if (have < cap) {
            break;
        }
        cap *= 2;
        uint8_t *more = realloc(data, cap + 1);
        if (more == NULL) {
            free(data);
        }
        data = more;
    }
    if (data == NULL || ferror(file)) {
        fail_msg("%s: not readable, or no memory", path);
    }
    fclose(file);
    data[have] = 0;
    if (len != NULL) {
        *len = have;
    }
    return data;
}

void oc_test_write_file(const char *path, const void *data, size_t len)
{
    FILE *file = fopen(path, "wbe");
    if (file == NULL || fwrite(data, 1, len, file) != len || fclose(file) != 0) {
        fail_msg("writing %s: %s", path, strerror(errno));
    }
}

const char *oc_test_env(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0') {
        fail_msg("%s is not set: run the test through ctest", name);
    }
    return value;
}

uint8_t *oc_test_unhex(const char *hex, size_t *len)
{
    size_t n = strlen(hex) / 2;
    uint8_t *data = calloc(n + 1, 1);
    if (data == NULL || strlen(hex) % 2 != 0) {
        fail_msg("hex of odd length, or no memory");
    }
    for (size_t i = 0; i < n; i++) {
        unsigned value = 0;
        if (sscanf(hex + 2 * i, "%2x", &value) != 1) {
            fail_msg("not hex: %s", hex);
        }
        data[i] = (uint8_t)value;
    }
    if (len != NULL) {
        *len = n;
    }
    return data;
}

void oc_test_fill(uint8_t *data, size_t len, uint64_t seed)
{
    /* xorshift64*: spread enough that no two chunks are alike */
    uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < len; i++) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        data[i] = (uint8_t)((x * 0x2545F4914F6CDD1Du) >> 56);
    }
}

void oc_test_status_at(ortcrypt_status got, ortcrypt_status expected, const ortcrypt_error *err, const char *file, int line)
{
    if (got != expected) {
        print_error("expected %s, got %s: %s\n", ortcrypt_status_name(expected), ortcrypt_status_name(got),
                    err != NULL ? err->message : "");
        _fail(file, line);
    }
}
