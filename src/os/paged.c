/*
 * os/paged.c: memory filled when touched. Worker threads read the touches and fill whole pieces: into memory of their own first,
 * then into place in one step, so that a reader sees a page whole or not at all. No thread here reads or writes the range itself
 * before it was closed to readers: a worker that waits for a page waits for itself.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/paged.h"
#include "os/uffd.h"

#define RETRY_COUNT 500 /* of a fill that lacks memory or descriptors */
#define RETRY_MS 10     /* between two of them */
#define SLACK_PIECES 3u /* that are too many before some are dropped, */
#define SLACK_LEN ((size_t)768 << 10) /* or as many bytes */
#define LOOK_MS 2000    /* between two looks at whether the descriptors are still ours */
#define IDLE_MS 100      /* of a reader, after which it has gone to other work */
#define BUSY UINT64_MAX  /* no number of fills */
#define FAILED_BYTE 0xff /* not a number, as a float; and no divisor of zero, as an integer */

static void ring_push(oc_paged_ring *to, uint64_t item, uint64_t cap)
{
    to->items[(to->first + to->count++) % cap] = item;
}

static uint64_t ring_take(oc_paged_ring *from, uint64_t cap)
{
    const uint64_t item = from->items[from->first];
    from->first = (from->first + 1) % cap;
    from->count--;
    return item;
}

uint8_t *oc_paged_at(const oc_paged *paged, uint64_t number) { return paged->map + number * paged->spec.piece_len; }

size_t oc_paged_room(const oc_paged *paged, uint64_t number)
{
    return (paged->spec.lens[number] + paged->page - 1) / paged->page * paged->page;
}

/* Locked. */
void oc_paged_signal(oc_paged *paged)
{
    const uint64_t count = paged->idle;

    if (count != 0) {
        paged->idle = 0;
        (void)!write(paged->wake_fd, &count, sizeof(count));
    }
}

static bool evicts(const oc_paged *paged) { return paged->spec.window != 0 && !paged->settled && !paged->completing; }

/* It is in the last page of a piece, and that is not the first: so it is where a reader that goes backwards enters. */
static bool in_last_page(const oc_paged *paged, uint64_t number, uintptr_t address)
{
    const size_t within = address - (uintptr_t)oc_paged_at(paged, number);
    return within >= paged->page && within + paged->page >= oc_paged_room(paged, number);
}

/* A touch of a page. Locked. */
static void want(oc_paged *paged, uintptr_t address)
{
    const uint64_t number = (address - (uintptr_t)paged->map) / paged->spec.piece_len;
    oc_paged_piece *const p = &paged->pieces[number];

    if (address - (uintptr_t)oc_paged_at(paged, number) >= oc_paged_room(paged, number)) {
        uint8_t *const page = (uint8_t *)(address / paged->page * paged->page);
        oc_uffd_poison(paged->fd, page, paged->page); /* behind the end, as with a file that is mapped */
        oc_uffd_wake(paged->fd, page, paged->page);
    } else if (p->state == OC_PIECE_EVICTING) {
        p->touched = 1;
    } else if (p->state == OC_PIECE_FAILED) { /* or somebody dropped the page, and with it what said so */
        oc_uffd_poison(paged->fd, oc_paged_at(paged, number), oc_paged_room(paged, number));
        oc_uffd_wake(paged->fd, oc_paged_at(paged, number), oc_paged_room(paged, number));
    } else if (p->state == OC_PIECE_PRESENT && oc_uffd_present((const uint8_t *)address)) {
        oc_uffd_wake(paged->fd, oc_paged_at(paged, number), oc_paged_room(paged, number)); /* filled since it was touched */
    } else if (p->state == OC_PIECE_ABSENT || p->state == OC_PIECE_PRESENT) { /* there: somebody dropped the page */
        p->state = OC_PIECE_WANTED;
        ring_push(&paged->wanted, number, paged->spec.piece_count);
        if (!paged->completing) {
            oc_paged_ahead_touch(&paged->ahead, number, in_last_page(paged, number, address));
        }
        oc_paged_signal(paged);
    }
}

/* The oldest goes first, so what was filled ahead and is not read yet must not push out what is being read. */
static size_t room_for(const oc_paged *paged) { return paged->spec.window + paged->spec.ahead * paged->spec.piece_len; }

static size_t slack_for(const oc_paged *paged)
{
    const size_t slack = SLACK_PIECES * paged->spec.piece_len;
    return slack < SLACK_LEN ? slack : SLACK_LEN;
}

/*
 * The window, when as much as it holds was evicted and is read again: the reader does not go through once. What is new in between counts
 * against that, as now and then one is read again: where two tensors meet, or the end of one first. What was dropped while the reader was
 * away is no sign at all.
 */
