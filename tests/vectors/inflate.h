/* tests/vectors/inflate.h: vectors that are long arrive zlib-compressed. */
#ifndef OC_TESTS_INFLATE_H
#define OC_TESTS_INFLATE_H

#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#include "support/support.h"

/* The inflated bytes, at most `max`, in new memory; fails the test when they are not a whole zlib stream. */
static inline uint8_t *oc_test_inflate(const uint8_t *in, size_t in_len, size_t max, size_t *out_len)
{
    uLongf len = max;
    uint8_t *out = malloc(max);
    assert_non_null(out);
    int rc = uncompress(out, &len, in, in_len);
    if (rc != Z_OK) {
        fail_msg("zlib says %d", rc);
    }
    *out_len = len;
    return out;
}

#endif
