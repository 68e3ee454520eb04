/* The manifest: exact text, round trips, and one vector per rule of the parser. */
#include "support/support.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/manifest.h"

#define A "00000000000000000000000000000001"
#define B "0000000000000000000000000000000a"
#define H "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A whole manifest; @ marks what the vectors below replace. */
static const char whole[] =
    "{\"format\":\"ortcrypt/1\",\"bundle\":\"000102030405060708090a0b0c0d0e0f\",\"sequence\":7,\"creator\":\"ortcrypt 0.1.0\","
    "\"labels\":{\"stage\":\"b\\u00fc\"},\"assets\":{\"" A "\":{\"size\":24,\"object\":\"" H "\",\"pieces\":[\"" H "\"]},\"" B
    "\":{\"size\":1048576,\"object\":\"" H "\",\"pieces\":[\"" H "\",\"" H "\"],\"x-note\":{\"k\":[1,null]}}},"
    "\"variants\":[{\"id\":\"source\",\"kind\":\"source\",\"parts\":[{\"role\":\"model\",\"name\":\"\",\"asset\":\"" A
    "\"},{\"role\":\"external\",\"name\":\"w.bin\",\"asset\":\"" B "\",\"x-p\":1}],\"tensors\":[{\"name\":\"w\",\"dtype\":\"float\","
    "\"shape\":[2,3],\"asset\":\"" A "\",\"offset\":0,\"length\":24,\"x-t\":\"u\"}]},"
    "{\"id\":\"ep.1\",\"kind\":\"compiled\",\"ep\":\"E\",\"ep_version\":\"1\",\"runtime\":\"1.30.0\",\"device\":\"cpu\","
    "\"compatibility\":\"c\",\"options\":{\"o\":\"1\"},\"embed\":0,\"verified\":true,\"parts\":[],\"tensors\":[],\"x-v\":[]}],"
    "\"x-last\":\"z\"}";

static ortcrypt_status parse(const char *text, oc_manifest **out, ortcrypt_error *err)
{
    *out = NULL;
    return oc_manifest_parse(out, OC_SPAN(text, strlen(text)), err);
}

static void parses_every_member(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_manifest *m = NULL;

    oc_test_ok(parse(whole, &m, &err), &err);
    assert_int_equal(m->bundle_id[15], 15);
    assert_int_equal(m->sequence, 7);
    assert_string_equal(m->creator, "ortcrypt 0.1.0");
    assert_string_equal(oc_pair_get(m->labels, m->label_count, "stage"), "b\xc3\xbc");
    assert_null(oc_pair_get(m->labels, m->label_count, "Stage"));
    assert_int_equal(m->asset_count, 2);
    assert_int_equal(m->assets[1].id[15], 10);
    assert_int_equal(m->assets[1].size, 1048576);
    assert_int_equal(m->assets[1].piece_count, 2);
    assert_int_equal(m->assets[1].pieces[1][0], 1);
    assert_string_equal(oc_pair_get(m->assets[1].extensions, m->assets[1].extension_count, "x-note"), "{\"k\":[1,null]}");
    assert_int_equal(m->variant_count, 2);

    const oc_variant *v = oc_manifest_find_variant(m, "source");
    assert_non_null(v);
    assert_null(v->ep);
    assert_int_equal(v->embed, -1);
    assert_int_equal(v->verified, -1);
    assert_int_equal(v->part_count, 2);
    assert_ptr_equal(oc_variant_find_part(v, OC_ROLE_EXTERNAL, "w.bin"), &v->parts[1]);
    assert_null(oc_variant_find_part(v, OC_ROLE_EXTRA, "w.bin"));
    assert_ptr_equal(oc_manifest_find_asset(m, v->parts[1].asset), &m->assets[1]);
    assert_int_equal(v->tensors[0].dtype, 1);
    assert_int_equal(v->tensors[0].rank, 2);
    assert_int_equal(v->tensors[0].shape[1], 3);
    assert_int_equal(v->tensors[0].length, 24);

    v = oc_manifest_find_variant(m, "ep.1");
    assert_string_equal(v->ep, "E");
    assert_string_equal(v->ep_version, "1");
    assert_string_equal(v->runtime, "1.30.0");
    assert_string_equal(v->device, "cpu");
    assert_string_equal(v->compatibility, "c");
    assert_string_equal(oc_pair_get(v->options, v->option_count, "o"), "1");
    assert_int_equal(v->embed, 0);
    assert_int_equal(v->verified, 1);
    assert_null(oc_manifest_find_variant(m, "other"));
    oc_manifest_free(m);
}

