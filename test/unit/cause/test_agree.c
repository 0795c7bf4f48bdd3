/*
 * What `lull why` says of a report never contradicts what the other commands say of the same file:
 * no thread lacks a CPU while it runs, waits for Python's lock longer than was recorded, or waits
 * for others while it is on a CPU; and costs add up to the time without compute.
 *
 * LULL_TEST_REPORTS=GLOB looks at other reports instead.
 */
#include "unit/report.h"

#include <glob.h>

#include "cause/why.h"
#include "model/lane_time.h"

/* Records of a wait begin and end a little earlier or later than those of the scheduler. */
#define SLACK	 0.02
#define SLACK_NS 1000000u

struct file {
	const char *path;
	struct lull_reader *reader;
	struct lull_why why;
	struct lull_lane_time *times; /* of the steady steps, by lane */
	struct lull_span window;
};

static void open_file(struct file *f, const char *path)
{
	const struct lull_subject *s;
	struct lull_err err;
	size_t n;

	*f = (struct file){ .path = path };
	report_ok(lull_reader_open(&f->reader, path, &err), &err);
	report_ok(lull_why_run(&f->why, f->reader, NULL, &err), &err);
	s = f->why.lead;
	if (lull_rounds_n_steady(&s->rounds)) {
		f->window.from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
		f->window.to_ns = lull_round_end_ns(&s->rounds, (u32)s->rounds.all.n - 1);
	}
	lull_reader_dim(f->reader, LULL_TABLE_lane, &n);
	f->times = calloc(n + 1, sizeof(*f->times));
	assert_non_null(f->times);
	lull_lane_time_add(f->reader, f->window, f->times);
}

static void close_file(struct file *f)
{
	free(f->times);
	lull_why_release(&f->why);
	lull_reader_close(f->reader);
}

/* Time of the launching threads in pauses of this kind. */
static u64 paused_ns(const struct file *f, u8 kind)
{
	const struct lull_host *h = &f->why.lead->host;
	const struct lull_host_pause *at = h->pauses.at;
	u64 sum = 0;

	for (size_t i = 0; i < h->pauses.n; i++) {
		struct lull_span part = { at[i].begin_ns, at[i].end_ns };

		part = lull_span_cut(part, f->window.from_ns, f->window.to_ns);
		sum += at[i].kind == kind ? part.to_ns - part.from_ns : 0;
	}
	return sum;
}

/* Time of the launching threads off a CPU, by the report of threads. */
static u64 off_cpu_ns(const struct file *f)
{
	const struct lull_chain *c = &f->why.lead->chain;
	size_t n_lanes;
	u64 sum = 0;

	lull_reader_dim(f->reader, LULL_TABLE_lane, &n_lanes);
	for (size_t i = 1; i <= n_lanes; i++) {
		if (c->chain_of_lane[i])
			sum += f->window.to_ns - f->window.from_ns -
			       f->times[i].ns[LULL_ACTIVITY_RUNNING];
	}
	return sum;
}

static u64 cost_ns(const struct file *f, enum lull_cause_ix cause)
{
	return f->why.lead->cost_ns[cause];
}

static void at_most(const struct file *f, const char *what, u64 ns, u64 limit_ns)
{
	if ((f64)ns > (f64)limit_ns * (1 + SLACK) + SLACK_NS)
		fail_msg("%s: %s takes %.3f ms, but only %.3f ms were recorded", f->path, what,
			 (f64)ns / 1e6, (f64)limit_ns / 1e6);
}

static void check_file(const char *path)
{
	const struct lull_subject *s;
	u64 sum = 0, waste;
	struct file f;

	open_file(&f, path);
	s = f.why.lead;
	for (int i = 0; i < LULL_N_CAUSES; i++)
		sum += s->cost_ns[i];
	waste = s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE];
	assert_int_equal(sum, waste);
	if (s->host.has_sched) {
		u64 off_ns = off_cpu_ns(&f);

		at_most(&f, "os-scheduling", cost_ns(&f, LULL_CAUSE_IX_os_scheduling),
			paused_ns(&f, LULL_HOST_PREEMPTED));
		at_most(&f, "os-scheduling", cost_ns(&f, LULL_CAUSE_IX_os_scheduling), off_ns);
		at_most(&f, "waiting",
			cost_ns(&f, LULL_CAUSE_IX_lock_wait) +
				cost_ns(&f, LULL_CAUSE_IX_no_demand) +
				cost_ns(&f, LULL_CAUSE_IX_os_scheduling),
			off_ns);
	}
	if (s->host.has_gil)
		at_most(&f, "gil", cost_ns(&f, LULL_CAUSE_IX_gil), paused_ns(&f, LULL_HOST_GIL));
	close_file(&f);
}

static void check_all(const char *pattern, size_t n_least)
{
	glob_t found;

	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= n_least);
	for (size_t i = 0; i < found.gl_pathc; i += test_stride(27))
		check_file(found.gl_pathv[i]);
	globfree(&found);
}

static void causes_agree_with_the_time_of_threads(void **state)
{
	const char *given = getenv("LULL_TEST_REPORTS");

	(void)state;
	if (given) {
		check_all(given, 1);
		return;
	}
	check_all("test/data/planted/*.lull", 20);
	check_all("test/data/planted-native/*.lull", 20);
	check_all("test/data/unseen/*.lull", 4);
	check_all("test/data/torch/*.lull", 3);
	check_all("test/data/ranks/*/*.lull", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_agree_with_the_time_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
