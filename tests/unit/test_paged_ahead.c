/* Which pieces are filled ahead: readers that go forwards, backwards, to an end and over it, and how often they wait. */
#include "os/paged_ahead.h"
#include "support/support.h"

#define COUNT 256u

typedef struct reader { /* of COUNT pieces; what is filled ahead is there at once */
    oc_paged_ahead ahead;
    bool there[COUNT];
    unsigned waits;
    unsigned filled;
} reader;

static reader reader_of(uint64_t most, const bool *ends, bool onward)
{
    reader made = {.ahead = oc_paged_ahead_of(COUNT, most, ends, onward)};
    return made;
}

static void fill_ahead(reader *self)
{
    uint64_t number = 0;
    while (oc_paged_ahead_next(&self->ahead, &number)) {
        assert_true(number < COUNT);
        self->filled += self->there[number] ? 0 : 1;
        self->there[number] = true;
    }
}

static void enter(reader *self, uint64_t number, bool last_page)
{
    if (!self->there[number]) {
        self->there[number] = true;
        self->filled++;
        self->waits++;
        oc_paged_ahead_touch(&self->ahead, number, last_page);
        fill_ahead(self);
    }
}

static void a_single_touch_fills_two_more(void **state)
{
    (void)state;
    reader self = reader_of(16, NULL, false);
    enter(&self, 10, false);
    assert_int_equal(self.filled, 3);
    assert_true(self.there[11] && self.there[12]);
    enter(&self, 100, false);
    assert_int_equal(self.filled, 6);
    self = reader_of(0, NULL, false); /* nothing is asked for */
    enter(&self, 10, false);
    assert_int_equal(self.filled, 1);
    self = reader_of(1, NULL, false);
    enter(&self, 10, false);
    assert_int_equal(self.filled, 2);
}

/* In either direction: after a short run-up a reader waits for one piece of sixteen, and is never filled far ahead of. */
static void a_reader_that_goes_on_rarely_waits(void **state)
{
    (void)state;
    for (unsigned back = 0; back < 2; back++) {
        reader self = reader_of(16, NULL, false);
        for (unsigned i = 0; i < COUNT; i++) {
            enter(&self, back != 0 ? COUNT - 1 - i : i, back != 0);
            assert_true(self.filled <= i + 1 + 16);
        }
        assert_int_equal(self.filled, COUNT);
        assert_true(self.waits <= COUNT / 8 + 4); /* half of what is ahead, as its middle tells that the reader goes on */
        assert_true(self.waits >= COUNT / 16);
    }
}

/* The middle of what is ahead is left out, and what comes after its touch begins where the rest ended. */
static void the_middle_tells_that_the_reader_goes_on(void **state)
{
    (void)state;
    reader self = reader_of(16, NULL, false);
    for (unsigned i = 0; i < 200 && self.ahead.len < 16; i++) {
        enter(&self, i, false);
    }
    const uint64_t marker = self.ahead.marker;
    assert_false(self.there[marker]);
    assert_true(self.there[marker - 1] && self.there[marker + 1]);
    const uint64_t end = self.ahead.expected;
    assert_false(self.there[end]);
    enter(&self, marker, false);
    assert_int_equal(self.ahead.len, 16);
    assert_true(self.there[end] || self.ahead.marker == end);
    assert_int_equal(self.ahead.expected, marker + 17);
    assert_false(self.there[marker + 17]);
}

/* The reader is faster than the filling: it touches what is about to be filled. That is going on, too. */
static void a_fast_reader_goes_on(void **state)
{
    (void)state;
    oc_paged_ahead ahead = oc_paged_ahead_of(COUNT, 64, NULL, false);
    uint64_t number = 0;
    oc_paged_ahead_touch(&ahead, 0, false);
    assert_true(oc_paged_ahead_next(&ahead, &number));
    oc_paged_ahead_touch(&ahead, 2, false); /* 1 is being filled */
    assert_int_equal(ahead.len, 4);
    oc_paged_ahead_touch(&ahead, 5, false); /* of 3 to 6 */
    assert_int_equal(ahead.len, 8);
    oc_paged_ahead_touch(&ahead, 80, false); /* elsewhere */
    assert_int_equal(ahead.len, 2);
}

/* Tensors of 64 pieces, read in the order 2, 0, 3, 1, their last byte before the first: nothing beyond one is filled for it. */
static void nothing_is_filled_across_an_end(void **state)
{
    (void)state;
    static const unsigned order[] = {2, 0, 3, 1};
    bool ends[COUNT] = {false};
    for (unsigned i = 63; i < COUNT; i += 64) {
        ends[i] = true;
    }
    for (unsigned back = 0; back < 2; back++) {
        reader self = reader_of(16, ends, false);
        for (unsigned t = 0; t < 4; t++) {
            const unsigned first = 64 * order[t];
            enter(&self, back != 0 ? first : first + 63, back == 0);
            for (unsigned i = 0; i < 64; i++) {
                enter(&self, back != 0 ? first + 63 - i : first + i, back != 0);
            }
            assert_int_equal(self.filled, 64 * (t + 1));
        }
        assert_true(self.waits <= 4 * (64 / 8 + 5));
    }
}

/* The same tensors in order, as in a model: the run goes on over the ends, and a look at the end in between does not break it. */
static void a_run_goes_on_over_ends(void **state)
{
    (void)state;
    bool ends[COUNT] = {false};
    for (unsigned i = 63; i < COUNT; i += 64) {
        ends[i] = true;
    }
    reader self = reader_of(16, ends, true);
    for (unsigned t = 0; t < 4; t++) {
        enter(&self, 64 * t + 63, false);
        for (unsigned i = 0; i < 64; i++) {
            enter(&self, 64 * t + i, false);
        }
    }
    assert_int_equal(self.filled, COUNT);
    assert_true(self.waits <= COUNT / 8 + 4 + 4);
}

static void all_means_all(void **state)
{
    (void)state;
    reader self = reader_of(16, NULL, false);
    for (unsigned i = 0; i < 40; i++) {
        enter(&self, i, false);
    }
    oc_paged_ahead_all(&self.ahead);
    fill_ahead(&self);
    assert_int_equal(self.filled, COUNT);
    oc_paged_ahead_none(&self.ahead);
    fill_ahead(&self);
    uint64_t number = 0;
    assert_false(oc_paged_ahead_next(&self.ahead, &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_touch_fills_two_more),
        cmocka_unit_test(a_reader_that_goes_on_rarely_waits),
        cmocka_unit_test(the_middle_tells_that_the_reader_goes_on),
        cmocka_unit_test(a_fast_reader_goes_on),
        cmocka_unit_test(nothing_is_filled_across_an_end),
        cmocka_unit_test(a_run_goes_on_over_ends),
        cmocka_unit_test(all_means_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
