/*
 * The planted loops (test/data/planted): labels, sums, replay, predictions; and what is left of
 * them when sources are taken away or events are lost.
 */
#include "unit/report.h"

#include <math.h>

#include "cause/why.h"

#define FOLDER "test/data/planted/"

/* What a loop's bottleneck is, and its step in ms without a profiler, as written and fixed. */
static const struct planted {
	const char *name;
	const char *label;
	f64 step_ms, fixed_ms; /* 0: there is no recording of it fixed */
	bool stays;	       /* the fixed one has the same cause, rightly */
} loops[] = {
	{ "alloc_churn", "allocator", 7.110, 4.559, false },
	{ "compute_bound", "gpu-bound", 11.289, 11.457, true }, /* nothing to fix */
	{ "d2h_logging", "host-sync", 33.492, 5.303, false },
	{ "dataloader_cpu", "input-pipeline", 45.821, 7.733, false },
	{ "exposed_copy", "exposed-copy", 10.106, 5.588, false },
	{ "gil_thread", "gil", 15.647, 0, false },
	{ "launch_bound", "launch-bound", 18.759, 4.357, false },
	{ "optimizer_loop", "launch-bound", 28.152, 12.067, true }, /* 2 ms of work in 12 */
	{ "pageable_copy", "pageable-copy", 26.601, 5.213, false },
	{ "sync_item", "host-sync", 13.126, 9.657, false },
	{ "unfused", "unfused-elementwise", 8.468, 0.546, false },
};

/* One recording and its answer. */
struct answer {
	struct lull_reader *reader;
	struct lull_why why;
};

static void ask_file(struct answer *a, const char *path, const struct lull_why_options *options)
{
	struct lull_err err;

	report_ok(lull_reader_open(&a->reader, path, &err), &err);
	report_ok(lull_why_run(&a->why, a->reader, options, &err), &err);
}

static void ask(struct answer *a, const char *name, bool is_fixed,
		const struct lull_why_options *options)
{
	char path[256];

	snprintf(path, sizeof(path), FOLDER "%s%s.lull", name, is_fixed ? "-fixed" : "");
	ask_file(a, path, options);
}

static void forget(struct answer *a)
{
	lull_why_release(&a->why);
	lull_reader_close(a->reader);
}

static const char *first_of(const struct answer *a)
{
	const struct lull_finding *f = lull_why_first(&a->why);

	return f ? lull_causes[f->cause]->id : "cannot tell";
}

/* Every nanosecond once: parts of the window, costs, and costs of each step. */
static void check_sums(const struct answer *a)
{
	const struct lull_subject *s = a->why.lead;
	u64 parts = 0, costs = 0, steps = 0, waste;

	for (int i = 0; i < LULL_N_SPLITS; i++)
		parts += s->split_ns[i];
	for (int i = 0; i < LULL_SUBJECT_CAUSES; i++)
		costs += s->cost_ns[i];
	for (size_t i = 0; i < (size_t)lull_why_n_steps(&a->why) * LULL_SUBJECT_CAUSES; i++)
		steps += s->step_cost_ns[i];
	waste = s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE];
	assert_int_equal(parts, s->window_ns);
	assert_int_equal(costs, waste);
	assert_int_equal(steps, waste);
}

static void check_labels(u32 without)
{
	struct lull_why_options options = { .without = without };

	for (size_t i = 0; i < LULL_COUNT_OF(loops); i += test_stride(4)) {
		struct answer a;

		ask(&a, loops[i].name, false, &options);
		if (strcmp(first_of(&a), loops[i].label) != 0)
			fail_msg("%s: %s instead of %s; %s", loops[i].name, first_of(&a),
				 loops[i].label, a.why.cannot);
		check_sums(&a);
		forget(&a);
	}
}

static void every_label_is_the_first_cause(void **state)
{
	(void)state;
	check_labels(0);
}

static void every_label_is_found_without_ranges(void **state)
{
	(void)state;
	check_labels(LULL_WITHOUT_RANGES | LULL_WITHOUT_STEPS);
}

