/* Round trips of every predictor, width, count and kind of value, and what decoding refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/err.h"
#include "trace/codec.h"

static u64 next_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

enum pattern {
	ZEROS,
	CONSTANT,
	RANDOM,
	EXTREME,
	RISING,
	WRAPPING,
	GRID_10,
	GRID_32,
	GRID_1000,
	N_PATTERNS
};

static u64 pattern_value(enum pattern p, size_t i, u64 *seed)
{
	u64 r = next_random(seed);

	switch (p) {
	case ZEROS:
		return 0;
	case CONSTANT:
		return 0x0102030405060708;
	case RANDOM:
		return r;
	case EXTREME:
		return (i & 1) ? UINT64_MAX : (u64)INT64_MAX + (i & 2);
	case RISING:
		return i * 1000 + r % 700;
	case WRAPPING:
		return UINT64_MAX - 500 + i * 17;
	case GRID_10:
		return (r % 100000) * 10 + r / 7 % 3;
	case GRID_32:
		return (r % 100000) * 32 + (r >> 40) % 2;
	default:
		return (r % 100000) * 1000;
	}
}

struct column {
	u8 values[LULL_MAX_ROWS * 8];
	u64 dur_ns[LULL_MAX_ROWS];
	u8 depth[LULL_MAX_ROWS];
	u8 decoded[LULL_MAX_ROWS * 8];
	u8 bytes[(LULL_MAX_PLANES + 1) * (LULL_MAX_ROWS + 4)];
};

static void fill(struct column *col, enum pattern p, u8 size_bytes, size_t n)
{
	u64 seed = 88172645463325252ULL + p;

	for (size_t i = 0; i < n; i++) {
		u64 v = pattern_value(p, i, &seed);

		memcpy(col->values + i * size_bytes, &v, size_bytes);
		col->dur_ns[i] = p == WRAPPING ? v : next_random(&seed) % 5000;
		col->depth[i] = (u8)(next_random(&seed) % (p == RISING ? 4 : 256));
	}
}

/* Encode and decode; fails the test if one byte differs. Returns the form that was chosen. */
static struct lull_form round_trip(struct lull_codec *codec, struct column *col,
				   const struct lull_col_values *v)
{
	struct lull_col_target to = { .at = col->decoded,
				      .n = v->n,
				      .size_bytes = v->size_bytes,
				      .by = { col->dur_ns, col->depth } };
	struct lull_form form;
	size_t len = lull_codec_encode(codec, v, &form, col->bytes);

	assert_true(len <= lull_codec_bound(v->n));
	memset(col->decoded, 0xa5, v->n * v->size_bytes);
	assert_int_equal(lull_codec_decode(codec, &form, col->bytes, len, &to), 0);
	assert_memory_equal(col->decoded, col->values, v->n * v->size_bytes);
	return form;
}

static void every_combination_round_trips(void **state)
{
	static const size_t counts[] = { 1, 2, 63, 64, 65, 65535, 65536 };
	static const u8 sizes[] = { 1, 2, 4, 8 };
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();

	for (size_t c = 0; c < LULL_COUNT_OF(counts); c++)
		for (size_t s = 0; s < LULL_COUNT_OF(sizes); s++)
			for (int p = 0; p < N_PATTERNS; p++)
				for (int e = LULL_ENC_PLAIN; e <= LULL_ENC_LANE; e++) {
					struct lull_col_values v = {
						.at = col->values,
						.n = counts[c],
						.size_bytes = sizes[s],
						.predictor = (u8)e,
						.is_signed = sizes[s] == 8 && (p & 1),
						.is_time = sizes[s] == 8,
						.by = { col->dur_ns, col->depth }
					};

					fill(col, (enum pattern)p, sizes[s], counts[c]);
					round_trip(codec, col, &v);
				}
	lull_codec_free(codec);
}

