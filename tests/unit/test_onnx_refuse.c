/* The ONNX scanner: every model that readers could understand differently, and files that are no model. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/onnx_build.h"

/* Tensors that are refused: each is the good external tensor with one thing changed. */
static const struct bad_tensor {
    const char *says;
    const char *location, *offset, *length, *key; /* NULL: left out */
    unsigned extra_field;
    uint64_t extra_value;
} bad_tensors[] = {
    {"no location", NULL, "8", "24", NULL, 0, 0},
    {"no location", "", "8", "24", NULL, 0, 0},
    {"memory address", "*/_ORT_MEM_ADDR_/*", "8", "24", NULL, 0, 0},
    {"memory address", "*/_ORT_NATIVE_ENDIAN_MEM_ADDR_/*", "8", "24", NULL, 0, 0},
    {"not UTF-8", "a\xff", "8", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "-8", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "+8", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", " 8", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "8 ", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "0x8", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "9223372036854775808", "24", NULL, 0, 0},
    {"offset that is no decimal", "w.bin", "18446744073709551616", "24", NULL, 0, 0},
    {"beyond any file's end", "w.bin", "9223372036854775807", "24", NULL, 0, 0},
    {"length that is no decimal", "w.bin", "8", "24.0", NULL, 0, 0},
    {"length that its type and shape do not give", "w.bin", "8", "23", NULL, 0, 0},
    {"length that its type and shape do not give", "w.bin", "8", "25", NULL, 0, 0},
    {"none of location, offset, length and checksum", "w.bin", "8", "24", "prepacked_0", 0, 0},
    {"none of location, offset, length and checksum", "w.bin", "8", "24", "basepath", 0, 0},
    {"two external_data entries \"location\"", "w.bin", "8", "24", "location", 0, 0},
    {"two external_data entries \"offset\"", "w.bin", "8", "24", "offset", 0, 0},
    {"two external_data entries \"length\"", "w.bin", "8", "24", "length", 0, 0},
    {"two fields data_location", "w.bin", "8", "24", NULL, 14, 0},
    {"two fields data_location", "w.bin", "8", "24", NULL, 14, 1},
    {"two fields data_type", "w.bin", "8", "24", NULL, 2, 1},
    {"negative dimension", "w.bin", "8", "24", NULL, 1, UINT64_MAX},
};

static void one_vector_per_bad_tensor(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_tensors / sizeof bad_tensors[0]; i++) {
        const struct bad_tensor *const b = &bad_tensors[i];
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *found = NULL;
        pb t = {.len = 0};
        pb_number(&t, 1, 2);
        pb_number(&t, 1, 3);
        pb_number(&t, 2, 1);
        pb_text(&t, 8, "w");
        if (b->location != NULL) {
            pb_entry(&t, "location", b->location);
        }
        pb_entry(&t, "offset", b->offset);
        pb_entry(&t, "length", b->length);
        pb_number(&t, 14, 1);
        if (b->key != NULL) {
            pb_entry(&t, b->key, "1");
        }
        if (b->extra_field != 0) {
            pb_number(&t, b->extra_field, b->extra_value);
        }
        const pb m = pb_model_of(&t);
        const ortcrypt_status st = pb_scan(&m, &found, &err);
        if (st != ORTCRYPT_E_INPUT || found != NULL || strstr(err.message, b->says) == NULL ||
            strstr(err.message, "m.onnx") == NULL) {
            fail_msg("vector %zu: status %d, \"%s\" instead of \"%s\"", i, (int)st, err.message, b->says);
        }
    }
}

static void refused(const pb *m, const char *says)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;
    const ortcrypt_status st = pb_scan(m, &found, &err);

    if (st != ORTCRYPT_E_INPUT || found != NULL || strstr(err.message, says) == NULL) {
        fail_msg("status %d, \"%s\" instead of \"%s\"", (int)st, err.message, says);
    }
}

