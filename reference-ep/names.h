/* names.h: a set of names. The texts are ORT's (they live as long as the graph); the set only points at them. */
#ifndef OC_REFERENCE_EP_NAMES_H
#define OC_REFERENCE_EP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct oc_ref_names {
    const char **slots; /* open addressing, a power of two of them */
    size_t capacity;
    size_t count;
} oc_ref_names;

/* 1: added, 0: was there already, -1: no memory. */
int oc_ref_names_add(oc_ref_names *names, const char *name);
bool oc_ref_names_has(const oc_ref_names *names, const char *name);
void oc_ref_names_free(oc_ref_names *names);

#endif
