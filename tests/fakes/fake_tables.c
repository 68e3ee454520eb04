/* The tables: how long each is in each version, where it ends, and what happens when a slot is called that nobody expects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_private.h"

/* Slots of each table from 1.22 on; 1.33 is invented: every table has grown. */
static const unsigned short counts[FAKE_TABLE_COUNT][12] = {
    /*                1.22 1.23 1.24 1.25 1.26 1.27 1.28 1.29 1.30 1.31 1.32 1.33 */
    [FAKE_API] =     {318, 390, 415, 419, 419, 422, 424, 425, 426, 428, 429, 431},
    [FAKE_COMPILE] = {9, 14, 15, 15, 15, 15, 15, 16, 16, 17, 17, 18},
    [FAKE_EP] =      {2, 16, 50, 73, 73, 73, 73, 74, 74, 78, 78, 80},
    [FAKE_EDITOR] =  {20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 21},
    [FAKE_INTEROP] = {0, 0, 11, 13, 13, 13, 13, 13, 13, 13, 13, 14},
};

static const char *const table_names[] = {"OrtApiBase", "OrtApi", "OrtCompileApi", "OrtEpApi", "OrtModelEditorApi", "OrtInteropApi"};

static FILE *log_file;

static void log_call(fake_table table, size_t slot)
{
    if (log_file == NULL && getenv("FAKE_ORT_LOG") != NULL) {
        log_file = fopen(getenv("FAKE_ORT_LOG"), "ae");
    }
    if (log_file != NULL) {
        (void)fprintf(log_file, "%s %zu\n", table_names[table], slot);
        (void)fflush(log_file);
    }
}

void fake_called(fake_table table, size_t slot)
{
    fake_ort.called[table][slot] = true;
    log_call(table, slot);
}

static _Noreturn void unexpected(fake_table table, size_t slot)
{
    fake_called(table, slot);
    (void)fprintf(stderr, "fake ONNX Runtime 1.%u: slot %zu of %s was called\n", fake_minor, slot, table_names[table]);
    abort();
}

/* One function per slot: 0 to 511 from eight bits and a ninth. */
#define EIGHT(X, table, n) X(table, n##0) X(table, n##1) X(table, n##2) X(table, n##3) X(table, n##4) X(table, n##5) X(table, n##6) X(table, n##7)
#define SIXTY_FOUR(X, table, n) \
    EIGHT(X, table, n##0) EIGHT(X, table, n##1) EIGHT(X, table, n##2) EIGHT(X, table, n##3) \
    EIGHT(X, table, n##4) EIGHT(X, table, n##5) EIGHT(X, table, n##6) EIGHT(X, table, n##7)
#define ALL(X, table) \
    SIXTY_FOUR(X, table, 00) SIXTY_FOUR(X, table, 01) SIXTY_FOUR(X, table, 02) SIXTY_FOUR(X, table, 03) \
    SIXTY_FOUR(X, table, 04) SIXTY_FOUR(X, table, 05) SIXTY_FOUR(X, table, 06) SIXTY_FOUR(X, table, 07)
#define TRAMPOLINE(table, octal) static void table##_##octal(void) { unexpected(table, octal); }
#define ADDRESS(table, octal) table##_##octal,

ALL(TRAMPOLINE, FAKE_API)
SIXTY_FOUR(TRAMPOLINE, FAKE_COMPILE, 00)
SIXTY_FOUR(TRAMPOLINE, FAKE_EP, 00)
SIXTY_FOUR(TRAMPOLINE, FAKE_EP, 01)
SIXTY_FOUR(TRAMPOLINE, FAKE_EDITOR, 00)
SIXTY_FOUR(TRAMPOLINE, FAKE_INTEROP, 00)

static const fake_function api_trampolines[] = {ALL(ADDRESS, FAKE_API)};
static const fake_function compile_trampolines[] = {SIXTY_FOUR(ADDRESS, FAKE_COMPILE, 00)};
static const fake_function ep_trampolines[] = {SIXTY_FOUR(ADDRESS, FAKE_EP, 00) SIXTY_FOUR(ADDRESS, FAKE_EP, 01)};

static const fake_function editor_trampolines[] = {SIXTY_FOUR(ADDRESS, FAKE_EDITOR, 00)};
static const fake_function interop_trampolines[] = {SIXTY_FOUR(ADDRESS, FAKE_INTEROP, 00)};

static const fake_function *const trampolines[] = {NULL,           api_trampolines,    compile_trampolines,
                                                   ep_trampolines, editor_trampolines, interop_trampolines};

static size_t count_of(fake_table table, unsigned minor)
{
    return counts[table][minor < 22 ? 0 : minor - 22];
}

static void fill(fake_function *slots, fake_table table, unsigned minor)
{
    for (size_t i = 0; i < count_of(table, minor); i++) {
        slots[i] = trampolines[table][i];
    }
}

static void *copy(const fake_function *slots, fake_table table, unsigned minor)
{
    const size_t len = count_of(table, minor) * sizeof(*slots);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (len + page - 1) / page * page;
    char *const map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED) {
        abort();
    }
    memcpy(map + room - len, slots, len);
    if (mprotect(map, room, PROT_READ) != 0 || mprotect(map + room, page, PROT_NONE) != 0) {
        abort();
    }
    return map + room - len;
}

const void *fake_table_get(fake_table table, unsigned minor)
{
    static const void *made[FAKE_TABLE_COUNT][FAKE_VERSION_MAX][3]; /* never freed: the library may look at them for ever */
    const size_t kind = fake_ort.fault == FAKE_SHIFTED ? 1 : fake_ort.fault == FAKE_NO_SLOT ? 2 : 0;
    fake_function slots[FAKE_SLOT_MAX] = {NULL};

    if (made[table][minor][kind] == NULL) {
        fill(slots, table, minor);
        fake_put_functions(slots, table, minor);
        made[table][minor][kind] = copy(slots, table, minor);
    }
    return made[table][minor][kind];
}
