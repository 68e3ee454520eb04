/*
 * base/error.c: sentences for ortcrypt_error, monitor calls and the few public calls that need nothing else.
 * In: a format and arguments that may come from outside (paths, names). Out: clean UTF-8 in the caller's struct; nothing is kept.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#ifndef ORTCRYPT_VERSION
#define ORTCRYPT_VERSION "0.0.0" /* compiled without the build system */
#endif

#define MESSAGE_SIZE sizeof(((ortcrypt_error *)0)->message)
#define HINT_SIZE sizeof(((ortcrypt_error *)0)->hint)
#define CUT_MARK "..."

static const struct {
    ortcrypt_status status;
    const char *name;
    int exit_code;
} statuses[] = {
    {ORTCRYPT_OK, "ORTCRYPT_OK", 0},
    {ORTCRYPT_E_INVALID, "ORTCRYPT_E_INVALID", 2},
    {ORTCRYPT_E_INPUT, "ORTCRYPT_E_INPUT", 1},
    {ORTCRYPT_E_NOT_FOUND, "ORTCRYPT_E_NOT_FOUND", 1},
    {ORTCRYPT_E_EXISTS, "ORTCRYPT_E_EXISTS", 6},
    {ORTCRYPT_E_FORMAT, "ORTCRYPT_E_FORMAT", 5},
    {ORTCRYPT_E_UNSUPPORTED, "ORTCRYPT_E_UNSUPPORTED", 5},
    {ORTCRYPT_E_NO_KEY, "ORTCRYPT_E_NO_KEY", 4},
    {ORTCRYPT_E_NOT_AUTHENTIC, "ORTCRYPT_E_NOT_AUTHENTIC", 3},
    {ORTCRYPT_E_IO, "ORTCRYPT_E_IO", 6},
    {ORTCRYPT_E_NO_MEMORY, "ORTCRYPT_E_NO_MEMORY", 1},
    {ORTCRYPT_E_LIMIT, "ORTCRYPT_E_LIMIT", 1},
    {ORTCRYPT_E_BUSY, "ORTCRYPT_E_BUSY", 1},
    {ORTCRYPT_E_ORT, "ORTCRYPT_E_ORT", 1},
    {ORTCRYPT_E_CANCELLED, "ORTCRYPT_E_CANCELLED", 1},
};

const char *ortcrypt_status_name(ortcrypt_status status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i].status == status) {
            return statuses[i].name;
        }
    }
    return "unknown status";
}

int ortcrypt_status_exit_code(ortcrypt_status status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i].status == status) {
            return statuses[i].exit_code;
        }
    }
    return 1;
}

const char *ortcrypt_version(void)
{
    return ORTCRYPT_VERSION;
}

void ortcrypt_free(void *memory, uint64_t len)
{
    if (memory != NULL) {
        oc_wipe(memory, (size_t)len);
        free(memory);
    }
}

/* Length of the character at text[0] when it is valid UTF-8 and no control character, else 0. */
static size_t clean_char_len(const unsigned char *text, size_t len)
{
    if (text[0] < 0x80) {
        return text[0] >= 0x20 && text[0] != 0x7F;
    }
    size_t need = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (len < need || !oc_utf8_valid((const char *)text, need)) {
        return 0;
    }
    /* U+0080 to U+009F are control characters too (a terminal may obey U+009B) */
    return text[0] == 0xC2 && text[1] < 0xA0 ? 0 : need;
}

/* Replaces what a terminal or a JSON writer must not see. Lengths stay the same. */
static void clean(char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = clean_char_len((const unsigned char *)text + i, len - i);
        if (n == 0) {
            text[i] = '?';
            n = 1;
        }
        i += n;
    }
}

/* Cuts text of `len` bytes to at most `max`, between two characters, and says so. */
static size_t cut(char *text, size_t len, size_t max)
{
    if (len <= max) {
        return len;
    }
    len = max - (sizeof(CUT_MARK) - 1);
    while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80) {
        len--;
    }
    memcpy(text + len, CUT_MARK, sizeof(CUT_MARK));
    return len + sizeof(CUT_MARK) - 1;
}

