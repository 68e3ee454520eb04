/*
 * Flow 2: from a bundle to a running OrtSession. Small models go as an array, large ones without their weights, as an array
 * that is decrypted while ORT parses it, or through a pipe that a thread feeds, so that the whole plaintext model is never in memory of ours.
 */
#include <stdlib.h>
#include <string.h>

#include "flow/cache.h"

#define LOADING "ONNX Runtime does not load this model"

struct ortcrypt_session {
    ortcrypt_inputs *inputs;
    OrtSession *ort;
    char *ep; /* for the plan */
    ortcrypt_bundle *local; /* the cache's entry it was loaded from, or NULL; owned */
    oc_cache *cache;        /* NULL: not asked for, or not needed */
};

static void unload(ortcrypt_session *session)
{
    if (session->ort != NULL) { /* first: ORT and the EP use what `inputs` holds */
        ortcrypt_runtime_api(session->inputs->runtime)->ReleaseSession(session->ort);
        session->ort = NULL;
    }
    ortcrypt_inputs_close(session->inputs);
    session->inputs = NULL;
}

static ortcrypt_status feed(void *state, oc_feeder *feeder, ortcrypt_error *err)
{
    return oc_supply_feed(state, feeder, err);
}

/*
 * ORT may accept a model that was cut where a protobuf may end, so the feeder's verdict counts even when ORT is content. A
 * feeder that was only stopped early (ORT gave up) has nothing to add to ORT's reason.
 */
