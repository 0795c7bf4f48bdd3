/* `lull info` for people. */
#include "cmd/info.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/out.h"
#include "base/str.h"
#include "base/term.h"
#include "base/time.h"
#include "trace/issue.h"

#define KEY_COLUMNS 14

/* One line "key  value", the value wrapped. */
static void print_pair(FILE *to, const char *key, const char *value)
{
	int used = fprintf(to, "%-*s", KEY_COLUMNS, key);

	if (used > KEY_COLUMNS)
		used = fprintf(to, "\n%*s", KEY_COLUMNS, "") - 1;
	lull_term_wrap(to, value, used, lull_term_width(to));
}

static void print_heading(FILE *to, const char *text)
{
	bool is_on = lull_term_has_colour(to);

	fprintf(to, "\n%s%s%s\n", lull_term_colour(LULL_COLOUR_BOLD, is_on), text,
		lull_term_colour(LULL_COLOUR_NONE, is_on));
}

/* ---- the file ---- */

static void print_file(struct lull_reader *r, const char *path, FILE *to)
{
	struct lull_str text = LULL_STR_INIT;
	u16 format = lull_reader_format(r), flags = lull_reader_info(r)->flags;

	print_pair(to, "report", path);
	lull_str_addf(&text, "%s, format %u.%u, %s%s%s",
		      lull_format_bytes(lull_reader_size_bytes(r)).text, format >> 8, format & 0xff,
		      lull_reader_is_sealed(r) ? "sealed" : "not sealed",
		      flags & LULL_FILE_SIMULATED ? ", simulated device" : "",
		      flags & LULL_FILE_IMPORTED ? ", imported" : "");
	print_pair(to, "file", lull_str_text(&text));
	lull_str_release(&text);
}

static void print_recording(struct lull_reader *r, FILE *to)
{
	const struct lull_file_info *info = lull_reader_info(r);
	time_t seconds = (time_t)(info->epoch_utc_ns / LULL_NS_PER_S);
	struct lull_str text = LULL_STR_INIT;
	char date[64] = "unknown";
	struct tm tm;

	if (info->epoch_utc_ns && gmtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm);
	print_pair(to, "begin", date);
	print_pair(to, "duration", lull_format_ns(lull_info_span_ns(r)).text);
	for (size_t i = 0; i < sizeof(info->id); i++)
		lull_str_addf(&text, "%02x", info->id[i]);
	print_pair(to, "recording", lull_str_text(&text));
	lull_str_release(&text);
}

/* ---- facts about machine, command and cost ---- */

/* The part of a key before its first dot; the whole key if it has none. */
static size_t group_len(const char *key)
{
	const char *dot = strchr(key, '.');

	return dot ? (size_t)(dot - key) : strlen(key);
}

static bool is_grouped(const char *key)
{
	return strchr(key, '.') != NULL;
}

/* All rows whose key begins with this group, from row `first` on. */
static void print_group(struct lull_reader *r, const struct lull_meta_row *rows, size_t n, size_t first,
			FILE *to)
{
	const char *group = lull_reader_string(r, rows[first].key, NULL);
	size_t len = group_len(group);
	struct lull_str heading = LULL_STR_INIT;

	lull_str_add(&heading, group, len);
	print_heading(to, strcmp(lull_str_text(&heading), "cost") == 0 ? "cost of recording" :
									 lull_str_text(&heading));
	for (size_t i = first; i < n; i++) {
		const char *key = lull_reader_string(r, rows[i].key, NULL);

		if (is_grouped(key) && group_len(key) == len && strncmp(key, group, len) == 0)
			print_pair(to, key + len + 1, lull_reader_string(r, rows[i].value, NULL));
	}
	lull_str_release(&heading);
}

/* True if an earlier row has the same group. */
static bool is_group_done(struct lull_reader *r, const struct lull_meta_row *rows, size_t ix)
{
	const char *key = lull_reader_string(r, rows[ix].key, NULL);
	size_t len = group_len(key);

	for (size_t i = 0; i < ix; i++) {
		const char *other = lull_reader_string(r, rows[i].key, NULL);

		if (is_grouped(other) && group_len(other) == len && strncmp(key, other, len) == 0)
			return true;
	}
	return false;
}

/* Keys without a group stand with the recording; the others follow under their heading. */
static void print_meta(struct lull_reader *r, FILE *to)
{
	size_t n;
	const struct lull_meta_row *rows = lull_reader_dim(r, LULL_TABLE_meta, &n);

	for (size_t i = 0; i < n; i++) {
		const char *key = lull_reader_string(r, rows[i].key, NULL);

		if (!is_grouped(key))
			print_pair(to, key, lull_reader_string(r, rows[i].value, NULL));
	}
	for (size_t i = 0; i < n; i++)
		if (is_grouped(lull_reader_string(r, rows[i].key, NULL)) && !is_group_done(r, rows, i))
			print_group(r, rows, n, i, to);
}

/* ---- tables ---- */

static int write_out(struct lull_out *out, FILE *to, struct lull_err *err)
{
	const struct lull_out_options options = { .sort_ix = LULL_OUT_UNSORTED, .is_human = true };
	int rc = lull_out_write(out, &options, to, err);

	lull_out_release(out);
	return rc;
}

