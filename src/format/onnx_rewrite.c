/*
 * format/onnx_rewrite.c: replacing tensors' data in a model while it streams by.
 *
 * First pass: the messages around each edited tensor are walked, and every difference between the old and the new bytes becomes
 * a patch; lengths are known bottom-up, so a message's new length is patched once its content has been. Second pass: the source
 * is copied through, patches applied. Patches and the text they insert are the rewriter's; the tensors' new data stays in its
 * source until it is pushed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/onnx_rewrite.h"

#define TEXT_MAX ((size_t)1 << 31)
#define PREFIX_MAX 16 /* bytes: a tag and a length */

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t len = 0;

    while (value >= 0x80) {
        out[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[len++] = (uint8_t)value;
    return len;
}

static ortcrypt_status add_patch(oc_rewriter *r, const oc_patch *p, size_t *index, ortcrypt_error *err)
{
    if (r->patch_count == r->patch_cap) {
        const size_t cap = r->patch_cap == 0 ? 64 : r->patch_cap * 2;
        oc_patch *grown = realloc(r->patches, cap * sizeof *grown);
        if (grown == NULL) {
            return oc_fail_memory(err, cap * sizeof *grown, "the changes of a model");
        }
        r->patches = grown;
        r->patch_cap = cap;
    }
    if (index != NULL) {
        *index = r->patch_count;
    }
    r->patches[r->patch_count++] = *p;
    return ORTCRYPT_OK;
}

/* Leaves out source bytes; joins them to the patch before when that one ends here and inserts nothing. */
static ortcrypt_status drop(oc_rewriter *r, uint64_t off, uint64_t len, ortcrypt_error *err)
{
    oc_patch *last = r->patch_count != 0 ? &r->patches[r->patch_count - 1] : NULL;

    if (last != NULL && last->text_len == 0 && last->insert == NULL && last->off + last->old_len == off) {
        last->old_len += len;
        return ORTCRYPT_OK;
    }
    return add_patch(r, &(oc_patch){.off = off, .old_len = len}, NULL, err);
}

static ortcrypt_status put_entry(oc_rewriter *r, const char *key, const char *value, ortcrypt_error *err)
{
    uint8_t head[PREFIX_MAX * 3];
    const size_t key_len = strlen(key);
    const size_t value_len = strlen(value);
    uint8_t sizes[2][PREFIX_MAX];
    const size_t key_size = put_varint(sizes[0], key_len);
    const size_t value_size = put_varint(sizes[1], value_len);
    size_t len = 0;

    head[len++] = 13 << 3 | OC_WIRE_LEN; /* TensorProto.external_data */
    len += put_varint(head + len, 2 + key_size + key_len + value_size + value_len);
    head[len++] = 1 << 3 | OC_WIRE_LEN; /* StringStringEntryProto.key */
    memcpy(head + len, sizes[0], key_size);
    len += key_size;
    ortcrypt_status st = oc_buf_append(&r->text, head, len, err);
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append(&r->text, key, key_len, err);
    }
    len = 0;
    head[len++] = 2 << 3 | OC_WIRE_LEN; /* StringStringEntryProto.value */
    memcpy(head + len, sizes[1], value_size);
    len += value_size;
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append(&r->text, head, len, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append(&r->text, value, value_len, err);
    }
    return st;
}

/* The new fields of an edited tensor, appended to its end. */
static ortcrypt_status put_fields(oc_rewriter *r, const oc_onnx_edit *edit, ortcrypt_error *err)
{
    static const uint8_t external[] = {14 << 3 | OC_WIRE_VARINT, 1}; /* TensorProto.data_location = EXTERNAL */
    uint8_t head[PREFIX_MAX];
    char number[24];

    if (edit->kind == OC_EDIT_INLINE) {
        head[0] = 9 << 3 | OC_WIRE_LEN; /* TensorProto.raw_data */
        return oc_buf_append(&r->text, head, 1 + put_varint(head + 1, edit->length), err);
    }
    ortcrypt_status st = put_entry(r, "location", edit->location, err);
    if (st == ORTCRYPT_OK) {
        (void)snprintf(number, sizeof number, "%" PRIu64, edit->offset);
        st = put_entry(r, "offset", number, err);
    }
    if (st == ORTCRYPT_OK) {
        (void)snprintf(number, sizeof number, "%" PRIu64, edit->length);
        st = put_entry(r, "length", number, err);
    }
    if (st == ORTCRYPT_OK) {
        st = oc_buf_append(&r->text, external, sizeof external, err);
    }
    return st;
}

/* Whether a TensorProto field says where data is, or is data. */
static bool is_data(uint32_t number)
{
    return (number >= 4 && number <= 7) || (number >= 9 && number <= 11) || number == 13 || number == 14;
}

