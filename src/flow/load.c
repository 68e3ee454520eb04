/* Carrying out a loading plan: the facts of this load, the decision (route.h), the files, and what the plan says of them. */
#include <string.h>

#include "flow/flow.h"

#define PREPACK_ENTRY "session.disable_prepacking"

/* *set: the entry is there. *on: prepacking is not switched off. */
static ortcrypt_status read_prepacking(bool *on, bool *set, const ortcrypt_runtime *runtime, const OrtSessionOptions *options,
                                       ortcrypt_error *err)
{
    const OrtApi *const api = ortcrypt_runtime_api(runtime);
    char value[16] = "";
    size_t size = sizeof(value);
    int there = 0;

    *on = true;
    ortcrypt_status st = oc_ort_check(runtime, api->HasSessionConfigEntry(options, PREPACK_ENTRY, &there), err, "session options");
    *set = there != 0;
    if (st == ORTCRYPT_OK && *set) {
        st = oc_ort_check(runtime, api->GetSessionConfigEntry(options, PREPACK_ENTRY, value, &size), err, "session options");
        *on = strcmp(value, "1") != 0;
    }
    return st;
}

static uint64_t blobs_len(const oc_supply *supply)
{
    const oc_manifest *const manifest = oc_bundle_manifest(supply->bundle);
    uint64_t sum = 0;

    for (size_t i = 0; i < supply->variant->part_count; i++) {
        const oc_part *const part = &supply->variant->parts[i];
        const oc_asset *const asset = part->role == OC_ROLE_EP_CONTEXT ? oc_manifest_find_asset(manifest, part->asset) : NULL;
        sum += asset != NULL ? asset->size : 0; /* below 2^53 each */
    }
    return sum;
}

oc_load_facts oc_load_facts_of(const oc_supply *supply, const ortcrypt_runtime *runtime, const char *ep)
{
    return (oc_load_facts){.in_place = oc_runtime_has(runtime, OC_DIRECT_ENTRY),
                           .ep = ep,
                           .aligned = oc_supply_aligned(supply),
                           .plain_types = oc_supply_plain_types(supply),
                           .relocated = supply->edit_count != 0,
                           .pages = oc_paged_available(),
                           .proc = oc_flow_has_proc(),
                           .fits = oc_supply_fits(supply),
                           .model_len = supply->model.size,
                           .files = supply->file_count != 0,
                           .files_len = oc_supply_files_len(supply),
                           .largest_len = oc_supply_largest(supply, true),
                           .largest_embedded_len = oc_supply_largest(supply, false),
                           .lifted_len = oc_supply_lifted_len(supply),
                           .blobs_len = blobs_len(supply)};
}

/*
 * An application's own session: nobody tells us when it ends, so ORT must keep nothing of ours. The weights go back into the model;
 * from 2 GiB on, where no model can hold them, ORT copies them while it creates the session.
 */
static void decide_own(oc_load_ways *ways, const oc_load_facts *facts)
{
    *ways = (oc_load_ways){.model = OC_MODEL_ARRAY, .model_why = "the application creates the session"};
    if (facts->files) {
        ways->files = facts->fits ? OC_FILES_PUT_BACK : OC_FILES_EAGER_COPY;
        ways->files_why = facts->fits ? "the application may close this before its session"
                                      : "copied while the session is created: the application may close this before its session";
    }
}

static ortcrypt_status decide(ortcrypt_inputs *inputs, const oc_load_wish *wish, OrtSessionOptions *options, ortcrypt_error *err)
{
    oc_load_facts facts = oc_load_facts_of(inputs->supply, inputs->runtime, wish->ep);
    bool set = false;

    facts.lazy = wish->lazy;
    if (wish->own) {
        decide_own(&inputs->ways, &facts);
        return ORTCRYPT_OK;
    }
    ortcrypt_status st = read_prepacking(&facts.prepacking, &set, inputs->runtime, options, err);
    if (st == ORTCRYPT_OK && wish->lazy && !set) {
        facts.prepacking = false; /* who wants it lazy does not want every weight read now */
        oc_load_decide(&inputs->ways, &facts);
        if (inputs->ways.files == OC_FILES_LAZY_DIRECT) {
            return oc_ort_check(inputs->runtime, ortcrypt_runtime_api(inputs->runtime)->AddSessionConfigEntry(options, PREPACK_ENTRY, "1"),
                                err, "session options");
        }
        facts.prepacking = true;
    }
    oc_load_decide(&inputs->ways, &facts);
    return st;
}