static void refuses_odd_tensors(void **state)
{
    (void)state;
    static const uint64_t locations[] = {2, UINT64_C(0x100000001), UINT64_MAX}; /* the second is 1 for parsers that cut it off */
    static const int dtypes[] = {0, 8, 99};
    pb t;
    pb m;

    for (int i = 0; i < 3; i++) {
        t = (pb){.len = 0};
        pb_number(&t, 14, locations[i]);
        m = pb_model_of(&t);
        refused(&m, "neither DEFAULT nor EXTERNAL");
        t = (pb){.len = 0};
        pb_text(&t, 8, "w");
        pb_number(&t, 2, (uint64_t)dtypes[i]);
        pb_entry(&t, "location", "w");
        pb_number(&t, 14, 1);
        m = pb_model_of(&t);
        refused(&m, "without a fixed size");
    }
    t = pb_external("", "w.bin");
    m = pb_model_of(&t);
    refused(&m, "has no name");
    t = pb_external("a\xff", "w.bin");
    m = pb_model_of(&t);
    refused(&m, "not UTF-8");
    t = pb_external("w", "w.bin");
    pb_bytes(&t, 9, "1", 1);
    m = pb_model_of(&t);
    refused(&m, "embedded data too");
    t = pb_external("w", "w.bin");
    pb_bytes(&t, 4, "1234", 4);
    m = pb_model_of(&t);
    refused(&m, "embedded data too");
    t = (pb){.len = 0};
    for (int i = 0; i < 65; i++) {
        pb_number(&t, 1, 1);
    }
    m = pb_model_of(&t);
    refused(&m, "more than 64 dimensions");
    t = pb_external("w", "w.bin");
    pb_bytes(&t, 13, "", 0);
    m = pb_model_of(&t);
    refused(&m, "no key or no value");
    t = pb_external("w", "w.bin");
    pb entry = {.len = 0};
    pb_text(&entry, 1, "checksum");
    pb_text(&entry, 1, "location");
    pb_text(&entry, 2, "other");
    pb_message(&t, 13, &entry);
    m = pb_model_of(&t);
    refused(&m, "two fields key");
}

