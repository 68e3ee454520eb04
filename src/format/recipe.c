/*
 * format/recipe.c: recipes made from a rewrite's patches, and followed.
 * In: what the rewriter planned, read backwards: what it put in is skipped, what it left out comes back.
 */
#include "format/recipe.h"

#include <stdlib.h>

#include "format/onnx_rewrite.h"

#define BUFFER_LEN (256u * 1024u)
#define LITERAL_PART 4096u

typedef struct maker {
    const oc_rewriter *r;
    size_t next; /* the first edit whose tensor's own data was not passed yet */
    oc_push_fn push;
    void *state;
} maker;

static ortcrypt_status put_record(const maker *m, oc_recipe_kind kind, uint64_t first, const uint64_t *second,
                                  ortcrypt_error *err)
{
    uint8_t record[17] = {(uint8_t)kind};

    oc_store_be64(record + 1, first);
    if (second != NULL) {
        oc_store_be64(record + 9, *second);
    }
    return m->push(m->state, record, second != NULL ? 17 : 9, err);
}

static ortcrypt_status put_literal(const maker *m, uint64_t off, uint64_t len, ortcrypt_error *err)
{
    const oc_source *const source = m->r->in.source;
    uint8_t part[LITERAL_PART];
    ortcrypt_status st = len == 0 ? ORTCRYPT_OK : put_record(m, OC_RECIPE_LITERAL, len, NULL, err);

    while (st == ORTCRYPT_OK && len != 0) {
        const size_t part_len = len < sizeof part ? (size_t)len : sizeof part;
        st = source->read(source->state, off, part, part_len, err);
        if (st == ORTCRYPT_OK) {
            st = m->push(m->state, part, part_len, err);
        }
        off += part_len;
        len -= part_len;
    }
    oc_wipe(part, sizeof part);
    return st;
}

/* The bytes that a patch left out; those of a moved tensor come from the weights. */
static ortcrypt_status put_old(maker *m, const oc_patch *p, ortcrypt_error *err)
{
    const uint64_t end = p->off + p->old_len;
    uint64_t pos = p->off;
    ortcrypt_status st = ORTCRYPT_OK;

    for (; st == ORTCRYPT_OK && m->next < m->r->edit_count; m->next++) {
        const oc_onnx_edit *const edit = &m->r->edits[m->next];
        const oc_onnx_tensor *const tensor = &m->r->model->tensors[edit->tensor];
        if (edit->kind != OC_EDIT_RELOCATE || tensor->raw_len == 0) {
            continue;
        }
        if (tensor->raw_off >= end) {
            break; /* of a later patch */
        }
        st = put_literal(m, pos, tensor->raw_off - pos, err);
        if (st == ORTCRYPT_OK) {
            st = put_record(m, OC_RECIPE_WEIGHTS, edit->offset, &tensor->raw_len, err);
        }
        pos = tensor->raw_off + tensor->raw_len;
    }
    return st == ORTCRYPT_OK ? put_literal(m, pos, end - pos, err) : st;
}

ortcrypt_status oc_recipe_make(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                               size_t edit_count, oc_push_fn push, void *push_state, ortcrypt_error *err)
{
    oc_rewriter r;
    maker m = {.r = &r, .push = push, .state = push_state};
    uint64_t new_len = 0;
    uint64_t pos = 0;

    ortcrypt_status st = oc_rewriter_open(&r, model, source, edits, edit_count, &new_len, err);
    if (st != ORTCRYPT_OK) {
        return st;
    }
    for (size_t i = 0; st == ORTCRYPT_OK && i < r.patch_count; i++) {
        const oc_patch *const p = &r.patches[i];
        const uint64_t put_in = p->text_len + (p->insert != NULL ? p->insert->length : 0);
        if (p->off != pos) {
            st = put_record(&m, OC_RECIPE_MODEL, p->off - pos, NULL, err);
        }
        if (st == ORTCRYPT_OK && put_in != 0) {
            st = put_record(&m, OC_RECIPE_SKIP, put_in, NULL, err);
        }
        if (st == ORTCRYPT_OK) {
            st = put_old(&m, p, err);
        }
        pos = p->off + p->old_len;
    }
    if (st == ORTCRYPT_OK && pos != source->size) {
        st = put_record(&m, OC_RECIPE_MODEL, source->size - pos, NULL, err);
    }
    oc_rewriter_close(&r);
    return st;
}

/* A recipe while it is followed. */
typedef struct follower {
    const oc_source *recipe;
    const oc_source *model;
    const oc_source *weights;
    uint64_t recipe_pos;
    uint64_t model_pos;
    uint64_t left; /* bytes of the original that are still to come */
    uint8_t *buffer;
    oc_push_fn push;
    void *state;
} follower;

