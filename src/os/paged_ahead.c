/* os/paged_ahead.c: see paged_ahead.h. */
#include "os/paged_ahead.h"

#define FIRST_LEN 2u   /* pieces ahead of a touch that follows no other */
#define MARKED_FROM 8u /* pieces ahead from which one is left out */

oc_paged_ahead oc_paged_ahead_of(uint64_t count, uint64_t most, const bool *ends, bool onward)
{
    return (oc_paged_ahead){.count = count, .most = most, .ends = ends, .onward = onward, .marker = UINT64_MAX};
}

static bool is_end(const oc_paged_ahead *ahead, uint64_t number) { return ahead->ends != NULL && ahead->ends[number]; }

static bool stops_at(const oc_paged_ahead *ahead, uint64_t number) { return !ahead->onward && is_end(ahead, number); }

/* It is the marker, or among what is about to be filled, or comes next, or after an end that comes next. */
static bool goes_on(const oc_paged_ahead *ahead, uint64_t number, bool back)
{
    const bool within = back ? number <= ahead->next && number + 1 >= ahead->expected
                             : number >= ahead->next && number <= ahead->expected + 1;
    return back == ahead->back && ahead->len != 0 && (number == ahead->marker || within);
}

void oc_paged_ahead_touch(oc_paged_ahead *ahead, uint64_t number, bool back)
{
    uint64_t left = 0;

    if (is_end(ahead, number)) {
        return; /* a look at the end tells nothing */
    }
    const uint64_t len = goes_on(ahead, number, back) ? 2 * ahead->len : FIRST_LEN;
    ahead->len = len < ahead->most ? len : ahead->most;
    if (back) {
        for (; left < ahead->len && left < number && !stops_at(ahead, number - left - 1); left++) { }
    } else {
        for (; left < ahead->len && number + left + 1 < ahead->count && !stops_at(ahead, number + left); left++) { }
    }
    ahead->back = back;
    ahead->left = left;
    ahead->next = back ? number - 1 : number + 1;
    ahead->expected = back ? number - left - 1 : number + left + 1;
    ahead->marker = left < MARKED_FROM ? UINT64_MAX : back ? number - 1 - left / 2 : number + 1 + left / 2;
}

bool oc_paged_ahead_next(oc_paged_ahead *ahead, uint64_t *number)
{
    if (ahead->left != 0 && ahead->next == ahead->marker) {
        ahead->next += ahead->back ? UINT64_MAX : 1;
        ahead->left--;
    }
    if (ahead->left == 0) {
        return false;
    }
    *number = ahead->next;
    ahead->next += ahead->back ? UINT64_MAX : 1;
    ahead->left--;
    return true;
}

void oc_paged_ahead_none(oc_paged_ahead *ahead)
{
    ahead->left = 0;
    ahead->len = 0;
    ahead->marker = UINT64_MAX;
}

void oc_paged_ahead_all(oc_paged_ahead *ahead)
{
    oc_paged_ahead_none(ahead);
    ahead->back = false;
    ahead->next = 0;
    ahead->left = ahead->count;
}
