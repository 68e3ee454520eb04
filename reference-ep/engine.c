/*
 * An engine: a header of 64 bytes, then an ONNX model. All numbers little-endian.
 *
 *   0  8  mark "OCREFENG"
 *   8  4  version of this layout, 1
 *  12  4  length of the header, 64
 *  16  8  length of the ONNX model
 *  24 16  the ONNX Runtime that made it, as text with NULs after it
 *  40 24  zero
 *
 * It tells a foreign or cut blob from an engine. It authenticates nothing: that is the application's part.
 */
#include <stdio.h>
#include <string.h>

#include "reference_ep.h"

static const char MARK[8] = {'O', 'C', 'R', 'E', 'F', 'E', 'N', 'G'};
enum { AT_VERSION = 8, AT_HEADER_LEN = 12, AT_ONNX_LEN = 16, AT_RUNTIME = 24, RUNTIME_LEN = 16 };

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

void oc_ref_engine_end(oc_ref_bytes *bytes, const oc_ref_factory *factory)
{
    if (bytes->failed) {
        return;
    }
    memcpy(bytes->data, MARK, sizeof(MARK));
    put_number(bytes->data + AT_VERSION, 4, OC_REF_ENGINE_VERSION);
    put_number(bytes->data + AT_HEADER_LEN, 4, OC_REF_ENGINE_HEADER_LEN);
    put_number(bytes->data + AT_ONNX_LEN, 8, bytes->len - OC_REF_ENGINE_HEADER_LEN);
    char runtime[RUNTIME_LEN] = {0};
    (void)snprintf(runtime, sizeof(runtime), "%.15s", factory->base->GetVersionString());
    memcpy(bytes->data + AT_RUNTIME, runtime, sizeof(runtime));
}

OrtStatus *oc_ref_engine_open(const OrtApi *api, const void *data, size_t len, const char *name, const void **onnx,
                              size_t *onnx_len)
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
    if (version != OC_REF_ENGINE_VERSION || get_number(at + AT_HEADER_LEN, 4) != OC_REF_ENGINE_HEADER_LEN) {
        return oc_ref_status(api, ORT_INVALID_GRAPH,
                             "the engine \"%.200s\" has version %llu, and this " OC_REF_NAME " reads version %d", name,
                             (unsigned long long)version, (int)OC_REF_ENGINE_VERSION);
    }
    const uint64_t want = get_number(at + AT_ONNX_LEN, 8);
    const size_t have = len - OC_REF_ENGINE_HEADER_LEN;
    if (want != have) {
        return oc_ref_status(api, ORT_INVALID_GRAPH,
                             "the engine \"%.200s\" should hold a model of %llu bytes and holds %zu", name,
                             (unsigned long long)want, have);
    }
    *onnx = at + OC_REF_ENGINE_HEADER_LEN;
    *onnx_len = have;
    return NULL;
}
