/* Flow 1: the source variant of a bundle, compiled by an execution provider, as a new variant. */
#include <string.h>

#include "flow/output.h"
#include "flow/weightless.h"

#define EMBED_MAX_LEN 0x80000000ull /* 2 GiB: a protobuf message ends below it, and ORT's attribute lengths are ints */

/*
 * A logical name for the EP to make blob names of. "./" because ORT demands a folder: a name without one is refused, and
 * this one is never created or written to.
 */
#define BINARY_FOLDER "./"
#define BINARY_MODEL "model.onnx"

/* The sum of all source bytes bounds what an EP could embed; that it is needed in full is not certain, that more is not. */
static ortcrypt_status check_embed(const ortcrypt_output *output, ortcrypt_error *err)
{
    if (!output->options.embed || oc_supply_len(output->source) < EMBED_MAX_LEN) {
        return ORTCRYPT_OK;
    }
    (void)oc_fail(err, ORTCRYPT_E_LIMIT, "a model of 2 GiB or more cannot have its EPContext data embedded");
    oc_hint(err, "compile it without embed mode: the data becomes assets of their own");
    return ORTCRYPT_E_LIMIT;
}

/* What the EP will be handed at every load is one model. */
static ortcrypt_status check_weightless(const ortcrypt_output *output, ortcrypt_error *err)
{
    if (!output->options.weightless || oc_supply_len(output->source) < EMBED_MAX_LEN) {
        return ORTCRYPT_OK;
    }
    (void)oc_fail(err, ORTCRYPT_E_LIMIT, "a model of 2 GiB or more cannot be compiled weightless: its source goes to the execution provider in one piece");
    oc_hint(err, "compile it with its weights, without embed mode");
    return ORTCRYPT_E_LIMIT;
}

/* Registers everything the output takes. From 1.28 on: before, initializers with a location came out as addresses. */
static ortcrypt_status set_callbacks(ortcrypt_output *output, OrtModelCompilationOptions *compile, ortcrypt_error *err)
{
    const OrtCompileApi *const c = oc_runtime_compile_api(output->runtime);
    const ortcrypt_ep_context_api *const f = oc_runtime_ep_context(output->runtime);
    ortcrypt_runtime *const runtime = output->runtime;

    ortcrypt_status st = oc_ort_check(
        runtime, c->ModelCompilationOptions_SetOutputModelWriteFunc(compile, ortcrypt_write_model, output), err, "compile options");
    if (st == ORTCRYPT_OK && f->era != ORTCRYPT_ERA_NONE) {
        st = oc_ort_check(runtime,
                          c->ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
                              compile, ortcrypt_initializer_location, output),
                          err, "compile options");
    }
    if (st == ORTCRYPT_OK && oc_runtime_takes_callbacks(runtime, output->ep)) {
        st = oc_ort_check(runtime, f->ModelCompilationOptions_SetEpContextDataWriteFunc(compile, ortcrypt_write_named, output),
                          err, "compile options");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime, c->ModelCompilationOptions_SetEpContextEmbedMode(compile, output->options.embed), err, "compile options");
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(runtime, c->ModelCompilationOptions_SetEpContextBinaryInformation(compile, BINARY_FOLDER, BINARY_MODEL),
                          err, "compile options");
    }
    if (st == ORTCRYPT_OK && output->options.weightless) {
        st = oc_ort_check(runtime, c->ModelCompilationOptions_SetWeightlessEnabled(compile, true), err, "compile options");
    }
    if (st == ORTCRYPT_OK && !output->options.allow_none_compiled) {
        st = oc_ort_check(runtime, c->ModelCompilationOptions_SetFlags(compile, OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED),
                          err, "compile options");
    }
    return st;
}

static ortcrypt_status set_optimize(const ortcrypt_output *output, OrtModelCompilationOptions *compile, ortcrypt_error *err)
{
    static const GraphOptimizationLevel levels[] = {
        [ORTCRYPT_OPTIMIZE_NONE] = ORT_DISABLE_ALL,
        [ORTCRYPT_OPTIMIZE_BASIC] = ORT_ENABLE_BASIC,
        [ORTCRYPT_OPTIMIZE_EXTENDED] = ORT_ENABLE_EXTENDED,
        [ORTCRYPT_OPTIMIZE_ALL] = ORT_ENABLE_ALL,
    };
    if (output->options.optimize == ORTCRYPT_OPTIMIZE_DEFAULT) {
        return ORTCRYPT_OK;
    }
    return oc_ort_check(output->runtime,
                        oc_runtime_compile_api(output->runtime)->ModelCompilationOptions_SetGraphOptimizationLevel(
                            compile, levels[output->options.optimize]),
                        err, "compile options");
}

/* Seen on 1.30 and 1.32, with files as with buffers: constants of 128 bytes or more in the body of a node that stays. */
static ortcrypt_status explain(const ortcrypt_output *output, const ortcrypt_error *failure, ortcrypt_error *err)
{
    if (strstr(failure->message, "Unable to compile any nodes") != NULL) { /* what the flag of set_callbacks asks for */
        return oc_output_none_compiled(output, err);
    }
    if (err != NULL) {
        *err = *failure;
    }
    if (strstr(failure->message, "in-memory address") != NULL) {
        oc_hint(err, "ONNX Runtime cannot write a compiled model that keeps an If, Loop or Scan with constants in its body: run the source variant");
    }
    return failure->status;
}

