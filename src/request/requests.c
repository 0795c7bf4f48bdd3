/*
 * requests - find them: marks in pairs, and the ranges of threads that work for them.
 */
#include "request/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/step.h"
#include "request/requests_int.h"
#include "wire/request_mark.h"

/* A mark of a request. */
struct mark {
	u64 at_ns;
	u64 id;
	u32 process, lane, label, data;
	u8 kind; /* enum lull_request_kind */
};

static const struct {
	const char *word, *brief, *meaning;
} parts[] = {
#define PART(name, word, brief, meaning) { word, brief, meaning },
#include "request/parts.def"
#undef PART
};

const char *lull_request_part_word(enum lull_request_part part)
{
	return parts[part].word;
}

const char *lull_request_part_brief(enum lull_request_part part)
{
	return parts[part].brief;
}

const char *lull_request_part_meaning(enum lull_request_part part)
{
	return parts[part].meaning;
}

static const struct lull_label_row *label_of(struct lull_reader *r, u32 label)
{
	static const struct lull_label_row none;
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	return label && label <= n ? &labels[label - 1] : &none;
}

const char *lull_request_name(const struct lull_one_request *one, struct lull_reader *r)
{
	if (one->name)
		return lull_reader_string(r, label_of(r, one->name)->name, NULL);
	return one->is_round ? "round" : "connection";
}

const char *lull_request_how(const struct lull_one_request *one, struct lull_reader *r)
{
	if (!one->how && one->end == LULL_REQUEST_IS_HUNG_UP)
		return LULL_REQUEST_HUNG_UP;
	return lull_reader_string(r, label_of(r, one->how)->name, NULL);
}

/* ---- marks ---- */

static int by_request(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void read_marks(struct lull_request_reader *q, struct lull_vec *marks)
{
	struct lull_mark_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_mark, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			const struct lull_label_row *label = label_of(q->reader, cols.label[i]);

			if (label->api != LULL_REQUEST_API || !cols.lane[i] ||
			    !lull_span_holds(q->window, cols.start_ns[i], 0))
				continue;
			*(struct mark *)lull_vec_push(marks) = (struct mark){
				.at_ns = cols.start_ns[i],
				.id = cols.payload[i],
				.process = q->lanes[cols.lane[i] - 1].process,
				.lane = cols.lane[i],
				.label = cols.label[i],
				.data = cols.data[i],
				.kind = (u8)label->category,
			};
		}
	}
	lull_cursor_release(&c);
	lull_sort(marks->at, marks->n, sizeof(struct mark), by_request);
}

static enum lull_request_end end_of(const char *how)
{
	if (!strcmp(how, LULL_REQUEST_HUNG_UP))
		return LULL_REQUEST_IS_HUNG_UP;
	if (!strcmp(how, LULL_REQUEST_FAILED) || (strlen(how) == 3 && *how == '5'))
		return LULL_REQUEST_IS_FAILED;
	return LULL_REQUEST_OK;
}

/* A request that is open while its marks are read. */
struct open {
	struct lull_one_request one;
	struct lull_vec gaps;	       /* u64: between the tokens so far */
	struct lull_one_request parts; /* the same of parts of the answer: the fields of tokens */
	struct lull_vec part_gaps;
	bool is_open;
};

static void add_token(struct lull_one_request *one, struct lull_vec *gaps, u64 at_ns)
{
	if (one->n_tokens)
		*(u64 *)lull_vec_push(gaps) = at_ns - one->last_token_ns;
	else
		one->first_token_ns = at_ns;
	one->last_token_ns = at_ns;
	one->n_tokens++;
}

static void begin(struct open *o, const struct mark *m)
{
	o->is_open = true;
	o->gaps.n = o->part_gaps.n = 0;
	o->parts = (struct lull_one_request){ 0 };
	o->one = (struct lull_one_request){
		.id = m->id,
		.start_ns = m->at_ns,
		.process = m->process,
		.lane = m->lane,
		.name = m->label,
		.data = m->data,
	};
}

