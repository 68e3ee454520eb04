/* store/internal.h: what the files of src/store share. Nobody else includes it. */
#ifndef OC_STORE_INTERNAL_H
#define OC_STORE_INTERNAL_H

#include <pthread.h>

#include "os/outside.h" /* oc_disk_*: what makes, renames or removes files is done outside of a sandbox */
#include "store/store.h"

#define OC_PLACED_SIZE 80 /* the longest name a bundle has is objects/ab/<64 hex> */

struct oc_file {
    oc_store *store;
    oc_file *next;
    int fd;
    uint64_t len;     /* bytes appended */
    uint64_t flushed; /* bytes whose writing to the disk was begun */
    char name[33];    /* below tmp/ */
};

typedef struct oc_placed {
    char name[OC_PLACED_SIZE]; /* relative to the bundle */
} oc_placed;

struct oc_store {
    char *path; /* as the caller named the bundle: for sentences only */
    int dir;    /* the bundle's folder; holds flock(SH) */
    int lock;   /* `lock` with flock(EX) on it, or -1 */
    int tmp;    /* tmp/ of a writer, or -1 */

    pthread_mutex_t mutex; /* guards the members below: several assets are written at once */
    oc_file *files;
    oc_placed *placed; /* renamed to its place, not yet named by a published manifest */
    size_t placed_count;
    size_t placed_cap;
    bool touched[256]; /* objects/xx that must be fsynced before the manifest */
    bool touched_keys;
    bool touched_sig;

    int parent;       /* a new bundle until it has its name: the folder it will be in, else -1 */
    char *build_name; /* its name there now */
    char *final_name; /* and once published */
};

ortcrypt_status oc_store_new(oc_store **out, const char *path, ortcrypt_error *err);

/* flock(op | LOCK_NB), tried again for wait_ms. 0, or the errno (EWOULDBLOCK: somebody else has it). */
int oc_flock(int fd, int op, unsigned wait_ms);

/* "a folder", "a FIFO", ...: what fstat found instead of a regular file. */
const char *oc_type_text(unsigned mode);

/*
 * Opens the folder `name` below the bundle for writing into it: no component may be a link, so that a planted one cannot
 * turn a write or a deletion elsewhere. `create`: makes what is missing.
 */
ortcrypt_status oc_folder_open(const oc_store *store, const char *name, bool create, int *fd, ortcrypt_error *err);

/* fsync of a folder; a file system that cannot do that for folders is let pass. */
ortcrypt_status oc_folder_sync(const oc_store *store, int fd, const char *name, ortcrypt_error *err);

/* fsync and close; the file keeps its name in tmp/. */
ortcrypt_status oc_file_sync(oc_file *file, ortcrypt_error *err);

/* Deletes every file in tmp/. */
ortcrypt_status oc_tmp_empty(const oc_store *store, ortcrypt_error *err);

/* A lower-case hex name of `len` (even, at most 32) random characters and a NUL. */
ortcrypt_status oc_random_name(char *name, size_t len, ortcrypt_error *err);

/* Removes a folder and what is in it, never following links; the depth of a bundle is enough. Best effort. */
void oc_tree_remove(int parent, const char *name);

/* A fresh "<final name>.tmp-<8 hex>", for free(): what a new bundle is called until it is complete. */
ortcrypt_status oc_build_name(char **out, const char *final_name, ortcrypt_error *err);

/* Removes what killed writers of a bundle of this name left in its parent. Never what a live one works on. Best effort. */
void oc_stale_remove(const oc_store *store);

/* Whether build_name is still the folder `dir`: false when another writer's oc_stale_remove took it for a dead one's. */
bool oc_build_is_mine(const oc_store *store);

/* The new bundle's folder gets its name; ORTCRYPT_E_EXISTS when there is something of that name by now. */
ortcrypt_status oc_store_reveal(oc_store *store, ortcrypt_error *err);

#endif
