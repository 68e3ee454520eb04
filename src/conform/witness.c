/*
 * The witness library. ORT's default allocator is handed to the EP inside one of ours, which forwards and sees what is freed; the two
 * functions that hand out and take back an OrtEpContextConfig are counted. Everything else is the runtime's own.
 */
#include "conform/witness.h"

#include <dlfcn.h>
#include <string.h>

#include "ep_context/internal.h"
#include "interpose/interpose.h"

enum { SLOT_EXPERIMENTAL = 422, SLOT_GET_CONFIG = 74, SLOT_RELEASE_CONFIG = 75 }; /* OrtApi v28; OrtEpApi v31 */

typedef OrtStatus *(*create_function)(const char *, const OrtApiBase *, const OrtLogger *, OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_function)(OrtEpFactory *);
typedef oc_function(ORT_API_CALL *experimental_function)(const char *name);
typedef OrtStatus *(ORT_API_CALL *get_config_function)(const OrtSessionOptions *options, OrtEpContextConfig **config);
typedef void(ORT_API_CALL *release_config_function)(OrtEpContextConfig *config);
typedef OrtStatus *(ORT_API_CALL *get_allocator_function)(OrtAllocator **out);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                                      size_t max, size_t *count);
EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);
EXPORTED oc_witness *ortcrypt_witness(void);

static oc_witness counts;

static struct {
    void *library;
    oc_interpose *interpose;
    size_t factories;
    release_function release;
    experimental_function experimental;
    get_config_function get_config;
    release_config_function release_config;
    get_allocator_function get_allocator;
    OrtAllocator *real; /* ORT's default one */
    OrtAllocator ours;
} witness;

oc_witness *ortcrypt_witness(void) { return &counts; }

static void *ORT_API_CALL alloc(OrtAllocator *self, size_t size)
{
    (void)self;
    return witness.real->Alloc(witness.real, size);
}

static void see(void *memory)
{
    for (size_t i = 0; memory != NULL && i < OC_WITNESS_BUFFERS; i++) {
        void *expected = memory;
        if (atomic_compare_exchange_strong(&counts.buffers[i], &expected, NULL)) {
            (void)atomic_fetch_add(&counts.buffers_freed, 1);
            break;
        }
    }
}

static void ORT_API_CALL free_seen(OrtAllocator *self, void *memory)
{
    (void)self;
    see(memory);
    witness.real->Free(witness.real, memory);
}

static void ORT_API_CALL free_own(OrtAllocator *self, void *memory)
{
    see(memory);
    counts.own_free(self, memory);
}

static const OrtMemoryInfo *ORT_API_CALL info(const OrtAllocator *self)
{
    (void)self;
    return witness.real->Info(witness.real);
}

static OrtStatus *ORT_API_CALL default_allocator(OrtAllocator **out)
{
    OrtStatus *const status = witness.get_allocator(&witness.real);

    if (status == NULL) {
        witness.ours.version = witness.real->version;
        witness.ours.Alloc = alloc;
        witness.ours.Reserve = alloc;
        witness.ours.Free = free_seen;
        witness.ours.Info = info;
        *out = &witness.ours;
    }
    return status;
}

static OrtStatus *ORT_API_CALL get_config(const OrtSessionOptions *options, OrtEpContextConfig **config)
{
    OrtStatus *const status = witness.get_config(options, config);

    if (status == NULL && *config != NULL) {
        (void)atomic_fetch_add(&counts.configs_got, 1);
    }
    return status;
}

static void ORT_API_CALL release_config(OrtEpContextConfig *config)
{
    if (config != NULL) {
        (void)atomic_fetch_add(&counts.configs_released, 1);
    }
    witness.release_config(config);
}

/* ORT 1.28 to 1.30: functions by name. */
static oc_function ORT_API_CALL experimental(const char *name)
{
    const oc_function found = witness.experimental(name);

    if (found != NULL && strcmp(name, "OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28") == 0) {
        witness.get_config = (get_config_function)found;
        return (oc_function)get_config;
    }
    if (found != NULL && strcmp(name, "OrtEpApi_ReleaseEpContextConfig_SinceV28") == 0) {
        witness.release_config = (release_config_function)found;
        return (oc_function)release_config;
    }
    return found;
}

static void unload(void)
{
    if (witness.library != NULL) {
        (void)dlclose(witness.library);
    }
    oc_interpose_free(witness.interpose);
    witness.library = NULL;
    witness.interpose = NULL;
}

static OrtStatus *load(const OrtApi *api, create_function *create)
{
    witness.library = dlopen(counts.library, RTLD_NOW | RTLD_LOCAL);
    if (witness.library == NULL) {
        return api->CreateStatus(ORT_FAIL, dlerror());
    }
    *create = (create_function)dlsym(witness.library, "CreateEpFactories");
    witness.release = (release_function)dlsym(witness.library, "ReleaseEpFactory");
    return *create != NULL && witness.release != NULL ? NULL : api->CreateStatus(ORT_FAIL, "it is no library of execution providers");
}

static void replace(void)
{
    const unsigned minor = oc_interpose_minor(witness.interpose);

    (void)oc_interpose_replace(witness.interpose, OC_TABLE_API, OC_SLOT(OrtApi, GetAllocatorWithDefaultOptions),
                               (oc_function)default_allocator, (oc_function *)&witness.get_allocator);
    if (minor >= OC_EP_FIRST_STABLE) {
        (void)oc_interpose_replace(witness.interpose, OC_TABLE_EP, SLOT_GET_CONFIG, (oc_function)get_config,
                                   (oc_function *)&witness.get_config);
        (void)oc_interpose_replace(witness.interpose, OC_TABLE_EP, SLOT_RELEASE_CONFIG, (oc_function)release_config,
                                   (oc_function *)&witness.release_config);
    } else if (minor >= OC_EP_FIRST_EXPERIMENTAL) {
        (void)oc_interpose_replace(witness.interpose, OC_TABLE_API, SLOT_EXPERIMENTAL, (oc_function)experimental,
                                   (oc_function *)&witness.experimental);
    }
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                             size_t *count)
{
    create_function create = NULL;
    OrtStatus *status = oc_interpose_new(&witness.interpose, base, NULL);

    if (status != NULL || witness.interpose == NULL) {
        return status;
    }
    counts.allocator = &witness.ours;
    counts.free_own = free_own;
    replace();
    status = load(oc_interpose_real(witness.interpose), &create);
    if (status == NULL) {
        status = create(name, oc_interpose_base(witness.interpose), logger, factories, max, count);
    }
    if (status != NULL) {
        unload();
        return status;
    }
    witness.factories = *count;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    OrtStatus *const status = witness.release(factory);

    if (--witness.factories == 0) {
        unload();
    }
    return status;
}
