/* cli/runtime.c: finding libraries. */
#include "runtime.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "terminal.h"

#define REFERENCE_EP "OrtcryptReference"
#define REFERENCE_LIBRARY "libortcrypt_reference_ep.so"

/* Beside the program (a build folder), then where an installation puts it: the architecture's folder is Debian's way. */
static ortcrypt_status find_reference(char **library, ortcrypt_error *err)
{
    static const char *const places[] = {"", "../lib/ortcrypt/", "../lib/" ORTCRYPT_ARCHITECTURE "/ortcrypt/", "../lib64/ortcrypt/"};
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];
    const ssize_t len = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (len > 0) {
        folder[len] = 0;
        *(strrchr(folder, '/') + 1) = 0;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            (void)snprintf(path, sizeof path, "%s%s%s", folder, places[i], REFERENCE_LIBRARY);
            if (access(path, R_OK) == 0) {
                *library = strdup(path);
                return *library != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
            }
        }
    }
    (void)cli_fail(err, ORTCRYPT_E_NOT_FOUND, "%s is not beside this program", REFERENCE_LIBRARY);
    cli_hint(err, "--ep %s=FOLDER/%s", REFERENCE_EP, REFERENCE_LIBRARY);
    return ORTCRYPT_E_NOT_FOUND;
}

ortcrypt_status cli_ep_parse(cli_ep *ep, const char *text, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    *ep = (cli_ep){0};
    if (text == NULL) {
        return ORTCRYPT_OK;
    }
    const size_t len = strcspn(text, "=");
    if (len == 0 || (text[len] == '=' && text[len + 1] == 0)) {
        return cli_fail(err, ORTCRYPT_E_INVALID, "--ep needs NAME or NAME=LIBRARY, not '%s'", text);
    }
    ep->name = strndup(text, len);
    if (ep->name == NULL) {
        st = cli_fail_memory(err);
    } else if (text[len] == '=') {
        ep->library = strdup(text + len + 1);
        st = ep->library != NULL ? ORTCRYPT_OK : cli_fail_memory(err);
    } else if (strcmp(ep->name, REFERENCE_EP) == 0) {
        st = find_reference(&ep->library, err);
    }
    if (st != ORTCRYPT_OK) {
        cli_ep_free(ep);
    }
    return st;
}

void cli_ep_free(cli_ep *ep)
{
    free(ep->name);
    free(ep->library);
    *ep = (cli_ep){0};
}

ortcrypt_status cli_runtime_open(ortcrypt_runtime **runtime, const cli_context *context, ortcrypt_error *err)
{
    const bool verbose = cli_args_has(context->args, OPT_VERBOSE);
    const ortcrypt_runtime_options options = {.struct_size = sizeof options,
                                              /* ORT's errors come back to us as sentences: its own lines only when asked for */
                                              .log_level = (verbose ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_FATAL) + 1,
                                              .monitor = &context->monitor,
                                              .bridge = cli_args_value(context->args, OPT_BRIDGE)};
    const char *library = cli_args_value(context->args, OPT_ORT);
    char path[PATH_MAX];
    if (library == NULL) {
        library = getenv("ORTCRYPT_ORT");
    }
    if (library != NULL && *library == 0) {
        library = NULL;
    }
    if (library != NULL && strchr(library, '/') == NULL && access(library, F_OK) == 0) {
        (void)snprintf(path, sizeof path, "./%s", library); /* the loader would look for a bare name elsewhere */
        library = path;
    }
    *runtime = NULL;
    cli_output_lend();
    const ortcrypt_status st = ortcrypt_runtime_open(runtime, library, &options, err);
    if (st != ORTCRYPT_OK && library == NULL) {
        cli_hint(err, "name the library with --ort FILE or ORTCRYPT_ORT=FILE in the environment");
    }
    return st;
}

void cli_runtime_close(ortcrypt_runtime *runtime)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    cli_output_lend();
    if (ortcrypt_runtime_close(runtime, &err) != ORTCRYPT_OK) {
        cli_print_note("closing ONNX Runtime: %s", err.message);
    }
    cli_output_take_back();
}

ortcrypt_status cli_ort_check(const OrtApi *api, OrtStatus *status, ortcrypt_error *err, const char *format, ...)
{
    char doing[512];
    char words[768];
    va_list list;
    if (status == NULL) {
        return ORTCRYPT_OK;
    }
    va_start(list, format);
    if (vsnprintf(doing, sizeof doing, format, list) < 0) {
        doing[0] = 0;
    }
    va_end(list);
    ortcrypt_ort_words(words, sizeof words, api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    return cli_fail(err, ORTCRYPT_E_ORT, "%s: %s", doing, words);
}
