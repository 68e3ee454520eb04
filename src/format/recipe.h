/*
 * format/recipe.h: how a model that weights were moved out of becomes the original file again, byte for byte.
 * Format: docs/format.md, "Recipe". Pure: bytes come through oc_source and go to a push function.
 *
 * A recipe is a sequence of records, numbers as 8 bytes big-endian, every length at least 1:
 *   'M' len          the next len bytes of the model are the original's
 *   'S' len          the next len bytes of the model are not in the original
 *   'L' len bytes    these bytes
 *   'W' offset len   bytes of the weights
 */
#ifndef OC_FORMAT_RECIPE_H
#define OC_FORMAT_RECIPE_H

#include "format/onnx.h"

typedef enum oc_recipe_kind { OC_RECIPE_MODEL = 'M', OC_RECIPE_SKIP = 'S', OC_RECIPE_LITERAL = 'L', OC_RECIPE_WEIGHTS = 'W' } oc_recipe_kind;

/*
 * The recipe that takes a rewrite back: the same arguments as oc_onnx_rewrite, and its result is the recipe's model. The raw_data
 * of each OC_EDIT_RELOCATE of an embedded tensor is taken from the weights at edit.offset.
 */
ortcrypt_status oc_recipe_make(const oc_onnx_model *model, const oc_source *source, const oc_onnx_edit *edits,
                               size_t edit_count, oc_push_fn push, void *push_state, ortcrypt_error *err);

/*
 * Pushes the original, which has `size` bytes. ORTCRYPT_E_NOT_AUTHENTIC for a recipe that is cut, has an unknown record, reads
 * outside the model or the weights, leaves some of the model over, or gives another size; nothing beyond `size` is pushed.
 */
ortcrypt_status oc_recipe_apply(const oc_source *recipe, const oc_source *model, const oc_source *weights, uint64_t size,
                                oc_push_fn push, void *push_state, ortcrypt_error *err);

#endif
