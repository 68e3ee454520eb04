/*
 * Offsets beyond 32 bits, on paper: an object file of 20 GiB that is a hole but for its header, one piece far behind and its end. Only what
 * is there can be read; the rest is refused. Manifest, tensor table and plan of such a model.
 */
#include "bundle/txn.h"

#include "bundle/encrypt_plan.h"
#include "bundle_fixture.h"
#include "onnx_build.h"

#define SIZE (UINT64_C(20) << 30)
#define FAR_PIECE UINT64_C(19007) /* 18.56 GiB from the start */
#define LAST_LEN 7u               /* bytes of the last chunk */

static oc_shape shape;

/* Seals one piece of plaintext (or the end of the last one) to its place. */
static void seal_piece(fixture *f, oc_stream *stream, oc_file *file, uint64_t piece, uint8_t leaf[OC_LEAF_LEN])
{
    const uint64_t first = piece * OC_PIECE_CHUNKS;
    uint8_t *const sealed = calloc(1, OC_PIECE_ROOM);
    uint8_t *const plain = fixture_bytes(OC_PIECE_PLAIN_LEN, piece);
    oc_stream_lane *lane = NULL;
    size_t at = 0;

    oc_test_ok(oc_stream_lane_new(&lane, stream, true, &f->err), &f->err);
    for (uint64_t chunk = first; chunk < first + OC_PIECE_CHUNKS && chunk < shape.chunk_count; chunk++) {
        const bool last = chunk + 1 == shape.chunk_count;
        const size_t len = last ? LAST_LEN : OC_STREAM_CHUNK_LEN;
        oc_test_ok(oc_stream_seal_chunk(lane, chunk, last, plain + (chunk - first) * OC_STREAM_CHUNK_LEN, len, sealed + at, &f->err), &f->err);
        at += len + OC_STREAM_TAG_LEN;
    }
    assert_int_equal(at, oc_piece_len(&shape, piece));
    oc_test_ok(oc_sha256(leaf, OC_SPAN(sealed, at), &f->err), &f->err);
    oc_test_ok(oc_file_write_at(file, oc_piece_offset(piece), sealed, at, &f->err), &f->err);
    oc_stream_lane_free(lane);
    free(sealed);
    free(plain);
}

static void make_sparse(fixture *f, uint8_t id[OC_ASSET_ID_LEN])
{
    uint8_t header[OC_STREAM_HEADER_LEN];
    oc_txn *txn = NULL;
    oc_stream *stream = NULL;
    oc_file *file = NULL;

    assert_true(oc_shape_of(&shape, SIZE + LAST_LEN));
    uint8_t(*leaves)[OC_LEAF_LEN] = calloc((size_t)shape.piece_count, OC_LEAF_LEN);
    assert_non_null(leaves);
    oc_test_ok(oc_txn_create(&txn, f->path, f->keyring, &f->err), &f->err);
    oc_test_ok(oc_txn_new_object(txn, id, &stream, &file, header, &f->err), &f->err);
    oc_test_ok(oc_file_write_at(file, 0, header, sizeof header, &f->err), &f->err);
    seal_piece(f, stream, file, FAR_PIECE, leaves[FAR_PIECE]);
    seal_piece(f, stream, file, shape.piece_count - 1, leaves[shape.piece_count - 1]);
    oc_test_ok(oc_txn_add_object(txn, file, id, &shape, &leaves, &f->err), &f->err);
    free(leaves);

    oc_variant *const variant = fixture_variant(f, txn, "source", "source");
    oc_test_ok(oc_variant_add_part(variant, OC_ROLE_EXTERNAL, "w.bin", id, &f->err), &f->err);
    const uint64_t dims[] = {SIZE / 2 / 4096, 1024};
    oc_tensor tensor = {.name = (char[]){"w"}, .dtype = 1, .shape = (uint64_t[]){dims[0], dims[1]}, .rank = 2, .offset = SIZE / 2, .length = SIZE / 2};
    memcpy(tensor.asset, id, OC_ASSET_ID_LEN);
    oc_test_ok(oc_variant_add_tensor(variant, &tensor, &f->err), &f->err);
    oc_test_ok(oc_txn_commit(txn, NULL, &f->err), &f->err);
    oc_txn_end(txn);
    oc_stream_free(stream);
}

