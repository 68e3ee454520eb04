/* The decision: every way once, and the reasons that send an asset another way. */
#include <string.h>

#include "flow/route.h"
#include "support/support.h"

#define MIB ((uint64_t)1 << 20)

static oc_load_facts big_external(void)
{
    return (oc_load_facts){.in_place = true, .prepacking = true, .aligned = true, .plain_types = true, .pages = true, .proc = true,
                           .fits = true, .files = true, .model_len = MIB, .files_len = 512 * MIB, .largest_len = 16 * MIB};
}

static void check(const oc_load_facts *facts, oc_file_way files, oc_model_way model, const char *why)
{
    oc_load_ways ways;
    oc_load_decide(&ways, facts);
    assert_string_equal(oc_file_way_text(ways.files), oc_file_way_text(files));
    assert_string_equal(oc_model_way_text(ways.model), oc_model_way_text(model));
    if (why != NULL && strstr(ways.files_why, why) == NULL && strstr(ways.model_why, why) == NULL) {
        fail_msg("'%s' and '%s' do not say '%s'", ways.files_why, ways.model_why, why);
    }
}

static void buffers_used_in_place(void **state)
{
    (void)state;
    oc_load_facts facts = big_external();
    check(&facts, OC_FILES_PAGED_DIRECT, OC_MODEL_ARRAY, "packs");
    facts.prepacking = false;
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "in place");
    facts = big_external();
    facts.ep = "OrtcryptReference";
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "not filled yet");
    facts = big_external();
    facts.files_len = MIB;
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "small");
    facts = big_external();
    facts.pages = false;
    check(&facts, OC_FILES_PUT_BACK, OC_MODEL_PIPE, "denied");
    facts.fits = false;
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "2 GiB");
    facts.fits = true;
    facts.proc = false;
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "denied");
}

static void buffers_copied(void **state)
{
    (void)state;
    oc_load_facts facts = big_external();
    facts.in_place = false;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_ARRAY, "copied");
    facts.relocated = true; /* the tensors are named, no file is looked for */
    facts.model_len = 20 * MIB;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_PAGED, "copied");
    facts = big_external();
    facts.aligned = false;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_ARRAY, "copied");
    facts.plain_types = false;
    check(&facts, OC_FILES_PUT_BACK, OC_MODEL_PIPE, "type");
    facts.pages = false;
    check(&facts, OC_FILES_PUT_BACK, OC_MODEL_PIPE, "denied");
    facts.fits = false;
    check(&facts, OC_FILES_EAGER_COPY, OC_MODEL_ARRAY, "held twice");
    facts = big_external();
    facts.in_place = false;
    facts.ep = "Other"; /* it gets ORT's copy */
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_ARRAY, "copied");
    facts.files_len = MIB;
    check(&facts, OC_FILES_EAGER_COPY, OC_MODEL_ARRAY, "small");
}

static void lazy_says_why_not(void **state)
{
    (void)state;
    oc_load_facts facts = big_external();
    facts.lazy = true;
    check(&facts, OC_FILES_PAGED_DIRECT, OC_MODEL_ARRAY, "not lazy: prepacking");
    facts.prepacking = false;
    check(&facts, OC_FILES_LAZY_DIRECT, OC_MODEL_ARRAY, "first touched");
    facts.files_len = 4096; /* whatever its size: it was asked for */
    check(&facts, OC_FILES_LAZY_DIRECT, OC_MODEL_ARRAY, "first touched");
    facts.files_len = 0; /* empty files are named to ORT too */
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "in place");
    facts.files_len = 512 * MIB;
    facts.pages = false;
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "not lazy: userfaultfd");
    facts.pages = true;
    facts.ep = "Other";
    check(&facts, OC_FILES_EAGER_DIRECT, OC_MODEL_ARRAY, "not lazy: only the CPU");
    facts.ep = NULL;
    facts.aligned = false;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_ARRAY, "not lazy: a tensor");
    facts.aligned = true;
    facts.in_place = false;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_ARRAY, "not lazy: this runtime");
}

