/* cli/eps_functions.c: the functions that not every ONNX Runtime has, as `ortcrypt eps` shows them. Source: ortcrypt_runtime_describe. */
#include "eps.h"

#include <stdio.h>
#include <string.h>

#include "report.h"

/* "member 426", "by name", "entry", or "-" when this runtime has it not. */
static void place_text(char *text, size_t size, const json_t *row)
{
    const char *const found = cli_json_string(row, "found");
    if (strcmp(found, "member") == 0) {
        (void)snprintf(text, size, "member %d", (int)json_integer_value(json_object_get(row, "slot")));
    } else {
        (void)snprintf(text, size, "%s", found[0] == 0 ? "-" : strcmp(found, "entry") == 0 ? found : "by name");
    }
}

void cli_print_functions(const json_t *functions)
{
    size_t index = 0;
    json_t *row = NULL;
    (void)puts("\nfunctions that not every ONNX Runtime has");
    (void)printf("  %-13s %-5s %-11s %-17s %s\n", "table", "since", "here", "checked by", "name: what is lost without it");
    json_array_foreach(functions, index, row) {
        char place[32];
        place_text(place, sizeof place, row);
        (void)printf("  %-13s %-5s %-11s %-17s %s: %s\n", cli_json_string(row, "table"), cli_json_string(row, "since"), place,
                     cli_json_string(row, "checked")[0] != 0 ? cli_json_string(row, "checked") : "-", cli_json_string(row, "name"),
                     cli_json_string(row, "lost"));
    }
}
