/*
 * runtime/probe.h: what libortcrypt and the program ortcrypt-probe say to each other: a job and a report, one JSON object each. The
 * report is written again, as one more line, after every step, so that the last whole line tells how far a program came that crashed.
 *
 * Job:
 *   ort, library        paths of the ONNX Runtime and of the EP's library
 *   bridge              path of the bridge's library; null: found beside
 *   registration, ep    the name it is registered under, the name of its devices ("": whatever the library brings)
 *   device              which of them, 0 for the first
 *   witness             path of conform/witness.c's library, registered in the EP's place; "" for none
 *   options             {key: value}, for the EP
 *   model               one of conform/model.c
 *   callbacks           true: ours are set; false: none, and what is compiled goes to files in the working folder
 *   write, read         what our callbacks do: "give", "fail"; read also "empty", "cut", "foreign"
 *   watched             true: give up writing files first
 * Report:
 *   version             of ortcrypt: must be the library's own
 *   stage               the step that was begun last: "begin", "open", "register", "compile", "load", "run", "close", "done"
 *   error               {stage, words} or null: where it ended, when it ended early
 *   runtime, era        its version; "none", "experimental", "stable"
 *   ep, ep_version      as the device says
 *   nodes, contexts     nodes of the compiled model's main graph, EPContext nodes among them
 *   named               names of blobs that the nodes say
 *   written             [{name, len}] the write callback was called with
 *   read                [{name, len, allocator}] the read callback was called with; allocator: "default", "its own", "none"
 *   witness             {configs_got, configs_released, given, freed}: buffers that the read callback allocated, and the EP freed
 *   difference          greatest difference to the CPU EP's outputs, as a fraction of their range
 *   file_count, file_len   without callbacks: files beside the compiled model, and bytes in them
 */
#ifndef OC_RUNTIME_PROBE_H
#define OC_RUNTIME_PROBE_H

#include <jansson.h>

#include "os/watch.h"

#define OC_PROBE_PROGRAM "ortcrypt-probe"
#define OC_PROBE_REPORT_MAX (256u * 1024u)
/* HTP computes in half precision: 0.5 % were measured on real models. A wrong result differs by much more. */
#define OC_PROBE_DIFFERENCE_MAX 0.03

/* What became of one run. `watch` says how the program ended and what it tried. */
typedef struct oc_probe_result {
    oc_watch_result watch;
    json_t *report; /* the last whole one; NULL: none came */
} oc_probe_result;

/* The program: `named`, or else found beside the library (or program) this code is in, or where an installation puts it. Heap. */
ortcrypt_status oc_probe_find(char **out, const char *named, ortcrypt_error *err);

/*
 * Runs `job` (borrowed). `folder`: working folder, NULL for the root folder. A program that crashes or hangs is a result. An error when
 * it cannot be started or watched, or is of another version.
 */
ortcrypt_status oc_probe_run(oc_probe_result *out, const char *program, const json_t *job, const char *folder, unsigned timeout_ms,
                             ortcrypt_error *err);
void oc_probe_result_free(oc_probe_result *result);

/* "SIGSEGV" for a signal number. */
const char *oc_probe_signal(int number);

#endif
