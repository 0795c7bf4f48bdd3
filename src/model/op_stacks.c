#include "model/op_stacks.h"

#include <stdlib.h>

#include "base/sort.h"
#include "model/span.h"
#include "model/words.h"

/* Deeper stacks are looked at so far. */
#define MAX_DEPTH 256

/* A call of a Python function; or an operator that has its stack with it, then `frame` is that. */
struct pycall {
	u64 start_ns, end_ns;
	u32 lane, frame;
	u32 outer; /* the last one begun on the thread that was open at its start: index + 1 */
};

static int by_lane(const void *a, const void *b)
{
	const struct pycall *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static void add(struct lull_vec *to, u64 start_ns, u64 dur_ns, u32 lane, u32 frame)
{
	*(struct pycall *)lull_vec_push(to) = (struct pycall){
		.start_ns = start_ns,
		.end_ns = lull_span_end_ns(start_ns, dur_ns),
		.lane = lane,
		.frame = frame,
	};
}

static void collect(struct lull_op_stacks *s)
{
	struct lull_pycall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_pycall, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			add(&s->calls, cols.start_ns[i], cols.dur_ns[i], cols.lane[i],
			    cols.frame[i]);
	lull_cursor_release(&c);
}

static void collect_outermost(struct lull_op_stacks *s)
{
	struct lull_op_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_op, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.stack[i])
				add(&s->outermost, cols.start_ns[i], cols.dur_ns[i], cols.lane[i],
				    cols.stack[i]);
	lull_cursor_release(&c);
}

/* The innermost one from `ix` outwards that is open at at_ns on this lane. */
static u32 open_at(const struct pycall *calls, u32 ix, u32 lane, u64 at_ns)
{
	while (ix && calls[ix - 1].lane == lane && calls[ix - 1].end_ns <= at_ns)
		ix = calls[ix - 1].outer;
	return ix && calls[ix - 1].lane == lane ? ix : 0;
}

/* Sort them, and find out which is inside of which. */
static void nest(struct lull_vec *all)
{
	struct pycall *calls = all->at;

	if (all->n)
		lull_sort(calls, all->n, sizeof(*calls), by_lane);
	for (size_t i = 0; i < all->n; i++)
		calls[i].outer = open_at(calls, (u32)i, calls[i].lane, calls[i].start_ns);
}

void lull_op_stacks_init(struct lull_op_stacks *s, struct lull_reader *r, u32 n_frames)
{
	*s = (struct lull_op_stacks){ .reader = r, .n_frames = n_frames };
	lull_vec_init(&s->calls, sizeof(struct pycall));
	lull_vec_init(&s->outermost, sizeof(struct pycall));
	lull_intern_init(&s->stacks);
	if (!n_frames)
		return;
	collect(s);
	collect_outermost(s);
	nest(&s->calls);
	nest(&s->outermost);
}

void lull_op_stacks_release(struct lull_op_stacks *s)
{
	lull_vec_release(&s->calls);
	lull_vec_release(&s->outermost);
	lull_intern_release(&s->stacks);
	lull_str_release(&s->text);
}

/* The number of the innermost call at this moment, 0 if there is none. */
static u32 innermost(const struct lull_vec *all, u32 lane, u64 at_ns)
{
	const struct pycall *calls = all->at;
	size_t low = 0, high = all->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (calls[mid].lane < lane ||
		    (calls[mid].lane == lane && calls[mid].start_ns <= at_ns))
			low = mid + 1;
		else
			high = mid;
	}
	return open_at(calls, (u32)low, lane, at_ns);
}

/* The stack of the operator around this moment that has one, 0 if there is none. */
static u32 stack_at(const struct lull_op_stacks *s, u32 lane, u64 at_ns)
{
	u32 ix = innermost(&s->outermost, lane, at_ns);

	return ix ? ((const struct pycall *)s->outermost.at)[ix - 1].frame : 0;
}

