/*
 * Copied tables over fake runtimes: a copy reads no slot beyond what the version has (the fakes' tables end where reading ends), holds the
 * runtime's own functions, and offers no more than is known; what is padded answers that it is missing.
 */
#include "fakes/fake_load.h"
#include "interpose/interpose.h"

enum { TOLD = 28 }; /* what an EP is told on runtimes without callbacks */

/* By oc_table: the slots of OrtApi that hand out the other tables, which a copy replaces. */
static const size_t getters[] = {OC_SLOT(OrtApi, GetEpApi), OC_SLOT(OrtApi, GetCompileApi), OC_SLOT(OrtApi, GetModelEditorApi),
                                 OC_SLOT(OrtApi, GetInteropApi)};

static bool is_getter(size_t slot)
{
    bool found = false;
    for (size_t i = 0; i < sizeof getters / sizeof getters[0]; i++) {
        found = found || getters[i] == slot;
    }
    return found;
}

static oc_interpose *make(const fake *f, const oc_interpose_options *options)
{
    oc_interpose *made = NULL;
    OrtStatus *const status = oc_interpose_new(&made, f->base, options);

    assert_null(status);
    assert_non_null(made);
    assert_false(f->control->asked_beyond);
    return made;
}

/* The first `count` slots are the runtime's, but for the getters. */
static void same_slots(const void *copy, const void *real, size_t count, bool api)
{
    const oc_function *const a = copy;
    const oc_function *const b = real;

    for (size_t i = 0; i < count; i++) {
        if (api && is_getter(i)) {
            assert_true(a[i] != b[i]);
        } else {
            assert_true(a[i] == b[i]);
        }
    }
}

static const size_t api_counts[] = {390, 415, 419, 419, 422, 424, 425, 426, 428, 429}; /* 1.23 to 1.32 */

static void copies_of_each_version(void **state)
{
    (void)state;
    for (unsigned minor = FIRST; minor <= NEWER; minor++) {
        const fake f = load(minor);
        const unsigned known = minor < PROVEN ? minor : PROVEN;
        oc_interpose *const made = make(&f, NULL);
        const OrtApiBase *const base = oc_interpose_base(made);
        assert_string_equal(base->GetVersionString(), f.control->version);
        const OrtApi *const copy = base->GetApi(known);
        assert_non_null(copy);
        same_slots(copy, f.base->GetApi(known), api_counts[known - FIRST], true);
        assert_ptr_equal(copy->GetEpApi(), oc_interpose_table(made, OC_TABLE_EP));
        assert_ptr_equal(copy->GetCompileApi(), oc_interpose_table(made, OC_TABLE_COMPILE));
        assert_null(base->GetApi(known + 1));
        assert_false(f.control->asked_beyond);
        assert_int_equal(oc_interpose_missed(made), 0);
        oc_interpose_free(made);
        assert_int_equal(f.control->live, 0);
    }
}

/* A runtime of the first era is offered as 1.28: what it lacks says so, with an error of its own. */
static void padded_versions(void **state)
{
    const oc_interpose_options options = {.version = "1.28.0"};

    (void)state;
    for (unsigned minor = FIRST; minor < TOLD; minor++) {
        const fake f = load(minor);
        oc_interpose *const made = make(&f, &options);
        const OrtApiBase *const base = oc_interpose_base(made);
        assert_string_equal(base->GetVersionString(), "1.28.0");
        assert_null(base->GetApi(TOLD + 1));
        const OrtApi *const copy = base->GetApi(TOLD);
        const oc_function *const slots = (const oc_function *)(const void *)copy;
        same_slots(copy, f.base->GetApi(minor), api_counts[minor - FIRST], true);
        for (size_t slot = api_counts[minor - FIRST]; slot < api_counts[TOLD - FIRST]; slot++) {
            assert_non_null(slots[slot]);
        }
        if (OC_SLOT(OrtApi, GetCompatibilityInfoFromModelBytes) >= api_counts[minor - FIRST]) { /* 1.24 */
            OrtStatus *const missing = copy->GetCompatibilityInfoFromModelBytes(NULL, 0, NULL, NULL, NULL);
            assert_non_null(missing);
            assert_int_equal(copy->GetErrorCode(missing), ORT_NOT_IMPLEMENTED);
            copy->ReleaseStatus(missing);
        }
        assert_null(copy->GetExperimentalFunction("OrtApi_SessionOptions_SetEpContextDataReadFunc_SinceV28"));
        assert_int_equal(oc_interpose_missed(made), 1);
        oc_interpose_free(made);
        assert_int_equal(f.control->live, 0);
    }
}

static void versions_that_are_none(void **state)
{
    static const char *const texts[] = {"2.0.0", "1.22.0", "", NULL, "1.\xff", "1.9999.0"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const fake f = load(PROVEN);
        oc_interpose *made = NULL;
        f.control->version = texts[i];
        OrtStatus *const status = oc_interpose_new(&made, f.base, NULL);
        assert_null(made);
        assert_non_null(status);
        f.base->GetApi(1)->ReleaseStatus(status);
        assert_false(f.control->asked_beyond);
        assert_int_equal(f.control->live, 0);
    }
}

/* A runtime whose tables are missing is offered without them. */
static void builds_that_lack_tables(void **state)
{
    (void)state;
    const fake f = load(PROVEN);
    f.control->fault = FAKE_NO_EP_API;
    oc_interpose *const made = make(&f, NULL);
    assert_null(oc_interpose_base(made)->GetApi(PROVEN)->GetEpApi());
    assert_null(oc_interpose_table(made, OC_TABLE_EP));
    assert_non_null(oc_interpose_table(made, OC_TABLE_COMPILE));
    oc_interpose_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_each_version),
        cmocka_unit_test(padded_versions),
        cmocka_unit_test(versions_that_are_none),
        cmocka_unit_test(builds_that_lack_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
