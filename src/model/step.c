#include "model/step.h"

#include <stdlib.h>

#include "base/sort.h"
#include "model/busy.h"
#include "model/step_found.h"
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
	struct lull_vec loops;
	u32 *tracks;

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
	lull_vec_init(&s->all, sizeof(struct lull_step));
	collect(&s->all, r, window);
	add_work(s, r, window);
}

bool lull_steps_are_found(struct lull_reader *r)
{
	return !lull_reader_stats(r, LULL_TABLE_step).n_rows;
}

void lull_steps_init_any(struct lull_steps *s, struct lull_reader *r, struct lull_span window)
{
	lull_vec_init(&s->all, sizeof(struct lull_step));
	if (lull_steps_are_found(r))
		lull_steps_find(&s->all, r, window);
	else
		collect(&s->all, r, window);
	add_work(s, r, window);
}

const char *lull_step_source_name(enum lull_rounds_source source)
{
	static const char *const names[] = {
		[LULL_ROUNDS_NONE] = "",	  [LULL_ROUNDS_STEP] = "program",
		[LULL_ROUNDS_RANGE] = "ranges",	  [LULL_ROUNDS_OPTIMIZER] = "optimizer",
		[LULL_ROUNDS_PERIOD] = "repeats", [LULL_ROUNDS_HOOK] = "torch",
	};

	return names[source];
}

void lull_steps_release(struct lull_steps *s)
{
	lull_vec_release(&s->all);
}
