/* fakes/fake_private.h: what the sources of the fake runtime share. */
#ifndef FAKE_PRIVATE_H
#define FAKE_PRIVATE_H

#include "fake_ort.h"

typedef void (*fake_function)(void);

extern const unsigned fake_minor; /* of this library: fake_minor.c */
extern fake_control fake_ort;

/* Notes a call of a slot that is expected. */
void fake_called(fake_table table, size_t slot);

/* A table of a version: trampolines and the functions that are expected; read-only, and it ends where reading ends. */
const void *fake_table_get(fake_table table, unsigned minor);

/* fake_functions.c: puts the functions that are expected into a table. */
void fake_put_functions(fake_function *slots, fake_table table, unsigned minor);

#endif
