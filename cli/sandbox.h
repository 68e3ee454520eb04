/*
 * cli/sandbox.h: the sandbox of the verbs that run code of ONNX Runtime and of execution providers.
 *
 * Call order: keys are read (inherited descriptors, prompts) -> cli_sandbox_enter -> anything that opens a file or loads a library.
 */
#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

#include "cli.h"

/* Closes descriptors above 2 (but for those that options name as files and that can only be read) and enters, as --no-sandbox and --require-sandbox say; notes say what is not held. */
ortcrypt_status cli_sandbox_enter(const cli_context *context, ortcrypt_error *err);

#endif
