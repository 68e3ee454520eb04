/* 20,000 broken models from a fixed sequence: the scanner and the rewriter answer, in bounds and in time. */
#include "support/support.h"

#include <stdlib.h>

#include "unit/onnx_build.h"

#define ROUNDS 20000

static uint64_t dice_state;

/* SplitMix64. */
static uint64_t dice(uint64_t sides)
{
    uint64_t z = dice_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % sides;
}

/* A model with everything the scanner enters. */
static pb seed_model(void)
{
    const pb external = pb_external("w", "w.bin"), embedded = pb_embedded("b");
    pb g = {.len = 0}, sub = {.len = 0}, a = {.len = 0}, node = {.len = 0}, sparse = {.len = 0}, ep = {.len = 0}, mode = {.len = 0};
    pb function = {.len = 0}, training = {.len = 0};

    pb_message(&sparse, 1, &external);
    pb_message(&sparse, 2, &embedded);
    pb_message(&sub, 5, &external);
    pb_text(&a, 1, "then_branch");
    pb_message(&a, 6, &sub);
    pb_message(&a, 5, &external);
    pb_number(&a, 20, 5);
    pb_text(&node, 4, "If");
    pb_message(&node, 5, &a);
    pb_text(&mode, 1, "embed_mode");
    pb_number(&mode, 3, 0);
    pb_number(&mode, 20, 2);
    pb_text(&ep, 4, "EPContext");
    pb_message(&ep, 5, &mode);
    pb_text(&ep, 7, "com.microsoft");
    pb_message(&g, 1, &node);
    pb_message(&g, 1, &ep);
    pb_message(&g, 5, &external);
    pb_message(&g, 5, &embedded);
    pb_message(&g, 15, &sparse);
    pb m = pb_model(&g);
    pb_message(&function, 7, &node);
    pb_message(&m, 25, &function);
    pb_message(&training, 1, &sub);
    pb_message(&m, 20, &training);
    return m;
}

static void mutate(pb *m)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x3a, 0x70, 0x6a, 0x2a};
    const size_t at = (size_t)dice(m->len);
    const size_t len = (size_t)dice(m->len - at < 40 ? m->len - at : 40);

    switch (dice(5)) {
    case 0:
        m->data[at] ^= (uint8_t)(1u << dice(8));
        break;
    case 1:
        m->data[at] = odd[dice(sizeof odd)];
        break;
    case 2: /* cut out */
        memmove(m->data + at, m->data + at + len, m->len - at - len);
        m->len -= len;
        break;
    case 3: /* double */
        if (m->len + len <= sizeof m->data) {
            memmove(m->data + at + len, m->data + at, m->len - at);
            m->len += len;
        }
        break;
    default:
        if (dice(10) == 0) {
            m->len = at + 1;
        } else {
            m->data[at] = (uint8_t)(m->data[at] + (dice(2) != 0 ? 1 : -1));
        }
        break;
    }
}

static ortcrypt_status count_bytes(void *state, const void *data, size_t len, ortcrypt_error *err)
{
    (void)data;
    (void)err;
    *(uint64_t *)state += len;
    return ORTCRYPT_OK;
}

/* Inlines every external tensor of a model that was accepted; the result is accepted too and has none. */
static void rewrite(const oc_onnx_model *found, const oc_source *source)
{
    static const uint8_t zeros[4096];
    const oc_span zero_span = OC_SPAN(zeros, sizeof zeros);
    const oc_source zero_source = oc_source_memory(&zero_span);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_onnx_edit edits[32];
    size_t count = 0;
    uint64_t pushed = 0;
    uint64_t len = 0;

    for (size_t i = 0; i < found->tensor_count && count < 32; i++) {
        if (found->tensors[i].external && found->tensors[i].length <= sizeof zeros) {
            edits[count++] = (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_INLINE, .source = &zero_source, .length = found->tensors[i].length};
        }
    }
    oc_test_ok(oc_onnx_rewrite(found, source, edits, count, count_bytes, &pushed, &len, &err), &err);
    assert_int_equal(pushed, len);
}

static void answers_whatever_it_gets(void **state)
{
    (void)state;
    const pb seed = seed_model();
    size_t accepted = 0;

    dice_state = 20261130;
    for (int round = 0; round < ROUNDS; round++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_onnx_model *found = NULL;
        pb m = seed;
        for (uint64_t n = 1 + dice(4); n != 0 && m.len > 1; n--) {
            mutate(&m);
        }
        /* behind exactly as much memory as there is, so that a read past the end is seen */
        uint8_t *exact = malloc(m.len);
        memcpy(exact, m.data, m.len);
        const oc_span span = OC_SPAN(exact, m.len);
        const oc_source source = oc_source_memory(&span);
        const ortcrypt_status st = oc_onnx_scan(&found, &source, "m.onnx", &err);
        if (st == ORTCRYPT_OK) {
            accepted++;
            rewrite(found, &source);
            oc_onnx_model_free(found);
        } else {
            assert_int_equal(st, ORTCRYPT_E_INPUT);
            assert_null(found);
            assert_string_not_equal(err.message, "");
        }
        free(exact);
    }
    assert_in_range(accepted, ROUNDS / 100, ROUNDS * 3 / 4); /* both answers are exercised */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_whatever_it_gets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
