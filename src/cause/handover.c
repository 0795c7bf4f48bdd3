#include "cause/handover.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cause/thresholds.h"
#include "model/callpath.h"
#include "model/host.h"
#include "model/thread/doing.h"

/* What a stack of Python waits for, of those that hand over. */
enum {
	WAIT_UNKNOWN, /* not looked at yet */
	WAIT_NONE,
	WAIT_GIVE,
	WAIT_TAKE,
	WAIT_POOL,
	WAIT_RESULT,
	WAIT_EVENT, /* an event or a condition of the program's own: a wait that may time out */
	N_WAITS,
};

/* What was seen of a thread. */
struct seen {
	u32 n;	   /* samples */
	u32 n_gil; /* that held the lock */
	u32 n_in[N_WAITS];
	u32 n_timed_out, n_woken; /* waits with a limit */
	u64 ran_ns;
};

struct finder {
	struct lull_reader *reader;
	const struct lull_stack_row *stacks;
	const struct lull_frame_row *frames;
	u8 *waits; /* by stack */
	struct seen *lanes;
	struct lull_span steady;
	bool has_ran;
};

/* Past the class: "Queue.get" of Python 3.11 and later. */
static const char *function_of(const struct finder *f, u32 stack)
{
	const struct lull_frame_row *frame = &f->frames[f->stacks[stack - 1].frame - 1];
	const char *name = lull_reader_string(f->reader, frame->function, NULL);
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static const char *file_of(const struct finder *f, u32 stack)
{
	const struct lull_frame_row *frame = &f->frames[f->stacks[stack - 1].frame - 1];

	return lull_reader_string(f->reader, frame->file, NULL);
}

static bool is_python(const struct finder *f, u32 stack)
{
	u32 frame = f->stacks[stack - 1].frame;

	return frame && f->frames[frame - 1].kind == LULL_FRAME_PYTHON;
}

/* A wait in a function of Python's own library, by what called it. */
static u8 wait_by_caller(const struct finder *f, u32 stack)
{
	while (stack && is_python(f, stack) && strstr(file_of(f, stack), "/threading.py"))
		stack = f->stacks[stack - 1].parent;
	if (!stack || !is_python(f, stack))
		return WAIT_EVENT;
	if (strstr(file_of(f, stack), "/queue.py"))
		return strcmp(function_of(f, stack), "put") ? WAIT_TAKE : WAIT_GIVE;
	return strstr(file_of(f, stack), "/concurrent/futures/") ? WAIT_RESULT : WAIT_EVENT;
}

static u8 wait_of(const struct finder *f, u32 stack)
{
	const char *file, *function;

	if (!stack || !is_python(f, stack))
		return WAIT_NONE;
	file = file_of(f, stack);
	function = function_of(f, stack);
	/* Those of multiprocessing wait for other processes. */
	if (!(lull_doing_python(function, file) & LULL_IN_QUEUE) ||
	    strstr(file, "/multiprocessing/"))
		return WAIT_NONE;
	return strcmp(function, "_worker") ? wait_by_caller(f, stack) : WAIT_POOL;
}

static void count_samples(struct finder *f)
{
	struct lull_pysample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, f->reader, LULL_TABLE_pysample, f->steady.from_ns, f->steady.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct seen *seen = &f->lanes[cols.lane[i]];
			u8 *wait = &f->waits[cols.stack[i]];

			if (cols.start_ns[i] < f->steady.from_ns ||
			    cols.start_ns[i] >= f->steady.to_ns)
				continue;
			if (!*wait)
				*wait = wait_of(f, cols.stack[i]);
			seen->n++;
			if (cols.has_gil[i])
				seen->n_gil++;
			else
				seen->n_in[*wait]++;
		}
	}
	lull_cursor_release(&c);
}

static void count_stays(struct finder *f)
{
	struct lull_sched_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, f->reader, LULL_TABLE_sched, f->steady.from_ns, f->steady.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		f->has_ran = true;
		for (size_t i = 0; i < n; i++) {
			struct lull_span stay = {
				cols.start_ns[i], lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i])
			};

			stay = lull_span_cut(stay, f->steady.from_ns, f->steady.to_ns);
			f->lanes[cols.lane[i]].ran_ns += stay.to_ns - stay.from_ns;
		}
	}
	lull_cursor_release(&c);
}

