/* The decision of route.h. Sizes from which a way pays were measured: docs/performance.md. */
#include <string.h>

#include "flow/route.h"

#define PAGED_FROM ((uint64_t)16 << 20) /* bytes from which a moving window saves more than it costs */
#define WINDOW_LEN ((size_t)4 << 20)    /* what ORT packs at a time of a matrix it goes through by rows; more is kept when it comes back */
#define AHEAD_PART 64u                  /* of the bytes */
#define AHEAD_MIN ((size_t)2 << 20)
#define AHEAD_MAX ((size_t)8 << 20)
#define EP_REFERENCE "OrtcryptReference"

#define BASE_LEN ((uint64_t)12 << 20)   /* threads, keys, ORT's session without its weights: measured */

/* "lazy" asked for what cannot be had: the reason why, which goes before all others. */
static const char *why_not_lazy(const oc_load_facts *f)
{
    if (!f->in_place) {
        return "not lazy: this runtime copies the buffers while the session is created";
    }
    if (!f->aligned) {
        return "not lazy: a tensor does not begin at a multiple of its element size, so the buffers are copied";
    }
    if (f->ep != NULL) {
        return "not lazy: only the CPU execution provider gets memory that is not filled yet";
    }
    if (!f->pages) {
        return "not lazy: userfaultfd is denied here";
    }
    return f->prepacking ? "not lazy: prepacking reads every weight while the session is created" : NULL;
}

static void decide_direct(oc_load_ways *out, const oc_load_facts *f)
{
    out->files = OC_FILES_EAGER_DIRECT;
    if (!f->prepacking) {
        out->files_why = "this runtime uses the buffers in place";
    } else if (f->ep != NULL) {
        out->files_why = "this runtime uses the buffers in place, and the execution provider gets no memory that is not filled yet";
    } else if (f->files_len < PAGED_FROM) {
        out->files_why = "this runtime uses the buffers in place: small enough to stay beside the packed weights";
    } else if (f->pages) {
        out->files = OC_FILES_PAGED_DIRECT;
        out->files_why = "this runtime packs the weights anew, so they are decrypted as it reads them";
    } else if (f->fits && f->proc) {
        out->files = OC_FILES_PUT_BACK;
        out->files_why = "userfaultfd is denied here: the weights go through the pipe, inside the model";
    } else {
        out->files_why = "userfaultfd is denied here, and no model holds 2 GiB: the buffers stay beside the packed weights";
    }
}

static void decide_copy(oc_load_ways *out, const oc_load_facts *f)
{
    out->files = OC_FILES_EAGER_COPY;
    if (f->files_len < PAGED_FROM) {
        out->files_why = f->aligned ? "small enough to be held twice while the session is created"
                                    : "a tensor does not begin at a multiple of its element size, so the buffers are copied";
    } else if (f->pages && f->plain_types) {
        out->files = OC_FILES_PAGED_COPY;
        out->files_why = "copied while the session is created, so they are decrypted as they are read";
    } else if (f->fits && f->proc) {
        out->files = OC_FILES_PUT_BACK;
        out->files_why = f->pages ? "a tensor's type has no value in every runtime: the weights go through the pipe, inside the model"
                                  : "userfaultfd is denied here: the weights go through the pipe, inside the model";
    } else {
        out->files_why = "userfaultfd is denied here, and no model holds 2 GiB: held twice while the session is created";
    }
}

static void decide_files(oc_load_ways *out, const oc_load_facts *f)
{
    const char *const not_lazy = f->lazy ? why_not_lazy(f) : NULL;

    if (!f->files) {
        out->files = OC_FILES_NONE;
        out->files_why = "";
        return;
    }
    if (f->lazy && not_lazy == NULL && f->files_len != 0) {
        out->files = OC_FILES_LAZY_DIRECT;
        out->files_why = "lazy: decrypted when first touched";
        return;
    }
    if (f->in_place && f->aligned) {
        decide_direct(out, f);
    } else {
        decide_copy(out, f);
    }
    if (not_lazy != NULL) {
        out->files_why = not_lazy;
    }
}

/* Parsing copies what it parses: where most of a model are large weights, it is cheaper to give them by name. */
static bool lifts(const oc_load_ways *out, const oc_load_facts *f)
{
    return (out->files == OC_FILES_NONE || out->files == OC_FILES_PAGED_COPY) && f->lifted_len >= f->model_len - f->lifted_len;
}

static void decide_model(oc_load_ways *out, const oc_load_facts *f)
{
    const bool put_back = out->files == OC_FILES_PUT_BACK;
    const bool whole = !put_back && (!f->relocated || out->files == OC_FILES_PAGED_COPY);

    out->model = OC_MODEL_ARRAY;
    if (!put_back && f->model_len < PAGED_FROM) {
        out->model_why = "small enough to be held once";
    } else if (f->pages && lifts(out, f)) {
        out->model = OC_MODEL_LIFTED;
        out->model_why = "large: its weights are decrypted as ORT copies them, so that they are not parsed";
    } else if (f->pages && whole) {
        out->model = OC_MODEL_PAGED;
        out->model_why = "large: decrypted as ORT parses it";
    } else if (f->ep != NULL && strcmp(f->ep, EP_REFERENCE) != 0) { /* it might look for its data beside the model's path */
        out->model_why = "the execution provider is not known to work with a model that comes through a pipe";
    } else if (f->proc) {
        out->model = OC_MODEL_PIPE;
        out->model_why = "large: ORT parses it while it is decrypted";
    } else {
        out->model_why = "no /proc, so that a pipe has no path";
    }
}

