/* cli/run_inputs.c: the inputs of a run: read from .npy files, or made up. */
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* --dim by the name of a dimension, or INPUT:AXIS. */
typedef struct dim_list {
    cli_pairs pairs;
    int64_t *sizes;
    bool *used;
} dim_list;

static void dims_free(dim_list *dims)
{
    cli_pairs_free(&dims->pairs);
    free(dims->sizes);
    free(dims->used);
}

static ortcrypt_status dims_read(dim_list *dims, const cli_args *args, ortcrypt_error *err)
{
    *dims = (dim_list){0};
    ortcrypt_status st = cli_args_pairs(args, OPT_DIM, &dims->pairs, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    dims->sizes = calloc(dims->pairs.count + 1, sizeof *dims->sizes);
    dims->used = calloc(dims->pairs.count + 1, sizeof *dims->used);
    if (dims->sizes == NULL || dims->used == NULL) {
        return cli_fail_memory(err);
    }
    for (size_t i = 0; i < dims->pairs.count; i++) {
        uint64_t size = 0;
        if (!cli_number_parse(dims->pairs.values[i], &size) || size > INT32_MAX) {
            return cli_fail(err, ORTCRYPT_E_INVALID, "--dim %s needs a whole number, not '%s'", dims->pairs.keys[i],
                            dims->pairs.values[i]);
        }
        dims->sizes[i] = (int64_t)size;
    }
    return ORTCRYPT_OK;
}

/* -1: not among them. */
static int64_t dims_find(dim_list *dims, const cli_value_info *input, size_t axis)
{
    char place[600];
    int64_t size = -1;
    (void)snprintf(place, sizeof place, "%.500s:%zu", input->name, axis);
    for (size_t i = 0; i < dims->pairs.count; i++) {
        const char *key = dims->pairs.keys[i];
        if (strcmp(key, place) == 0 || (input->dims[axis] != NULL && strcmp(key, input->dims[axis]) == 0)) {
            dims->used[i] = true;
            size = dims->sizes[i];
        }
    }
    return size;
}

/* The size that a given input has where its dimension has this name; -1: none. */
static int64_t dims_infer(const cli_model *model, const cli_inputs *inputs, const bool *given, const char *name)
{
    for (size_t i = 0; name != NULL && i < model->input_count; i++) {
        for (size_t axis = 0; given[i] && axis < model->inputs[i].rank; axis++) {
            const char *other = model->inputs[i].dims[axis];
            if (other != NULL && strcmp(other, name) == 0) {
                return inputs->tensors[i].shape[axis];
            }
        }
    }
    return -1;
}

static ortcrypt_status check_given(const cli_value_info *input, const cli_tensor *tensor, const char *path, ortcrypt_error *err)
{
    char wanted[512];
    char given[512];
    bool fits = input->is_tensor && tensor->type == input->type && tensor->rank == input->rank;
    for (size_t axis = 0; fits && axis < input->rank; axis++) {
        fits = input->shape[axis] < 0 || input->shape[axis] == tensor->shape[axis];
    }
    if (fits) {
        return ORTCRYPT_OK;
    }
    cli_value_text(wanted, sizeof wanted, input);
    cli_tensor_text(given, sizeof given, tensor);
    return cli_fail(err, ORTCRYPT_E_INPUT, "input '%s' must be %s; %s holds %s", input->name, wanted, path, given);
}

static ortcrypt_status unknown_input(const cli_model *model, const char *name, ortcrypt_error *err)
{
    char list[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < model->input_count && used < sizeof list; i++) {
        const int len = snprintf(list + used, sizeof list - used, "%s%s", i != 0 ? ", " : "", model->inputs[i].name);
        used += len > 0 ? (size_t)len : 0;
    }
    (void)cli_fail(err, ORTCRYPT_E_INVALID, "the model has no input '%s'", name);
    cli_hint(err, "its inputs: %s", list);
    return ORTCRYPT_E_INVALID;
}

/* Reads every --input into its place. */
static ortcrypt_status read_given(cli_inputs *inputs, const cli_model *model, const cli_args *args, bool *given, ortcrypt_error *err)
{
    cli_pairs pairs;
    ortcrypt_status st = cli_args_pairs(args, OPT_INPUT, &pairs, err);
    for (size_t i = 0; st == ORTCRYPT_OK && i < pairs.count; i++) {
        size_t at = 0;
        while (at < model->input_count && strcmp(model->inputs[at].name, pairs.keys[i]) != 0) {
            at++;
        }
        if (at == model->input_count) {
            st = unknown_input(model, pairs.keys[i], err);
        } else if (given[at]) {
            st = cli_fail(err, ORTCRYPT_E_INVALID, "input '%s' is given twice", pairs.keys[i]);
        } else {
            given[at] = true;
            st = cli_npy_read(&inputs->tensors[at], pairs.values[i], err);
            if (st == ORTCRYPT_OK) {
                st = check_given(&model->inputs[at], &inputs->tensors[at], pairs.values[i], err);
            }
        }
    }
    cli_pairs_free(&pairs);
    return st;
}

static ortcrypt_status not_given(const cli_value_info *input, ortcrypt_error *err)
{
    char wanted[512];
    cli_value_text(wanted, sizeof wanted, input);
    (void)cli_fail(err, ORTCRYPT_E_INVALID, "input '%s', %s, is not given", input->name, wanted);
    cli_hint(err, "--input %s=FILE.npy, or --random 1 for made-up values", input->name);
    return ORTCRYPT_E_INVALID;
}

static ortcrypt_status make_random(cli_inputs *inputs, const cli_model *model, size_t index, dim_list *dims, const bool *given,
                                   const cli_args *args, ortcrypt_error *err)
{
    const cli_value_info *input = &model->inputs[index];
    int64_t shape[CLI_RANK_MAX];
    if (!input->is_tensor) {
        return cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "input '%s' is no tensor; such inputs cannot be given here", input->name);
    }
    for (size_t axis = 0; axis < input->rank; axis++) {
        shape[axis] = input->shape[axis];
        if (shape[axis] < 0) {
            shape[axis] = dims_find(dims, input, axis);
        }
        if (shape[axis] < 0) {
            shape[axis] = dims_infer(model, inputs, given, input->dims[axis]);
        }
        if (shape[axis] < 0) {
            shape[axis] = 1;
        }
    }
    ortcrypt_status st = cli_tensor_new(&inputs->tensors[index], input->type, shape, input->rank, err);
    if (st == ORTCRYPT_OK) {
        st = cli_tensor_random(&inputs->tensors[index], cli_args_number(args, OPT_RANDOM, 0), input->name, err);
    }
    return st;
}

