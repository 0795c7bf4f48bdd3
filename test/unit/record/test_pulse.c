/*
 * What the recorder tells while it runs: steps, and idle time by what the host did.
 */
#include "unit/report.h"

#include "record/live/metrics_port.h"
#include "record/live/pulse.h"
#include "record/recording.h"

#define US 1000ull

struct bench {
	struct lull_recording r;
	struct lull_pulse p;
	struct report_dir *d;
};

/* A process with a thread (lane 1) and a stream of a device (lane 2). */
static void begin(struct bench *b, struct report_dir *d)
{
	struct lull_file_info info = { 0 };
	struct lull_err err;

	*b = (struct bench){ .d = d };
	report_ok(lull_writer_open(&b->r.writer, d->file, &info, &err), &err);
	report_ok(lull_text_add(b->r.writer,
				"process pid=10 name=train\n"
				"lane process=1 tid=10 name=main kind=1\n"
				"device process=1 device_id=3 name=H200\n"
				"lane process=1 kind=2 device=1 stream_id=7\n",
				&err),
		  &err);
	lull_pulse_init(&b->p);
}

static void end(struct bench *b)
{
	lull_pulse_release(&b->p);
	lull_writer_discard(b->r.writer);
}

static void call(struct bench *b, u64 start_ns, u64 dur_ns, u32 correlation)
{
	lull_pulse_add(&b->p, &b->r, LULL_TABLE_cuda_call,
		       &(struct lull_cuda_call_row){ .start_ns = start_ns,
						     .dur_ns = dur_ns,
						     .lane = 1,
						     .correlation = correlation });
}

static void told(struct bench *b, u64 start_ns, u64 dur_ns, u32 correlation)
{
	lull_pulse_add(&b->p, &b->r, LULL_TABLE_kernel,
		       &(struct lull_kernel_row){ .start_ns = start_ns,
						  .dur_ns = dur_ns,
						  .lane = 2,
						  .process = 1,
						  .correlation = correlation });
}

static void kernel(struct bench *b, u64 start_ns, u64 dur_ns, u32 correlation)
{
	told(b, start_ns, dur_ns, correlation);
	lull_pulse_settle(&b->p);
}

static void expect_idle(const struct bench *b, const u64 idle_ns[LULL_PULSE_N_CAUSES])
{
	for (size_t i = 0; i < LULL_PULSE_N_CAUSES; i++)
		if (b->p.devices[0].idle_ns[i] != idle_ns[i])
			fail_msg("%s: %llu ns instead of %llu", lull_pulse_causes[i],
				 (unsigned long long)b->p.devices[0].idle_ns[i],
				 (unsigned long long)idle_ns[i]);
}

/* Two threads tell about the work of one device, and the one with the later work is read first. */
static void work_is_put_in_order(void **state)
{
	struct bench b;

	begin(&b, *state);
	told(&b, 5000, 1000, 3);
	told(&b, 6000, 1000, 4);
	told(&b, 1000, 1000, 1);
	told(&b, 2000, 1000, 2);
	assert_int_equal(b.p.n_kernels, 4);
	lull_pulse_settle(&b.p);
	assert_int_equal(b.p.devices[0].busy_ns, 4000);
	expect_idle(&b, (u64[LULL_PULSE_N_CAUSES]){ [LULL_PULSE_QUEUE] = 2000 });
	end(&b);
}

static void idle_time_goes_to_what_the_host_did(void **state)
{
	struct bench b;
	u64 idle[LULL_PULSE_N_CAUSES] = { 0 };

	begin(&b, *state);
	call(&b, 1000 * US, 5 * US, 1);
	kernel(&b, 1010 * US, 90 * US, 1); /* until 1100; nothing came before */
	expect_idle(&b, idle);
	/* Queued while the device was busy: 20 us of gap are the device's own. */
	call(&b, 1050 * US, 5 * US, 2);
	kernel(&b, 1120 * US, 80 * US, 2);
	idle[LULL_PULSE_QUEUE] += 20 * US;
	expect_idle(&b, idle);
	/*
	 * The device runs dry at 1200. The host reads until 1300, computes, and launches at 1330.
	 */
	lull_pulse_add(
		&b.p, &b.r, LULL_TABLE_oscall,
		&(struct lull_oscall_row){ .start_ns = 1150 * US, .dur_ns = 150 * US, .lane = 1 });
	call(&b, 1330 * US, 5 * US, 3);
	kernel(&b, 1340 * US, 60 * US, 3);
	idle[LULL_PULSE_OS_CALL] += 100 * US;
	idle[LULL_PULSE_HOST_CODE] += 30 * US;
	idle[LULL_PULSE_LAUNCH] += 10 * US;
	expect_idle(&b, idle);
	/* Then it waits in CUDA, from 1380 to 1500, and for the interpreter until 1520. */
	call(&b, 1380 * US, 120 * US, 4);
	lull_pulse_add(
		&b.p, &b.r, LULL_TABLE_gil_wait,
		&(struct lull_gil_wait_row){ .start_ns = 1500 * US, .dur_ns = 20 * US, .lane = 1 });
	call(&b, 1520 * US, 5 * US, 5);
	kernel(&b, 1530 * US, 10 * US, 5);
	idle[LULL_PULSE_CUDA_CALL] += 100 * US;
	idle[LULL_PULSE_GIL] += 20 * US;
	idle[LULL_PULSE_LAUNCH] += 10 * US;
	expect_idle(&b, idle);
	assert_int_equal(b.p.devices[0].busy_ns, (90 + 80 + 60 + 10) * US);
	assert_int_equal(b.p.devices[0].number, 3);
	/* Overlapping work of another stream counts once. */
	kernel(&b, 1535 * US, 10 * US, 5);
	assert_int_equal(b.p.devices[0].busy_ns, (90 + 80 + 60 + 15) * US);
	end(&b);
}