static ortcrypt_status refuse(const follower *f, const char *what, ortcrypt_error *err)
{
    return oc_fail(err, ORTCRYPT_E_NOT_AUTHENTIC, "the recipe of the split model is not valid: at byte %llu it %s",
                   (unsigned long long)f->recipe_pos, what);
}

/* Pushes [off, off + len) of `from`, which must be in it. */
static ortcrypt_status copy(follower *f, const oc_source *from, uint64_t off, uint64_t len, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    if (len > f->left) {
        return refuse(f, "gives more than the original's size", err);
    }
    f->left -= len;
    while (st == ORTCRYPT_OK && len != 0) {
        const size_t part = len < BUFFER_LEN ? (size_t)len : BUFFER_LEN;
        st = from->read(from->state, off, f->buffer, part, err);
        if (st == ORTCRYPT_OK) {
            st = f->push(f->state, f->buffer, part, err);
        }
        off += part;
        len -= part;
    }
    return st;
}

static bool inside(const oc_source *source, uint64_t off, uint64_t len)
{
    return off <= source->size && len <= source->size - off;
}

static ortcrypt_status read_number(follower *f, uint64_t *value, ortcrypt_error *err)
{
    uint8_t bytes[8];

    if (!inside(f->recipe, f->recipe_pos, sizeof bytes)) {
        return refuse(f, "is cut", err);
    }
    const ortcrypt_status st = f->recipe->read(f->recipe->state, f->recipe_pos, bytes, sizeof bytes, err);
    if (st == ORTCRYPT_OK) {
        f->recipe_pos += sizeof bytes;
        *value = oc_load_be64(bytes);
    }
    return st;
}

static ortcrypt_status follow_model(follower *f, bool keep, uint64_t len, ortcrypt_error *err)
{
    const uint64_t off = f->model_pos;

    if (!inside(f->model, off, len)) {
        return refuse(f, "goes beyond the model", err);
    }
    f->model_pos += len;
    return keep ? copy(f, f->model, off, len, err) : ORTCRYPT_OK;
}

static ortcrypt_status follow_record(follower *f, ortcrypt_error *err)
{
    uint8_t kind = 0;
    uint64_t offset = 0;
    uint64_t len = 0;

    ortcrypt_status st = f->recipe->read(f->recipe->state, f->recipe_pos++, &kind, 1, err);
    if (st == ORTCRYPT_OK && kind == OC_RECIPE_WEIGHTS) {
        st = read_number(f, &offset, err);
    }
    if (st == ORTCRYPT_OK) {
        st = read_number(f, &len, err);
    }
    if (st != ORTCRYPT_OK) {
        return st;
    }
    if (len == 0) {
        return refuse(f, "has an empty record", err);
    }
    switch (kind) {
    case OC_RECIPE_MODEL:
    case OC_RECIPE_SKIP:
        return follow_model(f, kind == OC_RECIPE_MODEL, len, err);
    case OC_RECIPE_WEIGHTS:
        return inside(f->weights, offset, len) ? copy(f, f->weights, offset, len, err) : refuse(f, "goes beyond the weights", err);
    case OC_RECIPE_LITERAL:
        if (!inside(f->recipe, f->recipe_pos, len)) {
            return refuse(f, "is cut", err);
        }
        f->recipe_pos += len;
        return copy(f, f->recipe, f->recipe_pos - len, len, err);
    default:
        return refuse(f, "has an unknown record", err);
    }
}

ortcrypt_status oc_recipe_apply(const oc_source *recipe, const oc_source *model, const oc_source *weights, uint64_t size,
                                oc_push_fn push, void *push_state, ortcrypt_error *err)
{
    follower f = {.recipe = recipe, .model = model, .weights = weights, .left = size, .push = push, .state = push_state};
    ortcrypt_status st = ORTCRYPT_OK;

    f.buffer = malloc(BUFFER_LEN);
    if (f.buffer == NULL) {
        return oc_fail_memory(err, BUFFER_LEN, "restoring a model");
    }
    while (st == ORTCRYPT_OK && f.recipe_pos < recipe->size) {
        st = follow_record(&f, err);
    }
    if (st == ORTCRYPT_OK && f.model_pos != model->size) {
        st = refuse(&f, "leaves some of the model over", err);
    }
    if (st == ORTCRYPT_OK && f.left != 0) {
        st = refuse(&f, "gives less than the original's size", err);
    }
    oc_wipe(f.buffer, BUFFER_LEN);
    free(f.buffer);
    return st;
}