static int print_processes(struct lull_reader *r, FILE *to, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Process", .kind = LULL_OUT_TEXT },
		{ .name = "PID", .kind = LULL_OUT_TEXT, .align = LULL_OUT_RIGHT },
		{ .name = "Ended", .kind = LULL_OUT_TEXT },
		{ .name = "CPU", .kind = LULL_OUT_NS },
		{ .name = "Max RSS", .kind = LULL_OUT_BYTES },
		{ .name = "Threads", .kind = LULL_OUT_INT },
	};
	struct lull_info_process *all;
	struct lull_out out;
	char text[320];
	size_t n;

	all = lull_info_processes(r, &n);
	print_heading(to, n ? "processes" : "processes: none recorded");
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < n; i++) {
		const struct lull_process_row *p = all[i].row;

		lull_out_row(&out);
		snprintf(text, sizeof(text), "%*s%s", (int)all[i].depth * 2, "",
			 lull_reader_string(r, p->name, NULL));
		lull_out_text(&out, text);
		snprintf(text, sizeof(text), "%u", p->pid);
		lull_out_text(&out, text);
		lull_info_ending(p, text, sizeof(text));
		lull_out_text(&out, text);
		lull_out_i64(&out, (i64)(p->user_ns + p->system_ns));
		lull_out_i64(&out, (i64)p->max_rss_bytes);
		lull_out_i64(&out, all[i].n_threads);
	}
	free(all);
	if (!n) {
		lull_out_release(&out);
		return 0;
	}
	return write_out(&out, to, err);
}

static void add_table(struct lull_out *out, struct lull_reader *r, const struct lull_table_desc *t)
{
	struct lull_table_stats s = lull_reader_stats(r, t->id);
	bool is_fact = t->kind == LULL_KIND_FACT;
	char name[96];

	if (!s.n_rows)
		return;
	snprintf(name, sizeof(name), "%.64s%s", t->name,
		 lull_table_find(t->id) ? "" : " (not known to this lull)");
	lull_out_row(out);
	lull_out_text(out, name);
	lull_out_i64(out, (i64)(is_fact ? s.n_rows : lull_reader_n_dim(r, t->id)));
	lull_out_i64(out, (i64)s.size_bytes);
	lull_out_f64(out, (f64)s.size_bytes / (f64)s.n_rows);
	if (!is_fact)
		return;
	lull_out_i64(out, (i64)s.first_ns);
	lull_out_i64(out, (i64)s.last_ns);
}

static int print_tables(struct lull_reader *r, FILE *to, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Table", .kind = LULL_OUT_TEXT },	{ .name = "Rows", .kind = LULL_OUT_INT },
		{ .name = "Size", .kind = LULL_OUT_BYTES },	{ .name = "B/row", .kind = LULL_OUT_FLOAT,
								  .decimals = 2 },
		{ .name = "First", .kind = LULL_OUT_NS },	{ .name = "Last", .kind = LULL_OUT_NS },
	};
	const struct lull_schema *schema = lull_reader_schema(r);
	struct lull_out out;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t t = 0; t < schema->n; t++)
		add_table(&out, r, &schema->tables[t]);
	if (!lull_out_len(&out)) {
		print_heading(to, "tables: empty");
		lull_out_release(&out);
		return 0;
	}
	print_heading(to, "tables");
	return write_out(&out, to, err);
}

/* ---- what is missing ---- */

static void print_issue(struct lull_reader *r, const struct lull_issue_row *row, FILE *to)
{
	bool is_on = lull_term_has_colour(to);
	enum lull_colour colour = row->severity >= LULL_SEVERITY_LOSS ? LULL_COLOUR_RED :
									LULL_COLOUR_DIM;
	struct lull_str text = LULL_STR_INIT;
	int used = 2 + (int)strlen(lull_severity_name(row->severity)) + 2;

	fprintf(to, "  %s%s%s  ", lull_term_colour(colour, is_on), lull_severity_name(row->severity),
		lull_term_colour(LULL_COLOUR_NONE, is_on));
	fprintf(to, "%*s", 10 - used, "");
	lull_str_addf(&text, "%s x  %s", lull_format_grouped((i64)row->count).text,
		      lull_reader_string(r, row->text, NULL));
	if (row->detail)
		lull_str_addf(&text, " (%s)", lull_reader_string(r, row->detail, NULL));
	lull_term_wrap(to, lull_str_text(&text), 10, lull_term_width(to));
	lull_str_release(&text);
}

/* Trouble of the file itself, which no recorder could have noted. Returns whether there is any. */
static bool print_file_trouble(struct lull_reader *r, FILE *to)
{
	bool has_any = false;

	if (!lull_reader_is_sealed(r)) {
		fputs("  the report was not finished; `lull recover` makes it whole\n", to);
		has_any = true;
	}
	if (lull_reader_lost_bytes(r) || lull_reader_n_damaged(r)) {
		fprintf(to, "  %s of the file are damaged, %s damaged blocks were met\n",
			lull_format_bytes(lull_reader_lost_bytes(r)).text,
			lull_format_grouped((i64)lull_reader_n_damaged(r)).text);
		has_any = true;
	}
	if (lull_reader_warning(r)) {
		fprintf(to, "  %s\n", lull_reader_warning(r));
		has_any = true;
	}
	return has_any;
}

static void print_losses(struct lull_reader *r, FILE *to)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);
	bool has_any;

	print_heading(to, "losses and notices");
	has_any = print_file_trouble(r, to);
	for (int severity = LULL_SEVERITY_ERROR; severity >= 0; severity--)
		for (size_t i = 0; i < n; i++)
			if (rows[i].severity == severity && rows[i].count) {
				print_issue(r, &rows[i], to);
				has_any = true;
			}
	if (!has_any)
		fputs("  none\n", to);
}

int lull_info_print(struct lull_reader *r, const char *path, FILE *to, struct lull_err *err)
{
	int rc;

	print_file(r, path, to);
	print_recording(r, to);
	print_meta(r, to);
	rc = print_processes(r, to, err);
	if (rc)
		return rc;
	print_heading(to, "devices: none recorded");
	rc = print_tables(r, to, err);
	if (!rc)
		print_losses(r, to);
	return rc;
}