static void every_number_of_planes_round_trips(void **state)
{
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();

	for (unsigned planes = 0; planes <= 8; planes++) {
		struct lull_col_values v = { .at = col->values, .n = 1000, .size_bytes = 8 };
		u64 seed = 7;

		for (size_t i = 0; i < v.n; i++) {
			u64 value = planes ? next_random(&seed) >> (64 - 8 * planes) : 0;

			if (i == 5 && planes)
				value |= 1ULL << (8 * planes - 1);
			memcpy(col->values + i * 8, &value, 8);
		}
		assert_int_equal(round_trip(codec, col, &v).n_planes, planes);
	}
	lull_codec_free(codec);
}

static void times_on_a_grid_get_their_quantum(void **state)
{
	static const struct {
		enum pattern pattern;
		unsigned quantum;
	} cases[] = {
		{ GRID_10, 1 }, { GRID_32, 32 }, { GRID_1000, 1000 }, { RANDOM, 1 }, { RISING, 1 },
	};
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();

	for (size_t k = 0; k < LULL_COUNT_OF(cases); k++) {
		struct lull_col_values v = {
			.at = col->values, .n = 4096, .size_bytes = 8, .is_time = true
		};

		fill(col, cases[k].pattern, 8, v.n);
		/* GRID_10 has remainders of 2 as well: a third of its values are off the grid. */
		assert_int_equal(round_trip(codec, col, &v).quantum, cases[k].quantum);
		v.is_time = false;
		assert_int_equal(round_trip(codec, col, &v).quantum, 1);
	}
	lull_codec_free(codec);
}

static void one_value_off_the_grid_gives_up_that_quantum(void **state)
{
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();
	struct lull_col_values v = {
		.at = col->values, .n = 4096, .size_bytes = 8, .is_time = true
	};
	u64 odd = 1000 * 77 + 400, huge = 1ULL << 63;

	fill(col, GRID_1000, 8, v.n);
	memcpy(col->values + 8 * 777, &odd, 8);
	/* Its remainder by 1000 does not fit a byte; by 40 all do. */
	assert_int_equal(round_trip(codec, col, &v).quantum, 40);
	fill(col, GRID_32, 8, v.n);
	memcpy(col->values + 8 * 777, &huge, 8);
	assert_int_equal(round_trip(codec, col, &v).quantum, 1);
	lull_codec_free(codec);
}

static void nested_ranges_by_depth_are_smaller_than_by_difference(void **state)
{
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();
	struct lull_col_values v = { .at = col->values,
				     .n = 60000,
				     .size_bytes = 8,
				     .predictor = LULL_ENC_DEPTH,
				     .by = { col->dur_ns, col->depth } };
	struct lull_form form;
	u64 now = 1000, seed = 3;
	size_t by_depth, by_delta;

	for (size_t i = 0; i < v.n; i += 2) {
		u64 inner = now + 7;

		memcpy(col->values + i * 8, &now, 8);
		memcpy(col->values + i * 8 + 8, &inner, 8);
		col->dur_ns[i] = 500 + next_random(&seed) % 60000;
		col->dur_ns[i + 1] = 100;
		col->depth[i] = 0;
		col->depth[i + 1] = 1;
		now += col->dur_ns[i] + 20;
	}
	round_trip(codec, col, &v);
	by_depth = lull_codec_encode(codec, &v, &form, col->bytes);
	v.predictor = LULL_ENC_DELTA;
	by_delta = lull_codec_encode(codec, &v, &form, col->bytes);
	assert_true(by_depth * 10 < by_delta);
	lull_codec_free(codec);
}