static void every_label_is_found_from_calls_and_work_alone(void **state)
{
	(void)state;
	check_labels(LULL_WITHOUT_RANGES | LULL_WITHOUT_STEPS | LULL_WITHOUT_OPS);
}

static void fixed_loops_do_not_keep_their_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(loops); i += test_stride(4)) {
		struct answer a;

		if (loops[i].fixed_ms == 0)
			continue;
		ask(&a, loops[i].name, true, NULL);
		check_sums(&a);
		if (!loops[i].stays && !strcmp(first_of(&a), loops[i].label))
			fail_msg("%s-fixed still has %s", loops[i].name, loops[i].label);
		forget(&a);
	}
}

static void the_unchanged_step_is_replayed_within_3_percent(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * LULL_COUNT_OF(loops); i += test_stride(4)) {
		const struct planted *loop = &loops[i / 2];
		struct answer a;

		if (i % 2 && loop->fixed_ms == 0)
			continue;
		ask(&a, loop->name, i % 2, NULL);
		if (fabs(a.why.replay.error) > 0.03)
			fail_msg("%s: replay is off by %.1f %%", loop->name,
				 a.why.replay.error * 100);
		assert_string_equal(a.why.no_prediction, "");
		forget(&a);
	}
}

static int by_value(const void *a, const void *b)
{
	const f64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * The step that is predicted. The fixed loops that load were measured with 8 workers, which is
 * asked for: how many it takes to keep up is another question.
 */
static f64 predicted_ns(const struct answer *a)
{
	const struct lull_finding *f = lull_why_first(&a->why);
	struct lull_prediction p = f->prediction;
	struct lull_err err;

	assert_true(p.is_known);
	assert_true(p.low_ns <= p.step_ns);
	assert_true(p.step_ns <= p.high_ns);
	if (!strcmp(lull_causes[f->cause]->id, "input-pipeline")) {
		a->why.lead->n_cpus = 8 + 1;
		report_ok(lull_why_ask(&a->why, "input-pipeline", &p, &err), &err);
	}
	return p.step_ns;
}

/* Errors of the predictions against the fixed loop; returns the worst, fills the median. */
static f64 errors(bool is_calibrated, const char *but, f64 *median)
{
	f64 all[LULL_COUNT_OF(loops)];
	size_t n = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(loops); i += test_stride(4)) {
		struct lull_why_options options = { .without = 0 };
		struct answer a;

		if (loops[i].fixed_ms == 0 || !strcmp(loops[i].label, "gpu-bound") ||
		    !strcmp(loops[i].name, but))
			continue;
		if (is_calibrated)
			options.unrecorded_ns = (u64)(loops[i].step_ms * 1e6);
		ask(&a, loops[i].name, false, &options);
		assert_string_equal(first_of(&a), loops[i].label);
		all[n++] = fabs(predicted_ns(&a) / 1e6 / loops[i].fixed_ms - 1);
		forget(&a);
	}
	qsort(all, n, sizeof(*all), by_value);
	*median = all[n / 2];
	return all[n - 1];
}

static void predictions_are_close_when_the_step_time_is_known(void **state)
{
	f64 median, worst = errors(true, "", &median);

	(void)state;
	print_message("given the step time: median %.1f %%, worst %.1f %%\n", median * 100,
		      worst * 100);
	assert_true(median <= 0.15);
	assert_true(worst <= 0.30);
}

/*
 * While alloc_churn was recorded, the host was 1.6 times slower than before and after; nothing in
 * the trace says so, and its prediction is 76 % too high.
 */
static void predictions_are_close_from_the_trace_alone_but_for_one(void **state)
{
	f64 median, worst = errors(false, "alloc_churn", &median);

	(void)state;
	print_message("from the trace alone: median %.1f %%, worst %.1f %%\n", median * 100,
		      worst * 100);
	assert_true(median <= 0.15);
	assert_true(worst <= 0.30);
}

/* ---- our own recordings ---- */

