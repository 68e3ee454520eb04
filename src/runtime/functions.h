/*
 * runtime/functions.h: the functions of ONNX Runtime whose way to them, or whose presence, differs by version: one row each.
 * Everything else the library calls is a member of OrtApi or OrtCompileApi since 1.23 or before. docs/runtimes.md is made from it.
 */
#ifndef OC_RUNTIME_FUNCTIONS_H
#define OC_RUNTIME_FUNCTIONS_H

#include <stdbool.h>

#include "runtime/runtime.h"

/* Where a function is a member. Entries are texts in the session's configuration; the EP's are members of its own OrtEp. */
typedef enum oc_function_home { OC_HOME_API, OC_HOME_COMPILE, OC_HOME_EP_API, OC_HOME_EP, OC_HOME_ENTRY } oc_function_home;

/* What proves that the row is right on the runtime at hand. */
typedef enum oc_function_check {
    OC_CHECK_PLACE,      /* its place alone: tables only grow at their end */
    OC_CHECK_ROUND_TRIP, /* what was set on scratch options is what is got back */
    OC_CHECK_REFUSAL     /* it refuses NULL options as invalid: what it sets, only an EP can see */
} oc_function_check;

typedef struct oc_function_row {
    const char *name;         /* in its table; the key of an entry */
    const char *experimental; /* its name for GetExperimentalFunction; NULL: never was one */
    oc_function_home home;
    unsigned slot;  /* index in its table; 0 for an entry */
    unsigned since; /* minor version from which on it is there; for experimental ones: is a member */
    oc_function_check check;
    const char *lost; /* what cannot be done without it: a sentence part, a constant */
} oc_function_row;

enum { OC_FIRST_EXPERIMENTAL = 28 }; /* minor version of the first ORT with experimental functions */

/* The table, row by row; false after the last one. */
bool oc_function_at(oc_function_row *row, size_t index);
const char *oc_function_home_text(oc_function_home home);
/* "set and read back"; a constant. */
const char *oc_function_check_text(oc_function_check check);

/* How a function was found on this runtime. */
typedef enum oc_found { OC_FOUND_NOT, OC_FOUND_EXPERIMENTAL, OC_FOUND_MEMBER, OC_FOUND_ENTRY } oc_found;
oc_found oc_function_find(const ortcrypt_runtime *runtime, const oc_function_row *row);

/*
 * round_trip.c: NULL when the runtime's callback functions answer as they should, else what it does: a sentence part, a constant. A
 * runtime newer than those seen is tried in a child process.
 */
const char *oc_round_trip(ortcrypt_runtime *runtime);

#endif
