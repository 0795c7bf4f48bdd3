#include "report/duty_windows.h"

#include <math.h>
#include <stdlib.h>

static u64 meta_number(struct lull_reader *r, const char *key)
{
	return strtoull(lull_reader_fact(r, key), NULL, 10);
}

/* A flight recorder has forgotten what was before its first window. */
static void take_row(struct lull_duty_windows *w, const struct lull_window_cols *cols, size_t i)
{
	bool is_first = !w->all.n, is_start = is_first && cols->start_ns[i] == 0;

	*(struct lull_duty_window *)lull_vec_push(&w->all) =
		(struct lull_duty_window){ cols->start_ns[i], cols->dur_ns[i], cols->n_steps[i] };
	w->recorded_ns += cols->dur_ns[i];
	w->n_steps += cols->n_steps[i];
	w->n_all_steps += cols->n_steps[i];
	if (!is_first || is_start)
		w->n_all_steps += cols->n_outside[i];
	if (is_first && !is_start)
		w->elapsed_ns -= cols->real_ns[i] < w->elapsed_ns ? cols->real_ns[i] : 0;
}

bool lull_duty_windows_read(struct lull_duty_windows *w, struct lull_reader *r)
{
	struct lull_window_cols cols;
	struct lull_cursor c;
	size_t n;

	*w = (struct lull_duty_windows){ .elapsed_ns = meta_number(r, "duty.elapsed_ns") };
	lull_vec_init(&w->all, sizeof(struct lull_duty_window));
	lull_cursor_init(&c, r, LULL_TABLE_window, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			take_row(w, &cols, i);
	lull_cursor_release(&c);
	/* Without a step in a window nothing is known of one: the time counts. */
	w->n_all_steps = w->n_steps ? w->n_all_steps + meta_number(r, "duty.tail_steps") : 0;
	if (w->elapsed_ns < w->recorded_ns)
		w->elapsed_ns = w->recorded_ns; /* a file that is not whole has no such fact */
	return w->all.n > 0;
}

void lull_duty_windows_release(struct lull_duty_windows *w)
{
	lull_vec_release(&w->all);
}

size_t lull_duty_windows_find(const struct lull_duty_windows *w, u64 ns)
{
	const struct lull_duty_window *all = w->all.at;
	size_t low = 0, high = w->all.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (all[mid].start_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

/* Student's t for 95 % by degrees of freedom. */
static f64 student(size_t df)
{
	static const f64 few[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262 };

	return df <= LULL_COUNT_OF(few) ? few[df - 1] : 1.96 + 2.5 / (f64)df;
}

/* What a window is measured by. */
static f64 base_of(const struct lull_duty_windows *w, size_t i)
{
	const struct lull_duty_window *one = lull_vec_get(&w->all, i);

	return w->n_all_steps ? (f64)one->n_steps : (f64)one->dur_ns;
}

struct lull_duty_estimate lull_duty_windows_estimate(const struct lull_duty_windows *w,
						     const f64 *sums)
{
	f64 base = w->n_all_steps ? (f64)w->n_steps : (f64)w->recorded_ns;
	f64 whole = w->n_all_steps ? (f64)w->n_all_steps : (f64)w->elapsed_ns;
	struct lull_duty_estimate e = { 0, NAN };
	f64 sum = 0, squares = 0, ratio;
	size_t n = w->all.n;

	for (size_t i = 0; i < n; i++)
		sum += sums[i];
	if (base <= 0)
		return e;
	ratio = sum / base;
	e.value = ratio * whole;
	for (size_t i = 0; i < n; i++) {
		f64 off = sums[i] - ratio * base_of(w, i);

		squares += off * off;
	}
	/* What was recorded is known: only the rest is guessed. */
	if (n >= 2)
		e.error = student(n - 1) * whole / base *
			  sqrt((f64)n / (f64)(n - 1) * squares *
			       (base < whole ? 1 - base / whole : 0));
	return e;
}