static void refuses_what_parsers_merge(void **state)
{
    (void)state;
    const pb t = pb_external("w", "w.bin");
    const pb good = pb_model_of(&t);
    pb empty = {.len = 0}, attribute = {.len = 0}, node = {.len = 0}, g = {.len = 0};
    pb m = good;

    pb_message(&m, 7, &empty);
    refused(&m, "two fields graph");
    m = good;
    pb_number(&m, 7, 1);
    refused(&m, "graph of a ModelProto has the wrong wire type");
    m = good;
    pb_varint(&m, 30 << 3 | 3);
    refused(&m, "group");
    m = good;
    pb_varint(&m, 30 << 3 | 4);
    refused(&m, "group");
    m = good;
    pb_raw(&m, "\0\0", 2);
    refused(&m, "no protobuf fields");
    m = good;
    pb_raw(&m, "\xba\x00\x00", 3); /* field 7 in two bytes */
    refused(&m, "no protobuf fields");
    m = good;
    pb_raw(&m, "\xba\x80\x80\x80\x80\x00\x00", 7); /* a tag of six bytes */
    refused(&m, "too long");
    m = good;
    pb_raw(&m, "\xf2\x01\x80\x80\x80\x80\x80\x00", 8); /* a length of six bytes */
    refused(&m, "too long");
    m = good;
    pb_raw(&m, "\xf2\x01\xff\xff\xff\xff\x0f", 7); /* a length of 2^32 - 1 */
    refused(&m, "longer than what holds it");
    m = good;
    pb_raw(&m, "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11); /* a number above 64 bits */
    refused(&m, "too long");

    static const unsigned once[] = {5, 6, 22, 1};
    for (int i = 0; i < 4; i++) {
        attribute.len = node.len = g.len = 0;
        pb_message(&attribute, once[i], &empty);
        pb_message(&attribute, once[i], &empty);
        pb_message(&node, 5, &attribute);
        pb_message(&g, 1, &node);
        m = pb_model(&g);
        refused(&m, "two fields");
    }
}

static void refuses_deep_nesting(void **state)
{
    (void)state;
    pb g = {.len = 0};

    for (int i = 0; i < 200; i++) {
        pb attribute = {.len = 0}, node = {.len = 0}, up = {.len = 0};
        pb_message(&attribute, 6, &g);
        pb_message(&node, 5, &attribute);
        pb_message(&up, 1, &node);
        g = up;
    }
    const pb m = pb_model(&g);
    refused(&m, "nested deeper than 64");
}

/* ORT can be told by the environment to take session options from there. */
static void own_session_options(void **state)
{
    (void)state;
    static const char *const keys[] = {"ort_config", "ort_confiG"};

    for (size_t i = 0; i < 2; i++) {
        pb g = {.len = 0};
        pb entry = {.len = 0};
        pb_text(&entry, 1, keys[i]);
        pb_text(&entry, 2, "{\"session_options\":{\"enable_profiling\":1}}");
        pb m = pb_model(&g);
        pb_message(&m, 14, &entry);
        if (i == 0) {
            refused(&m, "session options of its own");
        } else {
            ortcrypt_error err = ORTCRYPT_ERROR_INIT;
            oc_onnx_model *found = NULL;
            oc_test_ok(pb_scan(&m, &found, &err), &err);
            oc_onnx_model_free(found);
        }
    }
}

static void says_what_it_is_instead(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *says;
    } cases[] = {
        {"", 0, "it is empty"},
        {"\x1f\x8b\x08\0\0\0\0\0\0\x03", 10, "gzip"},
        {"PK\x03\x04rest of it", 14, "zip"},
        {"\x28\xb5\x2f\xfd\x04\x58", 6, "Zstandard"},
        {"\x20\0\0\0ORTM\x08\x08\x3a\0", 12, ".ort"},
        {"\x1c\0\0\0TFL3", 8, "TensorFlow Lite"},
        {"GGUF\x03\0\0\0", 8, "GGUF"},
        {"\x89HDF\r\n\x1a\n", 8, "HDF5"},
        {"\x40\0\0\0\0\0\0\0{\"w\":", 13, "safetensors"},
        {"{\"ir_version\": 8}", 17, "JSON"},
        {"\n\t[1]", 5, "JSON"},
        {"\xef\xbb\xbf<!DOCTYPE html>", 18, "HTML"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:", 54, "Git LFS pointer"},
        {"hello\n", 6, "text file"},
        {"age-encryption.org/v1\n", 22, "age file"},
        {"\x7f" "ELF\2", 5, "ELF"},
        {"\x08\x08", 2, "no graph"},
        {"\x3a\0", 2, "no ir_version"},
        {"\x08\0\x3a\0", 4, "no ir_version"},
        {"\xff\xff\xff\xff", 4, "no usable ONNX model"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pb m = {.len = 0};
        pb_raw(&m, cases[i].bytes, cases[i].len);
        refused(&m, cases[i].says);
    }
    /* a whole model behind ORT's mark is still ORT's own format: ORT looks at the mark first */
    pb g = {.len = 0};
    pb m = {.len = 0};
    pb_raw(&m, "\x08\x08\x12\x05ORTMx\x3a\0", 11); /* ir_version 8, producer_name "ORTMx", graph */
    refused(&m, ".ort");
    m = pb_model(&g);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_model *found = NULL;
    oc_test_ok(pb_scan(&m, &found, &err), &err);
    oc_onnx_model_free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_vector_per_bad_tensor), cmocka_unit_test(refuses_odd_tensors),
        cmocka_unit_test(refuses_what_parsers_merge), cmocka_unit_test(refuses_deep_nesting),
        cmocka_unit_test(own_session_options), cmocka_unit_test(says_what_it_is_instead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
