/* Finding, making and replacing the entry of a bundle's state in the cache of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/cache.h"
#include "flow/output.h"
#include "store/cache.h"

bool oc_cache_unusable(ortcrypt_status status)
{
    return status == ORTCRYPT_E_IO || status == ORTCRYPT_E_BUSY || status == ORTCRYPT_E_UNSUPPORTED || status == ORTCRYPT_E_EXISTS;
}

static ortcrypt_status join(char **out, const char *folder, const char *name, ortcrypt_error *err)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *const path = malloc(size);

    if (path == NULL) {
        return oc_fail_memory(err, size, "a path");
    }
    (void)snprintf(path, size, "%s/%s", folder, name);
    *out = path;
    return ORTCRYPT_OK;
}

static ortcrypt_status fill(oc_cache *cache, ortcrypt_error *err)
{
    const ortcrypt_session_options *const o = cache->options;
    ortcrypt_bundle_info info;

    ortcrypt_bundle_get_info(cache->origin, &info);
    (void)snprintf(cache->name, sizeof(cache->name), "%s", info.manifest_id);
    ortcrypt_status st = oc_strdup(&cache->root, o->cache, err);
    if (st == ORTCRYPT_OK) {
        st = join(&cache->folder, cache->root, info.bundle_id, err);
    }
    if (st == ORTCRYPT_OK) {
        st = join(&cache->path, cache->folder, cache->name, err);
    }
    if (st == ORTCRYPT_OK) {
        st = o->machine_key != NULL ? oc_secret_copy(&cache->key, o->machine_key, o->machine_key_len, err)
                                    : oc_machine_key_read(&cache->key, o->machine_key_file, err);
    }
    return st == ORTCRYPT_OK ? oc_folders_make(cache->folder, err) : st;
}

ortcrypt_status oc_cache_open(oc_cache **out, ortcrypt_runtime *runtime, ortcrypt_bundle *origin, const oc_choice *choice,
                              const ortcrypt_session_options *options, ortcrypt_error *err)
{
    oc_cache *const cache = calloc(1, sizeof(*cache));

    if (cache == NULL) {
        return oc_fail_memory(err, sizeof(*cache), "a cache");
    }
    cache->runtime = runtime;
    cache->origin = origin;
    cache->options = options;
    cache->choice = *choice;
    cache->max_len = options->cache_max_len != 0 ? options->cache_max_len : OC_CACHE_MAX_LEN;
    oc_bundle_hold(origin);
    const ortcrypt_status st = fill(cache, err);
    if (st != ORTCRYPT_OK) {
        oc_cache_close(cache);
        return st;
    }
    *out = cache;
    return ORTCRYPT_OK;
}

void oc_cache_close(oc_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    if (cache->added) {
        oc_cache_trim(cache->root, cache->max_len);
    }
    oc_secret_free(&cache->key);
    free(cache->root);
    free(cache->folder);
    free(cache->path);
    oc_bundle_release(cache->origin);
    free(cache);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool same_options(const oc_variant *variant, const ortcrypt_session_options *options)
{
    bool same = variant->option_count == options->ep_option_count;

    for (size_t i = 0; i < options->ep_option_count && same; i++) {
        const char *const value = oc_pair_get(variant->options, variant->option_count, options->ep_option_keys[i]);
        same = value != NULL && strcmp(value, options->ep_option_values[i]) == 0;
    }
    return same;
}

/*
 * Stricter than for a bundle's variants, since compiling again is what a cache is for: everything that was recorded must be as it is
 * here, and the EP must not have second thoughts.
 */
static bool fits(const oc_cache *cache, const oc_variant *variant)
{
    const OrtApi *const api = ortcrypt_runtime_api(cache->runtime);
    const char *const version = api->GetKeyValue(api->EpDevice_EpMetadata(cache->choice.device), "version");

    if (!same_text(variant->kind, "compiled") || !same_text(variant->ep, cache->choice.ep) || !same_text(variant->ep_version, version) ||
        !same_text(variant->runtime, ortcrypt_runtime_version(cache->runtime)) || !same_options(variant, cache->options)) {
        return false;
    }
    const OrtCompiledModelCompatibility judgement = oc_judge(cache->runtime, cache->choice.device, variant, cache->options->monitor);
    return judgement == OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL || judgement == OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
}

