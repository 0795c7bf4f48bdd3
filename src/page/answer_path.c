/*
 * path: the critical path between two moments, such as those of a step (page/path.h).
 *
 *	path?from=T&to=T&thread=p1/t1
 *	{"from", "to", "pieces": [[kind, lane, start, end, name], ...],
 *	 "sums": [[kind, ns, n], ...]}
 */
#include "page/page.h"

#include <string.h>

#include "base/str.h"
#include "page/path.h"
#include "timeline/name.h"

#define MAX_SPAN_NS  (60ull * 1000000000)
#define N_PATH_KINDS (LULL_PATH_RETURN + 1)

static const char *const words[] = {
	[LULL_PATH_WORK] = "work", [LULL_PATH_QUEUE] = "queue",	  [LULL_PATH_THREAD] = "thread",
	[LULL_PATH_WAIT] = "wait", [LULL_PATH_RETURN] = "return",
};

static void put_pieces(struct lull_json *j, struct lull_timeline *t, const struct lull_vec *pieces)
{
	lull_json_key(j, "pieces");
	lull_json_array(j);
	for (size_t i = 0; i < pieces->n; i++) {
		const struct lull_path_piece *p = lull_vec_get(pieces, i);
		struct lull_str text = LULL_STR_INIT;

		if (p->name)
			lull_name_text(&text, t->reader, p->name);
		lull_json_array(j);
		lull_json_text(j, words[p->kind]);
		lull_json_u64(j, p->lane);
		lull_json_u64(j, p->span.from_ns - t->origin_ns);
		lull_json_u64(j, p->span.to_ns - t->origin_ns);
		lull_json_bytes(j, lull_str_text(&text), text.len);
		lull_json_end(j);
		lull_str_release(&text);
	}
	lull_json_end(j);
}

static void put_sums(struct lull_json *j, const struct lull_vec *pieces)
{
	u64 ns[N_PATH_KINDS] = { 0 }, n[N_PATH_KINDS] = { 0 };

	for (size_t i = 0; i < pieces->n; i++) {
		const struct lull_path_piece *p = lull_vec_get(pieces, i);

		ns[p->kind] += p->span.to_ns - p->span.from_ns;
		n[p->kind]++;
	}
	lull_json_key(j, "sums");
	lull_json_array(j);
	for (size_t k = 0; k < N_PATH_KINDS; k++) {
		if (!n[k])
			continue;
		lull_json_array(j);
		lull_json_text(j, words[k]);
		lull_json_u64(j, ns[k]);
		lull_json_u64(j, n[k]);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_timeline *t = q->report->timeline;
	const char *key = lull_args_get(q->args, "thread");
	u32 thread = key ? lull_timeline_row_by_key(t, key) : LULL_NO_ROW;
	struct lull_span span;
	struct lull_vec pieces;
	struct lull_json j;

	if (lull_args_span(q->args, t->origin_ns, &span, err))
		return err->code;
	if (thread == LULL_NO_ROW || strcmp(lull_timeline_row(t, thread)->kind, LULL_ROW_THREAD))
		return lull_fail(err, LULL_E_NOT_FOUND, "thread must be the key of a thread");
	span = lull_span_cut(span, t->span.from_ns, t->span.to_ns);
	if (span.to_ns <= span.from_ns || span.to_ns - span.from_ns > MAX_SPAN_NS)
		return lull_fail(err, LULL_E_USAGE,
				 "from and to must enclose a time of the run, up to a minute");
	lull_vec_init(&pieces, sizeof(struct lull_path_piece));
	lull_path_find(t, span, thread, &pieces);
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "from", span.from_ns - t->origin_ns);
	lull_page_pair_u64(&j, "to", span.to_ns - t->origin_ns);
	put_pieces(&j, t, &pieces);
	put_sums(&j, &pieces);
	lull_json_end(&j);
	lull_vec_release(&pieces);
	return LULL_OK;
}

const struct lull_answer lull_answer_path = {
	.name = "path",
	.type = "application/json",
	.run = run,
};
