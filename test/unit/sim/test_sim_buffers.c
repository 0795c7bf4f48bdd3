/*
 * Buffers of the simulated CUPTI: what is finished comes with a flush, what is not is withheld
 * until it is, or comes without its end when the flush is forced. Times are on the program's clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The parts of the stand-in that are tested; libcupti.c itself would need a driver. */
#include "../../../sim/cupti_buffer.c"
#include "../../../sim/cupti_clock.c"
#include "../../../sim/cupti_record.c"

#include "support/patience.h"

#define BUFFER_BYTES 512u /* room for two kernels */
#define CLOCK_OFFSET 5000000000000ull
#define MS	     1000000ull

/* What came back. */
static struct {
	u32 n_kernels;
	u64 start, end; /* of the last */
	bool is_refusing;
} back;

bool lull_cupti_wants(u32 kind)
{
	return kind == CUPTI_CONCURRENT_KERNEL;
}

static u64 program_clock(void)
{
	return sim_now_ns() + CLOCK_OFFSET;
}

static void on_request(u8 **buffer, size_t *size, size_t *max_records)
{
	*buffer = back.is_refusing ? NULL : malloc(BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*max_records = 0;
}

static void on_complete(void *context, u32 stream, u8 *buffer, size_t size, size_t valid)
{
	(void)context;
	(void)stream;
	assert_int_equal(size, BUFFER_BYTES);
	for (size_t off = 0; off < valid; off += lull_cupti_record_bytes(CUPTI_KERNEL)) {
		back.n_kernels++;
		back.start = load64(buffer + off + 16);
		back.end = load64(buffer + off + 24);
	}
	free(buffer);
}

static int begin(void **state)
{
	(void)state;
	lull_cupti_clock_set(program_clock);
	assert_true(lull_cupti_buffers_open(on_request, on_complete));
	lull_cupti_flush(true);
	memset(&back, 0, sizeof(back));
	return 0;
}

static void add_kernel(u64 start_ns, u64 end_ns)
{
	struct sim_work kernel = { .kind = SIM_KERNEL, .start_ns = start_ns, .end_ns = end_ns };
	u8 bytes[CUPTI_MAX_RECORD_BYTES];

	lull_cupti_append(bytes, lull_cupti_write_work(bytes, &kernel, CUPTI_CONCURRENT_KERNEL),
			  end_ns);
}

static void wait_until_ns(u64 ns)
{
	while (sim_now_ns() < ns)
		usleep(1000);
}

/* The two clocks are compared within this. */
static void assert_near(u64 found, u64 expected)
{
	if (found + MS < expected || found > expected + MS)
		fail_msg("%llu, not %llu", (unsigned long long)found, (unsigned long long)expected);
}

static void finished_records_come_with_a_flush(void **state)
{
	u64 now_ns = sim_now_ns();

	(void)state;
	add_kernel(now_ns - 2 * MS, now_ns - MS);
	assert_int_equal(lull_cupti_flush(false), CUPTI_OK);
	assert_int_equal(back.n_kernels, 1);
	assert_near(back.start, now_ns - 2 * MS + CLOCK_OFFSET);
	assert_near(back.end, now_ns - MS + CLOCK_OFFSET);
}

/* Flush while a kernel runs that takes so long; false if it was over before we had done so. */
static bool flush_during(u64 dur_ns)
{
	u64 now_ns = sim_now_ns();
	u32 n_kernels;

	back.n_kernels = 0;
	add_kernel(now_ns, now_ns + dur_ns);
	lull_cupti_flush(false);
	n_kernels = __atomic_load_n(&back.n_kernels, __ATOMIC_ACQUIRE);
	if (sim_now_ns() >= now_ns + dur_ns) {
		lull_cupti_flush(true);
		return false;
	}
	assert_int_equal(n_kernels, 0);
	wait_until_ns(now_ns + dur_ns + 1);
	lull_cupti_flush(false);
	assert_int_equal(back.n_kernels, 1);
	assert_near(back.end, now_ns + dur_ns + CLOCK_OFFSET);
	return true;
}

static void unfinished_records_are_withheld(void **state)
{
	u64 dur_ns = 200 * MS;

	(void)state;
	while (!flush_during(dur_ns)) {
		dur_ns *= 2;
		assert_true(dur_ns < test_patience_s() * LULL_NS_PER_S);
	}
}

static void a_forced_flush_gives_them_without_an_end(void **state)
{
	u64 now_ns = sim_now_ns();

	(void)state;
	add_kernel(now_ns - MS, now_ns + test_patience_s() * LULL_NS_PER_S);
	lull_cupti_flush(true);
	assert_int_equal(back.n_kernels, 1);
	assert_near(back.start, now_ns - MS + CLOCK_OFFSET);
	assert_int_equal(back.end, 0);
}

static void full_buffers_come_by_themselves(void **state)
{
	u64 now_ns = sim_now_ns();

	(void)state;
	for (int i = 0; i < 7; i++)
		add_kernel(now_ns - MS, now_ns);
	test_wait_for(__atomic_load_n(&back.n_kernels, __ATOMIC_ACQUIRE) >= 6);
	assert_int_equal(back.n_kernels, 6);
	lull_cupti_flush(false);
	assert_int_equal(back.n_kernels, 7);
}

static void a_record_without_a_buffer_is_dropped_and_counted(void **state)
{
	(void)state;
	back.is_refusing = true;
	add_kernel(1, 2);
	add_kernel(1, 2);
	lull_cupti_flush(false);
	assert_int_equal(back.n_kernels, 0);
	assert_int_equal(lull_cupti_take_dropped(), 2);
	assert_int_equal(lull_cupti_take_dropped(), 0);
}

static void a_device_clock_may_be_off(void **state)
{
	u64 now_ns = sim_now_ns();

	(void)state;
	setenv("LULL_SIM_SKEW_NS", "-5000000", 1);
	add_kernel(now_ns - 2 * MS, now_ns - MS);
	lull_cupti_flush(false);
	unsetenv("LULL_SIM_SKEW_NS");
	assert_near(back.start, now_ns - 7 * MS + CLOCK_OFFSET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(finished_records_come_with_a_flush, begin),
		cmocka_unit_test_setup(unfinished_records_are_withheld, begin),
		cmocka_unit_test_setup(a_forced_flush_gives_them_without_an_end, begin),
		cmocka_unit_test_setup(full_buffers_come_by_themselves, begin),
		cmocka_unit_test_setup(a_record_without_a_buffer_is_dropped_and_counted, begin),
		cmocka_unit_test_setup(a_device_clock_may_be_off, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
