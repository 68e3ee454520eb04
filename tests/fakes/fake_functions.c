/* Errors, session options, environment, and which functions a table has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_objects.h"

enum { FIRST_INTEROP = 24 };

OrtStatus *fake_error(OrtErrorCode code, const char *message)
{
    OrtStatus *const status = calloc(1, sizeof(*status));

    if (status == NULL) {
        abort();
    }
    status->code = code;
    (void)snprintf(status->message, sizeof status->message, "%s", message);
    fake_ort.live++;
    return status;
}

static void release(void *object)
{
    if (object != NULL) {
        fake_ort.live--;
        free(object);
    }
}

static OrtStatus *ORT_API_CALL create_status(OrtErrorCode code, const char *message) NO_EXCEPTION
{
    NOTE(CreateStatus);
    return fake_error(code, message);
}

static OrtErrorCode ORT_API_CALL get_error_code(const OrtStatus *status) NO_EXCEPTION
{
    NOTE(GetErrorCode);
    return status->code;
}

static const char *ORT_API_CALL get_error_message(const OrtStatus *status) NO_EXCEPTION
{
    NOTE(GetErrorMessage);
    return status->message;
}

static void ORT_API_CALL release_status(OrtStatus *status) NO_EXCEPTION
{
    NOTE(ReleaseStatus);
    release(status);
}

static OrtStatus *ORT_API_CALL create_session_options(OrtSessionOptions **options) NO_EXCEPTION
{
    NOTE(CreateSessionOptions);
    if (fake_ort.fault == FAKE_OPTIONS_FAIL) {
        return fake_error(ORT_FAIL, "no options today");
    }
    *options = calloc(1, sizeof(**options));
    fake_ort.live += *options != NULL;
    return NULL;
}

static void ORT_API_CALL release_session_options(OrtSessionOptions *options) NO_EXCEPTION
{
    NOTE(ReleaseSessionOptions);
    release(options);
}

static OrtStatus *ORT_API_CALL create_env(OrtLoggingFunction log, void *param, OrtLoggingLevel level, const char *name, OrtEnv **env) NO_EXCEPTION
{
    (void)param;
    (void)level;
    (void)name;
    NOTE(CreateEnvWithCustomLogger);
    if (log == NULL || fake_ort.fault == FAKE_ENV_FAILS) {
        return fake_error(ORT_FAIL, "no environment today");
    }
    *env = (OrtEnv *)calloc(1, sizeof(int));
    fake_ort.live += *env != NULL;
    return NULL;
}

static void ORT_API_CALL release_env(OrtEnv *env) NO_EXCEPTION
{
    NOTE(ReleaseEnv);
    release(env);
}

static const OrtCompileApi *ORT_API_CALL get_compile_api(void) NO_EXCEPTION
{
    NOTE(GetCompileApi);
    return fake_ort.fault != FAKE_NO_COMPILE_API ? fake_table_get(FAKE_COMPILE, fake_minor) : NULL;
}

static const OrtEpApi *ORT_API_CALL get_ep_api(void) NO_EXCEPTION
{
    NOTE(GetEpApi);
    return fake_ort.fault != FAKE_NO_EP_API ? fake_table_get(FAKE_EP, fake_minor) : NULL;
}

static const OrtModelEditorApi *ORT_API_CALL get_editor_api(void) NO_EXCEPTION
{
    NOTE(GetModelEditorApi);
    return fake_table_get(FAKE_EDITOR, fake_minor);
}

static const OrtInteropApi *ORT_API_CALL get_interop_api(void) NO_EXCEPTION
{
    NOTE(GetInteropApi);
    return fake_table_get(FAKE_INTEROP, fake_minor);
}

void fake_put_functions(fake_function *slots, fake_table table, unsigned minor)
{
    if (table == FAKE_API) {
        OrtApi *const api = (OrtApi *)(void *)slots;
        api->CreateStatus = create_status;
        api->GetErrorCode = get_error_code;
        api->GetErrorMessage = get_error_message;
        api->ReleaseStatus = release_status;
        api->CreateSessionOptions = create_session_options;
        api->ReleaseSessionOptions = release_session_options;
        api->CreateEnvWithCustomLogger = create_env;
        api->ReleaseEnv = release_env;
        api->GetCompileApi = get_compile_api;
        api->GetEpApi = get_ep_api;
        api->GetModelEditorApi = get_editor_api;
        if (minor >= FIRST_INTEROP) {
            api->GetInteropApi = get_interop_api;
        }
        fake_put_entries(api);
        fake_put_eps(api);
    }
    fake_put_callbacks(slots, table, minor);
}
