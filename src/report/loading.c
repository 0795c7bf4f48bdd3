#include "report/loading.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/words.h"

struct search {
	struct lull_reader *reader;
	const struct lull_lane_row *lanes;
	const struct lull_process_row *processes;
	const u8 *is_loading; /* by label */
	u8 *is_worker;	      /* by lane, set when it loads */
	u32 lane;
	struct lull_span window;
	struct lull_vec own, others; /* struct lull_span */
};

/* Words of input; "decode" alone may as well be about tokens. */
static u8 *find_labels(struct lull_reader *r)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	u8 *is_loading = lull_alloc(n + 1, sizeof(*is_loading));

	for (size_t i = 0; i < n; i++) {
		const char *name = lull_reader_string(r, labels[i].name, NULL);

		is_loading[i + 1] = (lull_name_bits(name) & LULL_IN_LOADER) &&
				    !lull_name_is_generation(name, true);
	}
	return is_loading;
}

/* Whether a thread is one of the process of the steps, or of a child of it. */
static bool is_near(const struct search *s, u32 lane)
{
	const struct lull_process_row *own = &s->processes[s->lanes[s->lane - 1].process - 1];
	const struct lull_process_row *its = &s->processes[s->lanes[lane - 1].process - 1];

	return its->pid == own->pid || its->parent_pid == own->pid;
}

static void add(struct search *s, const struct lull_range_cols *cols, size_t i)
{
	struct lull_span span = { cols->start_ns[i],
				  lull_span_end_ns(cols->start_ns[i], cols->dur_ns[i]) };
	u32 lane = cols->lane[i];

	span = lull_span_cut(span, s->window.from_ns, s->window.to_ns);
	if (!s->is_loading[cols->label[i]] || !lane || span.to_ns <= span.from_ns)
		return;
	if (lane == s->lane) {
		*(struct lull_span *)lull_vec_push(&s->own) = span;
	} else if (s->lanes[lane - 1].process && is_near(s, lane)) {
		s->is_worker[lane] = 1;
		*(struct lull_span *)lull_vec_push(&s->others) = span;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct lull_span *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* What several did at a time counts once. */
static void unite(struct lull_vec *spans)
{
	struct lull_span *at = spans->at;
	size_t n = 0;

	lull_sort(spans->at, spans->n, sizeof(*at), by_start);
	for (size_t i = 0; i < spans->n; i++)
		if (n && at[i].from_ns <= at[n - 1].to_ns)
			at[n - 1].to_ns =
				at[i].to_ns > at[n - 1].to_ns ? at[i].to_ns : at[n - 1].to_ns;
		else
			at[n++] = at[i];
	spans->n = n;
}

static void read_ranges(struct search *s)
{
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_range, s->window.from_ns, s->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			add(s, &cols, i);
	lull_cursor_release(&c);
}

void lull_loading_init(struct lull_loading *l, struct lull_reader *r, u32 lane,
		       struct lull_span window)
{
	u8 *is_loading = find_labels(r);
	size_t n_lanes, n;
	struct search s = { .reader = r, .is_loading = is_loading, .lane = lane, .window = window };

	s.lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	s.processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	s.is_worker = lull_alloc(n_lanes + 1, sizeof(*s.is_worker));
	lull_vec_init(&s.own, sizeof(struct lull_span));
	lull_vec_init(&s.others, sizeof(struct lull_span));
	if (lane && lane <= n_lanes && s.lanes[lane - 1].process)
		read_ranges(&s);
	l->n_others = 0;
	for (size_t i = 1; i <= n_lanes; i++)
		l->n_others += s.is_worker[i];
	l->spans = l->n_others ? s.others : s.own;
	lull_vec_release(l->n_others ? &s.own : &s.others);
	unite(&l->spans);
	free(s.is_worker);
	free(is_loading);
}

void lull_loading_release(struct lull_loading *l)
{
	lull_vec_release(&l->spans);
}
