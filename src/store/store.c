/* store/store.c: opening a bundle's folder and closing it; locks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crypto/random.h"
#include "format/keyfile.h"
#include "store/internal.h"

#define READER_WAIT_MS 10000u /* a reader waits for a collection to end; that only deletes files */
#define FORMAT_MAX 64u

int oc_flock(int fd, int op, unsigned wait_ms)
{
    const struct timespec step = {0, 10 * 1000 * 1000};
    for (unsigned waited = 0;; waited += 10) {
        if (flock(fd, op | LOCK_NB) == 0) {
            return 0;
        }
        if (errno == EINTR) {
            continue;
        }
        if (errno != EWOULDBLOCK || waited >= wait_ms) {
            return errno;
        }
        nanosleep(&step, NULL);
    }
}

const char *oc_type_text(unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a FIFO";
    case S_IFSOCK: return "a socket";
    case S_IFCHR:
    case S_IFBLK: return "a device";
    default: return "no regular file";
    }
}

ortcrypt_status oc_random_name(char *name, size_t len, ortcrypt_error *err)
{
    uint8_t bytes[16];
    ortcrypt_status st = oc_random(bytes, len / 2, err);
    if (st == ORTCRYPT_OK) {
        oc_hex_encode(name, bytes, len / 2);
    }
    return st;
}

ortcrypt_status oc_store_new(oc_store **out, const char *path, ortcrypt_error *err)
{
    oc_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return oc_fail_memory(err, sizeof *store, "a bundle's folder");
    }
    store->dir = store->lock = store->tmp = store->parent = -1;
    ortcrypt_status st = oc_strdup(&store->path, path, err);
    if (st == ORTCRYPT_OK && pthread_mutex_init(&store->mutex, NULL) != 0) {
        st = oc_fail_memory(err, sizeof store->mutex, "a lock");
    }
    if (st != ORTCRYPT_OK) {
        free(store->path);
        free(store);
        return st;
    }
    *out = store;
    return ORTCRYPT_OK;
}

const char *oc_store_path(const oc_store *store)
{
    return store->path;
}

static ortcrypt_status open_folder(oc_store *store, ortcrypt_error *err)
{
    store->dir = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->dir >= 0) {
        return ORTCRYPT_OK;
    }
    const int cause = errno;
    struct stat info;
    if (cause == ENOTDIR && stat(store->path, &info) == 0) {
        return oc_fail(err, ORTCRYPT_E_FORMAT, "%s is not a bundle: it is %s, and a bundle is a folder", store->path,
                       S_ISREG(info.st_mode) ? "a file" : oc_type_text(info.st_mode));
    }
    return oc_fail_errno(err, ORTCRYPT_E_IO, cause, "%s cannot be opened", store->path);
}

static ortcrypt_status check_format(const oc_store *store, ortcrypt_error *err)
{
    oc_buf content = OC_BUF(FORMAT_MAX);
    ortcrypt_status st = oc_store_read_small(store, "FORMAT", FORMAT_MAX, &content, err);
    if (st == ORTCRYPT_E_NOT_FOUND) {
        st = oc_fail(err, ORTCRYPT_E_FORMAT, "%s is not a bundle: it has no file FORMAT", store->path);
    } else if (st == ORTCRYPT_E_LIMIT) {
        st = oc_fail(err, ORTCRYPT_E_FORMAT, "%s is not a bundle: its file FORMAT is too long", store->path);
    } else if (st == ORTCRYPT_OK) {
        st = oc_format_check(OC_SPAN(content.data, content.len), store->path, err);
    }
    oc_buf_free(&content);
    return st;
}

ortcrypt_status oc_store_open(oc_store **out, const char *path, ortcrypt_error *err)
{
    oc_store *store = NULL;
    ortcrypt_status st = oc_store_new(&store, path, err);
    if (st == ORTCRYPT_OK) {
        st = open_folder(store, err);
    }
    if (st == ORTCRYPT_OK && oc_flock(store->dir, LOCK_SH, READER_WAIT_MS) == EWOULDBLOCK) {
        /* other errors: no flock here, so nobody can take it to collect either */
        st = oc_fail(err, ORTCRYPT_E_BUSY, "%s is being cleaned up by another process", path);
    }
    if (st == ORTCRYPT_OK) {
        st = check_format(store, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_store_close(store);
        return st;
    }
    *out = store;
    return ORTCRYPT_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* What was written and not published goes away: best effort, the next writer and the next collection do the rest. */
static void undo(oc_store *store)
{
    while (store->files != NULL) {
        oc_file_discard(store->files);
    }
    if (store->build_name != NULL) {
        oc_tree_remove(store->parent, store->build_name);
        return;
    }
    for (size_t i = 0; i < store->placed_count; i++) {
        char *const name = store->placed[i].name;
        char *const leaf = strrchr(name, '/') + 1;
        int folder = -1;
        leaf[-1] = '\0';
        if (oc_folder_open(store, name, false, &folder, NULL) == ORTCRYPT_OK) {
            (void)oc_disk_unlinkat(folder, leaf, 0);
            close(folder);
            (void)oc_disk_unlinkat(store->dir, name, AT_REMOVEDIR); /* only when it is empty now */
        }
    }
}

void oc_store_close(oc_store *store)
{
    if (store == NULL) {
        return;
    }
    undo(store);
    close_fd(store->tmp);
    close_fd(store->lock);
    close_fd(store->dir);
    close_fd(store->parent);
    pthread_mutex_destroy(&store->mutex);
    free(store->placed);
    free(store->build_name);
    free(store->final_name);
    free(store->path);
    free(store);
}

/* `lock` was opened and flocked; another file may have taken its name meanwhile. */
static bool lock_is_current(const oc_store *store, int fd)
{
    struct stat mine;
    struct stat named;
    return fstat(fd, &mine) == 0 && fstatat(store->dir, "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

static ortcrypt_status take_lock(oc_store *store, unsigned wait_ms, int *out, ortcrypt_error *err)
{
    struct stat info;
    ortcrypt_status st = ORTCRYPT_OK;
    const int fd = oc_disk_openat(store->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0 && errno == ELOOP) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "%s is made of links and is not written to: %s/lock is one", store->path,
                     store->path);
        oc_hint(err, "write a new bundle instead");
        return st;
    }
    if (fd < 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be written to: opening its file lock", store->path);
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        st = oc_fail(err, ORTCRYPT_E_IO, "%s/lock is no regular file", store->path);
    } else {
        const int cause = oc_flock(fd, LOCK_EX, wait_ms);
        if (cause == EWOULDBLOCK || (cause == 0 && !lock_is_current(store, fd))) {
            st = oc_fail(err, ORTCRYPT_E_BUSY, "%s is being written to by another process", store->path);
            oc_hint(err, "try again when that one is done");
        } else if (cause != 0) {
            st = oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, cause, "%s is on a file system without locks (flock)", store->path);
            oc_hint(err, "write it on a local disk and copy it");
        }
    }
    if (st != ORTCRYPT_OK) {
        close(fd);
        return st;
    }
    *out = fd;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_store_lock(oc_store *store, unsigned wait_ms, ortcrypt_error *err)
{
    if (store->lock >= 0) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%s is locked already", store->path);
    }
    int lock = -1;
    ortcrypt_status st = take_lock(store, wait_ms, &lock, err);
    if (st == ORTCRYPT_OK) {
        store->lock = lock;
        st = oc_folder_open(store, "tmp", true, &store->tmp, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_tmp_empty(store, err);
    }
    return st;
}
