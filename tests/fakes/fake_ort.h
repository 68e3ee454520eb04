/*
 * fakes/fake_ort.h: an ONNX Runtime that is only tables. Every slot that is not expected to be called ends the process and says its
 * index; tables end at a page that cannot be read, so that a look beyond the version's last slot ends it too.
 *
 * Libraries: build/<preset>/fakes/libfake_ort_<minor>.so, one per version from 1.23 to 1.33, all from the same sources.
 * A test loads one, gets its control with `fake_ort_control`, changes it, and hands OrtGetApiBase or the path to the library under
 * test. Programs are told through the environment, which is read once: FAKE_ORT_VERSION, FAKE_ORT_FAULT (a name of the list below),
 * FAKE_ORT_LOG (a file: "TABLE SLOT" per call).
 */
#ifndef FAKE_ORT_H
#define FAKE_ORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What goes wrong. One at a time. */
#define FAKE_FAULTS(X) \
    X(NONE) \
    X(NO_API)            /* GetApi gives NULL */ \
    X(NO_COMPILE_API)    /* a minimal build */ \
    X(NO_EP_API) \
    X(NO_NAMES)          /* GetExperimentalFunction knows no name */ \
    X(ENV_FAILS) \
    X(REGISTER_FAILS)    /* after the library was added */ \
    X(OPTIONS_FAIL) \
    X(SET_READ_FAILS) \
    X(SET_READ_FORGETS) \
    X(CONFIG_FAILS) \
    X(CONFIG_NULL) \
    X(GET_READ_FAILS) \
    X(WRONG_FUNCTION)    /* another read callback than was set */ \
    X(WRONG_STATE) \
    X(NEVER_CLEARED)     /* the callback stays when NULL is set */ \
    X(GET_WRITE_FAILS) \
    X(WRITE_INVENTED) \
    X(SET_WRITE_BLIND)   /* accepts NULL options */ \
    X(SIZE_LIMIT)        /* set-read takes a size as fourth argument, get-read wants a place for it */ \
    X(SIZE_LIMIT_OPTIONAL) /* the same, but the place may be NULL */ \
    X(SHIFTED)           /* every member from set-read on stands one place further */ \
    X(NO_SLOT)           /* set-read's slot is NULL */ \
    X(CRASHES)           /* set-read reads where nothing is */ \
    X(WEIGHTLESS_DIFFERS)

#define FAKE_NAME(name) FAKE_##name,
typedef enum fake_fault { FAKE_FAULTS(FAKE_NAME) FAKE_FAULT_COUNT } fake_fault;
#undef FAKE_NAME

typedef enum fake_table { FAKE_BASE, FAKE_API, FAKE_COMPILE, FAKE_EP, FAKE_EDITOR, FAKE_INTEROP, FAKE_TABLE_COUNT } fake_table;

/* Of FAKE_BASE. */
enum { FAKE_GET_API, FAKE_GET_VERSION };

enum { FAKE_SLOT_MAX = 512, FAKE_VERSION_MAX = 64 };

typedef struct fake_control {
    const char *version; /* any bytes, or NULL */
    fake_fault fault;
    atomic_bool called[FAKE_TABLE_COUNT][FAKE_SLOT_MAX]; /* by index */
    atomic_bool by_name[6];                              /* GetExperimentalFunction was asked for that function, in the seed's order */
    atomic_bool asked[FAKE_VERSION_MAX];                 /* GetApi was asked for that version */
    atomic_bool asked_beyond;                            /* ... and for one that this runtime has not */
    atomic_size_t live;                              /* options, configurations, environments and errors not yet released */
    size_t libraries;                             /* registered EP libraries */
} fake_control;

typedef fake_control *(*fake_control_fn)(void); /* symbol "fake_ort_control" */

#endif
