/* os/paged_open.c: memory and threads of a oc_paged: made, settled, wiped and given back. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/paged.h"
#include "os/threads.h"
#include "os/uffd.h"

bool oc_paged_available(void)
{
    const int fd = oc_uffd_probe();

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static unsigned lanes_for(const oc_paged_spec *spec)
{
    const unsigned asked = spec->threads != 0 ? spec->threads : oc_default_threads();
    const unsigned most = asked < OC_DEFAULT_THREADS_MAX ? asked : OC_DEFAULT_THREADS_MAX;
    return most < spec->piece_count ? most : (unsigned)spec->piece_count;
}

static ortcrypt_status make_memory(oc_paged *paged, ortcrypt_error *err)
{
    const oc_paged_spec *const spec = &paged->spec;

    paged->page = (size_t)sysconf(_SC_PAGESIZE);
    if (spec->piece_count == 0 || spec->piece_len == 0 || spec->piece_len % paged->page != 0 ||
        spec->piece_count > SIZE_MAX / 2 / spec->piece_len) {
        return oc_fail(err, ORTCRYPT_E_INVALID, "%llu pieces of %zu bytes cannot be filled", (unsigned long long)spec->piece_count,
                       spec->piece_len);
    }
    paged->map_len = (size_t)spec->piece_count * spec->piece_len;
    paged->unseen = spec->piece_count;
    paged->lanes = lanes_for(spec);
    paged->pieces = calloc((size_t)spec->piece_count, sizeof(*paged->pieces));
    paged->wanted.items = calloc((size_t)spec->piece_count, sizeof(*paged->wanted.items));
    paged->resident.items = calloc((size_t)spec->piece_count, sizeof(*paged->resident.items));
    paged->workers = calloc(paged->lanes, sizeof(*paged->workers));
    if (paged->pieces == NULL || paged->wanted.items == NULL || paged->resident.items == NULL || paged->workers == NULL) {
        return oc_fail_memory(err, (size_t)spec->piece_count * sizeof(*paged->wanted.items), "the list of pieces");
    }
    /* PROT_NONE until it is registered: mlockall(MCL_FUTURE) would fill it with zeros, and nobody would ask for its pages */
    void *const map = mmap(NULL, paged->map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return oc_fail_memory(err, paged->map_len, "an asset");
    }
    paged->map = map;
    (void)munlock(map, paged->map_len); /* locked pages could not be evicted */
    (void)madvise(map, paged->map_len, MADV_NOHUGEPAGE); /* one page touched must not bring others, filled with zeros */
    (void)madvise(map, paged->map_len, MADV_DONTDUMP);
    if (madvise(map, paged->map_len, MADV_DONTFORK) != 0) { /* a child would read zeros */
        return oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, errno, "memory for an asset");
    }
    paged->fd = oc_uffd_open(map, paged->map_len);
    if (paged->fd < 0) {
        return oc_fail_errno(err, ORTCRYPT_E_UNSUPPORTED, errno, "userfaultfd");
    }
    if (mprotect(map, paged->map_len, PROT_READ | PROT_WRITE) != 0) {
        return oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, errno, "memory for an asset");
    }
    paged->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    return paged->wake_fd < 0 ? oc_fail_errno(err, ORTCRYPT_E_IO, errno, "an event descriptor") : ORTCRYPT_OK;
}

static ortcrypt_status start(oc_paged *paged, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;
    int rc = 0;

    for (unsigned i = 0; i < paged->lanes && st == ORTCRYPT_OK && rc == 0; i++) {
        oc_paged_worker *const self = &paged->workers[i];
        self->paged = paged;
        self->lane = i;
        st = oc_region_new(&self->plain, paged->spec.piece_len, err);
        if (st == ORTCRYPT_OK) {
            rc = oc_thread_start(&self->thread, oc_paged_work, self);
        }
        pthread_mutex_lock(&paged->mutex);
        paged->started += st == ORTCRYPT_OK && rc == 0 ? 1 : 0;
        pthread_mutex_unlock(&paged->mutex);
    }
    if (paged->started != 0) {
        return ORTCRYPT_OK; /* fewer threads do all the work */
    }
    return st != ORTCRYPT_OK ? st : oc_fail_errno(err, ORTCRYPT_E_NO_MEMORY, rc, "a thread that fills memory");
}

