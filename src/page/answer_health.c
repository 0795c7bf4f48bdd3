/*
 * health: what was lost, what was recorded and what was not, and where.
 */
#include "page/page.h"

#include "trace/issue.h"

static void put_issues(struct lull_json *j, struct lull_reader *r)
{
	static const char *const severities[] = { "", "notice", "loss", "error" };
	size_t n;
	const struct lull_issue_row *issues = lull_reader_dim(r, LULL_TABLE_issue, &n);

	lull_json_key(j, "issues");
	lull_json_array(j);
	for (size_t i = 0; i < n; i++) {
		u8 severity = issues[i].severity;

		lull_json_object(j);
		lull_page_pair_text(j, "name", lull_reader_string(r, issues[i].name, NULL));
		lull_page_pair_text(j, "severity",
				    severity < LULL_COUNT_OF(severities) ? severities[severity]
									 : "");
		lull_page_pair_u64(j, "count", issues[i].count);
		lull_page_pair_text(j, "text", lull_reader_string(r, issues[i].text, NULL));
		lull_page_pair_text(j, "detail", lull_reader_string(r, issues[i].detail, NULL));
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_meta(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	const struct lull_meta_row *rows = lull_reader_dim(r, LULL_TABLE_meta, &n);

	lull_json_key(j, "meta");
	lull_json_array(j);
	for (size_t i = 0; i < n; i++) {
		lull_json_array(j);
		lull_json_text(j, lull_reader_string(r, rows[i].key, NULL));
		lull_json_text(j, lull_reader_string(r, rows[i].value, NULL));
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* Every kind of fact, also those that are not there: that is an answer, too. */
static void put_tables(struct lull_json *j, struct lull_reader *r)
{
	lull_json_key(j, "tables");
	lull_json_array(j);
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		struct lull_table_stats s = lull_reader_stats(r, t->id);

		if (t->kind != LULL_KIND_FACT || t->id == LULL_TABLE_checkpoint ||
		    t->id == LULL_TABLE_open_range)
			continue;
		lull_json_object(j);
		lull_page_pair_text(j, "name", t->name);
		lull_page_pair_text(j, "doc", t->doc);
		lull_page_pair_u64(j, "n", s.n_rows);
		lull_page_pair_u64(j, "bytes", s.size_bytes);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_reader *r = q->reader;
	struct lull_json j;

	(void)err;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_bool(&j, "is_sealed", lull_reader_is_sealed(r));
	lull_page_pair_u64(&j, "n_damaged", lull_reader_n_damaged(r));
	lull_page_pair_u64(&j, "lost_bytes", lull_reader_lost_bytes(r));
	lull_page_pair_u64(&j, "n_dangling", lull_reader_n_dangling(r));
	lull_page_pair_text(&j, "warning", lull_reader_warning(r));
	put_issues(&j, r);
	put_meta(&j, r);
	put_tables(&j, r);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_health = {
	.name = "health",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