static void step(struct bench *b, u64 number, u64 dur_ns)
{
	lull_pulse_add(&b->p, &b->r, LULL_TABLE_step,
		       &(struct lull_step_row){ .start_ns = number * 10000 * US,
						.dur_ns = dur_ns,
						.lane = 1,
						.number = number });
}

static void a_step_is_slow_against_those_before(void **state)
{
	struct bench b;

	begin(&b, *state);
	b.p.slow_factor = 1.5;
	/* Too few to tell. */
	for (u64 i = 0; i < 7; i++)
		step(&b, i, 1000 * US);
	step(&b, 7, 9000 * US);
	assert_int_equal(b.p.slow.dur_ns, 0);
	step(&b, 8, 1490 * US);
	assert_int_equal(b.p.slow.dur_ns, 0);
	step(&b, 9, 1510 * US);
	assert_int_equal(b.p.slow.dur_ns, 1510 * US);
	assert_int_equal(b.p.slow.number, 9);
	assert_int_equal(b.p.slow.usual_ns, 1000 * US);
	assert_int_equal(b.p.n_steps, 10);
	end(&b);
}

static void a_limit_needs_no_history(void **state)
{
	struct bench b;

	begin(&b, *state);
	b.p.slow_ns = 5000 * US;
	step(&b, 0, 5000 * US);
	assert_int_equal(b.p.slow.dur_ns, 0);
	step(&b, 1, 5001 * US);
	assert_int_equal(b.p.slow.dur_ns, 5001 * US);
	end(&b);
}

/* Ranges named like steps are steps, until the program marks real ones. */
static void ranges_named_like_steps_count(void **state)
{
	struct lull_range_row range = { .dur_ns = 7 * US, .lane = 1, .label = 2 };
	struct bench b;

	begin(&b, *state);
	lull_pulse_label(&b.p, 1, "forward");
	lull_pulse_label(&b.p, 2, "step 17");
	lull_pulse_add(&b.p, &b.r, LULL_TABLE_range, &range);
	assert_int_equal(b.p.n_steps, 1);
	range.label = 1;
	lull_pulse_add(&b.p, &b.r, LULL_TABLE_range, &range);
	range.label = 99;
	lull_pulse_add(&b.p, &b.r, LULL_TABLE_range, &range);
	assert_int_equal(b.p.n_steps, 1);
	step(&b, 1, 1000 * US);
	range.label = 2;
	lull_pulse_add(&b.p, &b.r, LULL_TABLE_range, &range);
	assert_int_equal(b.p.n_steps, 2);
	end(&b);
}

static void metrics_are_text(void **state)
{
	struct lull_metrics_facts facts = { .is_recording = true, .n_events = 5 };
	struct lull_str text = LULL_STR_INIT;
	struct bench b;

	begin(&b, *state);
	step(&b, 0, 3000 * US);
	kernel(&b, 10 * US, 10 * US, 1);
	facts.pulse = &b.p;
	lull_metrics_write(&facts, &text);
	assert_non_null(strstr(text.at, "\nlull_step_seconds_bucket{le=\"0.002\"} 0\n"));
	assert_non_null(strstr(text.at, "\nlull_step_seconds_bucket{le=\"0.005\"} 1\n"));
	assert_non_null(strstr(text.at, "\nlull_step_seconds_sum 0.003000000\n"));
	assert_non_null(
		strstr(text.at,
		       "\nlull_device_busy_seconds_total{pid=\"10\",device=\"3\"} 0.000010000\n"));
	assert_non_null(strstr(text.at, "\nlull_events_total 5\n"));
	lull_str_release(&text);
	end(&b);
}

static void expect_address(const char *text, const char *address, u16 port)
{
	struct lull_err err;
	char got[64];
	u16 number;

	assert_int_equal(lull_metrics_parse(text, got, sizeof(got), &number, &err),
			 address ? 0 : LULL_E_USAGE);
	if (!address)
		return;
	assert_string_equal(got, address);
	assert_int_equal(number, port);
}

static void addresses_are_checked(void **state)
{
	(void)state;
	expect_address("9464", "127.0.0.1", 9464);
	expect_address("0", "127.0.0.1", 0);
	expect_address("0.0.0.0:80", "0.0.0.0", 80);
	expect_address("", NULL, 0);
	expect_address(":", NULL, 0);
	expect_address("65536", NULL, 0);
	expect_address("-1", NULL, 0);
	expect_address("80x", NULL, 0);
	expect_address("localhost:80", NULL, 0);
	expect_address("1.2.3.4.5:80", NULL, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, report_set_up, report_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(work_is_put_in_order),
		TEST(idle_time_goes_to_what_the_host_did),
		TEST(a_step_is_slow_against_those_before),
		TEST(a_limit_needs_no_history),
		TEST(ranges_named_like_steps_count),
		TEST(metrics_are_text),
		cmocka_unit_test(addresses_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
