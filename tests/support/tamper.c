#include "support/tamper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_MAX 256
#define PATH_LEN 1024

enum file_class { CLASS_OBJECT, CLASS_MANIFEST, CLASS_KEY, CLASS_FORMAT };

struct file_list {
    char path[FILE_MAX][PATH_LEN];
    enum file_class class[FILE_MAX];
    size_t count;
};

static void add_file(struct file_list *list, const char *folder, const char *name, enum file_class class)
{
    assert_true(list->count < FILE_MAX);
    const int n = snprintf(list->path[list->count], PATH_LEN, "%s/%s", folder, name);
    assert_true(n > 0 && n < PATH_LEN);
    list->class[list->count++] = class;
}

static void add_folder(struct file_list *list, const char *folder, enum file_class class)
{
    DIR *const dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (e->d_name[0] == '.') {
            continue;
        }
        char path[PATH_LEN];
        struct stat st;
        assert_true(snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path);
        assert_int_equal(lstat(path, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            add_folder(list, path, class);
        } else {
            add_file(list, folder, e->d_name, class);
        }
    }
    closedir(dir);
}

/* Every file whose bytes matter: `lock` is empty and only locked, tmp/ is emptied by writers and never read. */
static struct file_list *list_files(const char *bundle)
{
    struct file_list *const list = calloc(1, sizeof *list);
    char folder[PATH_LEN];
    assert_non_null(list);
    add_file(list, bundle, "FORMAT", CLASS_FORMAT);
    add_file(list, bundle, "manifest", CLASS_MANIFEST);
    assert_true(snprintf(folder, sizeof folder, "%s/keys", bundle) < (int)sizeof folder);
    add_folder(list, folder, CLASS_KEY);
    assert_true(snprintf(folder, sizeof folder, "%s/objects", bundle) < (int)sizeof folder);
    add_folder(list, folder, CLASS_OBJECT);
    assert_true(list->count > 3);
    return list;
}

static bool allowed(enum file_class class, int exit_code)
{
    switch (class) {
    case CLASS_OBJECT:
    case CLASS_MANIFEST:
        return exit_code == 3 || exit_code == 6;
    case CLASS_KEY:
        return exit_code == 3 || exit_code == 4 || exit_code == 5;
    default:
        return exit_code == 3 || exit_code == 5 || exit_code == 6;
    }
}

static void expect_refused(oc_tamper *t, const char *path, enum file_class class, const char *damage, uint64_t where)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const ortcrypt_status st = t->open(t->state, t->bundle, &err);
    t->tried++;
    if (st == ORTCRYPT_OK || !allowed(class, ortcrypt_status_exit_code(st)) || err.message[0] == '\0') {
        fail_msg("%s of %s at %llu: %s (exit %d) \"%s\"", damage, path, (unsigned long long)where, ortcrypt_status_name(st),
                 ortcrypt_status_exit_code(st), err.message);
    }
}

static void expect_loads(oc_tamper *t, const char *what)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    const ortcrypt_status st = t->open(t->state, t->bundle, &err);
    if (st != ORTCRYPT_OK) {
        fail_msg("%s: %s \"%s\"", what, ortcrypt_status_name(st), err.message);
    }
}

static uint8_t *slurp(const char *path, size_t *len)
{
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long size = ftell(f);
    assert_true(size >= 0);
    rewind(f);
    uint8_t *const data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), (size_t)size);
    fclose(f);
    *len = (size_t)size;
    return data;
}

