/*
 * Large weights out of a model that has them inside: ORT parses a model whose tensors refer to a place that is not there, and is given
 * their values by name, straight out of the pages of the model as it is in the bundle. Nothing is copied or decrypted here.
 */
#include "flow/supply.h"

/*
 * Where the stubs say the data is. ORT looks there only for what it was given no value for, and every stub is given one, out of the same
 * list. Should it look nevertheless, there must be nothing, whoever fills the working folder: a name of more than 255 bytes is one that
 * no file can have.
 */
#define STARS "****************************************************************"
static const char nowhere[] = "given-by-name" STARS STARS STARS STARS;
_Static_assert(sizeof(nowhere) - 1 > 255, "NAME_MAX");

bool oc_supply_lifts(const oc_onnx_tensor *tensor)
{
    return tensor->movable && tensor->read_main && tensor->raw_len >= OC_TENSOR_LARGE_LEN && oc_supply_plain_type(tensor->dtype);
}

uint64_t oc_supply_lifted_len(const oc_supply *supply)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        sum += oc_supply_lifts(tensor) ? tensor->raw_len : 0; /* disjoint pieces of one model */
    }
    return sum;
}

void oc_supply_lift(oc_supply *supply)
{
    supply->lifted = true;
    supply->edit_count = 0; /* the files' tensors are named too: whatever their locations, no file is looked for */
    for (size_t i = 0; i < supply->onnx->tensor_count; i++) {
        const oc_onnx_tensor *const tensor = &supply->onnx->tensors[i];
        if (oc_supply_lifts(tensor)) {
            supply->edits[supply->edit_count++] =
                (oc_onnx_edit){.tensor = i, .kind = OC_EDIT_RELOCATE, .location = nowhere, .length = tensor->raw_len};
        }
    }
}
