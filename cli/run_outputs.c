/* cli/run_outputs.c: the outputs of a run: copied out of ORT, and written as .npy files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ortcrypt/sandbox.h"
#include "run.h"

static double now_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static ortcrypt_status copy_output(cli_tensor *out, const OrtApi *api, const OrtValue *value, const cli_value_info *info,
                                   ortcrypt_error *err)
{
    if (value == NULL || !info->is_tensor || cli_type_find(info->type) == NULL) {
        return ORTCRYPT_OK;
    }
    return cli_value_copy(out, api, value, err);
}

ortcrypt_status cli_outputs_run(cli_outputs *outputs, const cli_model *model, const cli_inputs *inputs, double *seconds,
                                ortcrypt_error *err)
{
    OrtValue **values = calloc(model->output_count + 1, sizeof(OrtValue *));
    *outputs = (cli_outputs){.tensors = calloc(model->output_count + 1, sizeof(cli_tensor)), .count = model->output_count};
    ortcrypt_status st = values != NULL && outputs->tensors != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
    const double start = now_seconds();
    if (st == ORTCRYPT_OK) {
        st = cli_model_run(model, (const OrtValue *const *)inputs->values, values, err);
    }
    if (seconds != NULL) {
        *seconds = now_seconds() - start;
    }
    for (size_t i = 0; values != NULL && i < model->output_count; i++) {
        if (st == ORTCRYPT_OK) {
            st = copy_output(&outputs->tensors[i], model->api, values[i], &model->outputs[i], err);
        }
        model->api->ReleaseValue(values[i]);
    }
    free(values);
    if (st != ORTCRYPT_OK) {
        cli_outputs_free(outputs);
    }
    return st;
}

void cli_outputs_free(cli_outputs *outputs)
{
    for (size_t i = 0; outputs->tensors != NULL && i < outputs->count; i++) {
        cli_tensor_free(&outputs->tensors[i]);
    }
    free(outputs->tensors);
    *outputs = (cli_outputs){0};
}

ortcrypt_status cli_check_absent(const char *path, ortcrypt_error *err)
{
    struct stat info;
    if (lstat(path, &info) == 0) {
        (void)cli_fail(err, ORTCRYPT_E_EXISTS, "%s exists already", path);
        cli_hint(err, "nothing is ever overwritten: choose another name");
        return ORTCRYPT_E_EXISTS;
    }
    return errno == ENOENT ? ORTCRYPT_OK : cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", path);
}

/* "<name>.npy" with letters, digits, '.', '_' and '-' only; ".2", ".3", ... before ".npy" where that is taken. */
static void file_name(char out[256], const char *name, char *const *taken, size_t taken_count)
{
    char plain[201];
    size_t len = 0;
    for (; name[len] != 0 && len < sizeof plain - 1; len++) {
        const char byte = name[len];
        const bool fine = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                          byte == '_' || byte == '-' || (byte == '.' && len != 0);
        plain[len] = fine ? byte : '_';
    }
    plain[len] = 0;
    for (size_t number = 1;; number++) {
        bool clash = false;
        if (number == 1) {
            (void)snprintf(out, 256, "%s.npy", len != 0 ? plain : "_");
        } else {
            (void)snprintf(out, 256, "%s.%zu.npy", plain, number);
        }
        for (size_t i = 0; i < taken_count; i++) {
            clash = clash || (taken[i] != NULL && strcmp(taken[i], out) == 0);
        }
        if (!clash) {
            return;
        }
    }
}

static ortcrypt_status write_files(const cli_outputs *outputs, const cli_model *model, int fd, char **files, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    for (size_t i = 0; st == ORTCRYPT_OK && i < outputs->count; i++) {
        char name[256];
        const cli_tensor *tensor = &outputs->tensors[i];
        if (tensor->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
            return cli_fail(err, ORTCRYPT_E_UNSUPPORTED, "output '%s' cannot be written as .npy", model->outputs[i].name);
        }
        file_name(name, model->outputs[i].name, files, i);
        files[i] = strdup(name);
        st = files[i] != NULL ? cli_npy_write(tensor, fd, name, err) : cli_fail_memory(err);
    }
    return st;
}

/* What crosses to a thread outside of the sandbox. */
typedef struct outputs_job {
    const cli_outputs *outputs;
    const cli_model *model;
    const char *folder;
    char **files;
} outputs_job;

/* Beside the wanted folder, then renamed: it is complete or not there. */
static ortcrypt_status write_folder(void *state, ortcrypt_error *err)
{
    const outputs_job *job = state;
    const cli_outputs *outputs = job->outputs;
    const char *folder = job->folder;
    char **files = job->files;
    char temporary[PATH_MAX];
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/') {
        len--;
    }
    const mode_t mask = umask(0);
    (void)umask(mask);
    if (snprintf(temporary, sizeof temporary, "%.*s.tmp-XXXXXX", (int)len, folder) >= (int)sizeof temporary) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "the path of the output folder is too long");
    }
    if (mkdtemp(temporary) == NULL) {
        return cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s cannot be made", folder);
    }
    const int fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ortcrypt_status st = fd >= 0 ? ORTCRYPT_OK : cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", temporary);
    if (st == ORTCRYPT_OK) {
        st = write_files(outputs, job->model, fd, files, err);
    }
    if (st == ORTCRYPT_OK && fchmod(fd, 0777 & ~mask) != 0) {
        st = cli_fail_errno(err, ORTCRYPT_E_IO, errno, "%s", temporary);
    }
    if (st == ORTCRYPT_OK && renameat2(AT_FDCWD, temporary, AT_FDCWD, folder, RENAME_NOREPLACE) != 0) {
        st = cli_fail_errno(err, errno == EEXIST ? ORTCRYPT_E_EXISTS : ORTCRYPT_E_IO, errno, "%s", folder);
    }
    for (size_t i = 0; st != ORTCRYPT_OK && i < outputs->count; i++) {
        if (fd >= 0 && files[i] != NULL) {
            (void)unlinkat(fd, files[i], 0);
        }
    }
    if (st != ORTCRYPT_OK) {
        (void)rmdir(temporary);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return st;
}

ortcrypt_status cli_outputs_write(const cli_outputs *outputs, const cli_model *model, const char *folder, char **files,
                                  ortcrypt_error *err)
{
    outputs_job job = {.outputs = outputs, .model = model, .folder = folder, .files = files};
    return ortcrypt_sandbox_call(write_folder, &job, err);
}