static void finish(struct lull_request_reader *q, struct open *o, const struct mark *m)
{
	struct lull_requests *to = q->to;

	o->is_open = false;
	o->one.end_ns = m->at_ns;
	o->one.how = m->label;
	o->one.end = (u8)end_of(lull_request_how(&o->one, q->reader));
	to->n_hung_up += o->one.end == LULL_REQUEST_IS_HUNG_UP;
	to->n_failed += o->one.end == LULL_REQUEST_IS_FAILED;
	/* An answer in one part is no stream; and what the program says itself counts. */
	if (!o->one.n_tokens && o->parts.n_tokens > 1) {
		o->one.n_tokens = o->parts.n_tokens;
		o->one.first_token_ns = o->parts.first_token_ns;
		o->one.last_token_ns = o->parts.last_token_ns;
		lull_vec_add(&to->gaps, o->part_gaps.at, o->part_gaps.n);
	} else {
		lull_vec_add(&to->gaps, o->gaps.at, o->gaps.n);
	}
	*(struct lull_one_request *)lull_vec_push(&to->all) = o->one;
}

static void take_mark(struct lull_request_reader *q, struct open *o, const struct mark *m)
{
	switch (m->kind) {
	case LULL_REQUEST_ARRIVED:
		q->to->n_twice += o->is_open;
		begin(o, m);
		break;
	case LULL_REQUEST_ENDED:
		if (o->is_open)
			finish(q, o, m);
		else
			q->to->n_cut_start++;
		break;
	case LULL_REQUEST_TOKEN:
		if (o->is_open)
			add_token(&o->one, &o->gaps, m->at_ns);
		break;
	case LULL_REQUEST_PART:
		if (o->is_open)
			add_token(&o->parts, &o->part_gaps, m->at_ns);
		break;
	default:
		break;
	}
}

static void pair_marks(struct lull_request_reader *q, const struct lull_vec *marks)
{
	const struct mark *m = marks->at;
	struct open o = { .is_open = false };

	lull_vec_init(&o.gaps, sizeof(u64));
	lull_vec_init(&o.part_gaps, sizeof(u64));
	for (size_t i = 0; i < marks->n; i++) {
		bool is_next = i && (m[i].process != m[i - 1].process || m[i].id != m[i - 1].id);

		if (is_next && o.is_open) {
			q->to->n_cut_end++;
			o.is_open = false;
		}
		take_mark(q, &o, &m[i]);
	}
	q->to->n_cut_end += o.is_open;
	lull_vec_release(&o.gaps);
	lull_vec_release(&o.part_gaps);
}

/* ---- slices ---- */