/* ORTCRYPT_E_NOT_FOUND when there is no entry or nothing in it fits. */
static ortcrypt_status find(ortcrypt_bundle **local, const oc_variant **variant, oc_cache *cache, ortcrypt_error *err)
{
    ortcrypt_bundle *found = NULL;

    const ortcrypt_status st = oc_local_open(&found, cache->path, cache->origin, cache->key.data, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    const oc_manifest *const manifest = oc_bundle_manifest(found);
    *variant = NULL;
    for (size_t i = manifest->variant_count; i-- > 0 && *variant == NULL;) {
        if (fits(cache, &manifest->variants[i])) {
            *variant = &manifest->variants[i];
        }
    }
    if (*variant == NULL) {
        oc_local_close(found);
        return oc_fail(err, ORTCRYPT_E_NOT_FOUND, "the cache has no variant of %s for this runtime", cache->choice.ep);
    }
    oc_cache_touch(cache->path);
    *local = found;
    return ORTCRYPT_OK;
}

/* An entry that cannot be opened for what is in it, not for want of memory. */
static bool is_bad(ortcrypt_status status)
{
    return status == ORTCRYPT_E_NOT_AUTHENTIC || status == ORTCRYPT_E_FORMAT || status == ORTCRYPT_E_UNSUPPORTED ||
           status == ORTCRYPT_E_IO || status == ORTCRYPT_E_LIMIT;
}

static ortcrypt_status drop(const oc_cache *cache, const char *why, ortcrypt_error *err)
{
    oc_notice(cache->options->monitor, "what the cache has for this bundle is ignored, and compiled again: %s", why);
    if (!oc_cache_remove(cache->folder, cache->name)) {
        return oc_fail(err, ORTCRYPT_E_BUSY, "%s cannot be removed: it is in use, or belongs to another user", cache->path);
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status compile(oc_cache *cache, ortcrypt_error *err)
{
    const ortcrypt_session_options *const o = cache->options;
    const ortcrypt_compile_options options = {
        .struct_size = sizeof(options),
        .ep = cache->choice.ep,
        .ep_library = o->ep_library,
        .ep_option_keys = o->ep_option_keys,
        .ep_option_values = o->ep_option_values,
        .ep_option_count = o->ep_option_count,
        .base = o->base,
        .monitor = o->monitor,
        .optimize = ORTCRYPT_OPTIMIZE_BASIC, /* what an ordinary session does before the EP sees the graph */
    };
    ortcrypt_output *output = NULL;

    ortcrypt_status st = oc_output_open_local(&output, cache->runtime, cache->origin, cache->path, cache->key.data, &options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_output_compile(output, err);
    }
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_output_commit(output, NULL, err);
    }
    ortcrypt_output_close(output);
    return st;
}

/* Under the lock: another process may have made the entry while this one waited. */
static ortcrypt_status make(ortcrypt_bundle **local, const oc_variant **variant, bool *fresh, oc_cache *cache, const char *broken,
                            ortcrypt_error *err)
{
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = ORTCRYPT_OK;

    if (broken != NULL) {
        st = drop(cache, broken, err);
    } else {
        st = find(local, variant, cache, &reason);
        if (st == ORTCRYPT_OK) {
            return st;
        }
        st = is_bad(st) ? drop(cache, reason.message, err) : st == ORTCRYPT_E_NOT_FOUND ? ORTCRYPT_OK : st;
        if (st != ORTCRYPT_OK && st == reason.status && err != NULL) {
            *err = reason;
        }
    }
    if (st == ORTCRYPT_OK) {
        st = compile(cache, err);
    }
    if (st == ORTCRYPT_OK) {
        st = find(local, variant, cache, err);
    }
    if (st == ORTCRYPT_OK) {
        *fresh = true;
        cache->added = true;
        oc_cache_trim(cache->root, cache->max_len); /* not this one: it is open */
    }
    return st;
}

static ortcrypt_status make_locked(ortcrypt_bundle **local, const oc_variant **variant, bool *fresh, oc_cache *cache, const char *broken,
                                   ortcrypt_error *err)
{
    const unsigned wait_ms = cache->options->cache_wait_ms != 0 ? cache->options->cache_wait_ms : OC_CACHE_WAIT_MS;
    int lock = -1;

    ortcrypt_status st = oc_cache_lock(&lock, cache->folder, wait_ms, cache->options->monitor, err);
    if (st == ORTCRYPT_OK) {
        st = make(local, variant, fresh, cache, broken, err);
    }
    oc_cache_unlock(lock);
    return st;
}

ortcrypt_status oc_cache_get(ortcrypt_bundle **local, const oc_variant **variant, bool *fresh, oc_cache *cache, ortcrypt_error *err)
{
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;

    *fresh = false;
    const ortcrypt_status st = find(local, variant, cache, &reason);
    if (st == ORTCRYPT_OK || st == ORTCRYPT_E_NO_MEMORY) {
        if (st != ORTCRYPT_OK && err != NULL) {
            *err = reason;
        }
        return st;
    }
    return make_locked(local, variant, fresh, cache, NULL, err);
}

ortcrypt_status oc_cache_renew(ortcrypt_bundle **local, const oc_variant **variant, oc_cache *cache, const ortcrypt_error *reason,
                               ortcrypt_error *err)
{
    bool fresh = false;

    return make_locked(local, variant, &fresh, cache, reason->message, err);
}
