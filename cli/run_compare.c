/* cli/run_compare.c: the encrypted model against the plaintext one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "runtime.h"

cli_difference cli_compare(const cli_tensor *ours, const cli_tensor *plain)
{
    cli_difference result = {.same_bytes = cli_tensor_same_bytes(ours, plain)};
    double least = (double)INFINITY;
    double greatest = -(double)INFINITY;
    double magnitude = 0;
    const cli_type *known = cli_type_find(plain->type);
    if (known == NULL || known->kind == 's' || ours->type != plain->type || ours->count != plain->count ||
        ours->rank != plain->rank || memcmp(ours->shape, plain->shape, plain->rank * sizeof *plain->shape) != 0) {
        result.within = result.same_bytes && known != NULL;
        return result;
    }
    result.compared = true;
    for (size_t i = 0; i < plain->count; i++) {
        const double wanted = cli_tensor_number(plain, i);
        const double got = cli_tensor_number(ours, i);
        double difference = fabs(got - wanted);
        if (got == wanted || (isnan(got) && isnan(wanted))) {
            difference = 0; /* also for infinities */
        } else if (isnan(difference)) {
            difference = (double)INFINITY;
        }
        result.max_abs = difference > result.max_abs ? difference : result.max_abs;
        if (isfinite(wanted)) {
            least = wanted < least ? wanted : least;
            greatest = wanted > greatest ? wanted : greatest;
            magnitude = fabs(wanted) > magnitude ? fabs(wanted) : magnitude;
        }
    }
    result.range = greatest > least ? greatest - least : magnitude;
    result.within = result.max_abs <= CLI_TOLERANCE * result.range;
    return result;
}

static ortcrypt_status check_same_signature(const cli_model *model, const cli_model *plain, const char *path, ortcrypt_error *err)
{
    bool same = model->input_count == plain->input_count && model->output_count == plain->output_count;
    for (size_t i = 0; same && i < model->input_count; i++) {
        same = strcmp(model->inputs[i].name, plain->inputs[i].name) == 0;
    }
    for (size_t i = 0; same && i < model->output_count; i++) {
        same = strcmp(model->outputs[i].name, plain->outputs[i].name) == 0;
    }
    return same ? ORTCRYPT_OK
                : cli_fail(err, ORTCRYPT_E_INPUT, "%s is another model: its inputs and outputs have other names than the bundle's", path);
}

static ortcrypt_status open_plain(OrtSession **session, const OrtApi *api, OrtEnv *env, const char *path, ortcrypt_error *err)
{
    OrtSessionOptions *options = NULL;
    ortcrypt_status st = cli_ort_check(api, api->CreateSessionOptions(&options), err, "making session options");
    if (st == ORTCRYPT_OK && access(path, R_OK) != 0) {
        st = cli_fail_errno(err, ORTCRYPT_E_IO, errno, "model %s cannot be opened", path);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_ort_check(api, api->CreateSession(env, path, options, session), err, "%s", path);
    }
    api->ReleaseSessionOptions(options);
    return st;
}

ortcrypt_status cli_compare_model(cli_difference **differences, const cli_model *model, const cli_inputs *inputs,
                                  const cli_outputs *outputs, OrtEnv *env, const char *path, ortcrypt_error *err)
{
    OrtSession *session = NULL;
    cli_model plain = {0};
    cli_outputs wanted = {0};
    cli_difference *found = calloc(model->output_count + 1, sizeof *found);
    ortcrypt_status st = found != NULL ? open_plain(&session, model->api, env, path, err) : cli_fail_memory(err);
    if (st == ORTCRYPT_OK) {
        st = cli_model_open(&plain, model->api, session, err);
    }
    if (st == ORTCRYPT_OK) {
        st = check_same_signature(model, &plain, path, err);
    }
    if (st == ORTCRYPT_OK) {
        st = cli_outputs_run(&wanted, &plain, inputs, NULL, err);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < model->output_count; i++) {
        found[i] = cli_compare(&outputs->tensors[i], &wanted.tensors[i]);
    }
    cli_outputs_free(&wanted);
    cli_model_close(&plain);
    model->api->ReleaseSession(session);
    if (st != ORTCRYPT_OK) {
        free(found);
        return st;
    }
    *differences = found;
    return ORTCRYPT_OK;
}
