/*
 * Tables fit: every report of recordings from real devices, on terminals of 80, 120 and 200
 * columns. No line is wider, the column that rows are sorted by and the median are there, and rows
 * of different names look different.
 */
#include "unit/unit.h"

#include "base/intern.h"
#include "report/report.h"
#include "text/term.h"

#define MAX_ROWS    60u
#define MAX_COLUMNS 64u

static const char *const recordings[] = {
	"test/data/torch/train.lull",
	"test/data/torch/ops.lull",
	"test/data/torch/launch_bound.lull",
	"test/data/planted/alloc_churn.lull",
	"test/data/planted-native/launch_bound.lull",
	"test/corpus/data/gpt_pretrain_bf16.lull",
	"test/corpus/data/digits_convnet.lull",
	"test/corpus/data/shard_reader.lull",
	"test/corpus/data/http_embedder.lull",
};

static const int widths[] = { 80, 120, 200 };

/* A printed table. */
struct printed {
	const struct lull_report *report;
	const struct lull_out *out;
	const char *where;
	int width;
	char *lines[MAX_ROWS + 16];
	size_t n_lines;
	size_t from[MAX_COLUMNS], to[MAX_COLUMNS]; /* characters of each column that is shown */
	size_t n_columns;
};

/* The bytes of a line before this character. */
static size_t byte_of(const char *line, size_t character)
{
	size_t at = 0;

	for (; line[at]; at++) {
		if (((u8)line[at] & 0xc0) != 0x80 && character-- == 0)
			break;
	}
	return at;
}

/* The text of a line in a column, without the blanks around it; free it. */
static char *cell_of(const struct printed *p, size_t line, size_t column)
{
	const char *text = p->lines[line];
	size_t from = byte_of(text, p->from[column]), to = byte_of(text, p->to[column]);

	while (from < to && text[from] == ' ')
		from++;
	while (to > from && text[to - 1] == ' ')
		to--;
	return strndup(text + from, to - from);
}

/* The second line has dashes where the columns are. */
static void find_columns(struct printed *p)
{
	const char *rule = p->lines[1];

	p->n_columns = 0;
	for (size_t i = 0; rule[i]; i++) {
		if (rule[i] == '-' && (!i || rule[i - 1] != '-'))
			p->from[p->n_columns] = i;
		if (rule[i] == '-' && rule[i + 1] != '-')
			p->to[p->n_columns++] = i + 1;
	}
}

/* Which of the shown columns has this name, or n_columns. */
static size_t find_column(const struct printed *p, const char *name)
{
	size_t c = 0;

	for (; c < p->n_columns; c++) {
		char *header = cell_of(p, 0, c);
		bool is_it = !strncmp(header, name, strlen(name)) &&
			     (!header[strlen(name)] || !strncmp(header + strlen(name), " (", 2));

		free(header);
		if (is_it)
			break;
	}
	return c;
}

static void check_widths(const struct printed *p)
{
	for (size_t i = 0; i < p->n_lines; i++) {
		if (lull_term_columns(p->lines[i]) > (size_t)p->width)
			fail_msg("%s of %s at %d: too wide: %s", p->report->name, p->where,
				 p->width, p->lines[i]);
	}
}

static void check_has(const struct printed *p, const char *name)
{
	if (find_column(p, name) == p->n_columns)
		fail_msg("%s of %s at %d: without %s: %s", p->report->name, p->where, p->width,
			 name, p->lines[0]);
}

/* The sorted column and all medians are there, and what rows are about. */
static void check_columns(const struct printed *p)
{
	const struct lull_out_column *columns = p->report->columns;

	if (p->report->sorted_by)
		check_has(p, columns[p->report->sorted_by - 1].name);
	for (size_t c = 0; c < p->out->n_columns; c++) {
		if (!strcmp(columns[c].name, "Med") ||
		    (columns[c].is_kernel && !columns[c].is_spare))
			check_has(p, columns[c].name);
	}
}

/* Texts that differ look different, in each column of texts. */
static void check_texts(const struct printed *p, size_t c, size_t n_rows)
{
	size_t shown = find_column(p, p->out->columns[c].name);
	struct lull_intern fulls, labels;

	if (shown == p->n_columns)
		return;
	lull_intern_init(&fulls);
	lull_intern_init(&labels);
	for (size_t row = 0; row < n_rows; row++) {
		const struct lull_out_cell *cell =
			lull_vec_get(&p->out->cells, row * p->out->n_columns + c);
		char *label;

		if (cell->kind != LULL_OUT_CELL_TEXT || !cell->text_len)
			continue;
		label = cell_of(p, 2 + row, shown);
		if (lull_intern_add(&fulls, lull_out_cell_text(p->out, cell), cell->text_len) !=
		    lull_intern_add(&labels, label, strlen(label)))
			fail_msg("%s of %s at %d: two texts became \"%s\", one is %s",
				 p->report->name, p->where, p->width, label,
				 lull_out_cell_text(p->out, cell));
		free(label);
	}
	lull_intern_release(&fulls);
	lull_intern_release(&labels);
}

static void check(struct printed *p, char *text, size_t n_rows)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(p->n_lines < LULL_COUNT_OF(p->lines));
		p->lines[p->n_lines++] = line;
	}
	find_columns(p);
	check_widths(p);
	check_columns(p);
	for (size_t c = 0; c < p->out->n_columns; c++) {
		if (p->out->columns[c].kind == LULL_OUT_TEXT)
			check_texts(p, c, n_rows);
	}
}

static void print(const struct lull_report *report, const struct lull_out *out, const char *where,
		  int width)
{
	struct printed p = { .report = report, .out = out, .where = where, .width = width };
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	size_t n = lull_out_len(out);
	struct lull_err err;
	struct unit_stream s;

	options.width = width;
	options.is_human = true;
	options.kept_ix = report->sorted_by;
	options.top = MAX_ROWS;
	unit_open(&s);
	assert_int_equal(lull_out_write(out, &options, s.to, &err), LULL_OK);
	fclose(s.to);
	check(&p, s.text, n < MAX_ROWS ? n : MAX_ROWS);
	free(s.text);
}

/* How many tables of a report were printed. */
static size_t run(const struct lull_report *report, struct lull_reader *r, const char *where)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	struct lull_str why = LULL_STR_INIT;
	size_t n_tables = 0;
	struct lull_out out;
	struct lull_err err;

	lull_out_init(&out, report->columns, report->n_columns);
	if (lull_report_has_data(report, r, &why) &&
	    !lull_report_run(report, r, &out, &options, &err) && lull_out_len(&out)) {
		for (size_t i = 0; i < LULL_COUNT_OF(widths); i++, n_tables++)
			print(report, &out, where, widths[i]);
	}
	lull_out_release(&out);
	lull_str_release(&why);
	return n_tables;
}

static void tables_of_every_report_fit(void **state)
{
	size_t n_tables = 0;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(recordings); i += test_stride(4)) {
		struct lull_reader *r;
		struct lull_err err;

		assert_int_equal(lull_reader_open(&r, recordings[i], &err), LULL_OK);
		for (size_t k = 0; lull_reports[k]; k++)
			n_tables += run(lull_reports[k], r, recordings[i]);
		lull_reader_close(r);
	}
	assert_true(n_tables > 500 / test_stride(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_every_report_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
