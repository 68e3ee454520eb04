/* cli/runtime.h: the ONNX Runtime and the execution provider that the options name. */
#ifndef CLI_RUNTIME_H
#define CLI_RUNTIME_H

#include "cli.h"
#include "ortcrypt/runtime.h"

/* NAME[=LIBRARY]. Owned. */
typedef struct cli_ep {
    char *name;    /* NULL: --ep was not given */
    char *library; /* NULL: registered already, or built into the runtime */
} cli_ep;

/* `text` NULL gives an empty one. OrtcryptReference without a library is looked for beside this program, then in ../lib/ortcrypt. */
ortcrypt_status cli_ep_parse(cli_ep *ep, const char *text, ortcrypt_error *err);
void cli_ep_free(cli_ep *ep);

/* --ort, else ORTCRYPT_ORT, else the system's. *runtime is NULL on failure. */
ortcrypt_status cli_runtime_open(ortcrypt_runtime **runtime, const cli_context *context, ortcrypt_error *err);
/* Closes; a status other than ORTCRYPT_OK would be our own mistake and is shown as a note. */
void cli_runtime_close(ortcrypt_runtime *runtime);

/* ORTCRYPT_E_ORT with "<doing>: <ORT's words>"; releases `status`. NULL is success. */
ortcrypt_status cli_ort_check(const OrtApi *api, OrtStatus *status, ortcrypt_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
