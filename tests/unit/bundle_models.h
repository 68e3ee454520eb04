/*
 * tests/unit/bundle_models.h: small ONNX models with external data, made byte by byte, and a key pair, for the tests of encrypt,
 * decrypt and verify. Source: onnx.proto.
 */
#ifndef OC_TESTS_BUNDLE_MODELS_H
#define OC_TESTS_BUNDLE_MODELS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ortcrypt/bundle.h"
#include "support/support.h"

/* A protobuf message being written. Small models only: the room is fixed. */
typedef struct pb {
    uint8_t data[8192];
    size_t len;
} pb;

static inline void pb_varint(pb *m, uint64_t value)
{
    do {
        assert_true(m->len < sizeof m->data);
        m->data[m->len++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
}

static inline void pb_int(pb *m, unsigned field, uint64_t value)
{
    pb_varint(m, field << 3);
    pb_varint(m, value);
}

static inline void pb_bytes(pb *m, unsigned field, const void *data, size_t len)
{
    pb_varint(m, field << 3 | 2);
    pb_varint(m, len);
    assert_true(sizeof m->data - m->len >= len);
    memcpy(m->data + m->len, data, len);
    m->len += len;
}

static inline void pb_text(pb *m, unsigned field, const char *text)
{
    pb_bytes(m, field, text, strlen(text));
}

static inline void pb_message(pb *m, unsigned field, const pb *inner)
{
    pb_bytes(m, field, inner->data, inner->len);
}

/* An external uint8 tensor of `length` elements. */
typedef struct ext {
    const char *name;
    const char *location;
    uint64_t offset;
    uint64_t length;
} ext;

static inline void put_entry(pb *tensor, const char *key, const char *value)
{
    pb entry = {.len = 0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

static inline void put_external(pb *tensor, const ext *e)
{
    char number[32];
    pb_int(tensor, 1, e->length); /* dims */
    pb_int(tensor, 2, 2);         /* UINT8 */
    pb_text(tensor, 8, e->name);
    put_entry(tensor, "location", e->location);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)e->offset);
    put_entry(tensor, "offset", number);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)e->length);
    put_entry(tensor, "length", number);
    pb_int(tensor, 14, 1); /* EXTERNAL */
}

/* A model with `main_count` external initializers in the main graph and `inner_count` in the body of an If. */
static inline void make_model(pb *model, const ext *main, size_t main_count, const ext *inner, size_t inner_count)
{
    pb graph = {.len = 0};
    pb opset = {.len = 0};

    if (inner_count != 0) {
        pb body = {.len = 0};
        pb attribute = {.len = 0};
        pb node = {.len = 0};
        for (size_t i = 0; i < inner_count; i++) {
            pb tensor = {.len = 0};
            put_external(&tensor, &inner[i]);
            pb_message(&body, 5, &tensor);
        }
        pb_text(&body, 2, "body");
        pb_text(&attribute, 1, "then_branch");
        pb_int(&attribute, 20, 5); /* GRAPH */
        pb_message(&attribute, 6, &body);
        pb_text(&node, 4, "If");
        pb_message(&node, 5, &attribute);
        pb_message(&graph, 1, &node);
    }
    pb_text(&graph, 2, "g");
    for (size_t i = 0; i < main_count; i++) {
        pb tensor = {.len = 0};
        put_external(&tensor, &main[i]);
        pb_message(&graph, 5, &tensor);
    }
    model->len = 0;
    pb_int(model, 1, 9); /* ir_version */
    pb_message(model, 7, &graph);
    pb_int(&opset, 2, 17);
    pb_message(model, 8, &opset);
}

/* A folder of a test, a key pair, and what a monitor was told. */
typedef struct bench {
    char *dir;
    ortcrypt_keyring *writer; /* a recipient */
    ortcrypt_keyring *reader; /* its identity */
    char identity[ORTCRYPT_IDENTITY_SIZE];
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    char notices[4096];
    size_t notice_count;
} bench;

static inline void bench_notice(void *state, const char *sentence)
{
    bench *const b = state;
    b->notice_count++;
    (void)snprintf(b->notices + strlen(b->notices), sizeof b->notices - strlen(b->notices), "%s\n", sentence);
}

static inline int bench_setup(void **state)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    bench *const b = calloc(1, sizeof *b);

    assert_non_null(b);
    b->dir = oc_test_tmpdir();
    oc_test_ok(ortcrypt_identity_generate(b->identity, b->recipient, &err), &err);
    oc_test_ok(ortcrypt_keyring_new(&b->writer, &err), &err);
    oc_test_ok(ortcrypt_keyring_new(&b->reader, &err), &err);
    oc_test_ok(ortcrypt_keyring_add_recipient(b->writer, b->recipient, &err), &err);
    oc_test_ok(ortcrypt_keyring_add_identity(b->reader, b->identity, strlen(b->identity), &err), &err);
    *state = b;
    return 0;
}

static inline int bench_teardown(void **state)
{
    bench *const b = *state;

    oc_test_rm_rf(b->dir);
    ortcrypt_keyring_free(b->writer);
    ortcrypt_keyring_free(b->reader);
    free(b->dir);
    free(b);
    return 0;
}

/* Paths in the test's folder; a few at a time are valid. */
static inline const char *at(const bench *b, const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *const path = paths[next++ % 8];

    (void)snprintf(path, sizeof paths[0], "%s/%s", b->dir, name);
    return path;
}

static inline bool there(const bench *b, const char *name)
{
    struct stat st;
    return lstat(at(b, name), &st) == 0;
}

/* `len` bytes of a fixed sequence in a file. */
static inline void put_file(const bench *b, const char *name, size_t len, uint64_t seed)
{
    uint8_t *const data = malloc(len + 1);
    assert_non_null(data);
    oc_test_fill(data, len, seed);
    oc_test_write_file(at(b, name), data, len);
    free(data);
}

static inline void put_model(const bench *b, const char *name, const ext *main, size_t main_count, const ext *inner,
                             size_t inner_count)
{
    pb model;
    make_model(&model, main, main_count, inner, inner_count);
    oc_test_write_file(at(b, name), model.data, model.len);
}

static inline void same_files(const bench *b, const char *one, const char *other)
{
    size_t one_len = 0;
    size_t other_len = 0;
    uint8_t *const x = oc_test_read_file(at(b, one), &one_len);
    uint8_t *const y = oc_test_read_file(at(b, other), &other_len);

    assert_int_equal(one_len, other_len);
    assert_memory_equal(x, y, one_len);
    free(x);
    free(y);
}

/* Names in the test's folder that begin with `prefix`. */
static inline size_t count_names(const bench *b, const char *prefix)
{
    DIR *const folder = opendir(b->dir);
    size_t count = 0;

    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    closedir(folder);
    return count;
}

static inline ortcrypt_bundle *open_bundle(const bench *b, const char *name)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *bundle = NULL;

    oc_test_ok(ortcrypt_bundle_open(&bundle, at(b, name), b->reader, NULL, &err), &err);
    return bundle;
}

static inline void close_bundle(ortcrypt_bundle *bundle)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    oc_test_ok(ortcrypt_bundle_close(bundle, &err), &err);
}

#endif
