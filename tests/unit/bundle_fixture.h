/*
 * tests/unit/bundle_fixture.h: a scratch folder, a keyring that can write and open, and bundles with known content.
 * Call order: fixture_start (cmocka setup) -> make / open / reads -> fixture_end (teardown).
 */
#ifndef OC_TESTS_BUNDLE_FIXTURE_H
#define OC_TESTS_BUNDLE_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"

#include "bundle/internal.h"

typedef struct fixture {
    char *folder;
    char *path; /* a bundle's, in the folder; nothing is there at first */
    ortcrypt_keyring *keyring;
    char identity[ORTCRYPT_IDENTITY_SIZE]; /* of the keyring */
    ortcrypt_error err;
} fixture;

static inline int fixture_start(void **state)
{
    fixture *const f = calloc(1, sizeof *f);
    char recipient[ORTCRYPT_RECIPIENT_SIZE];
    assert_non_null(f);
    f->folder = oc_test_tmpdir();
    f->path = oc_test_format("%s/model.ortc", f->folder);
    oc_test_ok(ortcrypt_identity_generate(f->identity, recipient, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_new(&f->keyring, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_add_recipient(f->keyring, recipient, &f->err), &f->err);
    oc_test_ok(ortcrypt_keyring_add_identity(f->keyring, f->identity, strlen(f->identity), &f->err), &f->err);
    *state = f;
    return 0;
}

static inline int fixture_end(void **state)
{
    fixture *const f = *state;
    ortcrypt_keyring_free(f->keyring);
    oc_test_rm_rf(f->folder);
    free(f->path);
    free(f->folder);
    free(f);
    return 0;
}

/* `len` bytes that the size and seed alone determine. */
static inline uint8_t *fixture_bytes(size_t len, uint64_t seed)
{
    uint8_t *const data = malloc(len + 1);
    assert_non_null(data);
    oc_test_fill(data, len, seed);
    return data;
}

/* A part named `name` of the extra role with fixture_bytes(len, seed), in `variant`. */
static inline void fixture_put(fixture *f, oc_txn *txn, oc_variant *variant, const char *name, size_t len, uint64_t seed)
{
    uint8_t id[OC_ASSET_ID_LEN];
    uint8_t *const data = fixture_bytes(len, seed);
    oc_test_ok(oc_txn_put(txn, OC_SPAN(data, len), id, &f->err), &f->err);
    oc_test_ok(oc_variant_add_part(variant, strcmp(name, "") == 0 ? OC_ROLE_MODEL : OC_ROLE_EXTRA, name, id, &f->err), &f->err);
    free(data);
}

static inline oc_variant *fixture_variant(fixture *f, oc_txn *txn, const char *id, const char *kind)
{
    oc_variant *variant = NULL;
    oc_test_ok(oc_manifest_add_variant(oc_txn_manifest(txn), id, kind, &variant, &f->err), &f->err);
    return variant;
}

/* A bundle at f->path: source variant, model of 100 bytes (seed 1), extra "data" of `len` bytes (seed 2). */
static inline void fixture_make(fixture *f, size_t len)
{
    oc_txn *txn = NULL;
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    oc_variant *const variant = fixture_variant(f, txn, "source", "source");
    fixture_put(f, txn, variant, "", 100, 1);
    fixture_put(f, txn, variant, "data", len, 2);
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
}

static inline ortcrypt_bundle *fixture_open(fixture *f, const ortcrypt_open_options *options)
{
    ortcrypt_bundle *bundle = NULL;
    oc_test_ok(ortcrypt_bundle_open(&bundle, f->path, f->keyring, options, &f->err), &f->err);
    assert_non_null(bundle);
    return bundle;
}

static inline void fixture_close(fixture *f, ortcrypt_bundle *bundle)
{
    oc_test_ok(ortcrypt_bundle_close(bundle, &f->err), &f->err);
}

static inline const oc_asset *fixture_asset(const ortcrypt_bundle *bundle, const char *variant, oc_role role, const char *name)
{
    const oc_variant *const v = oc_manifest_find_variant(oc_bundle_manifest(bundle), variant);
    assert_non_null(v);
    const oc_part *const part = oc_variant_find_part(v, role, name);
    assert_non_null(part);
    const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(bundle), part->asset);
    assert_non_null(asset);
    return asset;
}

/* Path of an asset's object file. */
static inline char *fixture_object(const fixture *f, const oc_asset *asset)
{
    char name[OC_OBJECT_PATH_SIZE];
    oc_object_path(name, asset->object);
    return oc_test_format("%s/%s", f->path, name);
}

/* Regular files and links below `path`, counted. */
static inline size_t fixture_count_files(const char *path)
{
    size_t count = 0;
    DIR *const dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            struct stat info;
            char *const below = oc_test_format("%s/%s", path, e->d_name);
            assert_int_equal(lstat(below, &info), 0);
            count += S_ISDIR(info.st_mode) ? fixture_count_files(below) : 1;
            free(below);
        }
    }
    closedir(dir);
    return count;
}

static inline size_t fixture_count_below(const fixture *f, const char *name)
{
    char *const path = oc_test_format("%s/%s", f->path, name);
    const size_t count = fixture_count_files(path);
    free(path);
    return count;
}

#endif
