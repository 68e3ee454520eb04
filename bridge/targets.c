/*
 * The bridge's entry points. A name and a path -> (RegisterExecutionProviderLibrary) -> the EP's library, loaded, with copied tables of
 * the runtime -> its factories, hooked -> ORT. Whatever does not come about leaves nothing loaded and nothing remembered.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "ortcrypt/bridge.h"

/* ORT's own entry points have no prototype in its headers. */
ORTCRYPT_EP_ENTRY_POINT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                                                     OrtEpFactory **factories, size_t max_factories, size_t *factory_count);
ORTCRYPT_EP_ENTRY_POINT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

typedef struct pending {
    char *name;
    char *path;
    struct pending *next;
} pending;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `announced` and the targets' factory_count */
static pending *announced;
static oc_target *staying; /* guarded by `lock` too */

static void free_pending(pending *gone)
{
    if (gone != NULL) {
        free(gone->name);
        free(gone->path);
        free(gone);
    }
}

/* Takes out what was said of a name; NULL: nothing. Lock held. */
static pending *take(const char *name)
{
    pending *taken = NULL;
    for (pending **at = &announced; *at != NULL; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0) {
            taken = *at;
            *at = taken->next;
            break;
        }
    }
    return taken;
}

bool ortcrypt_bridge_target(const char *registration_name, const char *library_path)
{
    if (registration_name == NULL || registration_name[0] == '\0' || library_path == NULL || library_path[0] == '\0') {
        return false;
    }
    pending *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        made->name = strdup(registration_name);
        made->path = strdup(library_path);
    }
    if (made == NULL || made->name == NULL || made->path == NULL) {
        free_pending(made);
        return false;
    }
    (void)pthread_mutex_lock(&lock);
    pending *const before = take(registration_name);
    made->next = announced;
    announced = made;
    (void)pthread_mutex_unlock(&lock);
    free_pending(before);
    return true;
}

bool ortcrypt_ep_attach(const ortcrypt_ep_registry *registry)
{
    return oc_ep_attach(registry);
}

/*
 * Also half-built ones. The library goes before the tables that it was given. One that stays loaded after dlclose (OpenVINO does) may
 * keep the OrtApi it has: its tables stay too, for its next registration.
 */