#define NATIVE "test/data/planted-native/"

/*
 * Sixteen steps each, recorded by lull on an H200: the step of the fixed loop, as the program
 * itself measured it under lull. That of dataloader_cpu was measured over 200 steps without lull:
 * sixteen of them come from a queue that was filled before. d2h_logging still logs in the first of
 * the sixteen, which is left out here as it is in the answer.
 */
static const struct planted own[] = {
	{ "alloc_churn", "allocator", 6.986, 4.705, false },
	{ "compute_bound", "gpu-bound", 11.502, 0, true },
	{ "d2h_logging", "host-sync", 26.577, 4.171, false },
	{ "dataloader_cpu", "input-pipeline", 34.349, 5.834, false },
	{ "exposed_copy", "exposed-copy", 10.132, 5.550, false },
	{ "gil_thread", "gil", 17.980, 7.593, false },
	{ "launch_bound", "launch-bound", 18.199, 4.244, false },
	{ "optimizer_loop", "launch-bound", 40.336, 16.028, true }, /* 2 ms of work in 16 */
	{ "pageable_copy", "pageable-copy", 32.164, 5.223, false },
	{ "sync_item", "host-sync", 13.233, 9.407, false },
	{ "unfused", "unfused-elementwise", 8.464, 0.546, false },
};

static void our_own_recordings_say_the_same_with_and_without_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * LULL_COUNT_OF(own); i += test_stride(4)) {
		u32 without = i % 2 ? LULL_WITHOUT_RANGES | LULL_WITHOUT_STEPS : 0;
		struct lull_why_options options = { .without = without };
		const struct planted *loop = &own[i / 2];
		const struct lull_finding *f;
		struct answer a;
		char path[256];

		snprintf(path, sizeof(path), NATIVE "%s.lull", loop->name);
		ask_file(&a, path, &options);
		check_sums(&a);
		if (strcmp(first_of(&a), loop->label) != 0)
			fail_msg("%s: %s instead of %s; %s", loop->name, first_of(&a), loop->label,
				 a.why.cannot);
		assert_true(fabs(a.why.replay.error) <= 0.03);
		/* They are programs of PyTorch: its words are used. */
		f = lull_why_first(&a.why);
		if (lull_causes[f->cause]->fix_torch && !lull_causes[f->cause]->suit)
			assert_memory_equal(f->advice.fix, lull_causes[f->cause]->fix_torch,
					    strcspn(lull_causes[f->cause]->fix_torch, "`"));
		forget(&a);
	}
}

static void our_own_recordings_of_fixed_loops_do_not_keep_the_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * LULL_COUNT_OF(own); i += test_stride(4)) {
		u32 without = i % 2 ? LULL_WITHOUT_RANGES | LULL_WITHOUT_STEPS : 0;
		struct lull_why_options options = { .without = without };
		const struct planted *loop = &own[i / 2];
		struct answer a;
		char path[256];

		if (loop->stays)
			continue;
		snprintf(path, sizeof(path), NATIVE "%s-fixed.lull", loop->name);
		ask_file(&a, path, &options);
		check_sums(&a);
		assert_string_not_equal(first_of(&a), loop->label);
		assert_true(fabs(a.why.replay.error) <= 0.03);
		forget(&a);
	}
}

/*
 * How far the prediction is off. Where nobody marked the steps, what repeats may be a part of one:
 * the speed-up counts.
 */
static f64 error_of(const struct planted *loop, u32 without)
{
	struct lull_why_options options = { .without = without };
	struct answer a;
	char path[256];
	f64 part, error;

	snprintf(path, sizeof(path), NATIVE "%s.lull", loop->name);
	ask_file(&a, path, &options);
	part = a.why.step_ns / 1e6 < loop->step_ms / 2 ? a.why.step_ns / 1e6 / loop->step_ms : 1;
	error = fabs(predicted_ns(&a) / 1e6 / (loop->fixed_ms * part) - 1);
	print_message("%s, recorded by lull%s: %.1f %% off\n", loop->name,
		      without ? ", ranges stripped" : "", error * 100);
	forget(&a);
	return error;
}

