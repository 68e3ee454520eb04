/*
 * bundle/describe_report.h: JSON for describe and verify, over jansson. Everything put in is counted in `bad` when memory runs
 * out, so that callers check once, in oc_report_finish.
 */
#ifndef OC_BUNDLE_DESCRIBE_REPORT_H
#define OC_BUNDLE_DESCRIBE_REPORT_H

#include <jansson.h>

#include "format/manifest.h"

typedef struct oc_report {
    json_t *top; /* owned object */
    int bad;     /* not 0: something could not be added */
} oc_report;

void oc_report_start(oc_report *report);
void oc_report_free(oc_report *report);

/* `value` is taken over; NULL counts as bad. */
void oc_report_put(oc_report *report, json_t *object, const char *key, json_t *value);
void oc_report_add(oc_report *report, json_t *array, json_t *value);

/* A string; bytes that are no UTF-8 (of a path) become '?'. NULL gives "". */
json_t *oc_report_text(const char *text);
json_t *oc_report_hex(const uint8_t *data, size_t len); /* at most 32 bytes */
json_t *oc_report_number(uint64_t value);               /* above 2^63-1: that */

/* Indented text in *out, heap. */
ortcrypt_status oc_report_finish(oc_report *report, char **out, ortcrypt_error *err);

#endif
