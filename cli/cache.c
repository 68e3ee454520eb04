/*
 * cli/cache.c: where `run` keeps what it compiles just in time, by the XDG base directory specification. The library reads no
 * environment: it gets paths.
 */
#include <stdlib.h>
#include <string.h>

#include "cache.h"

/* "$VARIABLE/<rest>" or "$HOME/<below>/<rest>"; NULL and ORTCRYPT_OK when neither is an absolute path, as the specification wants them. */
static ortcrypt_status place(char **out, const char *variable, const char *below, const char *rest, ortcrypt_error *err)
{
    const char *const base = getenv(variable);
    const char *const home = getenv("HOME");
    const bool named = base != NULL && base[0] == '/';
    *out = NULL;
    if (!named && (home == NULL || home[0] != '/')) {
        return ORTCRYPT_OK;
    }
    const char *const folder = named ? base : home;
    const size_t size = strlen(folder) + strlen(below) + strlen(rest) + 3;
    char *const path = malloc(size);
    if (path == NULL) {
        return cli_fail_memory(err);
    }
    (void)snprintf(path, size, "%s%s%s/%s", folder, named ? "" : "/", named ? "" : below, rest);
    *out = path;
    return ORTCRYPT_OK;
}

static ortcrypt_status given(char **out, const char *text, ortcrypt_error *err)
{
    if (text[0] == 0) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--cache and --machine-key need a path");
    }
    *out = strdup(text);
    return *out != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
}

ortcrypt_status cli_cache_find(cli_cache *cache, const cli_args *args, ortcrypt_error *err)
{
    const char *const folder = cli_args_value(args, OPT_CACHE);
    const char *const key = cli_args_value(args, OPT_MACHINE_KEY);
    *cache = (cli_cache){0};
    if (cli_args_has(args, OPT_NO_CACHE)) {
        return folder == NULL && key == NULL && !cli_args_has(args, OPT_CACHE_MAX)
                   ? ORTCRYPT_OK
                   : cli_fail(err, ORTCRYPT_E_INVALID, "--no-cache excludes --cache, --cache-max and --machine-key");
    }
    ortcrypt_status st = folder != NULL ? given(&cache->folder, folder, err)
                                        : place(&cache->folder, "XDG_CACHE_HOME", ".cache", "ortcrypt", err);
    if (st == ORTCRYPT_OK) {
        st = key != NULL ? given(&cache->machine_key, key, err)
                         : place(&cache->machine_key, "XDG_DATA_HOME", ".local/share", "ortcrypt/machine.key", err);
    }
    if (st == ORTCRYPT_OK && (cache->folder == NULL) != (cache->machine_key == NULL)) {
        st = cli_fail(err, ORTCRYPT_E_INVALID, "a cache needs a folder and a machine key, and HOME is not set");
        cli_hint(err, "name both with --cache DIR and --machine-key FILE, or leave the cache out with --no-cache");
    }
    if (st != ORTCRYPT_OK) {
        cli_cache_free(cache);
        return st;
    }
    cache->max_len = cli_args_number(args, OPT_CACHE_MAX, 0);
    if (cli_args_has(args, OPT_CACHE_MAX) && cache->max_len == 0) {
        cache->max_len = 1; /* the library's 0 is its default; nobody's entry has one byte */
    }
    return ORTCRYPT_OK;
}

void cli_cache_free(cli_cache *cache)
{
    free(cache->folder);
    free(cache->machine_key);
    *cache = (cli_cache){0};
}
