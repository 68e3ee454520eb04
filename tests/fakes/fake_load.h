/* fakes/fake_load.h: loading a fake ONNX Runtime of a version. */
#ifndef FAKE_LOAD_H
#define FAKE_LOAD_H

#include <dlfcn.h>

#include "fakes/fake_ort.h"
#include "ort/test_flow_rig.h"

/* Minor versions: the first supported, the first with names, the first with members, the newest known, one that is not there yet. */
enum { FIRST = 23, NAMES = 28, MEMBERS = 31, PROVEN = 32, NEWER = 33 };

typedef struct fake {
    char path[1024];
    const OrtApiBase *base;
    fake_control *control;
} fake;

static inline void *fake_symbol(void *library, const char *name)
{
    void *const symbol = dlsym(library, name);
    assert_non_null(symbol);
    return symbol;
}

/* One library per version; it stays loaded, so its control is set back. */
static inline fake load(unsigned minor)
{
    static char versions[FAKE_VERSION_MAX][16];
    const OrtApiBase *(*get_base)(void) = NULL;
    fake_control_fn get_control = NULL;
    fake f;

    (void)snprintf(f.path, sizeof f.path, "%s/fakes/libfake_ort_%u.so", oc_test_env("ORTCRYPT_BUILD"), minor);
    void *const library = dlopen(f.path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    void *symbol = fake_symbol(library, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof get_base);
    symbol = fake_symbol(library, "fake_ort_control");
    memcpy(&get_control, &symbol, sizeof get_control);
    f.base = get_base();
    f.control = get_control();
    assert_int_equal(f.control->live, 0);
    (void)snprintf(versions[minor], sizeof versions[minor], "1.%u.0", minor);
    *f.control = (fake_control){.version = versions[minor]};
    return f;
}

#endif
