/* interpose/internal.h: what the files of this folder share. An instance owns its tables; everything else is the runtime's. */
#ifndef OC_INTERPOSE_INTERNAL_H
#define OC_INTERPOSE_INTERNAL_H

#include <stdatomic.h>

#include "ep_context/internal.h"
#include "interpose/interpose.h"

struct oc_interpose {
    OrtApiBase base; /* the EP's */
    const OrtApi *real;
    unsigned minor; /* of the real runtime */
    unsigned index; /* in the pool */
    unsigned api_version; /* highest answered */
    char version[32];
    oc_function *tables[OC_TABLE_COUNT]; /* NULL: none */
    size_t counts[OC_TABLE_COUNT];       /* slots */
    atomic_uint asked;
    atomic_uint missed;
};

/* slots.c: number of slots that a table has in 1.`minor` (23 to OC_INTERPOSE_MINOR_MAX). */
size_t oc_slot_count(oc_table table, unsigned minor);
/* False: it returns something else (or is not known), so that it cannot answer ORT_NOT_IMPLEMENTED. */
bool oc_slot_returns_status(oc_table table, size_t slot);

/* pool.c: the functions that belong to one place of the pool. */
typedef struct oc_pool_functions {
    const OrtApi *(ORT_API_CALL *get_api)(uint32_t version);
    const char *(ORT_API_CALL *get_version)(void);
    oc_function get_table[OC_TABLE_COUNT]; /* NULL for OC_TABLE_API */
    oc_function missing_status;
    oc_function missing_other;
} oc_pool_functions;
const oc_pool_functions *oc_pool_at(unsigned index);
/* Takes a free place; false when there is none. */
bool oc_pool_take(oc_interpose *interpose);
void oc_pool_leave(const oc_interpose *interpose);

#endif
