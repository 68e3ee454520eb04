/* Prints the table of docs/runtimes.md from the library's own: see tools/runtime_table.py. */
#include <stdio.h>

#include "runtime/functions.h"

int main(void)
{
    oc_function_row row;

    (void)puts("| function | member of | 1.28 to 1.30 | since | checked by | lost without it |\n|---|---|---|---|---|---|");
    for (size_t i = 0; oc_function_at(&row, i); i++) {
        char place[64];
        (void)snprintf(place, sizeof(place), row.home != OC_HOME_ENTRY ? "`%s`, %u" : "%s", oc_function_home_text(row.home), row.slot);
        (void)printf("| `%s` | %s | %s | 1.%u | %s | %s |\n", row.name, place, row.experimental != NULL ? "by name" : "", row.since,
                     oc_function_check_text(row.check), row.lost);
    }
    return 0;
}
