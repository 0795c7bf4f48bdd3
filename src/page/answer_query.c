/*
 * query: SQL over the report, by POST with the SQL as body; reading only, 5 s and 10,000 rows.
 *
 *	{"rows": [{column: value, ...}, ...], "notice": what was cut off, or null}
 */
#include "page/page.h"

#include <stdlib.h>

#include "text/out.h"
#include "base/time.h"
#include "query/query.h"

static int run(struct lull_question *q, struct lull_err *err)
{
	const struct lull_query_limits limits = { .timeout_ns = 5 * LULL_NS_PER_S,
						  .max_rows = 10000 };
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_err why = { LULL_OK, "" };
	struct lull_query *query;
	char *rows = NULL;
	size_t len = 0;
	struct lull_json j;
	FILE *to;
	int rc;

	if (!q->args->body || !q->args->body_len)
		return lull_fail(err, LULL_E_USAGE, "the body must be an SQL query");
	if (lull_query_open(&query, q->reader, err))
		return err->code;
	options.format = LULL_OUT_FORMAT_json;
	to = open_memstream(&rows, &len);
	rc = to ? lull_query_run(query, q->args->body, &limits, &options, to, &why) : LULL_E_NOMEM;
	if (to)
		fclose(to);
	lull_query_close(query);
	/* Cut off by a limit: what is there is an answer, and says so. */
	if (rc && (rc != LULL_E_IO || !len)) {
		free(rows);
		return lull_fail(err, why.code ? why.code : LULL_E_NOMEM, "%s", why.msg);
	}
	fprintf(q->to, "{\"rows\":%s,\"notice\":", len ? rows : "[]");
	lull_json_init(&j, q->to);
	lull_json_text(&j, rc ? why.msg : NULL);
	fputc('}', q->to);
	free(rows);
	return LULL_OK;
}

const struct lull_answer lull_answer_query = {
	.name = "query",
	.type = "application/json",
	.is_slow = true,
	.has_body = true,
	.run = run,
};
