/*
 * Wycheproof's vectors for Cobblestone-256 (every one, through the whole-stream and the chunk interface) and for HKDF.
 * An `invalid` vector must be refused with nothing handed over; the chunk interface may hand over the valid prefix that the
 * vector names, then must refuse and go on refusing.
 */
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/bytes.h"
#include "crypto/hash.h"
#include "crypto/stream.h"
#include "vectors/inflate.h"

#define CT_MAX (8u * 1024u * 1024u)

static json_t *load(const char *name)
{
    json_error_t jerr;
    char *path = oc_test_format("%s/vectors/wycheproof/testvectors_v1/%s", oc_test_env("ORTCRYPT_DEPS"), name);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &jerr);
    if (root == NULL) {
        fail_msg("%s: %s (run the set-up, which fetches the vectors)", path, jerr.text);
    }
    free(path);
    return root;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    assert_non_null(value);
    return value;
}

static bool flagged(const json_t *test, const char *flag)
{
    size_t i = 0;
    json_t *value = NULL;
    json_array_foreach (json_object_get(test, "flags"), i, value) {
        if (strcmp(json_string_value(value), flag) == 0) {
            return true;
        }
    }
    return false;
}

static char *sha512_hex(const uint8_t *data, size_t len)
{
    uint8_t digest[64];
    char *hex = malloc(2 * sizeof(digest) + 1);
    assert_non_null(hex);
    assert_int_equal(EVP_Digest(len == 0 ? (const uint8_t *)"" : data, len, digest, NULL, EVP_sha512(), NULL), 1);
    oc_hex_encode(hex, digest, sizeof(digest));
    return hex;
}

struct stream_vector {
    bool valid;
    bool partial; /* the chunk interface may hand over a prefix */
    uint8_t *key;
    uint8_t *context;
    size_t context_len;
    uint8_t *sealed;
    size_t sealed_len;
    size_t plain_len;       /* of the message, or of the valid prefix */
    const char *plain_hash; /* SHA-512, hex; NULL when the vector names none */
};

static void check_message(const struct stream_vector *v, const uint8_t *data, size_t len)
{
    char *hash = sha512_hex(data, len);
    assert_int_equal(len, v->plain_len);
    assert_string_equal(hash, v->plain_hash);
    free(hash);
}

static void check_whole(const struct stream_vector *v)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf out = OC_BUF(CT_MAX);
    ortcrypt_status st = oc_stream_open_all(v->key, OC_SPAN(v->context, v->context_len),
                                            OC_SPAN(v->sealed, v->sealed_len), &out, &err);
    if (v->valid) {
        oc_test_ok(st, &err);
        check_message(v, out.data, out.len);
    } else {
        oc_test_status(st, ORTCRYPT_E_NOT_AUTHENTIC, &err);
        assert_int_equal(out.len, 0);
    }
    oc_buf_free(&out);
}

/* As a streaming reader goes: chunk after chunk, until one is short or refused. */
static ortcrypt_status open_by_chunks(const struct stream_vector *v, oc_buf *out, uint64_t *refused, ortcrypt_error *err)
{
    oc_stream *stream = NULL;
    oc_stream_lane *lane = NULL;
    if (v->sealed_len < OC_STREAM_HEADER_LEN) {
        return ORTCRYPT_E_NOT_AUTHENTIC;
    }
    ortcrypt_status st = oc_stream_open_new(&stream, v->key, OC_SPAN(v->context, v->context_len), v->sealed, err);
    if (st != ORTCRYPT_OK) {
        assert_null(stream);
        return st;
    }
    oc_test_ok(oc_stream_lane_new(&lane, stream, false, err), err);
    size_t off = OC_STREAM_HEADER_LEN;
    for (uint64_t i = 0; st == ORTCRYPT_OK; i++) {
        uint8_t *room = NULL;
        size_t len = v->sealed_len - off < OC_STREAM_SEALED_CHUNK_LEN ? v->sealed_len - off : OC_STREAM_SEALED_CHUNK_LEN;
        bool last = len < OC_STREAM_SEALED_CHUNK_LEN;
        oc_test_ok(oc_buf_reserve(out, OC_STREAM_CHUNK_LEN, &room, err), err);
        st = oc_stream_open_chunk(lane, i, last, v->sealed + off, len, room, err);
        off += len;
        if (st == ORTCRYPT_OK) {
            out->len += len - OC_STREAM_TAG_LEN;
            if (last) {
                break;
            }
        } else {
            *refused = i;
            oc_test_status(oc_stream_open_chunk(lane, i, last, v->sealed + off - len, len, room, err), st, err);
        }
    }
    oc_stream_lane_free(lane);
    oc_stream_free(stream);
    return st;
}

