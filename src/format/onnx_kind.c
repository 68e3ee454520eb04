/* format/onnx_kind.c: telling what a file is that was given for an ONNX model. */
#include <string.h>

#include "format/onnx_scan.h"

#define HEAD_LEN 512 /* bytes looked at; a Git LFS pointer is shorter */

static bool starts(const uint8_t *head, size_t len, size_t at, const char *mark, size_t mark_len)
{
    return len >= at && len - at >= mark_len && memcmp(head + at, mark, mark_len) == 0;
}

static bool is_text(const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (head[i] < 0x20 && head[i] != '\t' && head[i] != '\n' && head[i] != '\r') {
            return false;
        }
    }
    for (size_t cut = 0; cut < 4 && cut <= len; cut++) { /* the last character may go on behind the head */
        if (oc_utf8_valid((const char *)head, len - cut)) {
            return true;
        }
    }
    return false;
}

/* Text files: NULL when `head` is none. */
static const char *text_kind(const uint8_t *head, size_t len)
{
    const size_t bom = starts(head, len, 0, "\xef\xbb\xbf", 3) ? 3 : 0;
    size_t i = bom;

    if (!is_text(head, len)) {
        return NULL;
    }
    while (i < len && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n')) {
        i++;
    }
    if (i == len) {
        return "a text file";
    }
    if (head[i] == '{' || head[i] == '[') {
        return "a JSON file";
    }
    if (head[i] == '<') {
        return "an HTML or XML page";
    }
    return "a text file";
}

static const char *binary_kind(const uint8_t *head, size_t len)
{
    static const struct {
        size_t at;
        const char *mark;
        size_t len;
        const char *kind;
    } marks[] = {
        {0, "\x1f\x8b", 2, "a gzip file"},
        {0, "PK\x03\x04", 4, "a zip archive"},
        {0, "\x28\xb5\x2f\xfd", 4, "a Zstandard file"},
        {4, "ORTM", 4, "an .ort model (ONNX Runtime's own format)"},
        {4, "TFL3", 4, "a TensorFlow Lite model"},
        {0, "GGUF", 4, "a GGUF model"},
        {0, "\x89HDF", 4, "an HDF5 file"},
        {8, "{\"", 2, "a safetensors file"},
        {0, "age-encryption.org/", 19, "an age file"},
        {0, "\x7f" "ELF", 4, "an ELF program or library"},
    };

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (starts(head, len, marks[i].at, marks[i].mark, marks[i].len)) {
            return marks[i].kind;
        }
    }
    return NULL;
}

ortcrypt_status oc_onnx_refuse_kind(const oc_source *source, const char *what, ortcrypt_error *err)
{
    uint8_t head[HEAD_LEN];
    const size_t len = source->size < HEAD_LEN ? (size_t)source->size : HEAD_LEN;
    const char *kind = NULL;

    if (len == 0) {
        return oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX model: it is empty", what);
    }
    ortcrypt_status st = source->read(source->state, 0, head, len, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (starts(head, len, 0, "version https://git-lfs", 23)) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX model: it is a Git LFS pointer", what);
        oc_hint(err, "fetch the file itself with `git lfs pull`");
    } else if ((kind = binary_kind(head, len)) != NULL || (kind = text_kind(head, len)) != NULL) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX model: it is %s", what, kind);
    }
    oc_wipe(head, sizeof head);
    return st;
}

ortcrypt_status oc_onnx_refuse_ort_format(const oc_source *source, const char *what, ortcrypt_error *err)
{
    uint8_t head[8];

    if (source->size < sizeof head) {
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = source->read(source->state, 0, head, sizeof head, err);
    if (st == ORTCRYPT_OK && memcmp(head + 4, "ORTM", 4) == 0) {
        st = oc_onnx_refuse_kind(source, what, err);
    }
    return st;
}
