/* sly_ep/sly_ep.c: the reference EP's factory with another Compile, and the thread that is there from the first moment. */
#include "sly.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <onnxruntime_c_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef OrtStatus *(*create_fn)(const char *, const OrtApiBase *, const OrtLogger *, OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_fn)(OrtEpFactory *);

EXPORT OrtStatus *CreateEpFactories(const char *registration_name, const OrtApiBase *base, const OrtLogger *logger,
                                    OrtEpFactory **factories, size_t max_factories, size_t *factory_count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static struct {
    void *library;
    const OrtApi *api;
    OrtStatus *(ORT_API_CALL *create_ep)(OrtEpFactory *, const OrtHardwareDevice *const *, const OrtKeyValuePairs *const *, size_t,
                                         const OrtSessionOptions *, const OrtLogger *, OrtEp **);
    OrtStatus *(ORT_API_CALL *compile)(OrtEp *, const OrtGraph **, const OrtNode **, size_t, OrtNodeComputeInfo **, OrtNode **);
} real;

/* The early thread: it waits for one job from the constructor on. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const sly *job;
    const char *path;
    int result;
    bool done;
} early = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *early_thread(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&early.mutex);
    while (early.job == NULL) {
        pthread_cond_wait(&early.changed, &early.mutex);
    }
    early.result = sly_write_file(early.job, early.path, O_CREAT);
    early.done = true;
    pthread_cond_broadcast(&early.changed);
    pthread_mutex_unlock(&early.mutex);
    return NULL;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, early_thread, NULL) == 0) {
        (void)pthread_detach(thread);
    }
}

int sly_early_write(const sly *s, const char *path)
{
    pthread_mutex_lock(&early.mutex);
    early.job = s;
    early.path = path;
    pthread_cond_broadcast(&early.changed);
    while (!early.done) {
        pthread_cond_wait(&early.changed, &early.mutex);
    }
    pthread_mutex_unlock(&early.mutex);
    return early.result;
}

static void try_all(const sly *s, const sly_way *ways)
{
    for (; ways->name != NULL; ways++) {
        const int result = ways->go(s);
        (void)dprintf(STDERR_FILENO, "sly %s %s\n", ways->name, result == SLY_THROUGH ? "through" : result == SLY_HELD ? "held" : "absent");
    }
}

/* The decrypted weight that begins with SLY_MARKER, as a string of that length; NULL when this graph has none. */
static char *find_plaintext(const OrtGraph *graph, const char *marker)
{
    const OrtValueInfo *infos[16];
    size_t count = 0;
    char *found = NULL;
    if (real.api->Graph_GetNumInitializers(graph, &count) != NULL || count > 16 ||
        real.api->Graph_GetInitializers(graph, infos, count) != NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count && found == NULL; i++) {
        const OrtValue *value = NULL;
        const void *data = NULL;
        size_t len = 0;
        if (real.api->ValueInfo_GetInitializerValue(infos[i], &value) == NULL && value != NULL &&
            real.api->GetTensorSizeInBytes(value, &len) == NULL && real.api->GetTensorData(value, &data) == NULL &&
            len >= strlen(marker) && memcmp(data, marker, strlen(marker)) == 0) {
            found = strndup(data, strlen(marker));
        }
    }
    return found;
}

static int number_of(const char *name)
{
    const char *const text = getenv(name);
    return text != NULL ? atoi(text) : -1;
}

static OrtStatus *ORT_API_CALL sly_compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **nodes, size_t count,
                                           OrtNodeComputeInfo **infos, OrtNode **contexts) NO_EXCEPTION
{
    const char *const marker = getenv("SLY_MARKER");
    const char *const address = getenv("SLY_ADDRESS");
    char *const text = count > 0 && marker != NULL ? find_plaintext(graphs[0], marker) : NULL;
    if (text != NULL && !early.done) { /* once a process: the early thread does one thing only */
        const sly s = {.text = text, .len = strlen(text), .room = getenv("SLY_ROOM"), .bundle = getenv("SLY_BUNDLE"),
                       .fd = number_of("SLY_FD"), .pid = number_of("SLY_PID"),
                       .address = (void *)(uintptr_t)strtoull(address != NULL ? address : "0", NULL, 10),
                       .tcp_port = number_of("SLY_TCP"), .udp_port = number_of("SLY_UDP")};
        try_all(&s, SLY_FILES);
        try_all(&s, SLY_CHANNELS);
    }
    free(text);
    return real.compile(ep, graphs, nodes, count, infos, contexts);
}

static OrtStatus *ORT_API_CALL sly_create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                             const OrtKeyValuePairs *const *metadata, size_t count, const OrtSessionOptions *options,
                                             const OrtLogger *logger, OrtEp **ep) NO_EXCEPTION
{
    OrtStatus *const status = real.create_ep(factory, devices, metadata, count, options, logger, ep);
    if (status == NULL) {
        real.compile = (*ep)->Compile;
        (*ep)->Compile = sly_compile;
    }
    return status;
}

OrtStatus *CreateEpFactories(const char *registration_name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
                             size_t max_factories, size_t *factory_count)
{
    const char *const path = getenv("SLY_REFERENCE");
    real.api = base->GetApi(23);
    real.library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *const symbol = real.library != NULL ? dlsym(real.library, "CreateEpFactories") : NULL;
    create_fn create = NULL;
    memcpy(&create, &symbol, sizeof create);
    if (create == NULL) {
        return real.api->CreateStatus(ORT_FAIL, "SLY_REFERENCE is not the reference EP's library");
    }
    OrtStatus *const status = create(registration_name, base, logger, factories, max_factories, factory_count);
    if (status == NULL && *factory_count == 1) {
        real.create_ep = factories[0]->CreateEp;
        factories[0]->CreateEp = sly_create_ep;
    }
    return status;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    void *const symbol = dlsym(real.library, "ReleaseEpFactory");
    release_fn release = NULL;
    memcpy(&release, &symbol, sizeof release);
    return release(factory);
}
