/*
 * interpose/interpose.h: an OrtApiBase of ours, made from a real one, for an EP library to be given in its place.
 *
 * Call order: oc_interpose_new -> oc_interpose_replace (any number) -> CreateEpFactories(name, oc_interpose_base, ...) -> ... ->
 * ReleaseEpFactory, dlclose of the EP -> oc_interpose_free.
 * Data flow: the EP calls our base -> it answers with copies of the runtime's tables -> their slots are the runtime's own functions,
 * but for the slots that were replaced and for those the runtime does not have (oc_interpose_options.api_version).
 * Threads: new and free may run anywhere; replace before the base is handed out; what the EP calls is thread-safe.
 * ONNX Runtime's headers and libc only. Errors are OrtStatus of the real runtime, as in ep_context.
 */
#ifndef OC_INTERPOSE_INTERPOSE_H
#define OC_INTERPOSE_INTERPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <onnxruntime_c_api.h>

typedef struct oc_interpose oc_interpose;
typedef void(ORT_API_CALL *oc_function)(void); /* any function; cast it to what it is before calling */

/* ONNX Runtime's tables of functions. OrtApi hands out the others. */
typedef enum oc_table {
    OC_TABLE_API,     /* OrtApi */
    OC_TABLE_EP,      /* OrtEpApi */
    OC_TABLE_COMPILE, /* OrtCompileApi */
    OC_TABLE_EDITOR,  /* OrtModelEditorApi */
    OC_TABLE_INTEROP, /* OrtInteropApi */
    OC_TABLE_COUNT
} oc_table;

/* The newest 1.x whose tables are known: a newer runtime is offered to the EP as this one's API version. */
enum { OC_INTERPOSE_MINOR_MAX = 32 };

/* OC_SLOT(OrtApi, HardwareDevice_VendorId): a member's place in its table. */
#define OC_SLOT(table, member) (offsetof(table, member) / sizeof(oc_function))

typedef struct oc_interpose_options {
    const char *version;  /* what GetVersionString says ("1.28.0", at most 31 bytes, copied); NULL: what the runtime says */
    /*
     * The highest version that GetApi answers (23 to OC_INTERPOSE_MINOR_MAX); 0: the one that belongs to `version`. Above what the
     * runtime has, tables are padded: a missing function that returns an OrtStatus answers ORT_NOT_IMPLEMENTED. One that returns
     * something else cannot say so: it answers 0 or NULL, or does nothing, and is counted (oc_interpose_missed).
     */
    unsigned api_version;
} oc_interpose_options;

/*
 * *out is written on success only. `real` must stay valid until free; `options` may be NULL (copies, nothing changed).
 * ORT_INVALID_ARGUMENT for options out of range, ORT_NOT_IMPLEMENTED for a runtime before 1.23 or from 2 on, ORT_FAIL without memory
 * or beyond OC_INTERPOSE_POOL at a time. A runtime that cannot even make an OrtStatus gives NULL and leaves *out NULL.
 */
OrtStatus *oc_interpose_new(oc_interpose **out, const OrtApiBase *real, const oc_interpose_options *options);

/* Nobody may call through the base or a table any more. NULL is allowed. */
void oc_interpose_free(oc_interpose *interpose);

/* What the EP is given; valid until free. */
const OrtApiBase *oc_interpose_base(const oc_interpose *interpose);
/* The copied tables (NULL: this runtime has none); for those who make the wrapped calls themselves. */
const void *oc_interpose_table(const oc_interpose *interpose, oc_table table);

/*
 * Puts `function` into one slot. False when the table has no such slot at the offered version, and nothing changes.
 * `original` (may be NULL): what was there, to be called on; for a missing function that is the one that says so.
 */
bool oc_interpose_replace(oc_interpose *interpose, oc_table table, size_t slot, oc_function function, oc_function *original);

/* Minor version of the real runtime, and the OrtApi it gave for it. */
unsigned oc_interpose_minor(const oc_interpose *interpose);
const OrtApi *oc_interpose_real(const oc_interpose *interpose);

/* The highest version GetApi was asked for, answered or not: what the EP was built for. */
unsigned oc_interpose_asked(const oc_interpose *interpose);
/* How often a missing function was called that cannot say that it is missing. */
unsigned oc_interpose_missed(const oc_interpose *interpose);

/*
 * Most of ONNX Runtime's functions carry no argument that tells whose they are. A replacement that has to know makes itself once per
 * place of the pool, and the instance's index says which of them to put in:
 *     #define MAKE(n) static int64_t ORT_API_CALL mine_##n(...) { return mine(oc_interpose_at(n), ...); }
 *     OC_INTERPOSE_EACH(MAKE)
 */
#define OC_INTERPOSE_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
enum { OC_INTERPOSE_POOL = 16 }; /* instances at a time in one library */
unsigned oc_interpose_index(const oc_interpose *interpose);
oc_interpose *oc_interpose_at(unsigned index); /* NULL: none lives there */

#endif