static ortcrypt_status create_from_pipe(ortcrypt_session *session, const OrtSessionOptions *options, ortcrypt_error *err)
{
    const ortcrypt_inputs *const inputs = session->inputs;
    const OrtApi *const api = ortcrypt_runtime_api(inputs->runtime);
    ortcrypt_error fed_err = ORTCRYPT_ERROR_INIT;
    oc_feeder *feeder = NULL;

    ortcrypt_status st = oc_feeder_open(&feeder, feed, inputs->supply, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = oc_ort_check(inputs->runtime,
                      api->CreateSession(ortcrypt_runtime_env(inputs->runtime), oc_feeder_path(feeder), options, &session->ort),
                      err, LOADING);
    const ortcrypt_status fed = oc_feeder_join(feeder, &fed_err);
    if (fed != ORTCRYPT_OK && (st == ORTCRYPT_OK || fed != ORTCRYPT_E_CANCELLED)) {
        st = fed;
        if (err != NULL) {
            *err = fed_err;
        }
    }
    return st;
}

static ortcrypt_status create_from_array(ortcrypt_session *session, const OrtSessionOptions *options, const ortcrypt_monitor *monitor,
                                         ortcrypt_error *err)
{
    ortcrypt_inputs *const inputs = session->inputs;
    const OrtApi *const api = ortcrypt_runtime_api(inputs->runtime);
    const void *model = NULL;
    size_t model_len = 0;

    ortcrypt_status st = oc_inputs_read_model(inputs, monitor, err);
    if (st == ORTCRYPT_OK) {
        ortcrypt_inputs_model(inputs, &model, &model_len);
        st = oc_ort_check(inputs->runtime,
                          api->CreateSessionFromArray(ortcrypt_runtime_env(inputs->runtime), model, model_len, options, &session->ort),
                          err, LOADING);
    }
    return st;
}

static ortcrypt_status create(ortcrypt_session *session, const OrtSessionOptions *options, const ortcrypt_monitor *monitor,
                              ortcrypt_error *err)
{
    ortcrypt_inputs *const inputs = session->inputs;
    ortcrypt_error failure = ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = ORTCRYPT_OK;

    if (inputs->ways.model != OC_MODEL_PIPE) {
        st = create_from_array(session, options, monitor, err);
    } else {
        st = oc_load_plan_model(inputs, inputs->supply->model.size, err);
        if (st == ORTCRYPT_OK) {
            st = create_from_pipe(session, options, err);
        }
    }
    const ortcrypt_status settled = oc_inputs_settle(inputs, st == ORTCRYPT_OK, &failure);
    if (settled != ORTCRYPT_OK) {
        st = settled;
        if (err != NULL) {
            *err = failure;
        }
    }
    /* a blob that was refused is the reason, whatever the EP and ORT made of it */
    const ortcrypt_status blob = oc_inputs_failure(inputs, &failure);
    if (blob != ORTCRYPT_OK) {
        st = blob;
        if (err != NULL) {
            *err = failure;
        }
    }
    if (st == ORTCRYPT_E_ORT) {
        oc_choice_explain(inputs->variant, inputs->runtime, err);
    }
    return st;
}

/* Inputs and OrtSession of one variant; both gone again on failure. */
static ortcrypt_status load(ortcrypt_session *session, ortcrypt_runtime *runtime, ortcrypt_bundle *bundle, const oc_choice *choice,
                            const ortcrypt_session_options *o, ortcrypt_error *err)
{
    const oc_load_wish wish = {.lazy = o->lazy, .ep = choice->ep};
    OrtSessionOptions *ort_options = NULL;

    ortcrypt_status st = oc_options_new(&ort_options, runtime, o->base, err);
    if (st == ORTCRYPT_OK && choice->ep != NULL) {
        st = oc_options_append_ep(runtime, ort_options, choice->device, o->ep_option_keys, o->ep_option_values,
                                  o->ep_option_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_inputs_new(&session->inputs, runtime, bundle, choice->variant, &wish, ort_options, o->monitor, err);
    }
    if (st == ORTCRYPT_OK) {
        st = create(session, ort_options, o->monitor, err);
    }
    if (st != ORTCRYPT_OK) {
        unload(session);
    }
    if (ort_options != NULL) {
        ortcrypt_runtime_api(runtime)->ReleaseSessionOptions(ort_options);
    }
    return st;
}

static void close_local(ortcrypt_session *session)
{
    oc_local_close(session->local); /* nothing holds it: the inputs are gone */
    session->local = NULL;
}

/* From the entry in the cache; once more, from a new one, when it does not load. */
static ortcrypt_status load_cached(ortcrypt_session *session, ortcrypt_runtime *runtime, const oc_choice *choice,
                                   const ortcrypt_session_options *o, ortcrypt_error *err)
{
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;
    oc_choice entry = *choice;
    bool fresh = false;

    ortcrypt_status st = oc_cache_get(&session->local, &entry.variant, &fresh, session->cache, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    st = load(session, runtime, session->local, &entry, o, &reason);
    if (st != ORTCRYPT_OK) {
        close_local(session);
        if (!fresh && st != ORTCRYPT_E_NO_MEMORY && st != ORTCRYPT_E_CANCELLED) {
            st = oc_cache_renew(&session->local, &entry.variant, session->cache, &reason, err);
            return st == ORTCRYPT_OK ? load(session, runtime, session->local, &entry, o, err) : st;
        }
        if (err != NULL) {
            *err = reason;
        }
    }
    return st;
}

/* The cache if it can be had, else the EP compiles the source in memory: `choice` says that one. */
static ortcrypt_status load_in_time(ortcrypt_session *session, ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                                    const oc_choice *choice, const ortcrypt_session_options *o, ortcrypt_error *err)
{
    ortcrypt_error reason = ORTCRYPT_ERROR_INIT;

    ortcrypt_status st = oc_cache_open(&session->cache, runtime, bundle, choice, o, &reason);
    if (st == ORTCRYPT_OK) {
        st = load_cached(session, runtime, choice, o, &reason);
    }
    if (oc_cache_unusable(st)) {
        oc_notice(o->monitor, "the source is compiled in memory, and nothing is kept: %s", reason.message);
        close_local(session);
        return load(session, runtime, bundle, choice, o, err);
    }
    if (st != ORTCRYPT_OK && err != NULL) {
        *err = reason;
    }
    return st;
}

ortcrypt_status ortcrypt_session_open(ortcrypt_session **session, ortcrypt_runtime *runtime, ortcrypt_bundle *bundle,
                                      const ortcrypt_session_options *options, ortcrypt_error *err)
{
    ortcrypt_session_options o;
    oc_choice choice;

    if (session == NULL || runtime == NULL || bundle == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_session_open needs a runtime and a bundle");
    }
    *session = NULL;
    ortcrypt_status st = oc_session_options_read(&o, options, err);
    if (st == ORTCRYPT_OK) {
        st = oc_choose(&choice, runtime, bundle, &o, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    ortcrypt_session *const made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return oc_fail_memory(err, sizeof(*made), "a session");
    }
    st = oc_strdup(&made->ep, choice.ep != NULL ? choice.ep : OC_EP_CPU_NAME, err);
    if (st == ORTCRYPT_OK) {
        st = choice.in_time ? load_in_time(made, runtime, bundle, &choice, &o, err) : load(made, runtime, bundle, &choice, &o, err);
    }
    if (st != ORTCRYPT_OK) {
        ortcrypt_session_close(made);
        return st;
    }
    if (made->cache != NULL) {
        made->cache->options = NULL; /* the caller's, from here on no more */
    }
    *session = made;
    return ORTCRYPT_OK;
}

OrtSession *ortcrypt_session_ort(const ortcrypt_session *session) { return session->ort; }

ortcrypt_status ortcrypt_session_plan(const ortcrypt_session *session, char **json, ortcrypt_error *err)
{
    if (session == NULL || json == NULL) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "ortcrypt_session_plan needs a session and a place for the text");
    }
    *json = NULL;
    return oc_load_plan_print(&session->inputs->plan, session->inputs->variant, session->local != NULL ? "cache" : "bundle",
                              session->ep, json, err);
}

void ortcrypt_session_close(ortcrypt_session *session)
{
    if (session == NULL) {
        return;
    }
    unload(session);
    close_local(session);
    oc_cache_close(session->cache);
    free(session->ep);
    free(session);
}