static void check_own_predictions(u32 without)
{
	f64 all[LULL_COUNT_OF(own)];
	size_t n = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(own); i += test_stride(4)) {
		if (own[i].fixed_ms != 0)
			all[n++] = error_of(&own[i], without);
	}
	qsort(all, n, sizeof(*all), by_value);
	assert_true(all[n / 2] <= 0.15);
	assert_true(all[n - 1] <= 0.30);
}

static void our_own_recordings_predict_without_calibration(void **state)
{
	(void)state;
	check_own_predictions(0);
	check_own_predictions(LULL_WITHOUT_RANGES | LULL_WITHOUT_STEPS);
}

/* ---- properties of the replay ---- */

static void a_fix_never_makes_a_step_longer_nor_shorter_than_its_kernels(void **state)
{
	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(loops); i += test_stride(4)) {
		const struct lull_finding *f;
		struct answer a;

		ask(&a, loops[i].name, false, NULL);
		f = a.why.findings.at;
		for (size_t k = 0; k < a.why.findings.n; k++) {
			if (!f[k].prediction.is_known)
				continue;
			assert_true(f[k].prediction.step_ns <= a.why.replay.free_ns * 1.001);
			if (lull_causes[f[k].cause]->kind != LULL_CAUSE_BUSY &&
			    f[k].cause != LULL_CAUSE_IX_host_sync &&
			    f[k].cause != LULL_CAUSE_IX_launch_bound)
				assert_true(f[k].prediction.step_ns >=
					    a.why.compute_share * a.why.step_ns * 0.99);
		}
		forget(&a);
	}
}

static void a_fix_leaves_a_step_alone_that_lacks_its_cause(void **state)
{
	struct lull_prediction p;
	struct lull_err err;
	struct answer a;

	(void)state;
	ask(&a, "compute_bound", false, NULL);
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		const struct lull_cause *cause = lull_causes[i];

		if (!cause->apply || cause->kind == LULL_CAUSE_BUSY ||
		    cause->kind == LULL_CAUSE_RESIDUE)
			continue;
		report_ok(lull_why_ask(&a.why, cause->id, &p, &err), &err);
		if (fabs(p.step_ns / a.why.replay.free_ns - 1) > 0.001)
			fail_msg("%s changes a step without it", cause->id);
	}
	forget(&a);
}

static void half_a_cause_brings_less_than_all_of_it(void **state)
{
	struct lull_prediction half, none, all;
	struct lull_err err;
	struct answer a;

	(void)state;
	ask(&a, "dataloader_cpu", false, NULL);
	report_ok(lull_why_ask(&a.why, "input-pipeline", &none, &err), &err);
	report_ok(lull_why_ask(&a.why, "input-pipeline=0.5", &half, &err), &err);
	report_ok(lull_why_ask(&a.why, "input-pipeline=1", &all, &err), &err);
	assert_true(none.step_ns < half.step_ns && half.step_ns < all.step_ns);
	forget(&a);
	ask(&a, "compute_bound", false, NULL);
	report_ok(lull_why_ask(&a.why, "kernel:nvjet=0.5", &half, &err), &err);
	assert_true(half.step_ns < 0.9 * a.why.step_ns);
	assert_int_equal(lull_why_ask(&a.why, "kernel:nothing=0.5", &half, &err), LULL_E_NOT_FOUND);
	assert_int_equal(lull_why_ask(&a.why, "input-pipelin", &half, &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "did you mean input-pipeline"));
	assert_int_equal(lull_why_ask(&a.why, "input-pipeline=x", &half, &err), LULL_E_USAGE);
	forget(&a);
}

/* ---- lost events ---- */

