/*
 * where - in which functions of the program the time of each request was spent, by samples; and
 * when it waited for its turn, or kept a thread or a device to itself.
 *
 * A sample counts for the request that its thread works for, and for the part of the request that
 * it falls into. Where that is a wait for Python's lock, the thread that holds the lock says more:
 * samples of holders count instead. Threads of Python have samples of Python, others native ones.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/thread/own_frame.h"
#include "request/requests_int.h"

/* Shorter holds of a thread make nobody slow. */
#define LONG_HOLD_NS 1000000u

/* A sample; `owner` is its lane, or, of one that holds Python's lock, its process. */
struct sample {
	u64 at_ns;
	u32 owner;
	u32 frame;
	u32 function;
};

struct lull_request_samples {
	struct lull_vec own;	 /* struct sample, by lane, then time */
	struct lull_vec holders; /* the same by process */
	struct lull_map frames;	 /* stack to frame */
	struct lull_map functions;
	bool *has_python; /* by lane */
};

static int by_owner(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* A sample in the function of the program that a stack is in; frame 0 if it is in none. */
static struct sample sample_of(struct lull_request_samples *s, struct lull_reader *r, u64 at_ns,
			       u32 owner, u32 stack)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n);
	bool is_new;
	u32 *frame = lull_map_add(&s->frames, stack, &is_new), *first;
	struct sample out = { at_ns, owner, 0, 0 };

	if (is_new)
		*frame = stack ? lull_own_frame(r, stack) : 0;
	out.frame = *frame;
	if (!out.frame)
		return out;
	first = lull_map_add(&s->functions,
			     (u64)frames[out.frame - 1].function << 32 | frames[out.frame - 1].file,
			     &is_new);
	*first = is_new ? out.frame : *first;
	out.function = *first;
	return out;
}

static void read_python(struct lull_request_samples *s, struct lull_request_reader *q)
{
	struct lull_pysample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_pysample, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i];
			struct sample one;

			if (!lane)
				continue;
			one = sample_of(s, q->reader, cols.start_ns[i], lane, cols.stack[i]);
			s->has_python[lane] = true;
			*(struct sample *)lull_vec_push(&s->own) = one;
			one.owner = q->lanes[lane - 1].process;
			if (cols.has_gil[i])
				*(struct sample *)lull_vec_push(&s->holders) = one;
		}
	}
	lull_cursor_release(&c);
}

static void read_native(struct lull_request_samples *s, struct lull_request_reader *q)
{
	struct lull_sample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_sample, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i];

			if (lane && !s->has_python[lane] &&
			    q->first_slice[lane + 1] > q->first_slice[lane])
				*(struct sample *)lull_vec_push(&s->own) = sample_of(
					s, q->reader, cols.start_ns[i], lane, cols.stack[i]);
		}
	}
	lull_cursor_release(&c);
}

struct lull_request_samples *lull_request_samples_new(struct lull_request_reader *q)
{
	struct lull_request_samples *s = lull_alloc(1, sizeof(*s));

	lull_vec_init(&s->own, sizeof(struct sample));
	lull_vec_init(&s->holders, sizeof(struct sample));
	lull_map_init(&s->frames);
	lull_map_init(&s->functions);
	s->has_python = lull_alloc(q->n_lanes + 1, sizeof(*s->has_python));
	read_python(s, q);
	read_native(s, q);
	if (s->own.n)
		lull_sort(s->own.at, s->own.n, sizeof(struct sample), by_owner);
	if (s->holders.n)
		lull_sort(s->holders.at, s->holders.n, sizeof(struct sample), by_owner);
	return s;
}

void lull_request_samples_free(struct lull_request_samples *s)
{
	if (!s)
		return;
	lull_vec_release(&s->own);
	lull_vec_release(&s->holders);
	lull_map_release(&s->frames);
	lull_map_release(&s->functions);
	free(s->has_python);
	free(s);
}

/* ---- one request ---- */

static void count(struct lull_requests *to, u32 request, u8 part, const struct sample *sample)
{
	struct lull_request_place *at = to->places.at;

	for (size_t i = to->places.n; i > 0 && at[i - 1].request == request; i--) {
		if (at[i - 1].part == part && at[i - 1].frame == sample->frame) {
			at[i - 1].n++;
			return;
		}
	}
	*(struct lull_request_place *)lull_vec_push(&to->places) =
		(struct lull_request_place){ request, sample->frame, sample->function, 1, part };
}

