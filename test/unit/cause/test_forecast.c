/*
 * What holds for every prediction, on all recordings of test/data and on random ones: with nothing
 * gone the step is what it is; more gone is never slower; kernels that stay take their time; no fix
 * brings more than the time that it takes away.
 */
#include "unit/report.h"

#include <glob.h>
#include <math.h>

#include "base/str.h"
#include "cause/why.h"
#include "cause/why_int.h"
#include "unit/random.h"

static const f64 parts[] = { 0, 0.01, 0.25, 0.5, 0.75, 0.99, 1 };

/* Sums of some thousand delays. */
#define ROUNDING 1e-6

/* Kernels that are left when all of the cause is gone. */
static f64 kernels_ns(const struct lull_why *why, enum lull_cause_ix cause)
{
	struct lull_what_if w;
	f64 ns;

	lull_what_if_init(&w, &why->replay, 0);
	lull_causes[cause]->apply(&w);
	ns = why->compute_share * why->step_ns - lull_what_if_fewer_ns(&w);
	lull_what_if_release(&w);
	return fmin(ns, why->replay.free_ns);
}

static void check_cause(const struct lull_why *why, enum lull_cause_ix cause, const char *name)
{
	const char *id = lull_causes[cause]->id;
	f64 free_ns = why->replay.free_ns, last_ns = free_ns, step_ns = 0, before_ns = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(parts); i++) {
		struct lull_why_change change = { cause, parts[i] };
		struct lull_prediction p = lull_why_predict(why, &change, 1);

		if (p.step_ns > last_ns * (1 + ROUNDING))
			fail_msg("%s: %s: more of it gone is slower", name, id);
		if (!i && (p.step_ns != free_ns || p.ratio != 1))
			fail_msg("%s: %s: %.0f ns instead of %.0f with nothing gone", name, id,
				 p.step_ns, free_ns);
		if (p.low_ns > p.step_ns || p.high_ns < p.step_ns)
			fail_msg("%s: %s: the step is not in its range", name, id);
		last_ns = p.step_ns;
		before_ns = step_ns;
		step_ns = p.step_ns;
	}
	/* One percent more brings about one percent more. */
	if (before_ns - step_ns > 0.02 * (free_ns - step_ns) + ROUNDING * free_ns)
		fail_msg("%s: %s: a leap at the end", name, id);
	if (step_ns < kernels_ns(why, cause) * (1 - ROUNDING))
		fail_msg("%s: %s: %.0f ns, less than the kernels that stay", name, id, step_ns);
}

/* Two fixes bring no less than one of them, and no more than the step. */
static void check_pair(const struct lull_why *why, enum lull_cause_ix a, enum lull_cause_ix b,
		       const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(parts); i += 2) {
		struct lull_why_change changes[2] = { { a, parts[i] }, { b, 1 - parts[i] } };
		struct lull_prediction both = lull_why_predict(why, changes, 2);
		struct lull_prediction first = lull_why_predict(why, changes, 1);

		if (both.step_ns > first.step_ns * (1 + ROUNDING) || both.step_ns <= 0)
			fail_msg("%s: %s and %s bring less than one of them", name,
				 lull_causes[a]->id, lull_causes[b]->id);
	}
}

static void check_all(struct lull_reader *r, const char *name, bool has_pairs, u32 *n)
{
	enum lull_cause_ix last = LULL_N_CAUSES;
	const struct lull_finding *f;
	struct lull_err err;
	struct lull_why why;

	report_ok(lull_why_run(&why, r, NULL, &err), &err);
	for (int i = 0; why.has_replay && i < LULL_N_CAUSES; i++) {
		/* Of a recording, those that have something in it: the others change nothing. */
		if (!lull_causes[i]->apply || (!has_pairs && !why.lead->cost_ns[i]))
			continue;
		check_cause(&why, (enum lull_cause_ix)i, name);
		if (has_pairs && last != LULL_N_CAUSES && why.lead->cost_ns[i])
			check_pair(&why, last, (enum lull_cause_ix)i, name);
		last = why.lead->cost_ns[i] ? (enum lull_cause_ix)i : last;
		++*n;
	}
	f = why.findings.at;
	for (size_t i = 0; i < why.findings.n; i++)
		assert_true(f[i].worth_ns <= f[i].cost_ns * (1 + ROUNDING));
	lull_why_release(&why);
}

static void predictions_of_recordings_are_monotone_and_bounded(void **state)
{
	static const char *const areas[] = { "test/data/planted/*.lull",
					     "test/data/planted-native/*.lull",
					     "test/data/torch/*.lull", "test/data/unseen/*.lull" };
	u32 n = 0;

	(void)state;
	for (size_t a = 0; a < LULL_COUNT_OF(areas); a++) {
		glob_t found;

		assert_int_equal(glob(areas[a], 0, NULL, &found), 0);
		for (size_t i = 0; i < found.gl_pathc; i += test_stride(8)) {
			struct lull_reader *r;
			struct lull_err err;

			report_ok(lull_reader_open(&r, found.gl_pathv[i], &err), &err);
			/* Some hold no work of a device. */
			if (lull_reader_stats(r, LULL_TABLE_kernel).n_rows)
				check_all(r, found.gl_pathv[i], false, &n);
			lull_reader_close(r);
		}
		globfree(&found);
	}
	assert_true(n >= 100 / test_stride(8));
}

/* ---- random programs ---- */

struct program {
	struct test_random random;
	struct lull_str text;
	u64 at_us;	  /* of the thread */
	u64 device_us[2]; /* ends of the streams */
	u32 n_calls;
};

