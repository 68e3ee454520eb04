/* One progress report over many assets. */
#include "bundle/progress.h"

#include <stddef.h>

/* A total that was estimated never shows as more than all of it. */
static uint64_t shown(const oc_progress_sum *sum, uint64_t done)
{
    return sum->total != 0 && done > sum->total ? sum->total : done;
}

static void sum_notice(void *state, const char *sentence)
{
    const oc_progress_sum *const sum = state;

    oc_notice(sum->user, "%s", sentence);
}

static int sum_progress(void *state, const char *step, uint64_t done, uint64_t total)
{
    const oc_progress_sum *const sum = state;

    (void)step;
    (void)total;
    if (sum->user == NULL || sum->user->progress == NULL) {
        return 0;
    }
    return sum->user->progress(sum->user->state, sum->step, shown(sum, sum->done + done), sum->total);
}

ortcrypt_status oc_progress_sum_start(oc_progress_sum *sum, const ortcrypt_monitor *user, const char *step, uint64_t total,
                                      ortcrypt_error *err)
{
    *sum = (oc_progress_sum){.user = user, .step = step, .total = total};
    sum->monitor = (ortcrypt_monitor){.notice = sum_notice, .progress = sum_progress, .state = sum};
    return oc_progress(user, step, 0, total, err);
}

ortcrypt_status oc_progress_sum_add(oc_progress_sum *sum, uint64_t len, ortcrypt_error *err)
{
    sum->done += len;
    return oc_progress(sum->user, sum->step, shown(sum, sum->done), sum->total, err);
}

ortcrypt_status oc_progress_sum_end(oc_progress_sum *sum, ortcrypt_error *err)
{
    return sum->done == sum->total ? ORTCRYPT_OK : oc_progress(sum->user, sum->step, sum->total, sum->total, err);
}
