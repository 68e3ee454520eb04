/*
 * cli/sandbox.h: the sandbox of the verbs that run code of ONNX Runtime and of execution providers.
 *
 * Call order: keys are read (inherited descriptors, prompts) -> cli_sandbox_enter -> anything that opens a file or loads a library.
 */
#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

#include "cli.h"

/* Closes inherited descriptors above 2 and enters, as --no-sandbox and --require-sandbox say; notes say what is not held. */
ortcrypt_status cli_sandbox_enter(const cli_context *context, ortcrypt_error *err);

#endif