static void prints_the_same_text(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_buf text = OC_BUF(OC_MANIFEST_MAX);
    oc_manifest *m = NULL;
    oc_manifest *copy = NULL;
    json_t *before = json_loads(whole, 0, NULL);

    oc_test_ok(parse(whole, &m, &err), &err);
    oc_test_ok(oc_manifest_copy(&copy, m, &err), &err);
    oc_manifest_free(m);
    oc_test_ok(oc_manifest_print(copy, &text, &err), &err);
    oc_manifest_free(copy);
    oc_test_ok(oc_buf_append(&text, "", 1, &err), &err);
    json_t *after = json_loads((const char *)text.data, 0, NULL);
    assert_true(json_equal(before, after));
    /* the one text: only jansson's way of writing the u with two dots differs from the vector */
    const char *umlaut = strstr(whole, "\\u00fc");
    const size_t head = (size_t)(umlaut - whole);
    assert_memory_equal(text.data, whole, head);
    assert_string_equal((const char *)text.data + head + 2, umlaut + 6);
    json_decref(before);
    json_decref(after);
    oc_buf_free(&text);
}

/* `from` in the whole manifest becomes `to`; the parser refuses and its sentence has `says`. */
typedef struct vector {
    const char *from, *to, *says;
} vector;

static char *replaced(const char *from, const char *to)
{
    const char *at = strstr(whole, from);
    assert_non_null(at);
    return oc_test_format("%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
}

static const vector vectors[] = {
    {"{\"format\"", "[{\"format\"", "no JSON"},
    {"ortcrypt/1\"", "ortcrypt/2\"", "format is not"},
    {"\"format\":\"ortcrypt/1\",", "", "format is missing"},
    {"\"sequence\":7", "\"sequence\":0", "sequence is no integer"},
    {"\"sequence\":7", "\"sequence\":-1", "sequence is no integer"},
    {"\"sequence\":7", "\"sequence\":7.0", "sequence is no integer between 0 and 2^53-1"},
    {"\"sequence\":7", "\"sequence\":7e0", "sequence is no integer"},
    {"\"sequence\":7", "\"sequence\":9007199254740992", "sequence is no integer"},
    {"\"sequence\":7", "\"sequence\":99999999999999999999", "no integer"},
    {"\"sequence\":7", "\"sequence\":\"7\"", "sequence is no integer"},
    {"\"sequence\":7", "\"sequence\":7,\"sequence\":7", "has a member twice"},
    {"\"sequence\":7", "\"sequence\":7,\"other\":1", "other is a member that"},
    {"\"sequence\":7", "\"sequence\":7,\"X-other\":1", "X-other is a member that"},
    {"\"sequence\":7", "\"sequence\":7,\"x-a\":1.5", "x-a is no integer"},
    {"\"sequence\":7", "\"sequence\":7,\"x-a\":[[[[[[[[]]]]]]]]", "nested deeper than 8"},
    {"0e0f\"", "0E0F\"", "bundle is not 32 lower hex digits"},
    {"0e0f\"", "0e0\"", "bundle is not 32"},
    {"\"ortcrypt 0.1.0\"", "7", "creator is no string"},
    {"\"ortcrypt 0.1.0\"", "\"a\\u0000b\"", "NUL"},
    {"\"ortcrypt 0.1.0\"", "\"\xff\"", "UTF-8"},
    {"\"labels\":{\"stage\":\"b\\u00fc\"}", "\"labels\":{\"stage\":1}", "labels.stage is no string"},
    {"\"labels\":{\"stage\":\"b\\u00fc\"}", "\"labels\":{\"\":\"a\"}", "labels has a member"},
    {"\"labels\":{\"stage\":\"b\\u00fc\"}", "\"labels\":[]", "labels is no object"},
    {"\"" A "\":{\"size\"", "\"0000000000000000000000000000000A\":{\"size\"", "is no asset id"},
    {"\"" A "\":{\"size\"", "\"01\":{\"size\"", "01 is no asset id"},
    {"\"" A "\":{\"size\"", "\"" B "\":{\"size\"", "has a member twice"},
    {"\"size\":24", "\"size\":24.0", "assets." A ".size is no integer between 0 and 2^53-1"},
    {"\"size\":24,", "", "assets." A ".size is missing"},
    {"\"size\":24,", "\"size\":24,\"y\":0,", "y is a member"},
    {"\"size\":24", "\"size\":1048576", "pieces has 1 entries, and 1048576 bytes make 2"},
    {"\"size\":1048576", "\"size\":1048575", "pieces has 2 entries, and 1048575 bytes make 1"},
    {"\"object\":\"0123", "\"object\":\"A123", "object is not 64 lower hex"},
    {"\"pieces\":[\"0123", "\"pieces\":[\"G123", "pieces[0] is not 64 lower hex"},
    {"\"pieces\":[\"" H "\"]", "\"pieces\":[7]", "pieces[0] is not 64 lower hex"},
    {"\"id\":\"source\"", "\"id\":\"sour ce\"", "variants[0].id is not 1 to 64"},
    {"\"id\":\"source\"", "\"id\":\"\"", "variants[0].id is not 1 to 64"},
    {"\"id\":\"source\"", "\"id\":\"ep.1\"", "variants[1].id is there twice"},
    {"\"kind\":\"source\"", "\"kind\":\"sauce\"", "variants[0].kind is neither"},
    {"\"kind\":\"source\"", "\"kind\":\"source\",\"ep\":\"E\"", "no source variant has"},
    {"\"kind\":\"source\"", "\"kind\":\"source\",\"embed\":0", "of its kind"},
    {"\"kind\":\"source\"", "\"kind\":\"source\",\"options\":{\"a\":\"b\"}", "of its kind"},
    {"\"kind\":\"source\"", "\"kind\":\"source\",\"z\":1", "variants[0].z is a member"},
    {"\"embed\":0", "\"embed\":2", "variants[1].embed is neither 0 nor 1"},
    {"\"embed\":0", "\"embed\":false", "variants[1].embed is no integer"},
    {"\"verified\":true", "\"verified\":1", "variants[1].verified is neither"},
    {"\"options\":{\"o\":\"1\"}", "\"options\":{\"o\":1}", "variants[1].options.o is no string"},
    {"\"role\":\"model\"", "\"role\":\"Model\"", "variants[0].parts[0].role is none of"},
    {"\"role\":\"model\",\"name\":\"\"", "\"role\":\"model\",\"name\":\"m\"", "variants[0].parts[0].name is no name for role model"},
    {"\"name\":\"w.bin\"", "\"name\":\"\"", "variants[0].parts[1].name is no name for role external"},
    {"\"role\":\"external\",\"name\":\"w.bin\"", "\"role\":\"model\",\"name\":\"\"", "role model, name \"\" twice"},
    {"\"name\":\"\",\"asset\":\"" A, "\"name\":\"\",\"asset\":\"00000000000000000000000000000002", "parts[0].asset is none"},
    {"\"x-p\":1", "\"p\":1", "variants[0].parts[1].p is a member"},
    {"\"parts\":[{", "\"parts\":[7,{", "variants[0].parts[0] is no object"},
    {"\"dtype\":\"float\"", "\"dtype\":\"FLOAT\"", "variants[0].tensors[0].dtype is no element type"},
    {"\"dtype\":\"float\"", "\"dtype\":\"undefined\"", "dtype is no element type"},
    {"\"dtype\":\"float\"", "\"dtype\":\"string\"", "length is not what its dtype and shape give"},
    {"\"dtype\":\"float\"", "\"dtype\":\"double\"", "length is not what its dtype and shape give"},
    {"\"shape\":[2,3]", "\"shape\":[2,-3]", "shape[1] is no integer"},
    {"\"shape\":[2,3]", "\"shape\":[2,\"3\"]", "shape[1] is no integer"},
    {"\"shape\":[2,3]", "\"shape\":[2,4]", "length is not what its dtype and shape give"},
    {"\"shape\":[2,3]", "\"shape\":6", "shape is no array"},
    {"\"offset\":0", "\"offset\":-0", "no integer"},
    {"{\"format\"", "\xef\xbb\xbf{\"format\"", "no JSON"},
    {"\"offset\":0", "\"offset\":1", "tensors[0] ends outside its asset"},
    {"\"offset\":0", "\"offset\":9007199254740991", "tensors[0] ends outside its asset"},
    {"\"name\":\"w\"", "\"name\":\"\"", "tensors[0].name is no name"},
    {"\"asset\":\"" A "\",\"offset\"", "\"asset\":\"0000000000000000000000000000000b\",\"offset\"", "tensors[0].asset is none"},
    {"\"x-t\":\"u\"", "\"t\":\"u\"", "tensors[0].t is a member"},
    {"\"x-last\":\"z\"}", "\"x-last\":\"z\"}}", "goes on after its end"},
    {"\"x-last\":\"z\"}", "\"x-last\":\"z\"", "no JSON"},
};

static void one_vector_per_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_manifest *m = NULL;
        char *text = replaced(vectors[i].from, vectors[i].to);
        const ortcrypt_status st = parse(text, &m, &err);
        if (st != ORTCRYPT_E_NOT_AUTHENTIC || m != NULL || strstr(err.message, vectors[i].says) == NULL) {
            fail_msg("\"%s\": status %d, sentence \"%s\" instead of one with \"%s\"", vectors[i].to, (int)st, err.message,
                     vectors[i].says);
        }
        free(text);
    }
}

