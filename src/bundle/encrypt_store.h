/*
 * bundle/encrypt_store.h: an encryption under way: the plan's files, sealed into the transaction one after the other.
 * Owner of the members: ortcrypt_encrypt.
 */
#ifndef OC_BUNDLE_ENCRYPT_STORE_H
#define OC_BUNDLE_ENCRYPT_STORE_H

#include "bundle/encrypt_plan.h"
#include "bundle/progress.h"
#include "crypto/hash.h"

typedef struct oc_encryption {
    oc_encrypt_plan *plan;
    oc_txn *txn;
    oc_progress_sum sum;
    uint8_t model_id[OC_ASSET_ID_LEN];
    uint8_t original_id[OC_ASSET_ID_LEN]; /* when the model was rewritten and not split */
    uint8_t weights_id[OC_ASSET_ID_LEN];  /* when it was split: its weights, */
    uint8_t recipe_id[OC_ASSET_ID_LEN];   /* the way back, */
    uint8_t sha256[OC_SHA256_LEN];        /* and the hash of the original */
    uint8_t (*file_ids)[OC_ASSET_ID_LEN];
    uint8_t (*extra_ids)[OC_ASSET_ID_LEN];
} oc_encryption;

/*
 * Writes every asset and notes their ids. A model that was to be split and does not come back the same from its parts is
 * stored unsplit, with a notice; the plan says so afterwards.
 */
ortcrypt_status oc_encrypt_store(oc_encryption *run, ortcrypt_error *err);

#endif
