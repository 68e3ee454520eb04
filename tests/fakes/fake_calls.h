/* fakes/fake_calls.h: exactly which slots of a fake were called. */
#ifndef FAKE_CALLS_H
#define FAKE_CALLS_H

#include "fakes/fake_load.h"

typedef struct expected {
    fake_table table;
    size_t slot;
    const char *name;
    unsigned since, until; /* minor versions on which it is called */
} expected;

#define BASE(slot, since, until) {FAKE_BASE, slot, #slot, since, until}
#define API(member, since, until) {FAKE_API, offsetof(OrtApi, member) / sizeof(void *), #member, since, until}
#define PLACE(table, slot, since, until) {table, slot, #slot, since, until}

/* Exactly these were called since the last look. */
static inline void check_calls(const fake *f, unsigned minor, const char *when, const expected *list, size_t count)
{
    for (size_t table = 0; table < FAKE_TABLE_COUNT; table++) {
        for (size_t slot = 0; slot < FAKE_SLOT_MAX; slot++) {
            const char *name = NULL;
            for (size_t i = 0; i < count; i++) {
                if (list[i].table == table && list[i].slot == slot && minor >= list[i].since && minor <= list[i].until) {
                    name = list[i].name;
                }
            }
            if (f->control->called[table][slot] != (name != NULL)) {
                fail_msg("1.%u, %s: slot %zu of table %zu (%s) was %s", minor, when, slot, table, name != NULL ? name : "not expected",
                         name != NULL ? "not called" : "called");
            }
        }
    }
    memset(f->control->called, 0, sizeof f->control->called);
}

#define CHECK_CALLS(f, minor, list) check_calls(f, minor, #list, list, sizeof(list) / sizeof((list)[0]))

#endif