static void accepts_the_limits(void **state)
{
    (void)state;
    static const vector good[] = {
        {"\"sequence\":7", "\"sequence\":9007199254740991", NULL},
        {"\"sequence\":7", "\"sequence\":7,\"x-a\":[[[[[[[7]]]]]]]", NULL},
        {"\"sequence\":7", "\"sequence\":7,\"x-\":null", NULL},
        {"\"shape\":[2,3]", "\"shape\":[1,6]", NULL},
        {"\"shape\":[2,3]", "\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                             "1,1,1,1,1,1,1,1,1,1,1,1,1,6]", NULL},
        {"\"dtype\":\"float\",\"shape\":[2,3]", "\"dtype\":\"uint4\",\"shape\":[47]", NULL},
        {"\"embed\":0,\"verified\":true,", "", NULL},
        {"\"ortcrypt 0.1.0\"", "\"a-0 \\\" -0 \\\\\"", NULL},
        {"\"size\":24,\"object\"", " \"size\" : 24 , \"object\"", NULL},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_manifest *m = NULL;
        char *text = replaced(good[i].from, good[i].to);
        oc_test_ok(parse(text, &m, &err), &err);
        oc_manifest_free(m);
        free(text);
    }
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof whole - 1; i++) {
        ortcrypt_error err = ORTCRYPT_ERROR_INIT;
        oc_manifest *m = NULL;
        oc_test_status(oc_manifest_parse(&m, OC_SPAN(whole, i), &err), ORTCRYPT_E_NOT_AUTHENTIC, &err);
        assert_null(m);
    }
}

