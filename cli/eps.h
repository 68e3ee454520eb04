/* cli/eps.h: the parts of what `ortcrypt eps` prints. */
#ifndef CLI_EPS_H
#define CLI_EPS_H

#include "cli.h"

/* The member "functions" of ortcrypt_runtime_describe, as a table. */
void cli_print_functions(const json_t *functions);

#endif
