/*
 * bundle/inputs_files.h: plaintext files that are to be encrypted: opened by handle, checked, read as oc_source, and known
 * again when they are read a second time.
 *
 * Call order: oc_input_look -> oc_input_open -> oc_input_source / reads -> oc_input_same -> oc_input_close.
 * Threads: an open input may be read from several threads; open, same and close belong to one.
 */
#ifndef OC_BUNDLE_INPUTS_FILES_H
#define OC_BUNDLE_INPUTS_FILES_H

#include <sys/types.h>
#include <time.h>

#include "format/onnx.h"

/* One input. `path` is borrowed and outlives it. fd is -1 while closed. */
typedef struct oc_input {
    const char *path;
    int fd;
    uint64_t size; /* bytes, as seen first */
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
} oc_input;

#define OC_INPUT(file_path) ((oc_input){.path = (file_path), .fd = -1})

/*
 * Opens (links are followed, O_NONBLOCK, so that a FIFO cannot hold us) and remembers size, place and time of the regular
 * file. `role` begins the sentences: "model", "external data file". ORTCRYPT_E_IO when the system does not
 * open it; ORTCRYPT_E_INPUT for what is no regular file or is a Git LFS pointer. Left open on success.
 */
ortcrypt_status oc_input_look(oc_input *input, const char *role, ortcrypt_error *err);

/* Opens again an input that was looked at and closed; ORTCRYPT_E_INPUT when it is another file by now. Open already: nothing. */
ortcrypt_status oc_input_open(oc_input *input, ortcrypt_error *err);

/* Compares the handle with what was seen first: ORTCRYPT_E_INPUT when it changed while it was read. */
ortcrypt_status oc_input_same(const oc_input *input, ortcrypt_error *err);

void oc_input_close(oc_input *input); /* closed already is allowed */

/* Reads of the open input; valid until close. A read past the end means that the file changed. */
oc_source oc_input_source(oc_input *input);

/*
 * Resolves "." and ".." of a relative location lexically and drops empty components: the name a data file has in a bundle.
 * *name is heap (free); NULL with ORTCRYPT_OK: absolute, empty, or outside the folder it is relative to.
 */
ortcrypt_status oc_location_normalise(char **name, const char *location, ortcrypt_error *err);

/* "<folder of path>/<name>", heap; NULL: no memory. The folder is that of the path as given, not of a link's target. */
char *oc_path_beside(const char *path, const char *name);

/* The last component of a path; "" when it ends with a slash. Points into `path`. */
const char *oc_path_last(const char *path);

#endif