static oc_asset asset_of(uint64_t size, uint8_t last)
{
    oc_asset a = {.size = size, .piece_count = (size_t)oc_piece_count(size)};
    a.id[15] = last;
    a.pieces = calloc(a.piece_count, OC_LEAF_LEN);
    return a;
}

static oc_manifest *manifest_of_five(void)
{
    static const uint8_t id[OC_BUNDLE_ID_LEN] = {1};
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_manifest *m = NULL;

    oc_test_ok(oc_manifest_new(&m, id, &err), &err);
    for (int i = 0; i < 5; i++) {
        oc_asset a = asset_of(100, (uint8_t)(i * 7 % 5)); /* not in order */
        oc_test_ok(oc_manifest_add_asset(m, &a, &err), &err);
        assert_null(a.pieces);
    }
    return m;
}

static void builds_assets(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_manifest *m = manifest_of_five();

    assert_int_equal(m->sequence, 1);
    assert_memory_equal(m->creator, "ortcrypt ", 9);
    assert_string_equal(m->creator + 9, ortcrypt_version());
    for (int i = 0; i < 5; i++) {
        assert_int_equal(m->assets[i].id[15], i);
    }
    oc_asset twice = asset_of(100, 3);
    oc_test_status(oc_manifest_add_asset(m, &twice, &err), ORTCRYPT_E_INVALID, &err);
    assert_non_null(twice.pieces);
    twice.id[15] = 9;
    twice.size = 1048576; /* makes two pieces */
    oc_test_status(oc_manifest_add_asset(m, &twice, &err), ORTCRYPT_E_INVALID, &err);
    free(twice.pieces);
    oc_manifest_free(m);
}

