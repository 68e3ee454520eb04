/*
 * Which pairs of ONNX Runtime and execution provider are known, and by which way their EPContext data reaches the application.
 * Every row was tried with outputs compared and every file the process opened looked at; what is in no row has no route.
 */
#include <string.h>

#include "runtime/private.h"

#define OPEN_END 9999 /* callbacks are checked by a round trip when a runtime is opened, newer ones included */

#define HELPER "it takes its callbacks by id"
#define OWN "it reads and writes its EPContext data through the callbacks of this ONNX Runtime"
#define OLD "this ONNX Runtime has no EPContext callbacks: the bridge gives it ours"
#define NEW "it does not know the callbacks of this ONNX Runtime: the bridge gives it those it knows"

static const oc_pair pairs[] = {
    {OC_EP_CPU, NULL, 0, OPEN_END, OC_ROUTE_NONE, "it compiles nothing: run the source variant with it"},
    {OC_EP_REFERENCE, NULL, 23, OPEN_END, OC_ROUTE_HELPER, HELPER},
    /* onnxruntime-qnn 2.7.0 says 0.1.0 of itself */
    {"QNNExecutionProvider", "0.1.0", 28, 30, OC_ROUTE_NATIVE, OWN},
    {"QNNExecutionProvider", "0.1.0", 0, 23, OC_ROUTE_NONE, "QNN itself wants ONNX Runtime 1.24 or newer"},
    {"QNNExecutionProvider", "0.1.0", 24, 27, OC_ROUTE_BRIDGED, OLD},
    {"QNNExecutionProvider", "0.1.0", 31, OC_RUNTIME_MINOR_PROVEN, OC_ROUTE_BRIDGED, NEW},
    /* onnxruntime-ep-openvino 1.8.1, in its own words */
    {"OpenVINOExecutionProvider", "1.8.1", 28, 30, OC_ROUTE_NATIVE, OWN},
    {"OpenVINOExecutionProvider", "1.8.1", 0, 23, OC_ROUTE_NONE, "compiling comes to no end there, behind the bridge: use 1.24 or newer"},
    {"OpenVINOExecutionProvider", "1.8.1", 24, 27, OC_ROUTE_BRIDGED, OLD},
    {"OpenVINOExecutionProvider", "1.8.1", 31, OC_RUNTIME_MINOR_PROVEN, OC_ROUTE_BRIDGED, NEW},
};

/* "1.8.1" is also "1.8.1+95d534b.ci.79": what follows a plus names a build. */
static bool same_version(const char *row, const char *version)
{
    const size_t len = strlen(row);

    return strncmp(row, version, len) == 0 && (version[len] == '\0' || version[len] == '+');
}

const oc_pair *oc_pair_find(unsigned minor, const char *ep, const char *version, bool *known)
{
    const oc_pair *found = NULL;

    *known = false;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]) && found == NULL; i++) {
        const oc_pair *const pair = &pairs[i];
        if (strcmp(pair->ep, ep) == 0) {
            *known = true;
            if (minor >= pair->first && minor <= pair->last &&
                (pair->version == NULL || version == NULL || same_version(pair->version, version))) {
                found = pair;
            }
        }
    }
    return found;
}

bool oc_pair_bridged(unsigned minor, const char *ep)
{
    bool known = false;
    const oc_pair *const pair = oc_pair_find(minor, ep, NULL, &known);

    return pair != NULL && pair->route == OC_ROUTE_BRIDGED;
}
