#include "model/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/busy.h"
#include "model/limits.h"
#include "model/step_found.h"
#include "model/words.h"
#include "model/work.h"

/* The steps of one thread, which follow each other. */
struct loop {
	u32 process;
	struct lull_step *steps;
	size_t n;
};

static void collect(struct lull_vec *steps, struct lull_reader *r, struct lull_span window)
{
	struct lull_step_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_step, window.from_ns, window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (!lull_span_holds(window, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			*(struct lull_step *)lull_vec_push(steps) = (struct lull_step){
				.start_ns = cols.start_ns[i],
				.dur_ns = cols.dur_ns[i],
				.number = cols.number[i],
				.lane = cols.lane[i],
				.source = cols.source[i] == LULL_STEP_FOUND ? LULL_ROUNDS_HOOK
									    : LULL_ROUNDS_STEP,
			};
		}
	}
	lull_cursor_release(&c);
}

static int by_lane(const void *a, const void *b)
{
	const struct lull_step *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void find_loops(struct lull_vec *loops, const struct lull_vec *all, struct lull_reader *r)
{
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	struct lull_step *steps = all->at;
	struct loop *loop = NULL;

	for (size_t i = 0; i < all->n; i++) {
		u32 lane = steps[i].lane;

		if (!loop || lane != loop->steps->lane) {
			loop = lull_vec_push(loops);
			loop->process = lane ? lanes[lane - 1].process : 0;
			loop->steps = &steps[i];
		}
		loop->n++;
	}
}

/* The first step of the loop that ends after at_ns. */
static size_t first_behind(const struct loop *loop, u64 at_ns)
{
	size_t low = 0, high = loop->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loop->steps[middle].start_ns + loop->steps[middle].dur_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_busy(void *ctx, const struct lull_busy_piece *piece)
{
	const struct lull_vec *loops = ctx;
	const struct loop *loop = loops->at;

	for (size_t l = 0; piece->running && l < loops->n; l++, loop++) {
		if (loop->process != piece->track)
			continue;
		for (size_t i = first_behind(loop, piece->span.from_ns);
		     i < loop->n && loop->steps[i].start_ns < piece->span.to_ns; i++) {
			struct lull_step *step = &loop->steps[i];
			struct lull_span part = lull_span_cut(piece->span, step->start_ns,
							      step->start_ns + step->dur_ns);

			step->busy_ns += part.to_ns - part.from_ns;
		}
	}
}

static void count_work(const struct lull_vec *loops, struct lull_reader *r, struct lull_span window)
{
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL | LULL_WORK_WANT_BYTES, window);
	while (lull_work_next(&c, &work)) {
		const struct loop *loop = loops->at;

		for (size_t l = 0; l < loops->n; l++, loop++) {
			size_t i = first_behind(loop, work.start_ns);

			if (loop->process != work.process || i == loop->n ||
			    loop->steps[i].start_ns > work.start_ns)
				continue;
			loop->steps[i].n_launches += !!(work.kind & LULL_WORK_COMPUTE);
			loop->steps[i].size_bytes += work.size_bytes;
		}
	}
	lull_work_end(&c);
}

/* What the devices did in the steps that were collected. */
static void add_work(struct lull_steps *s, struct lull_reader *r, struct lull_span window)
{
	struct lull_step *steps = s->all.at;
	struct lull_vec loops;
	u32 *tracks;

	for (size_t i = 0; i < s->all.n; i++)
		steps[i].busy_ns = steps[i].n_launches = steps[i].size_bytes = 0;
	if (s->all.n)
		lull_sort(s->all.at, s->all.n, sizeof(struct lull_step), by_lane);
	s->has_work = lull_work_count(r, LULL_WORK_ALL) > 0;
	if (!s->has_work)
		return;
	lull_vec_init(&loops, sizeof(struct loop));
	find_loops(&loops, &s->all, r);
	tracks = lull_busy_processes(r);
	lull_busy_run(r, tracks, window, add_busy, &loops);
	count_work(&loops, r, window);
	free(tracks);
	lull_vec_release(&loops);
}

void lull_steps_init(struct lull_steps *s, struct lull_reader *r, struct lull_span window)
{
	*s = (struct lull_steps){ .has_work = false };
	lull_vec_init(&s->all, sizeof(struct lull_step));
	collect(&s->all, r, window);
	add_work(s, r, window);
}

/* Whether the last step of a thread may have run on to the end of the program. */
static bool has_long_last(const struct lull_step *steps, size_t n)
{
	u64 *dur_ns = lull_alloc(n + 1, sizeof(*dur_ns));
	bool is_long = false;

	for (size_t i = 0, end; i < n; i = end) {
		u64 last_ns;

		for (end = i; end < n && steps[end].lane == steps[i].lane; end++)
			dur_ns[end - i] = steps[end].dur_ns;
		last_ns = dur_ns[end - i - 1];
		lull_sort_u64(dur_ns, end - i);
		is_long = is_long || (f64)last_ns > LULL_L(last_long) * (f64)dur_ns[(end - i) / 2];
	}
	free(dur_ns);
	return is_long;
}

/* Ranges named like steps come before the steps of hooks. */
static bool has_step_names(struct lull_reader *r)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	for (size_t i = 0; i < n; i++) {
		if (lull_name_is_step(lull_reader_string(r, labels[i].name, NULL)))
			return true;
	}
	return false;
}

