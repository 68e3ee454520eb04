/*
 * flow/supply.h: what a variant's model needs from outside itself, checked before ONNX Runtime sees anything, and given to it.
 *
 * Call order: oc_supply_open (scans, checks the cover) -> oc_supply_load -> oc_supply_add -> model region or feed -> free;
 * or _open -> oc_supply_put_back -> model region or feed -> free.
 * The supply owns the scan and the decrypted regions; bundle and variant must outlive it.
 */
#ifndef OC_FLOW_SUPPLY_H
#define OC_FLOW_SUPPLY_H

#include "bundle/bundle.h"
#include "flow/route.h"
#include "os/os.h"
#include "runtime/runtime.h"

typedef struct oc_supply_file {
    const oc_part *part;
    oc_asset asset; /* a copy: the manifest's list moves while an output adds assets to it */
    const char *name; /* the normalised location, inside part->name */
    oc_shared_asset *shared; /* NULL unless loaded by oc_supply_load */
    uint8_t *data;           /* once loaded, shared or in the pages; len bytes */
    size_t len;
} oc_supply_file;

typedef struct oc_supply {
    ortcrypt_bundle *bundle;
    const oc_variant *variant;
    oc_asset model; /* a copy, too; its leaves, like those of the files, are the manifest's */
    oc_onnx_model *onnx;
    oc_onnx_edit *edits; /* locations that begin with "./": before 1.31 ORT never finds those in memory; or all, put back */
    size_t edit_count;
    struct oc_put_back *put_back; /* what the edits read from, once the weights are back in the model */
    oc_supply_file *files; /* the parts that external tensors refer to, each once */
    size_t file_count; /* 0 once they are put back */
    size_t name_count; /* all of them, put back or not */
    size_t *tensor_files; /* of every tensor of the model, by its index: the file that an external one lies in */
    bool lifted;           /* the model goes without the tensors of oc_supply_lifts; they are given by name */
    oc_asset_pages *pages; /* of all files, and behind them of the model if it is lifted; or NULL */
    uint8_t *model_data;   /* in the pages; NULL unless lifted and loaded */
    oc_region small;       /* of oc_supply_add_tensors: what lies too scattered to be read page by page */
} oc_supply;

ortcrypt_status oc_supply_open(oc_supply **out, ortcrypt_bundle *bundle, const oc_variant *variant, ortcrypt_error *err);
void oc_supply_free(oc_supply *supply); /* wipes; NULL is allowed */

/*
 * Puts the weights of the files back into the model: from here on oc_supply_model and oc_supply_feed give one model with
 * everything in it, and there are no files. Nothing is decrypted yet. ORTCRYPT_E_LIMIT when that model would have 2 GiB or more; then the
 * supply is as before.
 */
ortcrypt_status oc_supply_put_back(oc_supply *supply, ortcrypt_error *err);
bool oc_supply_fits(const oc_supply *supply); /* it would have less */
/* Once the model was made, or ORT has it: files and pieces of plaintext that were kept for it go. No model can be made any more. */
void oc_supply_drop_put_back(oc_supply *supply);
void oc_put_back_free(struct oc_put_back *put_back); /* NULL is allowed */

/* Decrypts every file whole, unless another session of this bundle has it in memory already. */
ortcrypt_status oc_supply_load(oc_supply *supply, const ortcrypt_monitor *monitor, ortcrypt_error *err);
/* Instead: nothing is decrypted before ORT reads it. oc_supply_settle once ORT has created what it was asked for, or failed. */
ortcrypt_status oc_supply_load_pages(oc_supply *supply, size_t window_len, ortcrypt_error *err);
ortcrypt_status oc_supply_settle(oc_supply *supply, bool complete, ortcrypt_error *err); /* complete: every byte was checked */
/*
 * Names the files to the options. ORT reads them until CreateSession or CompileModel returns. direct: ORT uses them in
 * place for as long as the session lives.
 */
ortcrypt_status oc_supply_add(const oc_supply *supply, const ortcrypt_runtime *runtime, OrtSessionOptions *options,
                              bool direct, ortcrypt_error *err);
/* Instead: names the tensors in them, and those lifted out of the model, which ORT copies. All are of plain types. */
ortcrypt_status oc_supply_add_tensors(oc_supply *supply, const ortcrypt_runtime *runtime, OrtSessionOptions *options,
                                      ortcrypt_error *err);
/*
 * lift.c. The model without its large weights: from here on oc_supply_model gives a model that has them as external data nowhere, and
 * oc_supply_load_pages and _add_tensors give them to ORT by name, out of the model's own pages. The files' tensors are given so, too.
 */
void oc_supply_lift(oc_supply *supply);
bool oc_supply_lifts(const oc_onnx_tensor *tensor); /* one that it would take out */
uint64_t oc_supply_lifted_len(const oc_supply *supply); /* bytes of all of them */
bool oc_supply_plain_type(int dtype); /* one of which every runtime makes values */
bool oc_supply_plain_types(const oc_supply *supply);
uint64_t oc_supply_largest(const oc_supply *supply, bool external); /* bytes of the largest such tensor */
/*
 * Every external tensor begins at a multiple of its element size. Used in place, others would reach kernels as misaligned pointers:
 * ORT does that with the plaintext file too, and it works until a compiler vectorizes a loop for aligned elements. So they are copied.
 */
bool oc_supply_aligned(const oc_supply *supply);
void oc_supply_drop_files(oc_supply *supply); /* wipes what is loaded */

/* The model as ORT gets it, in *region; *len bytes of it. */
ortcrypt_status oc_supply_model(const oc_supply *supply, oc_region *region, size_t *len, const ortcrypt_monitor *monitor,
                                ortcrypt_error *err);
/* The same for ORT to read: whole, or (paged) as it is in the bundle, without edits, decrypted when ORT reads it. Start with {0}. */
typedef struct oc_model_bytes {
    const void *data; /* NULL: there is none */
    size_t len;
    oc_region region;
    oc_asset_pages *pages;
} oc_model_bytes;
ortcrypt_status oc_model_bytes_make(oc_model_bytes *out, const oc_supply *supply, bool paged, const ortcrypt_monitor *monitor,
                                    ortcrypt_error *err);
ortcrypt_status oc_model_bytes_settle(const oc_model_bytes *model, bool complete, ortcrypt_error *err); /* as oc_supply_settle */
void oc_model_bytes_drop(oc_model_bytes *model);                                                        /* wipes; {0} is allowed */
/* The same into a pipe, on the feeder's thread. */
ortcrypt_status oc_supply_feed(const oc_supply *supply, oc_feeder *feeder, ortcrypt_error *err);

/* Bytes of the model and of everything external, saturating. */
uint64_t oc_supply_len(const oc_supply *supply);
uint64_t oc_supply_files_len(const oc_supply *supply); /* of everything external alone */

/* cover.c: leading "./" stripped. */
const char *oc_location_bare(const char *location);
/*
 * The complete cover: every external tensor of the model is an initializer of the main graph whose location is a part of
 * the variant, and the variant's table says the same of it (asset, offset, length, type, shape), inside the asset. Otherwise
 * ORT would open a file of that name from the working folder. Also: external EPContext data is a part.
 */
ortcrypt_status oc_cover_check(const oc_onnx_model *onnx, const oc_manifest *manifest, const oc_variant *variant,
                               ortcrypt_error *err);
/* The part a tensor's location names; NULL when there is none. */
const oc_part *oc_cover_part(const oc_variant *variant, const char *location);

#endif
