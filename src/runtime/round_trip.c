/*
 * Set, get and compare on options nobody uses: proves that the callback functions are where this version is believed to have
 * them and take what they are believed to take. The calls carry three more arguments than the functions have: a function that
 * takes more than we know then changes the words they point at, or refuses NULL, instead of writing where garbage points.
 */
#include <string.h>

#include "os/attempt.h"
#include "runtime/functions.h"
#include "runtime/private.h"

enum { TRIP_LIMIT_MS = 10000 }; /* for a few microseconds of work */

/* What can be wrong; small numbers, because they come out of a child process. */
enum flaw {
    FLAW_NONE,
    FLAW_READ_REFUSED,
    FLAW_READ_DIFFERS,
    FLAW_WRITE_REFUSED,
    FLAW_WRITE_INVENTED,
    FLAW_ARGUMENTS,
    FLAW_SET_REFUSED,
    FLAW_NO_CONFIG,
    FLAW_WRITE_UNCHECKED,
    FLAW_WEIGHTLESS,
    FLAW_NO_OPTIONS,
};

static const char *const flaw_texts[] = {
    [FLAW_NONE] = NULL,
    [FLAW_READ_REFUSED] = "refuses to say which read callback was set",
    [FLAW_READ_DIFFERS] = "does not give back the read callback that was set",
    [FLAW_WRITE_REFUSED] = "refuses to say which write callback was set",
    [FLAW_WRITE_INVENTED] = "gives a write callback where none was set",
    [FLAW_ARGUMENTS] = "has callback functions with more arguments than are known",
    [FLAW_SET_REFUSED] = "refuses a read callback",
    [FLAW_NO_CONFIG] = "gives no EPContext configuration",
    [FLAW_WRITE_UNCHECKED] = "accepts a write callback without options to set it on",
    [FLAW_WEIGHTLESS] = "does not give back the source of a model without weights",
    [FLAW_NO_OPTIONS] = "makes no session options",
};

typedef OrtStatus *(ORT_API_CALL *wide_set_read)(OrtSessionOptions *, OrtReadNamedBufferFunc, void *, void *, void *, void *);
typedef OrtStatus *(ORT_API_CALL *wide_set_write)(OrtModelCompilationOptions *, OrtWriteNamedBufferFunc, void *, void *, void *, void *);
typedef OrtStatus *(ORT_API_CALL *wide_get_config)(const OrtSessionOptions *, OrtEpContextConfig **, void *, void *, void *);
typedef OrtStatus *(ORT_API_CALL *wide_get_read)(const OrtEpContextConfig *, OrtReadNamedBufferFunc *, void **, void *, void *, void *);
typedef OrtStatus *(ORT_API_CALL *wide_get_write)(const OrtEpContextConfig *, OrtWriteNamedBufferFunc *, void **, void *, void *, void *);

typedef struct trip {
    const ortcrypt_runtime *runtime;
    wide_set_read set_read;
    wide_set_write set_write;
    wide_get_config get_config;
    wide_get_read get_read;
    wide_get_write get_write;
    OrtSessionOptions *options;
    int mark;           /* its address is the state that travels */
    size_t watched[3];  /* what the arguments too many point at */
} trip;

/* Never called: only their addresses travel. */
static OrtStatus *ORT_API_CALL scratch_read(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *data_size)
{
    (void)state;
    (void)name;
    (void)allocator;
    *buffer = NULL;
    *data_size = 0;
    return NULL;
}

static OrtStatus *ORT_API_CALL scratch_write(void *state, const char *name, const void *buffer, size_t len)
{
    (void)state;
    (void)name;
    (void)buffer;
    (void)len;
    return NULL;
}

/* One function pointer under another type of the same width. */
#define WIDEN(to, from) memcpy(&(to), &(from), sizeof(to))

static void widen(trip *t)
{
    const ortcrypt_ep_context_api *const six = &t->runtime->ep_context;

    WIDEN(t->set_read, six->SessionOptions_SetEpContextDataReadFunc);
    WIDEN(t->set_write, six->ModelCompilationOptions_SetEpContextDataWriteFunc);
    WIDEN(t->get_config, six->SessionOptions_GetEpContextConfig);
    WIDEN(t->get_read, six->EpContextConfig_GetEpContextDataReadFunc);
    WIDEN(t->get_write, six->EpContextConfig_GetEpContextDataWriteFunc);
}

static bool accepted(const trip *t, OrtStatus *status)
{
    if (status != NULL) {
        t->runtime->api->ReleaseStatus(status);
    }
    return status == NULL;
}

static bool unchanged(const trip *t)
{
    return t->watched[0] == 1 && t->watched[1] == 2 && t->watched[2] == 3;
}

