/*
 * format/onnx_reads.c: which tensors of the main graph are read, by name. ORT removes initializers that nothing reads when it has parsed
 * a model, and then refuses to be given a value for them.
 */
#include <stdlib.h>
#include <string.h>

#include "format/onnx_scan.h"

#define READ_MAX ((size_t)1 << 20) /* names; what comes behind is not noted */

ortcrypt_status oc_scan_read(oc_scan *s, const oc_field *at, ortcrypt_error *err)
{
    oc_scan_reads *const reads = &s->reads[s->scope];

    /* a longer name is no tensor's: those were refused, or will be */
    if (s->scope == OC_SCOPE_ELSEWHERE || at->len == 0 || at->len > OC_NAME_MAX || reads->count == READ_MAX) {
        return ORTCRYPT_OK;
    }
    if (reads->count == reads->cap) {
        const size_t cap = reads->cap == 0 ? 256 : reads->cap * 2;
        uint64_t *const grown = realloc(reads->items, cap * sizeof *grown);
        if (grown == NULL) {
            return oc_fail_memory(err, cap * sizeof *grown, "the list of values that nodes read");
        }
        reads->items = grown;
        reads->cap = cap;
    }
    const ortcrypt_status st = oc_proto_hash(&s->in, at, &reads->items[reads->count], err);
    reads->count += st == ORTCRYPT_OK ? 1 : 0;
    return st;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool has(const oc_scan_reads *reads, uint64_t hash)
{
    return reads->count != 0 && bsearch(&hash, reads->items, reads->count, sizeof hash, compare) != NULL;
}

void oc_scan_mark_reads(oc_scan *s)
{
    const oc_scan_reads *const main = &s->reads[OC_SCOPE_MAIN];
    const oc_scan_reads *const below = &s->reads[OC_SCOPE_BELOW];

    for (size_t i = OC_SCOPE_MAIN; i <= OC_SCOPE_BELOW; i++) {
        if (s->reads[i].count != 0) {
            qsort(s->reads[i].items, s->reads[i].count, sizeof *s->reads[i].items, compare);
        }
    }
    for (size_t i = 0; i < s->model->tensor_count; i++) {
        oc_onnx_tensor *const tensor = &s->model->tensors[i];
        const uint64_t hash = oc_proto_name_hash(tensor->name, strlen(tensor->name));
        tensor->read_main = tensor->main_graph && has(main, hash);
        /* not every name was noted: what may be read is taken for read */
        tensor->read_below = tensor->main_graph && (has(below, hash) || main->count == READ_MAX || below->count == READ_MAX);
    }
}

void oc_scan_reads_free(oc_scan *s)
{
    for (size_t i = 0; i <= OC_SCOPE_BELOW; i++) {
        free(s->reads[i].items);
        s->reads[i] = (oc_scan_reads){NULL, 0, 0};
    }
}
