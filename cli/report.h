/* cli/report.h: what several verbs say about a bundle. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli.h"

/* {"id", "sequence", "manifest", "assets", "variants", "bytes"}; NULL when memory ran out. */
json_t *cli_info_json(const ortcrypt_bundle_info *info);
/* The same as rows of a table whose first column is 9 wide. */
void cli_print_info(const ortcrypt_bundle_info *info);

/* A string member of an object; "" when it is none. Belongs to the object. */
const char *cli_json_string(const json_t *object, const char *key);

#endif