static int slice_by_id(const void *a, const void *b)
{
	const struct lull_request_slice *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int slice_by_lane(const void *a, const void *b)
{
	const struct lull_request_slice *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int request_by_id(const void *a, const void *b, void *ctx)
{
	const struct lull_one_request *all = ctx, *x = &all[*(const u32 *)a],
				      *y = &all[*(const u32 *)b];

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void read_slices(struct lull_request_reader *q)
{
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_range, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (!cols.lane[i] ||
			    label_of(q->reader, cols.label[i])->api != LULL_REQUEST_API)
				continue;
			*(struct lull_request_slice *)lull_vec_push(&q->slices) =
				(struct lull_request_slice){
					.from_ns = cols.start_ns[i],
					.to_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
					.id = cols.payload[i],
					.process = q->lanes[cols.lane[i] - 1].process,
					.lane = cols.lane[i],
					.request = LULL_NO_REQUEST,
				};
		}
	}
	lull_cursor_release(&c);
}

/* Whether the slice is of that request, which has the same id, or of one after it. */
static int place(const struct lull_request_slice *s, const struct lull_one_request *one)
{
	if (s->process != one->process)
		return s->process < one->process ? -1 : 1;
	if (s->id != one->id)
		return s->id < one->id ? -1 : 1;
	if (s->to_ns <= one->start_ns)
		return -1;
	return s->from_ns >= one->end_ns;
}

/* Which request each slice is of: both are walked by process, id and time. */
static void match_slices(struct lull_request_reader *q)
{
	struct lull_one_request *all = q->to->all.at;
	size_t n = q->to->all.n, k = 0;
	u32 *order = lull_alloc(n + 1, sizeof(*order));
	struct lull_request_slice *s = q->slices.at;

	for (size_t i = 0; i < n; i++)
		order[i] = (u32)i;
	lull_sort_r(order, n, sizeof(*order), request_by_id, all);
	lull_sort(s, q->slices.n, sizeof(*s), slice_by_id);
	for (size_t i = 0; i < q->slices.n; i++) {
		while (k < n && place(&s[i], &all[order[k]]) > 0)
			k++;
		if (k < n && place(&s[i], &all[order[k]]) == 0)
			s[i].request = order[k];
	}
	free(order);
	lull_sort(s, q->slices.n, sizeof(*s), slice_by_lane);
	for (size_t i = 0, lane = 0; lane <= q->n_lanes; lane++) {
		while (i < q->slices.n && s[i].lane < lane)
			i++;
		q->first_slice[lane] = i;
	}
	q->first_slice[q->n_lanes + 1] = q->slices.n;
}

const struct lull_request_slice *lull_request_slices_in(const struct lull_request_reader *q,
							u32 lane, u64 from_ns, u64 to_ns, size_t *n)
{
	const struct lull_request_slice *all = q->slices.at;
	size_t lo = q->first_slice[lane], hi = q->first_slice[lane + 1], first = lo, last;

	/* Slices of a lane are one after the other, but for those of a batch, which are equal. */
	for (last = hi; first < last;) {
		size_t mid = first + (last - first) / 2;

		if (all[mid].to_ns <= from_ns)
			first = mid + 1;
		else
			last = mid;
	}
	for (last = first; last < hi && all[last].from_ns < to_ns;)
		last++;
	*n = last - first;
	return all + first;
}

/* ---- all of it ---- */

static int by_start(const void *a, const void *b)
{
	const struct lull_one_request *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* How many others were open when each one arrived, and when there were any. */
static void count_open(struct lull_requests *q)
{
	struct lull_one_request *all = q->all.at;
	u64 *ends = lull_alloc(q->all.n + 1, sizeof(*ends));
	size_t n_ended = 0;

	for (size_t i = 0; i < q->all.n; i++)
		ends[i] = all[i].end_ns;
	lull_sort_u64(ends, q->all.n);
	if (q->all.n)
		q->served = (struct lull_span){ all[0].start_ns, ends[q->all.n - 1] };
	for (size_t i = 0; i < q->all.n; i++) {
		while (n_ended < i && ends[n_ended] <= all[i].start_ns)
			n_ended++;
		all[i].n_open = (u32)(i - n_ended);
	}
	free(ends);
}

static int refuse(const struct lull_requests *q, struct lull_err *err)
{
	if (q->n_cut_start || q->n_cut_end || q->n_twice)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no request is complete: %llu began before the recording, %llu "
				 "did not end in it, %llu had an id that was used again; record "
				 "for longer",
				 (unsigned long long)q->n_cut_start,
				 (unsigned long long)q->n_cut_end, (unsigned long long)q->n_twice);
	if (q->trains)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no requests: the program trains a model; `lull why` and `lull "
				 "stats -r steps` say how long its steps take, and why");
	return lull_fail(err, LULL_E_NOT_FOUND,
			 "no requests: no server that lull knows took one while it was recorded, "
			 "and the program marks none (lull.request() in Python, lull_request() of "
			 "lull.h); --trace must have nvtx in its list");
}

static void release(struct lull_request_reader *q)
{
	for (size_t i = 0; i <= q->n_lanes; i++)
		lull_vec_release(&q->states[i]);
	free(q->states);
	free(q->first_slice);
	free(q->n_served);
	lull_vec_release(&q->slices);
	lull_vec_release(&q->collections);
	lull_vec_release(&q->work);
	lull_vec_release(&q->owned);
	lull_request_samples_free(q->samples);
}

static void prepare(struct lull_request_reader *q)
{
	q->lanes = lull_reader_dim(q->reader, LULL_TABLE_lane, &q->n_lanes);
	q->states = lull_alloc(q->n_lanes + 1, sizeof(*q->states));
	q->n_served = lull_alloc(q->n_lanes + 1, sizeof(*q->n_served));
	q->first_slice = lull_alloc(q->n_lanes + 2, sizeof(*q->first_slice));
	for (size_t i = 0; i <= q->n_lanes; i++)
		lull_vec_init(&q->states[i], sizeof(struct lull_state));
	lull_vec_init(&q->slices, sizeof(struct lull_request_slice));
	lull_vec_init(&q->collections, sizeof(struct lull_request_slice));
	lull_vec_init(&q->work, sizeof(struct lull_request_unit));
	lull_vec_init(&q->owned, sizeof(struct lull_owned));
}

/* Nobody names requests. What trains has none: its connections are between ranks. */
static void look_further(struct lull_request_reader *q)
{
	q->to->trains = lull_trains(q->reader);
	if (q->to->trains)
		return;
	if (q->wants & LULL_REQUESTS_WANT_SOCKETS) {
		lull_request_from_sockets(q);
		q->to->is_of_sockets = q->to->all.n > 0;
	}
	if (!q->to->all.n && (q->wants & LULL_REQUESTS_WANT_ROUNDS)) {
		q->slices.n = 0;
		lull_request_from_rounds(q);
	}
}

int lull_requests_init(struct lull_requests *to, struct lull_reader *r, struct lull_span window,
		       unsigned wants, struct lull_err *err)
{
	struct lull_request_reader q = { .to = to, .reader = r, .window = window, .wants = wants };
	struct lull_vec marks;

	*to = (struct lull_requests){ .span = lull_span_recording(r) };
	to->span = lull_span_cut(to->span, window.from_ns, window.to_ns);
	lull_vec_init(&to->all, sizeof(struct lull_one_request));
	lull_vec_init(&to->gaps, sizeof(u64));
	lull_vec_init(&to->pieces, sizeof(struct lull_request_piece));
	lull_vec_init(&to->places, sizeof(struct lull_request_place));
	lull_vec_init(&to->turns, sizeof(struct lull_request_turn));
	prepare(&q);
	lull_vec_init(&marks, sizeof(struct mark));
	read_marks(&q, &marks);
	pair_marks(&q, &marks);
	lull_vec_release(&marks);
	if (!to->all.n && !to->n_cut_start && !to->n_cut_end && !to->n_twice)
		look_further(&q);
	lull_sort(to->all.at, to->all.n, sizeof(struct lull_one_request), by_start);
	lull_sort_u64(to->gaps.at, to->gaps.n);
	count_open(to);
	if (to->all.n) {
		if (!q.slices.n)
			read_slices(&q);
		to->has_work = q.slices.n > 0;
		match_slices(&q);
		lull_request_states(&q);
		lull_request_work_of(&q);
		if (wants & LULL_REQUESTS_WANT_WHERE)
			q.samples = lull_request_samples_new(&q);
		lull_request_break_down(&q);
	}
	release(&q);
	return to->all.n ? LULL_OK : refuse(to, err);
}

/* Places and turns of those that are answered only, by their new numbers. */
static void drop_unanswered(struct lull_requests *q)
{
	const struct lull_one_request *all = q->all.at;
	struct lull_request_place *places = q->places.at;
	struct lull_request_turn *turns = q->turns.at;
	u32 *number = lull_alloc(q->all.n + 1, sizeof(*number)), n = 0;
	size_t kept = 0;

	for (size_t i = 0; i < q->all.n; i++)
		number[i] = all[i].end == LULL_REQUEST_OK ? n++ : LULL_NO_REQUEST;
	for (size_t i = 0; i < q->places.n; i++) {
		places[i].request = number[places[i].request];
		if (places[i].request != LULL_NO_REQUEST)
			places[kept++] = places[i];
	}
	q->places.n = kept;
	kept = 0;
	for (size_t i = 0; i < q->turns.n; i++) {
		turns[i].request = number[turns[i].request];
		if (turns[i].request != LULL_NO_REQUEST)
			turns[kept++] = turns[i];
	}
	q->turns.n = kept;
	free(number);
}

int lull_requests_keep_answered(struct lull_requests *q, struct lull_err *err)
{
	struct lull_one_request *all = q->all.at;
	size_t n = 0;

	if (q->n_hung_up + q->n_failed == q->all.n)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no request was answered: the client of %llu hung up, %llu failed",
				 (unsigned long long)q->n_hung_up, (unsigned long long)q->n_failed);
	drop_unanswered(q);
	for (size_t i = 0; i < q->all.n; i++)
		if (all[i].end == LULL_REQUEST_OK)
			all[n++] = all[i];
	q->all.n = n;
	q->pieces.n = 0;
	return LULL_OK;
}

void lull_requests_release(struct lull_requests *q)
{
	lull_vec_release(&q->all);
	lull_vec_release(&q->gaps);
	lull_vec_release(&q->pieces);
	lull_vec_release(&q->places);
	lull_vec_release(&q->turns);
}
