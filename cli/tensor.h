/*
 * cli/tensor.h: a tensor in this process's memory: what .npy files hold and what goes in and out of a session.
 *
 * Call order: cli_npy_read | cli_tensor_new (+ cli_tensor_random) -> use -> cli_tensor_free. One thread.
 */
#ifndef CLI_TENSOR_H
#define CLI_TENSOR_H

#include <onnxruntime_c_api.h>

#include "cli.h"

#define CLI_RANK_MAX 32          /* what numpy allows */
#define CLI_TENSOR_LEN_MAX (UINT64_C(1) << 40) /* bytes; a shape that asks for more is a mistake */

typedef struct cli_tensor {
    ONNXTensorElementDataType type;
    int64_t shape[CLI_RANK_MAX];
    size_t rank;
    size_t count;   /* elements */
    void *data;     /* count elements, row by row; NULL for strings */
    size_t len;     /* bytes of data */
    char **strings; /* count UTF-8 texts; NULL for everything else */
} cli_tensor;

/* What we know of an element type. */
typedef struct cli_type {
    ONNXTensorElementDataType type;
    const char *name; /* "float32" */
    const char *npy;  /* "f4": kind and bytes, without the byte order; NULL: .npy has no such type */
    size_t size;      /* bytes of one element; 0: string */
    char kind;        /* 'f' floating, 'i' signed, 'u' unsigned, 'b' boolean, 'c' complex, 's' string */
} cli_type;

/* NULL for a type we do not handle (4-bit, 8-bit floats). */
const cli_type *cli_type_find(ONNXTensorElementDataType type);
const cli_type *cli_type_find_npy(const char *descr);
/* "float32", or "element type 17". A constant, or `out`. */
const char *cli_type_name(ONNXTensorElementDataType type, char out[32]);

/* Zeroed, of that type and shape. ORTCRYPT_E_UNSUPPORTED for an unknown type, ORTCRYPT_E_LIMIT for an impossible shape. */
ortcrypt_status cli_tensor_new(cli_tensor *tensor, ONNXTensorElementDataType type, const int64_t *shape, size_t rank,
                               ortcrypt_error *err);
void cli_tensor_free(cli_tensor *tensor);

/*
 * Deterministic values from `seed` and the input's name (splitmix64): floats k / 2^n - 1 in [-1, 1), exact in their type; integers 0 to
 * 99, or 0 and 1 when `name` has "mask" or "type" in it; booleans; strings "0" to "99".
 */
ortcrypt_status cli_tensor_random(cli_tensor *tensor, uint64_t seed, const char *name, ortcrypt_error *err);

/* Element `index` as a number (the absolute value of a complex one); 0 for strings. */
double cli_tensor_number(const cli_tensor *tensor, size_t index);
bool cli_tensor_same_bytes(const cli_tensor *a, const cli_tensor *b); /* type, shape and every byte */
/* "float32[1, 3, 48, 320]" */
void cli_tensor_text(char *out, size_t out_size, const cli_tensor *tensor);
/* The same for a type and a shape in which -1 is unknown ("?") unless names[i] names it. names may be NULL. */
void cli_shape_text(char *out, size_t out_size, ONNXTensorElementDataType type, const int64_t *shape, size_t rank,
                    const char *const *names);

/*
 * .npy files, versions 1.0 to 3.0, little-endian. Fortran order is transposed while reading. Source: numpy.lib.format.
 * Read: ORTCRYPT_E_INPUT names the file and what is wrong. Write: O_EXCL in the folder `dir_fd`.
 */
ortcrypt_status cli_npy_read(cli_tensor *tensor, const char *path, ortcrypt_error *err);
ortcrypt_status cli_npy_write(const cli_tensor *tensor, int dir_fd, const char *name, ortcrypt_error *err);

/* npy.c's own pieces, for npy_read.c and npy_write.c: the header of version 1.0, and what it says. */
typedef struct cli_npy_header {
    char descr[16];
    bool fortran;
    uint64_t shape[CLI_RANK_MAX];
    size_t rank;
} cli_npy_header;
/* NULL on success, else the end of a sentence about the file. `text` is the dictionary, NUL-terminated. */
const char *cli_npy_header_parse(cli_npy_header *header, const char *text);

#endif
