/*
 * sqlite: the tables of an nsys export, so that what was written for those reads ours.
 *
 * The work is that of src/query/, which has a report's columns as tables already: here they are
 * copied into a file.
 */
#include "export/export.h"
#include "query/query.h"

static bool wants(void *ctx, const char *table)
{
	return lull_export_wants(ctx, table);
}

static int write_path(struct lull_reader *r, const struct lull_export_options *options,
		      const char *path, struct lull_err *err)
{
	struct lull_export_options mine = *options;
	struct lull_span window = lull_export_window(options);
	struct lull_query_part part = {
		.wants = wants, .ctx = &mine, .from_ns = window.from_ns, .to_ns = window.to_ns
	};
	struct lull_query *q;
	int rc = lull_query_open(&q, r, err);

	if (rc)
		return rc;
	rc = lull_query_export(q, path, &part, err);
	lull_query_close(q);
	return rc;
}

const struct lull_export lull_export_sqlite = {
	.name = "sqlite",
	.suffix = ".sqlite",
	.summary = "the tables of an nsys export",
	.write_path = write_path,
};
