/*
 * What goes through export/outbuf comes out of zlib as it was, whatever it is.
 */
#include "unit/unit.h"

#include <zlib.h>

#include "base/mem.h"
#include "export/outbuf.h"

/* Bytes by a function of their place and of a random number. */
typedef u8 make_fn(size_t i, u64 random);

static u8 *make(size_t len, make_fn *fn)
{
	u8 *bytes = lull_alloc(len + 1, 1);
	u64 random = 88172645463325252u;

	for (size_t i = 0; i < len; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		bytes[i] = fn(i, random);
	}
	return bytes;
}

/* Pack the bytes in pieces of this length; *packed_len receives what came out. */
static char *pack(const u8 *bytes, size_t len, size_t piece, size_t *packed_len)
{
	struct lull_outbuf b;
	struct lull_err err;
	char *packed;
	FILE *to = open_memstream(&packed, packed_len);

	lull_outbuf_init(&b, to, LULL_OUTBUF_GZIP);
	for (size_t at = 0; at < len; at += piece)
		lull_outbuf_add(&b, bytes + at, len - at < piece ? len - at : piece);
	assert_int_equal(lull_outbuf_finish(&b, &err), 0);
	fclose(to);
	return packed;
}

static size_t round_trip(size_t len, size_t piece, make_fn *fn)
{
	u8 *bytes = make(len, fn), *back = lull_alloc(len + 1, 1);
	size_t packed_len;
	char *packed = pack(bytes, len, piece, &packed_len);
	z_stream z = { .next_in = (u8 *)packed,
		       .avail_in = (uInt)packed_len,
		       .next_out = back,
		       .avail_out = (uInt)len + 1 };

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	/* Its end is reached only if length and checksum are right. */
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, len);
	assert_int_equal(z.avail_in, 0);
	assert_memory_equal(bytes, back, len);
	inflateEnd(&z);
	free(packed);
	free(bytes);
	free(back);
	return packed_len;
}

static u8 noise(size_t i, u64 random)
{
	(void)i;
	return (u8)(random >> 20);
}

static u8 same(size_t i, u64 random)
{
	(void)i;
	(void)random;
	return 'x';
}

/* Lines that differ in a few digits. */
static u8 lines(size_t i, u64 random)
{
	static const char line[] =
		"{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":????.???,\"dur\":??},\n";
	char c = line[i % (sizeof(line) - 1)];

	return c == '?' ? (u8)('0' + random % 10) : (u8)c;
}

/* Noise that comes again, just inside and just outside of the window. */
static u8 echo(size_t i, u64 random)
{
	(void)random;
	return (u8)((i % 32768 * 2654435761u) >> 13);
}

static u8 far_echo(size_t i, u64 random)
{
	(void)random;
	return (u8)((i % 32769 * 2654435761u) >> 13);
}

static void everything_comes_back(void **state)
{
	make_fn *const fns[] = { noise, same, lines, echo, far_echo };
	const size_t lens[] = { 0, 1, 3, 4, 5, 257, 258, 259, 32767, 32768, 32769, 70000, 1200000 };

	(void)state;
	for (size_t f = 0; f < LULL_COUNT_OF(fns); f++)
		for (size_t l = 0; l < LULL_COUNT_OF(lens); l++)
			round_trip(lens[l], 100003, fns[f]);
}

/* Blocks shorter than the window refer to all that was before them. */
static void pieces_of_any_length(void **state)
{
	(void)state;
	round_trip(5000, 1, lines);
	round_trip(1200000, 1200000, lines);
	round_trip(18u << 20, 65536, lines); /* new codes on the way */
}

static void what_repeats_gets_short_and_noise_hardly_longer(void **state)
{
	(void)state;
	assert_true(round_trip(3000000, 65536, same) < 3000000 / 100);
	assert_true(round_trip(3000000, 65536, lines) < 3000000 / 4);
	assert_true(round_trip(3000000, 65536, noise) < 3000000 + 3000000 / 50);
}

static void a_full_disk_is_told_once_at_the_end(void **state)
{
	FILE *to = fopen("/dev/full", "w");
	struct lull_outbuf b;
	struct lull_err err;
	u8 *bytes = make(5000000, noise);

	(void)state;
	assert_non_null(to);
	lull_outbuf_init(&b, to, LULL_OUTBUF_GZIP);
	lull_outbuf_add(&b, bytes, 5000000);
	assert_int_equal(lull_outbuf_finish(&b, &err), LULL_E_IO);
	assert_non_null(strstr(err.msg, "No space left"));
	fclose(to);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(pieces_of_any_length),
		cmocka_unit_test(what_repeats_gets_short_and_noise_hardly_longer),
		cmocka_unit_test(a_full_disk_is_told_once_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