static void reads_what_is_there(void **state)
{
    fixture *const f = *state;
    const ortcrypt_open_options open = {.struct_size = sizeof open, .max_asset_len = UINT64_MAX};
    uint8_t id[OC_ASSET_ID_LEN];
    ortcrypt_bundle *bundle = NULL;
    oc_asset_reader *reader = NULL;
    uint8_t got[3000];

    make_sparse(f, id);
    oc_test_ok(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &open, &f->err), &f->err);
    const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(bundle), id);
    assert_non_null(asset);
    assert_int_equal(asset->size, SIZE + LAST_LEN);
    assert_int_equal(asset->piece_count, 20481);
    const oc_tensor *const tensor = &oc_manifest_find_variant(oc_bundle_manifest(bundle), "source")->tensors[0];
    assert_int_equal(tensor->offset, SIZE / 2);
    assert_int_equal(tensor->length, SIZE / 2);

    oc_test_ok(oc_asset_reader_open(&reader, bundle, asset, &f->err), &f->err);
    const oc_source source = oc_asset_reader_source(reader);
    assert_int_equal(source.size, SIZE + LAST_LEN);
    uint8_t *plain = fixture_bytes(OC_PIECE_PLAIN_LEN, FAR_PIECE);
    oc_test_ok(source.read(source.state, FAR_PIECE * OC_PIECE_PLAIN_LEN + 16000, got, sizeof got, &f->err), &f->err);
    assert_memory_equal(got, plain + 16000, sizeof got);
    free(plain);
    plain = fixture_bytes(OC_PIECE_PLAIN_LEN, shape.piece_count - 1);
    oc_test_ok(source.read(source.state, SIZE, got, LAST_LEN, &f->err), &f->err);
    assert_memory_equal(got, plain, LAST_LEN);
    free(plain);

    /* a hole is no plaintext; nor is anything behind the end, or at an offset cut to 32 bits */
    oc_test_status(source.read(source.state, (FAR_PIECE + 1) * OC_PIECE_PLAIN_LEN, got, 1, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    oc_test_status(source.read(source.state, (uint32_t)(FAR_PIECE * OC_PIECE_PLAIN_LEN), got, 1, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    oc_test_status(source.read(source.state, SIZE, got, LAST_LEN + 1, &f->err), ORTCRYPT_E_INPUT, &f->err);
    oc_test_status(source.read(source.state, UINT64_MAX, got, 2, &f->err), ORTCRYPT_E_INPUT, &f->err);
    oc_asset_reader_close(reader);
    oc_test_ok(ortcrypt_bundle_close(bundle, &f->err), &f->err);
}

/* What a caller allows is a limit, named; by default physical memory. */
static void the_limit_is_named(void **state)
{
    fixture *const f = *state;
    const ortcrypt_open_options open = {.struct_size = sizeof open, .max_asset_len = SIZE};
    uint8_t id[OC_ASSET_ID_LEN];
    ortcrypt_bundle *bundle = NULL;
    oc_asset_reader *reader = NULL;

    make_sparse(f, id);
    oc_test_ok(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &open, &f->err), &f->err);
    const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(bundle), id);
    oc_test_status(oc_asset_reader_open(&reader, bundle, asset, &f->err), ORTCRYPT_E_LIMIT, &f->err);
    assert_non_null(strstr(f->err.message, "21474836487"));
    oc_test_ok(ortcrypt_bundle_close(bundle, &f->err), &f->err);
}

/* A file that is cut or longer by one byte far beyond 4 GiB is seen before anything is read. */
static void a_cut_is_seen(void **state)
{
    fixture *const f = *state;
    const ortcrypt_open_options open = {.struct_size = sizeof open, .max_asset_len = UINT64_MAX};
    uint8_t id[OC_ASSET_ID_LEN];
    char hex[2 * OC_LEAF_LEN + 1];
    ortcrypt_bundle *bundle = NULL;
    oc_asset_reader *reader = NULL;

    make_sparse(f, id);
    oc_test_ok(ortcrypt_bundle_open(&bundle, f->path, f->keyring, &open, &f->err), &f->err);
    const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(bundle), id);
    oc_hex_encode(hex, asset->object, OC_LEAF_LEN);
    char *const object = oc_test_format("%s/objects/%.2s/%s", f->path, hex, hex);
    const int64_t lens[] = {(int64_t)shape.sealed_len - 1, (int64_t)shape.sealed_len + 1, (int64_t)(shape.sealed_len & UINT32_MAX)};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(truncate(object, lens[i]), 0);
        oc_test_status(oc_asset_reader_open(&reader, bundle, asset, &f->err), ORTCRYPT_E_NOT_AUTHENTIC, &f->err);
    }
    free(object);
    oc_test_ok(ortcrypt_bundle_close(bundle, &f->err), &f->err);
}

static pb model_of_20_gib(void)
{
    pb t = {.len = 0};
    pb_number(&t, 1, 2097152);
    pb_number(&t, 1, 1024);
    pb_number(&t, 2, 1); /* float: 8 GiB */
    pb_text(&t, 8, "w");
    pb_entry(&t, "location", "w.bin");
    pb_entry(&t, "offset", "12884901888"); /* 12 GiB */
    pb_number(&t, 14, 1);
    return pb_model_of(&t);
}

/* A model whose data file has 20 GiB (a hole): the plan reads none of it and counts in 64 bits. */
static void a_plan_of_20_gib(void **state)
{
    fixture *const f = *state;
    const pb model = model_of_20_gib();
    const ortcrypt_encrypt_options options = {.struct_size = sizeof options};
    oc_encrypt_plan *plan = NULL;
    char *const path = oc_test_format("%s/m.onnx", f->folder);
    char *const data = oc_test_format("%s/w.bin", f->folder);

    oc_test_write_file(path, model.data, model.len);
    oc_test_write_file(data, "", 0);
    assert_int_equal(truncate(data, (off_t)SIZE), 0);
    oc_test_ok(oc_encrypt_plan_make(&plan, path, &options, &f->err), &f->err);
    assert_int_equal(plan->tensor_count, 1);
    assert_int_equal(plan->tensors[0].offset, UINT64_C(12) << 30);
    assert_int_equal(plan->tensors[0].length, UINT64_C(8) << 30);
    assert_int_equal(plan->total_len, SIZE + model.len);
    oc_encrypt_plan_free(plan);

    assert_int_equal(truncate(data, (off_t)SIZE - 1), 0); /* the tensor would end one byte behind the file */
    oc_test_status(oc_encrypt_plan_make(&plan, path, &options, &f->err), ORTCRYPT_E_INPUT, &f->err);
    free(path);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_what_is_there, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(the_limit_is_named, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_cut_is_seen, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_plan_of_20_gib, fixture_start, fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
