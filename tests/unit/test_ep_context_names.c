/*
 * Names that a model says, below its folder: one table of cases, answered alike by the kernel's resolver and by the walk. Each
 * case runs in a tree of its own making: files, folders, links in and out, links that come back.
 */
#include "test_ep_context_rig.h"

static char model[PATH_MAX / 4]; /* the model's folder, folder/real/model; folder/alias leads to folder/real */
static bool walk;                /* which resolver */

static OrtStatus *read_as(const char *as, const char *name, char *text, size_t room)
{
    OrtAllocator *allocator = NULL;
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ok(api->GetAllocatorWithDefaultOptions(&allocator));
    const oc_ep_where where = {as, walk};
    OrtStatus *const status = oc_ep_file_read(api, where, name, allocator, 0, &data);
    text[0] = '\0';
    if (status == NULL) {
        (void)snprintf(text, room, "%.*s", (int)data.size, data.size != 0 ? (const char *)data.data : "");
    }
    ortcrypt_ep_context_data_release(&data);
    return status;
}

static OrtStatus *write_as(const char *as, const char *name, const char *text)
{
    const oc_ep_where where = {as, walk};
    return oc_ep_file_write(api, where, name, text, strlen(text));
}

static void make_link(const char *text, const char *at)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", model, at);
    if (symlink(text, path) != 0) {
        fail_msg("the link %s", path);
    }
}

static void make_link_to(const char *front, const char *back, const char *at)
{
    char text[PATH_MAX];
    (void)snprintf(text, sizeof(text), "%s%s", front, back);
    make_link(text, at);
}

static void make_file(const char *at, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", model, at);
    save(path, text);
}

static void make_folder(const char *at)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", model, at);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_links(void)
{
    char alias[PATH_MAX / 2];
    (void)snprintf(alias, sizeof(alias), "%s/alias/model", folder);
    make_link("real.bin", "relative");
    make_link("a/b", "deep");
    make_link("../../real.bin", "a/b/up");
    make_link("relative", "second"); /* a link to a link */
    make_link_to(model, "/a/b/deep.bin", "absolute");
    make_link_to(model, "//./a/./b//deep.bin", "absolute-untidy");
    make_link_to(model, "/a", "absolute-folder");
    make_link_to(alias, "/real.bin", "absolute-alias");
    make_link("../model/real.bin", "out-and-in");
    make_link("../../real/model/real.bin", "further-out-and-in");
    make_link("../secret.bin", "out");
    make_link_to(model, "/../secret.bin", "absolute-out");
    make_link_to(model, "2/secret.bin", "longer-name"); /* model2 is not below model */
    make_link("/etc/hostname", "elsewhere");
    make_link("..", "parent");
    make_link("nowhere", "dangling");
    make_link("a/nowhere", "dangling-below");
    make_link_to(model, "/nowhere", "dangling-absolute");
    make_link("loop2", "loop1");
    make_link("loop1", "loop2");
    make_link("fifo", "to-fifo");
    make_link("a", "to-folder");
    make_link(".", "to-itself");
    make_link("real.bin/", "file-as-folder");
    make_link("/proc/self/root/etc/hostname", "magic");
}

static void make_tree(void)
{
    char path[PATH_MAX];
    (void)snprintf(model, sizeof(model), "%s/real/model", folder);
    assert_int_equal(mkdir(in_folder("real"), 0700), 0);
    assert_int_equal(mkdir(model, 0700), 0);
    assert_int_equal(mkdir(in_folder("real/model2"), 0700), 0);
    assert_int_equal(symlink("real", in_folder("alias")), 0);
    save(in_folder("real/secret.bin"), "secret");
    save(in_folder("real/model2/secret.bin"), "secret");
    make_folder("a");
    make_folder("a/b");
    make_folder("a/full");
    make_file("real.bin", "real");
    make_file("a/b/deep.bin", "deep");
    (void)snprintf(path, sizeof(path), "%s/fifo", model);
    assert_int_equal(mkfifo(path, 0600), 0);
    make_links();
}

