/* What the tests of the ep_context helper share: a real runtime, a scratch folder, expectations. */
#ifndef TEST_EP_CONTEXT_RIG_H
#define TEST_EP_CONTEXT_RIG_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ep_context/internal.h"
#include "support/support.h"

static const OrtApiBase *base;
static const OrtApi *api;
static char folder[64];

static inline const OrtApiBase *load(const char *version)
{
    char path[PATH_MAX];
    const char *const deps = getenv("ORTCRYPT_DEPS");
    assert_non_null(deps);
    (void)snprintf(path, sizeof(path), "%s/ort/%s/libonnxruntime.so.%s", deps, version, version);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept: ORT does not like to be unloaded */
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    const OrtApiBase *(*get)(void) = NULL;
    void *const symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

static inline int setup(void **state)
{
    (void)state;
    base = load("1.32.0");
    api = base->GetApi(23);
    (void)snprintf(folder, sizeof(folder), "/tmp/ortcrypt-epctx-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    oc_test_rm_rf(folder);
    return 0;
}

static inline void ok(OrtStatus *status)
{
    if (status != NULL) {
        print_error("%s\n", api->GetErrorMessage(status));
        api->ReleaseStatus(status);
        fail();
    }
}

static inline void refused(OrtStatus *status, const char *part)
{
    assert_non_null(status);
    if (strstr(api->GetErrorMessage(status), part) == NULL) {
        print_error("expected \"%s\" in: %s\n", part, api->GetErrorMessage(status));
        api->ReleaseStatus(status);
        fail();
    }
    api->ReleaseStatus(status);
}

static inline const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static inline void save(const char *path, const char *text)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    (void)fwrite(text, 1, strlen(text), file);
    assert_int_equal(fclose(file), 0);
}

static inline size_t entries(const char *path)
{
    size_t count = 0;
    DIR *const open = opendir(path);
    assert_non_null(open);
    while (readdir(open) != NULL) {
        count++;
    }
    (void)closedir(open);
    return count - 2;
}

/* The options are released at once: the context is a snapshot. */
static inline ortcrypt_ep_context *open_context(OrtReadNamedBufferFunc reader, void *state)
{
    ortcrypt_ep_context_api six;
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context *context = NULL;
    ok(ortcrypt_ep_context_api_get(base, &six));
    ok(api->CreateSessionOptions(&options));
    if (reader != NULL) {
        ok(six.SessionOptions_SetEpContextDataReadFunc(options, reader, state));
    }
    ok(ortcrypt_ep_context_open(&context, base, options));
    api->ReleaseSessionOptions(options);
    return context;
}

#endif