/* Each term once: what is measured against it is in cli/peaks.bats. */
static void the_expected_peak(void **state)
{
    (void)state;
    oc_load_ways ways;
    oc_load_facts facts = big_external();
    facts.model_len = 0;
    oc_load_decide(&ways, &facts);
    assert_int_equal(ways.peak_len, (512 + 10 + 8 + 12) * MIB); /* packed weights, a window of 4 to 16, ahead, base */
    facts.prepacking = false;
    oc_load_decide(&ways, &facts);
    assert_int_equal(ways.peak_len, (512 + 12) * MIB);
    facts.in_place = false;
    oc_load_decide(&ways, &facts);
    assert_int_equal(ways.peak_len, (512 + 16 + 2 + 8 + 12) * MIB);
    facts.prepacking = true;
    facts.blobs_len = 7 * MIB;
    oc_load_decide(&ways, &facts);
    assert_int_equal(ways.peak_len, (512 + 32 + 2 + 8 + 12 + 7) * MIB);
    facts.blobs_len = 0;
    facts.model_len = 100 * MIB;
    facts.lifted_len = 90 * MIB;
    facts.largest_embedded_len = 8 * MIB;
    oc_load_decide(&ways, &facts); /* the rest of the model as an array, all of it copied, one window for both */
    assert_int_equal(ways.peak_len, (512 + 32 + 2 + 8 + 10 + 100 + 16 + 12) * MIB);
    facts.files = false;
    facts.files_len = 0;
    facts.largest_len = 0;
    oc_load_decide(&ways, &facts);
    assert_int_equal(ways.peak_len, (10 + 100 + 16 + 2 + 2 + 12) * MIB);
}

static void a_small_part_is_decrypted_ahead(void **state)
{
    (void)state;
    assert_int_equal(oc_load_ahead(0), 2 * MIB);
    assert_int_equal(oc_load_ahead(128 * MIB), 2 * MIB);
    assert_int_equal(oc_load_ahead(256 * MIB), 4 * MIB);
    assert_int_equal(oc_load_ahead(512 * MIB), 8 * MIB);
    assert_int_equal(oc_load_ahead(UINT64_MAX), 8 * MIB);
}

static void embedded_weights(void **state)
{
    (void)state;
    oc_load_facts facts = big_external();
    facts.files = false;
    facts.files_len = 0;
    check(&facts, OC_FILES_NONE, OC_MODEL_ARRAY, "small");
    facts.model_len = 512 * MIB;
    check(&facts, OC_FILES_NONE, OC_MODEL_PAGED, "large");
    facts.ep = "Other"; /* the array is ORT's alone */
    check(&facts, OC_FILES_NONE, OC_MODEL_PAGED, "large");
    facts.pages = false;
    check(&facts, OC_FILES_NONE, OC_MODEL_ARRAY, "pipe");
    facts.ep = "OrtcryptReference";
    check(&facts, OC_FILES_NONE, OC_MODEL_PIPE, "large");
    facts.ep = NULL;
    check(&facts, OC_FILES_NONE, OC_MODEL_PIPE, "large");
    facts.proc = false;
    check(&facts, OC_FILES_NONE, OC_MODEL_ARRAY, "/proc");
}

static void weights_taken_out_of_the_model(void **state)
{
    (void)state;
    oc_load_facts facts = big_external();
    facts.files = false;
    facts.files_len = 0;
    facts.model_len = 512 * MIB;
    facts.lifted_len = 256 * MIB;
    check(&facts, OC_FILES_NONE, OC_MODEL_LIFTED, "not parsed");
    facts.in_place = false;
    facts.ep = "Other"; /* it gets ORT's copy */
    check(&facts, OC_FILES_NONE, OC_MODEL_LIFTED, "not parsed");
    facts.lifted_len--; /* less than half */
    check(&facts, OC_FILES_NONE, OC_MODEL_PAGED, "parses");
    facts.lifted_len = 512 * MIB;
    facts.pages = false;
    facts.ep = NULL;
    check(&facts, OC_FILES_NONE, OC_MODEL_PIPE, "large");
    facts.pages = true;
    facts.model_len = 15 * MIB;
    facts.lifted_len = 15 * MIB;
    check(&facts, OC_FILES_NONE, OC_MODEL_ARRAY, "small");
}

static void and_out_of_files(void **state)
{
    (void)state;
    oc_load_facts facts = big_external();
    facts.model_len = 512 * MIB;
    facts.lifted_len = 500 * MIB;
    check(&facts, OC_FILES_PAGED_DIRECT, OC_MODEL_PAGED, "parses"); /* tensors by name and files by name are not mixed */
    facts.in_place = false;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_LIFTED, "not parsed");
    facts.relocated = true;
    check(&facts, OC_FILES_PAGED_COPY, OC_MODEL_LIFTED, "not parsed");
    facts.files_len = MIB;
    facts.relocated = false;
    check(&facts, OC_FILES_EAGER_COPY, OC_MODEL_PAGED, "parses");
    facts.files_len = 512 * MIB;
    facts.plain_types = false;
    check(&facts, OC_FILES_PUT_BACK, OC_MODEL_PIPE, "type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_taken_out_of_the_model),
        cmocka_unit_test(and_out_of_files),
        cmocka_unit_test(buffers_used_in_place),
        cmocka_unit_test(buffers_copied),
        cmocka_unit_test(lazy_says_why_not),
        cmocka_unit_test(embedded_weights),
        cmocka_unit_test(the_expected_peak),
        cmocka_unit_test(a_small_part_is_decrypted_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