static void remove_all(void)
{
    oc_test_rm_rf(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

#define OUTSIDE "outside the model's folder"
#define MISSING "does not exist"
#define NOT_FILE "no regular file"

/* What reading gives (text, or a part of the sentence), and what writing "new" gives: NULL for done, or the sentence. */
typedef struct name_case {
    const char *name;
    const char *text;
    const char *refusal;
    const char *write_refusal;
    const char *lands_in; /* the file that then holds "new" */
} name_case;

static const name_case cases[] = {
    {"real.bin", "real", NULL, NULL, "real.bin"},
    {"./real.bin", "real", NULL, NULL, "real.bin"},
    {"a//b///deep.bin", "deep", NULL, NULL, "a/b/deep.bin"},
    {"a/b/../../real.bin", "real", NULL, NULL, "real.bin"},
    {"a/b/../b/./deep.bin", "deep", NULL, NULL, "a/b/deep.bin"},
    {"deep/deep.bin", "deep", NULL, NULL, "a/b/deep.bin"},
    {"deep/../b/deep.bin", "deep", NULL, NULL, "a/b/deep.bin"}, /* ".." of what the link leads to */
    {"new.bin", NULL, MISSING, NULL, "new.bin"},
    {"a/b/../new.bin", NULL, MISSING, NULL, "a/new.bin"},
    {"deep/new.bin", NULL, MISSING, NULL, "a/b/new.bin"},
    {"absolute-folder/new.bin", NULL, MISSING, NULL, "a/new.bin"},
    {"relative", "real", NULL, NULL, "real.bin"},
    {"second", "real", NULL, NULL, "real.bin"},
    {"a/b/up", "real", NULL, NULL, "real.bin"},
    {"absolute", "deep", NULL, NULL, "a/b/deep.bin"},
    {"absolute-untidy", "deep", NULL, NULL, "a/b/deep.bin"},
    {"absolute-folder/b/deep.bin", "deep", NULL, NULL, "a/b/deep.bin"},
    {"to-itself/to-itself/real.bin", "real", NULL, NULL, "real.bin"},
    {"out-and-in", "real", NULL, NULL, "real.bin"},
    {"further-out-and-in", "real", NULL, NULL, "real.bin"},
    {"../model/real.bin", "real", NULL, NULL, "real.bin"},
    {"parent/model/real.bin", "real", NULL, NULL, "real.bin"},
    {"out", NULL, OUTSIDE, OUTSIDE, NULL},
    {"absolute-out", NULL, OUTSIDE, OUTSIDE, NULL},
    {"absolute-alias", NULL, OUTSIDE, OUTSIDE, NULL}, /* unless the folder was given by that path */
    {"longer-name", NULL, OUTSIDE, OUTSIDE, NULL},
    {"elsewhere", NULL, OUTSIDE, OUTSIDE, NULL},
    {"magic", NULL, OUTSIDE, OUTSIDE, NULL},
    {"parent/secret.bin", NULL, OUTSIDE, OUTSIDE, NULL},
    {"parent/model2/secret.bin", NULL, OUTSIDE, OUTSIDE, NULL},
    {"../secret.bin", NULL, OUTSIDE, OUTSIDE, NULL},
    {"../new.bin", NULL, OUTSIDE, OUTSIDE, NULL},
    {"a/../../secret.bin", NULL, OUTSIDE, OUTSIDE, NULL},
    {"../../../../../../../../../etc/hostname", NULL, OUTSIDE, OUTSIDE, NULL},
    {"dangling", NULL, MISSING, "dangling link", NULL},
    {"dangling-below", NULL, MISSING, "dangling link", NULL},
    {"dangling-absolute", NULL, MISSING, "dangling link", NULL},
    {"dangling/new.bin", NULL, MISSING, MISSING, NULL},
    {"missing/../real.bin", NULL, MISSING, MISSING, NULL},
    {"real.bin/../real.bin", NULL, "Not a directory", "Not a directory", NULL},
    {"real.bin/x", NULL, "Not a directory", "Not a directory", NULL},
    {"file-as-folder", NULL, "Not a directory", "Not a directory", NULL},
    {"loop1", NULL, "symbolic links", "symbolic links", NULL},
    {"loop1/x", NULL, "symbolic links", "symbolic links", NULL},
    {"fifo", NULL, NOT_FILE, NOT_FILE, NULL},
    {"to-fifo", NULL, NOT_FILE, NOT_FILE, NULL},
    {"a", NULL, NOT_FILE, NOT_FILE, NULL},
    {"to-folder", NULL, NOT_FILE, NOT_FILE, NULL},
    {"to-itself", NULL, NOT_FILE, NOT_FILE, NULL},
    {"\xe2\x82\xac \xf0\x9f\x98\x80.bin", NULL, MISSING, NULL, "\xe2\x82\xac \xf0\x9f\x98\x80.bin"},
    {"", NULL, "is empty", "is empty", NULL},
    {"/etc/hostname", NULL, "is absolute", "is absolute", NULL},
    {".", NULL, "names a folder", "names a folder", NULL},
    {"..", NULL, "names a folder", "names a folder", NULL},
    {"a/", NULL, "names a folder", "names a folder", NULL},
    {"real.bin/", NULL, "names a folder", "names a folder", NULL},
    {"a/..", NULL, "names a folder", "names a folder", NULL},
    {"a/.", NULL, "names a folder", "names a folder", NULL},
    {"a\xff.bin", NULL, "is not UTF-8", "is not UTF-8", NULL},
    {"a\xc0\xaf.bin", NULL, "is not UTF-8", "is not UTF-8", NULL},
    {"a\xed\xa0\x80.bin", NULL, "is not UTF-8", "is not UTF-8", NULL},
    {"a\xf4\x90\x80\x80.bin", NULL, "is not UTF-8", "is not UTF-8", NULL},
    {"a\xe2\x82", NULL, "is not UTF-8", "is not UTF-8", NULL},
};

static void check(const char *as, const name_case *c)
{
    char text[64];
    char path[PATH_MAX];
    OrtStatus *status = read_as(as, c->name, text, sizeof(text));
    if (c->refusal != NULL) {
        refused(status, c->refusal);
    } else {
        ok(status);
        assert_string_equal(text, c->text);
    }
    status = write_as(as, c->name, "new");
    if (c->write_refusal != NULL) {
        refused(status, c->write_refusal);
    } else {
        ok(status);
        (void)snprintf(path, sizeof(path), "%s/%s", model, c->lands_in);
        struct stat about;
        assert_int_equal(lstat(path, &about), 0);
        assert_true(S_ISREG(about.st_mode));
        ok(read_as(as, c->lands_in, text, sizeof(text)));
        assert_string_equal(text, "new");
    }
}

static void check_all(const char *as)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        make_tree();
        print_message("%s: \"%.60s\"\n", walk ? "walk" : "kernel", cases[i].name);
        check(as, &cases[i]);
        ok(read_as(in_folder("real"), "secret.bin", text, sizeof(text)));
        assert_string_equal(text, "secret");
        ok(read_as(in_folder("real"), "model2/secret.bin", text, sizeof(text)));
        assert_string_equal(text, "secret");
        assert_int_equal(entries(in_folder("real")), 3);
        remove_all();
    }
}