static ortcrypt_status run(ortcrypt_output *output, const OrtSessionOptions *options, const oc_model_bytes *model,
                           ortcrypt_error *err)
{
    const OrtCompileApi *const c = oc_runtime_compile_api(output->runtime);
    OrtEnv *const env = ortcrypt_runtime_env(output->runtime);
    OrtModelCompilationOptions *compile = NULL;
    ortcrypt_error failure = ORTCRYPT_ERROR_INIT;

    ortcrypt_status st = oc_ort_check(
        output->runtime, c->CreateModelCompilationOptionsFromSessionOptions(env, options, &compile), err, "compile options");
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime, c->ModelCompilationOptions_SetInputModelFromBuffer(compile, model->data, model->len),
                          err, "compile options");
    }
    if (st == ORTCRYPT_OK) {
        st = set_callbacks(output, compile, err);
    }
    if (st == ORTCRYPT_OK) {
        st = set_optimize(output, compile, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_ort_check(output->runtime, c->CompileModel(env, compile), &failure, "ONNX Runtime does not compile this model");
        if (st != ORTCRYPT_OK) {
            st = explain(output, &failure, err);
        }
    }
    if (compile != NULL) {
        c->ReleaseModelCompilationOptions(compile);
    }
    /* a callback that refused is the reason, whatever the EP and ORT made of it */
    const ortcrypt_status refused = oc_output_failure(output, &failure);
    if (refused != ORTCRYPT_OK) {
        st = refused;
        if (err != NULL) {
            *err = failure;
        }
    }
    return st;
}

/*
 * Weights and model by the ways of loading (route.h): the EP gets buffers that are filled, or ORT's copies. A weightless variant's EP
 * keeps the model, so that one is whole.
 */
static ortcrypt_status give_source(ortcrypt_output *output, OrtSessionOptions *options, oc_model_bytes *model, ortcrypt_error *err)
{
    const ortcrypt_compile_options *const o = &output->options;
    oc_load_facts facts = oc_load_facts_of(output->source, output->runtime, output->ep);
    oc_load_ways ways;

    facts.fits = false; /* CompileModel takes no pipe, so nothing is won by putting weights back */
    facts.proc = false;
    facts.lifted_len = 0; /* a weightless variant's EP gets the whole model, and what ORT does with stubs while compiling is not proven */
    oc_load_decide(&ways, &facts);
    ortcrypt_status st = oc_load_give(output->source, &ways, output->runtime, options, o->monitor, err);
    if (st == ORTCRYPT_OK) {
        st = oc_model_bytes_make(model, output->source, ways.model == OC_MODEL_PAGED && !o->weightless, o->monitor, err);
    }
    if (st == ORTCRYPT_OK && o->weightless) { /* so that the EP sees which weights it will find there */
        st = oc_ort_check(output->runtime,
                          ortcrypt_runtime_api(output->runtime)->SessionOptionsSetWeightlessSourceModelBuffer(options, model->data, model->len),
                          err, "the source model");
    }
    return st;
}

/* Compiled or not: a source that is not authentic is the reason for whatever ORT and the EP made of it. */
static ortcrypt_status settle_source(ortcrypt_output *output, oc_model_bytes *model, ortcrypt_status st, ortcrypt_error *err)
{
    ortcrypt_error failure = ORTCRYPT_ERROR_INIT;
    ortcrypt_status settled = oc_supply_settle(output->source, st == ORTCRYPT_OK, &failure);

    if (settled == ORTCRYPT_OK) {
        settled = oc_model_bytes_settle(model, st == ORTCRYPT_OK, &failure);
    }
    oc_model_bytes_drop(model);
    oc_supply_drop_files(output->source);
    if (settled != ORTCRYPT_OK && err != NULL) {
        *err = failure;
    }
    return settled != ORTCRYPT_OK ? settled : st;
}

/* The seed lets go of the initializers before CompileModel; ORT reads them during it, so they stay until it returned. */
ortcrypt_status oc_output_compile(ortcrypt_output *output, ortcrypt_error *err)
{
    const ortcrypt_compile_options *const o = &output->options;
    OrtSessionOptions *options = NULL;
    oc_model_bytes model = {NULL, 0, {0}, NULL};

    ortcrypt_status st = check_embed(output, err);
    if (st == ORTCRYPT_OK) {
        st = check_weightless(output, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_options_new(&options, output->runtime, o->base, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_callbacks_name(&output->registration, output->runtime, output->ep, options, NULL, ortcrypt_write_named, output, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_options_append_ep(output->runtime, options, output->device, output->option_keys, output->option_values,
                                  output->ep_option_count, err);
    }
    if (st == ORTCRYPT_OK) {
        st = give_source(output, options, &model, err);
    }
    if (st == ORTCRYPT_OK) {
        st = run(output, options, &model, err);
    }
    st = settle_source(output, &model, st, err);
    if (options != NULL) {
        ortcrypt_runtime_api(output->runtime)->ReleaseSessionOptions(options);
    }
    return st;
}

ortcrypt_status ortcrypt_compile(ortcrypt_runtime *runtime, const char *bundle_path, const ortcrypt_keyring *keyring,
                                 const ortcrypt_compile_options *options, ortcrypt_compile_result *result, ortcrypt_error *err)
{
    ortcrypt_output *output = NULL;

    ortcrypt_status st = oc_output_open(&output, runtime, bundle_path, keyring, options, false, err);
    if (st == ORTCRYPT_OK) {
        st = oc_output_compile(output, err);
    }
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_output_commit(output, result, err);
    }
    ortcrypt_output_close(output);
    return st;
}
