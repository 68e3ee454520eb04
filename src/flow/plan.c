/* The loading plan of a session: a list that is filled while loading and printed as JSON on request. */
#include <jansson.h>
#include <stdlib.h>

#include "flow/plan.h"

ortcrypt_status oc_load_plan_add(oc_load_plan *plan, oc_load_entry entry, ortcrypt_error *err)
{
    const size_t size = (plan->count + 1) * sizeof(*plan->entries);
    oc_load_entry *const grown = realloc(plan->entries, size);

    if (grown == NULL) {
        return oc_fail_memory(err, size, "the loading plan");
    }
    plan->entries = grown;
    plan->entries[plan->count++] = entry;
    return ORTCRYPT_OK;
}

ortcrypt_status oc_load_plan_print(const oc_load_plan *plan, const oc_variant *variant, const char *from, const char *ep,
                                   char **json, ortcrypt_error *err)
{
    json_t *const list = json_array();

    for (size_t i = 0; i < plan->count; i++) {
        const oc_load_entry *const e = &plan->entries[i];
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:s, s:s, s:b, s:s*}", "role", oc_role_text(e->role), "name", e->name, "bytes",
                            (json_int_t)e->len, "route", e->route, "why", e->why, "resident", e->resident, "sharing", e->sharing));
    }
    json_t *const all = json_pack("{s:s, s:s, s:s, s:s, s:I, s:o}", "variant", variant->id, "kind", variant->kind, "from", from, "ep",
                                  ep, "expected_peak", (json_int_t)plan->peak_len, "assets", list);
    char *const text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (text == NULL) {
        return oc_fail_memory(err, 4096, "the loading plan");
    }
    *json = text;
    return ORTCRYPT_OK;
}

void oc_load_plan_free(oc_load_plan *plan)
{
    free(plan->entries);
    *plan = (oc_load_plan){NULL, 0, 0};
}
