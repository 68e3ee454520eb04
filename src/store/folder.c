/* store/folder.c: folders of a bundle that is written to, and removing what was not published. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TREE_DEPTH 3 /* bundle, objects, objects/ab */

static int open_component(int parent, const char *name, bool create)
{
    int fd = openat(parent, name, FOLDER_FLAGS);
    if (fd < 0 && errno == ENOENT && create && (oc_disk_mkdirat(parent, name, 0777) == 0 || errno == EEXIST)) {
        fd = openat(parent, name, FOLDER_FLAGS);
    }
    return fd;
}

ortcrypt_status oc_folder_open(const oc_store *store, const char *name, bool create, int *fd, ortcrypt_error *err)
{
    char part[OC_PLACED_SIZE];
    int current = store->dir;
    const char *rest = name;
    while (*rest != '\0') {
        const size_t len = strcspn(rest, "/");
        if (len == 0 || len >= sizeof part) {
            errno = EINVAL;
        } else {
            memcpy(part, rest, len);
            part[len] = '\0';
        }
        const int next = len == 0 || len >= sizeof part ? -1 : open_component(current, part, create);
        const int cause = errno;
        if (current != store->dir) {
            close(current);
        }
        if (next < 0) {
            return oc_fail_errno(err, ORTCRYPT_E_IO, cause, "the folder %s/%s cannot be written to", store->path, name);
        }
        current = next;
        rest += len;
        rest += *rest == '/' ? 1 : 0;
    }
    *fd = current;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_folder_sync(const oc_store *store, int fd, const char *name, ortcrypt_error *err)
{
    if (fsync(fd) != 0 && errno != EINVAL && errno != EOPNOTSUPP) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "writing the folder %s/%s", store->path, name);
    }
    return ORTCRYPT_OK;
}

/* Opens a second handle on a folder for readdir; the caller's own keeps its position. */
static DIR *open_listing(int folder)
{
    const int fd = openat(folder, ".", FOLDER_FLAGS);
    DIR *const listing = fd < 0 ? NULL : fdopendir(fd);
    if (listing == NULL && fd >= 0) {
        close(fd);
    }
    return listing;
}

static bool dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

ortcrypt_status oc_tmp_empty(const oc_store *store, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    DIR *const listing = open_listing(store->tmp);
    if (listing == NULL) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s/tmp cannot be listed", store->path);
    }
    const struct dirent *entry;
    while (st == ORTCRYPT_OK && (entry = readdir(listing)) != NULL) {
        /* a folder in there is not ours and in nobody's way */
        if (!dots(entry->d_name) && oc_disk_unlinkat(store->tmp, entry->d_name, 0) != 0 && errno != ENOENT && errno != EISDIR &&
            errno != EPERM) {
            st = oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s/tmp cannot be emptied", store->path);
        }
    }
    closedir(listing);
    return st;
}

static void remove_below(int parent, const char *name, int depth)
{
    if (oc_disk_unlinkat(parent, name, 0) == 0 || depth < 0) {
        return;
    }
    const int folder = openat(parent, name, FOLDER_FLAGS);
    DIR *const listing = folder < 0 ? NULL : open_listing(folder);
    if (listing != NULL) {
        const struct dirent *entry;
        while ((entry = readdir(listing)) != NULL) {
            if (!dots(entry->d_name)) {
                remove_below(folder, entry->d_name, depth - 1);
            }
        }
        closedir(listing);
    }
    if (folder >= 0) {
        close(folder);
    }
    (void)oc_disk_unlinkat(parent, name, AT_REMOVEDIR);
}

void oc_tree_remove(int parent, const char *name)
{
    remove_below(parent, name, TREE_DEPTH);
}
