/* The six callback functions, by name from 1.28 to 1.30 and as members from 1.31 on, with everything they can get wrong. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fake_objects.h"

enum { SET_READ = 426, SET_WRITE = 16, GET_CONFIG = 74, RELEASE_CONFIG, GET_READ, GET_WRITE };
enum { FIRST_NAMES = 28, FIRST_WEIGHTLESS = 29, FIRST_MEMBERS = 31 };

/* Where each of the six is noted when it is called: as a member, or by its name. */
static void note(fake_table table, size_t slot, size_t index)
{
    if (fake_minor >= FIRST_MEMBERS) {
        fake_called(table, slot);
    } else {
        fake_ort.by_name[index] = true;
    }
}

static bool takes_size(void)
{
    return fake_ort.fault == FAKE_SIZE_LIMIT || fake_ort.fault == FAKE_SIZE_LIMIT_OPTIONAL;
}

static OrtStatus *ORT_API_CALL set_read(OrtSessionOptions *options, OrtReadNamedBufferFunc read, void *state, size_t max_len)
{
    note(FAKE_API, SET_READ, 0);
    if (options == NULL || fake_ort.fault == FAKE_SET_READ_FAILS) {
        return fake_error(ORT_INVALID_ARGUMENT, "no options");
    }
    if (fake_ort.fault == FAKE_CRASHES) {
        (void)raise(SIGSEGV);
    }
    if (fake_ort.fault == FAKE_SET_READ_FORGETS || (fake_ort.fault == FAKE_NEVER_CLEARED && read == NULL)) {
        return NULL;
    }
    options->callback = (fake_callback){read, read != NULL ? state : NULL, takes_size() ? max_len : 0};
    return NULL;
}

static OrtStatus *ORT_API_CALL set_write(OrtModelCompilationOptions *options, OrtWriteNamedBufferFunc write, void *state)
{
    (void)write;
    (void)state;
    note(FAKE_COMPILE, SET_WRITE, 1);
    return options != NULL || fake_ort.fault == FAKE_SET_WRITE_BLIND ? NULL : fake_error(ORT_INVALID_ARGUMENT, "no options");
}

static OrtStatus *ORT_API_CALL get_config(const OrtSessionOptions *options, OrtEpContextConfig **config)
{
    note(FAKE_EP, GET_CONFIG, 2);
    if (options == NULL || config == NULL || fake_ort.fault == FAKE_CONFIG_FAILS) {
        return fake_error(ORT_INVALID_ARGUMENT, "no options");
    }
    *config = NULL;
    if (fake_ort.fault != FAKE_CONFIG_NULL) {
        *config = calloc(1, sizeof(**config));
        if (*config == NULL) {
            abort();
        }
        (*config)->callback = options->callback;
        fake_ort.live++;
    }
    return NULL;
}

static void ORT_API_CALL release_config(OrtEpContextConfig *config)
{
    note(FAKE_EP, RELEASE_CONFIG, 3);
    fake_ort.live -= config != NULL;
    free(config);
}

static OrtStatus *ORT_API_CALL another_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *len)
{
    (void)state;
    (void)name;
    (void)allocator;
    (void)buffer;
    (void)len;
    abort();
}

static OrtStatus *ORT_API_CALL invented_write(void *state, const char *name, const void *buffer, size_t len)
{
    (void)state;
    (void)name;
    (void)buffer;
    (void)len;
    abort();
}

static OrtStatus *ORT_API_CALL get_read(const OrtEpContextConfig *config, OrtReadNamedBufferFunc *read, void **state, size_t *max_len)
{
    note(FAKE_EP, GET_READ, 4);
    if (config == NULL || read == NULL || state == NULL || fake_ort.fault == FAKE_GET_READ_FAILS ||
        (fake_ort.fault == FAKE_SIZE_LIMIT && max_len == NULL)) {
        return fake_error(ORT_INVALID_ARGUMENT, "no configuration");
    }
    *read = fake_ort.fault == FAKE_WRONG_FUNCTION ? another_read : config->callback.read;
    *state = fake_ort.fault == FAKE_WRONG_STATE ? &fake_ort : config->callback.state;
    if (takes_size() && max_len != NULL) {
        *max_len = config->callback.max_len;
    }
    return NULL;
}

