/* cli/cache.h: cli_cache_find -> hand the members to ortcrypt_session_options -> cli_cache_free. */
#ifndef CLI_CACHE_H
#define CLI_CACHE_H

#include "cli.h"

typedef struct cli_cache {
    char *folder; /* NULL: no cache, and machine_key is NULL too */
    char *machine_key;
    uint64_t max_len; /* bytes; 0: the library's default */
} cli_cache;

/* --cache, --machine-key, --cache-max, --no-cache; else XDG_CACHE_HOME, XDG_DATA_HOME and HOME. Touches no file. */
ortcrypt_status cli_cache_find(cli_cache *cache, const cli_args *args, ortcrypt_error *err);
void cli_cache_free(cli_cache *cache);

#endif
