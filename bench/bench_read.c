/*
 * bench_read: filling fresh memory with plaintext, the pages of a loaded model alike. bench.py runs it and compares.
 *
 * Usage: bench_read decrypt BUNDLE IDENTITY THREADS     the bundle's largest asset, decrypted
 *        bench_read file FILE - -                       as many bytes by read() from a file
 *        bench_read touch BYTES - -                     nothing read: memory is touched and given back, so that the next process finds it backed
 * Prints one JSON object: seconds and bytes. Both ways take their memory from the library's allocator (huge pages where they pay).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_run.h"
#include "bundle/bundle.h"
#include "os/os.h"

static ortcrypt_error err = ORTCRYPT_ERROR_INIT;

static void need(ortcrypt_status status, const char *what)
{
    if (status != ORTCRYPT_OK) {
        bench_stop(what, err.message);
    }
}

static size_t decrypt(char **argv, oc_region *region, double *start)
{
    const ortcrypt_open_options open = {.struct_size = sizeof open, .threads = (unsigned)atoi(argv[4])};
    ortcrypt_keyring *keyring = NULL;
    ortcrypt_bundle *bundle = NULL;
    const oc_asset *asset = NULL;
    need(ortcrypt_keyring_new(&keyring, &err), "keyring");
    need(ortcrypt_keyring_add_identity_file(keyring, argv[3], &err), argv[3]);
    need(ortcrypt_bundle_open(&bundle, argv[2], keyring, &open, &err), argv[2]);
    const oc_manifest *const manifest = oc_bundle_manifest(bundle);
    for (size_t i = 0; i < manifest->asset_count; i++) {
        asset = asset == NULL || manifest->assets[i].size > asset->size ? &manifest->assets[i] : asset;
    }
    *start = bench_now();
    need(oc_region_new(region, (size_t)asset->size, &err), "memory");
    need(oc_bundle_read(bundle, asset, region->data, NULL, &err), "decrypt");
    return (size_t)asset->size;
}

static size_t read_file(const char *path, oc_region *region, double *start)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        bench_stop(path, "cannot be opened");
    }
    const size_t len = (size_t)st.st_size;
    *start = bench_now();
    need(oc_region_new(region, len, &err), "memory");
    for (size_t done = 0; done < len;) {
        const ssize_t got = read(fd, region->data + done, len - done);
        if (got <= 0) {
            bench_stop(path, "ends early");
        }
        done += (size_t)got;
    }
    close(fd);
    return len;
}

static size_t touch(const char *text, oc_region *region, double *start)
{
    const size_t len = (size_t)strtoull(text, NULL, 10);

    *start = bench_now();
    need(oc_region_new(region, len, &err), "memory");
    for (size_t i = 0; i < len; i += 4096) {
        region->data[i] = 1;
    }
    return len;
}

int main(int argc, char **argv)
{
    oc_region region = {0};
    double start = 0;
    const bool decrypts = argc == 5 && strcmp(argv[1], "decrypt") == 0;
    const bool reads = argc == 5 && strcmp(argv[1], "file") == 0;
    if (!decrypts && !reads && (argc != 5 || strcmp(argv[1], "touch") != 0)) {
        bench_stop("usage", "bench_read decrypt BUNDLE IDENTITY THREADS | file FILE - - | touch BYTES - -");
    }
    const size_t len = decrypts ? decrypt(argv, &region, &start) : (reads ? read_file : touch)(argv[2], &region, &start);
    printf("{\"seconds\": %.4f, \"bytes\": %zu}\n", bench_now() - start, len);
    return 0; /* wiping is not measured */
}
