/*
 * losses: what the recording does not have, and why.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/report.h"
#include "trace/issue.h"

static const struct lull_out_column columns[] = {
	{ .name = "Severity",
	  .kind = LULL_OUT_TEXT,
	  .doc = "error, loss (rows are missing) or notice" },
	{ .name = "Count", .kind = LULL_OUT_INT, .doc = "how often, or how many events" },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process, empty for the recording itself" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "short name", .is_spare = true },
	{ .name = "Meaning", .kind = LULL_OUT_TEXT, .doc = "what it means for the numbers" },
	{ .name = "Detail", .kind = LULL_OUT_TEXT, .doc = "what exactly", .is_spare = true },
};

struct loss {
	u8 severity; /* enum lull_severity */
	u64 count;
	const char *name;
	const char *meaning;
};

static void put_file_loss(struct lull_out *out, const struct loss *loss)
{
	if (!loss->count)
		return;
	lull_out_row(out);
	lull_out_text(out, lull_severity_name(loss->severity));
	lull_out_i64(out, (i64)loss->count);
	lull_out_skip(out);
	lull_out_text(out, loss->name);
	lull_out_text(out, loss->meaning);
}

/* What the reader found out about the file itself. */
static void put_file(struct lull_out *out, struct lull_reader *r)
{
	const struct loss losses[] = {
		{ LULL_SEVERITY_ERROR, lull_reader_verify(r), "damaged_blocks",
		  "blocks of the file whose checksum is wrong; their rows are missing" },
		{ LULL_SEVERITY_ERROR, lull_reader_lost_bytes(r), "lost_bytes",
		  "bytes between blocks that belong to no block" },
		{ LULL_SEVERITY_ERROR, lull_reader_n_dangling(r), "dangling_ids",
		  "references to rows that are not in the file" },
		{ LULL_SEVERITY_NOTICE, !lull_reader_is_sealed(r), "not_sealed",
		  "the file is still being written or was cut off, and how much is missing cannot "
		  "be "
		  "told; lull recover makes a report of what is there" },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(losses); i++)
		put_file_loss(out, &losses[i]);
}

static void put_issue(struct lull_out *out, struct lull_reader *r,
		      const struct lull_issue_row *issue)
{
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);

	lull_out_row(out);
	lull_out_text(out, lull_severity_name(issue->severity));
	lull_out_i64(out, (i64)issue->count);
	if (issue->process)
		lull_out_i64(out, processes[issue->process - 1].pid);
	else
		lull_out_skip(out);
	lull_out_text(out, lull_reader_string(r, issue->name, NULL));
	lull_out_text(out, lull_reader_string(r, issue->text, NULL));
	lull_out_text(out, lull_reader_string(r, issue->detail, NULL));
}

static int by_severity(const void *a, const void *b)
{
	const struct lull_issue_row *x = *(const struct lull_issue_row *const *)a;
	const struct lull_issue_row *y = *(const struct lull_issue_row *const *)b;

	if (x->severity != y->severity)
		return y->severity - x->severity;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x > y) - (x < y);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_issue_row **order, *issues;
	size_t n;

	(void)options;
	(void)err;
	issues = lull_reader_dim(r, LULL_TABLE_issue, &n);
	order = lull_alloc(n, sizeof(*order));
	for (size_t i = 0; i < n; i++)
		order[i] = &issues[i];
	if (n)
		lull_sort(order, n, sizeof(*order), by_severity);
	put_file(out, r);
	for (size_t i = 0; i < n; i++)
		put_issue(out, r, order[i]);
	free(order);
	return LULL_OK;
}

const struct lull_report lull_report_losses = {
	.name = "losses",
	.display = "Losses",
	.summary = "what is missing in the recording, and why",
	.help = "Events that were dropped, sources that the system refused, and damage of the "
		"file, which is checked completely. Filters do not apply.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.empty = "nothing was lost: the file is complete and the recorder counted no problems",
	.run = run,
};