/* The patches of one edited tensor, whose body is [start, end). *new_len: its length afterwards. */
static ortcrypt_status plan_tensor(oc_rewriter *r, uint64_t start, uint64_t end, uint64_t *new_len, ortcrypt_error *err)
{
    const oc_onnx_edit *const edit = &r->edits[r->edit_next++];
    oc_patch tail = {.off = end, .text_off = r->text.len};
    uint64_t len = end - start;
    ortcrypt_status st = ORTCRYPT_OK;

    r->in.pos = start;
    while (st == ORTCRYPT_OK && r->in.pos < end) {
        oc_field f;
        st = oc_proto_next(&r->in, end, &f, err);
        if (st == ORTCRYPT_OK && is_data(f.number)) {
            len -= r->in.pos - f.tag_off;
            st = drop(r, f.tag_off, r->in.pos - f.tag_off, err);
        }
    }
    if (st == ORTCRYPT_OK) {
        st = put_fields(r, edit, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    tail.text_len = r->text.len - tail.text_off;
    tail.insert = edit->kind == OC_EDIT_INLINE && edit->length != 0 ? edit : NULL;
    *new_len = len + tail.text_len + (tail.insert != NULL ? edit->length : 0);
    return add_patch(r, &tail, NULL, err);
}

static const oc_onnx_tensor *next_tensor(const oc_rewriter *r)
{
    return r->edit_next < r->edit_count ? &r->model->tensors[r->edits[r->edit_next].tensor] : NULL;
}

/* The patches inside the message whose body is [start, end). Fields are disjoint, so only one of them holds the next tensor. */
static ortcrypt_status plan_message(oc_rewriter *r, uint64_t start, uint64_t end, unsigned depth, uint64_t *new_len,
                                    ortcrypt_error *err)
{
    uint64_t len = end - start;
    ortcrypt_status st = ORTCRYPT_OK;

    r->in.pos = start;
    while (st == ORTCRYPT_OK && r->in.pos < end) {
        const oc_onnx_tensor *const t = next_tensor(r);
        oc_field f;
        size_t index = 0;
        uint64_t child_len = 0;

        if (t == NULL || t->body_off > end) {
            break;
        }
        st = oc_proto_next(&r->in, end, &f, err);
        if (st != ORTCRYPT_OK || f.wire != OC_WIRE_LEN || t->body_off < f.off || t->body_len > f.len ||
            t->body_off - f.off > f.len - t->body_len) {
            continue;
        }
        if (depth == OC_SCAN_DEPTH_MAX) {
            return oc_proto_refuse(&r->in, f.tag_off, err, "it changed since it was scanned");
        }
        st = add_patch(r, &(oc_patch){.off = f.len_off, .old_len = f.off - f.len_off}, &index, err);
        if (st == ORTCRYPT_OK && t->body_off == f.off && t->body_len == f.len) {
            st = plan_tensor(r, f.off, f.off + f.len, &child_len, err);
        } else if (st == ORTCRYPT_OK) {
            st = plan_message(r, f.off, f.off + f.len, depth + 1, &child_len, err);
        }
        r->in.pos = f.off + f.len;
        if (st == ORTCRYPT_OK) {
            uint8_t prefix[PREFIX_MAX];
            r->patches[index].text_off = r->text.len;
            r->patches[index].text_len = put_varint(prefix, child_len);
            len = len - f.len - (f.off - f.len_off) + child_len + r->patches[index].text_len;
            st = oc_buf_append(&r->text, prefix, r->patches[index].text_len, err);
        }
    }
    *new_len = len;
    return st;
}

static ortcrypt_status check_edits(const oc_onnx_model *model, const oc_onnx_edit *edits, size_t edit_count,
                                   ortcrypt_error *err)
{
    for (size_t i = 0; i < edit_count; i++) {
        const oc_onnx_edit *const e = &edits[i];
        uint64_t len = 0;
        if (e->tensor >= model->tensor_count ||
            (i > 0 && model->tensors[e->tensor].body_off <= model->tensors[edits[i - 1].tensor].body_off)) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "edit %zu is out of order", i);
        }
        const oc_onnx_tensor *const t = &model->tensors[e->tensor];
        if (!oc_onnx_tensor_len(t->dtype, t->shape, t->rank, &len) || len != e->length) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "tensor %s does not have %" PRIu64 " bytes", t->name, e->length);
        }
        if (e->kind == OC_EDIT_INLINE &&
            (e->source == NULL || e->offset > e->source->size || e->length > e->source->size - e->offset)) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "the new data of tensor %s is not inside its source", t->name);
        }
        if (e->kind == OC_EDIT_RELOCATE && (e->location == NULL || !oc_name_valid(e->location, strlen(e->location)))) {
            return oc_fail(err, ORTCRYPT_E_INVALID, "the new location of tensor %s is no name", t->name);
        }
    }
    return ORTCRYPT_OK;
}

