/* cli/cmd_inspect.c: `ortcrypt inspect`. Source of the members: ortcrypt_bundle_describe, docs/api.md. */
#include <string.h>

#include "keys.h"
#include "report.h"
#include "terminal.h"

#define WIDTH 11

static void print_size_row(const char *name, const json_t *object, const char *key, const char *after)
{
    char size[24];
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value)) {
        cli_size_text(size, (uint64_t)json_integer_value(value));
        cli_print_row(WIDTH, name, "%s%s", size, after);
    }
}

static void print_list(const char *name, const json_t *list)
{
    size_t index = 0;
    json_t *entry = NULL;
    json_array_foreach(list, index, entry) {
        cli_print_row(WIDTH, index == 0 ? name : "", "%s", json_is_string(entry) ? json_string_value(entry) : "");
    }
}

static void print_pairs(const char *name, json_t *pairs)
{
    const char *key = NULL;
    json_t *value = NULL;
    bool first = true;
    json_object_foreach(pairs, key, value) {
        cli_print_row(WIDTH, first ? name : "", "%s = %s", key, json_is_string(value) ? json_string_value(value) : "");
        first = false;
    }
}

/* "ep_context   6.2 MiB  ctx_0.bin", in columns. */
static void print_parts(const json_t *parts)
{
    size_t index = 0;
    json_t *part = NULL;
    json_array_foreach(parts, index, part) {
        char size[24];
        cli_size_text(size, (uint64_t)json_integer_value(json_object_get(part, "len")));
        cli_print_row(WIDTH, index == 0 ? "  files" : "", "%-11s %11s  %s", cli_json_string(part, "role"), size,
                      cli_json_string(part, "name"));
    }
}

static void print_variant(const json_t *variant)
{
    const json_t *verified = json_object_get(variant, "verified");
    const json_t *embed = json_object_get(variant, "embed");
    const long long tensors = (long long)json_integer_value(json_object_get(variant, "tensor_count"));
    (void)putchar('\n');
    cli_print_row(WIDTH, "variant", "%s (%s)", cli_json_string(variant, "id"), cli_json_string(variant, "kind"));
    if (cli_json_string(variant, "ep")[0] != 0) {
        const char *version = cli_json_string(variant, "ep_version");
        const char *device = cli_json_string(variant, "device");
        cli_print_row(WIDTH, "  made by", "%s%s%s on ONNX Runtime %s%s%s", cli_json_string(variant, "ep"),
                      version[0] != 0 ? " " : "", version, cli_json_string(variant, "runtime"), device[0] != 0 ? ", for " : "", device);
    }
    if (cli_json_string(variant, "compatibility")[0] != 0) {
        cli_print_row(WIDTH, "  fits", "%s", cli_json_string(variant, "compatibility"));
    }
    print_pairs("  options", json_object_get(variant, "options"));
    if (json_is_integer(embed)) {
        cli_print_row(WIDTH, "  blobs", "%s the model", json_integer_value(embed) == 1 ? "inside" : "beside");
    }
    if (json_is_boolean(verified)) {
        cli_print_row(WIDTH, "  checked", "%s", json_is_true(verified) ? "it loaded where it was compiled" : "never loaded (unverified)");
    }
    if (json_is_true(json_object_get(variant, "x-weightless"))) {
        cli_print_row(WIDTH, "  weightless", "the weights come from the source");
    }
    print_size_row("  split", json_object_get(variant, "x-split"), "size", " of the original, weights moved out of the model");
    if (tensors != 0) {
        cli_print_row(WIDTH, "  weights", "%lld outside the model", tensors);
    }
    print_parts(json_object_get(variant, "parts"));
}

/* "X25519 (3), ssh-ed25519": how often each type of age stanza is there. */
static void print_stanzas(const json_t *stanzas)
{
    char text[512] = "";
    size_t used = 0;
    size_t index = 0;
    json_t *entry = NULL;
    json_array_foreach(stanzas, index, entry) {
        size_t before = 0;
        size_t count = 0;
        for (size_t i = 0; i < json_array_size(stanzas); i++) {
            const bool same = json_equal(entry, json_array_get(stanzas, i)) != 0;
            before += same && i < index ? 1 : 0;
            count += same ? 1 : 0;
        }
        if (before == 0 && used < sizeof text) {
            const int len = snprintf(text + used, sizeof text - used, count > 1 ? "%s%s (%zu)" : "%s%s", used != 0 ? ", " : "",
                                     json_string_value(entry), count);
            used += len > 0 ? (size_t)len : 0;
        }
    }
    cli_print_row(WIDTH, "opened by", "%s", text);
}

/* What is seen without a key. */
static void print_storage(const json_t *all)
{
    const json_t *objects = json_object_get(all, "objects");
    const json_t *key_file = json_object_get(all, "key_file");
    const char *key_error = cli_json_string(key_file, "error");
    cli_print_row(WIDTH, "bundle", "%s, format %s", cli_json_string(all, "path"), cli_json_string(all, "format"));
    cli_print_row(WIDTH, "pin", "%s", cli_json_string(all, "manifest_id"));
    if (key_error[0] != 0) {
        cli_print_row(WIDTH, "key file", "%s", key_error);
    } else {
        print_stanzas(json_object_get(key_file, "stanzas"));
    }
    cli_print_row(WIDTH, "signed", "%s", json_is_true(json_object_get(all, "signature")) ? "yes (not checked here)" : "no");
    if (json_is_object(objects)) {
        char after[64];
        const long long count = (long long)json_integer_value(json_object_get(objects, "count"));
        (void)snprintf(after, sizeof after, " in %lld encrypted %s", count, count == 1 ? "object" : "objects");
        print_size_row("stored", objects, "len", after);
    }
}

static void print_content(const json_t *all)
{
    size_t index = 0;
    json_t *variant = NULL;
    if (json_object_get(all, "bundle_id") == NULL) {
        cli_print_row(WIDTH, "content", "encrypted; -i FILE shows it");
        return;
    }
    cli_print_row(WIDTH, "id", "%s, sequence %lld", cli_json_string(all, "bundle_id"),
                  (long long)json_integer_value(json_object_get(all, "sequence")));
    cli_print_row(WIDTH, "made by", "%s", cli_json_string(all, "creator"));
    print_list("recipients", json_object_get(all, "recipients"));
    print_pairs("labels", json_object_get(all, "labels"));
    print_size_row("plaintext", all, "plain_len", "");
    json_array_foreach(json_object_get(all, "variants"), index, variant) {
        print_variant(variant);
    }
}

ortcrypt_status cmd_inspect(cli_context *context, ortcrypt_error *err)
{
    const ortcrypt_open_options open = cli_open_options(context);
    cli_keys keys = {0};
    char *text = NULL;
    ortcrypt_status st = cli_keys_for_opening(&keys, context->args, true, err);
    if (st == ORTCRYPT_OK) {
        st = ortcrypt_bundle_describe(context->args->operands[0], keys.ring, &open, &text, err);
    }
    if (st == ORTCRYPT_OK && context->json) {
        st = cli_print_json_text(context, text, err);
        text = NULL;
    } else if (st == ORTCRYPT_OK) {
        json_t *all = json_loads(text, 0, NULL);
        cli_progress_clear();
        print_storage(all);
        print_content(all);
        json_decref(all);
    }
    ortcrypt_free(text, 0);
    cli_keys_free(&keys);
    return st;
}
