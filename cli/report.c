/* cli/report.c: a bundle's identity, as encrypt and compile print it, and reading the library's JSON. */
#include "report.h"

#include "terminal.h"

json_t *cli_info_json(const ortcrypt_bundle_info *info)
{
    return json_pack("{s:s, s:I, s:s, s:I, s:I, s:I}", "id", info->bundle_id, "sequence", (json_int_t)info->sequence, "manifest",
                     info->manifest_id, "assets", (json_int_t)info->asset_count, "variants", (json_int_t)info->variant_count, "bytes",
                     (json_int_t)info->plain_len);
}

void cli_print_info(const ortcrypt_bundle_info *info)
{
    char size[24];
    cli_size_text(size, info->plain_len);
    cli_print_row(9, "content", "%zu %s, %s; %zu %s", info->asset_count, info->asset_count == 1 ? "file" : "files", size,
                  info->variant_count, info->variant_count == 1 ? "variant" : "variants");
    cli_print_row(9, "bundle", "%s, sequence %llu", info->bundle_id, (unsigned long long)info->sequence);
    cli_print_row(9, "pin", "%s", info->manifest_id);
}

const char *cli_json_string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}
