/* Callbacks by id. An id is looked up at every call, and what it stands for cannot be closed while the call runs. */
#include "runtime/registry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ep_context/internal.h"

struct oc_registration {
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    OrtReadNamedBufferFunc read;
    OrtWriteNamedBufferFunc write;
    void *state;    /* of who registered */
    size_t running; /* calls */
    oc_registration *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and `running`; never held around a callback */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static oc_registration *registrations;

ortcrypt_status oc_registration_new(oc_registration **out, const uint8_t random[OC_REGISTRATION_RANDOM_LEN],
                                    OrtReadNamedBufferFunc read, OrtWriteNamedBufferFunc write, void *state, ortcrypt_error *err)
{
    oc_registration *const made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return oc_fail_memory(err, sizeof(*made), "a registration");
    }
    oc_hex_encode(made->id, random, OC_REGISTRATION_RANDOM_LEN);
    made->read = read;
    made->write = write;
    made->state = state;
    (void)oc_ep_attach(oc_registry_table()); /* EPs may be linked with this very library */
    (void)pthread_mutex_lock(&lock);
    made->next = registrations;
    registrations = made;
    (void)pthread_mutex_unlock(&lock);
    *out = made;
    return ORTCRYPT_OK;
}

const char *oc_registration_id(const oc_registration *registration) { return registration->id; }

void oc_registration_end(oc_registration *registration)
{
    if (registration == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    for (oc_registration **at = &registrations; *at != NULL; at = &(*at)->next) {
        if (*at == registration) {
            *at = registration->next;
            break;
        }
    }
    while (registration->running != 0) {
        (void)pthread_cond_wait(&idle, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
    free(registration);
}

/* The registration of an id, which stays until leave; NULL: there is none. */
static oc_registration *enter(const char *id)
{
    oc_registration *found = NULL;

    (void)pthread_mutex_lock(&lock);
    for (found = registrations; found != NULL && strcmp(found->id, id) != 0; found = found->next) {
    }
    if (found != NULL) {
        found->running++;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

static void leave(oc_registration *registration)
{
    (void)pthread_mutex_lock(&lock);
    if (--registration->running == 0) {
        (void)pthread_cond_broadcast(&idle);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* Both, always: a callback that was not registered refuses, and an EP that finds none would use a file. */
static uint32_t ORT_API_CALL callbacks(const char *id)
{
    oc_registration *const found = id != NULL ? enter(id) : NULL;

    if (found == NULL) {
        return 0;
    }
    leave(found);
    return ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES;
}

static OrtStatus *closed(const OrtApi *api)
{
    return api->CreateStatus(ORT_FAIL, "the EPContext data callbacks of this session are not there any more: the bundle, inputs or "
                                       "output they belong to was closed");
}

static OrtStatus *ORT_API_CALL read_by_id(const char *id, const OrtApi *api, const char *name, OrtAllocator *allocator,
                                          void **buffer, size_t *data_size)
{
    oc_registration *const found = id != NULL ? enter(id) : NULL;
    OrtStatus *status = NULL;

    if (found == NULL) {
        return closed(api);
    }
    status = found->read != NULL ? found->read(found->state, name, allocator, buffer, data_size)
                                 : api->CreateStatus(ORT_FAIL, "there is no EPContext data to read: this session compiles");
    leave(found);
    return status;
}

static OrtStatus *ORT_API_CALL write_by_id(const char *id, const OrtApi *api, const char *name, const void *buffer,
                                           size_t buffer_num_bytes)
{
    oc_registration *const found = id != NULL ? enter(id) : NULL;
    OrtStatus *status = NULL;

    if (found == NULL) {
        return closed(api);
    }
    status = found->write != NULL ? found->write(found->state, name, buffer, buffer_num_bytes)
                                  : api->CreateStatus(ORT_FAIL, "EPContext data is not to be written: this session loads");
    leave(found);
    return status;
}

const ortcrypt_ep_registry *oc_registry_table(void)
{
    static const ortcrypt_ep_registry table = {sizeof(table), callbacks, read_by_id, write_by_id};

    return &table;
}

/* EP libraries keep the table for as long as they are loaded, which may be longer than this library would be: it stays. */
static void stay_loaded(void)
{
    static const char here;
    Dl_info info;

    if (dladdr(&here, &info) != 0 && info.dli_fname != NULL) {
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE); /* NULL for a program, which stays anyway */
    }
}

bool oc_registry_attach(const char *path)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool(*attach)(const ortcrypt_ep_registry *registry) = NULL;
    bool attached = false;
    void *const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

    if (library == NULL) {
        return false;
    }
    void *const symbol = dlsym(library, "ortcrypt_ep_attach");
    memcpy(&attach, &symbol, sizeof(attach)); /* ISO C has no cast from an object pointer to a function pointer */
    if (attach != NULL) {
        (void)pthread_once(&once, stay_loaded);
        attached = attach(oc_registry_table());
    }
    (void)dlclose(library); /* ORT's own handle keeps it */
    return attached;
}