static void grow(oc_paged *paged, uint64_t number)
{
    const oc_paged_piece *const p = &paged->pieces[number];
    const size_t len = oc_paged_room(paged, number);

    if (p->seen == 0) {
        paged->refilled_len -= len < paged->refilled_len ? len : paged->refilled_len;
    } else if (p->dropped == 0 && evicts(paged) && paged->spec.window < paged->map_len) {
        paged->refilled_len += len;
        if (paged->refilled_len > room_for(paged)) {
            paged->spec.window *= 2;
            paged->refilled_len = 0;
        }
    }
}

/* The next piece to fill, claimed. false: none. Locked. */
static bool claim(oc_paged *paged, uint64_t *number)
{
    bool found = paged->wanted.count != 0;

    if (found) {
        *number = ring_take(&paged->wanted, paged->spec.piece_count);
    }
    while (!found && oc_paged_ahead_next(&paged->ahead, number)) {
        const oc_paged_piece *const p = &paged->pieces[*number];
        found = p->state == OC_PIECE_ABSENT && (!paged->completing || p->seen == 0);
    }
    if (found) {
        grow(paged, *number);
        paged->pieces[*number].state = OC_PIECE_FILLING;
        paged->pieces[*number].dropped = 0;
        paged->fills++;
    }
    return found;
}

/*
 * The oldest pieces that are too much, claimed: neighbours in one go, as each costs every core a flush of what it knows of addresses.
 * *len: their bytes. All are too much while no fill follows the first `idle_at`. Locked.
 */
static bool claim_oldest(oc_paged *paged, uint64_t idle_at, uint64_t *number, size_t *len)
{
    const bool idle = paged->fills == idle_at;
    const size_t room = idle ? 0 : room_for(paged);
    const size_t slack = idle ? 0 : slack_for(paged);

    *len = 0;
    while (evicts(paged) && paged->resident_len > room + (*len == 0 ? slack : 0)) {
        const uint64_t oldest = paged->resident.items[paged->resident.first];
        oc_paged_piece *const p = &paged->pieces[oldest];
        if (*len != 0 && (p->state != OC_PIECE_PRESENT || oc_paged_at(paged, oldest) != oc_paged_at(paged, *number) + *len)) {
            break;
        }
        (void)ring_take(&paged->resident, paged->spec.piece_count);
        p->listed = 0;
        paged->resident_len -= oc_paged_room(paged, oldest);
        if (p->state == OC_PIECE_PRESENT) {
            p->state = OC_PIECE_EVICTING;
            p->dropped = idle ? 1 : 0;
            *number = *len == 0 ? oldest : *number;
            *len += oc_paged_room(paged, oldest);
        }
    }
    return *len != 0;
}

/* idle_at: BUSY, or the fills there were when the reader had gone; the next one ends that, or a reader would wait for what goes again. */
static void evict_oldest(oc_paged *paged, uint64_t idle_at)
{
    uint64_t first = 0;
    size_t len = 0;

    pthread_mutex_lock(&paged->mutex);
    while (claim_oldest(paged, idle_at, &first, &len)) {
        pthread_mutex_unlock(&paged->mutex);
        (void)oc_uffd_evict(oc_paged_at(paged, first), len);
        pthread_mutex_lock(&paged->mutex);
        for (uint64_t number = first; number * paged->spec.piece_len < first * paged->spec.piece_len + len; number++) {
            oc_paged_piece *const p = &paged->pieces[number];
            p->state = OC_PIECE_ABSENT;
            if (p->touched != 0) {
                p->touched = 0;
                want(paged, (uintptr_t)oc_paged_at(paged, number));
            }
        }
        pthread_cond_broadcast(&paged->changed);
    }
    pthread_mutex_unlock(&paged->mutex);
}

static void keep_failure(oc_paged *paged, ortcrypt_status status, const ortcrypt_error *err)
{
    if (!paged->failed) {
        paged->failed = true;
        paged->failure = *err;
        paged->failure.status = status;
    }
}

/* It may be otherwise in a moment. */
static bool is_transient(ortcrypt_status st, const ortcrypt_error *err)
{
    return st != ORTCRYPT_OK && (st == ORTCRYPT_E_NO_MEMORY || err->sys_errno == EMFILE || err->sys_errno == ENFILE ||
                                 err->sys_errno == ENOMEM || err->sys_errno == EAGAIN);
}

/* Before the memory was handed over its reader is told of a failure; afterwards it would die of it, so it waits. */
static bool may_wait(oc_paged *paged)
{
    pthread_mutex_lock(&paged->mutex);
    const bool may = paged->settled && !paged->stop;
    pthread_mutex_unlock(&paged->mutex);
    return may;
}

/* *rc: errno of putting it into place. */
static ortcrypt_status fill_once(const oc_paged_worker *self, uint64_t number, int *rc, ortcrypt_error *err)
{
    const oc_paged *const paged = self->paged;
    const size_t room = oc_paged_room(paged, number);
    const size_t len = paged->spec.lens[number];

    *err = (ortcrypt_error)ORTCRYPT_ERROR_INIT;
    ortcrypt_status st = paged->spec.fill(paged->spec.state, self->lane, number, self->plain.data, err);
    memset(self->plain.data + len, 0, room - len); /* as behind the end of a file that is mapped */
    *rc = st == ORTCRYPT_OK ? oc_uffd_copy(paged->fd, oc_paged_at(paged, number), self->plain.data, room) : 0;
    if (*rc != 0) {
        st = oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, *rc, "memory for an asset");
    }
    return st;
}

