/*
 * CCTV's age vectors: 124 with native types, armored ones included, each with the outcome the vector names; 19 with hybrid
 * (post-quantum) keys, which are refused as another type, by exit code 5.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "crypto/age.h"
#include "crypto/hash.h"
#include "vectors/inflate.h"

#define FILE_MAX (64u * 1024u * 1024u)
#define KEYS_MAX 4

struct vector {
    char expect[32];
    char payload[65]; /* SHA-256, hex; "" when none is named */
    uint8_t identities[KEYS_MAX][OC_AGE_KEY_LEN];
    size_t identity_count;
    size_t foreign_count; /* identities of a type that is not native */
    char passphrases[KEYS_MAX][64];
    size_t passphrase_count;
    bool armored;
    bool compressed;
    uint8_t *file;
    size_t file_len;
};

static void take_field(struct vector *v, const char *name, const char *value, const char *path)
{
    if (strcmp(name, "expect") == 0) {
        snprintf(v->expect, sizeof(v->expect), "%s", value);
    } else if (strcmp(name, "payload") == 0) {
        snprintf(v->payload, sizeof(v->payload), "%s", value);
    } else if (strcmp(name, "identity") == 0) {
        assert_true(v->identity_count < KEYS_MAX);
        if (oc_age_identity_parse(v->identities[v->identity_count], value, strlen(value))) {
            v->identity_count++;
        } else {
            assert_true(oc_age_identity_foreign(value, strlen(value)));
            v->foreign_count++;
        }
    } else if (strcmp(name, "passphrase") == 0) {
        assert_true(v->passphrase_count < KEYS_MAX);
        snprintf(v->passphrases[v->passphrase_count++], sizeof(v->passphrases[0]), "%s", value);
    } else if (strcmp(name, "armored") == 0) {
        assert_string_equal(value, "yes");
        v->armored = true;
    } else if (strcmp(name, "compressed") == 0) {
        assert_string_equal(value, "zlib");
        v->compressed = true;
    } else if (strcmp(name, "file key") != 0 && strcmp(name, "comment") != 0) {
        fail_msg("%s has an unknown field: %s", path, name);
    }
}

static void load(struct vector *v, const char *path)
{
    size_t len = 0;
    uint8_t *data = oc_test_read_file(path, &len);
    char *line = (char *)data;
    memset(v, 0, sizeof(*v));
    while (*line != '\n') {
        char *end = strchr(line, '\n');
        char *colon = strstr(line, ": ");
        assert_non_null(end);
        assert_true(colon != NULL && colon < end);
        *end = '\0';
        *colon = '\0';
        take_field(v, line, colon + 2, path);
        line = end + 1;
    }
    size_t rest = len - (size_t)((uint8_t *)line + 1 - data);
    if (v->compressed) {
        v->file = oc_test_inflate((uint8_t *)line + 1, rest, FILE_MAX, &v->file_len);
    } else {
        v->file = malloc(rest + 1);
        assert_non_null(v->file);
        memcpy(v->file, line + 1, rest);
        v->file_len = rest;
    }
    free(data);
}

static ortcrypt_status open_vector(const struct vector *v, oc_secret *payload, ortcrypt_error *err)
{
    oc_age_keys keys = {.identities = v->identities,
                        .identity_count = v->identity_count,
                        .passphrase = OC_SPAN(v->passphrases[0], strlen(v->passphrases[0])),
                        .file_max = FILE_MAX};
    return oc_age_open(&keys, OC_SPAN(v->file, v->file_len), payload, err);
}