static u64 up_to(struct program *p, u64 most)
{
	return 1 + test_random_bits(&p->random) % most;
}

static void call(struct program *p, const char *name, u64 dur_us)
{
	lull_str_addf(&p->text, "cuda_call start=%lluus dur=%lluus lane=1 name=%s correlation=%u\n",
		      (unsigned long long)p->at_us, (unsigned long long)dur_us, name, ++p->n_calls);
	p->at_us += dur_us;
}

/* Work of the last call, on the stream; when it ends. */
static u64 work(struct program *p, u32 stream, const char *what, u64 called_us, u64 dur_us)
{
	u64 *end_us = &p->device_us[stream], begin_us = called_us + 6;

	begin_us = begin_us > *end_us + 1 ? begin_us : *end_us + 1;
	*end_us = begin_us + dur_us;
	lull_str_addf(&p->text, "%s start=%lluus dur=%lluus lane=%u correlation=%u process=1\n",
		      what, (unsigned long long)begin_us, (unsigned long long)dur_us, 2 + stream,
		      p->n_calls);
	return *end_us;
}

static void wait_for(struct program *p, const char *name, u64 until_us)
{
	call(p, name, (until_us > p->at_us ? until_us - p->at_us : 0) + up_to(p, 8));
}

/* One thing that a program may do between two launches. */
static void do_something(struct program *p, u32 what)
{
	u64 called_us = p->at_us;

	switch (what % 6) {
	case 0:
		wait_for(p, "cudaStreamSynchronize", p->device_us[0]);
		break;
	case 1: /* to the device, from pageable or pinned memory */
		call(p, "cudaMemcpyAsync", 6);
		work(p, up_to(p, 2) - 1,
		     up_to(p, 2) == 1
			     ? "memcpy size_bytes=900000 copy_kind=1 src_kind=1 dst_kind=3"
			     : "memcpy size_bytes=900000 copy_kind=1 src_kind=2 dst_kind=3",
		     called_us, up_to(p, 300));
		break;
	case 2: /* to the host, and somebody wants it */
		call(p, "cudaMemcpyAsync", 6);
		work(p, 0, "memcpy size_bytes=4 copy_kind=2 src_kind=3 dst_kind=2", called_us, 2);
		wait_for(p, "cudaStreamSynchronize", p->device_us[0]);
		break;
	case 3:
		wait_for(p, up_to(p, 2) == 1 ? "cudaMalloc" : "cudaFree", p->device_us[0]);
		break;
	case 4: {
		u64 dur_us = up_to(p, 2000);

		lull_str_addf(&p->text, "range start=%lluus dur=%lluus lane=1 label=%llu\n",
			      (unsigned long long)p->at_us, (unsigned long long)dur_us,
			      (unsigned long long)up_to(p, 3));
		p->at_us += dur_us;
		break;
	}
	default:
		p->at_us += up_to(p, 600);
	}
}

static void write_program(struct program *p, u64 seed)
{
	u32 plan[8], n_plan, n_kernels, dur_us;

	*p = (struct program){ .random = { seed * 77 + 1 }, .text = LULL_STR_INIT, .at_us = 1000 };
	n_plan = (u32)up_to(p, LULL_COUNT_OF(plan)) - 1;
	n_kernels = (u32)up_to(p, 12);
	dur_us = (u32)up_to(p, 200);
	for (u32 i = 0; i < n_plan; i++)
		plan[i] = (u32)up_to(p, 1000);
	lull_str_puts(&p->text,
		      "process pid=10 has_agent=1\n"
		      "device process=1 device_id=0 name=a\n"
		      "lane kind=1 process=1 tid=10 name=main\n"
		      "lane kind=2 process=1 device=1 stream_id=7\n"
		      "lane kind=2 process=1 device=1 stream_id=8\n"
		      "launch name=gemm\nlaunch name=elementwise\n"
		      "label name=data_load\nlabel name=checkpoint\nlabel name=metrics\n");
	for (u32 step = 0; step < 7; step++) {
		u64 begin_us = p->at_us;

		for (u32 i = 0; i < n_kernels; i++) {
			u64 called_us = p->at_us;

			call(p, "cudaLaunchKernel", 4 + up_to(p, 4));
			work(p, i % 5 == 4, i % 2 ? "kernel launch=1" : "kernel launch=2",
			     called_us, dur_us);
			p->at_us += up_to(p, 20);
			for (u32 k = i; k < n_plan; k += n_kernels)
				do_something(p, plan[k]);
		}
		p->at_us += 10;
		lull_str_addf(&p->text, "step start=%lluus dur=%lluus lane=1 number=%u\n",
			      (unsigned long long)begin_us,
			      (unsigned long long)(p->at_us - begin_us), step);
	}
}

static void predictions_of_random_programs_are_monotone_and_bounded(void **state)
{
	const struct report_dir *d = *state;
	u32 n = 0;

	for (u64 seed = 1; seed <= 150; seed += test_stride(10)) {
		struct lull_reader *r;
		struct program p;
		struct lull_err err;
		char name[32];

		write_program(&p, seed);
		snprintf(name, sizeof(name), "random program %llu", (unsigned long long)seed);
		report_ok(lull_text_write(lull_str_text(&p.text), d->file, &err), &err);
		report_ok(lull_reader_open(&r, d->file, &err), &err);
		check_all(r, name, true, &n);
		lull_reader_close(r);
		lull_str_release(&p.text);
	}
	assert_true(n >= 150 / test_stride(10) * 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_of_recordings_are_monotone_and_bounded),
		cmocka_unit_test(predictions_of_random_programs_are_monotone_and_bounded),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
