/* The ep_context helper on a real runtime: callbacks and their errors, advertising. */
#include "test_ep_context_rig.h"

/* An allocator that counts; every block must come back once. */
typedef struct counter {
    OrtAllocator ort;
    size_t allocated;
    size_t freed;
    void *last;
} counter;

static void *ORT_API_CALL count_alloc(OrtAllocator *self, size_t size)
{
    counter *const c = (counter *)self;
    c->allocated++;
    c->last = malloc(size != 0 ? size : 1);
    return c->last;
}

static void ORT_API_CALL count_free(OrtAllocator *self, void *memory)
{
    counter *const c = (counter *)self;
    c->freed++;
    free(memory);
}

static counter counter_new(void)
{
    counter c;
    memset(&c, 0, sizeof(c));
    c.ort.version = 16;
    c.ort.Alloc = count_alloc;
    c.ort.Free = count_free;
    return c;
}

/* A callback that does what the test says. */
typedef struct script {
    size_t calls;
    const char *name; /* as it arrived */
    bool allocate;    /* give a buffer of `room` bytes */
    size_t room;
    size_t size;       /* the size it tells */
    OrtStatus *result; /* returned as it is */
} script;

static OrtStatus *ORT_API_CALL scripted_read(void *state, const char *name, OrtAllocator *allocator, void **buffer,
                                             size_t *size)
{
    script *const s = state;
    s->calls++;
    s->name = name;
    if (s->allocate) {
        *buffer = allocator->Alloc(allocator, s->room);
        memset(*buffer, 'p', s->room);
    }
    *size = s->size;
    return s->result;
}

static OrtStatus *ORT_API_CALL scripted_write(void *state, const char *name, const void *buffer, size_t size)
{
    script *const s = state;
    (void)buffer;
    s->calls++;
    s->name = name;
    s->size = size;
    return s->result;
}

static void test_open(void **state)
{
    (void)state;
    script reader = {.size = 0};
    OrtSessionOptions *options = NULL;
    ortcrypt_ep_context *context = NULL;
    ok(api->CreateSessionOptions(&options));
    refused(ortcrypt_ep_context_open(NULL, base, options), "a place for the result");
    refused(ortcrypt_ep_context_open(&context, base, NULL), "session options");
    assert_null(context);
    api->ReleaseSessionOptions(options);
    ortcrypt_ep_context_close(NULL);

    context = open_context(NULL, NULL);
    assert_false(ortcrypt_ep_context_has_read(context));
    assert_false(ortcrypt_ep_context_has_write(context));
    ortcrypt_ep_context_close(context);
    context = open_context(scripted_read, &reader);
    assert_true(ortcrypt_ep_context_has_read(context));
    assert_false(ortcrypt_ep_context_has_write(context));
    ortcrypt_ep_context_close(context);
}

static void test_read_callback(void **state)
{
    (void)state;
    script reader = {.allocate = true, .room = 5, .size = 5};
    counter memory = counter_new();
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    ortcrypt_ep_context *const context = open_context(scripted_read, &reader);
    const char *const name = "../any /name\x01 that is no path/..";

    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data));
    assert_int_equal(reader.calls, 1);
    assert_string_equal(reader.name, name);
    assert_ptr_equal(data.data, memory.last); /* adopted, not copied */
    assert_int_equal(data.size, 5);
    refused(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data), "an empty place");
    ortcrypt_ep_context_data_release(&data);
    assert_int_equal(memory.freed, 1);
    assert_null(data.data);
    ortcrypt_ep_context_data_release(&data);
    ortcrypt_ep_context_data_release(NULL);
    assert_int_equal(memory.freed, 1);

    refused(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 4, &data), "at most 4 are accepted");
    assert_int_equal(memory.allocated, memory.freed);
    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 5, &data));
    ortcrypt_ep_context_data_release(&data);
    ok(ortcrypt_ep_context_read(context, name, NULL, NULL, 0, &data)); /* ORT's allocator */
    assert_memory_equal(data.data, "ppppp", 5);
    ortcrypt_ep_context_data_release(&data);

    reader.size = 0; /* a buffer of no bytes is legal, and freed */
    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data));
    assert_int_equal(data.size, 0);
    ortcrypt_ep_context_data_release(&data);
    assert_int_equal(memory.allocated, memory.freed);
    reader.allocate = false; /* so is none */
    ok(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data));
    assert_int_equal(data.size, 0);
    reader.size = 7;
    refused(ortcrypt_ep_context_read(context, name, NULL, &memory.ort, 0, &data), "without a buffer");

    /* an error is passed on unchanged, what was allocated is freed once, and no file is opened instead */
    save(in_folder("secret.bin"), "file");
    reader.allocate = true;
    reader.result = api->CreateStatus(ORT_ENGINE_ERROR, "mine");
    const size_t freed = memory.freed;
    OrtStatus *const status = ortcrypt_ep_context_read(context, in_folder("secret.bin"), NULL, &memory.ort, 0, &data);
    assert_ptr_equal(status, reader.result);
    assert_int_equal(memory.freed, freed + 1);
    assert_null(data.data);
    api->ReleaseStatus(status);
    assert_int_equal(unlink(in_folder("secret.bin")), 0);
    ortcrypt_ep_context_close(context);
}