static void decoding_refuses_what_does_not_add_up(void **state)
{
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();
	struct lull_col_values v = { .at = col->values, .n = 1000, .size_bytes = 4 };
	struct lull_col_target to = { .at = col->decoded, .n = 1000, .size_bytes = 4 };
	struct lull_form form, other;
	size_t len;

	fill(col, RISING, 4, v.n);
	len = lull_codec_encode(codec, &v, &form, col->bytes);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(lull_codec_decode(codec, &form, col->bytes, cut, &to),
				 LULL_E_FORMAT);
	assert_int_equal(lull_codec_decode(codec, &form, col->bytes, len + 1, &to), LULL_E_FORMAT);
	to.n = 999;
	assert_int_equal(lull_codec_decode(codec, &form, col->bytes, len, &to), LULL_E_FORMAT);
	to.n = 1000;
	to.size_bytes = 1;
	assert_int_equal(lull_codec_decode(codec, &form, col->bytes, len, &to), LULL_E_FORMAT);
	to.size_bytes = 4;
	other = form;
	other.n_planes = 9;
	assert_int_equal(lull_codec_decode(codec, &other, col->bytes, len, &to), LULL_E_FORMAT);
	other = form;
	other.predictor = LULL_ENC_GAP;
	assert_int_equal(lull_codec_decode(codec, &other, col->bytes, len, &to), LULL_E_FORMAT);
	other.predictor = 77;
	assert_int_equal(lull_codec_decode(codec, &other, col->bytes, len, &to),
			 LULL_E_UNSUPPORTED);
	lull_put_u32(col->bytes, 3u << 30);
	assert_int_equal(lull_codec_decode(codec, &form, col->bytes, len, &to), LULL_E_UNSUPPORTED);
	lull_codec_free(codec);
}

static void changed_bytes_never_write_outside_the_target(void **state)
{
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();
	struct lull_col_values v = { .at = col->values,
				     .n = 500,
				     .size_bytes = 8,
				     .predictor = LULL_ENC_DEPTH,
				     .is_time = true,
				     .by = { col->dur_ns, col->depth } };
	u64 *decoded =
		malloc(500 * sizeof(*decoded)); /* its own block, so that ASan sees its ends */
	struct lull_col_target to = {
		.at = decoded, .n = 500, .size_bytes = 8, .by = { col->dur_ns, col->depth }
	};
	struct lull_form form;
	u64 seed = 11;
	size_t len, n_refused = 0;

	assert_non_null(decoded);
	fill(col, GRID_32, 8, v.n);
	len = lull_codec_encode(codec, &v, &form, col->bytes);
	for (int round = 0; round < 20000; round++) {
		size_t at = next_random(&seed) % len;
		u8 old = col->bytes[at];

		col->bytes[at] ^= (u8)(1u << next_random(&seed) % 8);
		n_refused += lull_codec_decode(codec, &form, col->bytes, len, &to) != 0;
		col->bytes[at] = old;
	}
	assert_true(n_refused > 0);
	free(decoded);
	lull_codec_free(codec);
}

static void text_packs_and_unpacks(void **state)
{
	struct column *col = *state;
	struct lull_codec *codec = lull_codec_new();
	static const size_t counts[] = { 0, 1, 5, 100, 60000 };

	fill(col, RISING, 1, 60000);
	for (size_t k = 0; k < LULL_COUNT_OF(counts); k++) {
		size_t len = lull_codec_pack(codec, col->values, counts[k], col->bytes);

		assert_true(len <= counts[k] + 4);
		assert_int_equal(lull_codec_unpack(codec, col->bytes, len, col->decoded, counts[k]),
				 0);
		assert_memory_equal(col->decoded, col->values, counts[k]);
		for (size_t cut = 0; cut < len; cut += 1 + cut / 8)
			assert_int_not_equal(
				lull_codec_unpack(codec, col->bytes, cut, col->decoded, counts[k]),
				0);
	}
	lull_codec_free(codec);
}

static int set_up(void **state)
{
	*state = malloc(sizeof(struct column));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_round_trips),
		cmocka_unit_test(every_number_of_planes_round_trips),
		cmocka_unit_test(times_on_a_grid_get_their_quantum),
		cmocka_unit_test(one_value_off_the_grid_gives_up_that_quantum),
		cmocka_unit_test(nested_ranges_by_depth_are_smaller_than_by_difference),
		cmocka_unit_test(decoding_refuses_what_does_not_add_up),
		cmocka_unit_test(changed_bytes_never_write_outside_the_target),
		cmocka_unit_test(text_packs_and_unpacks),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