/* Python waits with a limit in such calls; they return 0 if somebody ended the wait. */
static void count_limits(struct finder *f)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, f->reader, LULL_TABLE_oscall, f->steady.from_ns, f->steady.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct seen *seen = &f->lanes[cols.lane[i]];
			const char *name;

			if (!seen->n_in[WAIT_EVENT])
				continue;
			name = lull_reader_string(f->reader, cols.name[i], NULL);
			if (!strstr(name, "timedwait") && !strstr(name, "clockwait"))
				continue;
			if (cols.ret[i])
				seen->n_timed_out++;
			else
				seen->n_woken++;
		}
	}
	lull_cursor_release(&c);
}

/* In which of these waits the thread was seen often enough. */
static u8 way_of(const struct seen *s)
{
	u32 n_event = s->n_timed_out > s->n_woken ? 0 : s->n_in[WAIT_EVENT];
	u32 n_take = s->n_in[WAIT_TAKE] + s->n_in[WAIT_RESULT] + n_event;

	if (s->n_in[WAIT_GIVE] + s->n_in[WAIT_POOL] + n_take < LULL_T(producer_samples))
		return LULL_HANDOVER_NONE;
	if (s->n_in[WAIT_POOL] >= s->n_in[WAIT_GIVE] + n_take)
		return LULL_HANDOVER_POOL;
	return s->n_in[WAIT_GIVE] >= n_take ? LULL_HANDOVER_GIVES : LULL_HANDOVER_TAKES;
}

/*
 * Whether a launching thread waits for what others make, or until they take what it made. In a pool
 * it waits for its own work.
 */
static bool is_asked(const struct finder *f, const struct lull_chain *c, size_t n_lanes)
{
	u32 n = 0;

	for (size_t i = 1; i <= n_lanes; i++) {
		const struct seen *s = &f->lanes[i];

		if (c->chain_of_lane[i])
			n += s->n_in[WAIT_GIVE] + s->n_in[WAIT_TAKE] + s->n_in[WAIT_RESULT] +
			     (s->n_timed_out > s->n_woken ? 0 : s->n_in[WAIT_EVENT]);
	}
	return n >= LULL_T(producer_samples);
}

/* Whether any thread outside of the chain runs Python. */
static bool has_workers(const struct finder *f, const struct lull_chain *c, size_t n_lanes)
{
	for (size_t i = 1; i <= n_lanes; i++) {
		if (f->lanes[i].n_gil && !c->chain_of_lane[i])
			return true;
	}
	return false;
}

static u64 worked_ns(const struct finder *f, const struct seen *s)
{
	u64 steady_ns = f->steady.to_ns - f->steady.from_ns;

	return f->has_ran ? s->ran_ns : (u64)((f64)steady_ns * s->n_gil / s->n);
}

static void add_up(struct lull_handover *h, const struct finder *f, const struct lull_chain *c,
		   u32 process)
{
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(f->reader, LULL_TABLE_lane, &n_lanes);
	bool asked = is_asked(f, c, n_lanes);
	u64 most_ns = 0;

	for (u32 i = 1; i <= n_lanes; i++) {
		const struct seen *s = &f->lanes[i];
		u8 way;

		if (lanes[i - 1].process != process || c->chain_of_lane[i] || !s->n_gil)
			continue;
		way = way_of(s);
		if (way == LULL_HANDOVER_NONE && asked)
			way = LULL_HANDOVER_ASKED;
		if (way == LULL_HANDOVER_NONE) {
			h->other_ns += worked_ns(f, s);
			continue;
		}
		h->shared_ns += worked_ns(f, s);
		h->n_lanes++;
		if (!h->lane || worked_ns(f, s) > most_ns) {
			most_ns = worked_ns(f, s);
			h->lane = i;
			h->way = way;
		}
	}
}

void lull_handover_init(struct lull_handover *h, struct lull_reader *r, u32 process,
			const struct lull_chain *c, struct lull_span steady, u32 without)
{
	size_t n, n_lanes = lull_reader_n_dim(r, LULL_TABLE_lane);
	struct finder f = { .reader = r, .steady = steady };

	*h = (struct lull_handover){ .way = LULL_HANDOVER_NONE };
	if (!c->chain_of_lane || (without & LULL_WITHOUT_PYTHON) || steady.to_ns <= steady.from_ns)
		return;
	f.frames = lull_reader_dim(r, LULL_TABLE_frame, &n);
	f.stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	f.waits = lull_alloc(n + 1, sizeof(*f.waits));
	f.lanes = lull_alloc(n_lanes + 1, sizeof(*f.lanes));
	count_samples(&f);
	if (has_workers(&f, c, n_lanes)) {
		if (!(without & LULL_WITHOUT_SCHED))
			count_stays(&f);
		if (!(without & LULL_WITHOUT_OSRT))
			count_limits(&f);
		add_up(h, &f, c, process);
	}
	free(f.waits);
	free(f.lanes);
}