static void spew(const char *path, const void *data, size_t len)
{
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void flip_byte(int fd, uint64_t at, uint8_t mask)
{
    uint8_t byte = 0;
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte = (uint8_t)(byte ^ mask);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

void oc_tamper_flip(oc_tamper *t)
{
    struct file_list *const list = list_files(t->bundle);
    for (size_t i = 0; i < list->count; i++) {
        struct stat st;
        const int fd = open(list->path[i], O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        const uint64_t size = (uint64_t)st.st_size;
        const uint64_t flips = size < t->flips ? size : t->flips;
        for (uint64_t k = 0; k < flips; k++) {
            const uint64_t at = k * (size - 1) / (flips > 1 ? flips - 1 : 1);
            const uint8_t mask = (uint8_t)(1u << (k % 8));
            flip_byte(fd, at, mask);
            expect_refused(t, list->path[i], list->class[i], "a flipped bit", at);
            flip_byte(fd, at, mask);
        }
        close(fd);
    }
    free(list);
    expect_loads(t, "after the flips were undone");
}

/* Borders of chunks in an object or manifest: header 56, then 16400 each; a piece border is every 64th of them. */
void oc_tamper_cut(oc_tamper *t)
{
    struct file_list *const list = list_files(t->bundle);
    for (size_t i = 0; i < list->count; i++) {
        size_t len = 0;
        uint8_t *const data = slurp(list->path[i], &len);
        size_t border = 0;
        for (size_t n = 0; border <= len + 1; n++) {
            const size_t piece_border = n == 0 || (n - 1) % 64 == 0;
            if (n % t->cut_step == 0 || piece_border) {
                for (size_t at = border > 0 ? border - 1 : 0; at <= border + 1 && at < len; at++) {
                    assert_int_equal(truncate(list->path[i], (off_t)at), 0);
                    expect_refused(t, list->path[i], list->class[i], "a cut", at);
                    spew(list->path[i], data, len);
                }
            }
            border = n == 0 ? 56 : border + 16400;
        }
        assert_int_equal(truncate(list->path[i], (off_t)(len - 1)), 0);
        expect_refused(t, list->path[i], list->class[i], "a cut", len - 1);
        spew(list->path[i], data, len);
        free(data);
    }
    free(list);
    expect_loads(t, "after the cuts were undone");
}

void oc_tamper_lengthen(oc_tamper *t)
{
    static const size_t more[] = {1, 16, 16400, 1049600};
    struct file_list *const list = list_files(t->bundle);
    for (size_t i = 0; i < list->count; i++) {
        size_t len = 0;
        uint8_t *const data = slurp(list->path[i], &len);
        for (size_t k = 0; k < sizeof more / sizeof more[0]; k++) {
            uint8_t *const longer = calloc(1, len + more[k]);
            assert_non_null(longer);
            memcpy(longer, data, len);
            /* half of the cases repeat the file's own end, as a replayed chunk would */
            if (k % 2 == 1 && len >= more[k]) {
                memcpy(longer + len, data + len - more[k], more[k]);
            }
            spew(list->path[i], longer, len + more[k]);
            expect_refused(t, list->path[i], list->class[i], "lengthening", len + more[k]);
            free(longer);
        }
        spew(list->path[i], data, len);
        free(data);
    }
    free(list);
    expect_loads(t, "after the lengthening was undone");
}

/* Moves the file aside, lets `plant` put something in its place (NULL: nothing), tries, puts the file back. */
static void replace_each(oc_tamper *t, const char *damage, void (*plant)(const char *path, const char *aside))
{
    struct file_list *const list = list_files(t->bundle);
    for (size_t i = 0; i < list->count; i++) {
        char aside[PATH_LEN + 8];
        snprintf(aside, sizeof aside, "%s.aside", t->bundle);
        assert_int_equal(rename(list->path[i], aside), 0);
        if (plant != NULL) {
            plant(list->path[i], aside);
        }
        expect_refused(t, list->path[i], list->class[i], damage, 0);
        assert_true(remove(list->path[i]) == 0 || errno == ENOENT);
        assert_int_equal(rename(aside, list->path[i]), 0);
    }
    free(list);
    expect_loads(t, "after the files were put back");
}

void oc_tamper_delete(oc_tamper *t)
{
    replace_each(t, "deletion", NULL);
}

static void plant_directory(const char *path, const char *aside)
{
    (void)aside;
    assert_int_equal(mkdir(path, 0700), 0);
}

void oc_tamper_replace_by_directory(oc_tamper *t)
{
    replace_each(t, "a directory in place", plant_directory);
}

static void plant_fifo(const char *path, const char *aside)
{
    (void)aside;
    assert_int_equal(mkfifo(path, 0600), 0);
}

void oc_tamper_replace_by_fifo(oc_tamper *t)
{
    replace_each(t, "a FIFO in place", plant_fifo);
}

/* A link to a file of the right length that differs in one byte. */
static void plant_wrong_link(const char *path, const char *aside)
{
    char wrong[PATH_LEN + 16];
    size_t len = 0;
    uint8_t *const data = slurp(aside, &len);
    data[len / 2] = (uint8_t)(data[len / 2] ^ 0x10);
    snprintf(wrong, sizeof wrong, "%s.wrong", aside);
    spew(wrong, data, len);
    free(data);
    assert_int_equal(symlink(wrong, path), 0);
}

void oc_tamper_replace_by_wrong_link(oc_tamper *t)
{
    char wrong[PATH_LEN];
    replace_each(t, "a link to the wrong bytes", plant_wrong_link);
    snprintf(wrong, sizeof wrong, "%s.aside.wrong", t->bundle);
    unlink(wrong);
}

void oc_tamper_right_link(oc_tamper *t)
{
    struct file_list *const list = list_files(t->bundle);
    for (size_t i = 0; i < list->count; i++) {
        if (list->class[i] != CLASS_OBJECT) {
            continue;
        }
        char aside[PATH_LEN + 8];
        snprintf(aside, sizeof aside, "%s.aside", t->bundle);
        assert_int_equal(rename(list->path[i], aside), 0);
        assert_int_equal(symlink(aside, list->path[i]), 0);
        expect_loads(t, "a link to the right bytes");
        assert_int_equal(unlink(list->path[i]), 0);
        assert_int_equal(rename(aside, list->path[i]), 0);
    }
    free(list);
}

void oc_tamper_swap_objects(oc_tamper *t)
{
    struct file_list *const list = list_files(t->bundle);
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = i + 1; k < list->count; k++) {
            if (list->class[i] != CLASS_OBJECT || list->class[k] != CLASS_OBJECT) {
                continue;
            }
            size_t a_len = 0;
            size_t b_len = 0;
            uint8_t *const a = slurp(list->path[i], &a_len);
            uint8_t *const b = slurp(list->path[k], &b_len);
            spew(list->path[i], b, b_len);
            spew(list->path[k], a, a_len);
            expect_refused(t, list->path[i], CLASS_OBJECT, "two objects swapped", k);
            spew(list->path[i], a, a_len);
            spew(list->path[k], b, b_len);
            free(a);
            free(b);
        }
    }
    free(list);
    expect_loads(t, "after the swaps were undone");
}

void oc_tamper_swap_between(oc_tamper *t, const char *other)
{
    struct file_list *const mine = list_files(t->bundle);
    struct file_list *const theirs = list_files(other);
    for (size_t i = 0; i < mine->count; i++) {
        for (size_t k = 0; k < theirs->count; k++) {
            if (mine->class[i] == CLASS_FORMAT || mine->class[i] != theirs->class[k]) {
                continue;
            }
            size_t a_len = 0;
            size_t b_len = 0;
            uint8_t *const a = slurp(mine->path[i], &a_len);
            uint8_t *const b = slurp(theirs->path[k], &b_len);
            spew(mine->path[i], b, b_len);
            expect_refused(t, mine->path[i], mine->class[i], "a file of another bundle", k);
            spew(mine->path[i], a, a_len);
            free(a);
            free(b);
        }
    }
    free(mine);
    free(theirs);
    expect_loads(t, "after the other bundle's files were taken out");
}
