/*
 * sums: what each of some rows did between two moments.
 *
 *	sums?from=T&to=T&lanes=3,7,12
 *	{"from", "to", "is_folded", "rows": [{"lane", "n", "ns", "n_names",
 *	 "top": [[name, class, ns, n], ...], "longest": [lane, start, end]}]}
 *
 * A lane stands for its row. Of what reaches over an edge, the part inside counts. Where ranges lie
 * inside ranges, `ns` is the time of the outermost.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "page/receipt.h"

#define MAX_ROWS 64u
#define TOP	 3u

/* Whether its names are not exact: there are too many events. */
static bool put_row(struct lull_json *j, struct lull_timeline *t, u32 lane, struct lull_span span)
{
	const struct lull_row *row = lull_timeline_row(t, lull_timeline_lane(t, lane)->row);
	u32 source = lull_timeline_lane(t, lane)->source;
	bool is_nested = source != LULL_NO_ROW && lull_sources[source].lines == LULL_LINES_DEPTH;
	struct lull_receipt_sums s;
	u64 outer_ns = 0;
	bool is_folded;

	lull_receipt_init(&s);
	for (u32 l = 0; l < row->n_lanes; l++) {
		lull_receipt_lane(&s, t, row->first_lane + l, span);
		outer_ns = l ? outer_ns : s.ns;
	}
	lull_json_object(j);
	lull_page_pair_u64(j, "lane", lane);
	lull_page_pair_u64(j, "n", s.n);
	lull_page_pair_u64(j, "ns", is_nested ? outer_ns : s.ns);
	lull_page_pair_u64(j, "n_names", s.items.n);
	lull_receipt_sort(&s);
	lull_receipt_put_top(j, t, &s, TOP);
	if (s.longest_ns) {
		lull_json_key(j, "longest");
		lull_json_array(j);
		lull_json_u64(j, s.longest.lane);
		lull_json_u64(j, s.longest.event.start_ns - t->origin_ns);
		lull_json_u64(j, s.longest.event.end_ns - t->origin_ns);
		lull_json_end(j);
	}
	lull_json_end(j);
	is_folded = s.is_folded;
	lull_receipt_release(&s);
	return is_folded;
}

/* "3,7,12" */
static int lanes_of(const struct lull_question *q, u32 *lanes, size_t *n, struct lull_err *err)
{
	const char *at = lull_args_get(q->args, "lanes");

	for (*n = 0; at && *at; (*n)++) {
		char *end;
		unsigned long long lane = strtoull(at, &end, 10);

		if (end == at || (*end && *end != ',') || *n == MAX_ROWS)
			return lull_fail(err, LULL_E_USAGE,
					 "lanes must be up to %u numbers with commas between them",
					 MAX_ROWS);
		if (lane >= q->report->timeline->lanes.n)
			return lull_fail(err, LULL_E_NOT_FOUND, "there is no lane %llu", lane);
		lanes[*n] = (u32)lane;
		at = *end ? end + 1 : end;
	}
	return LULL_OK;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_timeline *t = q->report->timeline;
	struct lull_span span;
	u32 lanes[MAX_ROWS];
	bool is_folded = false;
	struct lull_json j;
	size_t n;

	if (lull_args_span(q->args, t->origin_ns, &span, err) || lanes_of(q, lanes, &n, err))
		return err->code;
	span = lull_span_cut(span, t->span.from_ns, t->span.to_ns);
	if (span.to_ns <= span.from_ns)
		return lull_fail(err, LULL_E_USAGE, "from and to must enclose a time of the run");
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "from", span.from_ns - t->origin_ns);
	lull_page_pair_u64(&j, "to", span.to_ns - t->origin_ns);
	lull_json_key(&j, "rows");
	lull_json_array(&j);
	for (size_t i = 0; i < n; i++)
		is_folded |= put_row(&j, t, lanes[i], span);
	lull_json_end(&j);
	lull_page_pair_bool(&j, "is_folded", is_folded);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_sums = {
	.name = "sums",
	.type = "application/json",
	.run = run,
};
