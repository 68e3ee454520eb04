/* cli/npy_write.c: tensors to .npy files of version 1.0. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor.h"

/* Characters of UTF-8 text (ORT's strings; bytes that are none count one each). */
static size_t utf8_chars(const char *text)
{
    size_t count = 0;
    for (; *text != 0; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
    }
    return count;
}

/* Decodes one character and advances. The text was cleaned: it is valid UTF-8. */
static uint32_t take_character(const unsigned char **at)
{
    const unsigned char *from = *at;
    const int more = from[0] < 0x80 ? 0 : from[0] < 0xe0 ? 1 : from[0] < 0xf0 ? 2 : 3;
    uint32_t point = more == 0 ? from[0] : from[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        point = point << 6 | (from[i] & 0x3fu);
    }
    *at = from + more + 1;
    return point;
}

static size_t longest_string(const cli_tensor *tensor)
{
    size_t longest = 1; /* numpy has no "<U0" */
    for (size_t i = 0; i < tensor->count; i++) {
        const size_t chars = utf8_chars(tensor->strings[i]);
        longest = chars > longest ? chars : longest;
    }
    return longest;
}

/* The header with its prefix, padded so that the elements begin at a multiple of 64 bytes. Returns its length. */
static size_t print_header(char out[1024], const cli_tensor *tensor, const cli_type *known, size_t chars)
{
    char shape[768] = "";
    char descr[32];
    int used = 0;
    for (size_t i = 0; i < tensor->rank; i++) {
        used += snprintf(shape + used, sizeof shape - (size_t)used, i == 0 ? "%lld," : " %lld,", (long long)tensor->shape[i]);
    }
    if (tensor->rank > 1) {
        shape[used - 1] = 0; /* numpy writes (3, 4) and (3,) */
    }
    if (known->size == 0) {
        (void)snprintf(descr, sizeof descr, "<U%zu", chars);
    } else {
        (void)snprintf(descr, sizeof descr, "%c%s", known->size == 1 ? '|' : '<', known->npy);
    }
    const int len = snprintf(out + 10, 1014, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    const size_t total = (10 + (size_t)len + 1 + 63) / 64 * 64;
    memset(out + 10 + len, ' ', total - 10 - (size_t)len);
    out[total - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - 10) & 255);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

static bool write_strings(FILE *file, const cli_tensor *tensor, size_t chars)
{
    uint32_t *room = calloc(chars, sizeof *room);
    bool ok = room != NULL;
    for (size_t i = 0; ok && i < tensor->count; i++) {
        const unsigned char *at = (const unsigned char *)tensor->strings[i];
        size_t used = 0;
        while (*at != 0 && used < chars) {
            room[used++] = take_character(&at);
        }
        memset(room + used, 0, (chars - used) * sizeof *room);
        ok = fwrite(room, sizeof *room, chars, file) == chars;
    }
    free(room);
    return ok;
}

ortcrypt_status cli_npy_write(const cli_tensor *tensor, int dir_fd, const char *name, ortcrypt_error *err)
{
    const cli_type *known = cli_type_find(tensor->type);
    char header[1024];
    char type[32];
    if (known == NULL || (known->npy == NULL && known->kind != 's')) {
        return cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s: .npy files cannot hold %s", name, cli_type_name(tensor->type, type));
    }
    const size_t chars = known->kind == 's' ? longest_string(tensor) : 0;
    const size_t header_len = print_header(header, tensor, known, chars);
    const int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        const int saved = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return cli_fail_errno(err, ORTCRYPT_E_IO, saved, "%s", name);
    }
    bool ok = fwrite(header, 1, header_len, file) == header_len;
    ok = ok && (tensor->strings != NULL ? write_strings(file, tensor, chars)
                                        : fwrite(tensor->data, 1, tensor->len, file) == tensor->len);
    ok = fflush(file) == 0 && ok;
    const int saved = errno;
    if (fclose(file) != 0 || !ok) {
        return cli_fail_errno(err, ORTCRYPT_E_IO, saved, "%s", name);
    }
    return ORTCRYPT_OK;
}