/* Appends ", name" unless it is there. */
static void list_add(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    const size_t len = strlen(name);
    for (const char *at = strstr(list, name); at != NULL; at = strstr(at + 1, name)) {
        const bool begins = at == list || at[-1] == ' ';
        if (begins && (at[len] == 0 || at[len] == ',')) {
            return;
        }
    }
    (void)snprintf(list + used, size - used, "%s%s", used != 0 ? ", " : "", name);
}

/* A --dim that changed nothing is most likely a misspelt name. */
static ortcrypt_status check_dims_used(const dim_list *dims, const cli_model *model, ortcrypt_error *err)
{
    char list[400] = "";
    size_t unused = 0;
    while (unused < dims->pairs.count && dims->used[unused]) {
        unused++;
    }
    if (unused == dims->pairs.count) {
        return ORTCRYPT_OK;
    }
    for (size_t i = 0; i < model->input_count; i++) {
        const cli_value_info *input = &model->inputs[i];
        for (size_t axis = 0; axis < input->rank; axis++) {
            char place[300];
            (void)snprintf(place, sizeof place, "%.250s:%zu", input->name, axis);
            if (input->shape[axis] < 0) {
                list_add(list, sizeof list, input->dims[axis] != NULL ? input->dims[axis] : place);
            }
        }
    }
    (void)cli_fail(err, ORTCRYPT_E_INVALID, "--dim %s names no dynamic dimension of a made-up input", dims->pairs.keys[unused]);
    if (list[0] != 0) {
        cli_hint(err, "dynamic dimensions of this model: %s; INPUT:AXIS names one, too", list);
    } else {
        cli_hint(err, "this model has no dynamic dimension");
    }
    return ORTCRYPT_E_INVALID;
}

ortcrypt_status cli_inputs_make(cli_inputs *inputs, const cli_model *model, const cli_args *args, ortcrypt_error *err)
{
    const bool random = cli_args_has(args, OPT_RANDOM);
    bool *given = calloc(model->input_count + 1, sizeof *given);
    dim_list dims = {0};
    *inputs = (cli_inputs){.api = model->api,
                           .tensors = calloc(model->input_count + 1, sizeof(cli_tensor)),
                           .values = calloc(model->input_count + 1, sizeof(OrtValue *)),
                           .count = model->input_count};
    ortcrypt_status st = given != NULL && inputs->tensors != NULL && inputs->values != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
    if (st == ORTCRYPT_OK) {
        st = dims_read(&dims, args, err);
    }
    if (st == ORTCRYPT_OK) {
        st = read_given(inputs, model, args, given, err);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < model->input_count; i++) {
        if (!given[i]) {
            st = random ? make_random(inputs, model, i, &dims, given, args, err) : not_given(&model->inputs[i], err);
        }
    }
    if (st == ORTCRYPT_OK) {
        st = check_dims_used(&dims, model, err);
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < model->input_count; i++) {
        st = cli_value_make(&inputs->values[i], model->api, &inputs->tensors[i], err);
    }
    if (st != ORTCRYPT_OK) {
        cli_inputs_free(inputs);
    }
    dims_free(&dims);
    free(given);
    return st;
}

void cli_inputs_free(cli_inputs *inputs)
{
    for (size_t i = 0; inputs->values != NULL && i < inputs->count; i++) {
        inputs->api->ReleaseValue(inputs->values[i]);
    }
    for (size_t i = 0; inputs->tensors != NULL && i < inputs->count; i++) {
        cli_tensor_free(&inputs->tensors[i]);
    }
    free(inputs->values);
    free(inputs->tensors);
    *inputs = (cli_inputs){0};
}