/* The first sample of an owner at this moment or after it. */
static size_t first_of(const struct lull_vec *samples, u32 owner, u64 from_ns)
{
	const struct sample *at = samples->at;
	size_t lo = 0, hi = samples->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (at[mid].owner < owner || (at[mid].owner == owner && at[mid].at_ns < from_ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Samples of one owner in a part of a piece. */
static void count_samples(struct lull_request_reader *q, const struct lull_vec *samples, u32 owner,
			  struct lull_span when, const struct lull_request_piece *piece)
{
	const struct sample *at = samples->at;

	when = lull_span_cut(when, piece->from_ns, piece->to_ns);
	for (size_t i = first_of(samples, owner, when.from_ns);
	     i < samples->n && at[i].owner == owner && at[i].at_ns < when.to_ns; i++)
		count(q->to, piece->request, piece->part, &at[i]);
}

static void count_slice(struct lull_request_reader *q, const struct lull_request_slice *slice,
			const struct lull_vec *pieces)
{
	const struct lull_request_piece *at = pieces->at;
	const struct lull_span when = { slice->from_ns, slice->to_ns };
	size_t i = lull_vec_upper(pieces, offsetof(struct lull_request_piece, from_ns),
				  slice->from_ns);

	for (i -= i > 0; i < pieces->n && at[i].from_ns < slice->to_ns; i++)
		if (at[i].part != LULL_PART_OF_LOCK && at[i].part != LULL_PART_OF_QUEUE &&
		    at[i].part != LULL_PART_OF_OTHERS && at[i].to_ns > slice->from_ns)
			count_samples(q, &q->samples->own, slice->lane, when, &at[i]);
}

/* What its thread did before it looked for requests. */
static void count_late(struct lull_request_reader *q, const struct lull_one_request *one,
		       u32 request)
{
	struct lull_request_piece late = { one->start_ns - one->late_ns, one->start_ns, request,
					   LULL_PLACE_LATE };

	if (one->late_ns)
		count_samples(q, &q->samples->own, one->lane,
			      (struct lull_span){ late.from_ns, late.to_ns }, &late);
}

/* ---- turns ---- */

static void add_turn(struct lull_requests *to, struct lull_request_turn turn)
{
	struct lull_request_turn *last =
		to->turns.n ? lull_vec_get(&to->turns, to->turns.n - 1) : NULL;

	if (last && last->request == turn.request && last->kind == turn.kind &&
	    last->to_ns == turn.from_ns)
		last->to_ns = turn.to_ns;
	else
		*(struct lull_request_turn *)lull_vec_push(&to->turns) = turn;
}

static void add_piece(struct lull_requests *to, const struct lull_request_piece *p)
{
	struct lull_request_turn turn = { p->from_ns, p->to_ns, p->request, 0, 0 };

	switch (p->part) {
	case LULL_PART_OF_QUEUE:
	case LULL_PART_OF_OTHERS:
		turn.kind = LULL_TURN_WAITS;
		break;
	case LULL_PART_OF_LAUNCH:
	case LULL_PART_OF_ALLOC:
	case LULL_PART_OF_LOAD:
	case LULL_PART_OF_GPU:
	case LULL_PART_OF_COPY:
		turn.kind = LULL_TURN_HAS_DEVICE;
		break;
	default:
		return;
	}
	add_turn(to, turn);
}

void lull_request_where(struct lull_request_reader *q, u32 request, const u32 *lanes,
			size_t n_lanes, const struct lull_vec *pieces)
{
	struct lull_one_request *one = lull_vec_get(&q->to->all, request);
	const struct lull_request_piece *at = pieces->at;

	for (size_t i = 0; i < n_lanes; i++) {
		size_t n;
		const struct lull_request_slice *s =
			lull_request_slices_in(q, lanes[i], one->start_ns, one->end_ns, &n);

		if (i < LULL_COUNT_OF(one->served_by))
			one->served_by[i] = lanes[i];
		for (size_t k = 0; k < n; k++) {
			if (s[k].request != request)
				continue;
			count_slice(q, &s[k], pieces);
			if (s[k].to_ns - s[k].from_ns >= LONG_HOLD_NS)
				add_turn(q->to, (struct lull_request_turn){
							s[k].from_ns, s[k].to_ns, request, lanes[i],
							LULL_TURN_HAS_THREAD });
		}
	}
	count_late(q, one, request);
	for (size_t i = 0; i < pieces->n; i++) {
		if (at[i].part == LULL_PART_OF_LOCK)
			count_samples(q, &q->samples->holders, one->process,
				      (struct lull_span){ at[i].from_ns, at[i].to_ns }, &at[i]);
		add_piece(q->to, &at[i]);
	}
}