static void test_cases(void **state)
{
    (void)state;
    char as[PATH_MAX / 4];
    (void)snprintf(as, sizeof(as), "%s/real/model/", folder);
    check_all(as);
}

/* The folder given by a path with a link in it: an absolute link may say that path, or the real one. */
static void test_alias(void **state)
{
    (void)state;
    char as[PATH_MAX / 4];
    char text[64];
    (void)snprintf(as, sizeof(as), "%s/alias/model/", folder);
    make_tree();
    ok(read_as(as, "absolute-alias", text, sizeof(text)));
    assert_string_equal(text, "real");
    ok(read_as(as, "absolute", text, sizeof(text)));
    assert_string_equal(text, "deep");
    ok(write_as(as, "absolute-alias", "new"));
    ok(read_as(as, "real.bin", text, sizeof(text)));
    assert_string_equal(text, "new");
    refused(read_as(as, "absolute-out", text, sizeof(text)), OUTSIDE);
    remove_all();
}

/* A relative folder, and "/" itself. */
static void test_folders(void **state)
{
    (void)state;
    char text[64];
    char old[PATH_MAX];
    make_tree();
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(model), 0);
    ok(read_as("./", "absolute", text, sizeof(text)));
    assert_string_equal(text, "deep");
    refused(read_as("a/b/", "up", text, sizeof(text)), OUTSIDE);
    assert_int_equal(chdir(old), 0);
    ok(read_as("/", in_folder("real/secret.bin") + 1, text, sizeof(text)));
    assert_string_equal(text, "secret");
    ok(read_as("/", in_folder("real/model/absolute") + 1, text, sizeof(text)));
    assert_string_equal(text, "deep");
    refused(read_as("/nowhere/", "x", text, sizeof(text)), MISSING);
    remove_all();
}

