/* os/region.c: large anonymous memory for plaintext. The owner fills it, ORT reads it, oc_region_free wipes it. */
#include <sys/mman.h>
#include <unistd.h>

#include "os/os.h"

#define HUGE_LEN ((size_t)2 * 1024 * 1024)
#define HUGE_FROM ((size_t)4 * 1024 * 1024)
#define WIPE_BATCH 1024 /* pages asked about at once */

/* Maps map_len bytes aligned to 2 MiB, by mapping more and giving back both ends. */
static void *map_aligned(size_t map_len)
{
    uint8_t *wide = mmap(NULL, map_len + HUGE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wide == MAP_FAILED) {
        return MAP_FAILED;
    }
    size_t before = (HUGE_LEN - (uintptr_t)wide % HUGE_LEN) % HUGE_LEN;
    if (before != 0) {
        (void)munmap(wide, before);
    }
    if (before != HUGE_LEN) {
        (void)munmap(wide + before + map_len, HUGE_LEN - before);
    }
    return wide + before;
}

ortcrypt_status oc_region_new(oc_region *out, size_t len, ortcrypt_error *err)
{
    *out = (oc_region){NULL, 0, NULL, 0};
    size_t unit = len >= HUGE_FROM ? HUGE_LEN : (size_t)sysconf(_SC_PAGESIZE);
    if (len > SIZE_MAX / 2) {
        return oc_fail_memory(err, len, "an asset");
    }
    size_t map_len = len == 0 ? unit : (len + unit - 1) / unit * unit;
    void *map = len >= HUGE_FROM ? map_aligned(map_len)
                                 : mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return oc_fail_memory(err, len, "an asset");
    }
    if (len >= HUGE_FROM) {
        (void)madvise(map, map_len, MADV_HUGEPAGE); /* page faults, not AES, bound the speed without it */
    }
    (void)madvise(map, map_len, MADV_DONTDUMP);
    (void)madvise(map, map_len, MADV_DONTFORK);
    *out = (oc_region){map, len, map, map_len};
    return ORTCRYPT_OK;
}

bool oc_wipe_resident(uint8_t *map, size_t map_len)
{
    unsigned char resident[WIPE_BATCH];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t pages = map_len / page;
    bool known = true;

    for (size_t first = 0; first < pages; first += WIPE_BATCH) {
        const size_t count = pages - first < WIPE_BATCH ? pages - first : WIPE_BATCH;
        uint8_t *const at = map + first * page;
        const bool told = mincore(at, count * page, resident) == 0;
        known = known && told;
        for (size_t i = 0; told && i < count; i++) {
            if ((resident[i] & 1) != 0) {
                oc_wipe(at + i * page, page);
            }
        }
    }
    return known;
}

void oc_region_free(oc_region *region)
{
    if (region != NULL && region->map != NULL) {
        if (!oc_wipe_resident(region->map, region->map_len)) {
            oc_wipe(region->map, region->map_len);
        }
        (void)munmap(region->map, region->map_len);
        *region = (oc_region){NULL, 0, NULL, 0};
    }
}
