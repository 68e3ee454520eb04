/*
 * A bundle and a cache beside it: what the tests of just-in-time compilation have in common. place_open -> run_from -> place_close.
 */
#ifndef TEST_FLOW_CACHE_BED_H
#define TEST_FLOW_CACHE_BED_H

#include "test_flow_bed.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bundle/internal.h"
#include "bundle/local.h"

static char notices[8192];

RIG_UNUSED static void keep_notice(void *state, const char *sentence)
{
    const size_t len = strlen(notices);

    (void)state;
    (void)snprintf(notices + len, sizeof(notices) - len, "%s\n", sentence);
}

static const ortcrypt_monitor monitor = {keep_notice, NULL, NULL};
static const rig_model small = {.external = true};
RIG_UNUSED static const uint8_t key_a[OC_MACHINE_KEY_LEN] = {1};
RIG_UNUSED static const uint8_t key_b[OC_MACHINE_KEY_LEN] = {2};

typedef struct place {
    bed b;
    char *cache;
    ortcrypt_session_options run;
} place;

RIG_UNUSED static void place_open(place *p, const char *version)
{
    bed_open(&p->b, version, &small);
    p->cache = oc_test_format("%s/cache/deep", p->b.dir);
    p->run = (ortcrypt_session_options){.struct_size = sizeof(p->run),
                                        .ep = EP,
                                        .ep_library = p->b.library,
                                        .monitor = &monitor,
                                        .cache = p->cache,
                                        .machine_key = key_a,
                                        .machine_key_len = sizeof(key_a)};
    notices[0] = '\0';
}

RIG_UNUSED static void place_close(place *p)
{
    bed_close(&p->b);
    free(p->cache);
}

/* The entry of the bundle's state as it is now. */
RIG_UNUSED static char *entry_of(const place *p)
{
    ortcrypt_bundle_info info;
    ortcrypt_bundle *const bundle = bed_bundle(&p->b);

    ortcrypt_bundle_get_info(bundle, &info);
    close_bundle(bundle);
    return oc_test_format("%s/%s/%s", p->cache, info.bundle_id, info.manifest_id);
}

/* Runs, compares with the plaintext model, and says where the variant came from. */
RIG_UNUSED static void run_from(const place *p, const char *from, const char *kind)
{
    char *plan = NULL;
    char *const wanted = oc_test_format("\"kind\":\"%s\",\"from\":\"%s\"", kind, from);
    float *const plain = rig_plain(p->b.runtime, p->b.model, NULL);
    float *const y = bed_run(&p->b, &p->run, &plan);

    rig_assert_close(y, plain, 2 * MODEL_OUT, from);
    if (strstr(plan, wanted) == NULL) {
        fail_msg("not %s: %s\n%s", wanted, plan, notices);
    }
    ortcrypt_free(plan, 0);
    free(wanted);
    free(plain);
    free(y);
}

RIG_UNUSED static void run_cached(const place *p) { run_from(p, "cache", "compiled"); }

RIG_UNUSED static size_t count_names(const char *folder, size_t len)
{
    DIR *const dir = opendir(folder);
    const struct dirent *found;
    size_t count = 0;

    while (dir != NULL && (found = readdir(dir)) != NULL) {
        count += strlen(found->d_name) == len ? 1 : 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Of the entry: how many variants, and how often it was written to. */
RIG_UNUSED static void assert_entry(const place *p, const uint8_t *key, size_t variants, uint64_t sequence)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    ortcrypt_bundle *const origin = bed_bundle(&p->b);
    ortcrypt_bundle *local = NULL;
    char *const path = entry_of(p);

    assert_ok(oc_local_open(&local, path, origin, key, &err), &err);
    assert_int_equal(oc_bundle_manifest(local)->variant_count, variants);
    assert_int_equal(oc_bundle_manifest(local)->sequence, sequence);
    close_bundle(local);
    close_bundle(origin);
    free(path);
}

RIG_UNUSED static char *first_object(const char *entry)
{
    char *const folder = oc_test_format("%s/objects", entry);
    DIR *const dir = opendir(folder);
    const struct dirent *found;
    char *path = NULL;
    off_t largest = -1;

    assert_non_null(dir);
    while ((found = readdir(dir)) != NULL) {
        char *const below = oc_test_format("%s/%s", folder, found->d_name);
        DIR *const inner = strlen(found->d_name) == 2 && found->d_name[0] != '.' ? opendir(below) : NULL;
        const struct dirent *object;
        while (inner != NULL && (object = readdir(inner)) != NULL) {
            struct stat info;
            char *const one = oc_test_format("%s/%s", below, object->d_name);
            if (strlen(object->d_name) == 64 && stat(one, &info) == 0 && info.st_size > largest) {
                free(path);
                path = strdup(one);
                largest = info.st_size;
            }
            free(one);
        }
        if (inner != NULL) {
            (void)closedir(inner);
        }
        free(below);
    }
    (void)closedir(dir);
    free(folder);
    assert_non_null(path);
    return path;
}

RIG_UNUSED static void next_state(const place *p)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_txn *txn = NULL;

    assert_ok(oc_txn_begin(&txn, p->b.bundle, NULL, p->b.keyring, NULL, &err), &err);
    assert_ok(oc_txn_commit(txn, NULL, &err), &err);
    oc_txn_end(txn);
}

#endif
