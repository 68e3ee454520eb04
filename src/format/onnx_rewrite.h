/*
 * format/onnx_rewrite.h: the planned changes of a model: what the rewriter applies and what a recipe takes back. Private to src/format.
 * Call order: oc_rewriter_open -> read the patches -> oc_rewriter_close.
 */
#ifndef OC_FORMAT_ONNX_REWRITE_H
#define OC_FORMAT_ONNX_REWRITE_H

#include "format/onnx_scan.h"

#define OC_REWRITE_OUT_LEN (256u * 1024u) /* bytes of rewriter.out */

/* At `off` of the source: leave out `old_len` bytes, put in text[text_off .. + text_len], then the edit's bytes if any. */
typedef struct oc_patch {
    uint64_t off;
    uint64_t old_len;
    size_t text_off;
    size_t text_len;
    const oc_onnx_edit *insert;
} oc_patch;

typedef struct oc_rewriter {
    oc_proto in;
    const oc_onnx_model *model;
    const oc_onnx_edit *edits;
    size_t edit_count;
    size_t edit_next;
    oc_patch *patches; /* ascending and disjoint */
    size_t patch_count;
    size_t patch_cap;
    oc_buf text;
    oc_push_fn push;
    void *push_state;
    uint8_t *out;
    size_t out_len;
} oc_rewriter;

/* The first pass over the model. model, source and edits are borrowed until close; *new_len: bytes of the result. Closed on failure. */
ortcrypt_status oc_rewriter_open(oc_rewriter *r, const oc_onnx_model *model, const oc_source *source,
                                 const oc_onnx_edit *edits, size_t edit_count, uint64_t *new_len, ortcrypt_error *err);
void oc_rewriter_close(oc_rewriter *r);

#endif
