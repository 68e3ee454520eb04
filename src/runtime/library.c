/*
 * Finding the library of an ONNX Runtime: a named one, or the one that is in the process already.
 * Whatever is used stays loaded for the life of the process: ORT's thread-local destructors do not survive a dlclose.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/private.h"

#define SYMBOL "OrtGetApiBase"

typedef const OrtApiBase *(ORT_API_CALL *get_base_fn)(void);

static get_base_fn find_symbol(void *handle)
{
    void *symbol = dlsym(handle, SYMBOL);
    get_base_fn fn = NULL;

    memcpy(&fn, &symbol, sizeof(fn)); /* ISO C has no cast from an object pointer to a function pointer */
    return fn;
}

/* The file names of all loaded libraries. */
typedef struct loaded {
    char **names;
    size_t count;
    bool no_memory;
} loaded;

/* Only notes: the loader's lock is held, so nothing may be opened here. */
static int note_library(struct dl_phdr_info *info, size_t size, void *data)
{
    loaded *const all = data;

    (void)size;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0') {
        return 0; /* the program itself: RTLD_DEFAULT has been asked */
    }
    char **const grown = realloc(all->names, (all->count + 1) * sizeof(*grown));
    char *const name = strdup(info->dlpi_name);
    if (grown != NULL) {
        all->names = grown;
    }
    if (grown == NULL || name == NULL) {
        free(name);
        all->no_memory = true;
        return 1;
    }
    all->names[all->count++] = name;
    return 0;
}

static void free_loaded(loaded *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->names[i]);
    }
    free(all->names);
}

/* The library `name` itself, not one it depends on, is an ONNX Runtime: its function and a handle that keeps it. */
static get_base_fn open_loaded(const char *name, void **handle)
{
    void *const open = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    void *const symbol = open != NULL ? dlsym(open, SYMBOL) : NULL;
    Dl_info where;

    if (symbol != NULL && dladdr(symbol, &where) != 0 && where.dli_fname != NULL && strcmp(where.dli_fname, name) == 0) {
        *handle = open;
        return find_symbol(open);
    }
    if (open != NULL) {
        (void)dlclose(open);
    }
    return NULL;
}

/* Those that were opened for their owners alone (RTLD_LOCAL). *get is NULL when there is none; several are refused. */
static ortcrypt_status find_local(get_base_fn *get, ortcrypt_error *err)
{
    loaded all = {NULL, 0, false};
    const char *first = NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    (void)dl_iterate_phdr(note_library, &all);
    if (all.no_memory) {
        st = oc_fail_memory(err, (all.count + 1) * sizeof(*all.names), "the list of loaded libraries");
    }
    for (size_t i = 0; i < all.count && st == ORTCRYPT_OK; i++) {
        void *handle = NULL;
        const get_base_fn found = open_loaded(all.names[i], &handle);
        if (found != NULL && first != NULL) {
            st = oc_fail(err, ORTCRYPT_E_INVALID, "there are several ONNX Runtimes in this process, %s and %s among them", first, all.names[i]);
            oc_hint(err, "name the library, or hand over the OrtApiBase of the one that is meant");
        } else if (found != NULL) {
            *get = found;
            first = all.names[i];
        }
    }
    free_loaded(&all);
    if (st != ORTCRYPT_OK) {
        *get = NULL;
    }
    return st;
}

static ortcrypt_status open_library(get_base_fn *get, const char *name, ortcrypt_error *err)
{
    if (strchr(name, '/') != NULL && access(name, R_OK) != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", name);
    }
    void *const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        char words[512];
        ortcrypt_ort_words(words, sizeof(words), dlerror());
        (void)oc_fail(err, ORTCRYPT_E_INPUT, "the ONNX Runtime library %s does not load: %s", name, words);
        oc_hint(err, "name the file libonnxruntime.so.VERSION, for example the one inside the PyPI package onnxruntime");
        return ORTCRYPT_E_INPUT;
    }
    *get = find_symbol(handle);
    if (*get == NULL) {
        (void)dlclose(handle);
    }
    return ORTCRYPT_OK;
}

ortcrypt_status oc_library_load(const OrtApiBase **base, const char *library, ortcrypt_error *err)
{
    const char *const name = library != NULL ? library : "libonnxruntime.so";
    get_base_fn get = library == NULL ? find_symbol(RTLD_DEFAULT) : NULL;
    ortcrypt_status st = ORTCRYPT_OK;

    if (library == NULL && get == NULL) {
        st = find_local(&get, err);
    }
    if (st == ORTCRYPT_OK && get == NULL) {
        st = open_library(&get, name, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    *base = get != NULL ? get() : NULL;
    return *base != NULL ? ORTCRYPT_OK : oc_fail(err, ORTCRYPT_E_INPUT, "%s is no ONNX Runtime: it has no " SYMBOL, name);
}