/* The status for the outcome that the vector names. */
static ortcrypt_status expected(const struct vector *v, const char *name)
{
    if (strncmp(name, "scrypt_work_factor_", 19) == 0 && (strcmp(name + 19, "23") == 0 || strcmp(name + 19, "overflow") == 0)) {
        return ORTCRYPT_E_LIMIT; /* a number in order, but above what is tried */
    }
    static const struct {
        const char *outcome;
        ortcrypt_status status;
    } outcomes[] = {
        {"success", ORTCRYPT_OK},
        {"no match", ORTCRYPT_E_NO_KEY},
        {"HMAC failure", ORTCRYPT_E_NOT_AUTHENTIC},
        {"payload failure", ORTCRYPT_E_NOT_AUTHENTIC},
        {"header failure", ORTCRYPT_E_FORMAT},
        {"armor failure", ORTCRYPT_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        if (strcmp(outcomes[i].outcome, v->expect) == 0) {
            return outcomes[i].status;
        }
    }
    fail_msg("unknown outcome: %s", v->expect);
    return ORTCRYPT_OK;
}

/* HMAC and payload failures share a status; the sentence tells them apart. */
static void check_sentence(const struct vector *v, const ortcrypt_error *err)
{
    if (strcmp(v->expect, "HMAC failure") == 0) {
        assert_non_null(strstr(err->message, "header was altered"));
    } else if (strcmp(v->expect, "payload failure") == 0) {
        assert_non_null(strstr(err->message, "payload was"));
    } else if (strcmp(v->expect, "armor failure") == 0) {
        assert_true(strstr(err->message, "armor is malformed") != NULL || strstr(err->message, "not an age file") != NULL);
    }
}

static void check_payload(const struct vector *v, const oc_secret *payload)
{
    uint8_t hash[OC_SHA256_LEN];
    char hex[2 * OC_SHA256_LEN + 1];
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_test_ok(oc_sha256(hash, OC_SPAN(payload->data, payload->len), &err), &err);
    oc_hex_encode(hex, hash, sizeof(hash));
    assert_string_equal(hex, v->payload);
}

static void run_native(const struct vector *v, const char *name)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_secret payload;
    ortcrypt_status st = open_vector(v, &payload, &err);
    ortcrypt_status want = expected(v, name);
    if (st != want) {
        print_error("%s: \"%s\" is expected\n", name, v->expect);
    }
    oc_test_status(st, want, &err);
    if (st == ORTCRYPT_OK) {
        check_payload(v, &payload);
    } else {
        assert_null(payload.data);
        check_sentence(v, &err);
    }
    oc_secret_free(&payload);
}

/* The identity is refused first. Where native keys are tried all the same, the file must not open. */
static void run_hybrid(const struct vector *v, const char *name)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_secret payload;
    assert_int_equal(ortcrypt_status_exit_code(ORTCRYPT_E_UNSUPPORTED), 5);
    assert_int_not_equal(v->foreign_count, 0);
    ortcrypt_status st = open_vector(v, &payload, &err);
    assert_null(payload.data);
    if (strcmp(name, "hybrid_and_x25519") == 0) {
        oc_test_status(st, ORTCRYPT_E_NO_KEY, &err); /* its other stanza is native, and the identity given is not */
    } else if (strcmp(v->expect, "header failure") == 0 && st == ORTCRYPT_E_FORMAT) {
        assert_int_equal(ortcrypt_status_exit_code(st), 5);
    } else {
        oc_test_status(st, ORTCRYPT_E_UNSUPPORTED, &err);
    }
}

static void cctv(void **state)
{
    (void)state;
    char *folder = oc_test_format("%s/vectors/cctv-age/testdata", oc_test_env("ORTCRYPT_DEPS"));
    struct dirent **names = NULL;
    size_t native = 0, hybrid = 0, armored = 0, success = 0;
    int count = scandir(folder, &names, NULL, alphasort);
    if (count < 0) {
        fail_msg("%s is not there: run the set-up, which fetches the vectors", folder);
    }
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') {
            struct vector v;
            char *path = oc_test_format("%s/%s", folder, names[i]->d_name);
            load(&v, path);
            if (strncmp(names[i]->d_name, "hybrid", 6) == 0 || strcmp(names[i]->d_name, "armor_hybrid") == 0) {
                run_hybrid(&v, names[i]->d_name);
                hybrid++;
            } else {
                run_native(&v, names[i]->d_name);
                native++;
                armored += v.armored;
                success += strcmp(v.expect, "success") == 0;
            }
            free(v.file);
            free(path);
        }
        free(names[i]);
    }
    free(names);
    free(folder);
    assert_int_equal(native, 124);
    assert_int_equal(hybrid, 19);
    print_message("%zu native vectors (%zu of them open, %zu armored), %zu hybrid ones refused\n", native, success, armored,
                  hybrid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cctv)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
