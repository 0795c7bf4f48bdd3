/*
 * A part of a long recording gives the answer of the whole: the same cause, the same step.
 */
#include "unit/report.h"

#include "cause/why.h"
#include "model/window.h"

#define N_STEPS	    60u
#define N_KERNELS   20u
#define STEP_NS	    3000000u
#define FLUSH_STEPS 4u

/* A kernel takes 36 bytes, its call 40; a step has two ranges more. */
#define STEP_BYTES (N_KERNELS * 76 + 2 * 64)

struct work {
	struct lull_writer *to;
	u32 launch, number;
	u64 at_ns;
};

static u32 name_of(struct lull_writer *w, const char *text)
{
	return lull_writer_string(w, text, strlen(text));
}

static void add_dims(struct lull_writer *w)
{
	lull_writer_add_dim(w, LULL_TABLE_process, &(struct lull_process_row){ .pid = 1 });
	lull_writer_add_dim(w, LULL_TABLE_device, &(struct lull_device_row){ .process = 1 });
	lull_writer_add_dim(w, LULL_TABLE_lane,
			    &(struct lull_lane_row){ .kind = 1, .process = 1, .tid = 1 });
	lull_writer_add_dim(w, LULL_TABLE_lane,
			    &(struct lull_lane_row){ .kind = 2, .process = 1, .device = 1 });
	lull_writer_add_dim(w, LULL_TABLE_launch,
			    &(struct lull_launch_row){ .name = name_of(w, "gemm") });
	lull_writer_add_dim(w, LULL_TABLE_launch,
			    &(struct lull_launch_row){ .name = name_of(w, "loss") });
	lull_writer_add_dim(w, LULL_TABLE_label,
			    &(struct lull_label_row){ .name = name_of(w, "data_load") });
}

/* Two milliseconds of loading, then kernels of 20 us, one every 40 us. */
static void add_step(struct work *w, u32 number, bool has_table)
{
	u64 start_ns = w->at_ns;

	if (has_table)
		lull_writer_add(w->to, LULL_TABLE_step,
				&(struct lull_step_row){ .start_ns = start_ns,
							 .dur_ns = STEP_NS,
							 .lane = 1,
							 .number = number });
	lull_writer_add(
		w->to, LULL_TABLE_range,
		&(struct lull_range_row){
			.start_ns = start_ns + 1000, .dur_ns = 2000000, .lane = 1, .label = 1 });
	for (u32 i = 0; i < N_KERNELS; i++) {
		u64 call_ns = start_ns + 2010000 + i * 40000;

		w->number++;
		lull_writer_add(w->to, LULL_TABLE_cuda_call,
				&(struct lull_cuda_call_row){ .start_ns = call_ns,
							      .dur_ns = 5000,
							      .lane = 1,
							      .name = w->launch,
							      .correlation = w->number });
		lull_writer_add(w->to, LULL_TABLE_kernel,
				&(struct lull_kernel_row){ .start_ns = call_ns + 8000,
							   .dur_ns = 20000,
							   .lane = 2,
							   .launch = i + 1 < N_KERNELS ? 1 : 2,
							   .correlation = w->number,
							   .process = 1 });
	}
	w->at_ns += STEP_NS;
}

static struct lull_reader *make(const struct report_dir *d, bool has_table)
{
	struct lull_file_info info = { .epoch_ns = 1 };
	struct work w = { .at_ns = 1000000 };
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_writer_open(&w.to, d->file, &info, &err), &err);
	add_dims(w.to);
	w.launch = name_of(w.to, "cudaLaunchKernel");
	for (u32 i = 0; i < N_STEPS; i++) {
		add_step(&w, i, has_table);
		if (i % FLUSH_STEPS == FLUSH_STEPS - 1)
			report_ok(lull_writer_flush(w.to, &err), &err);
	}
	report_ok(lull_writer_seal(w.to, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	return r;
}

/* The answer with this much memory for events. */
static void ask(struct lull_why *why, struct lull_reader *r, u64 limit_bytes)
{
	u64 was = lull_window_limit_bytes;
	struct lull_err err;

	lull_window_limit_bytes = limit_bytes;
	report_ok(lull_why_run(why, r, NULL, &err), &err);
	lull_window_limit_bytes = was;
}

static void check_part(const struct report_dir *d, bool has_table)
{
	struct lull_reader *r = make(d, has_table);
	struct lull_why all, part;

	ask(&all, r, UINT64_MAX);
	ask(&part, r, (u64)STEP_BYTES * N_STEPS / 3);
	assert_true(lull_window_is_all(all.window));
	assert_in_range(lull_why_n_steps(&all), N_STEPS - 3, N_STEPS - 1);
	/* About a third, in the middle: blocks are not cut. */
	assert_in_range(lull_why_n_steps(&part), N_STEPS / 3 - 2 * FLUSH_STEPS, N_STEPS / 3 + 1);
	assert_in_range(part.window.from_ns, (N_STEPS / 3 - FLUSH_STEPS) * STEP_NS,
			(N_STEPS / 3 + FLUSH_STEPS) * STEP_NS);
	assert_in_range(part.lead->units.n, N_KERNELS * (N_STEPS / 3 - FLUSH_STEPS),
			N_KERNELS * (N_STEPS / 3 + FLUSH_STEPS));
	assert_non_null(lull_why_first(&all));
	assert_non_null(lull_why_first(&part));
	assert_int_equal(lull_why_first(&part)->cause, lull_why_first(&all)->cause);
	assert_true(part.step_ns > 0.999 * all.step_ns && part.step_ns < 1.001 * all.step_ns);
	assert_true(part.compute_share > 0.999 * all.compute_share &&
		    part.compute_share < 1.001 * all.compute_share);
	assert_true(lull_why_first(&part)->prediction.is_known);
	lull_why_release(&all);
	lull_why_release(&part);
	lull_reader_close(r);
	unlink(d->file);
}

static void a_part_answers_as_the_whole(void **state)
{
	check_part(*state, true);
}

static void it_does_where_nothing_is_marked(void **state)
{
	check_part(*state, false);
}

static void too_small_a_part_is_no_answer(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = make(d, true);
	struct lull_why why;

	ask(&why, r, 1);
	assert_true(why.first < 0 || lull_why_n_steps(&why) < 2 * FLUSH_STEPS);
	lull_why_release(&why);
	lull_reader_close(r);
	unlink(d->file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_part_answers_as_the_whole, report_set_up,
						report_tear_down),
		cmocka_unit_test_setup_teardown(it_does_where_nothing_is_marked, report_set_up,
						report_tear_down),
		cmocka_unit_test_setup_teardown(too_small_a_part_is_no_answer, report_set_up,
						report_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