static void free_target(oc_target *target)
{
    void *still = NULL;
    if (target->library != NULL) {
        const void *const library = target->library;
        (void)dlclose(target->library);
        target->library = NULL;
        still = dlopen(target->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (still == NULL) {
            oc_bridge_unloaded(library);
        }
    }
    oc_handle_forget_all(target);
    if (still != NULL) {
        (void)dlclose(still);
        (void)pthread_mutex_lock(&lock);
        target->next = staying;
        staying = target;
        (void)pthread_mutex_unlock(&lock);
        return;
    }
    if (target->interpose != NULL) {
        oc_bridge_place(oc_interpose_index(target->interpose), NULL);
        oc_interpose_free(target->interpose);
    }
    free(target->name);
    free(target->path);
    free(target);
}

/* A target with these names, which it takes over: one that stayed, or a new one; NULL: no memory. */
static oc_target *get_target(const OrtApiBase *base, pending *said)
{
    oc_target *found = NULL;
    (void)pthread_mutex_lock(&lock);
    for (oc_target **at = &staying; *at != NULL; at = &(*at)->next) {
        if ((*at)->base == base && strcmp((*at)->path, said->path) == 0) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (found == NULL) {
        found = calloc(1, sizeof(*found));
    }
    if (found != NULL) {
        free(found->name);
        free(found->path);
        found->name = said->name;
        found->path = said->path;
        found->base = base;
        found->next = NULL;
        said->name = NULL;
        said->path = NULL;
    }
    free_pending(said);
    return found;
}

/* Copied tables, with what the EP is told and what it finds. */
static OrtStatus *make_tables(oc_target *target, const OrtApiBase *base)
{
    const oc_interpose_options older = {.version = OC_BRIDGE_TOLD};
    OrtStatus *status = ortcrypt_ep_context_api_get(base, &target->six);
    if (status != NULL) {
        return status;
    }
    status = oc_interpose_new(&target->interpose, base, target->six.era == ORTCRYPT_ERA_NONE ? &older : NULL);
    if (status != NULL) {
        return status;
    }
    const unsigned place = oc_interpose_index(target->interpose);
    oc_function missing = NULL;
    target->api = oc_interpose_real(target->interpose);
    target->minor = oc_interpose_minor(target->interpose);
    (void)oc_interpose_replace(target->interpose, OC_TABLE_API, OC_SLOT(OrtApi, GetExperimentalFunction), oc_bridge_experimental(place),
                               target->minor >= OC_EP_FIRST_EXPERIMENTAL ? &target->find : &missing);
    if (target->six.era == ORTCRYPT_ERA_STABLE) { /* where EPs may be wrapped */
        (void)oc_interpose_replace(target->interpose, OC_TABLE_EP, OC_SLOT(OrtEpApi, KernelInfo_GetEp), oc_bridge_kernel_ep(place),
                                   &target->ep_of_kernel);
    }
    oc_bridge_place(place, target);
    return NULL;
}

static OrtStatus *load(oc_target *target, oc_create_factories *create)
{
    target->library = dlopen(target->path, RTLD_NOW | RTLD_LOCAL);
    if (target->library == NULL) {
        return oc_ep_status(target->api, ORT_FAIL, "the library of %s does not load: %s", target->name, dlerror());
    }
    void *symbol = dlsym(target->library, "CreateEpFactories");
    memcpy(create, &symbol, sizeof(*create)); /* ISO C has no cast from an object pointer to a function pointer */
    symbol = dlsym(target->library, "ReleaseEpFactory");
    memcpy(&target->release, &symbol, sizeof(target->release));
    return *create != NULL && target->release != NULL
               ? NULL
               : oc_ep_status(target->api, ORT_FAIL, "%s is no EP library: it has no CreateEpFactories or no ReleaseEpFactory",
                              target->path);
}

/* An EP built for members of the runtime that are not known here may also do with the callbacks what is not. */
static OrtStatus *check_age(const oc_target *target)
{
    const unsigned asked = oc_interpose_asked(target->interpose);
    return asked <= OC_BRIDGE_STRUCT_MAX
               ? NULL
               : oc_ep_status(target->api, ORT_NOT_IMPLEMENTED,
                              "%s was built for ONNX Runtime 1.%u, and the bridge is for those up to 1.%d", target->name, asked,
                              (int)OC_BRIDGE_STRUCT_MAX);
}

/* The EP's factories in factories[]; on an error none is left. */
static OrtStatus *make_factories(oc_target *target, const OrtLogger *logger, OrtEpFactory **factories, size_t max, size_t *count)
{
    oc_create_factories create = NULL;
    size_t made = 0;
    size_t hooked = 0;
    OrtStatus *status = load(target, &create);
    if (status == NULL) {
        status = create(target->name, oc_interpose_base(target->interpose), logger, factories, max, &made);
    }
    if (status != NULL) {
        return status;
    }
    status = check_age(target);
    while (status == NULL && hooked < made) {
        status = oc_bridge_hook(target, factories[hooked]);
        hooked += status == NULL ? 1 : 0;
    }
    if (status == NULL) {
        target->factory_count = made;
        *count = made;
        return NULL;
    }
    for (size_t i = made; i-- > 0;) {
        if (i < hooked) {
            (void)oc_bridge_unhook(factories[i]);
        }
        OrtStatus *const released = target->release(factories[i]);
        if (released != NULL) {
            target->api->ReleaseStatus(released);
        }
        factories[i] = NULL;
    }
    return status;
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                             size_t max_factories, size_t *factory_count)
{
    const OrtApi *const oldest = base->GetApi(1); /* to make errors with */
    *factory_count = 0;
    if (oldest == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    pending *const said = take(name);
    (void)pthread_mutex_unlock(&lock);
    if (said == NULL) {
        return oc_ep_status(oldest, ORT_INVALID_ARGUMENT, "the bridge was not told which library %.200s is (ortcrypt_bridge_target)", name);
    }
    oc_target *const target = get_target(base, said);
    if (target == NULL) {
        return oc_ep_status(oldest, ORT_FAIL, "no memory for the bridge");
    }
    OrtStatus *status = target->interpose == NULL ? make_tables(target, base) : NULL;
    if (status == NULL && target->interpose == NULL) {
        status = oc_ep_status(oldest, ORT_NOT_IMPLEMENTED, "the bridge needs an ONNX Runtime 1.x");
    }
    if (status == NULL) {
        status = make_factories(target, logger, factories, max_factories, factory_count);
    }
    if (status != NULL || *factory_count == 0) { /* nothing will be released that could let go of it */
        free_target(target);
    }
    return status;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    oc_target *const target = factory != NULL ? oc_bridge_unhook(factory) : NULL;
    if (target == NULL) {
        return NULL;
    }
    OrtStatus *const status = target->release(factory);
    (void)pthread_mutex_lock(&lock);
    const bool last = --target->factory_count == 0;
    (void)pthread_mutex_unlock(&lock);
    if (last) {
        free_target(target);
    }
    return status;
}