/* What `config` says is what was set: `read` with the mark, or (NULL) nothing; and no write callback either way. */
static enum flaw compare(trip *t, const OrtEpContextConfig *config, OrtReadNamedBufferFunc expected)
{
    void *const expected_state = expected != NULL ? &t->mark : NULL;

    for (int pass = 0; pass < 2; pass++) { /* more arguments: all NULL, then all something */
        OrtReadNamedBufferFunc read = NULL;
        void *state = NULL;
        size_t *const more = pass != 0 ? t->watched : NULL;
        if (!accepted(t, t->get_read(config, &read, &state, more, more != NULL ? more + 1 : NULL, more != NULL ? more + 2 : NULL))) {
            return FLAW_READ_REFUSED;
        }
        if (read != expected || state != expected_state) {
            return FLAW_READ_DIFFERS;
        }
    }
    OrtWriteNamedBufferFunc write = scratch_write;
    void *state = &t->mark;
    if (!accepted(t, t->get_write(config, &write, &state, &t->watched[0], &t->watched[1], &t->watched[2]))) {
        return FLAW_WRITE_REFUSED;
    }
    if (write != NULL || state != NULL) {
        return FLAW_WRITE_INVENTED;
    }
    return unchanged(t) ? FLAW_NONE : FLAW_ARGUMENTS;
}

static enum flaw set_and_get(trip *t, OrtReadNamedBufferFunc read)
{
    OrtEpContextConfig *config = NULL;

    if (!accepted(t, t->set_read(t->options, read, &t->mark, NULL, NULL, NULL))) {
        return FLAW_SET_REFUSED;
    }
    if (!accepted(t, t->get_config(t->options, &config, NULL, NULL, NULL)) || config == NULL) {
        return FLAW_NO_CONFIG;
    }
    const enum flaw flaw = compare(t, config, read);
    t->runtime->ep_context.ReleaseEpContextConfig(config);
    return flaw;
}

/* A write callback is seen by EPs alone, so its setter shows only that it looks at its options. */
static enum flaw refuse_write(const trip *t)
{
    const OrtApi *const api = t->runtime->api;
    OrtStatus *const status = t->set_write(NULL, scratch_write, NULL, NULL, NULL, NULL);
    const bool invalid = status != NULL && api->GetErrorCode(status) == ORT_INVALID_ARGUMENT;

    (void)accepted(t, status);
    return invalid ? FLAW_NONE : FLAW_WRITE_UNCHECKED;
}

static enum flaw weightless(const trip *t)
{
    static const char source[] = "source";
    const OrtApi *const api = t->runtime->api;
    const void *data = NULL;
    size_t len = 0;

    if (!oc_runtime_has(t->runtime, "SessionOptionsSetWeightlessSourceModelBuffer") ||
        !oc_runtime_has(t->runtime, "SessionOptionsGetWeightlessSourceModelBuffer")) {
        return FLAW_NONE;
    }
    if (!accepted(t, api->SessionOptionsSetWeightlessSourceModelBuffer(t->options, source, sizeof(source))) ||
        !accepted(t, api->GetEpApi()->SessionOptionsGetWeightlessSourceModelBuffer(t->options, &data, &len)) || data != source || len != sizeof(source)) {
        return FLAW_WEIGHTLESS;
    }
    return FLAW_NONE;
}

static enum flaw travel(const ortcrypt_runtime *runtime)
{
    trip t = {.runtime = runtime, .watched = {1, 2, 3}};

    widen(&t);
    if (!accepted(&t, runtime->api->CreateSessionOptions(&t.options)) || t.options == NULL) {
        return FLAW_NO_OPTIONS;
    }
    enum flaw flaw = set_and_get(&t, scratch_read);
    if (flaw == FLAW_NONE) {
        flaw = set_and_get(&t, NULL);
    }
    if (flaw == FLAW_NONE) {
        flaw = refuse_write(&t);
    }
    if (flaw == FLAW_NONE) {
        flaw = weightless(&t);
    }
    runtime->api->ReleaseSessionOptions(t.options);
    return flaw;
}

static int travel_in_child(void *state) { return (int)travel(state); }

const char *oc_round_trip(ortcrypt_runtime *runtime)
{
    if (runtime->minor <= OC_RUNTIME_MINOR_PROVEN) {
        return flaw_texts[travel(runtime)];
    }
    const int result = oc_attempt(travel_in_child, runtime, TRIP_LIMIT_MS); /* what is not known may be anything */
    if (result == OC_ATTEMPT_NO_CHILD) {
        return "cannot be tried in a process of its own";
    }
    if (result == OC_ATTEMPT_HUNG) {
        return "does not come back from its callback functions";
    }
    return result < (int)(sizeof(flaw_texts) / sizeof(flaw_texts[0])) ? flaw_texts[result] : "crashes in its callback functions";
}