static u32 next_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Copy a report, but lose `percent` of its rows of work and calls. */
static void copy_losing(const char *from, const char *to, u32 percent, u32 seed)
{
	struct lull_file_info info;
	struct lull_reader *r;
	struct lull_writer *w;
	struct lull_err err;
	const char *text;

	report_ok(lull_reader_open(&r, from, &err), &err);
	info = *lull_reader_info(r);
	report_ok(lull_writer_open(&w, to, &info, &err), &err);
	for (u32 id = 1; (text = lull_reader_string(r, id, NULL)) && strcmp(text, "?") != 0; id++)
		assert_int_equal(lull_writer_string(w, text, strlen(text)), id);
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		const void *cols[64];
		struct lull_cursor c;
		u8 row[512];
		size_t n;

		if (t->kind == LULL_KIND_DIM) {
			const u8 *rows = lull_reader_dim(r, (enum lull_table)t->id, &n);

			for (size_t i = 0; i < n; i++)
				lull_writer_add_dim(w, (enum lull_table)t->id,
						    rows + i * t->row_bytes);
			continue;
		}
		lull_cursor_init(&c, r, (enum lull_table)t->id, 0, UINT64_MAX);
		while ((n = lull_cursor_next(&c, cols)) > 0) {
			for (size_t i = 0; i < n; i++) {
				if (next_random(&seed) % 100 < percent)
					continue;
				for (u16 k = 0; k < t->n_cols; k++)
					memcpy(row + t->cols[k].row_off,
					       (const u8 *)cols[k] + i * t->cols[k].size_bytes,
					       t->cols[k].size_bytes);
				lull_writer_add(w, (enum lull_table)t->id, row);
			}
		}
		lull_cursor_release(&c);
	}
	report_ok(lull_writer_seal(w, &err), &err);
	lull_reader_close(r);
}

/* Right, or not sure: never sure of something else. */
static void lost_events_never_make_a_sure_answer_wrong(void **state)
{
	const struct report_dir *d = *state;
	u32 n_right = 0, n = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(loops); i += test_stride(4)) {
		for (u32 percent = 1; percent <= 25; percent *= 5) {
			const struct lull_finding *f;
			struct answer a;
			char path[256];

			if (!strcmp(loops[i].name, "dataloader_cpu"))
				continue; /* as the others, only slower */
			snprintf(path, sizeof(path), FOLDER "%s.lull", loops[i].name);
			copy_losing(path, d->file, percent, (u32)i * 7 + percent);
			ask_file(&a, d->file, NULL);
			check_sums(&a);
			f = lull_why_first(&a.why);
			n++;
			n_right += !strcmp(first_of(&a), loops[i].label);
			if (f && strcmp(first_of(&a), loops[i].label) != 0 && f->confidence >= 0.5)
				fail_msg("%s less %u %%: %s, confidence %.2f", loops[i].name,
					 percent, first_of(&a), f->confidence);
			forget(&a);
			unlink(d->file);
		}
	}
	print_message("with 1, 5 and 25 %% of the events lost: %u of %u right\n", n_right, n);
	assert_true(3 * n_right >= 2 * n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_label_is_the_first_cause),
		cmocka_unit_test(every_label_is_found_without_ranges),
		cmocka_unit_test(every_label_is_found_from_calls_and_work_alone),
		cmocka_unit_test(fixed_loops_do_not_keep_their_cause),
		cmocka_unit_test(the_unchanged_step_is_replayed_within_3_percent),
		cmocka_unit_test(predictions_are_close_when_the_step_time_is_known),
		cmocka_unit_test(predictions_are_close_from_the_trace_alone_but_for_one),
		cmocka_unit_test(our_own_recordings_say_the_same_with_and_without_ranges),
		cmocka_unit_test(our_own_recordings_of_fixed_loops_do_not_keep_the_cause),
		cmocka_unit_test(our_own_recordings_predict_without_calibration),
		cmocka_unit_test(a_fix_never_makes_a_step_longer_nor_shorter_than_its_kernels),
		cmocka_unit_test(a_fix_leaves_a_step_alone_that_lacks_its_cause),
		cmocka_unit_test(half_a_cause_brings_less_than_all_of_it),
		cmocka_unit_test(lost_events_never_make_a_sure_answer_wrong),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
