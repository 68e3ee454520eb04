/*
 * weightless.h: engines that leave weights to the source model, whose bytes the application hands over
 * (OrtApi::SessionOptionsSetWeightlessSourceModelBuffer, ORT 1.29).
 *
 * Compiling: oc_ref_source_open -> oc_ref_source_offers for each weight -> its row goes into the engine instead of its bytes.
 * Loading:   oc_ref_source_open -> oc_ref_source_fill appends the rows' tensors to the engine's model.
 * The bytes are the application's and live as long as the session; of the source only this table is ours.
 */
#ifndef OC_REFERENCE_EP_WEIGHTLESS_H
#define OC_REFERENCE_EP_WEIGHTLESS_H

#include "reference_ep.h"

typedef struct oc_ref_source oc_ref_source;

/* An index of the initializers of the model's main graph. *source NULL when the options bring no source model. */
OrtStatus *oc_ref_source_open(const oc_ref_factory *factory, const OrtSessionOptions *options, oc_ref_source **source);
void oc_ref_source_free(oc_ref_source *source); /* NULL is allowed */

/*
 * True when the source has this weight, of the same type and shape, and the option weightless covers it. Without a source (1.30
 * does not hand it on while compiling) what ORT says of the weight decides; a wrong guess is an error when the engine is loaded.
 */
OrtStatus *oc_ref_source_offers(const oc_ref_ep *ep, const char *name, const OrtValueInfo *info, const OrtValue *value,
                                bool *offers);

/* One row of an engine's table: the name's length (4 bytes, little-endian) and the name. */
void oc_ref_rows_add(oc_ref_bytes *rows, const char *name);

/* Appends to `model` (a ModelProto) a graph with the rows' initializers: protobuf adds repeated fields of one message's two parts. */
OrtStatus *oc_ref_source_fill(const oc_ref_ep *ep, const void *rows, size_t rows_len, const char *engine,
                              oc_ref_bytes *model);

/* OrtEp::GetWeightlessSupport, v29. */
OrtStatus *ORT_API_CALL oc_ref_weightless_support(const OrtEp *ep, OrtWeightlessSupport *support);

#endif
