#include "cmd/gate_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"

/* A gate in CI must end. */
static const struct lull_query_limits limits = { .timeout_ns = 60000000000ull };

/* One number for each line; an empty one is NULL, which is no measurement. */
static int take_numbers(char *text, struct lull_samples *to, struct lull_err *err)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *end;
		f64 value = strtod(line, &end);

		if (end == line || (*end && *end != '\t'))
			return lull_fail(err, LULL_E_USAGE,
					 "the first column of the query has to be numbers, not "
					 "'%.40s'",
					 line);
		lull_samples_add(to, value);
	}
	return LULL_OK;
}

int lull_gate_query(struct lull_reader *r, const char *sql, struct lull_samples *to,
		    struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_query *q = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&text, &len);
	int rc;

	if (!stream)
		return lull_fail_errno(err, "allocating memory for the result of a query");
	rc = lull_out_options_parse(&options, "tsv:nohdr", err);
	if (!rc)
		rc = lull_query_open(&q, r, err);
	if (!rc)
		rc = lull_query_run(q, sql, &limits, &options, stream, err);
	fclose(stream);
	if (!rc)
		rc = take_numbers(text, to, err);
	lull_query_close(q);
	free(text);
	return rc;
}
