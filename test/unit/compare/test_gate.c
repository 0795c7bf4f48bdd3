/*
 * How often a gate is wrong on real recordings: steps of an H200, drawn at random for both sides.
 */
#include "unit/unit.h"

#include <dirent.h>
#include <math.h>

#include "base/str.h"
#include "compare/metric.h"
#include "compare/windows.h"
#include "unit/random.h"

#define FOLDER	 "test/data/planted-native"
#define N_TRIALS (1000 / (int)test_stride(20))
#define N_STEPS	 30

/* The values of one metric in all recordings, one vector of f64 for each. */
struct recorded {
	struct lull_vec all;
};

static void read_one(const char *path, const char *spec, struct recorded *to)
{
	const struct lull_metric *metric;
	struct lull_windows windows;
	struct lull_samples samples;
	struct lull_reader *r;
	struct lull_err err;
	const char *arg;

	assert_int_equal(lull_reader_open(&r, path, &err), 0);
	assert_int_equal(lull_metric_find(spec, &metric, &arg, &err), 0);
	lull_windows_init(&windows, r);
	lull_samples_init(&samples);
	assert_true(lull_windows_len(&windows) >= 10);
	/* Memory that is allocated before the recording, and kernels of graphs, are not in it. */
	if (lull_metric_sample(metric, arg, r, &windows, &samples, &err) == 0 &&
	    *(const f64 *)samples.values.at > 0)
		*(struct lull_vec *)lull_vec_push(&to->all) = samples.values;
	else
		lull_vec_release(&samples.values);
	lull_vec_release(&samples.runs);
	lull_windows_release(&windows);
	lull_reader_close(r);
}

static void read_all(const char *spec, struct recorded *to)
{
	struct dirent **entries;
	int n = scandir(FOLDER, &entries, NULL, alphasort); /* the same ones everywhere */
	const size_t most = 20 / test_stride(5) + 1;

	assert_true(n > 0);
	lull_vec_init(&to->all, sizeof(struct lull_vec));
	for (int i = 0; i < n; i++) {
		struct lull_str path = LULL_STR_INIT;

		if (strstr(entries[i]->d_name, ".lull") && to->all.n <= most) {
			lull_str_addf(&path, FOLDER "/%s", entries[i]->d_name);
			read_one(lull_str_text(&path), spec, to);
		}
		lull_str_release(&path);
		free(entries[i]);
	}
	free(entries);
	assert_true(to->all.n >= 1);
}

static void release(struct recorded *recorded)
{
	struct lull_vec *all = recorded->all.at;

	for (size_t i = 0; i < recorded->all.n; i++)
		lull_vec_release(&all[i]);
	lull_vec_release(&recorded->all);
}

/* Standard deviation over mean. */
static f64 variation(const struct lull_vec *values)
{
	const f64 *at = values->at;
	f64 mean = 0, squares = 0;

	for (size_t i = 0; i < values->n; i++)
		mean += at[i] / (f64)values->n;
	for (size_t i = 0; i < values->n; i++)
		squares += (at[i] - mean) * (at[i] - mean) / (f64)values->n;
	return mean > 0 ? sqrt(squares) / mean : 0;
}

static void draw(struct lull_samples *to, const struct lull_vec *values, f64 factor,
		 struct test_random *random)
{
	const f64 *at = values->at;

	for (int i = 0; i < N_STEPS; i++)
		lull_samples_add(to, factor * at[test_random_bits(random) % values->n]);
	lull_samples_end_run(to);
}

/* Regressions found in N_TRIALS comparisons of recordings that vary by at most `most`. */
static int count(const struct recorded *recorded, f64 factor, f64 most, u64 seed)
{
	const struct lull_decide_rule rule = { .threshold = 0.05, .alpha = LULL_DECIDE_ALPHA };
	const struct lull_vec *all = recorded->all.at;
	struct test_random random = { seed };
	bool is_one_calm = false;
	int n = 0;

	for (size_t i = 0; i < recorded->all.n; i++)
		is_one_calm |= variation(&all[i]) <= most;
	assert_true(is_one_calm);
	for (int trial = 0; trial < N_TRIALS;) {
		const struct lull_vec *values = &all[test_random_bits(&random) % recorded->all.n];
		struct lull_samples before, after;
		struct lull_decision d;

		if (variation(values) > most)
			continue;
		lull_samples_init(&before);
		lull_samples_init(&after);
		draw(&before, values, 1, &random);
		draw(&after, values, factor, &random);
		lull_decide(&before, &after, &rule, &d);
		n += d.verdict == LULL_REGRESSED;
		trial++;
		lull_samples_release(&before);
		lull_samples_release(&after);
	}
	return n;
}

static void expect_rates(const char *spec)
{
	struct recorded recorded;
	int n_false, n_found;

	read_all(spec, &recorded);
	n_false = count(&recorded, 1, INFINITY, 1);
	n_found = count(&recorded, 1.05, 0.05, 2);
	print_message("%s: %zu recordings, %d false alarms in %d, 5 %% found in %d of %d\n", spec,
		      recorded.all.n, n_false, N_TRIALS, n_found, N_TRIALS);
	assert_in_range(n_false, 0, N_TRIALS * 2 / 100);
	assert_true(n_found >= N_TRIALS * 95 / 100);
	release(&recorded);
}

static void step_times(void **state)
{
	(void)state;
	expect_rates("step_time");
}

static void launches(void **state)
{
	(void)state;
	expect_rates("launches");
}

static void peak_memory(void **state)
{
	(void)state;
	expect_rates("peak_memory");
}

static void time_of_kernels(void **state)
{
	(void)state;
	expect_rates("kernel:*");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_times),
		cmocka_unit_test(launches),
		cmocka_unit_test(peak_memory),
		cmocka_unit_test(time_of_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