/* ORT's copy of weights: with a tensor twice while it is copied, and once more while it is packed. */
static uint64_t copied_len(const oc_load_facts *f, uint64_t len, uint64_t largest_len)
{
    return len + largest_len * (f->prepacking ? 2 : 1);
}

/* The window stays as it is, or grows until it holds the largest tensor: by rows or by columns, a matrix does not tell. */
static uint64_t grown_window(const oc_load_ways *ways, const oc_load_facts *f)
{
    return ways->window_len + (f->largest_len > ways->window_len ? (f->largest_len - ways->window_len) / 2 : 0);
}

static uint64_t files_peak(const oc_load_ways *ways, const oc_load_facts *f)
{
    const bool packed = f->prepacking && f->ep == NULL;

    switch (ways->files) {
    case OC_FILES_EAGER_DIRECT:
        return packed ? 2 * f->files_len : f->files_len;
    case OC_FILES_PAGED_DIRECT: /* the packed weights, and the window */
        return f->files_len + grown_window(ways, f) + oc_load_ahead(f->files_len);
    case OC_FILES_LAZY_DIRECT:
        return f->files_len;
    case OC_FILES_EAGER_COPY:
        return f->files_len + copied_len(f, f->files_len, f->largest_len);
    case OC_FILES_PAGED_COPY:
        return copied_len(f, f->files_len, f->largest_len) + ways->window_len + oc_load_ahead(f->files_len);
    case OC_FILES_PUT_BACK:
        return copied_len(f, f->files_len, f->largest_len) + OC_COPY_WINDOW_LEN + AHEAD_MIN;
    default:
        return 0;
    }
}

static uint64_t model_peak(const oc_load_ways *ways, const oc_load_facts *f)
{
    const uint64_t copied = copied_len(f, f->model_len, f->largest_embedded_len);

    switch (ways->model) {
    case OC_MODEL_ARRAY:
        return f->model_len + copied;
    case OC_MODEL_LIFTED: /* one window for the files and this; what is left of the model is an array */
        return f->model_len - f->lifted_len + copied + (ways->files == OC_FILES_NONE ? OC_COPY_WINDOW_LEN + oc_load_ahead(f->model_len)
                                                                               : oc_load_ahead(f->files_len + f->model_len) - oc_load_ahead(f->files_len));
    default:
        return copied + OC_COPY_WINDOW_LEN + oc_load_ahead(f->model_len);
    }
}

size_t oc_load_ahead(uint64_t len)
{
    const uint64_t part = len / AHEAD_PART;
    return part < AHEAD_MIN ? AHEAD_MIN : part > AHEAD_MAX ? AHEAD_MAX : (size_t)part;
}

void oc_load_decide(oc_load_ways *out, const oc_load_facts *facts)
{
    memset(out, 0, sizeof(*out));
    decide_files(out, facts);
    decide_model(out, facts);
    out->window_len = out->files == OC_FILES_PAGED_DIRECT ? WINDOW_LEN : OC_COPY_WINDOW_LEN;
    out->peak_len = files_peak(out, facts) + model_peak(out, facts) + facts->blobs_len + BASE_LEN;
}

const char *oc_file_way_text(oc_file_way way)
{
    static const char *const texts[] = {
        [OC_FILES_NONE] = "none",
        [OC_FILES_EAGER_DIRECT] = "files-in-memory, used directly",
        [OC_FILES_PAGED_DIRECT] = "files-in-memory, used directly, decrypted as read",
        [OC_FILES_LAZY_DIRECT] = "files-in-memory, used directly, lazy",
        [OC_FILES_EAGER_COPY] = "files-in-memory",
        [OC_FILES_PAGED_COPY] = "initializers, decrypted as read",
        [OC_FILES_PUT_BACK] = "inside the model",
    };
    return texts[way];
}

const char *oc_file_way_sharing(oc_file_way way)
{
    switch (way) {
    case OC_FILES_NONE:
        return "";
    case OC_FILES_EAGER_DIRECT:
        return "one copy for all sessions of this open bundle";
    case OC_FILES_PAGED_DIRECT:
        return "not shared: each session packs weights of its own, and nothing else stays";
    case OC_FILES_LAZY_DIRECT:
        return "not shared: each session decrypts what it touches";
    default:
        return "not shared: ONNX Runtime copies the weights into each session";
    }
}

const char *oc_model_way_text(oc_model_way way)
{
    static const char *const texts[] = {
        [OC_MODEL_ARRAY] = "array",
        [OC_MODEL_PAGED] = "array, decrypted as read",
        [OC_MODEL_LIFTED] = "array, its weights as initializers, decrypted as read",
        [OC_MODEL_PIPE] = "pipe",
    };
    return texts[way];
}

bool oc_file_way_resident(oc_file_way way)
{
    return way == OC_FILES_EAGER_DIRECT || way == OC_FILES_PAGED_DIRECT || way == OC_FILES_LAZY_DIRECT;
}
