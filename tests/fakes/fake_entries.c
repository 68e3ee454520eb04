/* Entries of session options. */
#include <stdio.h>
#include <string.h>

#include "fake_objects.h"

/* The place of a key; ENTRIES_MAX: there is none. "" gives the first free place. */
static size_t find(const OrtSessionOptions *options, const char *key)
{
    size_t at = 0;

    while (at < ENTRIES_MAX && strcmp(options->keys[at], key) != 0) {
        at++;
    }
    return at;
}

static OrtStatus *ORT_API_CALL add_entry(OrtSessionOptions *options, const char *key, const char *value) NO_EXCEPTION
{
    size_t at = find(options, key);

    NOTE(AddSessionConfigEntry);
    at = at < ENTRIES_MAX ? at : find(options, "");
    if (at == ENTRIES_MAX || strlen(key) >= ENTRY_SIZE || strlen(value) >= ENTRY_SIZE) {
        return fake_error(ORT_INVALID_ARGUMENT, "too many entries, or too long ones");
    }
    (void)snprintf(options->keys[at], ENTRY_SIZE, "%s", key);
    (void)snprintf(options->values[at], ENTRY_SIZE, "%s", value);
    return NULL;
}

static OrtStatus *ORT_API_CALL has_entry(const OrtSessionOptions *options, const char *key, int *present) NO_EXCEPTION
{
    NOTE(HasSessionConfigEntry);
    *present = find(options, key) < ENTRIES_MAX;
    return NULL;
}

static OrtStatus *ORT_API_CALL get_entry(const OrtSessionOptions *options, const char *key, char *value, size_t *size) NO_EXCEPTION
{
    const size_t at = find(options, key);

    NOTE(GetSessionConfigEntry);
    if (at == ENTRIES_MAX) {
        return fake_error(ORT_FAIL, "there is no such entry");
    }
    const size_t needed = strlen(options->values[at]) + 1;
    if (value != NULL && *size < needed) {
        return fake_error(ORT_FAIL, "the place is too small");
    }
    if (value != NULL) {
        memcpy(value, options->values[at], needed);
    }
    *size = needed;
    return NULL;
}

void fake_put_entries(OrtApi *api)
{
    api->AddSessionConfigEntry = add_entry;
    api->HasSessionConfigEntry = has_entry;
    api->GetSessionConfigEntry = get_entry;
}
