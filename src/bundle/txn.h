/* bundle/txn.h: a writing transaction's members; for txn.c, writer.c and put.c alone. */
#ifndef OC_BUNDLE_TXN_H
#define OC_BUNDLE_TXN_H

#include <pthread.h>

#include "bundle/internal.h"

struct oc_txn {
    ortcrypt_bundle *view; /* store (locked), key, the manifest being built */
    pthread_mutex_t mutex; /* guards the manifest's assets while writers finish */
    unsigned threads;      /* 1 to OC_THREADS_MAX */
    bool ended;            /* committed, or failed to: nothing more is accepted */
};

/* One without a view yet; oc_txn_end frees it. */
ortcrypt_status oc_txn_new(oc_txn **out, ortcrypt_error *err);

/* Names the object after its leaves, puts the file in its place (consumes it) and adds the asset. Takes *leaves over. */
ortcrypt_status oc_txn_add_object(oc_txn *txn, oc_file *file, const uint8_t id[OC_ASSET_ID_LEN], const oc_shape *shape,
                                  uint8_t (**leaves)[OC_LEAF_LEN], ortcrypt_error *err);

/* A fresh asset id, its stream and its file with nothing written; header: the stream's first bytes. */
ortcrypt_status oc_txn_new_object(oc_txn *txn, uint8_t id[OC_ASSET_ID_LEN], oc_stream **stream, oc_file **file,
                                  uint8_t header[OC_STREAM_HEADER_LEN], ortcrypt_error *err);

#endif