/* Fills a claimed piece. */
static void fill(oc_paged_worker *self, uint64_t number)
{
    oc_paged *const paged = self->paged;
    const size_t room = oc_paged_room(paged, number);
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    int rc = 0;

    ortcrypt_status st = fill_once(self, number, &rc, &err);
    for (unsigned tries = 0; is_transient(st, &err) && tries < RETRY_COUNT && may_wait(paged); tries++) {
        (void)poll(NULL, 0, RETRY_MS);
        st = fill_once(self, number, &rc, &err);
    }
    pthread_mutex_lock(&paged->mutex);
    if (st != ORTCRYPT_OK) {
        keep_failure(paged, st, &err);
        memset(self->plain.data, FAILED_BYTE, room);
        if (paged->settled || rc != 0 || oc_uffd_copy(paged->fd, oc_paged_at(paged, number), self->plain.data, room) != 0) {
            oc_uffd_poison(paged->fd, oc_paged_at(paged, number), room);
        }
    }
    oc_paged_piece *const p = &paged->pieces[number];
    p->state = st == ORTCRYPT_OK ? OC_PIECE_PRESENT : OC_PIECE_FAILED;
    paged->unseen -= p->seen == 0 ? 1 : 0;
    p->seen = 1;
    paged->filled++;
    if (p->listed == 0 && st == ORTCRYPT_OK && evicts(paged)) {
        p->listed = 1;
        paged->resident_len += room;
        ring_push(&paged->resident, number, paged->spec.piece_count);
    }
    oc_uffd_wake(paged->fd, oc_paged_at(paged, number), room);
    pthread_cond_broadcast(&paged->changed);
    pthread_mutex_unlock(&paged->mutex);
    evict_oldest(paged, BUSY);
}

/*
 * Somebody closed our descriptors (closefrom, close_range: the whole process has them). Pages that are not there would be zeros from now
 * on: nobody may read any of it. Whoever reads at this moment dies within microseconds, instead of going on with zeros.
 */
static void lose(oc_paged *paged)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;

    (void)mprotect(paged->map, paged->map_len, PROT_NONE);
    (void)oc_fail(&err, ORTCRYPT_E_IO, "a descriptor of this library was closed by other code in this process");
    pthread_mutex_lock(&paged->mutex);
    keep_failure(paged, ORTCRYPT_E_IO, &err);
    paged->lost = true;
    pthread_cond_broadcast(&paged->changed);
    pthread_mutex_unlock(&paged->mutex);
}

typedef enum heard { HEARD_WORK, HEARD_NOTHING, HEARD_LOSS } heard;

/* Waits for a touch or a signal, but not for ever: closed descriptors say nothing. */
static heard wait_for_work(const oc_paged *paged, bool may_drop)
{
    struct pollfd fds[2] = {{paged->fd, POLLIN, 0}, {paged->wake_fd, POLLIN, 0}};
    uint64_t one = 0;
    const int count = poll(fds, 2, may_drop ? IDLE_MS : LOOK_MS);

    if (count > 0 && ((fds[0].revents | fds[1].revents) & POLLNVAL) != 0) {
        return HEARD_LOSS;
    }
    if (count > 0 && fds[1].revents != 0) {
        (void)!read(paged->wake_fd, &one, sizeof(one)); /* not blocking: another thread may have been faster */
    }
    return count == 0 ? HEARD_NOTHING : HEARD_WORK;
}

void *oc_paged_work(void *state)
{
    oc_paged_worker *const self = state;
    oc_paged *const paged = self->paged;
    uintptr_t address = 0;
    uint64_t number = 0;
    bool go_on = true;

    while (go_on) {
        pthread_mutex_lock(&paged->mutex);
        while (oc_uffd_next(paged->fd, &address)) {
            want(paged, address);
        }
        go_on = !paged->stop && !paged->lost;
        const bool found = go_on && claim(paged, &number);
        const bool may_drop = evicts(paged) && paged->resident_len != 0 && paged->filled == paged->fills;
        const uint64_t fills = paged->fills;
        paged->idle += go_on && !found ? 1 : 0;
        pthread_mutex_unlock(&paged->mutex);
        if (found) {
            fill(self, number);
        } else if (go_on) {
            const heard what = wait_for_work(paged, may_drop);
            pthread_mutex_lock(&paged->mutex);
            paged->idle -= paged->idle != 0 ? 1 : 0; /* near enough: a thread too many looks, a thread too few has been signalled */
            pthread_mutex_unlock(&paged->mutex);
            if (what == HEARD_LOSS) {
                lose(paged);
            } else if (what == HEARD_NOTHING && may_drop) {
                evict_oldest(paged, fills); /* all, as long as nobody fills any */
            }
        }
    }
    return NULL;
}
