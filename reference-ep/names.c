/* A set of names: open addressing, FNV-1a. The names are of the user's own model, so nobody gains by colliding them. */
#include "names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_of(const char *const *slots, size_t capacity, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = name; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    }
    size_t slot = (size_t)hash & (capacity - 1);
    while (slots[slot] != NULL && strcmp(slots[slot], name) != 0) {
        slot = (slot + 1) & (capacity - 1);
    }
    return slot;
}

static bool grow(oc_ref_names *names)
{
    const size_t capacity = names->capacity != 0 ? names->capacity * 2 : 64;
    const char **const slots = calloc(capacity, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < names->capacity; i++) {
        if (names->slots[i] != NULL) {
            slots[slot_of(slots, capacity, names->slots[i])] = names->slots[i];
        }
    }
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    return true;
}

int oc_ref_names_add(oc_ref_names *names, const char *name)
{
    if (names->count * 2 >= names->capacity && !grow(names)) {
        return -1;
    }
    const size_t slot = slot_of(names->slots, names->capacity, name);
    if (names->slots[slot] != NULL) {
        return 0;
    }
    names->slots[slot] = name;
    names->count++;
    return 1;
}

bool oc_ref_names_has(const oc_ref_names *names, const char *name)
{
    return names->capacity != 0 && names->slots[slot_of(names->slots, names->capacity, name)] != NULL;
}

void oc_ref_names_free(oc_ref_names *names)
{
    const oc_ref_names empty = {NULL, 0, 0};
    free(names->slots);
    *names = empty;
}
