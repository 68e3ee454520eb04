/* cli/npy_read.c: .npy files to tensors. Every length in the file is checked against the file's size before memory is taken. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor.h"

#define HEADER_MAX 65536u
#define STRING_CHARS_MAX 1048576u /* characters of one string */

typedef struct npy_file {
    const char *path;
    int fd;
    uint64_t size;     /* of the file */
    uint64_t data_off; /* where the elements begin */
    cli_npy_header header;
} npy_file;

static ortcrypt_status read_at(const npy_file *file, uint64_t offset, void *out, size_t len, ortcrypt_error *err)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t got = pread(file->fd, (char *)out + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", file->path);
        }
        if (got == 0) {
            return cli_fail(err, ORTCRYPT_E_INPUT, "%s is cut off at byte %llu", file->path, (unsigned long long)(offset + done));
        }
        done += (size_t)got;
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status open_file(npy_file *file, const char *path, ortcrypt_error *err)
{
    struct stat info;
    *file = (npy_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file->fd < 0 || fstat(file->fd, &info) != 0) {
        return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return cli_fail(err, ORTCRYPT_E_INPUT, "%s is no regular file", path);
    }
    file->size = (uint64_t)info.st_size;
    return ORTCRYPT_OK;
}

/* "\x93NUMPY", two bytes of version, the header's length (2 bytes in version 1, else 4), the header. */
static ortcrypt_status read_header(npy_file *file, ortcrypt_error *err)
{
    unsigned char start[12] = {0};
    char text[HEADER_MAX + 1];
    if (file->size < sizeof start) {
        return cli_fail(err, ORTCRYPT_E_INPUT, "%s is no .npy file", file->path);
    }
    ortcrypt_status st = read_at(file, 0, start, sizeof start, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (memcmp(start, "\x93NUMPY", 6) != 0) {
        (void)cli_fail(err, ORTCRYPT_E_INPUT, "%s is no .npy file", file->path);
        cli_hint(err, "%s", memcmp(start, "PK", 2) == 0 ? "it looks like .npz: save each array with numpy.save" : "");
        return ORTCRYPT_E_INPUT;
    }
    if (start[6] < 1 || start[6] > 3) {
        return cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s: .npy version %u.%u is not supported", file->path, start[6], start[7]);
    }
    const uint64_t prefix = start[6] == 1 ? 10 : 12;
    const uint64_t len = start[8] + 256u * start[9] + (start[6] == 1 ? 0 : 65536u * start[10] + 16777216ull * start[11]);
    if (len > HEADER_MAX || prefix + len > file->size) {
        return cli_fail(err, ORTCRYPT_E_INPUT, "%s: its header of %llu bytes is cut off or too long", file->path,
                        (unsigned long long)len);
    }
    st = read_at(file, prefix, text, (size_t)len, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    text[len] = 0;
    const char *wrong = memchr(text, 0, (size_t)len) != NULL ? "its header holds a NUL" : cli_npy_header_parse(&file->header, text);
    if (wrong != NULL) {
        return cli_fail(err, ORTCRYPT_E_INPUT, "%s: %s", file->path, wrong);
    }
    file->data_off = prefix + len;
    return ORTCRYPT_OK;
}

/* The type of "<f4"; *chars: characters of one string of "<U12". */
static ortcrypt_status read_type(const npy_file *file, ONNXTensorElementDataType *type, uint64_t *chars, ortcrypt_error *err)
{
    const char *descr = file->header.descr;
    const char order = descr[0];
    const cli_type *known = descr[0] != 0 ? cli_type_find_npy(descr + 1) : NULL;
    if (order == '<' && descr[1] == 'U') {
        *type = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
        if (cli_number_parse(descr + 2, chars) && *chars <= STRING_CHARS_MAX) {
            return ORTCRYPT_OK;
        }
    } else if (known != NULL && (order == '<' || (known->size == 1 && (order == '|' || order == '>')))) {
        *type = known->type;
        return ORTCRYPT_OK;
    }
    (void)cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s: elements of type '%s' are not supported", file->path, descr);
    if (order == '>') {
        cli_hint(err, "it is big-endian: save it with numpy.save(file, array.astype(array.dtype.newbyteorder('<')))");
    } else {
        cli_hint(err, "floats of 2, 4 or 8 bytes, integers of 1 to 8, booleans, complex numbers and '<U' strings are");
    }
    return ORTCRYPT_E_UNSUPPORTED;
}

/* UTF-32 (padded with NULs) to UTF-8. NULL: a character is none, or memory ran out. */
static char *text_from_utf32(const uint32_t *from, size_t chars)
{
    char *text = malloc(4 * chars + 1);
    char *to = text;
    while (chars > 0 && from[chars - 1] == 0) {
        chars--;
    }
    for (size_t i = 0; text != NULL && i < chars; i++) {
        const uint32_t point = from[i];
        if (point == 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
            free(text);
            return NULL;
        }
        if (point < 0x80) {
            *to++ = (char)point;
        } else if (point < 0x800) {
            *to++ = (char)(0xc0 | (point >> 6));
            *to++ = (char)(0x80 | (point & 63));
        } else if (point < 0x10000) {
            *to++ = (char)(0xe0 | (point >> 12));
            *to++ = (char)(0x80 | ((point >> 6) & 63));
            *to++ = (char)(0x80 | (point & 63));
        } else {
            *to++ = (char)(0xf0 | (point >> 18));
            *to++ = (char)(0x80 | ((point >> 12) & 63));
            *to++ = (char)(0x80 | ((point >> 6) & 63));
            *to++ = (char)(0x80 | (point & 63));
        }
    }
    if (text != NULL) {
        *to = 0;
    }
    return text;
}

static ortcrypt_status read_strings(const npy_file *file, cli_tensor *tensor, size_t chars, ortcrypt_error *err)
{
    uint32_t *room = calloc(chars + 1, sizeof *room);
    ortcrypt_status st = room != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
    for (size_t i = 0; st == ORTCRYPT_OK && i < tensor->count; i++) {
        st = read_at(file, file->data_off + (uint64_t)i * chars * 4, room, chars * 4, err);
        if (st == ORTCRYPT_OK) {
            tensor->strings[i] = text_from_utf32(room, chars);
            if (tensor->strings[i] == NULL) {
                st = cli_fail(err, ORTCRYPT_E_INPUT, "%s: string %zu holds something that is no character", file->path, i);
            }
        }
    }
    free(room);
    return st;
}

/* Column by column to row by row, in a new buffer of elements of `size` bytes. */
static ortcrypt_status transpose(cli_tensor *tensor, size_t size, void **elements, ortcrypt_error *err)
{
    size_t at[CLI_RANK_MAX] = {0};
    char *sorted = calloc(tensor->count != 0 ? tensor->count : 1, size);
    if (sorted == NULL) {
        return cli_fail_memory(err);
    }
    for (size_t i = 0; i < tensor->count; i++) {
        size_t row = 0;
        for (size_t axis = 0; axis < tensor->rank; axis++) {
            row = row * (size_t)tensor->shape[axis] + at[axis];
        }
        memcpy(sorted + row * size, (const char *)*elements + i * size, size);
        for (size_t axis = 0; axis < tensor->rank; axis++) { /* the first axis runs fastest */
            at[axis]++;
            if (at[axis] < (size_t)tensor->shape[axis]) {
                break;
            }
            at[axis] = 0;
        }
    }
    free(*elements);
    *elements = sorted;
    return ORTCRYPT_OK;
}

static ortcrypt_status read_elements(const npy_file *file, cli_tensor *tensor, ortcrypt_error *err)
{
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    int64_t shape[CLI_RANK_MAX];
    uint64_t chars = 0;
    uint64_t len = 0;
    ortcrypt_status st = read_type(file, &type, &chars, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const cli_type *known = cli_type_find(type);
    len = known->size != 0 ? known->size : 4 * chars;
    for (size_t i = 0; i < file->header.rank; i++) {
        if (__builtin_mul_overflow(len, file->header.shape[i], &len) || len > file->size) {
            return cli_fail(err, ORTCRYPT_E_INPUT, "%s: its shape asks for more bytes than the file has", file->path);
        }
        shape[i] = (int64_t)file->header.shape[i];
    }
    if (len != file->size - file->data_off) {
        return cli_fail(err, ORTCRYPT_E_INPUT, "%s: its header asks for %llu bytes of elements, and the file has %llu", file->path,
                        (unsigned long long)len, (unsigned long long)(file->size - file->data_off));
    }
    st = cli_tensor_new(tensor, type, shape, file->header.rank, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = tensor->strings != NULL ? read_strings(file, tensor, (size_t)chars, err)
                                 : read_at(file, file->data_off, tensor->data, tensor->len, err);
    if (st == ORTCRYPT_OK && file->header.fortran && tensor->rank > 1) {
        void *elements = tensor->strings != NULL ? (void *)tensor->strings : tensor->data;
        st = transpose(tensor, known->size != 0 ? known->size : sizeof(char *), &elements, err);
        if (tensor->strings != NULL) {
            tensor->strings = elements;
        } else {
            tensor->data = elements;
        }
    }
    return st;
}

ortcrypt_status cli_npy_read(cli_tensor *tensor, const char *path, ortcrypt_error *err)
{
    npy_file file;
    *tensor = (cli_tensor){0};
    ortcrypt_status st = open_file(&file, path, err);
    if (st == ORTCRYPT_OK) {
        st = read_header(&file, err);
    }
    if (st == ORTCRYPT_OK) {
        st = read_elements(&file, tensor, err);
    }
    if (st != ORTCRYPT_OK) {
        cli_tensor_free(tensor);
    }
    if (file.fd >= 0) {
        (void)close(file.fd);
    }
    return st;
}