static void test_write_callback(void **state)
{
    (void)state;
    script writer = {.calls = 0};
    ortcrypt_ep_context *const context = open_context(NULL, NULL);
    context->write = scripted_write; /* the options an application has do not reach here without a compilation */
    context->write_state = &writer;
    assert_true(ortcrypt_ep_context_has_write(context));
    const char *const name = "/any\xff name/..";
    ok(ortcrypt_ep_context_write(context, name, in_folder("never.bin"), NULL, "abc", 3));
    assert_int_equal(writer.calls, 1);
    assert_string_equal(writer.name, name);
    assert_int_equal(writer.size, 3);
    ok(ortcrypt_ep_context_write(context, name, NULL, NULL, NULL, 0));
    assert_int_equal(writer.calls, 2);
    writer.result = api->CreateStatus(ORT_FAIL, "mine");
    OrtStatus *const status = ortcrypt_ep_context_write(context, name, in_folder("never.bin"), NULL, "abc", 3);
    assert_ptr_equal(status, writer.result);
    api->ReleaseStatus(status);
    assert_int_equal(entries(folder), 0);
    refused(ortcrypt_ep_context_write(context, NULL, NULL, NULL, "abc", 3), "a name");
    refused(ortcrypt_ep_context_write(context, name, NULL, NULL, NULL, 3), "the bytes");
    ortcrypt_ep_context_close(context);
}

static void test_advertise(void **state)
{
    (void)state;
    union {
        OrtEp ort;
        void *slots[27];
    } ep;
    memset(&ep, 0, sizeof(ep));
    ep.ort.ort_version_supported = 23;
    ortcrypt_ep_context *const context = open_context(NULL, NULL);
    refused(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep) - 1, 3), "of room");
    refused(ortcrypt_ep_context_advertise(context, NULL, sizeof(ep), 3), "of room");
    refused(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep), 0), "flags");
    refused(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep), 4), "flags");
    assert_null(ep.slots[26]);
    for (uint32_t flags = 1; flags <= 3; flags++) {
        OrtStatus *(ORT_API_CALL * support)(const OrtEp *, uint32_t *) = NULL;
        uint32_t told = 0;
        ok(ortcrypt_ep_context_advertise(context, &ep.ort, sizeof(ep), flags));
        memcpy(&support, &ep.slots[26], sizeof(support));
        ok(support(&ep.ort, &told));
        assert_int_equal(told, flags);
        assert_int_equal(ep.ort.ort_version_supported, 31);
    }
    ortcrypt_ep_context_close(context);

    /* a runtime that does not read the member: nothing changes */
    const OrtApiBase *const stable = base;
    base = load("1.30.0");
    memset(&ep, 0, sizeof(ep));
    ep.ort.ort_version_supported = 23;
    ortcrypt_ep_context *const older = open_context(NULL, NULL);
    ok(ortcrypt_ep_context_advertise(older, &ep.ort, sizeof(ep), 3));
    assert_null(ep.slots[26]);
    assert_int_equal(ep.ort.ort_version_supported, 23);
    ortcrypt_ep_context_close(older);
    base = stable;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_read_callback),
        cmocka_unit_test(test_write_callback),
        cmocka_unit_test(test_advertise),
    };
    return cmocka_run_group_tests_name("ep_context callbacks", tests, setup, teardown);
}
