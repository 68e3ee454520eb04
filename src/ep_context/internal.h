/*
 * ep_context/internal.h: what the files of this folder share. ORT headers and libc only.
 */
#ifndef OC_EP_CONTEXT_INTERNAL_H
#define OC_EP_CONTEXT_INTERNAL_H

#include "ortcrypt/ep_context.h"

/* In the single file that tools/one_ep_context.py makes, nothing but the public functions is seen from outside. */
#ifdef ORTCRYPT_EP_CONTEXT_ONE_FILE
#define OC_EP_SHARED static
#else
#define OC_EP_SHARED
#endif

/* Minor versions of ORT 1.x. */
enum { OC_EP_FIRST_SUPPORTED = 23, OC_EP_FIRST_EXPERIMENTAL = 28, OC_EP_FIRST_STABLE = 31 };

/* Which table of function pointers a function is a member of. */
typedef enum oc_ep_table { OC_EP_TABLE_API, OC_EP_TABLE_COMPILE, OC_EP_TABLE_EP } oc_ep_table;

/* api.c: how one of the six functions is found: by name in the second era, by place in the third. */
typedef struct oc_ep_function {
    const char *name;         /* of the member */
    const char *experimental; /* its name for OrtApi::GetExperimentalFunction, 1.28 to 1.30 */
    oc_ep_table table;        /* from OC_EP_FIRST_STABLE on */
    unsigned slot;            /* index in that table */
    size_t member;            /* offset of its pointer in ortcrypt_ep_context_api */
} oc_ep_function;

enum { OC_EP_FUNCTION_COUNT = 6 };
OC_EP_SHARED const oc_ep_function *oc_ep_functions(void);

/* The session config entries that are kept: index into ortcrypt_ep_context.entries. */
enum {
    OC_EP_ENABLE,
    OC_EP_EMBED_MODE,
    OC_EP_FILE_PATH,
    OC_EP_NAME_PREFIX,
    OC_EP_SHARE,
    OC_EP_STOP_SHARE,
    OC_EP_WEIGHTLESS,
    OC_EP_WEIGHTLESS_NODES, /* the deprecated one */
    OC_EP_SOURCE_MODEL,
    OC_EP_CALLBACKS_ID,
    OC_EP_ENTRY_COUNT
};

struct ortcrypt_ep_context {
    const OrtApi *api;
    unsigned minor; /* of the runtime */
    ortcrypt_ep_context_api six;
    OrtEpContextConfig *config; /* NULL in the first era, when it is another's, and with an id */
    const ortcrypt_ep_registry *registry; /* of `id`; NULL: without */
    char id[ORTCRYPT_EP_CONTEXT_ID_SIZE];
    OrtReadNamedBufferFunc read;
    void *read_state; /* the application's; with an id: this context */
    OrtWriteNamedBufferFunc write;
    void *write_state;
    bool has_entries;                 /* false: opened from a config alone */
    char *entries[OC_EP_ENTRY_COUNT]; /* heap; NULL: absent */
};

#if !defined(ORTCRYPT_EP_CONTEXT_NO_ATTACH) || !defined(ORTCRYPT_EP_CONTEXT_ONE_FILE)
/* attach.c: remembers a registry; as ortcrypt_ep_attach. */
OC_EP_SHARED bool oc_ep_attach(const ortcrypt_ep_registry *registry);
#endif
/* The callbacks of `id`, and who knows them; 0 and NULL when nobody does. */
OC_EP_SHARED uint32_t oc_ep_find_id(const char *id, const ortcrypt_ep_registry **registry);
/* Gives the context the callbacks of `id`; an error when nobody knows it. */
OC_EP_SHARED OrtStatus *oc_ep_take_id(ortcrypt_ep_context *context, const char *id);

/* options.c: all entries as they are; on an error what was copied stays in `entries`. */
OC_EP_SHARED OrtStatus *oc_ep_entries_copy(const OrtApi *api, const OrtSessionOptions *options, char **entries);

/* "1.30.0" or "1.31.0-dev" -> 1, 30. */
OC_EP_SHARED bool oc_ep_version_parse(const char *text, unsigned *major, unsigned *minor);

/* A new OrtStatus with one sentence (cut at 1023 bytes). */
OC_EP_SHARED OrtStatus *oc_ep_status(const OrtApi *api, OrtErrorCode code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where a name is looked up. */
typedef struct oc_ep_where {
    const char *folder; /* NULL: the name is any path; else relative to this folder, which it cannot leave */
    bool walk;          /* never leave it to openat2; for kernels without, and for tests */
} oc_ep_where;

/* A build for kernels without openat2 may say so; otherwise that is found out at every call. */
#ifdef ORTCRYPT_EP_CONTEXT_WALK
enum { OC_EP_WALK_ALWAYS = 1 };
#else
enum { OC_EP_WALK_ALWAYS = 0 };
#endif

/* file.c. Names: 1 to OC_EP_NAME_MAX bytes of UTF-8; else ORT_INVALID_ARGUMENT. */
enum { OC_EP_NAME_MAX = 4096 };
OC_EP_SHARED OrtStatus *oc_ep_file_read(const OrtApi *api, oc_ep_where where, const char *name, OrtAllocator *allocator,
                                        size_t max_len, ortcrypt_ep_context_data *out);
OC_EP_SHARED OrtStatus *oc_ep_file_write(const OrtApi *api, oc_ep_where where, const char *name, const void *data,
                                         size_t len);

/* names.c: NULL, or why `name` cannot be a file name (a sentence part). `below`: it is relative to a folder. */
OC_EP_SHARED const char *oc_ep_name_flaw(const char *name, bool below);
/* True for UTF-8 without overlong forms and surrogates. */
OC_EP_SHARED bool oc_ep_is_utf8(const char *text);

/*
 * A file's place: an open folder, and the file's name in it. The name is no link at the time of asking; who uses it says
 * O_NOFOLLOW or renames.
 */
typedef struct oc_ep_place {
    int at;         /* O_PATH; the caller closes it */
    char *last;     /* heap */
    bool past_link; /* a link led here: a missing file is a dangling link, not a new file */
} oc_ep_place;

/*
 * path.c: 0 or errno; nothing to release on an error. EXDEV: the name leads out of the folder. EISDIR: it is a folder.
 * oc_ep_open_read opens for reading without blocking, whatever it is; the caller looks at the type.
 */
OC_EP_SHARED int oc_ep_open_read(oc_ep_where where, const char *name, int *fd);
OC_EP_SHARED int oc_ep_find_place(oc_ep_where where, const char *name, oc_ep_place *place);
OC_EP_SHARED void oc_ep_place_release(oc_ep_place *place);

/*
 * walk.c: the place of `name` below the open folder `root`, found part by part. `folder`: the path `root` was opened by.
 * EAGAIN: it was changed meanwhile.
 */
OC_EP_SHARED int oc_ep_walk(int root, const char *folder, const char *name, oc_ep_place *place);
/* The text of the link `name` in the folder `at` (heap); EINVAL: it is no link. */
OC_EP_SHARED int oc_ep_link_text(int at, const char *name, char **text);

#endif