/* Prints at most `max` clean bytes into `text` (which holds max + 5: a whole character more than asked for). */
static size_t print_clean(char *text, size_t max, const char *format, va_list args)
{
    int printed = vsnprintf(text, max + 5, format, args);
    if (printed < 0) {
        text[0] = '\0';
        return 0;
    }
    size_t len = (size_t)printed < max + 4 ? (size_t)printed : max + 4;
    clean(text, len);
    return cut(text, len, max);
}

/* The arguments of a sentence may point into *err itself, so it is complete before *err is touched. */
static void fill(ortcrypt_error *err, ortcrypt_status status, int sys_errno, const char *sentence, size_t len)
{
    err->status = status;
    err->sys_errno = sys_errno;
    err->offset = ORTCRYPT_NO_OFFSET;
    memset(err->asset, 0, sizeof(err->asset));
    memset(err->hint, 0, sizeof(err->hint));
    memcpy(err->message, sentence, len + 1);
}

ortcrypt_status oc_fail(ortcrypt_error *err, ortcrypt_status status, const char *format, ...)
{
    if (err != NULL) {
        char text[MESSAGE_SIZE + 4];
        va_list args;
        va_start(args, format);
        size_t len = print_clean(text, MESSAGE_SIZE - 1, format, args);
        va_end(args);
        fill(err, status, 0, text, len);
    }
    return status;
}

ortcrypt_status oc_fail_errno(ortcrypt_error *err, ortcrypt_status status, int sys_errno, const char *format, ...)
{
    if (sys_errno == ENOMEM) {
        status = ORTCRYPT_E_NO_MEMORY;
    }
    if (err != NULL) {
        char number[128];
        char reason[160] = "";
        if (sys_errno != 0) {
            snprintf(reason, sizeof(reason), ": %s", strerror_r(sys_errno, number, sizeof(number)));
            clean(reason, strlen(reason));
        }
        char text[MESSAGE_SIZE + sizeof(reason) + 4];
        va_list args;
        va_start(args, format);
        size_t len = print_clean(text, MESSAGE_SIZE - 1 - strlen(reason), format, args);
        va_end(args);
        memcpy(text + len, reason, strlen(reason) + 1);
        fill(err, status, sys_errno, text, len + strlen(reason));
    }
    return status;
}

ortcrypt_status oc_fail_memory(ortcrypt_error *err, uint64_t len, const char *what)
{
    return oc_fail(err, ORTCRYPT_E_NO_MEMORY, "%llu bytes of memory for %s are not available", (unsigned long long)len,
                   what);
}

void oc_hint(ortcrypt_error *err, const char *format, ...)
{
    if (err != NULL) {
        char text[HINT_SIZE + 4];
        va_list args;
        va_start(args, format);
        size_t len = print_clean(text, HINT_SIZE - 1, format, args);
        va_end(args);
        memcpy(err->hint, text, len + 1);
    }
}

void oc_at(ortcrypt_error *err, uint64_t offset, const char *asset)
{
    if (err != NULL) {
        err->offset = offset;
        if (asset != NULL) {
            snprintf(err->asset, sizeof(err->asset), "%s", asset);
        }
    }
}

void oc_notice(const ortcrypt_monitor *monitor, const char *format, ...)
{
    if (monitor != NULL && monitor->notice != NULL) {
        char text[MESSAGE_SIZE + 4];
        va_list args;
        va_start(args, format);
        print_clean(text, MESSAGE_SIZE - 1, format, args);
        va_end(args);
        monitor->notice(monitor->state, text);
    }
}

ortcrypt_status oc_progress(const ortcrypt_monitor *monitor, const char *step, uint64_t done, uint64_t total,
                            ortcrypt_error *err)
{
    if (monitor == NULL || monitor->progress == NULL || monitor->progress(monitor->state, step, done, total) == 0) {
        return ORTCRYPT_OK;
    }
    return oc_fail(err, ORTCRYPT_E_CANCELLED, "stopped while %s, as asked", step);
}