/* How much of their launches the steps hold, less what a few of them have more than the others. */
static u64 n_usual(const struct lull_step *steps, size_t n)
{
	u64 *counts = lull_alloc(n + 1, sizeof(*counts)), most, sum = 0;

	for (size_t i = 0; i < n; i++)
		counts[i] = steps[i].n_launches;
	lull_sort_u64(counts, n);
	most = (u64)(LULL_L(large) * (f64)counts[n / 2]);
	for (size_t i = 0; i < n; i++)
		sum += counts[i] < most ? counts[i] : most;
	free(counts);
	return sum;
}

/*
 * Whether the steps of the table are those that model/rounds.h would choose, as far as can be seen
 * without looking at calls: the program or hooks marked them all, and they hold most of the work.
 */
static bool are_enough(const struct lull_steps *s, struct lull_reader *r, struct lull_span window)
{
	u64 n_all = lull_work_count(r, LULL_WORK_COMPUTE);
	const struct lull_step *steps = s->all.at;
	bool is_whole = !window.from_ns && window.to_ns == LULL_SPAN_ALL.to_ns;

	if (s->all.n < LULL_LN(rounds_least) || has_long_last(steps, s->all.n))
		return false;
	for (size_t i = 0; i < s->all.n; i++) {
		if (steps[i].source != steps->source)
			return false;
	}
	if (steps->source == LULL_ROUNDS_HOOK && has_step_names(r))
		return false;
	/* A window of the recording holds a part of its work only. */
	return !is_whole || (f64)n_usual(steps, s->all.n) >= LULL_L(said_least) * (f64)n_all;
}

/* Leave out the steps that do not lie in the window. */
static void keep(struct lull_vec *steps, struct lull_span window)
{
	struct lull_step *at = steps->at;
	size_t n_kept = 0;

	for (size_t i = 0; i < steps->n; i++) {
		if (lull_span_holds(window, at[i].start_ns, at[i].dur_ns))
			at[n_kept++] = at[i];
	}
	steps->n = n_kept;
}

/* Where the last step ends is known only once all are: the window is applied after that. */
void lull_steps_init_any(struct lull_steps *s, struct lull_reader *r, struct lull_span window)
{
	bool is_whole = !window.from_ns && window.to_ns == LULL_SPAN_ALL.to_ns;

	*s = (struct lull_steps){ .has_work = false };
	lull_vec_init(&s->all, sizeof(struct lull_step));
	collect(&s->all, r, LULL_SPAN_ALL);
	if (is_whole || !lull_work_count(r, LULL_WORK_ALL))
		add_work(s, r, window);
	else if (s->all.n)
		lull_sort(s->all.at, s->all.n, sizeof(struct lull_step), by_lane);
	s->has_work = lull_work_count(r, LULL_WORK_ALL) > 0;
	if (s->has_work && !are_enough(s, r, window)) {
		s->are_found = lull_steps_find(&s->all, r, LULL_SPAN_ALL);
		is_whole = false;
	}
	keep(&s->all, window);
	if (!is_whole)
		add_work(s, r, window);
}

void lull_steps_measure(struct lull_steps *s, struct lull_reader *r)
{
	add_work(s, r, LULL_SPAN_ALL);
}

u32 lull_steps_main_lane(const struct lull_steps *s)
{
	const struct lull_step *steps = s->all.at;
	size_t n_best = 0;
	u32 best = 0;

	for (size_t i = 0, end; i < s->all.n; i = end) {
		for (end = i; end < s->all.n && steps[end].lane == steps[i].lane; end++)
			continue;
		if (end - i > n_best) {
			n_best = end - i;
			best = steps[i].lane;
		}
	}
	return best;
}

void lull_steps_release(struct lull_steps *s)
{
	lull_vec_release(&s->all);
}

/* ---- training ---- */

static bool is_of_training(const char *name)
{
	return strcasestr(name, "backward") || strcasestr(name, "optimizer");
}

static bool have_labels(struct lull_reader *r)
{
	size_t n, n_ops;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	const struct lull_op_label_row *ops = lull_reader_dim(r, LULL_TABLE_op_label, &n_ops);

	for (size_t i = 0; i < n; i++)
		if (is_of_training(lull_reader_string(r, labels[i].name, NULL)))
			return true;
	for (size_t i = 0; i < n_ops; i++)
		if (is_of_training(lull_reader_string(r, ops[i].name, NULL)))
			return true;
	return false;
}

bool lull_trains(struct lull_reader *r)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);

	for (size_t i = 0; i < n; i++) {
		const char *name = lull_reader_string(r, launches[i].name, NULL);

		if (is_of_training(name) || lull_kernel_class_of(name) == LULL_KERNEL_OPTIMIZER)
			return true;
	}
	return have_labels(r);
}