static void check_chunks(const struct stream_vector *v)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf out = OC_BUF(CT_MAX);
    uint64_t refused = 0;
    ortcrypt_status st = open_by_chunks(v, &out, &refused, &err);
    oc_test_status(st, v->valid ? ORTCRYPT_OK : ORTCRYPT_E_NOT_AUTHENTIC, &err);
    if (v->valid) {
        check_message(v, out.data, out.len);
    } else if (v->partial) {
        assert_true(out.len <= v->plain_len);
        assert_true(refused * OC_STREAM_CHUNK_LEN <= v->plain_len);
        check_message(v, out.data, out.len);
    } else {
        assert_int_equal(out.len, 0);
    }
    oc_buf_free(&out);
}

static void cobblestone(void **state)
{
    (void)state;
    size_t group_index = 0, index = 0, run = 0, valid = 0, wrong_key_len = 0, partial = 0;
    json_t *group = NULL, *test = NULL;
    json_t *root = load("c2sp_chunked_encryption_aes_256_gcm_test.json");
    json_array_foreach (json_object_get(root, "testGroups"), group_index, group) {
        assert_string_equal(text(group, "aead"), "AEAD_AES_256_GCM");
        assert_string_equal(text(group, "sha"), "SHA-512");
        json_array_foreach (json_object_get(group, "tests"), index, test) {
            struct stream_vector v = {.valid = strcmp(text(test, "result"), "valid") == 0,
                                      .partial = flagged(test, "PartialPlaintext"),
                                      .plain_len = (size_t)json_integer_value(json_object_get(test, "msgLength")),
                                      .plain_hash = json_string_value(json_object_get(test, "msgSha512"))};
            size_t key_len = 0, packed_len = 0;
            v.key = oc_test_unhex(text(test, "key"), &key_len);
            v.context = oc_test_unhex(text(test, "ctx"), &v.context_len);
            uint8_t *packed = oc_test_unhex(text(test, "ct"), &packed_len);
            v.sealed = oc_test_inflate(packed, packed_len, CT_MAX, &v.sealed_len);
            run++;
            valid += v.valid;
            partial += v.partial;
            if (flagged(test, "InvalidKeySize")) {
                /* the interface takes 32 bytes and nothing else, so such a key cannot be given at all */
                wrong_key_len++;
                assert_int_not_equal(key_len, OC_STREAM_KEY_LEN);
            } else {
                assert_int_equal(key_len, OC_STREAM_KEY_LEN);
                check_whole(&v);
                check_chunks(&v);
            }
            free(packed);
            free(v.sealed);
            free(v.context);
            free(v.key);
        }
    }
    assert_int_equal(run, 35);
    assert_int_equal(run, json_integer_value(json_object_get(root, "numberOfTests")));
    print_message("%zu vectors: %zu valid, %zu with a valid prefix, %zu with a key of another length\n", run, valid, partial,
                  wrong_key_len);
    json_decref(root);
}

static size_t run_hkdf(const char *name, oc_hash hash)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    size_t group_index = 0, index = 0, run = 0;
    json_t *group = NULL, *test = NULL;
    json_t *root = load(name);
    json_array_foreach (json_object_get(root, "testGroups"), group_index, group) {
        json_array_foreach (json_object_get(group, "tests"), index, test) {
            size_t ikm_len = 0, salt_len = 0, info_len = 0, okm_len = 0;
            size_t size = (size_t)json_integer_value(json_object_get(test, "size"));
            uint8_t *ikm = oc_test_unhex(text(test, "ikm"), &ikm_len);
            uint8_t *salt = oc_test_unhex(text(test, "salt"), &salt_len);
            uint8_t *info = oc_test_unhex(text(test, "info"), &info_len);
            uint8_t *okm = oc_test_unhex(text(test, "okm"), &okm_len);
            uint8_t *out = calloc(1, size + 1);
            assert_non_null(out);
            ortcrypt_status st = oc_hkdf(out, size, hash, OC_SPAN(ikm, ikm_len), OC_SPAN(salt, salt_len),
                                         OC_SPAN(info, info_len), &err);
            if (strcmp(text(test, "result"), "valid") == 0) {
                oc_test_ok(st, &err);
                assert_memory_equal(out, okm, size);
            } else {
                assert_int_not_equal(st, ORTCRYPT_OK);
            }
            run++;
            free(out);
            free(okm);
            free(info);
            free(salt);
            free(ikm);
        }
    }
    assert_int_equal(run, json_integer_value(json_object_get(root, "numberOfTests")));
    json_decref(root);
    return run;
}

static void hkdf(void **state)
{
    (void)state;
    assert_int_equal(run_hkdf("hkdf_sha256_test.json", OC_HASH_SHA256), 86);
    assert_int_equal(run_hkdf("hkdf_sha512_test.json", OC_HASH_SHA512), 83);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cobblestone), cmocka_unit_test(hkdf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
