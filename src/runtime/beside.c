/* Files that belong to this library and lie beside it, wherever it was built or installed. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/private.h"

ortcrypt_status oc_find_beside(char **out, const char *const *places, size_t count, const char *name, int mode, ortcrypt_error *err)
{
    static const char here; /* an address in this library */
    char file[PATH_MAX];
    char path[PATH_MAX + 128];
    Dl_info info;

    *out = NULL;
    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, file) == NULL) {
        return ORTCRYPT_OK;
    }
    *(strrchr(file, '/') + 1) = '\0';
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "%s%s%s", file, places[i], name);
        if (access(path, mode) == 0) {
            return oc_strdup(out, path, err);
        }
    }
    return ORTCRYPT_OK;
}
