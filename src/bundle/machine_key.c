/*
 * bundle/machine_key.c: the file with this machine's 32 random bytes. In: a path the caller chose. Out: secret memory.
 * Whoever can read the file and holds a bundle key can plant compiled variants; so it is the owner's alone or refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/local.h"
#include "crypto/random.h"
#include "os/outside.h"

#define FOLDER_MODE 0700
#define SUFFIX_HEX 16

ortcrypt_status oc_folders_make(const char *path, ortcrypt_error *err)
{
    char *text = NULL;
    int cause = 0;

    ortcrypt_status st = oc_strdup(&text, path, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    for (char *at = text; *at != '\0' && cause == 0;) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char kept = *at;
        *at = '\0';
        if (text[0] != '\0' && oc_disk_mkdirat(AT_FDCWD, text, FOLDER_MODE) != 0 && errno != EEXIST) {
            cause = errno;
            cause = access(text, F_OK) == 0 ? 0 : cause; /* a read-only place says so before it says that the folder is there */
        }
        *at = kept;
    }
    free(text);
    return cause == 0 ? ORTCRYPT_OK : oc_fail_errno(err, ORTCRYPT_E_IO, cause, "the folder %s cannot be made", path);
}

static ortcrypt_status write_key(int fd, const oc_secret *key, const char *path, ortcrypt_error *err)
{
    errno = EIO; /* a short write of a few bytes has no errno of its own */
    if (write(fd, key->data, OC_MACHINE_KEY_LEN) != OC_MACHINE_KEY_LEN || fsync(fd) != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing %s", path);
    }
    return ORTCRYPT_OK;
}

/* Under a name of its own first: another process never reads half a key. Whoever is first names it; the others read that one. */
static ortcrypt_status make_key(const char *path, ortcrypt_error *err)
{
    uint8_t random[SUFFIX_HEX / 2];
    char suffix[SUFFIX_HEX + 1];
    oc_secret key = {0};
    char *name = NULL;
    int fd = -1;

    ortcrypt_status st = oc_secret_new(&key, OC_MACHINE_KEY_LEN, err);
    if (st == ORTCRYPT_OK) {
        st = oc_random(key.data, OC_MACHINE_KEY_LEN, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_random(random, sizeof random, err);
    }
    if (st == ORTCRYPT_OK) {
        oc_hex_encode(suffix, random, sizeof random);
        name = malloc(strlen(path) + sizeof ".tmp-" + SUFFIX_HEX);
        st = name == NULL ? oc_fail_memory(err, strlen(path), "a file name") : ORTCRYPT_OK;
    }
    if (st == ORTCRYPT_OK) {
        (void)sprintf(name, "%s.tmp-%s", path, suffix);
        fd = oc_disk_openat(AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        st = fd < 0 ? oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the machine key %s cannot be made", path)
                    : write_key(fd, &key, path, err);
    }
    if (st == ORTCRYPT_OK && oc_disk_linkat(AT_FDCWD, name, AT_FDCWD, path) != 0 && errno != EEXIST) {
        st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "the machine key %s cannot be made", path);
    }
    if (fd >= 0) {
        (void)close(fd);
        (void)oc_disk_unlinkat(AT_FDCWD, name, 0);
    }
    free(name);
    oc_secret_free(&key);
    return st;
}

/* The folder's fsync is left out: a key that is lost with the machine's power costs a compilation, no data. */
static ortcrypt_status make_key_file(const char *path, ortcrypt_error *err)
{
    char *folder = NULL;

    ortcrypt_status st = oc_strdup(&folder, path, err);
    if (st == ORTCRYPT_OK) {
        char *const slash = strrchr(folder, '/');
        if (slash != NULL && slash != folder) {
            *slash = '\0';
            st = oc_folders_make(folder, err);
        }
    }
    free(folder);
    return st == ORTCRYPT_OK ? make_key(path, err) : st;
}

static ortcrypt_status refuse(const char *path, const char *why, ortcrypt_error *err)
{
    (void)oc_fail(err, ORTCRYPT_E_NO_KEY, "the machine key %s is not used: %s", path, why);
    oc_hint(err, "remove it, and a new one is made; what was compiled with it is compiled again");
    return ORTCRYPT_E_NO_KEY;
}

static ortcrypt_status read_key(oc_secret *key, int fd, const char *path, ortcrypt_error *err)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse(path, "it is no regular file", err);
    }
    if (info.st_uid != geteuid()) {
        return refuse(path, "it belongs to another user", err);
    }
    if ((info.st_mode & 077) != 0) {
        return refuse(path, "other users have rights on it (its mode must be 0600)", err);
    }
    if (info.st_size != OC_MACHINE_KEY_LEN) {
        return refuse(path, "a machine key is 32 bytes", err);
    }
    errno = EIO;
    if (pread(fd, key->data, OC_MACHINE_KEY_LEN, 0) != OC_MACHINE_KEY_LEN) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "reading %s", path);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_machine_key_read(oc_secret *out, const char *path, ortcrypt_error *err)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    oc_secret key = {0};
    ortcrypt_status st = oc_secret_new(&key, OC_MACHINE_KEY_LEN, err);
    int fd = st == ORTCRYPT_OK ? open(path, flags) : -1;

    if (st == ORTCRYPT_OK && fd < 0 && errno == ENOENT) {
        st = make_key_file(path, err);
        fd = st == ORTCRYPT_OK ? open(path, flags) : -1;
    }
    if (st == ORTCRYPT_OK && fd < 0) {
        st = errno == ELOOP ? refuse(path, "it is a link", err) : oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be opened", path);
    }
    if (st == ORTCRYPT_OK) {
        st = read_key(&key, fd, path, err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (st != ORTCRYPT_OK) {
        oc_secret_free(&key);
        return st;
    }
    *out = key;
    return ORTCRYPT_OK;
}
