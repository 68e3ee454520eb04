/*
 * find_plaintext: is any 64-byte window of some plain files to be found in other files?
 *
 * Usage: find_plaintext PLAIN... -- FILE-OR-FOLDER...
 * A window counts when it has at least 8 distinct bytes (runs of zeros are in every file). Exit 0: none found; 1: found,
 * with where; 2: usage, or a file that cannot be read.
 *
 * Complete, in one pass: every 64-byte window holds one 32-byte block that is aligned in its file, whatever the window's
 * offset. All aligned blocks of the plain files go into a hash table; a rolling hash slides over each searched file byte by
 * byte; where a block is met, the match is extended to both sides and looked at as windows.
 */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 64, BLOCK = 32, DISTINCT = 8, MAX_PLAIN = 64 };
#define HASH_BASE 0x9E3779B97F4A7C15u

typedef struct mapped {
    const char *path;
    const uint8_t *data; /* NULL when empty */
    size_t len;
} mapped;

/* One aligned block of a plain file; blocks of equal content hang together by `next` (1 + index; 0 ends). */
typedef struct position {
    const uint8_t *block;
    uint32_t plain; /* index into plains */
    uint32_t next;
} position;

typedef struct entry {
    uint64_t hash;
    uint32_t first; /* 1 + index into positions; 0: free slot */
} entry;

static mapped plains[MAX_PLAIN];
static uint32_t plain_count;
static entry *table;
static position *positions;
static uint32_t position_count;
static size_t table_mask;
static uint64_t leaving_factor; /* HASH_BASE^(BLOCK - 1) */
static uint64_t searched_files, searched_bytes;
static bool found, broken;