ortcrypt_status oc_paged_open(oc_paged **out, const oc_paged_spec *spec, ortcrypt_error *err)
{
    oc_paged *const paged = calloc(1, sizeof(*paged));

    *out = NULL;
    if (paged == NULL) {
        return oc_fail_memory(err, sizeof(*paged), "an asset");
    }
    paged->spec = *spec;
    paged->fd = -1;
    paged->wake_fd = -1;
    paged->ahead = oc_paged_ahead_of(spec->piece_count, spec->ahead, spec->ends, spec->onward);
    (void)pthread_mutex_init(&paged->mutex, NULL);
    (void)pthread_cond_init(&paged->changed, NULL);
    ortcrypt_status st = make_memory(paged, err);
    if (st == ORTCRYPT_OK) {
        st = start(paged, err);
    }
    if (st != ORTCRYPT_OK) {
        oc_paged_close(paged);
        return st;
    }
    *out = paged;
    return ORTCRYPT_OK;
}

uint8_t *oc_paged_data(const oc_paged *paged) { return paged->map; }

uint64_t oc_paged_fills(oc_paged *paged)
{
    pthread_mutex_lock(&paged->mutex);
    const uint64_t fills = paged->fills;
    pthread_mutex_unlock(&paged->mutex);
    return fills;
}

ortcrypt_status oc_paged_settle(oc_paged *paged, bool complete, ortcrypt_error *err)
{
    ortcrypt_status st = ORTCRYPT_OK;

    pthread_mutex_lock(&paged->mutex);
    (complete ? oc_paged_ahead_all : oc_paged_ahead_none)(&paged->ahead);
    paged->completing = complete;
    oc_paged_signal(paged);
    while (paged->completing && paged->unseen != 0 && !paged->failed) {
        (void)pthread_cond_wait(&paged->changed, &paged->mutex);
    }
    paged->completing = false;
    oc_paged_ahead_none(&paged->ahead);
    paged->settled = true;
    if (paged->failed) {
        st = paged->failure.status;
        if (err != NULL) {
            *err = paged->failure;
        }
    }
    pthread_mutex_unlock(&paged->mutex);
    return st;
}

/*
 * Of pieces that were evicted in vain too. A page that is not there must not be touched; nor may one of a piece that failed, which may be
 * poisoned or closed, and may hold plaintext: memory ran out while it was put into place, or somebody dropped a part of it.
 */
static void wipe(const oc_paged *paged)
{
    for (uint64_t number = 0; paged->pieces != NULL && number < paged->spec.piece_count; number++) {
        if (paged->pieces[number].state == OC_PIECE_FAILED) {
            oc_uffd_overwrite(oc_paged_at(paged, number), oc_paged_room(paged, number));
        } else {
            (void)oc_wipe_resident(oc_paged_at(paged, number), oc_paged_room(paged, number));
        }
    }
}

void oc_paged_close(oc_paged *paged)
{
    if (paged == NULL) {
        return;
    }
    pthread_mutex_lock(&paged->mutex);
    paged->stop = true;
    paged->idle = paged->started;
    oc_paged_signal(paged);
    pthread_mutex_unlock(&paged->mutex);
    for (unsigned i = 0; i < paged->started; i++) {
        (void)pthread_join(paged->workers[i].thread, NULL);
    }
    for (unsigned i = 0; paged->workers != NULL && i < paged->lanes; i++) {
        oc_region_free(&paged->workers[i].plain);
    }
    if (paged->lost) {
        (void)mprotect(paged->map, paged->map_len, PROT_READ | PROT_WRITE);
        paged->fd = -1; /* what has these numbers now is somebody else's */
        paged->wake_fd = -1;
    }
    if (paged->map != NULL) {
        wipe(paged);
        (void)munmap(paged->map, paged->map_len);
    }
    if (paged->fd >= 0) {
        (void)close(paged->fd);
    }
    if (paged->wake_fd >= 0) {
        (void)close(paged->wake_fd);
    }
    free(paged->workers);
    free(paged->pieces);
    free(paged->wanted.items);
    free(paged->resident.items);
    (void)pthread_mutex_destroy(&paged->mutex);
    (void)pthread_cond_destroy(&paged->changed);
    free(paged);
}