static OrtStatus *ORT_API_CALL get_write(const OrtEpContextConfig *config, OrtWriteNamedBufferFunc *write, void **state)
{
    note(FAKE_EP, GET_WRITE, 5);
    if (config == NULL || write == NULL || state == NULL || fake_ort.fault == FAKE_GET_WRITE_FAILS) {
        return fake_error(ORT_INVALID_ARGUMENT, "no configuration");
    }
    *write = fake_ort.fault == FAKE_WRITE_INVENTED ? invented_write : NULL;
    *state = NULL;
    return NULL;
}

static OrtStatus *ORT_API_CALL set_source(OrtSessionOptions *options, const void *data, size_t len) NO_EXCEPTION
{
    NOTE(SessionOptionsSetWeightlessSourceModelBuffer);
    options->source = data;
    options->source_len = len;
    return NULL;
}

static OrtStatus *ORT_API_CALL get_source(const OrtSessionOptions *options, const void **data, size_t *len) NO_EXCEPTION
{
    fake_called(FAKE_EP, offsetof(OrtEpApi, SessionOptionsGetWeightlessSourceModelBuffer) / sizeof(void *));
    *data = options->source;
    *len = options->source_len - (fake_ort.fault == FAKE_WEIGHTLESS_DIFFERS);
    return NULL;
}

/* In the seed's order. */
static const struct {
    const char *name;
    fake_table table;
    size_t slot;
    fake_function function;
} six[] = {
    {"OrtApi_SessionOptions_SetEpContextDataReadFunc_SinceV28", FAKE_API, SET_READ, (fake_function)set_read},
    {"OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc_SinceV28", FAKE_COMPILE, SET_WRITE, (fake_function)set_write},
    {"OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28", FAKE_EP, GET_CONFIG, (fake_function)get_config},
    {"OrtEpApi_ReleaseEpContextConfig_SinceV28", FAKE_EP, RELEASE_CONFIG, (fake_function)release_config},
    {"OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28", FAKE_EP, GET_READ, (fake_function)get_read},
    {"OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28", FAKE_EP, GET_WRITE, (fake_function)get_write},
};

static OrtExperimentalFnPtr ORT_API_CALL by_name(const char *name) NO_EXCEPTION
{
    NOTE(GetExperimentalFunction);
    for (size_t i = 0; fake_minor < FIRST_MEMBERS && fake_ort.fault != FAKE_NO_NAMES && i < sizeof six / sizeof *six; i++) {
        if (strcmp(six[i].name, name) == 0) {
            return (OrtExperimentalFnPtr)six[i].function;
        }
    }
    return NULL;
}

void fake_put_callbacks(fake_function *slots, fake_table table, unsigned minor)
{
    for (size_t i = 0; minor >= FIRST_MEMBERS && i < sizeof six / sizeof *six; i++) {
        const size_t shift = fake_ort.fault == FAKE_SHIFTED && fake_minor > 32;
        if (six[i].table == table) {
            slots[six[i].slot + shift] = fake_ort.fault == FAKE_NO_SLOT && i == 0 ? NULL : six[i].function;
        }
    }
    if (table == FAKE_API && minor >= FIRST_NAMES) {
        ((OrtApi *)(void *)slots)->GetExperimentalFunction = by_name;
    }
    if (table == FAKE_API && minor >= FIRST_WEIGHTLESS) {
        ((OrtApi *)(void *)slots)->SessionOptionsSetWeightlessSourceModelBuffer = set_source;
    }
    if (table == FAKE_EP && minor >= FIRST_WEIGHTLESS) {
        ((OrtEpApi *)(void *)slots)->SessionOptionsGetWeightlessSourceModelBuffer = get_source;
    }
}