static bool map_file(mapped *out, const char *path)
{
    struct stat st;
    void *map = MAP_FAILED;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && fstat(fd, &st) == 0 &&
                    (st.st_size == 0 || (map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) != MAP_FAILED);
    if (ok) {
        *out = (mapped){path, st.st_size == 0 ? NULL : map, (size_t)st.st_size};
    } else {
        fprintf(stderr, "find_plaintext: %s: %s\n", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static void unmap_file(const mapped *file)
{
    if (file->data != NULL) {
        munmap((void *)(uintptr_t)file->data, file->len);
    }
}

static uint64_t hash_block(const uint8_t *block)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        hash = hash * HASH_BASE + block[i] + 1;
    }
    return hash;
}

static int distinct_bytes(const uint8_t *bytes, size_t len)
{
    bool seen[256] = {false};
    int distinct = 0;
    for (size_t i = 0; i < len; i++) {
        distinct += !seen[bytes[i]];
        seen[bytes[i]] = true;
    }
    return distinct;
}

/* The slot of this block's content: taken or free. */
static entry *slot_for(const uint8_t *block, uint64_t hash)
{
    size_t slot = (size_t)((hash ^ hash >> 29) * HASH_BASE >> 20) & table_mask;
    while (table[slot].first != 0 &&
           (table[slot].hash != hash || memcmp(positions[table[slot].first - 1].block, block, BLOCK) != 0)) {
        slot = (slot + 1) & table_mask;
    }
    return &table[slot];
}

/* Between two equal blocks of few distinct bytes: no window around it counts. Keeps constant tensors out of the table. */
static bool block_is_dull(const mapped *plain, size_t off)
{
    const uint8_t *block = plain->data + off;
    return off >= BLOCK && off + 2 * BLOCK <= plain->len && memcmp(block - BLOCK, block, BLOCK) == 0 &&
           memcmp(block + BLOCK, block, BLOCK) == 0 && distinct_bytes(block, BLOCK) < DISTINCT;
}

static void index_plain(uint32_t plain)
{
    for (size_t off = 0; off + BLOCK <= plains[plain].len; off += BLOCK) {
        if (!block_is_dull(&plains[plain], off)) {
            const uint8_t *block = plains[plain].data + off;
            const uint64_t hash = hash_block(block);
            entry *slot = slot_for(block, hash);
            positions[position_count++] = (position){block, plain, slot->first};
            *slot = (entry){hash, position_count};
        }
    }
}

static bool index_plains(void)
{
    size_t blocks = 0, slots = 1024;
    for (uint32_t p = 0; p < plain_count; p++) {
        blocks += plains[p].len / BLOCK;
    }
    while (slots < 2 * blocks) {
        slots *= 2;
    }
    table = calloc(slots, sizeof *table);
    positions = calloc(blocks + 1, sizeof *positions);
    if (table == NULL || positions == NULL || blocks >= UINT32_MAX) {
        fprintf(stderr, "find_plaintext: not enough memory for %zu blocks\n", blocks);
        return false;
    }
    table_mask = slots - 1;
    leaving_factor = 1;
    for (int i = 1; i < BLOCK; i++) {
        leaving_factor *= HASH_BASE;
    }
    for (uint32_t p = 0; p < plain_count; p++) {
        index_plain(p);
    }
    return true;
}

/* file[at..] equals the block of `match`: is a whole window around it equal too? Extends by at most 32 bytes a side. */
static bool match_counts(const mapped *file, size_t at, const position *match, size_t *file_off, size_t *plain_off)
{
    const mapped *plain = &plains[match->plain];
    const size_t plain_at = (size_t)(match->block - plain->data);
    size_t before = 0, after = BLOCK;
    while (before < WINDOW - BLOCK && before < at && before < plain_at &&
           file->data[at - before - 1] == plain->data[plain_at - before - 1]) {
        before++;
    }
    while (after < WINDOW && at + after < file->len && plain_at + after < plain->len &&
           file->data[at + after] == plain->data[plain_at + after]) {
        after++;
    }
    for (size_t start = 0; start + WINDOW <= before + after; start++) {
        if (distinct_bytes(file->data + at - before + start, WINDOW) >= DISTINCT) {
            *file_off = at - before + start;
            *plain_off = plain_at - before + start;
            return true;
        }
    }
    return false;
}

static bool search_at(const mapped *file, size_t at, uint64_t hash)
{
    for (uint32_t p = slot_for(file->data + at, hash)->first; p != 0; p = positions[p - 1].next) {
        const position *match = &positions[p - 1];
        size_t file_off = 0, plain_off = 0;
        if (match_counts(file, at, match, &file_off, &plain_off)) {
            printf("found: %s at %zu holds 64 bytes of %s at %zu\n", file->path, file_off, plains[match->plain].path, plain_off);
            return true;
        }
    }
    return false;
}

static void search_file(const char *path)
{
    mapped file;
    if (!map_file(&file, path)) {
        broken = true;
        return;
    }
    searched_files++;
    searched_bytes += file.len;
    if (file.len >= WINDOW) {
        uint64_t hash = hash_block(file.data);
        for (size_t at = 0;; at++) {
            if (search_at(&file, at, hash)) {
                found = true;
                break;
            }
            if (at + BLOCK >= file.len) {
                break;
            }
            hash = (hash - (file.data[at] + 1) * leaving_factor) * HASH_BASE + file.data[at + BLOCK] + 1;
        }
    }
    unmap_file(&file);
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind == FTW_F && S_ISREG(st->st_mode)) {
        search_file(path);
    } else if (kind == FTW_NS || kind == FTW_DNR) {
        fprintf(stderr, "find_plaintext: %s: cannot be read\n", path);
        broken = true;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int arg = 1;
    uint64_t windows = 0;
    for (; arg < argc && strcmp(argv[arg], "--") != 0; arg++) {
        if (plain_count == MAX_PLAIN || !map_file(&plains[plain_count], argv[arg])) {
            return 2;
        }
        if (plains[plain_count].len >= WINDOW) {
            windows += plains[plain_count].len - WINDOW + 1;
        }
        plain_count++;
    }
    if (plain_count == 0 || arg + 1 >= argc) {
        fprintf(stderr, "usage: find_plaintext PLAIN... -- FILE-OR-FOLDER...\n");
        return 2;
    }
    if (!index_plains()) {
        return 2;
    }
    for (arg++; arg < argc; arg++) {
        if (nftw(argv[arg], visit, 16, FTW_PHYS) != 0) {
            fprintf(stderr, "find_plaintext: %s: %s\n", argv[arg], strerror(errno));
            broken = true;
        }
    }
    if (!found) {
        printf("none of %llu windows (64 bytes each) found in %llu files, %llu bytes\n", (unsigned long long)windows,
               (unsigned long long)searched_files, (unsigned long long)searched_bytes);
    }
    free(table);
    free(positions);
    return found ? 1 : broken ? 2 : 0;
}