u32 lull_op_stacks_find(struct lull_op_stacks *s, u32 lane, u64 at_ns)
{
	const struct pycall *calls = s->calls.at;
	u32 frames[LULL_OP_STACK_MAX] = { 0 }, n = 0;
	size_t n_nodes;
	const struct lull_stack_row *nodes = lull_reader_dim(s->reader, LULL_TABLE_stack, &n_nodes);

	for (u32 ix = innermost(&s->calls, lane, at_ns); ix && n < s->n_frames;
	     ix = open_at(calls, calls[ix - 1].outer, lane, at_ns))
		frames[n++] = calls[ix - 1].frame;
	for (u32 at = n ? 0 : stack_at(s, lane, at_ns); at && at <= n_nodes && n < s->n_frames;
	     at = nodes[at - 1].parent)
		frames[n++] = nodes[at - 1].frame;
	return n ? lull_intern_add(&s->stacks, frames, s->n_frames * sizeof(*frames)) + 1 : 0;
}

/* True if the frame is the program's own; *best is the innermost other one that has a file. */
static bool is_own(struct lull_reader *r, u32 frame, u32 *best)
{
	size_t n;
	const struct lull_frame_row *rows = lull_reader_dim(r, LULL_TABLE_frame, &n);

	if (!frame || !rows[frame - 1].file)
		return false;
	if (!lull_file_is_plumbing(lull_reader_string(r, rows[frame - 1].file, NULL)))
		return true;
	*best = *best ? *best : frame;
	return false;
}

u32 lull_op_stacks_own_frame_of(struct lull_reader *r, u32 stack)
{
	size_t n;
	const struct lull_stack_row *nodes = lull_reader_dim(r, LULL_TABLE_stack, &n);
	u32 best = 0, at = stack;

	/* A damaged report may have a circle. */
	for (u32 depth = 0; at && at <= n && depth < MAX_DEPTH; depth++) {
		if (is_own(r, nodes[at - 1].frame, &best))
			return nodes[at - 1].frame;
		at = nodes[at - 1].parent;
	}
	return best;
}

u32 lull_op_stacks_own_frame(const struct lull_op_stacks *s, u32 lane, u64 at_ns)
{
	const struct pycall *calls = s->calls.at;
	u32 best = 0;

	for (u32 ix = innermost(&s->calls, lane, at_ns); ix;
	     ix = open_at(calls, calls[ix - 1].outer, lane, at_ns))
		if (is_own(s->reader, calls[ix - 1].frame, &best))
			return calls[ix - 1].frame;
	return best ? best : lull_op_stacks_own_frame_of(s->reader, stack_at(s, lane, at_ns));
}

void lull_op_stacks_name(struct lull_str *to, struct lull_reader *r, u32 frame)
{
	size_t n;
	const struct lull_frame_row *row = lull_reader_dim(r, LULL_TABLE_frame, &n);

	if (!frame)
		return;
	row += frame - 1;
	if (row->file)
		lull_str_addf(to, "%s:%u ", lull_reader_string(r, row->file, NULL), row->line);
	lull_str_puts(to, lull_reader_string(r, row->function, NULL));
}

const char *lull_op_stacks_text(const struct lull_op_stacks *s, u32 stack)
{
	struct lull_str *text = (struct lull_str *)&s->text;
	size_t n_rows;
	const struct lull_frame_row *rows = lull_reader_dim(s->reader, LULL_TABLE_frame, &n_rows);
	const u32 *frames;

	if (!stack)
		return NULL;
	frames = lull_intern_get(&s->stacks, stack - 1);
	lull_str_clear(text);
	for (u32 i = 0; i < s->n_frames && frames[i]; i++) {
		const struct lull_frame_row *row = &rows[frames[i] - 1];

		/* As PyTorch writes them. */
		lull_str_puts(text, i ? "; " : "");
		if (row->file)
			lull_str_addf(text,
				      "%s(%u): ", lull_reader_string(s->reader, row->file, NULL),
				      row->line);
		lull_str_puts(text, lull_reader_string(s->reader, row->function, NULL));
	}
	return lull_str_text(text);
}