static void builds_variants(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_manifest *m = manifest_of_five();
    oc_variant *v = NULL;

    oc_test_ok(oc_manifest_add_variant(m, "a", "compiled", &v, &err), &err);
    oc_test_status(oc_manifest_add_variant(m, "a", "source", &v, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_manifest_add_variant(m, "b/c", "source", &v, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_manifest_add_variant(m, "b", "Source", &v, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_ok(oc_variant_add_part(v, OC_ROLE_MODEL, "", m->assets[0].id, &err), &err);
    oc_test_ok(oc_variant_add_part(v, OC_ROLE_EP_CONTEXT, "ctx.bin", m->assets[1].id, &err), &err);
    oc_test_ok(oc_variant_add_part(v, OC_ROLE_EXTRA, "ctx.bin", m->assets[1].id, &err), &err);
    oc_test_status(oc_variant_add_part(v, OC_ROLE_EXTRA, "ctx.bin", m->assets[2].id, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_variant_add_part(v, OC_ROLE_EXTRA, "", m->assets[2].id, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_variant_add_part(v, OC_ROLE_EXTRA, "\xff", m->assets[2].id, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_status(oc_variant_add_part(v, OC_ROLE_MODEL, "m", m->assets[2].id, &err), ORTCRYPT_E_INVALID, &err);
    oc_test_ok(oc_pair_add(&v->options, &v->option_count, "k", "v", &err), &err);
    oc_test_status(oc_pair_add(&v->options, &v->option_count, "k", "w", &err), ORTCRYPT_E_INVALID, &err);
    oc_manifest_free(m);
}

/* What the parser would refuse is not printed, and nothing is appended. */
static void prints_only_what_parses(void **state)
{
    (void)state;
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    oc_manifest *m = manifest_of_five();
    oc_manifest *back = NULL;
    oc_variant *v = NULL;
    oc_buf text = OC_BUF(OC_MANIFEST_MAX);
    char name[] = "w";
    uint64_t shape[] = {5, 5};
    oc_tensor t = {.name = name, .dtype = 22, .shape = shape, .rank = 2, .offset = 87, .length = 13}; /* 25 int4 */

    oc_test_ok(oc_manifest_add_variant(m, "a", "compiled", &v, &err), &err);
    oc_test_ok(oc_variant_add_tensor(v, &t, &err), &err);
    t.length = 12;
    oc_test_status(oc_variant_add_tensor(v, &t, &err), ORTCRYPT_E_INVALID, &err);
    v->verified = 0;
    oc_test_ok(oc_manifest_print(m, &text, &err), &err);
    oc_test_ok(oc_manifest_parse(&back, OC_SPAN(text.data, text.len), &err), &err);
    assert_int_equal(back->variants[0].tensors[0].length, 13);
    assert_int_equal(back->variants[0].verified, 0);
    oc_manifest_free(back);

    const size_t before = text.len;
    v->tensors[0].offset = 88;
    oc_test_status(oc_manifest_print(m, &text, &err), ORTCRYPT_E_INVALID, &err);
    v->tensors[0].offset = 87;
    m->sequence = 0;
    oc_test_status(oc_manifest_print(m, &text, &err), ORTCRYPT_E_INVALID, &err);
    m->sequence = 1;
    oc_test_ok(oc_pair_add(&m->extensions, &m->extension_count, "x-a", "{no JSON", &err), &err);
    oc_test_status(oc_manifest_print(m, &text, &err), ORTCRYPT_E_INVALID, &err);
    assert_non_null(strstr(err.message, "no JSON"));
    m->extensions[0].value[0] = '"';
    m->extensions[0].value[7] = '"'; /* now a string */
    text.max = before + 10;
    oc_test_status(oc_manifest_print(m, &text, &err), ORTCRYPT_E_LIMIT, &err);
    assert_int_equal(text.len, before);
    oc_buf_free(&text);
    oc_manifest_free(m);
}

static void counts_pieces(void **state)
{
    (void)state;
    static const uint64_t cases[][2] = {
        {0, 1}, {1, 1}, {16384, 1}, {1048575, 1}, {1048576, 2}, {1048577, 2}, {2097151, 2}, {2097152, 3}, {UINT64_C(1) << 40, (1 << 20) + 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(oc_piece_count(cases[i][0]), cases[i][1]);
        /* the same from the sealed length: first piece 56 + 1049600, then 1049600 each */
        const uint64_t n = cases[i][0];
        const uint64_t sealed = 56 + n + 16 * (n / 16384 + 1);
        const uint64_t behind = sealed > 56 + 1049600 ? sealed - 56 - 1049600 : 0;
        assert_int_equal(oc_piece_count(n), 1 + (behind + 1049599) / 1049600);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_every_member), cmocka_unit_test(prints_the_same_text), cmocka_unit_test(one_vector_per_rule),
        cmocka_unit_test(accepts_the_limits),  cmocka_unit_test(every_cut_is_refused), cmocka_unit_test(builds_assets),
        cmocka_unit_test(builds_variants),     cmocka_unit_test(prints_only_what_parses), cmocka_unit_test(counts_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
