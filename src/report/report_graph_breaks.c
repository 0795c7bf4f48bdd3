/*
 * graph_breaks: where torch.compile breaks graphs, compiles again or gives up, and why.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "model/thread/compile_note.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Count", .kind = LULL_OUT_INT, .doc = "how often" },
	{ .name = "Kind",
	  .kind = LULL_OUT_TEXT,
	  .doc = "graph break: a graph ends there, and Python goes on; recompile: the function "
		 "was compiled again; not compiled: it runs without torch.compile" },
	{ .name = "Line",
	  .kind = LULL_OUT_TEXT,
	  .doc = "graph break: the line that cannot be in a graph; else where the function "
		 "starts" },
	{ .name = "Function", .kind = LULL_OUT_TEXT, .doc = "its function", .is_spare = true },
	{ .name = "First At",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "when it happened first",
	  .is_spare = true },
	{ .name = "Reason",
	  .kind = LULL_OUT_TEXT,
	  .doc = "what torch.compile says; of a recompilation the guard that failed" },
};

struct note {
	u64 n, first_ns;
	u32 label;
};

static int by_n(const void *a, const void *b)
{
	const struct note *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->label > y->label) - (x->label < y->label);
}

/* Marks by label: notes with the same text are the same one. */
static void count(struct lull_reader *r, const struct lull_report_options *options,
		  struct note *by_label)
{
	struct lull_mark_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_mark, options->from_ns, options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct note *note = &by_label[cols.label[i]];

			if (!lull_report_covers(options, cols.start_ns[i], 0))
				continue;
			if (!note->n || cols.start_ns[i] < note->first_ns)
				note->first_ns = cols.start_ns[i];
			note->n++;
			note->label = cols.label[i];
		}
	}
	lull_cursor_release(&c);
}

static void put_row(struct lull_out *out, const struct note *note,
		    const struct lull_compile_note *said)
{
	struct lull_str text = LULL_STR_INIT;

	lull_out_row(out);
	lull_out_i64(out, (i64)note->n);
	lull_out_text(out, lull_compile_note_word(said->kind));
	lull_str_addf(&text, "%.*s:%u", (int)said->n_file, said->file, said->line);
	lull_out_text(out, lull_str_text(&text));
	lull_str_clear(&text);
	lull_str_addf(&text, "%.*s", (int)said->n_function, said->function);
	lull_out_text(out, lull_str_text(&text));
	lull_out_i64(out, (i64)note->first_ns);
	lull_out_text(out, said->reason);
	lull_str_release(&text);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	size_t n;
	struct note *by_label;

	(void)err;
	lull_reader_dim(r, LULL_TABLE_label, &n);
	by_label = lull_alloc(n + 1, sizeof(*by_label));
	count(r, options, by_label);
	lull_sort(by_label, n + 1, sizeof(*by_label), by_n);
	for (size_t i = 0; i <= n && by_label[i].n; i++) {
		struct lull_compile_note said;

		if (lull_compile_note_of(r, by_label[i].label, &said))
			put_row(out, &by_label[i], &said);
	}
	free(by_label);
	return LULL_OK;
}

const struct lull_report lull_report_graph_breaks = {
	.name = "graph_breaks",
	.display = "Graph Breaks and Recompilations",
	.summary = "where torch.compile breaks graphs or compiles again, and why",
	.help = "Where torch.compile ends a graph, compiles a function again because a guard "
		"failed, or gives a function up, with the reason that it has itself; most frequent "
		"first. That happens when functions are compiled, so record from the start of the "
		"program.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mark),
	.sorted_by = 1,
	.empty = "torch.compile broke no graph and compiled nothing again while it was recorded",
	.run = run,
};