static void test_long(void **state)
{
    (void)state;
    char text[64];
    static char longest[5001];
    make_tree();
    memset(longest, 'n', sizeof(longest) - 1);
    refused(read_as(model, longest, text, sizeof(text)), "is longer than 4096 bytes");
    refused(write_as(model, longest, "new"), "is longer than 4096 bytes");
    longest[256] = '\0';
    refused(read_as(model, longest, text, sizeof(text)), "name too long");
    refused(write_as(model, longest, "new"), "name too long");
    longest[255] = '\0';
    ok(write_as(model, longest, "new"));
    ok(read_as(model, longest, text, sizeof(text)));
    for (size_t i = 0; i + 2 < 4096; i += 2) {
        memcpy(longest + i, "./", 3);
    }
    memcpy(longest + 4080, "real.bin", 9);
    ok(read_as(model, longest, text, sizeof(text)));
    assert_string_equal(text, "real");
    remove_all();
}

/* 40 links are followed, as the kernel does, and not 41. */
static void test_many_links(void **state)
{
    (void)state;
    char text[64];
    char at[16];
    char to[16];
    make_tree();
    make_link("real.bin", "chain1");
    for (int i = 2; i <= 41; i++) {
        (void)snprintf(at, sizeof(at), "chain%d", i);
        (void)snprintf(to, sizeof(to), "chain%d", i - 1);
        make_link(to, at);
    }
    ok(read_as(model, "chain40", text, sizeof(text)));
    assert_string_equal(text, "real");
    refused(read_as(model, "chain41", text, sizeof(text)), "symbolic links");
    refused(write_as(model, "chain41", "new"), "symbolic links");
    remove_all();
}

/* A length that says more than the C string: an embedded NUL is seen before it becomes another name. */
static void test_embedded_nul(void **state)
{
    (void)state;
    assert_true(ortcrypt_ep_context_is_name("engine.bin", 10));
    assert_true(ortcrypt_ep_context_is_name("", 0));
    assert_false(ortcrypt_ep_context_is_name("engine.bin\0.txt", 15));
    assert_false(ortcrypt_ep_context_is_name("engine.bin\0", 11));
    assert_false(ortcrypt_ep_context_is_name("engine.bin", 6));
}

static int by_walk(void **state)
{
    walk = true;
    return setup(state);
}

static int by_kernel(void **state)
{
    walk = false;
    return setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),      cmocka_unit_test(test_alias), cmocka_unit_test(test_folders),
        cmocka_unit_test(test_long),       cmocka_unit_test(test_many_links),
        cmocka_unit_test(test_embedded_nul),
    };
    int failed = cmocka_run_group_tests_name("names, by the kernel", tests, by_kernel, teardown);
    failed += cmocka_run_group_tests_name("names, by the walk", tests, by_walk, teardown);
    return failed;
}