ortcrypt_status oc_load_files(ortcrypt_inputs *inputs, const oc_load_wish *wish, OrtSessionOptions *options,
                              const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    const ortcrypt_status st = decide(inputs, wish, options, err);

    inputs->plan.peak_len = inputs->ways.peak_len;
    return st == ORTCRYPT_OK ? oc_load_give(inputs->supply, &inputs->ways, inputs->runtime, options, monitor, err) : st;
}

ortcrypt_status oc_load_give(oc_supply *supply, const oc_load_ways *ways, const ortcrypt_runtime *runtime, OrtSessionOptions *options,
                             const ortcrypt_monitor *monitor, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    const size_t window_len = ways->files == OC_FILES_LAZY_DIRECT ? 0 : ways->window_len;
    if (ways->model == OC_MODEL_LIFTED) { /* then there are no files, or they are copied in the same way */
        oc_supply_lift(supply);
        st = oc_supply_load_pages(supply, window_len, err);
        return st == ORTCRYPT_OK ? oc_supply_add_tensors(supply, runtime, options, err) : st;
    }
    switch (ways->files) {
    case OC_FILES_NONE:
        return ORTCRYPT_OK;
    case OC_FILES_PUT_BACK:
        return oc_supply_put_back(supply, err);
    case OC_FILES_LAZY_DIRECT:
    case OC_FILES_PAGED_DIRECT:
    case OC_FILES_PAGED_COPY:
        st = oc_supply_load_pages(supply, window_len, err);
        break;
    default:
        st = oc_supply_load(supply, monitor, err);
        break;
    }
    if (st == ORTCRYPT_OK) {
        st = ways->files == OC_FILES_PAGED_COPY
                 ? oc_supply_add_tensors(supply, runtime, options, err)
                 : oc_supply_add(supply, runtime, options, oc_file_way_resident(ways->files), err);
    }
    return st;
}

ortcrypt_status oc_load_plan_model(ortcrypt_inputs *inputs, uint64_t made_len, ortcrypt_error *err)
{
    const oc_load_ways *const ways = &inputs->ways;
    const uint64_t len = ways->model == OC_MODEL_LIFTED ? inputs->supply->model.size : made_len; /* with what was taken out */
    return oc_load_plan_add(&inputs->plan,
                            (oc_load_entry){OC_ROLE_MODEL, "", len, oc_model_way_text(ways->model), ways->model_why, false, NULL}, err);
}

static ortcrypt_status plan_part(ortcrypt_inputs *inputs, const oc_part *part, const oc_asset *asset, ortcrypt_error *err)
{
    const oc_load_ways *const ways = &inputs->ways;
    oc_load_entry entry = {part->role, part->name, asset->size, oc_file_way_text(ways->files), ways->files_why,
                           oc_file_way_resident(ways->files), oc_file_way_sharing(ways->files)};

    if (part->role == OC_ROLE_EP_CONTEXT) {
        entry.route = "read callback";
        entry.why = "decrypted into the buffer of the execution provider when it asks";
        entry.resident = false;
        entry.sharing = NULL;
    }
    return oc_load_plan_add(&inputs->plan, entry, err);
}

static bool is_file(const oc_supply *supply, const oc_part *part)
{
    for (size_t i = 0; i < supply->name_count; i++) {
        if (supply->files[i].part == part) {
            return true;
        }
    }
    return false;
}

ortcrypt_status oc_load_plan_parts(ortcrypt_inputs *inputs, ortcrypt_error *err)
{
    const oc_variant *const variant = inputs->variant;
    ortcrypt_status st = ORTCRYPT_OK;

    if (inputs->source_len != 0) {
        st = oc_load_plan_add(&inputs->plan,
                              (oc_load_entry){OC_ROLE_MODEL, "source", inputs->source_len, "source model buffer",
                                              "the variant is weightless: the execution provider takes the weights from the source", true, NULL},
                              err);
    }
    for (size_t i = 0; i < variant->part_count && st == ORTCRYPT_OK; i++) {
        const oc_part *const part = &variant->parts[i];
        const oc_asset *const asset = oc_manifest_find_asset(oc_bundle_manifest(inputs->bundle), part->asset);
        if (asset != NULL && (part->role == OC_ROLE_EP_CONTEXT || is_file(inputs->supply, part))) {
            st = plan_part(inputs, part, asset, err);
        }
    }
    return st;
}
