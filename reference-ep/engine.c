/*
 * An engine: a header of 64 bytes, then an ONNX model, then the names of weights that are not in it. All numbers little-endian.
 *
 *   0  8  mark "OCREFENG"
 *   8  4  version of this layout: 1, or 2 when weights are left to the source model
 *  12  4  length of the header, 64
 *  16  8  length of the ONNX model
 *  24 16  the ONNX Runtime that made it, as text with NULs after it
 *  40  8  version 2: length of the list of weights, which follows the ONNX model (weightless.h)
 *  48 16  zero
 *
 * It tells a foreign or cut blob from an engine. It authenticates nothing: that is the application's part.
 */
#include <stdio.h>
#include <string.h>

#include "reference_ep.h"

static const char MARK[8] = {'O', 'C', 'R', 'E', 'F', 'E', 'N', 'G'};
enum { AT_VERSION = 8, AT_HEADER_LEN = 12, AT_ONNX_LEN = 16, AT_RUNTIME = 24, AT_ROWS_LEN = 40, RUNTIME_LEN = 16 };

static void put_number(uint8_t *at, size_t width, uint64_t value)
{
    for (size_t i = 0; i < width; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get_number(const uint8_t *at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

void oc_ref_engine_begin(oc_ref_bytes *bytes)
{
    uint8_t *const at = oc_ref_append(bytes, OC_REF_ENGINE_HEADER_LEN);
    if (at != NULL) {
        memset(at, 0, OC_REF_ENGINE_HEADER_LEN);
    }
}

void oc_ref_engine_end(oc_ref_bytes *bytes, const oc_ref_factory *factory, const oc_ref_bytes *rows)
{
    const size_t onnx_len = bytes->len - OC_REF_ENGINE_HEADER_LEN;
    uint8_t *const tail = bytes->failed || rows->len == 0 ? NULL : oc_ref_append(bytes, rows->len);
    if (rows->failed) {
        bytes->failed = true; /* half a list is none */
    }
    if (bytes->failed) {
        return;
    }
    if (tail != NULL) {
        memcpy(tail, rows->data, rows->len);
    }
    memcpy(bytes->data, MARK, sizeof(MARK));
    put_number(bytes->data + AT_VERSION, 4, rows->len != 0 ? OC_REF_ENGINE_WEIGHTLESS : OC_REF_ENGINE_VERSION);
    put_number(bytes->data + AT_HEADER_LEN, 4, OC_REF_ENGINE_HEADER_LEN);
    put_number(bytes->data + AT_ONNX_LEN, 8, onnx_len);
    put_number(bytes->data + AT_ROWS_LEN, 8, rows->len);
    char runtime[RUNTIME_LEN] = {0};
    (void)snprintf(runtime, sizeof(runtime), "%.15s", factory->base->GetVersionString());
    memcpy(bytes->data + AT_RUNTIME, runtime, sizeof(runtime));
}

OrtStatus *oc_ref_engine_open(const OrtApi *api, const void *data, size_t len, const char *name, oc_ref_parts *parts)
{
    const uint8_t *const at = data;
    if (len < sizeof(MARK) || memcmp(at, MARK, sizeof(MARK)) != 0) {
        return oc_ref_status(api, ORT_INVALID_GRAPH, "the EPContext data \"%.200s\" is no engine of " OC_REF_NAME,
                             name);
    }
    if (len < OC_REF_ENGINE_HEADER_LEN) {
        return oc_ref_status(api, ORT_INVALID_GRAPH, "the engine \"%.200s\" is cut: it has %zu bytes", name, len);
    }
    const uint64_t version = get_number(at + AT_VERSION, 4);
    if ((version != OC_REF_ENGINE_VERSION && version != OC_REF_ENGINE_WEIGHTLESS) || get_number(at + AT_HEADER_LEN, 4) != OC_REF_ENGINE_HEADER_LEN) {
        return oc_ref_status(api, ORT_INVALID_GRAPH,
                             "the engine \"%.200s\" has version %llu, and this " OC_REF_NAME " reads versions %d and %d", name,
                             (unsigned long long)version, (int)OC_REF_ENGINE_VERSION, (int)OC_REF_ENGINE_WEIGHTLESS);
    }
    const uint64_t rows_len = version == OC_REF_ENGINE_WEIGHTLESS ? get_number(at + AT_ROWS_LEN, 8) : 0;
    const uint64_t want = get_number(at + AT_ONNX_LEN, 8);
    const size_t all = len - OC_REF_ENGINE_HEADER_LEN;
    const size_t have = rows_len <= all ? all - (size_t)rows_len : 0;
    if (want != have || rows_len > all) {
        return oc_ref_status(api, ORT_INVALID_GRAPH,
                             "the engine \"%.200s\" should hold a model of %llu bytes and holds %zu", name,
                             (unsigned long long)want, have);
    }
    parts->onnx = at + OC_REF_ENGINE_HEADER_LEN;
    parts->onnx_len = have;
    parts->rows = at + OC_REF_ENGINE_HEADER_LEN + have;
    parts->rows_len = (size_t)rows_len;
    return NULL;
}