static ortcrypt_status flush(oc_rewriter *r, ortcrypt_error *err)
{
    const size_t len = r->out_len;

    r->out_len = 0;
    return len == 0 ? ORTCRYPT_OK : r->push(r->push_state, r->out, len, err);
}

static ortcrypt_status emit_source(oc_rewriter *r, const oc_source *source, uint64_t off, uint64_t len, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    while (st == ORTCRYPT_OK && len != 0) {
        const uint64_t room = OC_REWRITE_OUT_LEN - r->out_len;
        const size_t part = (size_t)(len < room ? len : room);
        st = source->read(source->state, off, r->out + r->out_len, part, err);
        if (st == ORTCRYPT_OK) {
            r->out_len += part;
            off += part;
            len -= part;
            st = r->out_len == OC_REWRITE_OUT_LEN ? flush(r, err) : ORTCRYPT_OK;
        }
    }
    return st;
}

static ortcrypt_status emit(oc_rewriter *r, ortcrypt_error *err)
{
    const oc_span text = OC_SPAN(r->text.data, r->text.len);
    const oc_source text_source = oc_source_memory(&text);
    uint64_t pos = 0;
    ortcrypt_status st = ORTCRYPT_OK;

    for (size_t i = 0; st == ORTCRYPT_OK && i < r->patch_count; i++) {
        const oc_patch *const p = &r->patches[i];
        st = emit_source(r, r->in.source, pos, p->off - pos, err);
        pos = p->off + p->old_len;
        if (st == ORTCRYPT_OK) {
            st = emit_source(r, &text_source, p->text_off, p->text_len, err);
        }
        if (st == ORTCRYPT_OK && p->insert != NULL) {
            st = emit_source(r, p->insert->source, p->insert->offset, p->insert->length, err);
        }
    }
    if (st == ORTCRYPT_OK) {
        st = emit_source(r, r->in.source, pos, r->in.source->size - pos, err);
    }
    return st == ORTCRYPT_OK ? flush(r, err) : st;
}

ortcrypt_status oc_rewriter_open(oc_rewriter *r, const oc_onnx_model *model, const oc_source *source,
                                 const oc_onnx_edit *edits, size_t edit_count, uint64_t *new_len, ortcrypt_error *err)
{
    uint64_t len = 0;

    *r = (oc_rewriter){.model = model, .edits = edits, .edit_count = edit_count, .text = OC_BUF(TEXT_MAX)};
    ortcrypt_status st = check_edits(model, edits, edit_count, err);
    if (st == ORTCRYPT_OK) {
        st = oc_proto_open(&r->in, source, "the model", err);
    }
    if (st == ORTCRYPT_OK) {
        st = plan_message(r, 0, source->size, 0, &len, err);
    }
    if (st == ORTCRYPT_OK && r->edit_next != edit_count) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "the model changed since it was scanned");
    }
    if (st == ORTCRYPT_OK && len > OC_PROTO_MAX) {
        st = oc_fail(err, ORTCRYPT_E_INPUT, "the model would grow to %" PRIu64 " bytes, and an ONNX model must stay below 2 GiB",
                     len);
    }
    if (st != ORTCRYPT_OK) {
        oc_rewriter_close(r);
        return st;
    }
    *new_len = len;
    return ORTCRYPT_OK;
}

void oc_rewriter_close(oc_rewriter *r)
{
    if (r->out != NULL) {
        oc_wipe(r->out, OC_REWRITE_OUT_LEN);
        free(r->out);
        r->out = NULL;
    }
    oc_buf_free(&r->text);
    free(r->patches);
    r->patches = NULL;
    oc_proto_close(&r->in);
}

ortcrypt_status oc_onnx_rewrite(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                                size_t edit_count, oc_push_fn push, void *push_state, uint64_t *new_len,
                                ortcrypt_error *err)
{
    oc_rewriter r;
    uint64_t len = 0;

    ortcrypt_status st = oc_rewriter_open(&r, model, source, edits, edit_count, &len, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    r.push = push;
    r.push_state = push_state;
    if (push != NULL) {
        r.out = malloc(OC_REWRITE_OUT_LEN);
        st = r.out == NULL ? oc_fail_memory(err, OC_REWRITE_OUT_LEN, "the new model's buffer") : emit(&r, err);
    }
    oc_rewriter_close(&r);
    if (st == ORTCRYPT_OK && new_len != NULL) {
        *new_len = len;
    }
    return st;
}
