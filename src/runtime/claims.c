/*
 * Which ONNX Runtime an EP library serves. A library is loaded once into a process, however often it is registered, and most EPs
 * keep the OrtApi they were given in a variable: the second runtime to register one would take it from the first, whose sessions
 * then call a stranger with their objects. So a library serves one runtime at a time. Process-wide; thread-safe.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/private.h"

typedef struct claim {
    dev_t device; /* the file: two paths to it are one library */
    ino_t inode;
    char *path;
    const OrtApiBase *base;
    const ortcrypt_runtime *runtime; /* NULL: closed, and the application's OrtEnv may still have the library */
    char version[32];
    size_t count; /* registrations */
    struct claim *next;
} claim;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static claim *claims;
static ortcrypt_runtime *open_runtimes;

static bool still_loaded(const char *path)
{
    void *const handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

    if (handle != NULL) {
        (void)dlclose(handle);
    }
    return handle != NULL;
}

static void forget(claim **at)
{
    claim *const gone = *at;

    *at = gone->next;
    free(gone->path);
    free(gone);
}

/* The runtime's own claim, or NULL; in *other one that stands against it. Those that ended are forgotten. */
static claim *look_up(const ortcrypt_runtime *runtime, const struct stat *file, const claim **other)
{
    claim *own = NULL;

    *other = NULL;
    for (claim **at = &claims; *at != NULL;) {
        claim *const c = *at;
        if (c->device != file->st_dev || c->inode != file->st_ino) {
            at = &c->next;
        } else if (c->runtime == NULL && (c->base == runtime->base || !still_loaded(c->path))) {
            forget(at);
        } else {
            own = c->runtime == runtime ? c : own;
            *other = c->base != runtime->base ? c : *other;
            at = &c->next;
        }
    }
    return own;
}

static ortcrypt_status add(const ortcrypt_runtime *runtime, const char *library, const struct stat *file, ortcrypt_error *err)
{
    claim *const c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return oc_fail_memory(err, sizeof(*c), "an EP library");
    }
    const ortcrypt_status st = oc_strdup(&c->path, library, err);
    if (st != ORTCRYPT_OK) {
        free(c);
        return st;
    }
    c->device = file->st_dev;
    c->inode = file->st_ino;
    c->base = runtime->base;
    c->runtime = runtime;
    memcpy(c->version, runtime->version, sizeof(c->version));
    c->count = 1;
    c->next = claims;
    claims = c;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_claim_library(const ortcrypt_runtime *runtime, const char *name, const char *library, ortcrypt_error *err)
{
    const claim *other = NULL;
    struct stat file;
    ortcrypt_status st = ORTCRYPT_OK;

    if (strcmp(name, OC_EP_REFERENCE) == 0 || stat(library, &file) != 0) {
        return ORTCRYPT_OK; /* ours keeps nothing in variables; a file that is gone is ORT's to refuse */
    }
    (void)pthread_mutex_lock(&lock);
    claim *const own = look_up(runtime, &file, &other);
    if (other != NULL) {
        st = oc_fail(err, ORTCRYPT_E_UNSUPPORTED, "the EP library %s serves ONNX Runtime %s in this process, and it can serve only one", library,
                     other->version);
        oc_hint(err, "register a copy of the file with ONNX Runtime %s, or close the other one first", runtime->version);
    } else if (own != NULL) {
        own->count++;
    } else {
        st = add(runtime, library, &file, err);
    }
    (void)pthread_mutex_unlock(&lock);
    return st;
}

void oc_claim_drop(const ortcrypt_runtime *runtime, const char *library)
{
    (void)pthread_mutex_lock(&lock);
    for (claim **at = &claims; *at != NULL;) {
        if ((*at)->runtime == runtime && strcmp((*at)->path, library) == 0 && --(*at)->count == 0) {
            forget(at);
        } else {
            at = &(*at)->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

void oc_claim_opened(ortcrypt_runtime *runtime)
{
    (void)pthread_mutex_lock(&lock);
    runtime->next_open = open_runtimes;
    open_runtimes = runtime;
    (void)pthread_mutex_unlock(&lock);
}

/* ORT has one OrtEnv per library, counted: its EP libraries stay while another runtime object over it is open. */
static const ortcrypt_runtime *heir_of(const ortcrypt_runtime *runtime)
{
    const ortcrypt_runtime *heir = open_runtimes;

    while (heir != NULL && heir->base != runtime->base) {
        heir = heir->next_open;
    }
    return heir;
}

void oc_claim_closed(const ortcrypt_runtime *runtime)
{
    (void)pthread_mutex_lock(&lock);
    ortcrypt_runtime **open = &open_runtimes;
    while (*open != NULL && *open != runtime) {
        open = &(*open)->next_open;
    }
    if (*open != NULL) {
        *open = runtime->next_open;
    }
    const ortcrypt_runtime *const heir = heir_of(runtime);
    for (claim **at = &claims; *at != NULL;) {
        if ((*at)->runtime == runtime && runtime->env_owned && heir == NULL) {
            forget(at);
        } else {
            (*at)->runtime = (*at)->runtime == runtime ? heir : (*at)->runtime;
            at = &(*at)->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}
